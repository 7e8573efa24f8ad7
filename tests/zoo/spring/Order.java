package shop;

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.Id;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.Table;

/** What is ordered. */
@Entity
@Table(name = "orders")
public class Order {
    @Id
    @GeneratedValue
    private Long id;
    @ManyToOne(fetch = FetchType.LAZY)
    private Customer customer;
    private int amount;
    private String item;

    protected Order() {}

    Order(Customer customer, int amount, String item) {
        this.customer = customer;
        this.amount = amount;
        this.item = item;
    }

    public int getAmount() {
        return amount;
    }
}
