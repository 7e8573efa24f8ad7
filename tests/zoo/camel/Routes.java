package camel;

import java.util.Map;
import java.util.TreeMap;
import org.apache.camel.CamelContext;
import org.apache.camel.Exchange;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.impl.DefaultCamelContext;
import zoo.Meter;
import zoo.Zoo;

/** Camel: orders are split, chosen by what they say, filtered, and written as JSON. */
public class Routes extends RouteBuilder {
    private static final int ORDERS = 120;

    private final ProducerTemplate producer;
    private long length;

    Routes() throws Exception {
        CamelContext context = new DefaultCamelContext();
        context.addRoutes(this);
        context.start();
        producer = context.createProducerTemplate();
    }

    public static void main(String[] args) throws Exception {
        Routes routes = new Routes();
        Meter steps = new Meter("step");
        long expected = routes.step();
        Zoo.ready();
        while (true) {
            Zoo.check(steps.time(routes::step) == expected, "the orders have another length");
        }
    }

    @Override
    public void configure() {
        from("direct:orders").split(body().tokenize(";")).to("direct:order");
        from("direct:order")
            .setHeader("big", simple("${body} contains 'big'"))
            .choice().when(header("big").isEqualTo("true")).to("direct:big").otherwise().to("direct:small");
        from("direct:big").process(Routes::describe).marshal().json().convertBodyTo(String.class).process(this::count);
        from("direct:small")
            .filter(simple("${body} regex '.*[02468]'"))
            .transform(simple("${body}-${header.big}"))
            .process(this::count);
    }

    long step() {
        length = 0;
        StringBuilder orders = new StringBuilder();
        for (int order = 0; order < ORDERS; order++) {
            orders.append(order % 3 == 0 ? "big" : "small").append(" order ").append(order).append(';');
        }
        producer.sendBody("direct:orders", orders.toString());
        return length;
    }

    private static void describe(Exchange exchange) {
        Map<String, Object> order = new TreeMap<>();
        order.put("line", exchange.getMessage().getBody(String.class));
        order.put("kind", "big");
        exchange.getMessage().setBody(order);
    }

    private void count(Exchange exchange) {
        length += exchange.getMessage().getBody(String.class).length();
    }
}
