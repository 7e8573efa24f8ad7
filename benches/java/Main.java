/** A program of many classes, for the benchmark that generates them; it fills in the root's calls. */
public class Main {
    static long sum;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Integer.parseInt(args[0]); i++) {
            Class.forName("K" + i);
        }
        System.out.println("READY");
        while (true) {
            for (int x = 0; x < 6; x++) {
                root(x);
            }
            Thread.sleep(10);
        }
    }

    static void root(int x) {
        ENTRIES
    }
}
