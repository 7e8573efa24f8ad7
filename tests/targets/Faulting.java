import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Writes to pages that nobody has touched, a known number a call, in one method; and reads the same ones in another. */
public class Faulting {
    static final int PAGE = 4096;
    static int pages;
    static volatile long kept;

    static void root(MappedByteBuffer memory) {
        touch(memory);
        look(memory);
    }

    static void touch(MappedByteBuffer memory) {
        for (int page = 0; page < pages; page++) {
            memory.put(page * PAGE, (byte) 1);
        }
    }

    static void look(MappedByteBuffer memory) {
        long sum = 0;
        for (int page = 0; page < pages; page++) {
            sum += memory.get(page * PAGE);
        }
        kept = sum;
    }

    public static void main(String[] arguments) throws Exception {
        Path file = Path.of(arguments[0]);
        int calls = Integer.parseInt(arguments[1]);
        pages = Integer.parseInt(arguments[2]);
        long bytes = (long) pages * PAGE;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
            MappedByteBuffer[] memory = new MappedByteBuffer[calls];
            for (int call = 0; call < calls; call++) {
                // Each page is copied at the first write to it: one fault, however large the pages of the file are.
                memory[call] = channel.map(FileChannel.MapMode.PRIVATE, call * bytes, bytes);
            }
            System.out.println("READY");
            in.readLine();
            if (arguments.length > 3) {
                Thread thread = virtual(() -> calls(memory));
                thread.join();
            } else {
                calls(memory);
            }
            System.out.println("DONE");
            in.readLine();
        }
    }

    static void calls(MappedByteBuffer[] memory) {
        for (MappedByteBuffer fresh : memory) {
            root(fresh);
        }
    }

    /** Compiled for JDKs that have none, too. */
    static Thread virtual(Runnable work) throws Exception {
        return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, work);
    }
}
