package calcite;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import org.apache.calcite.adapter.java.ReflectiveSchema;
import org.apache.calcite.jdbc.CalciteConnection;
import zoo.Meter;
import zoo.Zoo;

/** Calcite on objects: each query is parsed, planned, and made a class of its own, which is loaded and runs. */
public class Queries {
    private static final int EMPLOYEES = 300;
    private static final int DEPARTMENTS = 20;
    private static final int SALES = 800;
    /** Employees who get more, for each limit: salaries are from 1000 to 1899. */
    private static final double LEAST = 1000;

    private final Meter queries = new Meter("query");
    private final Connection connection;
    private int next;

    /** A table's row. */
    public static class Employee {
        public final int id;
        public final int department;
        public final double salary;

        Employee(int id) {
            this.id = id;
            department = id * 7 % DEPARTMENTS;
            salary = LEAST + id * 37 % 900;
        }
    }

    /** A table's row. */
    public static class Department {
        public final int id;
        public final String name;

        Department(int id) {
            this.id = id;
            name = "department " + id;
        }
    }

    /** A table's row. */
    public static class Sale {
        public final int employee;
        public final int amount;
        public final String item;

        Sale(int number) {
            employee = number * 13 % EMPLOYEES;
            amount = 5 + number % 95;
            item = "item " + number % 11;
        }
    }

    /** The schema: its arrays are tables. */
    public static class Company {
        public final Employee[] employees = new Employee[EMPLOYEES];
        public final Department[] departments = new Department[DEPARTMENTS];
        public final Sale[] sales = new Sale[SALES];

        Company() {
            for (int i = 0; i < EMPLOYEES; i++) {
                employees[i] = new Employee(i);
            }
            for (int i = 0; i < DEPARTMENTS; i++) {
                departments[i] = new Department(i);
            }
            for (int i = 0; i < SALES; i++) {
                sales[i] = new Sale(i);
            }
        }
    }

    private final Company company = new Company();

    public static void main(String[] args) throws Exception {
        Queries queries = new Queries();
        Meter steps = new Meter("step");
        queries.step();
        Zoo.ready();
        while (true) {
            steps.time(queries::step);
        }
    }

    Queries() throws SQLException {
        Properties settings = new Properties();
        settings.setProperty("lex", "JAVA");
        connection = DriverManager.getConnection("jdbc:calcite:", settings);
        connection.unwrap(CalciteConnection.class).getRootSchema().add("company", new ReflectiveSchema(company));
    }

    Void step() throws Exception {
        next++;
        int limit = (int) LEAST + next % 90 * 10;
        int paidMore = 0;
        for (Employee employee : company.employees) {
            paidMore += employee.salary > limit ? 1 : 0;
        }
        int rows = rows("select d.name, e.salary from company.employees e join company.departments d on e.department = d.id "
                + "where e.salary > " + limit);
        Zoo.check(rows == paidMore, rows + " employees, not " + paidMore);
        int items = rows("select item, max(amount) best, count(*) sales from company.sales where amount > " + next % 50 + " group by item");
        Zoo.check(items == 11, items + " items");
        return null;
    }

    private int rows(String sql) throws Exception {
        int count = 0;
        try (Statement statement = connection.createStatement(); ResultSet rows = queries.time(() -> statement.executeQuery(sql))) {
            int columns = rows.getMetaData().getColumnCount();
            while (rows.next()) {
                for (int column = 1; column <= columns; column++) {
                    Zoo.check(rows.getObject(column) != null, "nothing is in column " + column);
                }
                count++;
            }
        }
        return count;
    }
}
