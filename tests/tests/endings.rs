//! What is left behind when a tool or a target is ended at an odd moment: soon nothing, and the tool knows why it ended.

use std::path::{Path, PathBuf};

use headwater_tests::appearing::{self, Appearing, ROOT};
use headwater_tests::{Jdk, Process, Scratch, await_that, compile, headwater, java, profile, read_report};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

headwater_tests::trials! {
    each_jdk {
        a_target_that_is_terminated_is_known_to_have_ended,
        a_file_that_may_not_become_as_large_as_the_profile_is_an_error_and_the_profile_is_said_instead,
        nobody_goes_on_timing_probes_for_a_tool_that_is_gone,
        calls_that_end_with_the_program_are_all_that_was_wanted,
        a_program_that_leaves_before_all_is_counted_has_its_profile_and_is_told_what_is_missing,
    }
    first_jdk {
        a_target_that_is_killed_while_it_is_asked_is_known_to_have_ended,
    }
}

/// The agent's thread in a target; it has come.
fn agent(target: &Process) -> PathBuf {
    let is_ours =
        |task: &PathBuf| std::fs::read_to_string(task.join("comm")).is_ok_and(|it| it.starts_with("Headwater "));
    let mut found = None;
    await_that("it is there", || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", target.pid())).expect("it runs").flatten();
        found = tasks.map(|task| task.path()).find(is_ours);
        found.is_some()
    });
    found.expect("it has come")
}

/// CPU time of a thread, in hundredths of a second; nothing once it has ended.
fn ticks(thread: &Path) -> Option<u64> {
    let stat = std::fs::read_to_string(thread.join("stat")).ok()?;
    // Behind the name: the state, and from there the eleventh and twelfth.
    let fields: Vec<&str> = stat.rsplit(')').next().expect("what follows").split_whitespace().collect();
    Some(fields[11..13].iter().map(|ticks| ticks.parse::<u64>().expect("a number")).sum())
}

/// In an interpreter the probes take seconds to be timed: the agent of another tool, which waits for that, takes longer than this one's.
fn nobody_goes_on_timing_probes_for_a_tool_that_is_gone(jdk: &Jdk) {
    for signal in [Signal::KILL, Signal::INT] {
        let classes = compile(jdk, &["Steps.java"]);
        let begin = || {
            let mut target = java(jdk, &classes, &["-Xint"], &["Steps"]);
            target.await_line("READY");
            let pid = target.pid().to_string();
            let tool = Process::spawn(headwater().args(["profile", &pid, "--root", "Steps::root", "--bare", "off"]));
            let agent = agent(&target);
            (target, tool, agent)
        };
        let (_other_target, mut other, others_agent) = begin();
        let (mut target, tool, agent) = begin();
        await_that("its probes are timed", || ticks(&agent).is_some_and(|used| used >= 20));
        tool.signal(signal);
        let mut used = 0;
        await_that("its agent has ended", || {
            let now = ticks(&agent);
            used = now.unwrap_or(used);
            now.is_none()
        });
        other.await_error_line("instrumented");
        let whole = ticks(&others_agent).expect("it goes on");
        assert!(used < whole, "JDK {}: {signal:?}: {used} of {whole} hundredths of a second", jdk.version);
        let tool = tool.finish();
        if signal == Signal::INT {
            assert_eq!(tool.status.code(), Some(130), "{:#?}", tool.stderr);
        }
        target.say("quit");
        let target = target.finish();
        assert!(target.status.success(), "JDK {}: {:#?}", jdk.version, target.stderr);
    }
}

fn a_target_that_is_terminated_is_known_to_have_ended(jdk: &Jdk) {
    let classes = appearing::classes(jdk);
    for _ in 0..5 {
        let mut target = Appearing::start(jdk, &classes);
        let out = Scratch::new("report");
        let file = out.file("profile.json");
        let options = ["--root", ROOT, "--bare", "off", "-o", &file.to_string_lossy()];
        let tool = profile(&target.process, &options);
        target.await_rounds(20);
        target.process.signal(Signal::TERM);
        let tool = tool.finish();
        assert_eq!(tool.status.code(), Some(5), "JDK {}: {:#?}", jdk.version, tool.stderr);
        assert!(root(&file) > 0);
    }
}

/// Whatever the tool is just asking of it.
fn a_target_that_is_killed_while_it_is_asked_is_known_to_have_ended(jdk: &Jdk) {
    let classes = appearing::classes(jdk);
    let with_agent = [&["events"][..], &["profile", "--root", ROOT]];
    for command in [&["locks"][..], &["sample"], &["roots"]].into_iter().chain(with_agent) {
        let target = Appearing::start(jdk, &classes);
        let pid = target.process.pid();
        let tool = Process::spawn(headwater().args(command).arg(pid.to_string()).args(["-d", "1h"]));
        if with_agent.contains(&command) {
            agent(&target.process);
        } else {
            let kind = if command == ["locks"] { "locks" } else { "samples" };
            let file = std::env::temp_dir().join(format!("headwater-{kind}-{pid}")).join("samples.jfr");
            await_that("its recorder is asked", || file.exists());
        }
        target.process.signal(Signal::KILL);
        let tool = tool.finish();
        assert_eq!(tool.status.code(), Some(5), "{command:?}: {:#?}", tool.stderr);
    }
}

/// The JVM says that it ends before or after the call is found in the events.
fn calls_that_end_with_the_program_are_all_that_was_wanted(jdk: &Jdk) {
    let classes = compile(jdk, &["Counter.java", "Counting.java"]);
    let out = Scratch::new("report");
    for (calls, code) in [("1", 0), ("2", 5)] {
        let file = out.file("profile.json");
        let mut tool = headwater();
        tool.args(["run", "--root", "Counting::main", "--calls", calls, "--exclude", "Counter", "--bare", "off", "-o"]);
        tool.arg(&file).arg("--").arg(jdk.program("java"));
        tool.args(["-Xverify:all", "-cp"]).arg(classes.path()).arg("Counting");
        let mut program = Process::spawn(&mut tool);
        program.await_line("READY");
        program.say("quit");
        let program = program.finish();
        assert_eq!(program.status.code(), Some(code), "JDK {}, {calls}: {:#?}", jdk.version, program.stderr);
        assert_eq!(root(&file), 1);
    }
}

/// Waits for locks are recorded by the flight recorder, which takes longer to begin than this program takes.
fn a_program_that_leaves_before_all_is_counted_has_its_profile_and_is_told_what_is_missing(jdk: &Jdk) {
    let classes = compile(jdk, &["Leaving.java"]);
    let out = Scratch::new("report");
    let file = out.file("profile.json");
    let mut tool = headwater();
    tool.args(["run", "--root", "Leaving::main", "--count", "bytecodes,locks", "--gentle", "off", "-o"]).arg(&file);
    tool.arg("--").arg(jdk.program("java")).args(["-Xverify:all", "-cp"]).arg(classes.path()).arg("Leaving");
    let tool = Process::spawn(&mut tool).finish();
    assert!(tool.stdout.iter().any(|line| line == "SUM 499500"), "JDK {}: {:#?}", jdk.version, tool.stdout);
    assert_eq!(tool.status.code(), Some(0), "JDK {}: {:#?}", jdk.version, tool.stderr);
    assert_eq!(root(&file), 1);
    let report = read_report(&file);
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("bytecodes of 1 call of 1 thread are missing"), "JDK {}: {warnings}", jdk.version);
    // Of a machine that is quick it begins just before the end.
    let is_told = ["contended locks are not known", "waits of the program's first"];
    assert!(is_told.iter().any(|told| report.to_string().contains(told)), "JDK {}: {report}", jdk.version);
}

/// The kernel ends who does not care about the signal that comes with it.
fn a_file_that_may_not_become_as_large_as_the_profile_is_an_error_and_the_profile_is_said_instead(jdk: &Jdk) {
    let classes = appearing::classes(jdk);
    let mut target = Appearing::start(jdk, &classes);
    let out = Scratch::new("report");
    let file = out.file("profile.json");
    let tool = profile(&target.process, &["--root", ROOT, "--bare", "off", "-o", &file.to_string_lossy()]);
    target.await_rounds(20);
    let limit = Rlimit { current: Some(100), maximum: Some(100) };
    prlimit(Pid::from_raw(tool.pid().cast_signed()), Resource::Fsize, limit).expect("it runs");
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(1), "JDK {}: {:?} {:#?}", jdk.version, tool.status, tool.stderr);
    assert!(tool.stdout.iter().any(|line| line.contains("entered")), "JDK {}: {:#?}", jdk.version, tool.stdout);
    assert!(!file.exists());
    target.quit();
}

fn root(report: &Path) -> u64 {
    headwater_tests::counting::root_calls(&read_report(report))
}
