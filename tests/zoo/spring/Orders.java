package shop;

import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Query;

/** All orders. */
public interface Orders extends JpaRepository<Order, Long> {
    List<Order> findByCustomerOrderByAmountDesc(Customer customer);

    @Query("select o.item, sum(o.amount) from Order o where o.customer.town = ?1 group by o.item order by o.item")
    List<Object[]> sums(String town);
}
