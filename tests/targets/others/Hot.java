import java.util.function.IntUnaryOperator;

/** What is redefined while the program runs. */
final class Hot {
    int answer(int asked) {
        return asked;
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
