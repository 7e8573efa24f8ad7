//! What the JDK calls on objects that the graph's code does not name, and by reflection of its own: counted like what is instrumented from the
//! beginning.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Launched, calls_by_method, profile_while_told};

headwater_tests::trials! {
    each_jdk {
        a_class_in_whose_loop_a_thread_is_stays_as_it_is,
    }
    since(17) {
        what_the_graph_does_not_name_is_counted,
        what_the_graph_does_not_name_and_never_ran_is_counted_in_a_program_that_has_run_for_long,
    }
}

const LINES: [&str; 11] = [
    "driver",
    "elements",
    "within",
    "hooks",
    "reference",
    "cause",
    "enum",
    "stream",
    "initialiser",
    "failing",
    "loader",
];

/// The calls by method below the root, which had been called so often before.
fn calls(jdk: &Jdk, warm: &str, scheme: &str) -> BTreeMap<String, u64> {
    let target = Launched::of_files(jdk, &["Unnamed.java"], &[], &["Unnamed", warm]);
    // Its loaders are asked for the probes' class besides.
    let options = ["--root", "Unnamed$Start::root", "--scheme", scheme, "--exclude", "Unnamed$Plugins"];
    let mut calls = calls_by_method(&profile_while_told(target, &options, &LINES));
    // What the JDK makes up for its reflection.
    calls.retain(|method, calls| *calls > 0 && method.starts_with("Unnamed"));
    calls
}

fn check(jdk: &Jdk, warm: &str) {
    let (found, all) = (calls(jdk, warm, "b"), calls(jdk, warm, "total"));
    assert!(all.len() > 50, "JDK {}: {all:#?}", jdk.version);
    let missed: Vec<_> = all.iter().filter(|(method, calls)| found.get(*method) != Some(calls)).collect();
    assert!(missed.is_empty(), "JDK {}, after {warm} calls: {missed:#?}", jdk.version);
    assert_eq!(found.len(), all.len(), "JDK {}: {found:#?}", jdk.version);
}

fn what_the_graph_does_not_name_is_counted(jdk: &Jdk) {
    check(jdk, "0");
}

fn what_the_graph_does_not_name_and_never_ran_is_counted_in_a_program_that_has_run_for_long(jdk: &Jdk) {
    check(jdk, "300");
}

/// A worker that loops for ever in a method which the JDK may call: were its class changed, the loop would be interpreted from then on.
const WORKER: &str = "
class Main {
    public static void main(String[] args) throws Exception {
        Thread thread = new Thread(new Worker());
        thread.setDaemon(true);
        thread.start();
        while (Worker.rounds == 0) Thread.onSpinWait();
        Class.forName(\"Start\");
        System.out.println(\"READY\");
        while (System.in.read() >= 0) {
            if (System.in.read() >= 0) Start.root(new Object());
            System.out.println(\"RESULT\");
        }
    }
}
class Start {
    static java.util.List<Object> all = new java.util.ArrayList<>();
    static void root(Object it) { all.add(it); }
}
class Worker implements Runnable {
    static volatile long rounds;
    public void run() { while (true) rounds++; }
    public int hashCode() { return 1; }
}
";

fn a_class_in_whose_loop_a_thread_is_stays_as_it_is(jdk: &Jdk) {
    let target = Launched::of_text(jdk, WORKER, &[], &["Main"]);
    let report = profile_while_told(target, &["--root", "Start::root"], &["x", "x"]);
    let counts = (&report["methods"]["called"], &report["methods"]["instrumented"]);
    assert_eq!(counts, (&1.into(), &1.into()), "JDK {}: {}", jdk.version, report["methods"]);
}
