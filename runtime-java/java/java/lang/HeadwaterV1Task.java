package java.lang;

/** What a thread does that was handed to it: the innermost such, and those around it. */
final class HeadwaterV1Task {
    final Object task;
    /** What it did meanwhile before: {@code null} for the thread's own work. */
    final HeadwaterV1Task outer;
    /** Whether that was handed over in the call graph. */
    final boolean outerHanded;

    HeadwaterV1Task(Object task, HeadwaterV1Thread thread) {
        this.task = task;
        this.outer = thread.task;
        this.outerHanded = thread.handed;
    }
}
