import java.util.function.IntUnaryOperator;

/** What it says depends on constants that are linked when it runs, and on a handler. */
final class Said {
    static String said(int asked) {
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
