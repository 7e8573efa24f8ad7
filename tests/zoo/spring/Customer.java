package shop;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.Id;

/** Who orders. */
@Entity
public class Customer {
    @Id
    @GeneratedValue
    private Long id;
    private String name;
    private String town;

    protected Customer() {}

    Customer(String name, String town) {
        this.name = name;
        this.town = town;
    }

    public String getName() {
        return name;
    }
}
