/** What is redefined while the program runs. */
final class Hot {
    int answer(int asked) {
        return asked;
    }
}
