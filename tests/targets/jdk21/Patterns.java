import java.io.BufferedReader;
import java.io.InputStreamReader;

/** Counts what pattern switches run, in the language of JDK 21. Commands on standard input: go, quit. */
public class Patterns {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("READY");
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            Counter.begin();
            long result = root();
            Counter.end();
            System.out.println("RESULT " + result);
        }
        Counter.print();
    }

    static long root() {
        Counter.hit("Patterns.root()J");
        Object[] all = {1, -1, "text", "long enough", new Circle(2), new Square(new Side(3)), new Square(new Side(-3)),
            Color.RED, Color.GREEN, null, new int[] {1}, 2.5, new Named(7), new Named(-7)};
        long sum = 0;
        for (Object one : all) {
            sum += of(one);
        }
        for (Shape shape : new Shape[] {new Circle(1), new Square(new Side(2))}) {
            sum += area(shape);
        }
        for (Color color : Color.values()) {
            sum += number(color);
        }
        return sum + word("one") + word("two") + word("three") + word(null) + deep(new Pair(new Pair(1, "x"), new Circle(4)));
    }

    sealed interface Shape permits Circle, Square {}

    record Circle(int radius) implements Shape {
        public int radius() {
            Counter.hit("Patterns$Circle.radius()I");
            return radius;
        }
    }

    record Side(int length) {
        public int length() {
            Counter.hit("Patterns$Side.length()I");
            return length;
        }
    }

    record Square(Side side) implements Shape {
        public Side side() {
            Counter.hit("Patterns$Square.side()LPatterns$Side;");
            return side;
        }
    }

    record Pair(Object left, Object right) {
        public Object left() {
            Counter.hit("Patterns$Pair.left()Ljava/lang/Object;");
            return left;
        }
    }

    enum Color {
        RED, GREEN, BLUE;

        static {
            Counter.hit("Patterns$Color.<clinit>()V");
        }
    }

    static class Named {
        final int number;

        Named(int number) {
            Counter.hit("Patterns$Named.<init>(I)V");
            this.number = number;
        }

        boolean isPositive() {
            Counter.hit("Patterns$Named.isPositive()Z");
            return number > 0;
        }
    }

    static boolean isLong(String text) {
        Counter.hit("Patterns.isLong(Ljava/lang/String;)Z");
        return text.length() > 5;
    }

    static int of(Object object) {
        Counter.hit("Patterns.of(Ljava/lang/Object;)I");
        return switch (object) {
            case null -> 0;
            case Integer n when n > 0 -> n;
            case Integer n -> -n;
            case String text when isLong(text) -> text.length();
            case String text -> 1;
            case Square(Side(int length)) when length > 0 -> length;
            case Shape shape -> area(shape);
            case Color color -> number(color);
            case int[] numbers -> numbers.length;
            case Named named when named.isPositive() -> named.number;
            default -> 100;
        };
    }

    static int area(Shape shape) {
        Counter.hit("Patterns.area(LPatterns$Shape;)I");
        return switch (shape) {
            case Circle(int radius) -> 3 * radius * radius;
            case Square(Side side) -> side.length() * side.length();
        };
    }

    static int number(Color color) {
        Counter.hit("Patterns.number(LPatterns$Color;)I");
        return switch (color) {
            case RED -> 1;
            case Color other when isGreen(other) -> 2;
            case Color other -> 3;
        };
    }

    static boolean isGreen(Color color) {
        Counter.hit("Patterns.isGreen(LPatterns$Color;)Z");
        return color == Color.GREEN;
    }

    static int word(String word) {
        Counter.hit("Patterns.word(Ljava/lang/String;)I");
        return switch (word) {
            case null -> 0;
            case "one" -> 1;
            case String other when isLong(other + "...") -> 3;
            case String other -> 2;
        };
    }

    static int deep(Object object) {
        Counter.hit("Patterns.deep(Ljava/lang/Object;)I");
        if (object instanceof Pair(Pair(Integer n, String text), Circle(var radius))) {
            return n + text.length() + radius;
        }
        return 0;
    }
}
