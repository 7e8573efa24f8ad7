package hsqldb;

import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import zoo.Meter;
import zoo.Zoo;

/** HSQLDB in memory: transactions that order, ship, count and forget. */
public class Orders {
    private static final int CUSTOMERS = 200;
    private static final int ITEMS = 500;
    private static final int ORDERS = 60;
    /** Older orders are deleted. */
    private static final int KEPT = 3000;

    private final Meter queries = new Meter("query");
    private final Connection connection;
    private final PreparedStatement insert;
    private final PreparedStatement ship;
    private final PreparedStatement byCustomer;
    private final PreparedStatement bestItems;
    private final PreparedStatement late;
    private final PreparedStatement delete;
    private int next;

    public static void main(String[] args) throws Exception {
        Orders orders = new Orders();
        Meter steps = new Meter("step");
        while (orders.next < KEPT) {
            orders.step();
        }
        Zoo.ready();
        while (true) {
            steps.time(orders::step);
        }
    }

    Orders() throws SQLException {
        connection = DriverManager.getConnection("jdbc:hsqldb:mem:orders", "SA", "");
        connection.setAutoCommit(false);
        try (Statement schema = connection.createStatement()) {
            schema.execute("create table customer (id int primary key, name varchar(40), region int)");
            schema.execute("create table item (id int primary key, name varchar(40), price decimal(10, 2))");
            schema.execute("create table orders (id int primary key, customer int references customer (id), item int references item (id), "
                    + "amount int, shipped boolean, note varchar(80))");
            for (int i = 0; i < CUSTOMERS; i++) {
                schema.execute("insert into customer values (" + i + ", 'customer " + i + "', " + i % 8 + ")");
            }
            for (int i = 0; i < ITEMS; i++) {
                schema.execute("insert into item values (" + i + ", 'item " + i + "', " + (i + 0.5) + ")");
            }
        }
        insert = connection.prepareStatement("insert into orders values (?, ?, ?, ?, false, ?)");
        ship = connection.prepareStatement("update orders set shipped = true where customer = ? and shipped = false");
        byCustomer = connection.prepareStatement("select c.region, count(*), sum(o.amount * i.price) from orders o "
                + "join customer c on c.id = o.customer join item i on i.id = o.item where c.region < ? group by c.region order by 3 desc");
        bestItems = connection.prepareStatement("select i.name, sum(o.amount) from orders o join item i on i.id = o.item "
                + "where i.price > ? group by i.name having sum(o.amount) > 10 order by 2 desc, 1 limit 10");
        late = connection.prepareStatement("select id, upper(note) from orders where shipped = false and note like ? order by note");
        delete = connection.prepareStatement("delete from orders where id < ?");
    }

    Void step() throws Exception {
        int amount = 0;
        for (int i = 0; i < ORDERS; i++, next++) {
            insert.setInt(1, next);
            insert.setInt(2, next * 7 % CUSTOMERS);
            insert.setInt(3, next * 13 % ITEMS);
            insert.setInt(4, next % 5 + 1);
            insert.setString(5, "please ring twice, " + next % 97);
            amount += insert.executeUpdate();
        }
        Zoo.check(amount == ORDERS, "orders are missing");
        for (int i = 0; i < 10; i++) {
            ship.setInt(1, (next + i) % CUSTOMERS);
            ship.executeUpdate();
        }
        byCustomer.setInt(1, 8);
        int kept = 0;
        BigDecimal last = null;
        try (ResultSet rows = queries.time(byCustomer::executeQuery)) {
            while (rows.next()) {
                kept += rows.getInt(2);
                BigDecimal sum = rows.getBigDecimal(3);
                Zoo.check(last == null || last.compareTo(sum) >= 0, "regions are not sorted");
                last = sum;
            }
        }
        Zoo.check(kept == Math.min(next, KEPT + ORDERS), kept + " orders are kept");
        bestItems.setBigDecimal(1, BigDecimal.valueOf(next % 50));
        try (ResultSet rows = queries.time(bestItems::executeQuery)) {
            Zoo.check(next < KEPT || rows.next(), "no item is sold");
        }
        late.setString(1, "please ring%" + next % 10);
        try (ResultSet rows = queries.time(late::executeQuery)) {
            while (rows.next()) {
                Zoo.check(rows.getString(2).startsWith("PLEASE"), "not in capitals");
            }
        }
        delete.setInt(1, next - KEPT);
        delete.executeUpdate();
        connection.commit();
        return null;
    }
}
