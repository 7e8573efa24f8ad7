import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * A program with very many of something: classes, loaders of one class name, methods, lambdas, threads. They are all there before it says that it is
 * ready, or each call of its root makes some more.
 */
public class Scale {
    /** What the root calls. */
    public interface Part {
        int step(int x);
    }

    /** Each loader has its own. */
    public static class Plugin implements Part {
        @Override
        public int step(int x) {
            return Helper.help(x);
        }
    }

    /** Each loader has its own, which is loaded when it is first needed. */
    public static class Helper {
        static int help(int x) {
            return x + 1;
        }
    }

    /** Ten lambdas; each copy of this class has ten more. */
    public static class Lambdas {
        public static Part[] make() {
            return new Part[] {
                x -> x + 1, x -> x + 2, x -> x + 3, x -> x + 4, x -> x + 5,
                x -> x + 6, x -> x + 7, x -> x + 8, x -> x + 9, x -> x * 2
            };
        }
    }

    /** Defines what it is given. */
    static class Loader extends ClassLoader {
        private final String own;
        private final byte[] bytes;

        Loader(String own, byte[] bytes) {
            super(Scale.class.getClassLoader());
            this.own = own;
            this.bytes = bytes;
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                if (loaded != null) {
                    return loaded;
                }
                if (name.equals(own)) {
                    return define(name, bytes);
                }
                if (own.equals("Scale$Plugin") && name.equals("Scale$Helper")) {
                    return define(name, helper);
                }
                return super.loadClass(name, resolve);
            }
        }

        Class<?> define(String name, byte[] bytes) {
            return defineClass(name, bytes, 0, bytes.length);
        }
    }

    static final int METHODS = 100;
    /** So many more with each call of the root. */
    static final int MORE = 100;

    static byte[] plugin;
    static byte[] helper;
    static byte[] lambdas;
    static final Loader ONE = new Loader("", new byte[0]);
    static String dimension;
    static int made;
    static Part[] parts = {};

    static int root(int x) {
        int sum = 0;
        for (Part part : parts) {
            sum += part.step(x);
        }
        return sum;
    }

    /** What a thread does. */
    static int work(int x) {
        return x + 1;
    }

    static int rootOfThread(int x) {
        return work(x);
    }

    /** Makes so many. */
    static Part[] make(int count) throws Exception {
        List<Part> more = new ArrayList<>();
        int end = made + count;
        while (made < end) {
            switch (dimension) {
                case "classes":
                    more.add((Part) instance(ONE.define("K" + made, classFile("K" + made, 1))));
                    made++;
                    break;
                case "methods":
                    more.add((Part) instance(ONE.define("K" + made, classFile("K" + made, METHODS))));
                    made += METHODS;
                    break;
                case "loaders":
                    more.add((Part) instance(new Loader("Scale$Plugin", plugin).loadClass("Scale$Plugin")));
                    made++;
                    break;
                case "lambdas":
                    String name = String.format("Scale$L%06d", made / 10);
                    byte[] bytes = renamed(lambdas, "Scale$Lambdas", name);
                    for (Part part : (Part[]) new Loader(name, bytes).loadClass(name).getMethod("make").invoke(null)) {
                        more.add(part);
                    }
                    made += 10;
                    break;
                default:
                    throw new IllegalArgumentException(dimension);
            }
        }
        return more.toArray(new Part[0]);
    }

    /** So many, each of a class of its own: of one loader, and of as many loaders. */
    static Part[] parts(int classes, int loaders) throws Exception {
        plugin = read("Scale$Plugin");
        helper = read("Scale$Helper");
        Part[] parts = new Part[classes + loaders];
        dimension = "classes";
        System.arraycopy(make(classes), 0, parts, 0, classes);
        dimension = "loaders";
        System.arraycopy(make(loaders), 0, parts, classes, loaders);
        return parts;
    }

    static Object instance(Class<?> type) throws Exception {
        return type.getDeclaredConstructor().newInstance();
    }

    static void threads(int count, boolean standing) throws Exception {
        CountDownLatch begun = new CountDownLatch(count);
        Runnable standingThread = () -> {
            begun.countDown();
            for (int i = 0;; i++) {
                rootOfThread(i);
                sleep(200);
            }
        };
        if (standing) {
            for (int i = 0; i < count; i++) {
                start(standingThread);
            }
            begun.await();
            System.out.println("READY");
            sleep(Long.MAX_VALUE);
        }
        System.out.println("READY");
        for (int round = 0;; round++) {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < MORE; i++) {
                threads.add(start(() -> rootOfThread(1)));
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
    }

    static Thread start(Runnable work) {
        Thread thread = new Thread(null, work, "worker", 1 << 17);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    static void sleep(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws Exception {
        dimension = args[0];
        boolean standing = args[1].equals("standing");
        int count = Integer.parseInt(args[2]);
        plugin = read("Scale$Plugin");
        helper = read("Scale$Helper");
        lambdas = read("Scale$Lambdas");
        if (dimension.equals("threads")) {
            threads(count, standing);
        }
        parts = make(standing ? count : MORE);
        int sum = 0;
        for (int i = 0; i < 300; i++) {
            sum += root(i);
        }
        System.out.println("READY");
        while (sum != 1) {
            if (!standing && made < count) {
                parts = make(MORE);
            }
            sum += root(1);
        }
    }

    static byte[] read(String name) throws IOException {
        try (InputStream in = Scale.class.getResourceAsStream("/" + name + ".class")) {
            return in.readAllBytes();
        }
    }

    /** A copy of a class file in which one text stands for another of the same length. */
    static byte[] renamed(byte[] bytes, String from, String to) {
        byte[] renamed = bytes.clone();
        byte[] before = from.getBytes();
        byte[] after = to.getBytes();
        for (int at = 0; at + before.length <= bytes.length; at++) {
            int same = 0;
            while (same < before.length && bytes[at + same] == before[same]) {
                same++;
            }
            if (same == before.length) {
                System.arraycopy(after, 0, renamed, at, after.length);
            }
        }
        return renamed;
    }

    /** A class that implements {@link Part}: its {@code step} calls so many methods of its own. */
    static byte[] classFile(String name, int methods) throws IOException {
        ByteArrayOutputStream pool = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(pool);
        // 1 this, 3 Object, 5 Part, 7 <init>, 8 ()V, 9 Code, 10 step, 11 (I)I, 12 <init>()V, 13 Object.<init>; then three for each method.
        type(out, 2, name);
        type(out, 4, "java/lang/Object");
        type(out, 6, "Scale$Part");
        for (String text : new String[] {"<init>", "()V", "Code", "step", "(I)I"}) {
            out.writeByte(1);
            out.writeUTF(text);
        }
        pair(out, 12, 7, 8);
        pair(out, 10, 3, 12);
        for (int i = 0; i < methods; i++) {
            int first = 14 + 3 * i;
            out.writeByte(1);
            out.writeUTF(name + "m" + i);
            pair(out, 12, first, 11);
            pair(out, 10, 1, first + 1);
        }
        ByteArrayOutputStream file = new ByteArrayOutputStream();
        out = new DataOutputStream(file);
        out.writeInt(0xCAFEBABE);
        out.writeInt(49);
        out.writeShort(14 + 3 * methods);
        pool.writeTo(out);
        for (int word : new int[] {0x21, 1, 3, 1, 5, 0, 2 + methods}) {
            out.writeShort(word);
        }
        method(out, 1, 7, 8, new byte[] {0x2a, (byte) 0xb7, 0, 13, (byte) 0xb1});
        ByteArrayOutputStream step = new ByteArrayOutputStream();
        step.write(0x1b);
        for (int i = 0; i < methods; i++) {
            int called = 14 + 3 * i + 2;
            step.write(0xb8);
            step.write(called >> 8);
            step.write(called);
        }
        step.write(0xac);
        method(out, 1, 10, 11, step.toByteArray());
        for (int i = 0; i < methods; i++) {
            method(out, 9, 14 + 3 * i, 11, new byte[] {0x1a, 0x04, 0x60, (byte) 0xac});
        }
        out.writeShort(0);
        return file.toByteArray();
    }

    private static void type(DataOutputStream out, int text, String name) throws IOException {
        out.writeByte(7);
        out.writeShort(text);
        out.writeByte(1);
        out.writeUTF(name);
    }

    private static void pair(DataOutputStream out, int tag, int one, int other) throws IOException {
        out.writeByte(tag);
        out.writeShort(one);
        out.writeShort(other);
    }

    private static void method(DataOutputStream out, int access, int name, int type, byte[] code) throws IOException {
        for (int word : new int[] {access, name, type, 1, 9}) {
            out.writeShort(word);
        }
        out.writeInt(12 + code.length);
        out.writeShort(2);
        out.writeShort(2);
        out.writeInt(code.length);
        out.write(code);
        out.writeInt(0);
    }
}
