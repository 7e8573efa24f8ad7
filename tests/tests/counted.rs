//! `--count`: what happens beside calls is counted where it happens, and nowhere else.

use headwater_tests::{Jdk, Scratch, compile, java, profile, read_report, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        waits_and_classes_are_counted_where_they_happen,
        so_they_are_beside_the_recorder_which_changes_the_same_classes,
        what_nobody_asks_for_is_not_counted,
    }
    since(21) {
        so_are_those_of_virtual_threads,
    }
}

/// What the target does of each, in each root call.
const TIMES: u64 = 20;

/// How long the target rested in each way, by its own clock.
struct Rested {
    slept_ns: u64,
    parked_ns: u64,
    socket_ns: u64,
    file_ns: u64,
}

impl Rested {
    fn of(line: &str) -> Rested {
        let mut numbers = line.split(' ').skip(1).map(|number| number.parse().expect("a number"));
        let [slept_ns, parked_ns, socket_ns, file_ns] = std::array::from_fn(|_| numbers.next().expect("a number"));
        Rested { slept_ns, parked_ns, socket_ns, file_ns }
    }
}

/// A profile of one root call.
fn counted(jdk: &Jdk, arguments: &[&str], options: &[&str]) -> (Scratch, Value, Rested) {
    let classes = compile(jdk, &["Counted.java"]);
    let main: Vec<&str> = [&["Counted"], arguments].concat();
    let mut target = java(jdk, &classes, &[], &main);
    target.await_line("READY");
    let out = Scratch::new("report");
    let file = out.file("profile.hw");
    let name = file.to_string_lossy().into_owned();
    let fixed = ["--root", "Counted::root", "--calls", "1", "--bare", "off", "-o", &name];
    let tool = profile(&target, &[&fixed, options].concat());
    target.say("go");
    let rested = Rested::of(&target.await_line("DONE"));
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    target.say("quit");
    let ended = target.finish();
    assert!(ended.status.success(), "JDK {}", jdk.version);
    let of_recorder = ended.stdout.iter().chain(&ended.stderr).find(|line| line.contains("jfr"));
    assert_eq!(of_recorder, None, "JDK {}", jdk.version);
    let json = out.file("profile.json");
    let written = run_headwater(&["report", &name, "-o", &json.to_string_lossy()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let report = read_report(&json);
    (out, report, rested)
}

/// A metric of the only node of a method.
fn of(report: &Value, method: &str, metric: &str, part: &str) -> u64 {
    let nodes = report["nodes"].as_array().expect("nodes");
    let mut found = nodes.iter().filter(|node| node["method"] == format!("Counted.{method}"));
    let (node, more) = (found.next().expect(method), found.next());
    assert!(more.is_none(), "{method} is there twice");
    node["metrics"][metric][part].as_u64().unwrap_or_else(|| panic!("{method} has no {metric}: {node}"))
}

fn check(jdk: &Jdk, report: &Value, rested: &Rested) {
    let version = jdk.version;
    let own = |method, metric| of(report, method, metric, "self");
    assert_eq!(own("enter()V", "blocks"), TIMES, "JDK {version}");
    assert_eq!(own("await()V", "waits"), TIMES, "JDK {version}");
    check_classes(jdk, report);
    assert!(own("enter()V", "blocked") > 0 && own("await()V", "waited") > 0, "JDK {version}");
    for (method, metric) in
        [("enter()V", "waits"), ("enter()V", "classes"), ("load()V", "blocks"), ("load()V", "waits")]
    {
        assert_eq!(own(method, metric), 0, "JDK {version}, {method}, {metric}");
    }
    let root = "root(Ljava/lang/Object;)V";
    assert_eq!(of(report, root, "waits", "total"), TIMES, "JDK {version}");
    // Who waits for a monitor does so while the method runs: it is a part of its time, as that was measured.
    let node = |method: &str| {
        let nodes = report["nodes"].as_array().expect("nodes");
        nodes.iter().find(|node| node["method"] == format!("Counted.{method}")).expect("it is there").clone()
    };
    let (wall, error) = (node("enter()V")["self_ns"].as_u64(), node("enter()V")["error_ns"].as_u64());
    let (wall, error) = (wall.expect("a time"), error.expect("an error"));
    assert!(own("enter()V", "blocked") <= wall + 3 * error, "JDK {version}: of {wall} ±{error}");
    check_rests(jdk, report, rested);
}

/// Classes are nodes of their own below those that load and link them, and times in loaders and static initialisers are parts of wall time.
fn check_classes(jdk: &Jdk, report: &Value) {
    let version = jdk.version;
    let nodes = report["nodes"].as_array().expect("nodes");
    let find = |method: &str| nodes.iter().position(|node| node["method"] == method).expect(method);
    let of = |node: usize, metric: &str, part: &str| nodes[node]["metrics"][metric][part].as_u64().expect("a number");
    let (load, define) = (find("Counted.load()V"), find("Counted$Loader.define()Ljava/lang/Class;"));
    for (metric, at) in [("loads", define), ("classes", load)] {
        let below = |node: &&Value| node["parent"] == at && node["method"] == "Counted$Copy";
        let counts: Vec<&Value> = nodes.iter().filter(below).map(|node| &node["metrics"][metric]["self"]).collect();
        assert_eq!(counts, [TIMES], "JDK {version}, {metric}");
        assert_eq!((of(at, metric, "self"), of(at, metric, "total")), (0, TIMES), "JDK {version}, {metric}");
    }
    // Each loader's class has its own.
    let is_initialiser = |at: &usize| nodes[*at]["method"] == "Counted$Copy.<clinit>()V";
    let initialisers: Vec<usize> = (0..nodes.len()).filter(is_initialiser).collect();
    let sum = |metric: &str, part: &str| initialisers.iter().map(|at| of(*at, metric, part)).sum::<u64>();
    let self_ns = initialisers.iter().map(|at| nodes[*at]["self_ns"].as_u64().expect("a time")).sum::<u64>();
    assert!(initialisers.iter().all(|at| nodes[*at]["parent"] == load), "JDK {version}");
    assert_eq!((initialisers.len() as u64, sum("initialising", "self")), (TIMES, self_ns), "JDK {version}");
    assert_eq!(of(load, "initialising", "total"), self_ns, "JDK {version}");
    // The JVM has the loader asked, whose own code that is.
    assert!(of(define, "loading", "total") > 0 && of(load, "loading", "total") > 0, "JDK {version}");
    assert_eq!(sum("loading", "total"), 0, "JDK {version}");
}

/// What is told of rests is no longer than the target's own clock says, which reads before and after; and self times are their parts.
fn check_rests(jdk: &Jdk, report: &Value, rested: &Rested) {
    const CLOCKS_DIFFER: f64 = 1.01;
    let version = jdk.version;
    let own = |method, metric| of(report, method, metric, "self");
    let Rested { slept_ns, parked_ns, socket_ns, file_ns } = *rested;
    let rests = [
        ("sleep()V", ("slept", "sleeps"), TIMES, slept_ns),
        ("park()V", ("parked", "parks"), TIMES, parked_ns),
        ("ask()V", ("socket", "socket-calls"), 2 * TIMES, socket_ns),
        ("write()V", ("file", "file-calls"), TIMES, file_ns),
    ];
    for (method, (time, times), expected, own_ns) in rests {
        assert_eq!(own(method, times), expected, "JDK {version}, {method}");
        let told_ns = own(method, time);
        let most_ns = own_ns as f64 * CLOCKS_DIFFER;
        assert!(told_ns > 0 && told_ns as f64 <= most_ns, "JDK {version}, {method}: {told_ns} of {own_ns}");
        for (other, (time, times), ..) in rests.iter().filter(|(other, ..)| *other != method) {
            assert_eq!((own(method, time), own(method, times)), (0, 0), "JDK {version}, {method}: {other}");
        }
    }
    let least_ns = (TIMES * 1_000_000) as f64 / CLOCKS_DIFFER;
    assert!(own("sleep()V", "slept") as f64 >= least_ns, "JDK {version}: {}", own("sleep()V", "slept"));
    for node in report["nodes"].as_array().expect("nodes") {
        let parts = node["parts"].as_object().expect("parts").values();
        let sum: u64 = parts.map(|part| part.as_u64().expect("a time")).sum();
        assert_eq!(Some(sum), node["self_ns"].as_u64(), "JDK {version}: {node}");
    }
}

fn waits_and_classes_are_counted_where_they_happen(jdk: &Jdk) {
    let (out, report, rested) = counted(jdk, &[], &["--count", "waits,classes"]);
    check(jdk, &report, &rested);
    let text = run_headwater(&["report", &out.file("profile.hw").to_string_lossy()]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains(" waits ") && text.contains("asleep ") && text.contains("running "), "{text}");
    let text = run_headwater(&["report", &out.file("profile.hw").to_string_lossy(), "--metric", "blocked,blocks"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("blocked total"), "{text}");
    let line = text.lines().find(|line| line.ends_with("Counted.enter()")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.contains(" 20 "), "{text}");
}

fn so_they_are_beside_the_recorder_which_changes_the_same_classes(jdk: &Jdk) {
    let (_out, report, rested) = counted(jdk, &[], &["--count", "waits,classes,locks"]);
    check(jdk, &report, &rested);
    assert_eq!(report["methods"]["skipped"], Value::Array(Vec::new()), "JDK {}", jdk.version);
}

fn so_are_those_of_virtual_threads(jdk: &Jdk) {
    let (_out, report, rested) = counted(jdk, &["virtual"], &["--count", "locks,waits,classes"]);
    check(jdk, &report, &rested);
}

fn what_nobody_asks_for_is_not_counted(jdk: &Jdk) {
    let (_out, report, _) = counted(jdk, &[], &["--count", "locks"]);
    let ids: Vec<&str> =
        report["metrics"].as_array().expect("metrics").iter().filter_map(|metric| metric["id"].as_str()).collect();
    assert!(ids.contains(&"blocked") && ids.contains(&"blocks"), "{ids:?}");
    assert!(!["waited", "parked", "running", "classes"].iter().any(|id| ids.contains(id)), "{ids:?}");
    assert_eq!(of(&report, "enter()V", "blocks", "self"), TIMES, "JDK {}", jdk.version);
    let (_out, report, _) = counted(jdk, &[], &["--count", "classes"]);
    check_classes(jdk, &report);
    assert!(!report["metrics"].to_string().contains("waited"), "{}", report["metrics"]);
}
