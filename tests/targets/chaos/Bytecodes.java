/** The code of all loaded classes, as JVMTI's GetBytecodes has it: bytecodes.c. */
final class Bytecodes {
    private Bytecodes() {}

    /** Remembers the code of all classes that are loaded; how many. */
    static native int baseline();

    /** How many of them have other code now, and the signature of one. */
    static native String changed();
}
