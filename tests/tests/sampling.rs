//! `headwater sample`: all threads, without a root and without an agent.

use headwater_tests::{Jdk, Process, Scratch, compile, headwater, java, read_report, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        what_burns_is_found_and_all_of_it_is_accounted_for,
    }
    first_jdk {
        a_session_samples_beside_a_profile,
        who_has_seen_enough_ends_what_is_shown_again_and_again,
        a_program_that_is_gone_and_a_period_that_is_none_are_named,
    }
}

fn burning(jdk: &Jdk) -> (Scratch, Process) {
    let classes = compile(jdk, &["Burning.java"]);
    let mut target = java(jdk, &classes, &[], &["Burning"]);
    target.await_line("READY");
    (classes, target)
}

fn finish(mut target: Process, jdk: &Jdk) {
    target.say("q");
    assert_eq!(target.await_line("RESULT "), "RESULT true", "JDK {}", jdk.version);
    assert!(target.finish().status.success(), "JDK {}", jdk.version);
}

/// Sums of a metric over the nodes of each method.
fn of(report: &Value, method: &str, metric: &str, part: &str) -> u64 {
    let nodes = report["nodes"].as_array().expect("nodes").iter();
    let named = nodes.filter(|node| node["method"].as_str().is_some_and(|name| name.starts_with(method)));
    named.filter_map(|node| node["metrics"][metric][part].as_u64()).sum()
}

/// CPU time of a process since its start: user and system time, in ticks.
fn cpu_ns(pid: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("its times");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("ticks")).sum();
    ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second())
}

fn a_session_samples_beside_a_profile(jdk: &Jdk) {
    let (_classes, target) = burning(jdk);
    let out = Scratch::new("report");
    let json = out.file("samples.json");
    let mut command = headwater();
    command.arg("attach").arg(target.pid().to_string());
    let mut tool = Process::spawn(&mut command);
    tool.await_error_line("attached to ");
    tool.say("expect sample.cpu > 0");
    tool.await_error_line("nothing has been sampled; `sample` does that");
    tool.say("profile Burning::compute");
    tool.await_error_line("root Burning::compute");
    tool.say(&format!("sample -d 1s --recorder off > {}", json.display()));
    for holds in [
        "sample.cpu.total(Burning::compute) > 1%",
        "sample.cpu > 1ms",
        "sample.file.total(Burning::main) > 100ms",
        "sample.duration > 900ms",
        "root-calls > 0",
    ] {
        tool.say(&format!("expect {holds}"));
    }
    tool.say("expect sample.cpu.total(Burning::compute) > 200%");
    let failed = tool.await_error_line("expected ");
    assert!(failed.contains("expected sample.cpu.total(Burning::compute) > 200%, but it is "), "{failed}");
    tool.say("expect sample.acres > 1");
    tool.await_error_line("the profile has no such metric: it has cpu, ");
    tool.say("quit");
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    // Dumps of threads name methods without their signatures.
    assert!(of(&read_report(&json), "Burning.compute", "cpu", "total") > 0);
    finish(target, jdk);
}

fn what_burns_is_found_and_all_of_it_is_accounted_for(jdk: &Jdk) {
    let version = jdk.version;
    let (_classes, target) = burning(jdk);
    let pid = target.pid().to_string();
    let out = Scratch::new("report");
    let (snapshot, json) = (out.file("all.hw"), out.file("all.json"));
    let name = snapshot.to_string_lossy().into_owned();
    let before = cpu_ns(&pid);
    let sampled = run_headwater(&["sample", &pid, "-d", "3s", "-o", &name]);
    let taken = cpu_ns(&pid) - before;
    assert!(sampled.status.success(), "JDK {version}: {}", String::from_utf8_lossy(&sampled.stderr));
    // Nothing of ours is in it.
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("its maps");
    assert!(!maps.contains("agent.so"), "JDK {version}");
    let written = run_headwater(&["report", &name, "-o", &json.to_string_lossy()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let report = read_report(&json);
    for method in ["Burning.hot()", "Burning.warm()", "Burning.compute("] {
        assert!(of(&report, method, "cpu", "total") > 0, "JDK {version}: {method} is missing: {report:#}");
    }
    assert!(of(&report, "Burning.compute(", "samples", "total") > 0, "JDK {version}");
    let nodes = report["nodes"].as_array().expect("nodes");
    let own: u64 = nodes.iter().filter_map(|node| node["metrics"]["cpu"]["self"].as_u64()).sum();
    let roots = nodes.iter().filter(|node| node["parent"].is_null());
    let total: u64 = roots.filter_map(|node| node["metrics"]["cpu"]["total"].as_u64()).sum();
    assert_eq!(own, total, "JDK {version}");
    let whole =
        |metric: &str| -> u64 { nodes.iter().filter_map(|node| node["metrics"][metric]["self"].as_u64()).sum() };
    // One thread reads what it is told, and is there all the time; those that compute are not waiting.
    assert!(of(&report, "Burning.main", "file", "total") > 2_000_000_000, "JDK {version}: {report:#}");
    assert_eq!(of(&report, "Burning.compute(", "file", "total"), 0, "JDK {version}");
    assert!(whole("wall") >= whole("cpu") + whole("file"), "JDK {version}");
    assert!(of(&report, "Burning.compute(", "alloc", "total") > 0, "JDK {version}: {report:#}");
    // What it burned before and after the samples is not in them; ticks are 10 ms.
    assert!(own > 0 && own <= taken + 20_000_000, "JDK {version}: {own} of {taken}");
    let threads: Vec<&str> =
        report["threads"].as_array().expect("threads").iter().filter_map(|thread| thread["name"].as_str()).collect();
    assert!(threads.contains(&"burner"), "JDK {version}: {threads:?}");
    let text = run_headwater(&["report", &name, "--view", "flat", "--thread", "burner"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("CPU time of the process") && text.contains("Burning.compute(int)"), "{text}");
    assert!(!text.contains("Burning.warm"), "{text}");
    // Its loops are entered once, what is in them again and again.
    let roots = run_headwater(&["roots", &pid, "-d", "2s", "--timing", "1s", "--format", "json"]);
    assert!(roots.status.success(), "JDK {version}: {}", String::from_utf8_lossy(&roots.stderr));
    let roots: Value = serde_json::from_slice(&roots.stdout).expect("JSON");
    let first = &roots["candidates"][0];
    assert_eq!(first["root"], "Burning::compute(int)", "JDK {version}: {roots:#}");
    assert!(first["calls"].as_u64().is_some_and(|calls| calls > 1), "JDK {version}: {roots:#}");
    for share in ["cpu_share", "allocated_share"] {
        assert!(first[share].as_f64().is_some_and(|share| share > 0.0), "JDK {version}, {share}: {roots:#}");
    }
    // When the target ends before the time is over, what was seen is told all the same, by lines, say.
    let mut command = headwater();
    command.args(["sample", &pid, "-d", "1h", "--lines", "-o"]).arg(&json);
    let mut tool = Process::spawn(&mut command);
    tool.await_error_line("headwater: sampling all threads");
    finish(target, jdk);
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(5), "JDK {version}: {:#?}", tool.stderr);
    let report = read_report(&json);
    let notes = report["notes"].as_array().expect("notes").iter();
    assert!(notes.filter_map(Value::as_str).any(|note| note.contains("the target ended")), "JDK {version}: {report:#}");
}

fn a_program_that_is_gone_and_a_period_that_is_none_are_named(jdk: &Jdk) {
    let (_classes, target) = burning(jdk);
    let pid = target.pid().to_string();
    let refused = run_headwater(&["sample", &pid, "--every", "5s"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("give a time from 1ms to 1s"));
    finish(target, jdk);
    let gone = run_headwater(&["sample", &pid]);
    assert_eq!(gone.status.code(), Some(3), "{}", String::from_utf8_lossy(&gone.stderr));
}

fn who_has_seen_enough_ends_what_is_shown_again_and_again(jdk: &Jdk) {
    let (_classes, target) = burning(jdk);
    let pid = target.pid().to_string();
    for command in [&["sample", &pid][..], &["profile", &pid, "--root", "Burning::compute", "--bare", "off"]] {
        let tool = headwater();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "{ \"$0\" \"$@\"; echo \"code $?\" >&2; } | head -1"]).arg(tool.get_program());
        let mut reader = Process::spawn(shell.args(command).args(["-d", "1h", "--live=100ms"]));
        reader.await_error_line("code 0");
        let finished = reader.finish();
        let said = finished.stderr.join("\n");
        assert!(!said.contains("written") && !said.contains("roken"), "{command:?}: {said}");
        assert_eq!(finished.stdout.len(), 1, "{command:?}: {:#?}", finished.stdout);
    }
    finish(target, jdk);
}
