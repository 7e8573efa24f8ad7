package kotlinprogram

import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.channels.Channel
import kotlinx.coroutines.flow.filter
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.fold
import kotlinx.coroutines.flow.map
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import kotlinx.coroutines.yield
import zoo.Meter
import zoo.Zoo

private const val ORDERS = 2000

private data class Order(val id: Int, val customer: String, val amount: Int)

/** Coroutines that hand orders on to each other: through a channel, a flow, and to other threads. */
class Pipeline {
    private val sorting = Meter("sort")

    fun step(): String = runBlocking {
        val channel = Channel<Order>(64)
        launch {
            repeat(ORDERS) { channel.send(Order(it, "customer${it % 40}", it * 7919 % 97 + 1)) }
            channel.close()
        }
        val totals = HashMap<String, Int>()
        val orders = ArrayList<Order>()
        for (order in channel) {
            totals.merge(order.customer, order.amount, Int::plus)
            orders += order
            if (order.id % 100 == 0) yield()
        }
        val large = flow { orders.forEach { emit(it) } }.filter { it.amount > 90 }.map { it.copy(amount = it.amount * 2) }
            .fold(0) { sum, order -> sum + order.amount }
        val hashes = orders.chunked(ORDERS / 4).map { part -> async(Dispatchers.Default) { digest(part) } }.awaitAll()
        "${totals.values.sum()} $large ${sorted(orders).take(2)} ${hashes.sum()}"
    }

    private suspend fun digest(orders: List<Order>): Int = withContext(Dispatchers.Default) {
        orders.fold(17) { hash, order -> hash * 31 + order.toString().hashCode() }
    }

    private fun sorted(orders: List<Order>): List<Int> = sorting.time { byAmount(orders) }

    private fun byAmount(orders: List<Order>): List<Int> =
        orders.sortedWith(compareByDescending<Order> { it.amount }.thenBy { it.customer }.thenBy { it.id }).map { it.id }
}

fun main() {
    val pipeline = Pipeline()
    val meter = Meter("step")
    val expected = pipeline.step()
    Zoo.ready()
    while (true) {
        Zoo.check(meter.time { pipeline.step() } == expected, "another answer")
    }
}
