import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Calls native methods, and counts these calls. Its own ones have no library: they throw. Commands on standard input: go, quit. */
public class Natives {
    static long result;
    static final int[] FROM = new int[10];
    static final int[] TO = new int[10];

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        new Plain().hashCode();
        new Native().mixed();
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            Counter.begin();
            root();
            Counter.end();
            System.arraycopy(FROM, 0, TO, 0, 10);
        }
        Counter.print();
    }

    static void root() {
        Counter.hit("Natives.root()V");
        for (int i = 0; i < 5; i++) {
            copy();
            missing(i);
            late();
        }
        result += new Derived(3).value;
        result += new Derived("text").value;
        dispatch();
    }

    static void copied() {
        Counter.hit("java.lang.System.arraycopy(Ljava/lang/Object;ILjava/lang/Object;II)V");
    }

    static void copy() {
        Counter.hit("Natives.copy()V");
        for (int i = 0; i < 3; i++) {
            copied();
            System.arraycopy(FROM, 0, TO, 0, 10);
        }
        try {
            copied();
            System.arraycopy(FROM, 0, TO, 5, 10);
        } catch (ArrayIndexOutOfBoundsException e) {
            result++;
        } finally {
            copied();
            System.arraycopy(FROM, 0, TO, 0, 10);
        }
    }

    static native long nothing(long a, Object b, double c);

    static void missing(int n) {
        Counter.hit("Natives.missing(I)V");
        try {
            Counter.hit("Natives.nothing(JLjava/lang/Object;D)J");
            result += n + nothing(n, "", n * 0.5);
        } catch (UnsatisfiedLinkError e) {
            result++;
        }
    }

    static void late() {
        Counter.hit("Natives.late()V");
        try {
            Counter.hit("Natives$Late.nothing()V");
            Late.nothing();
        } catch (UnsatisfiedLinkError e) {
            result++;
        }
    }

    static class Late {
        static native void nothing();
    }

    static class Base {
        final int value;

        Base(int value) {
            Counter.hit("Natives$Base.<init>(I)V");
            this.value = value;
        }
    }

    /** Native calls before the superclass's constructor is called, on ways that join. */
    static class Derived extends Base {
        static int hash(Object object) {
            Counter.hit("java.lang.System.identityHashCode(Ljava/lang/Object;)I");
            return 1;
        }

        Derived(int n) {
            super(n > 2 ? hash("a") + System.identityHashCode("a") : n);
            Counter.hit("Natives$Derived.<init>(I)V");
        }

        Derived(String text) {
            this(text == null ? 0 : hash(text) * 0 + System.identityHashCode(new Plain()) * 0 + 5);
            Counter.hit("Natives$Derived.<init>(Ljava/lang/String;)V");
        }
    }

    static class Plain {}

    static class Native {
        final native int always();

        int mixed() {
            return 0;
        }
    }

    /** Calls of this one's method may run it, or the other. */
    static class Mixed extends Native {
        @Override
        native int mixed();
    }

    static void dispatch() {
        Counter.hit("Natives.dispatch()V");
        Native[] all = {new Native(), new Mixed()};
        for (Native one : all) {
            try {
                Counter.hit("Natives$Native.always()I");
                result += one.always();
            } catch (UnsatisfiedLinkError e) {
                result++;
            }
            try {
                Counter.hit(one instanceof Mixed ? "unseen" : "Natives$Native.mixed()I");
                result += one.mixed();
            } catch (UnsatisfiedLinkError e) {
                result++;
            }
        }
        result += new Plain().getClass().hashCode() == 0 ? 1 : 0;
    }
}
