import com.sun.tools.attach.VirtualMachine;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.instrument.ClassDefinition;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * A program and, in the same JVM, another agent:
 *
 * <pre>
 *   call           what Hot answers
 *   said           what Said says
 *   redefine FILE  gives the class of the file's name the code of that class file; says if the JVM refuses it
 *   attach JAR     has the agent loaded once more: behind others that came meanwhile
 *   shown          gives Hot the code that a transformer is shown of it
 *   retransform    has Hot, and the program's own class, retransformed into what they are
 *   names          the names of the parameters of Hot's method
 *   lock           transformers take a lock from now on
 *   held ROUND     calls a method for the first time while it has that lock, for which another thread waits in a
 *                  transformer, called for the same reason; what it returns
 * </pre>
 */
public final class Others {
    private static final Object LOCK = new Object();
    private static final Class<?>[] CALLED = {
        First.class, Second.class, Third.class, Fourth.class, Fifth.class, Sixth.class,
    };
    private static Instrumentation instrumentation;

    public static void premain(String arguments, Instrumentation given) {
        instrumentation = given;
    }

    public static void agentmain(String arguments, Instrumentation given) {
        instrumentation = given;
    }

    public static void main(String[] arguments) throws Exception {
        System.out.println("READY");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] words = line.split(" ");
            System.out.println("RESULT " + told(words[0], words[words.length - 1]));
        }
    }

    private static Object told(String command, String operand) throws Exception {
        switch (command) {
            case "call":
                return call();
            case "said":
                return said();
            case "redefine":
                return redefine(operand);
            case "attach":
                VirtualMachine jvm = VirtualMachine.attach(String.valueOf(ProcessHandle.current().pid()));
                jvm.loadAgent(operand);
                jvm.detach();
                return "attached";
            case "shown":
                return shown();
            case "retransform":
                instrumentation.retransformClasses(Hot.class, Others.class);
                return "";
            case "names":
                return Hot.class.getDeclaredMethod("answer", int.class).getParameters()[0];
            case "lock":
                lock();
                return "";
            case "held":
                return held(Integer.parseInt(operand));
            default:
                throw new IllegalArgumentException(command);
        }
    }

    static int call() {
        return new Hot().answer(1);
    }

    static String said() {
        return Said.said(1);
    }

    private static String redefine(String file) throws Exception {
        Path path = Path.of(file);
        byte[] bytes = Files.readAllBytes(path);
        Class<?> type = Class.forName(path.getFileName().toString().replace(".class", ""));
        try {
            instrumentation.redefineClasses(new ClassDefinition(type, bytes));
            return "redefined";
        } catch (UnsupportedOperationException refused) {
            return "refused";
        }
    }

    private static String shown() throws Exception {
        byte[][] shown = new byte[1][];
        ClassFileTransformer looking = new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader in, String name, Class<?> type, ProtectionDomain by, byte[] bytes) {
                if (type == Hot.class) {
                    shown[0] = bytes;
                }
                return null;
            }
        };
        instrumentation.addTransformer(looking, true);
        instrumentation.retransformClasses(Hot.class);
        instrumentation.removeTransformer(looking);
        instrumentation.redefineClasses(new ClassDefinition(Hot.class, shown[0]));
        return "redefined";
    }

    private static void lock() throws Exception {
        // They are to be changed later, not when they are loaded.
        for (Class<?> type : CALLED) {
            Class.forName(type.getName());
        }
        instrumentation.addTransformer(new Locking(), true);
    }

    private static int held(int round) throws Exception {
        synchronized (LOCK) {
            Locking.entered = new CountDownLatch(1);
            Thread other = new Thread(() -> {
                outside(round);
                Locking.entered.countDown();
            });
            other.start();
            Locking.entered.await();
            return inside(round);
        }
    }

    static int inside(int round) {
        return called(CALLED[2 * round - 1]);
    }

    static int outside(int round) {
        return called(CALLED[2 * round - 2]);
    }

    /** By reflection: nobody knows before what will be called. */
    private static int called(Class<?> type) {
        try {
            return (int) type.getDeclaredMethod("one").invoke(null);
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** Changes nothing, but has to wait for whoever has the lock. */
    private static final class Locking implements ClassFileTransformer {
        static volatile CountDownLatch entered = new CountDownLatch(0);

        @Override
        public byte[] transform(ClassLoader loader, String name, Class<?> type, ProtectionDomain domain, byte[] bytes) {
            if (type != null && List.of(CALLED).contains(type)) {
                entered.countDown();
                synchronized (LOCK) {
                    return null;
                }
            }
            return null;
        }
    }
}

final class First {
    static int one() {
        return 1;
    }
}

final class Second {
    static int one() {
        return 1;
    }
}

final class Third {
    static int one() {
        return 1;
    }
}

final class Fourth {
    static int one() {
        return 1;
    }
}

final class Fifth {
    static int one() {
        return 1;
    }
}

final class Sixth {
    static int one() {
        return 1;
    }
}
