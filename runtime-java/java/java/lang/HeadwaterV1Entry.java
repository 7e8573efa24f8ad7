package java.lang;

import java.lang.ref.WeakReference;

/** An object that was handed over, in a bucket's list. Itself unchanging. */
final class HeadwaterV1Entry {
    final WeakReference<Object> object;
    final long link;
    /** It will be handed over once more before it is run. */
    final boolean stage;
    final HeadwaterV1Entry next;

    HeadwaterV1Entry(WeakReference<Object> object, long link, boolean stage, HeadwaterV1Entry next) {
        this.object = object;
        this.link = link;
        this.stage = stage;
        this.next = next;
    }
}
