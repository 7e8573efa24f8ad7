import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Constructor;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/** Calls its methods by reflection only, and counts them. Commands on standard input: go, quit. */
public class Reflecting {
    static long result;
    static String suffix = "";

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        // Outside the root: the same methods, not to be counted.
        result += (Integer) method(Targets.class, "counted", int.class).invoke(null, 1);
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            Counter.begin();
            root();
            Counter.end();
            result += (Integer) method(Targets.class, "counted", int.class).invoke(null, 1);
        }
        Counter.print();
    }

    static void root() throws Exception {
        Counter.hit("Reflecting.root()V");
        // More often than the old reflection's native accessor is used.
        Method counted = method(Targets.class, "counted", int.class);
        for (int i = 0; i < 40; i++) {
            result += (Integer) counted.invoke(null, i);
            result += (Integer) method(Targets.class, "fresh").invoke(null);
        }
        Constructor<?> constructor = Made.class.getDeclaredConstructor(int.class);
        for (int i = 0; i < 40; i++) {
            Object made = constructor.newInstance(i);
            result += (Integer) method(Base.class, "overridden").invoke(made);
            result += (Integer) method(Does.class, "doesByDefault").invoke(made);
            result += (Integer) method(Made.class, "hidden").invoke(made);
        }
        Object plain = Class.forName("Reflecting$Lazy" + suffix).getDeclaredConstructor().newInstance();
        result += plain.hashCode() == 0 ? 1 : 0;
        Object old = Class.forName("Reflecting$Old" + suffix).newInstance();
        result += old.hashCode() == 0 ? 1 : 0;
        try {
            method(Targets.class, "failing").invoke(null);
        } catch (InvocationTargetException e) {
            result++;
        }
        // Reflection of the reflection.
        method(Method.class, "invoke", Object.class, Object[].class)
                .invoke(method(Targets.class, "indirect"), null, new Object[0]);
        Does proxy = (Does) Proxy.newProxyInstance(
                Reflecting.class.getClassLoader(), new Class<?>[] {Does.class}, new Handler());
        result += proxy.does();
    }

    static Method method(Class<?> owner, String name, Class<?>... parameters) throws Exception {
        Method method = owner.getDeclaredMethod(name, parameters);
        method.setAccessible(true);
        return method;
    }

    static class Targets {
        static int counted(int n) {
            Counter.hit("Reflecting$Targets.counted(I)I");
            return below(n);
        }

        static int below(int n) {
            Counter.hit("Reflecting$Targets.below(I)I");
            return n;
        }

        static int fresh() {
            Counter.hit("Reflecting$Targets.fresh()I");
            return 1;
        }

        static void failing() {
            Counter.hit("Reflecting$Targets.failing()V");
            throw new IllegalStateException();
        }

        static void indirect() {
            Counter.hit("Reflecting$Targets.indirect()V");
        }
    }

    interface Does {
        default int doesByDefault() {
            Counter.hit("Reflecting$Does.doesByDefault()I");
            return 1;
        }

        int does();
    }

    abstract static class Base {
        abstract int overridden();
    }

    static class Made extends Base implements Does {
        final int number;

        Made(int number) {
            Counter.hit("Reflecting$Made.<init>(I)V");
            this.number = number;
        }

        @Override
        int overridden() {
            Counter.hit("Reflecting$Made.overridden()I");
            return number;
        }

        private int hidden() {
            Counter.hit("Reflecting$Made.hidden()I");
            return number;
        }

        @Override
        public int does() {
            Counter.hit("Reflecting$Made.does()I");
            return 2;
        }
    }

    static class Lazy {
        static int made = first();

        static int first() {
            Counter.hit("Reflecting$Lazy.first()I");
            return 1;
        }

        Lazy() {
            Counter.hit("Reflecting$Lazy.<init>()V");
        }
    }

    static class Old {
        Old() {
            Counter.hit("Reflecting$Old.<init>()V");
        }
    }

    static class Handler implements InvocationHandler {
        @Override
        public Object invoke(Object proxy, Method method, Object[] arguments) throws Exception {
            Counter.hit("Reflecting$Handler.invoke(Ljava/lang/Object;Ljava/lang/reflect/Method;[Ljava/lang/Object;)Ljava/lang/Object;");
            return method.invoke(new Made(3));
        }
    }
}
