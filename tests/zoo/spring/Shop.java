package shop;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.servlet.context.ServletWebServerApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.web.servlet.HandlerInterceptor;
import org.springframework.web.servlet.config.annotation.InterceptorRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import zoo.Meter;
import zoo.Zoo;

/** A shop as a Spring Boot service: Tomcat, Spring MVC, Spring Data JPA, Hibernate, H2. */
@SpringBootApplication
public class Shop implements WebMvcConfigurer {
    static final int CUSTOMERS = 50;
    static final int ORDERS = 40;
    static final int TOWNS = 7;

    public static void main(String[] args) {
        var context = (ServletWebServerApplicationContext) SpringApplication.run(Shop.class, args);
        Zoo.ready(context.getWebServer().getPort());
    }

    @Bean
    CommandLineRunner fill(Customers customers, Orders orders) {
        return arguments -> {
            for (int c = 0; c < CUSTOMERS; c++) {
                Customer customer = customers.save(new Customer("customer" + c, "town" + c % TOWNS));
                for (int o = 0; o < ORDERS; o++) {
                    orders.save(new Order(customer, o * 3 + c, "item" + o % 13));
                }
            }
        };
    }

    @Override
    public void addInterceptors(InterceptorRegistry registry) {
        registry.addInterceptor(new Dispatched());
    }

    /** Counts what DispatcherServlet.doDispatch handles, and times nearly all of it. */
    static class Dispatched implements HandlerInterceptor {
        private static final String BEGIN = Dispatched.class.getName();

        private final Meter meter = new Meter("dispatch");

        @Override
        public boolean preHandle(HttpServletRequest request, HttpServletResponse response, Object handler) {
            request.setAttribute(BEGIN, meter.begin());
            return true;
        }

        @Override
        public void afterCompletion(HttpServletRequest request, HttpServletResponse response, Object handler, Exception failure) {
            meter.end((Long) request.getAttribute(BEGIN));
        }
    }
}
