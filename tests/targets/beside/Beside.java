import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.InputStreamReader;
import java.lang.instrument.Instrumentation;

/**
 * A program in whose JVM other agents are, too. Argument: the library of Bytecodes.
 *
 * <pre>
 *   go N        so many calls of the root: what they return
 *   baseline    the code of all classes is remembered: how many
 *   changed     how many classes have other code than was remembered
 *   buddy on    Byte Buddy counts entries of Work's methods; off: no more
 *   counted     how many it has counted
 *   covered     what JaCoCo knows of Work: the class file's checksum, and which probes were reached
 * </pre>
 */
public final class Beside {
    static Instrumentation instrumentation;

    private Beside() {}

    public static void premain(String arguments, Instrumentation given) {
        instrumentation = given;
    }

    public static void main(String[] arguments) throws Exception {
        System.load(arguments[0]);
        Work.root(1);
        System.out.println("READY");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = commands.readLine()) != null; ) {
            String[] words = line.split(" ");
            System.out.println("RESULT " + told(words[0], words[words.length - 1]));
        }
    }

    private static Object told(String command, String operand) throws Exception {
        switch (command) {
            case "go":
                return go(Integer.parseInt(operand));
            case "baseline":
                return Bytecodes.baseline();
            case "changed":
                return Bytecodes.changed().split(" ")[0];
            case "buddy":
                Buddy.turn(operand, instrumentation);
                return operand;
            case "counted":
                return Buddy.counted;
            case "covered":
                return covered();
            default:
                throw new IllegalArgumentException(command);
        }
    }

    private static long go(int calls) {
        mark();
        long sum = 0;
        for (int call = 0; call < calls; call++) {
            sum = sum * 31 + Work.root(call);
        }
        return sum;
    }

    /** Where debuggers have a breakpoint: nothing else is done to this class. */
    static void mark() {}

    /** JaCoCo's data, without its library: blocks of a kind, of which 1 begins, 16 is a session, and 17 a class. */
    private static String covered() throws Exception {
        Object agent = Class.forName("org.jacoco.agent.rt.RT").getMethod("getAgent").invoke(null);
        byte[] data =
            (byte[]) Class.forName("org.jacoco.agent.rt.IAgent").getMethod("getExecutionData", boolean.class).invoke(agent, false);
        DataInputStream in = new DataInputStream(new ByteArrayInputStream(data));
        while (in.available() > 0) {
            switch (in.readByte()) {
                case 0x01:
                    in.readInt();
                    break;
                case 0x10:
                    in.readUTF();
                    in.readLong();
                    in.readLong();
                    break;
                default:
                    long checksum = in.readLong();
                    String name = in.readUTF();
                    int probes = 0;
                    for (int shift = 0, more = 0x80; more >= 0x80; shift += 7) {
                        more = in.readUnsignedByte();
                        probes |= (more & 0x7f) << shift;
                    }
                    StringBuilder reached = new StringBuilder();
                    for (int at = 0; at < (probes + 7) / 8; at++) {
                        reached.append('-').append(in.readUnsignedByte());
                    }
                    if (name.equals("Work")) {
                        return Long.toHexString(checksum) + reached;
                    }
            }
        }
        return "nothing";
    }
}

/** What is profiled. */
final class Work {
    private Work() {}

    static int root(int x) {
        int sum = 0;
        for (int i = 0; i < 3; i++) {
            sum += step(x + i);
        }
        return sum;
    }

    static int step(int x) {
        return leaf(x) ^ leaf(x + 1);
    }

    static int leaf(int x) {
        int hash = x;
        for (int i = 0; i < 1_000_000; i++) {
            hash = hash * 31 + i;
        }
        return hash;
    }
}
