//! What objects that are handed out to the JDK could have called on them, and no loaded class of the JDK can call: it is not instrumented until
//! one comes that can, and then no call is missed.

use headwater_tests::{Jdk, Launched, calls_by_method, profile_while_told};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        what_nothing_can_call_is_not_instrumented,
        what_something_can_call_now_is_counted,
    }
}

/// Hands a subscriber out to the JDK in each call of its root, and, told so, to a publisher, which the JDK has not loaded before.
const SOURCE: &str = "
import java.util.concurrent.*;
class Main {
    public static void main(String[] args) throws Exception {
        int sum = 0;
        for (int i = 0; i < 100; i++) sum += Start.root(0);
        System.out.println(\"READY\");
        for (int c; (c = System.in.read()) >= 0;) {
            if (c == '\\n') continue;
            int how = c - '0';
            Thread thread = new Thread(() -> Start.root(how));
            thread.start();
            thread.join();
            System.out.println(\"RESULT\");
        }
    }
}
class Start {
    static int root(int how) {
        ConcurrentHashMap<Object, Object> map = new ConcurrentHashMap<>();
        Reader reader = new Reader();
        map.put(reader, reader);
        if (how == 1) publish(reader);
        return map.size();
    }
    static void publish(Reader reader) {
        try (SubmissionPublisher<Integer> publisher = new SubmissionPublisher<>(Start::now, 4)) {
            publisher.subscribe(reader);
            publisher.submit(1);
            publisher.submit(2);
        }
    }
    static void now(Runnable task) { task.run(); }
}
class Reader implements Flow.Subscriber<Integer> {
    Flow.Subscription subscription;
    int sum;
    public int hashCode() { return 7; }
    public void onSubscribe(Flow.Subscription it) { subscription = it; it.request(1); }
    public void onNext(Integer it) { add(it); subscription.request(1); }
    public void onError(Throwable it) { sum = 0; }
    public void onComplete() { done(); }
    void add(int it) { sum += it; }
    void done() { if (sum != 3) throw new IllegalStateException(); }
}
";

fn told(jdk: &Jdk, lines: &[&str]) -> Value {
    profile_while_told(Launched::of_text(jdk, SOURCE, &[], &["Main"]), &["--root", "Start::root"], lines)
}

fn what_nothing_can_call_is_not_instrumented(jdk: &Jdk) {
    let report = told(jdk, &["0", "0"]);
    let methods = &report["methods"];
    // The root, the reader's constructor, and its hash.
    let counts = (&methods["called"], &methods["instrumented"]);
    assert_eq!(counts, (&3.into(), &3.into()), "JDK {}: {methods}", jdk.version);
}

fn what_something_can_call_now_is_counted(jdk: &Jdk) {
    let calls = calls_by_method(&told(jdk, &["0", "1", "0", "1"]));
    for (method, expected) in [
        ("Start.root(I)I", 4),
        ("Start.publish(LReader;)V", 2),
        ("Reader.onSubscribe(Ljava/util/concurrent/Flow$Subscription;)V", 2),
        ("Reader.onNext(Ljava/lang/Integer;)V", 4),
        ("Reader.onNext(Ljava/lang/Object;)V", 4),
        ("Reader.add(I)V", 4),
        ("Reader.onComplete()V", 2),
        ("Reader.done()V", 2),
    ] {
        assert_eq!(calls.get(method), Some(&expected), "JDK {}: {method} of {calls:#?}", jdk.version);
    }
    assert!(!calls.contains_key("Reader.onError(Ljava/lang/Throwable;)V"), "JDK {}", jdk.version);
}
