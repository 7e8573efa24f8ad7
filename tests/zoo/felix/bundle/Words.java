package felixprogram.bundle;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;

/** Counts words and ranks them. */
public class Words implements Callable<String> {
    private static final int WORDS = 600;

    @Override
    public String call() {
        Map<String, Integer> counts = count();
        return counts.values().stream().mapToInt(Integer::intValue).sum() + " " + ranked(counts).subList(0, 3);
    }

    Map<String, Integer> count() {
        Map<String, Integer> counts = new TreeMap<>();
        for (int i = 0; i < WORDS; i++) {
            counts.merge(word(i), 1, Integer::sum);
        }
        return counts;
    }

    private static String word(int i) {
        return "w" + Integer.toString(i * i % 211, 36);
    }

    List<String> ranked(Map<String, Integer> counts) {
        List<Map.Entry<String, Integer>> entries = new ArrayList<>(counts.entrySet());
        entries.sort(Map.Entry.<String, Integer>comparingByValue(Comparator.reverseOrder()).thenComparing(Map.Entry::getKey));
        List<String> words = new ArrayList<>();
        entries.forEach(entry -> words.add(entry.getKey()));
        return words;
    }
}
