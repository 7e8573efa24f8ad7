/** Ends by {@code System.exit}, in the midst of its only call. */
final class Leaving {
    private Leaving() {}

    public static void main(String[] arguments) {
        System.out.println("SUM " + sum(1_000));
        System.exit(0);
    }

    static int sum(int rounds) {
        int sum = 0;
        for (int round = 0; round < rounds; round++) {
            sum += round;
        }
        return sum;
    }
}
