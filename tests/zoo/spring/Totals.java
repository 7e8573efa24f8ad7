package shop;

import java.util.Map;
import java.util.TreeMap;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** What the customers of a town have ordered. */
@Service
public class Totals {
    private final Customers customers;
    private final Orders orders;

    Totals(Customers customers, Orders orders) {
        this.customers = customers;
        this.orders = orders;
    }

    @Transactional(readOnly = true)
    public Map<String, Object> of(String town) {
        Map<String, Object> result = new TreeMap<>();
        long total = 0;
        for (Customer customer : customers.findByTownOrderByName(town)) {
            long sum = orders.findByCustomerOrderByAmountDesc(customer).stream()
                    .filter(order -> order.getAmount() > 10).mapToLong(Order::getAmount).sum();
            result.put(customer.getName(), sum);
            total += sum;
        }
        for (Object[] row : orders.sums(town)) {
            result.put((String) row[0], row[1]);
        }
        result.put("total", total);
        return result;
    }
}
