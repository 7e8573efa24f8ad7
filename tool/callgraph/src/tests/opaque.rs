//! Objects that nobody in the graph names.

use super::*;

const SOURCE: &str = "
    class Main {
        static java.util.Set<Object> all;
        static void root(Object it) { all.add(it); }
        static void stays(int by) { }
    static Object control(String name) throws Exception { return java.sql.DriverManager.getConnection(name); }
    static Object value(String name, Object of) { return of.getClass() == null ? Math.abs(name.length()) : new RuntimeException(name); }
    }
    class Key { public int hashCode() { return 1; } public String toString() { return \"\"; } int other() { return 2; } }
    class Lower extends Key { int other() { return 3; } }
    abstract class Above { public int hashCode() { return 1; } }
    class Below extends Above { public int hashCode() { return 2; } }
    class Host { static Runnable make() { return () -> first(); } static void first() { } static Runnable other() { return () -> second(); }
                 static void second() { } }
    class Host$$Lambda implements Runnable { public void run() { } }
    class Host$$Lambda2 implements Runnable { public void run() { } }
";
const ROOT: &str = "Main.root(Ljava/lang/Object;)V";
const ALL: [&str; 8] = ["Main", "Key", "Lower", "Above", "Below", "Host", "Host$$Lambda", "Host$$Lambda2"];

#[test]
fn once_one_leaves_any_may_be_called() {
    let mut jvm =
        PlayedJvm::new(SOURCE, options("Main::*")).attach(&["Main", "Above", "Below", "Host", "Host$$Lambda"]);
    jvm.enter("Main.stays(I)V");
    jvm.enter("Main.value(Ljava/lang/String;Ljava/lang/Object;)Ljava/lang/Object;");
    assert!(!jvm.instrumented.contains("Below.hashCode()I"), "nothing has left");
    jvm.enter(ROOT);
    for (method, expected) in [
        ("Below.hashCode()I", true),
        ("Above.hashCode()I", false),
        ("Host.lambda$make$0()V", true),
        ("Host.lambda$other$1()V", true),
        ("Host.make()Ljava/lang/Runnable;", false),
    ] {
        assert_eq!(jvm.instrumented.contains(method), expected, "{method}");
    }
    let hotswaps = jvm.hotswaps;
    jvm.load("Lower");
    assert!(
        jvm.instrumented.contains("Key.hashCode()I") && jvm.instrumented.contains("Key.toString()Ljava/lang/String;")
    );
    assert!(!jvm.instrumented.iter().any(|method| method.contains("other()I")), "only the graph could call it");
    assert_eq!(jvm.hotswaps, hotswaps, "they are instrumented while they are loaded");
}

#[test]
fn what_never_ran_is_left_alone_until_the_program_does_new_things() {
    let mut jvm = PlayedJvm::new(SOURCE, ahead());
    jvm.run_before(&["Main.root", "Key.hashCode", "Host.lambda$make$0"]);
    let mut jvm = jvm.attach(&ALL);
    jvm.enter(ROOT);
    let ran = ["Key.hashCode()I", "Host.lambda$make$0()V"];
    let never = ["Key.toString()Ljava/lang/String;", "Below.hashCode()I"];
    assert!(ran.iter().all(|method| jvm.instrumented.contains(*method)), "{:?}", jvm.instrumented);
    assert!(!never.iter().any(|method| jvm.instrumented.contains(*method)), "{:?}", jvm.instrumented);
    assert!(jvm.instrumented.contains("Host.lambda$other$1()V"), "it is not what every object has");
    // It is not as warm as it looked.
    jvm.graph.likely.forget();
    jvm.enter("Key.hashCode()I");
    assert!(never.iter().all(|method| jvm.instrumented.contains(*method)), "{:?}", jvm.instrumented);
}

#[test]
fn who_calls_the_jdk_with_nothing_comes_to_what_it_has() {
    let mut jvm = PlayedJvm::new(SOURCE, options("Main::*")).attach(&["Main", "Above", "Below"]);
    jvm.enter("Main.control(Ljava/lang/String;)Ljava/lang/Object;");
    assert!(jvm.instrumented.contains("Below.hashCode()I"), "a driver, say");
}

#[test]
fn classes_in_whose_code_threads_stay_are_not_changed_because_of_them() {
    let attached = |roots: &str| {
        let mut jvm = PlayedJvm::new(SOURCE, options(roots));
        jvm.running = vec!["Below", "Host"];
        let mut jvm = jvm.attach(&ALL);
        jvm.enter(ROOT);
        jvm
    };
    let jvm = attached("Main::root");
    assert!(jvm.instrumented.contains("Key.hashCode()I"));
    assert!(!jvm.instrumented.iter().any(|method| method.starts_with("Below.") || method.starts_with("Host.")));
    let mut jvm = PlayedJvm::new(
        SOURCE,
        Options {
            roots: vec!["Main::root".parse().expect("a pattern"), "Below::*".parse().expect("a pattern")],
            ..Options::default()
        },
    );
    jvm.running = vec!["Below"];
    let mut jvm = jvm.attach(&ALL);
    jvm.enter(ROOT);
    assert!(jvm.instrumented.contains("Below.hashCode()I"), "it is changed anyway");
}

#[test]
fn what_needs_code_first_is_not_forgotten() {
    let trivial = Options { skip_trivial: true, ..ahead() };
    let mut jvm = PlayedJvm::new(SOURCE, trivial);
    jvm.run_before(&["Main.root", "Host.lambda$make$0"]);
    let mut jvm = jvm.attach(&ALL);
    jvm.enter(ROOT);
    jvm.graph.likely.forget();
    jvm.enter("Host.lambda$make$0()V");
    let selected = |graph: &CallGraph, class: &str| {
        graph.methods.trivial().iter().any(|(key, _)| &*graph.known.mirrors.get(*key).name == class)
    };
    assert!(selected(&jvm.graph, "Below"), "its `hashCode` was looked at: {:?}", jvm.graph.methods.trivial());
}

#[test]
fn what_hundreds_of_classes_have_is_left_alone() {
    let instrumented = |count: usize| {
        let class = |at| format!("class C{at} {{ public int hashCode() {{ return {at}; }} }} ");
        let classes: String = (0..count).map(class).collect();
        let main =
            "class Main { static java.util.Set<Object> all; static void root(Object it) { all.add(it); } }".to_owned();
        let jvm = PlayedJvm::new(&(main + &classes), options("Main::root"));
        let names: Vec<String> = jvm.classes.keys().filter(|name| !name.contains('/')).cloned().collect();
        let mut jvm = jvm.attach(&names.iter().map(String::as_str).collect::<Vec<_>>());
        jvm.enter(ROOT);
        jvm.instrumented.len()
    };
    assert_eq!(instrumented(200), 1 + 200);
    assert_eq!(instrumented(300), 1);
}
