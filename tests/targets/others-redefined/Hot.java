import java.util.function.IntUnaryOperator;

/** The same class, as it is after a hot swap. */
final class Hot {
    int answer(int asked) {
        return asked + 41;
    }

    /** What it says depends on constants that are linked when it runs, and on a handler. */
    String said(int asked) {
        IntUnaryOperator by = Math::abs;
        try {
            try {
                return "parsed " + Integer.parseInt("none");
            } catch (NumberFormatException expected) {
                return "asked " + by.applyAsInt(asked);
            }
        } catch (RuntimeException other) {
            return "other " + by.applyAsInt(asked);
        }
    }
}
