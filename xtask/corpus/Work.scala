import scala.annotation.tailrec
import scala.collection.mutable

sealed trait Expression
case class Number(value: Int) extends Expression
case class Sum(left: Expression, right: Expression) extends Expression
case class Product(left: Expression, right: Expression) extends Expression

trait Named { lazy val name: String = getClass.getName.takeWhile(_ != '$') }

class Evaluator(val limit: Int) extends Named {
  class Overflow(val value: Int) extends Exception(s"$value is over $limit")

  def this() = this(1000)

  def apply(expression: Expression): Int = expression match {
    case Number(value) => value
    case Sum(left, right) => check(apply(left) + apply(right))
    case Product(Number(0), _) | Product(_, Number(0)) => 0
    case Product(left, right) => check(apply(left) * apply(right))
  }

  private def check(value: Int): Int = if (value > limit) throw new Overflow(value) else value
}

object Work {
  @tailrec def gcd(a: Int, b: Int): Int = if (b == 0) a else gcd(b, a % b)

  def main(arguments: Array[String]): Unit = {
    val evaluator = new Evaluator
    val results = for (i <- 0 until 100; j <- i until 100) yield {
      try evaluator(Sum(Product(Number(i), Number(j)), Number(gcd(i, j))))
      catch { case overflow: evaluator.Overflow => -overflow.value % 7 }
    }
    println(s"${evaluator.name} ${results.sum} ${results.count(_ < 0)}")
    val counts = mutable.Map.empty[Char, Int].withDefaultValue(0)
    for (line <- Stream.from(1).map(_.toString * 2).take(500); c <- line) counts(c) += 1
    println(counts.toSeq.sorted.mkString(", "))
    val primes = Iterator.from(2).filter(n => (2 to math.sqrt(n).toInt).forall(n % _ != 0))
    println(primes.slice(100, 110).toList)
    println((1 to 1000).par.map(BigInt(_)).sum)
    val Pattern = "(\\w+)@(\\w+)".r
    println(Seq("one@two", "three").collect { case Pattern(user, host) => host -> user }.toMap)
  }
}
