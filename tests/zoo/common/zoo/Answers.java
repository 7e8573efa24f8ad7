package zoo;

import java.util.Map;
import java.util.TreeMap;

/** What the zoo's HTTP servers answer: enough work to be seen beside the server's own. */
public final class Answers {
    private static final int NUMBERS = 300;

    private Answers() {}

    /** The text for a number, the same in the server and in the client that checks it. */
    public static String of(int n) {
        Map<String, Integer> counts = new TreeMap<>();
        for (int i = 0; i < NUMBERS; i++) {
            counts.merge(key(n, i), 1, Integer::sum);
        }
        StringBuilder text = new StringBuilder("{");
        counts.forEach((key, count) -> text.append('"').append(key).append("\":").append(count).append(','));
        return text.append("\"n\":").append(n).append('}').toString();
    }

    private static String key(int n, int i) {
        return "k" + (n * 31 + i * i) % 17;
    }
}
