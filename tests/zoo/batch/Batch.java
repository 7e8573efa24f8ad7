package batch;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.common.base.Splitter;
import com.google.common.collect.ArrayListMultimap;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.collect.Multimap;
import com.google.common.collect.Ordering;
import com.google.common.hash.Hashing;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.bouncycastle.crypto.digests.SHA3Digest;
import org.bouncycastle.crypto.engines.AESEngine;
import org.bouncycastle.crypto.modes.SICBlockCipher;
import org.bouncycastle.crypto.params.KeyParameter;
import org.bouncycastle.crypto.params.ParametersWithIV;
import org.bouncycastle.util.encoders.Hex;
import zoo.Meter;
import zoo.Zoo;

/** A batch job: reads JSON (Jackson), groups and sorts (Guava), encrypts and signs (Bouncy Castle), writes JSON. */
public class Batch {
    /** A line of the input. */
    public record Entry(int id, String account, long cents, List<String> tags) {}

    /** What becomes of an account. */
    public record Statement(String account, long cents, List<Integer> ids, String digest, String sealed) {}

    private static final int ENTRIES = 1500;

    private final ObjectMapper mapper = new ObjectMapper();
    private final Meter reading = new Meter("read");
    private final String input;
    private long cents;

    public static void main(String[] args) throws Exception {
        Batch batch = new Batch();
        Meter meter = new Meter("step");
        int expected = batch.step();
        Zoo.ready();
        while (true) {
            Zoo.check(meter.time(batch::step) == expected, "another output");
        }
    }

    Batch() throws Exception {
        List<Entry> entries = new ArrayList<>();
        for (int i = 0; i < ENTRIES; i++) {
            entries.add(new Entry(i, "account" + i * 31 % 120, i * 7919L % 10_007, Splitter.on(' ').splitToList("tag" + i % 7 + " of many")));
            cents += i * 7919L % 10_007;
        }
        input = mapper.writeValueAsString(entries);
    }

    int step() throws Exception {
        List<Entry> entries = reading.time(() -> mapper.readValue(input, new TypeReference<List<Entry>>() {}));
        Multimap<String, Entry> byAccount = ArrayListMultimap.create();
        entries.forEach(entry -> byAccount.put(entry.account(), entry));
        ImmutableSortedMap.Builder<String, Statement> statements = ImmutableSortedMap.naturalOrder();
        long sum = 0;
        for (String account : byAccount.keySet()) {
            List<Entry> sorted = Ordering.natural().onResultOf(Entry::cents).reverse().sortedCopy(byAccount.get(account));
            long cents = sorted.stream().mapToLong(Entry::cents).sum();
            byte[] text = (account + sorted).getBytes(StandardCharsets.UTF_8);
            String sealed = Hashing.murmur3_128().hashBytes(seal(text)).toString();
            statements.put(account, new Statement(account, cents, sorted.stream().map(Entry::id).toList(), digest(text), sealed));
            sum += cents;
        }
        Zoo.check(sum == cents, sum + " cents instead of " + cents);
        return mapper.writeValueAsString(statements.build()).hashCode();
    }

    private static String digest(byte[] text) {
        SHA3Digest digest = new SHA3Digest(256);
        digest.update(text, 0, text.length);
        byte[] result = new byte[digest.getDigestSize()];
        digest.doFinal(result, 0);
        return Hex.toHexString(result);
    }

    private static byte[] seal(byte[] text) {
        SICBlockCipher cipher = (SICBlockCipher) SICBlockCipher.newInstance(AESEngine.newInstance());
        cipher.init(true, new ParametersWithIV(new KeyParameter(new byte[16]), new byte[16]));
        byte[] sealed = new byte[text.length];
        cipher.processBytes(text, 0, text.length, sealed, 0);
        return sealed;
    }
}
