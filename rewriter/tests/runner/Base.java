/** A superclass with many constructors, in the Java of 2002. */
public class Base {
    public String made;
    public int value;

    public Base() {
        made = "nothing";
    }

    /** Throws when it is given a negative number. */
    public Base(int n) {
        made = "int " + Say.check(n);
    }

    public Base(long n) {
        made = "long " + n;
    }

    public Base(Object object) {
        made = "object " + (object == null ? "null" : object.getClass().getName());
    }

    public Base(int a, long b, double c, Object object) {
        made = "int " + a + " long " + b + " double " + c + " object " + object;
    }

    public String toString() {
        return getClass().getName() + " of " + made + ", " + value;
    }
}
