import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Has native code call its methods, and counts them. Commands on standard input: go, quit. */
public class Jni {
    static int result;

    public static void main(String[] args) throws Exception {
        System.loadLibrary("jni");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            Counter.begin();
            root();
            Counter.end();
        }
        Counter.print();
    }

    static void root() {
        Counter.hit("Jni.root()V");
        for (int i = 0; i < 3; i++) {
            work();
        }
    }

    static native int each(Runnable job, int times);

    static void work() {
        Counter.hit("Jni.work()V");
        hit();
        result += each(new Job(5), 4);
        hit();
        result += each(() -> leaf(), 2);
        try {
            hit();
            each(new Job(0), 3);
        } catch (IllegalStateException e) {
            result++;
        }
    }

    static void hit() {
        Counter.hit("Jni.each(Ljava/lang/Runnable;I)I");
    }

    static void leaf() {
        Counter.hit("Jni.leaf()V");
    }

    static class Job implements Runnable {
        int left;

        Job(int left) {
            this.left = left;
        }

        @Override
        public void run() {
            Counter.hit("Jni$Job.run()V");
            leaf();
            if (left-- == 0) {
                throw new IllegalStateException();
            }
        }
    }
}
