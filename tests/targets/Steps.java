import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * A root that is left only when it is told to. Commands on standard input: enter (it enters the root, takes three steps
 * and waits there), step (another one), leave, other (another root), quit.
 */
public class Steps {
    static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in));
    static int steps;

    public static void main(String[] args) throws Exception {
        System.out.println("READY");
        for (String line; !(line = next()).equals("quit");) {
            if (line.equals("enter")) {
                root();
                System.out.println("OUTSIDE");
            } else if (line.equals("other")) {
                other();
                System.out.println("OTHER");
            }
        }
        System.out.println("BYE");
    }

    static void root() throws Exception {
        for (int i = 0; i < 3; i++) {
            step();
        }
        inside();
    }

    static void inside() throws Exception {
        System.out.println("INSIDE");
        while (next().equals("step")) {
            step();
            System.out.println("STEP");
        }
    }

    static void step() {
        steps++;
    }

    static void other() {
        step();
    }

    private static String next() throws Exception {
        String line = IN.readLine();
        return line == null ? "quit" : line;
    }
}
