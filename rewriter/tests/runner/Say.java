/** What fixtures call to show what they do. */
public class Say {
    public static void print(int n) {
        System.out.println("int " + n);
    }

    public static void print(long n) {
        System.out.println("long " + n);
    }

    public static void print(double n) {
        System.out.println("double " + n);
    }

    public static void print(Object object) {
        System.out.println("object " + (object instanceof Throwable || object instanceof String ? object : kind(object)));
    }

    private static String kind(Object object) {
        return object == null ? "null" : object.getClass().getName();
    }

    /** Throws when it is given a negative number. */
    public static int check(int n) {
        if (n < 0) {
            throw new IllegalArgumentException("check " + n);
        }
        return n;
    }

    public static int fail() {
        throw new IllegalStateException("fail");
    }

    public static RuntimeException exception(int n) {
        return new RuntimeException("exception " + n);
    }

    /** Nothing for what is less than 1; for 1 the constant "text". */
    public static String text(int n) {
        return n < 1 ? null : n == 1 ? "text" : "text " + n;
    }

    public static int count(String[] strings) {
        return strings == null ? -1 : strings.length;
    }

    public static int length(String string) {
        return string == null ? -1 : string.length();
    }
}
