//! `--count page-faults,context-switches,instructions,cycles`: what the kernel counts is on the node where it happened, or refused by name.

use headwater_tests::{Finished, Jdk, Process, Scratch, compile, headwater, java, profile, read_report, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        page_faults_are_where_fresh_pages_are_touched,
        instructions_are_counted_or_refused_by_name,
        who_is_refused_more_keeps_what_is_counted,
    }
    since(21) {
        those_of_virtual_threads_are_their_carriers,
    }
}

const CALLS: u64 = 20;
const PAGES: u64 = 1_000;
/// Page faults a call that are the JVM's: fresh pages of the heap, of code, of the event buffer.
const OTHERS: u64 = 100;

fn recorded(jdk: &Jdk, count: &str, more: &[&str]) -> (Scratch, Finished) {
    let classes = compile(jdk, &["Faulting.java"]);
    let out = Scratch::new("faulting");
    let memory = out.file("memory").to_string_lossy().into_owned();
    let (calls, pages) = (CALLS.to_string(), PAGES.to_string());
    let main = ["Faulting", &memory, &calls, &pages];
    let mut target = java(jdk, &classes, &[], &[&main[..], more].concat());
    target.await_line("READY");
    let file = out.file("profile.hw").to_string_lossy().into_owned();
    let fixed = ["--root", "Faulting::root", "--calls", &calls, "--scheme", "total", "--bare", "off"];
    let tool = profile(&target, &[&fixed[..], &["--count", count, "-o", &file]].concat());
    target.say("go");
    target.await_line("DONE");
    let tool = tool.finish();
    target.say("quit");
    assert!(target.finish().status.success(), "JDK {}", jdk.version);
    (out, tool)
}

/// What the tool says, where the kernel refuses to count these; the target goes on.
fn refused(jdk: &Jdk, count: &str) -> Option<String> {
    let classes = compile(jdk, &["Faulting.java"]);
    let out = Scratch::new("refused");
    let memory = out.file("memory").to_string_lossy().into_owned();
    let mut target = java(jdk, &classes, &[], &["Faulting", &memory, "1", "1"]);
    target.await_line("READY");
    let pid = target.pid().to_string();
    let tried = run_headwater(&["profile", &pid, "--root", "Faulting::root", "--count", count, "-d", "10ms"]);
    target.say("go");
    target.await_line("DONE");
    target.say("quit");
    assert!(target.finish().status.success(), "JDK {}", jdk.version);
    let said = String::from_utf8_lossy(&tried.stderr).into_owned();
    if !said.contains("could not count") {
        return None;
    }
    let name = count.split(',').next().unwrap_or(count);
    let reasons = [format!("no counter of {name}"), format!("count {name}"), "no perf_event_open".to_owned()];
    assert!(reasons.iter().any(|reason| said.contains(reason)), "JDK {}: {said}", jdk.version);
    assert_eq!(tried.status.code(), Some(1), "JDK {}: {said}", jdk.version);
    Some(said)
}

fn report(out: &Scratch) -> Value {
    let (file, json) = (out.file("profile.hw"), out.file("profile.json"));
    let written = run_headwater(&["report", &file.to_string_lossy(), "-o", &json.to_string_lossy()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    read_report(&json)
}

fn of(report: &Value, method: &str, metric: &str, part: &str) -> u64 {
    let name = format!("Faulting.{method}(");
    let nodes = report["nodes"].as_array().expect("nodes");
    let is_one = |node: &&Value| node["method"].as_str().is_some_and(|method| method.starts_with(&name));
    let value = |node: &Value| node["metrics"][metric][part].as_u64().unwrap_or_else(|| panic!("{metric} of {node}"));
    nodes.iter().filter(is_one).map(value).sum()
}

fn check(jdk: &Jdk, more: &[&str]) {
    let (out, tool) = recorded(jdk, "page-faults,context-switches,alloc", more);
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    let report = report(&out);
    let faults = |method, part| of(&report, method, "page-faults", part);
    let touched = CALLS * PAGES;
    let [touch, look, root] = [faults("touch", "self"), faults("look", "self"), faults("root", "total")];
    assert!((touched..touched + CALLS * OTHERS).contains(&touch), "JDK {}: {touch}", jdk.version);
    assert!(look < CALLS * OTHERS, "JDK {}: {look}", jdk.version);
    assert_eq!(root, touch + look + faults("root", "self"), "JDK {}", jdk.version);
    // Whatever they are: it is known.
    of(&report, "root", "context-switches", "total");
}

fn page_faults_are_where_fresh_pages_are_touched(jdk: &Jdk) {
    check(jdk, &[]);
}

fn those_of_virtual_threads_are_their_carriers(jdk: &Jdk) {
    check(jdk, &["virtual"]);
}

fn instructions_are_counted_or_refused_by_name(jdk: &Jdk) {
    const COUNT: &str = "instructions,cycles";
    if refused(jdk, COUNT).is_some() {
        return;
    }
    let (out, tool) = recorded(jdk, COUNT, &[]);
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    let report = report(&out);
    // A loop has some for each page.
    assert!(of(&report, "touch", "instructions", "self") > CALLS * PAGES, "JDK {}", jdk.version);
    assert!(of(&report, "touch", "cycles", "self") > 0, "JDK {}", jdk.version);
}

fn who_is_refused_more_keeps_what_is_counted(jdk: &Jdk) {
    let classes = compile(jdk, &["Faulting.java"]);
    let out = Scratch::new("switched");
    let memory = out.file("memory").to_string_lossy().into_owned();
    let mut target = java(jdk, &classes, &[], &["Faulting", &memory, &CALLS.to_string(), &PAGES.to_string()]);
    target.await_line("READY");
    let mut tool = Process::spawn(headwater().arg("attach").arg(target.pid().to_string()));
    tool.await_error_line("attached to ");
    tool.say("profile Faulting::root --gentle off --bare off --scheme total");
    tool.await_error_line("root Faulting::root");
    tool.say("count page-faults on");
    tool.await_error_line("counting page-faults");
    // Refused, or counted too.
    tool.say("count instructions on");
    tool.await_error_line("instructions");
    target.say("go");
    target.await_line("DONE");
    let file = out.file("tree.json");
    tool.say(&format!("tree > {}", file.display()));
    tool.say("echo WRITTEN");
    tool.await_line("WRITTEN");
    let touch = of(&read_report(&file), "touch", "page-faults", "self");
    tool.say("quit");
    assert!(tool.finish().status.code().is_some(), "JDK {}", jdk.version);
    target.say("quit");
    assert!(target.finish().status.success(), "JDK {}", jdk.version);
    assert!(touch >= CALLS * PAGES, "JDK {}: {touch}", jdk.version);
}
