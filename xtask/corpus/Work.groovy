import groovy.transform.CompileStatic
import groovy.transform.Immutable

@Immutable
class Point {
    int x, y

    Point plus(Point other) { new Point(x + other.x, y + other.y) }
}

@CompileStatic
class Sieve {
    static List<Integer> primes(int limit) {
        boolean[] composite = new boolean[limit + 1]
        List<Integer> found = []
        for (int i = 2; i <= limit; i++) {
            if (composite[i]) continue
            found << i
            for (long j = (long) i * i; j <= limit; j += i) composite[(int) j] = true
        }
        found
    }
}

class Base {
    final String text

    Base(String text) { this.text = text }

    Base(int number) { this("number $number") }
}

class Derived extends Base {
    Derived(argument) { super(argument) }

    def methodMissing(String name, arguments) { "$name(${arguments.join(', ')}) of $text" }
}

println((1..100).collect { new Point(it, -it) }.inject(new Point(0, 0)) { sum, point -> sum + point })
println Sieve.primes(5000).takeRight(5)
println new Derived('text').text + ', ' + new Derived(7).text
println new Derived(1).nothing(1, 'two')

def failures = 0
300.times { i ->
    try {
        if (i % 3 == 0) throw new IllegalStateException("at $i")
        assert i % 3 == 1
    } catch (IllegalStateException | AssertionError error) {
        failures++
    } finally {
        failures += 0
    }
}
println failures

def text = new StringBuilder()
def words = 'one two three two one' =~ /(\w)(\w+)/
words.each { all, first, rest -> text << rest << first << ' ' }
println text
println((1..20).groupBy { it % 3 }.collectEntries { key, values -> [key, values.sum()] })

def total = java.util.concurrent.ConcurrentHashMap.newKeySet()
(1..4).collect { n -> Thread.start { 100.times { total << n * 1000 + it } } }*.join()
println total.size()
switch (total.size()) {
    case 0..399: println 'too few'; break
    case { it > 400 }: println 'too many'; break
    default: println 'all'
}
