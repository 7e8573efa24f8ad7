/** Orders as maps, and what Groovy's closures make of them. */
class Work {
    private final List<Map> orders = (0..<1500).collect { n ->
        [id: n, customer: "customer${n % 40}".toString(), amount: n * 7919 % 97 + 1, note: "note $n of ${n % 11}".toString()]
    }

    String step() {
        def totals = byCustomer()
        def words = words()
        def gifts = orders.findAll { it.amount > 90 }.collect { it + [gift: true] }.groupBy { it.customer }
        "${totals.values().sum()} ${words.take(1)} ${gifts.size()}"
    }

    Map byCustomer() {
        orders.inject([:].withDefault { 0 }) { sums, order ->
            sums[order.customer] += order.amount
            sums
        }
    }

    Map words() {
        orders.collectMany { it.note.split(' ') as List }.countBy { it }.sort { -it.value }
    }
}
