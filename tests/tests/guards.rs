//! Calls behind branches that were never taken: nothing there is instrumented before a thread comes to it, and then every call
//! is counted, the first one too.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Launched, Profile, calls_by_method, profile_while_told};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        every_call_behind_a_branch_that_was_never_taken_is_counted,
        what_lies_behind_it_is_not_instrumented,
        what_has_run_once_is_instrumented_before_it_runs_again,
    }
}

/// Runs its root for each digit that it is told, with that; before, so often with 0 as its argument says.
const SOURCE: &str = "
class Main {
    public static void main(String[] args) throws Exception {
        Class.forName(\"Start\");
        int sum = 0;
        for (int i = 0; i < Integer.parseInt(args[0]); i++) sum += Start.root(0);
        System.out.println(\"READY\");
        for (int c; (c = System.in.read()) >= 0;) {
            if (c == '\\n') continue;
            Thread[] threads = new Thread[c == '9' ? 4 : 1];
            int how = c == '9' ? 1 : c - '0';
            for (int i = 0; i < threads.length; i++) (threads[i] = new Thread(() -> Start.root(how))).start();
            for (Thread thread : threads) thread.join();
            System.out.println(\"RESULT\");
        }
    }
}
class Start {
    static final Shape[] SHAPES = { new Square(), new Odd() };
    static int root(int how) {
        int sum = SHAPES[how > 3 ? 1 : 0].area(how);
        if (how == 1) sum += seldom(how) + (how > 0 ? Elsewhere.other(how) : Elsewhere.never(how));
        if (how == 2) {
            try { check(how); } catch (IllegalStateException e) { sum += caught(e); }
        }
        if (how > 3) sum += new Later(how).value();
        for (int i = 0; i < how; i++) sum += loop(i);
        return sum;
    }
    static int seldom(int x) { return deeper(x); }
    static int deeper(int x) { return x; }
    static void check(int x) { if (x == 2) throw fail(x); }
    static IllegalStateException fail(int x) { return new IllegalStateException(text(x)); }
    static String text(int x) { return \"x\" + x; }
    static int caught(Exception e) { return 1; }
    static int loop(int i) { return i; }
}
class Elsewhere {
    static int other(int x) { return x; }
    static int never(int x) { return x; }
}
class Later {
    final int x;
    Later(int x) { this.x = x; }
    int value() { return x; }
}
interface Shape { int area(int x); }
class Square implements Shape { public int area(int x) { return x; } }
class Odd implements Shape { public int area(int x) { return helper(x); } int helper(int x) { return 2 * x; } }
";

/// What a profile says of these runs of the root, after so many others.
fn runs(jdk: &Jdk, before: &str, digits: &[&str]) -> Value {
    // The compiler is waited for: what was called so often is compiled.
    let target = Launched::of_text(jdk, SOURCE, &["-Xbatch"], &["Main", before]);
    profile_while_told(target, &["--root", "Start::root"], digits)
}

fn every_call_behind_a_branch_that_was_never_taken_is_counted(jdk: &Jdk) {
    let expected: BTreeMap<String, u64> = [
        ("Start.root(I)I", 6 + 4),
        ("Square.area(I)I", 5 + 4),
        ("Odd.area(I)I", 1),
        ("Odd.helper(I)I", 1),
        ("Start.seldom(I)I", 2 + 4),
        ("Start.deeper(I)I", 2 + 4),
        ("Elsewhere.other(I)I", 2 + 4),
        ("Start.check(I)V", 2),
        ("Start.fail(I)Ljava/lang/IllegalStateException;", 2),
        ("Start.text(I)Ljava/lang/String;", 2),
        ("Start.caught(Ljava/lang/Exception;)I", 2),
        ("Later.<init>(I)V", 1),
        ("Later.value()I", 1),
        ("Start.loop(I)I", 11 + 4),
    ]
    .map(|(method, calls)| (method.to_owned(), calls))
    .into();
    for before in ["0", "1", "50000"] {
        // Four threads come to the same calls at once, the first of all or when they are known.
        for digits in [["9", "0", "1", "2", "5", "1", "2"], ["0", "1", "2", "5", "1", "2", "9"]] {
            let report = runs(jdk, before, &digits);
            let calls = calls_by_method(&report);
            assert_eq!(calls, expected, "JDK {}, after {before} runs, {digits:?}", jdk.version);
            assert_eq!(report["events"]["lost"], 0);
        }
    }
}

fn what_lies_behind_it_is_not_instrumented(jdk: &Jdk) {
    for before in ["1", "50000"] {
        let report = runs(jdk, before, &["0", "0"]);
        let methods = &report["methods"];
        // The other shape too waits until the call is made on one.
        let counts = (&methods["called"], &methods["instrumented"]);
        assert_eq!(counts, (&2.into(), &2.into()), "JDK {}, after {before} runs", jdk.version);
    }
}

/// So many methods call one another, in as many classes.
const DEEP: usize = 40;

/// What a profile says of a root that calls through all of them, after one such call, on a JVM with these options.
fn deep_runs(jdk: &Jdk, options: &[&str]) -> Value {
    let links: String = (0..DEEP)
        .map(|depth| {
            format!("class A{depth} {{ static int a(int x) {{ return x > 0 ? A{}.a(x) : x; }} }}\n", depth + 1)
        })
        .collect();
    let source = format!(
        "class Main {{
            public static void main(String[] args) throws Exception {{
                Start.root();
                System.out.println(\"READY\");
                while (System.in.read() == '1') {{ System.in.read(); Start.root(); System.out.println(\"RESULT\"); }}
            }}
        }}
        class Start {{ static int root() {{ return A0.a(1); }} }}
        class A{DEEP} {{ static int a(int x) {{ return x; }} }}
        {links}"
    );
    let mut target = Launched::of_text(jdk, &source, options, &["Main"]);
    let profile = Profile::start(&target, &["--root", "Start::root", "--calls", "2"]);
    for _ in 0..2 {
        target.say("1");
        target.await_line("RESULT");
    }
    let report = profile.report();
    target.quit_by("q");
    let calls = calls_by_method(&report);
    assert_eq!(calls.len(), DEEP + 2, "JDK {}, {options:?}: {calls:#?}", jdk.version);
    assert!(calls.values().all(|calls| *calls == 2), "JDK {}, {options:?}: {calls:#?}", jdk.version);
    report
}

fn what_has_run_once_is_instrumented_before_it_runs_again(jdk: &Jdk) {
    let batches = |options: &[&str]| deep_runs(jdk, options)["hotswap"]["batches"].as_u64().expect("a number");
    let counted = batches(&[]);
    assert!(counted <= 3, "JDK {}: {counted} batches", jdk.version);
    // A JVM that counts nothing tells nothing: all is found all the same.
    let uncounted = batches(&["-Xint"]);
    assert!(uncounted >= counted, "JDK {}: {uncounted} batches", jdk.version);
}
