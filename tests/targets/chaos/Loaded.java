import java.util.function.IntUnaryOperator;

/** Loaded again and again, by a loader of its own each time. */
public final class Loaded implements IntUnaryOperator {
    private final IntUnaryOperator inner = n -> n * 7 + 1;

    @Override
    public int applyAsInt(int n) {
        int sum = 0;
        for (int i = 0; i < 10; i++) {
            sum += inner.applyAsInt(n + i);
        }
        return sum;
    }
}
