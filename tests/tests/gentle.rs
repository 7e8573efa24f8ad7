//! What a profile leaves alone for the program's sake, and that nothing which runs is missing for it.

use headwater_tests::{Jdk, Launched, Profile, calls_by_method, profile_while_told, run_headwater};
use serde_json::Value;

/// Calls of one class each, of the same name as all the others.
const USES: u64 = 300;

headwater_tests::trials! {
    each_jdk {
        what_has_never_run_is_found_when_it_does_and_its_counts_are_marked,
        without_limits_every_call_is_counted,
        of_classes_that_are_made_for_one_use_each_all_is_counted_or_marked,
        a_class_in_whose_code_a_thread_runs_a_loop_is_left_alone_and_named,
        an_open_root_that_calls_without_a_pause_is_not_held_up_for_each_of_them,
    }
}

/// Comparators, each of a class of its own; more than are instrumented before they have run (`callgraph::watched::MOST_IDLE`).
const COMPARATORS: usize = 200;
const MOST_IDLE: usize = 128;
/// How often each is used while the profile is recorded.
const ROUNDS: usize = 15;

/// Sorts by one comparator while it warms up, and, told so, by all of them in turn, a millisecond each: so that some of their calls come after the agent
/// has looked.
fn source() -> String {
    let class = |at| {
        format!(
            "class C{at} implements java.util.Comparator<Object> {{ public int compare(Object a, Object b) {{ return {at}; }} }}\n"
        )
    };
    let classes: String = (0..=COMPARATORS).map(class).collect();
    let all: Vec<String> = (0..=COMPARATORS).map(|at| format!("new C{at}()")).collect();
    format!(
        "class Main {{
             static final java.util.Comparator<?>[] ALL = {{ {} }};
             public static void main(String[] args) throws Exception {{
                 for (int i = 0; i < 1000; i++) root({COMPARATORS});
                 System.out.println(\"READY\");
                 for (int c; (c = System.in.read()) != '\\n' && c >= 0;) {{ }}
                 for (int i = 0; i < {COMPARATORS} * {ROUNDS}; i++) {{ root(i % {COMPARATORS}); Thread.sleep(1); }}
                 System.out.println(\"RESULT\");
                 while (System.in.read() >= 0) {{ }}
             }}
             @SuppressWarnings(\"unchecked\") static void root(int by) {{
                 java.util.Arrays.sort(new Object[] {{ 1, 2 }}, (java.util.Comparator<Object>) ALL[by]);
             }}
         }}
         {classes}",
        all.join(", ")
    )
}

fn sorted(jdk: &Jdk, options: &[&str]) -> Value {
    let options = [&["--root", "Main::root"], options].concat();
    profile_while_told(Launched::of_text(jdk, &source(), &[], &["Main"]), &options, &["go"])
}

fn is_compared(row: &Value) -> bool {
    row["method"].as_str().is_some_and(|method| method.contains(".compare("))
}

fn what_has_never_run_is_found_when_it_does_and_its_counts_are_marked(jdk: &Jdk) {
    let report = sorted(jdk, &["--gentle", "on"]);
    let rows = report["nodes"].as_array().expect("nodes").iter();
    let (marked, exact): (Vec<&Value>, Vec<&Value>) = rows.partition(|row| row["at_least"] == true);
    let of = |rows: &[&Value]| rows.iter().filter(|row| is_compared(row)).count();
    // On a machine that is too busy some are still left over at the end, which is told.
    let late = report["methods"]["late"].as_u64().expect("a number") as usize;
    let left_over = late - marked.len();
    assert_eq!(of(&marked) + of(&exact) + left_over, COMPARATORS, "JDK {}: {late}", jdk.version);
    assert!(late >= COMPARATORS - MOST_IDLE, "JDK {}: {late}", jdk.version);
    for row in exact.iter().filter(|row| is_compared(row)) {
        assert_eq!(row["calls"], ROUNDS, "JDK {}: {row}", jdk.version);
    }
}

fn without_limits_every_call_is_counted(jdk: &Jdk) {
    let report = sorted(jdk, &["--gentle", "off"]);
    let calls = calls_by_method(&report).into_iter().filter(|(method, _)| method.contains(".compare("));
    let calls: Vec<u64> = calls.map(|(_, calls)| calls).collect();
    assert_eq!(calls, [ROUNDS as u64; COMPARATORS], "JDK {}", jdk.version);
    assert_eq!(report["methods"]["late"], 0, "JDK {}", jdk.version);
}

/// Each use has a loader of its own define the class, and forgets both.
const MADE_ANEW: &str = "
class Main {
    static byte[] bytes;
    public static void main(String[] args) throws Exception {
        try (java.io.InputStream file = Main.class.getResourceAsStream(\"Guest.class\")) { bytes = file.readAllBytes(); }
        Class.forName(\"Start\");
        System.out.println(\"READY\");
        for (int c; (c = System.in.read()) >= 0;) {
            if (c == '\\n') System.out.println(\"RESULT \" + Start.root(Integer.getInteger(\"uses\")));
        }
    }
}
class Start {
    static int root(int uses) throws Exception {
        int sum = 0;
        for (int i = 0; i < uses; i++) sum += use(i);
        return sum;
    }
    static int use(int i) throws Exception {
        var constructor = new Loader().loadClass(\"Guest\").getDeclaredConstructor();
        constructor.setAccessible(true);
        return ((java.util.function.IntUnaryOperator) constructor.newInstance()).applyAsInt(i);
    }
}
class Loader extends ClassLoader {
    protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (!name.equals(\"Guest\")) return super.loadClass(name, resolve);
        return defineClass(name, Main.bytes, 0, Main.bytes.length);
    }
}
class Guest implements java.util.function.IntUnaryOperator {
    public int applyAsInt(int i) { return i; }
}
";

fn of_classes_that_are_made_for_one_use_each_all_is_counted_or_marked(jdk: &Jdk) {
    let uses = format!("-Duses={USES}");
    for gentle in ["on", "off"] {
        let target = Launched::of_text(jdk, MADE_ANEW, &[&uses], &["Main"]);
        let report = profile_while_told(target, &["--root", "Start::root", "--gentle", gentle], &["x"]);
        let calls = calls_by_method(&report);
        assert_eq!(calls["Start.use(I)I"], USES, "JDK {}", jdk.version);
        let rows = report["nodes"].as_array().expect("nodes").iter();
        let is_marked = rows.filter(|row| row["method"] == "Guest.applyAsInt(I)I").all(|row| row["at_least"] == true);
        let counted = calls.get("Guest.applyAsInt(I)I").copied().unwrap_or(0);
        let is_told = is_marked && report["methods"]["late"].as_u64() >= Some(USES - counted);
        assert!(counted == USES || gentle == "on" && is_told, "JDK {}: {counted}, {}", jdk.version, report["methods"]);
    }
}

/// A thread that stays in a loop of `Worker.run`, and a root that calls another method of its class.
const LOOPING: &str = "
class Main {
    public static void main(String[] args) throws Exception {
        Thread worker = new Thread(new Worker());
        worker.setDaemon(true);
        worker.start();
        while (Worker.rounds < 1000) Root.root();
        System.out.println(\"READY\");
        for (int c; (c = System.in.read()) >= 0;) {
            if (c == '\\n') System.out.println(\"RESULT \" + Root.root());
        }
    }
}
class Root { static int root() { return Worker.help(1); } }
class Worker implements Runnable {
    static volatile long rounds;
    static int help(int by) { return by + 1; }
    public void run() {
        int[] all = new int[1024];
        for (int next = 1;; rounds++) {
            for (int i = 0; i < all.length; i++) next = next * 33 + (all[i] += next ^ i);
        }
    }
}
";

fn a_class_in_whose_code_a_thread_runs_a_loop_is_left_alone_and_named(jdk: &Jdk) {
    const HELP: &str = "Worker.help(I)I";
    let report = |gentle| {
        let target = Launched::of_text(jdk, LOOPING, &[], &["Main"]);
        profile_while_told(target, &["--root", "Root::root", "--gentle", gentle], &["x"])
    };
    let gentle = report("on");
    let skipped = gentle["methods"]["skipped"].as_array().expect("skipped methods");
    let reasons: Vec<&str> =
        skipped.iter().filter(|it| it["method"] == HELP).filter_map(|it| it["reason"].as_str()).collect();
    assert!(reasons.iter().any(|it| it.starts_with("a thread runs a loop")), "JDK {}: {skipped:?}", jdk.version);
    assert_eq!(calls_by_method(&gentle).get(HELP), None, "JDK {}", jdk.version);
    assert_eq!(calls_by_method(&report("off")).get(HELP), Some(&1), "JDK {}", jdk.version);
    // Nor is the loop's own class changed for a root that is in it.
    let target = Launched::of_text(jdk, LOOPING, &[], &["Main"]);
    let pid = target.pid().to_string();
    for more in [&["-d", "1s"][..], &["-d", "1s", "--await-root"]] {
        let tool = run_headwater(&[&["profile", &pid, "--root", "Worker::help"], more].concat());
        let said = String::from_utf8_lossy(&tool.stderr);
        assert!(tool.status.code() == Some(4) && said.contains("a thread runs a loop in Worker"), "{more:?}: {said}");
    }
    target.quit();
}

/// Nothing but its stack tells that the root is still open; but to look at it before each call would take many times what the calls do.
fn an_open_root_that_calls_without_a_pause_is_not_held_up_for_each_of_them(jdk: &Jdk) {
    const CALLS: u64 = 5_000_000;
    const DENSE: &str = "
        class Main {
            static int sum;
            public static void main(String[] args) throws Exception {
                serve();
                System.out.println(\"RETURNED\");
                while (System.in.read() > 0) { }
            }
            static void serve() throws Exception {
                System.out.println(\"READY\");
                while (System.in.read() != 'g') { }
                for (int i = 0; i < 5_000_000; i++) handle(i);
                System.out.println(\"DONE \" + sum);
            }
            static void handle(int i) { sum += i; }
        }";
    let mut target = Launched::of_text(jdk, DENSE, &[], &["Main"]);
    let profile = Profile::start(&target, &["--root", "Main::serve"]);
    target.say("g");
    let (_, sum) = target.await_line_and_those_before("DONE ");
    assert_eq!(sum, "DONE 1642668640", "JDK {}", jdk.version);
    target.await_line("RETURNED");
    let report = profile.interrupted();
    target.quit_by("q");
    let calls = calls_by_method(&report)["Main.handle(I)V"];
    assert!((1..CALLS / 2).contains(&calls), "JDK {}: {calls}", jdk.version);
    let warnings = report["warnings"].as_array().expect("warnings");
    let says = |warning: &Value| warning.as_str().is_some_and(|text| text.contains("recorded in part"));
    assert!(warnings.iter().any(says), "JDK {}: {warnings:?} {}", jdk.version, report["waits"]);
}
