import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;

/**
 * Calls methods so small that code that has inlined them shows no trace of them, by reflection and by their names. All of that is compiled before
 * somebody comes, and before it calls its root. Commands on standard input: go, quit.
 */
public class Accessors {
    static final class Order {
        private final int id;

        Order(int id) {
            this.id = id;
        }

        int id() {
            return id;
        }
    }

    static final Method ID;
    static final Constructor<?> MAKE;
    static long sum;

    static {
        try {
            ID = Order.class.getDeclaredMethod("id");
            MAKE = Order.class.getDeclaredConstructor(int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        warm();
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            warm();
            sum = 0;
            root(21);
            System.out.println("SUM " + sum);
        }
    }

    static void warm() throws Exception {
        for (int i = 0; i < 20_000; i++) {
            sum += id(made(i));
        }
    }

    static void root(int number) throws Exception {
        sum += id(made(number)) + new Order(number).id();
    }

    static int id(Object order) throws ReflectiveOperationException {
        return (int) ID.invoke(order);
    }

    static Object made(int id) throws ReflectiveOperationException {
        return MAKE.newInstance(id);
    }
}
