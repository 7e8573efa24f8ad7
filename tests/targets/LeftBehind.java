/** What another version's agent has left in this JVM is loaded; the rest is Counting. */
class LeftBehind {
    public static void main(String[] args) throws Exception {
        Class.forName("java.lang.HeadwaterV1");
        Counting.main(args);
    }
}
