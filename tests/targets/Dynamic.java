import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.security.AccessController;
import java.security.PrivilegedAction;
import java.security.PrivilegedExceptionAction;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/**
 * Counts what invokedynamic runs, in the language of JDK 17, and what comes back through the JDK: privileged actions, proxies, a
 * thread's own run. Commands on standard input: go, quit.
 */
@SuppressWarnings("removal")
public class Dynamic {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            Counter.begin();
            long result = root();
            Counter.end();
            System.out.println("RESULT " + result);
        }
        Counter.print();
    }

    static long root() throws Exception {
        Counter.hit("Dynamic.root()J");
        return lambdas() + references() + strings() + records() + privileged() + proxies() + threads();
    }

    interface Step {
        int step(int n);

        default Step twice() {
            Counter.hit("Dynamic$Step.twice()LDynamic$Step;");
            return n -> step(step(n));
        }
    }

    static int plus(int n) {
        Counter.hit("Dynamic.plus(I)I");
        return n + 1;
    }

    static long lambdas() {
        Counter.hit("Dynamic.lambdas()J");
        int captured = 3;
        Step step = n -> plus(n) + captured;
        Supplier<Supplier<Step>> nested = () -> () -> n -> plus(n);
        long sum = step.twice().step(1) + nested.get().get().step(2);
        Runnable both = (Runnable & java.io.Serializable) () -> plus(0);
        both.run();
        for (int i = 0; i < 4; i++) {
            int own = i;
            sum += new ArrayList<>(List.of(1, 2)).stream().map(n -> plus(n + own)).reduce(0, Integer::sum);
        }
        return sum;
    }

    static class Made {
        final int size;

        Made() {
            this(0);
            Counter.hit("Dynamic$Made.<init>()V");
        }

        Made(int size) {
            Counter.hit("Dynamic$Made.<init>(I)V");
            this.size = size;
        }

        int size() {
            Counter.hit("Dynamic$Made.size()I");
            return size;
        }

        int sum(Made other) {
            Counter.hit("Dynamic$Made.sum(LDynamic$Made;)I");
            return size + other.size;
        }

        class Inner {
            Inner() {
                Counter.hit("Dynamic$Made$Inner.<init>(LDynamic$Made;)V");
            }
        }

        Supplier<Inner> inner() {
            Counter.hit("Dynamic$Made.inner()Ljava/util/function/Supplier;");
            return Inner::new;
        }
    }

    static int all(Integer... numbers) {
        Counter.hit("Dynamic.all([Ljava/lang/Integer;)I");
        return numbers.length;
    }

    static long references() {
        Counter.hit("Dynamic.references()J");
        Supplier<Made> make = Made::new;
        Function<Integer, Made> sized = Made::new;
        IntFunction<Made[]> array = Made[]::new;
        Function<Made, Integer> unbound = Made::size;
        BiFunction<Made, Made, Integer> sum = Made::sum;
        Supplier<Integer> bound = make.get()::size;
        BiFunction<Integer, Integer, Integer> varied = Dynamic::all;
        Made seven = sized.apply(7);
        seven.inner().get();
        return unbound.apply(seven) + sum.apply(seven, make.get()) + bound.get() + varied.apply(1, 2) + array.apply(3).length;
    }

    static class Named {
        final int number;

        Named(int number) {
            this.number = number;
        }

        @Override
        public String toString() {
            Counter.hit("Dynamic$Named.toString()Ljava/lang/String;");
            return "named" + number;
        }

        @Override
        public int hashCode() {
            Counter.hit("Dynamic$Named.hashCode()I");
            return number;
        }

        @Override
        public boolean equals(Object other) {
            Counter.hit("Dynamic$Named.equals(Ljava/lang/Object;)Z");
            return other instanceof Named named && named.number == number;
        }
    }

    static long strings() {
        Counter.hit("Dynamic.strings()J");
        Named one = new Named(1);
        Object two = new Named(2);
        String text = one + ":" + two + 1L + 'c' + null;
        text += one;
        StringBuilder builder = new StringBuilder().append(two).append((Object) one);
        return text.length() + builder.length() + String.format("%s", two).length() + String.join(",", List.of("" + one)).length();
    }

    record Pair(Named name, int number) {
        Pair {
            Counter.hit("Dynamic$Pair.<init>(LDynamic$Named;I)V");
        }
    }

    record Wrapped<T>(T value, List<T> more) {
        public T value() {
            Counter.hit("Dynamic$Wrapped.value()Ljava/lang/Object;");
            return value;
        }
    }

    static long records() {
        Counter.hit("Dynamic.records()J");
        Pair a = new Pair(new Named(1), 2);
        Pair b = new Pair(new Named(1), 2);
        long sum = a.equals(b) ? 1 : 0;
        sum += a.hashCode() - b.hashCode() + a.toString().length();
        sum += new Wrapped<>(a, List.of(b)).toString().length();
        sum += new Wrapped<>(a, List.of(b)).equals(new Wrapped<>(b, List.of(a))) ? 1 : 0;
        return sum + new Wrapped<>(new Named(4), List.of()).hashCode() + new Wrapped<>(a, null).value().number();
    }

    static class Action implements PrivilegedAction<Integer>, PrivilegedExceptionAction<Integer> {
        @Override
        public Integer run() {
            Counter.hit("Dynamic$Action.run()Ljava/lang/Integer;");
            return plus(1);
        }
    }

    static int privileged() throws Exception {
        Counter.hit("Dynamic.privileged()I");
        int sum = AccessController.doPrivileged((PrivilegedAction<Integer>) new Action());
        sum += AccessController.doPrivileged((PrivilegedExceptionAction<Integer>) new Action(), AccessController.getContext());
        return sum + AccessController.doPrivileged((PrivilegedAction<Integer>) () -> plus(5));
    }

    interface Service {
        int serve(int n);

        default int twice(int n) {
            Counter.hit("Dynamic$Service.twice(I)I");
            return serve(serve(n));
        }
    }

    static class Handler implements InvocationHandler {
        @Override
        public Object invoke(Object proxy, Method method, Object[] arguments) {
            Counter.hit("Dynamic$Handler.invoke(Ljava/lang/Object;Ljava/lang/reflect/Method;[Ljava/lang/Object;)Ljava/lang/Object;");
            return method.getName().equals("compare") ? compare((Integer) arguments[0], (Integer) arguments[1]) : 5;
        }

        static int compare(int a, int b) {
            Counter.hit("Dynamic$Handler.compare(II)I");
            return 0;
        }
    }

    static Object proxy(Class<?> of, InvocationHandler handler) {
        return Proxy.newProxyInstance(Dynamic.class.getClassLoader(), new Class<?>[] {of}, handler);
    }

    /** Of an interface of the program's, of one of the JDK's, and with a handler that is a lambda. */
    @SuppressWarnings("unchecked")
    static long proxies() {
        Counter.hit("Dynamic.proxies()J");
        Service service = (Service) proxy(Service.class, new Handler());
        List<Integer> three = Arrays.asList(3, 1, 2);
        Collections.sort(three, (Comparator<Integer>) proxy(Comparator.class, new Handler()));
        Service lambda = (Service) proxy(Service.class, (self, method, arguments) -> plus(2));
        return service.serve(1) + three.get(0) + lambda.serve(1) + service.hashCode();
    }

    static class Task extends Thread {
        final Runnable inner;

        Task(Runnable inner) {
            super(inner);
            this.inner = inner;
        }

        @Override
        public void run() {
            Counter.hit("Dynamic$Task.run()V");
            super.run();
        }
    }

    static class Inner implements Runnable {
        @Override
        public void run() {
            Counter.hit("Dynamic$Inner.run()V");
        }
    }

    /** On this thread. */
    static long threads() {
        Counter.hit("Dynamic.threads()J");
        new Task(new Inner()).run();
        new Thread(new Inner()).run();
        new Thread(() -> plus(1)).run();
        ThreadLocal<Integer> local = ThreadLocal.withInitial(() -> plus(3));
        return local.get();
    }
}
