package java.lang;

/** A part of the objects that were handed over. */
final class HeadwaterV1Bucket {
    /** The latest. The list never changes: it is replaced. */
    volatile HeadwaterV1Entry first;
}
