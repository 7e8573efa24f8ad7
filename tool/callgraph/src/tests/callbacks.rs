//! What only code outside the filter calls.

use super::*;

#[test]
fn what_the_jdk_calls_back_is_found_by_the_types_it_is_given() {
    let source = "
        class Main {
            static void root(Object[] words) { java.util.Arrays.sort(words, new ByLength()); }
        }
        class ByLength implements java.util.Comparator<Object> {
            public int compare(Object a, Object b) { return 0; }
            void unrelated() {}
        }
        class Unused { public void run() {} }
    ";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main", "ByLength", "Unused"]);
    jvm.enter("Main.root([Ljava/lang/Object;)V");
    assert_eq!(
        jvm.instrumented(),
        [
            "ByLength.<init>()V",
            "ByLength.compare(Ljava/lang/Object;Ljava/lang/Object;)I",
            "Main.root([Ljava/lang/Object;)V"
        ]
    );
}

#[test]
fn what_is_passed_on_as_an_object_may_leave_by_who_does_not_know_it() {
    let source = "
        class Main {
            static int root(Key key, Word word) { return Basket.keep(key) + Basket.count(word); }
        }
        class Basket {
            static java.util.Set<Object> all;
            static int keep(Object it) { return 1; }
            static int count(Word word) { return 2; }
        }
        class Key { public int hashCode() { return 1; } }
        class Word { static int held(Word it) { return Basket.count(it); } public int hashCode() { return 1; } }";
    let attached = |root: &str| PlayedJvm::new(source, options(root)).attach(&["Main", "Basket", "Key", "Word"]);
    let mut jvm = attached("Main::root");
    jvm.enter("Main.root(LKey;LWord;)I");
    assert!(jvm.instrumented().contains(&"Key.hashCode()I"), "{:?}", jvm.instrumented());
    let mut jvm = attached("Word::held");
    jvm.enter("Word.held(LWord;)I");
    assert!(!jvm.instrumented().contains(&"Word.hashCode()I"), "who gets it knows it: {:?}", jvm.instrumented());
}

#[test]
fn what_takes_nothing_along_exposes_nothing() {
    let source = "
        class Main {
            static void check(Key key, int at) {
                if (at < 0) throw new IllegalArgumentException(\"negative: \" + at);
                Runnable later = () -> key.touch();
                try { key.touch(); } catch (Throwable e) { e.addSuppressed(null); }
            }
            static String name(Key key) { return \"key \" + key; }
            static void store(Key key) { new Thread(key); }
            static void reference(Key key) { java.util.function.Consumer<Thread> later = Thread::start; }
        }
        class Key extends Thread {
            Key() { super(\"key\"); }
            void touch() {}
            public int hashCode() { return 1; }
        }";
    let exposes = |root: &str, entered: &str| {
        let mut jvm = PlayedJvm::new(source, options(root));
        jvm.add_jdk_class("java/lang/Thread", Some("java/lang/Object"), false, &["<init>()V", "start()V"]);
        let mut jvm = jvm.attach(&["Main", "Key"]);
        jvm.enter(entered);
        jvm.instrumented.contains("Key.hashCode()I")
    };
    assert!(!exposes("Main::check", "Main.check(LKey;I)V"), "numbers, a lambda's captured key, and exceptions");
    assert!(exposes("Main::name", "Main.name(LKey;)Ljava/lang/String;"), "the string is made by calls of the key");
    assert!(exposes("Main::store", "Main.store(LKey;)V"), "a constructor is given it");
    assert!(exposes("Key::<init>", "Key.<init>()V"), "a superclass's constructor is: the key itself");
    assert!(exposes("Main::reference", "Main.reference(LKey;)V"), "a method outside, by reference");
}

#[test]
fn what_a_superclass_of_the_jdk_implements_calls_back() {
    let source = "
        class Main {
            static int root(Texted it) { return it.hash() + other(it).length(); }
            static String other(Texted it) { return it.toString(); }
        }
        interface Texted { int hash(); String toString(); }
        class Key implements Texted { public int hash() { return 1; } public int hashCode() { return 2; } }
        class Told implements Texted {
            public int hash() { return 1; } public int hashCode() { return 2; } public String toString() { return \"\"; }
        }";
    let text = "Main.other(LTexted;)Ljava/lang/String;";
    let entered = |options: Options, loaded: &[&str]| {
        let mut jvm = PlayedJvm::new(source, options).attach(loaded);
        jvm.enter("Main.root(LTexted;)I");
        if jvm.instrumented.contains(text) {
            jvm.enter(text);
        }
        jvm
    };
    // `Object.toString` calls `hashCode`.
    let hash = |jvm: &PlayedJvm, class: &str| jvm.instrumented.contains(&format!("{class}.hashCode()I"));
    let jvm = entered(options("Main::root"), &["Main", "Texted", "Key"]);
    assert!(hash(&jvm, "Key"));
    let hiding = Options { exclude: vec!["Main::other".parse().expect("a pattern")], ..options("Main::root") };
    for options in [options("Main::root"), hiding] {
        let mut jvm = entered(options, &["Main", "Texted", "Told"]);
        assert!(!hash(&jvm, "Told"), "its own is run");
        jvm.load("Key");
        assert!(hash(&jvm, "Key"), "but a class has come that inherits it");
    }
}

#[test]
fn what_a_method_returns_to_a_handle_leaves_although_it_was_called_before() {
    let source = "
        class Main {
            static void root() { make(); later(); }
            static Key make() { return new Key(); }
            static java.util.function.Supplier<Key> later() { return Main::make; }
        }
        class Key { public int hashCode() { return 1; } }";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main", "Key"]);
    jvm.enter("Main.root()V");
    jvm.enter("Main.make()LKey;");
    assert!(!jvm.instrumented.contains("Key.hashCode()I"));
    jvm.enter("Main.later()Ljava/util/function/Supplier;");
    assert!(jvm.instrumented.contains("Key.hashCode()I"), "who has the reference gets a key");
}
