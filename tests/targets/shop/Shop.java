package shop;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The program of docs/TUTORIAL.md: workers price orders, write invoices and keep an audit log, and it is slower than it should
 * be. Says once a second how many orders it has handled. Argument: how many workers. Ends with its standard input.
 */
public class Shop {
    private final PriceCache prices = new PriceCache(new PriceList());
    private final AuditLog audit = new AuditLog();

    public static void main(String[] args) throws Exception {
        Shop shop = new Shop();
        AtomicLong handled = new AtomicLong();
        for (int i = 1; i <= Integer.parseInt(args[0]); i++) {
            Random random = new Random(i);
            Thread worker = new Thread(() -> {
                for (;;) {
                    shop.handle(Order.any(random));
                    handled.incrementAndGet();
                }
            }, "worker-" + i);
            worker.setDaemon(true);
            worker.start();
        }
        Thread clock = new Thread(() -> {
            try {
                for (long before = 0;;) {
                    Thread.sleep(1_000);
                    long now = handled.get();
                    System.out.println("RATE " + (now - before));
                    before = now;
                }
            } catch (InterruptedException end) {
                // As good as an end.
            }
        });
        clock.setDaemon(true);
        clock.start();
        System.out.println("READY");
        while (System.in.read() >= 0) {
            // Only the end is of interest.
        }
    }

    String handle(Order order) {
        long cents = price(order);
        String invoice = new Invoice(order).render(cents);
        audit.append(invoice);
        return invoice;
    }

    private long price(Order order) {
        long sum = 0;
        for (Order.Line line : order.lines()) {
            sum += line.quantity() * prices.cents(new PriceKey(line.article(), order.currency()));
        }
        return sum;
    }
}

/** What a customer wants. */
final class Order {
    private static final String[] CURRENCIES = {"EUR", "USD", "CHF"};
    private final String customer;
    private final String currency;
    private final List<Line> lines = new ArrayList<>();

    private Order(String customer, String currency) {
        this.customer = customer;
        this.currency = currency;
    }

    static Order any(Random random) {
        Order order = new Order("customer-" + random.nextInt(500), CURRENCIES[random.nextInt(CURRENCIES.length)]);
        for (int i = 0; i < 12; i++) {
            order.lines.add(new Line("article-" + random.nextInt(PriceList.ARTICLES), 1 + random.nextInt(9)));
        }
        return order;
    }

    String customer() {
        return customer;
    }

    String currency() {
        return currency;
    }

    List<Line> lines() {
        return lines;
    }

    static final class Line {
        private final String article;
        private final int quantity;

        Line(String article, int quantity) {
            this.article = article;
            this.quantity = quantity;
        }

        String article() {
            return article;
        }

        int quantity() {
            return quantity;
        }
    }
}

/** What is sent to the customer. */
final class Invoice {
    private final Order order;

    Invoice(Order order) {
        this.order = order;
    }

    String render(long cents) {
        StringBuilder text = new StringBuilder("Invoice for ").append(order.customer()).append('\n');
        for (Order.Line line : order.lines()) {
            text.append(line(line)).append('\n');
        }
        return text.append("Total ").append(cents / 100).append(' ').append(order.currency()).toString();
    }

    private static String line(Order.Line line) {
        return line.quantity() + " x " + line.article();
    }
}

/** All prices, as the supplier sends them: a line an article and currency. */
final class PriceList {
    static final int ARTICLES = 1_000;
    private final List<String> lines = new ArrayList<>();

    PriceList() {
        for (int article = 0; article < ARTICLES; article++) {
            lines.add("article-" + article + ";EUR;" + (199 + article));
            lines.add("article-" + article + ";USD;" + (219 + article));
            lines.add("article-" + article + ";CHF;" + (189 + article));
        }
    }

    long find(PriceKey key) {
        String article = key.article();
        String currency = key.currency();
        for (String line : lines) {
            String[] fields = line.split(";");
            if (fields[0].equals(article) && fields[1].equals(currency)) {
                return Long.parseLong(fields[2]);
            }
        }
        throw new IllegalArgumentException("no price of " + article);
    }
}
