//! What a profile says of its own accuracy.

use std::fs;
use std::process::Command;
use std::time::Duration;

use headwater_tests::{
    Jdk, Launched, Patience, Process, Scratch, calls_by_method, compile, headwater, java, profile, read_report, run,
};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        calls_after_the_profile_say_what_the_root_takes_without_it,
        control_invocations_and_those_after_the_profile_are_told_apart,
        nothing_is_timed_after_a_profile_that_is_not_to_be_followed,
        calls_that_begin_before_recording_are_not_counted,
        nobody_is_interrupted_by_a_coarse_clock_while_bare_calls_are_timed,
        threads_stand_still_after_hotswaps_where_new_code_is_slow_until_then,
        a_target_that_ends_after_the_profile_leaves_its_results,
        an_interrupt_ends_the_timing_after_the_profile_and_not_the_profile,
        undisturbed_code_is_sampled_beside_a_recording_of_the_programs_own,
        stacks_deeper_than_the_recorder_keeps_by_itself_are_sampled_whole,
        threads_are_looked_at_before_a_profile_where_the_recorder_would_discard_compiled_code,
    }
}

const ROOT: &str = "Beat.root(I)I";

/// Profiles a thousand calls of a root that is called all the time; the report.
fn report(jdk: &Jdk, arguments: &[&str]) -> Value {
    let classes = compile(jdk, &["Beat.java"]);
    let mut target = java(jdk, &classes, &[], &["Beat"]);
    target.await_line("READY");
    let file = classes.file("profile.json");
    let file_name = file.to_string_lossy().into_owned();
    let mut all = vec!["--root", "Beat::root", "--calls", "1000", "-o", &file_name];
    all.extend(arguments);
    let tool = profile(&target, &all).finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    target.say("quit");
    let target = target.finish();
    assert!(target.status.success(), "{:#?}", target.stderr);
    assert_eq!(target.stdout, ["WRONG 0"], "JDK {}", jdk.version);
    let report = read_report(&file);
    // 20 * (20 + 1) / 2 calls of middle, of which 20 call nothing; and no call of the bare phase is among them.
    let calls = calls_by_method(&report);
    let counts = [ROOT, "Beat.middle(I)I", "Beat.leaf(I)I"].map(|method| calls[method]);
    assert_eq!(counts, [1_000, 210_000, 190_000], "JDK {}", jdk.version);
    report
}

fn calls_after_the_profile_say_what_the_root_takes_without_it(jdk: &Jdk) {
    for clock in ["exact", "tick"] {
        let report = report(jdk, &["--clock", clock, "--bare", "2s"]);
        let control = &report["controls"][0];
        assert_eq!((&control["root"], &control["kind"]), (&Value::from(ROOT), &Value::from("after")));
        assert!(control["calls"].as_u64() > Some(100), "{control}");
    }
}

/// What the JVM's flight recorder says of its recordings.
fn recordings(jdk: &Jdk, target: &Process) -> String {
    let jcmd = run(Command::new(jdk.home.join("bin/jcmd")).args([&target.pid().to_string(), "JFR.check"]));
    String::from_utf8_lossy(&jcmd.stdout).into_owned()
}

/// Profiles a program whose JVM has a flight recorder: what the report says of times, and the recordings that are left. `None` without a recorder.
fn sampled(jdk: &Jdk, main: &str, options: &[&str], calls: &str, last: &str) -> Option<(Value, String)> {
    if !jdk.home.join("bin/jfr").exists() {
        eprintln!("not tested: JDK {} has no flight recorder", jdk.version);
        return None;
    }
    let classes = compile(jdk, &[&format!("{main}.java")]);
    let mut target = java(jdk, &classes, options, &[main]);
    target.await_line("READY");
    let (file, root) = (classes.file("profile.json"), format!("{main}::root"));
    let arguments = ["--root", &root, "--calls", calls, "--bare", "10s", "-o", &file.to_string_lossy()];
    let mut patience = Patience::default();
    let times = loop {
        let tool = profile(&target, &arguments).finish();
        assert!(tool.status.success(), "{:#?}", tool.stderr);
        let times = read_report(&file)["times"].clone();
        // Threads that stand in line for a processor are hardly ever sampled.
        if times["samples"].as_u64() > Some(0) {
            break times;
        }
        assert!(patience.lasts(), "JDK {}: no sample: {times}", jdk.version);
    };
    let sample = run(headwater().args(["sample", &target.pid().to_string(), "-d", "3s"]));
    assert!(sample.status.success(), "{}", String::from_utf8_lossy(&sample.stderr));
    let left = recordings(jdk, &target);
    target.say("over");
    let target = target.finish();
    assert!(target.status.success() && target.stdout.iter().any(|line| line == last), "{:#?}", target.stdout);
    assert!(times["unsampled"].is_null(), "JDK {}: {times}", jdk.version);
    assert!(!left.contains("headwater"), "JDK {}: ours is over\n{left}", jdk.version);
    let written =
        fs::read_dir(classes.path()).expect("the target's directory").flatten().map(|entry| entry.file_name());
    let written: Vec<_> = written.filter(|name| name.to_string_lossy().ends_with(".jfr")).collect();
    assert!(written.is_empty(), "JDK {}: nothing is written where the target works: {written:?}", jdk.version);
    Some((times, left))
}

fn undisturbed_code_is_sampled_beside_a_recording_of_the_programs_own(jdk: &Jdk) {
    let options = ["-XX:StartFlightRecording:name=theirs"];
    let Some((_, left)) = sampled(jdk, "Beat", &options, "1000", "WRONG 0") else { return };
    assert!(left.contains("name=theirs"), "JDK {}: theirs is over too\n{left}", jdk.version);
}

fn stacks_deeper_than_the_recorder_keeps_by_itself_are_sampled_whole(jdk: &Jdk) {
    let Some((times, _)) = sampled(jdk, "Depths", &[], "100", "OVER") else { return };
    assert_eq!(times["cut_samples"].as_u64(), Some(0), "JDK {}: {times}", jdk.version);
}

fn control_invocations_and_those_after_the_profile_are_told_apart(jdk: &Jdk) {
    let report = report(jdk, &["--control", "10", "--bare", "2s"]);
    let kinds: Vec<&Value> = report["controls"].as_array().expect("controls").iter().map(|c| &c["kind"]).collect();
    assert_eq!(kinds, ["after", "during"], "JDK {}", jdk.version);
}

fn nothing_is_timed_after_a_profile_that_is_not_to_be_followed(jdk: &Jdk) {
    assert_eq!(report(jdk, &["--bare", "off"])["controls"], Value::Array(Vec::new()), "JDK {}", jdk.version);
}

/// Where calls of the root take long, they are recorded as soon as one begins, while the classes below are still being changed.
fn calls_that_begin_before_recording_are_not_counted(jdk: &Jdk) {
    const THREADS: usize = 8;
    const PARTS: usize = 2_000;
    // Roots are timed, and so are known to take long, where the program was sampled for a second before.
    const SAMPLED: Duration = Duration::from_secs(1);
    let part = |n| format!("class Part{n} implements Part {{ public int of(int n) {{ return n + {n}; }} }}\n");
    let parts: String = (0..PARTS).map(part).collect();
    let all: Vec<String> = (0..PARTS).map(|n| format!("new Part{n}()")).collect();
    let text = format!(
        "interface Part {{ int of(int n); }}
        class Main {{
            static final Part[] PARTS = {{ {} }};
            static volatile boolean quit;
            static int root(int n) throws InterruptedException {{
                if (n == 0) {{
                    for (Part part : PARTS) n += part.of(n);
                }}
                Thread.sleep(60);
                return n;
            }}
            static int call() {{
                int n = 0;
                try {{ while (!quit) n = root(n); }} catch (InterruptedException none) {{ }}
                return n;
            }}
            public static void main(String[] args) throws Exception {{
                Thread[] threads = new Thread[{THREADS}];
                for (int n = 0; n < threads.length; n++) (threads[n] = new Thread(Main::call)).start();
                Thread.sleep(1000);
                System.out.println(\"READY\");
                while (System.in.read() != '\\n') {{ }}
                quit = true;
                for (Thread thread : threads) thread.join();
                System.out.println(\"PAUSED\");
                while (System.in.read() != '\\n') {{ }}
                for (int n = 1; n <= 5; n++) root(n);
                System.out.println(\"CALLED\");
                while (System.in.read() != '\\n') {{ }}
            }}
        }}
        {parts}",
        all.join(", ")
    );
    let mut target = Launched::of_text(jdk, &text, &[], &["Main"]);
    let file = target.classes().file("profile.json");
    let mut command = headwater();
    command.arg("profile").arg(target.pid().to_string()).args(["--root", "Main::root", "--gentle", "off", "-o"]);
    let mut tool = Process::spawn(command.arg(&file).env("HEADWATER_LOG", "debug"));
    tool.await_error_line("time its probes");
    target.signal(Signal::STOP);
    std::thread::sleep(SAMPLED);
    target.signal(Signal::CONT);
    // What is below is being changed.
    tool.await_error_line("hotswap 2 of");
    tool.signal(Signal::STOP);
    target.say("pause");
    target.await_line("PAUSED");
    tool.signal(Signal::CONT);
    tool.await_error_line("it records");
    target.say("call");
    target.await_line("CALLED");
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    let calls = calls_by_method(&read_report(&file))["Main.root(I)I"];
    assert_eq!(calls, 5, "JDK {}: {:#?}", jdk.version, tool.stderr);
    target.quit();
}

/// The names of a process's threads.
fn threads(process: &Process) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid())).expect("it runs").flatten();
    // A thread may end meanwhile.
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.map(|name| name.trim_end().to_owned()).collect()
}

fn nobody_is_interrupted_by_a_coarse_clock_while_bare_calls_are_timed(jdk: &Jdk) {
    const TICKER: &str = "ticker";
    let has_ticker = |tool: &Process| threads(tool).iter().any(|name| name == TICKER);
    let classes = compile(jdk, &["Beat.java"]);
    let mut target = java(jdk, &classes, &[], &["Beat"]);
    target.await_line("READY");
    let recording = profile(&target, &["--root", "Absent::root", "--await-root", "--clock", "tick"]);
    assert!(has_ticker(&recording), "JDK {}: {:?}", jdk.version, threads(&recording));
    recording.signal(Signal::INT);
    recording.finish();
    let arguments = ["--root", "Beat::root", "--calls", "1000", "--clock", "tick", "--bare", "60s"];
    let mut tool = profile(&target, &arguments);
    tool.await_error_line("timing and sampling the root's calls");
    assert!(!has_ticker(&tool), "JDK {}", jdk.version);
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    target.say("quit");
    assert!(target.finish().status.success());
}

/// In JDKs up to 22 calls in new code are slow until threads are stopped the next time, which may be a second later.
fn threads_stand_still_after_hotswaps_where_new_code_is_slow_until_then(jdk: &Jdk) {
    const HOTSWAP: &str = "RedefineClasses";
    const SETTLING: &str = "GetThreadListStackTraces";
    let classes = compile(jdk, &["Beat.java"]);
    let log = classes.file("safepoints.log");
    let logging = format!("-Xlog:safepoint=info:file={}", log.display());
    let mut target = java(jdk, &classes, &[&logging], &["Beat"]);
    target.await_line("READY");
    let tool = profile(&target, &["--root", "Beat::root", "--calls", "1000", "--bare", "2s"]).finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    // The agent is gone: whatever comes is in the log.
    let log = std::fs::read_to_string(&log).expect("the JVM's log");
    target.say("quit");
    assert!(target.finish().status.success());
    let phases: Vec<usize> = log.split(HOTSWAP).skip(1).map(|phase| phase.matches(SETTLING).count()).collect();
    assert!(phases.len() >= 3, "JDK {}: to record, before the bare phase, at the end\n{log}", jdk.version);
    // How many there are on a machine where each takes long is not said.
    if jdk.version < 23 {
        assert!(phases.iter().sum::<usize>() > 0, "JDK {}: {phases:?}\n{log}", jdk.version);
    } else {
        assert!(phases.iter().all(|phase| *phase == 0), "JDK {}: {phases:?}", jdk.version);
    }
}

fn a_target_that_ends_after_the_profile_leaves_its_results(jdk: &Jdk) {
    let classes = compile(jdk, &["Beat.java"]);
    let mut target = java(jdk, &classes, &[], &["Beat"]);
    target.await_line("READY");
    let scratch = Scratch::new("report");
    let file = scratch.file("profile.json");
    let file_name = file.to_string_lossy().into_owned();
    let arguments = ["--root", "Beat::root", "--calls", "1000", "--bare", "60s", "-o", &file_name];
    let mut tool = profile(&target, &arguments);
    tool.await_error_line("without probes");
    target.say("quit");
    assert_eq!(target.finish().stdout, ["WRONG 0"]);
    let tool = tool.finish();
    assert!(matches!(tool.status.code(), Some(0 | 5)), "{:#?}", tool.stderr);
    assert_eq!(calls_by_method(&read_report(&file))[ROOT], 1_000, "JDK {}", jdk.version);
}

fn an_interrupt_ends_the_timing_after_the_profile_and_not_the_profile(jdk: &Jdk) {
    let classes = compile(jdk, &["Beat.java"]);
    let mut target = java(jdk, &classes, &[], &["Beat"]);
    target.await_line("READY");
    let file = classes.file("profile.json");
    let file_name = file.to_string_lossy().into_owned();
    let arguments = ["--root", "Beat::root", "--calls", "1000", "--bare", "1h", "-o", &file_name];
    let mut tool = profile(&target, &arguments);
    tool.await_error_line("without probes");
    tool.signal(rustix::process::Signal::INT);
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    assert_eq!(calls_by_method(&read_report(&file))[ROOT], 1_000, "JDK {}", jdk.version);
    target.say("quit");
    assert_eq!(target.finish().stdout, ["WRONG 0"], "JDK {}", jdk.version);
}

fn threads_are_looked_at_before_a_profile_where_the_recorder_would_discard_compiled_code(jdk: &Jdk) {
    const KEEPS_CODE: u32 = 23;
    let classes = compile(jdk, &["Beat.java"]);
    let mut target = java(jdk, &classes, &[], &["Beat"]);
    target.await_line("READY");
    for is_first in [true, false] {
        let mut command = headwater();
        command.arg("profile").arg(target.pid().to_string()).args(["--root", "Beat::root", "--calls", "100"]);
        let tool = Process::spawn(command.env("HEADWATER_LOG", "debug")).finish();
        assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
        let says = |what: &str| tool.stderr.iter().find(|line| line.contains(what));
        let has_seen = says(" looks, ").is_some_and(|looks| !looks.contains(" 0 looks"));
        assert_eq!(has_seen, jdk.version < KEEPS_CODE, "JDK {}: {:#?}", jdk.version, tool.stderr);
        // The recorder has been used by then.
        let are_compared = says("a look recorded").is_some();
        assert_eq!(are_compared, has_seen && !is_first, "JDK {}: {:#?}", jdk.version, tool.stderr);
    }
    target.say("quit");
    assert_eq!(target.finish().stdout, ["WRONG 0"], "JDK {}", jdk.version);
}
