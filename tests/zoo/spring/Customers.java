package shop;

import java.util.List;
import org.springframework.data.jpa.repository.JpaRepository;

/** All customers. */
public interface Customers extends JpaRepository<Customer, Long> {
    List<Customer> findByTownOrderByName(String town);
}
