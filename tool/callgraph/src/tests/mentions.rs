//! What escapes to the JDK, and what of it the JDK's loaded classes can call.

use super::*;

const SOURCE: &str = "
    import java.util.concurrent.Flow;
    class Main {
        static java.util.Set<Object> all;
        static void root(Reader it) { all.add(it); later(it); }
        static void later(Reader it) { Native.each(it); }
    }
    class Reader implements Flow.Subscriber<Object> {
        public void onSubscribe(Flow.Subscription it) { }
        public void onNext(Object it) { }
        public void onError(Throwable it) { failed(); }
        public void onComplete() { }
        static void failed() { }
    }
    class Native { static native void each(Flow.Subscriber<Object> it); }
    class Publisher { static void end(Flow.Subscriber<Object> it) { it.onError(null); } }
    class Reflecting { static String name() { return \"onError\"; } }
";
const SUBSCRIBER: &str = "java/util/concurrent/Flow$Subscriber";
const ROOT: &str = "Main.root(LReader;)V";
const NEXT: &str = "Reader.onNext(Ljava/lang/Object;)V";
const ERROR: &str = "Reader.onError(Ljava/lang/Throwable;)V";
const COMPLETE: &str = "Reader.onComplete()V";

/// A JVM none of whose JDK classes mentions `onError` yet.
fn reading(options: Options) -> PlayedJvm {
    let mut jvm = PlayedJvm::new(SOURCE, options);
    let methods = ["onNext(Ljava/lang/Object;)V", "onError(Ljava/lang/Throwable;)V", "onComplete()V"];
    jvm.add_jdk_class(SUBSCRIBER, Some("java/lang/Object"), true, &methods);
    for name in ["Publisher", "Reflecting"] {
        jvm.classes.get_mut(name).expect("of the source").loader = LoaderId::BOOT;
    }
    jvm.unmentioned = vec!["onError"];
    jvm
}

#[test]
fn what_never_ran_and_nothing_in_the_jdk_can_call_waits_until_something_can() {
    // One calls it, the other may by reflection.
    for mentioning in ["Publisher", "Reflecting"] {
        let mut jvm = reading(ahead());
        jvm.run_before(&["Main.root", "Reader.onNext"]);
        let mut jvm = jvm.attach(&["Main", "Reader"]);
        jvm.enter(ROOT);
        assert!(jvm.instrumented.contains(NEXT), "it has run");
        assert!(jvm.instrumented.contains(COMPLETE), "a class of the JDK mentions it");
        assert!(!jvm.instrumented.contains(ERROR));
        // A class that mentions it comes.
        let bytes = jvm.classes[mentioning].bytes.clone();
        let by_graph = Occasion::Loading { by_graph: true };
        assert!(jvm.graph.selected(by_graph, LoaderId::BOOT, mentioning, &parsed(&bytes)).is_empty());
        let step = jvm.graph.class_prepared(jvm.info(mentioning));
        jvm.settle(step);
        assert!(jvm.instrumented.contains(ERROR), "before any code of {mentioning} runs");
    }
}

#[test]
fn what_a_class_mentions_that_came_before_we_asked_counts() {
    let mut jvm = reading(ahead());
    jvm.run_before(&["Main.root", "Reader.onNext"]);
    let mut jvm = jvm.attach(&["Main", "Reader"]);
    // It is being loaded when we list what the loaded ones mention.
    let bytes = jvm.classes["Publisher"].bytes.clone();
    let by_graph = Occasion::Loading { by_graph: false };
    assert!(jvm.graph.selected(by_graph, LoaderId::BOOT, "Publisher", &parsed(&bytes)).is_empty());
    jvm.enter(ROOT);
    assert!(jvm.instrumented.contains(ERROR));
}

#[test]
fn nothing_waits_where_nothing_says_that_it_will_not_run() {
    for (before, forbidden) in [
        (&["Reader.onNext"][..], false),
        (&["Main.root", "Reader.onNext", "Reader.onError"], false),
        (&["Main.root", "Reader.onNext"], true),
    ] {
        let mut jvm = reading(ahead());
        jvm.run_before(before);
        if forbidden {
            jvm.graph.forbid_guards();
        }
        let mut jvm = jvm.attach(&["Main", "Reader"]);
        jvm.enter(ROOT);
        assert!(jvm.instrumented.contains(ERROR), "{before:?}");
    }
}

#[test]
fn nothing_waits_where_native_methods_of_the_application_are_given_objects() {
    let attached = |loaded: &[&str]| {
        let mut jvm = reading(ahead());
        jvm.run_before(&["Main.root", "Reader.onNext"]);
        let mut jvm = jvm.attach(loaded);
        jvm.enter(ROOT);
        assert!(!jvm.instrumented.contains(ERROR), "{loaded:?}");
        jvm
    };
    // It is called.
    let mut jvm = attached(&["Main", "Reader", "Native"]);
    let guards = jvm.guards("Main");
    guards.iter().for_each(|guard| jvm.pass(guard.1));
    jvm.enter("Main.later(LReader;)V");
    assert!(jvm.instrumented.contains(ERROR));
    // Its class comes after what calls it was looked at.
    let mut jvm = attached(&["Main", "Reader"]);
    jvm.load("Native");
    assert!(jvm.instrumented.contains(ERROR));
}

#[test]
fn what_can_be_called_now_is_not_forgotten_for_want_of_code() {
    let mut jvm = reading(Options { skip_trivial: true, ..ahead() });
    jvm.run_before(&["Main.root"]);
    let mut jvm = jvm.attach(&["Main", "Reader"]);
    jvm.enter(ROOT);
    assert!(!jvm.instrumented.contains(ERROR));
    let bytes = jvm.classes["Publisher"].bytes.clone();
    jvm.graph.selected(Occasion::Loading { by_graph: true }, LoaderId::BOOT, "Publisher", &parsed(&bytes));
    let step = jvm.graph.class_prepared(jvm.info("Publisher"));
    jvm.settle(step);
    assert!(jvm.instrumented.contains(ERROR), "its code was asked for first");
}
