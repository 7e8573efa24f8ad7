//! How sessions begin and end: well, badly, and again.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use headwater_tests::counting::{Target, root_calls, undisturbed};
use headwater_tests::{
    Jdk, Launched, Process, Profile, Scratch, calls_by_method, compile, counts_of_target, headwater, java, profile,
    read_report, run, run_headwater,
};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        calls_that_outlive_a_session_are_not_the_next_ones,
        a_target_that_is_killed_leaves_its_results,
        a_target_that_ends_by_itself_leaves_its_results,
        a_tool_that_is_killed_does_no_harm_and_another_can_attach,
        a_tool_that_is_stopped_does_not_hold_the_target,
        detaching_ends_a_session_whose_tool_is_alive,
        detaching_removes_what_a_killed_tool_left,
        the_same_jvm_is_profiled_again_and_again,
        threads_may_end_between_two_sessions,
        detaching_gives_every_class_its_bytes_back,
        a_root_that_is_loaded_later_is_awaited,
        a_program_is_profiled_from_its_start,
        a_script_may_start_several_jvms,
        more_threads_than_chunks_lose_nothing,
        two_thousand_threads_have_room,
    }
    first_jdk {
        what_finds_no_place_in_its_file_is_shown,
        the_list_shows_a_target,
        what_the_tool_does_is_logged_if_that_is_wanted,
        a_tree_for_each_thread_adds_up_to_the_merged_one,
    }
}

fn calls_that_outlive_a_session_are_not_the_next_ones(jdk: &Jdk) {
    let text = "
        class Main {
            public static void main(String[] args) throws Exception {
                System.out.println(\"READY\");
                listen();
                for (int depth = 0; depth < 3; depth++) nested(depth);
                listen();
            }
            static void nested(int depth) throws Exception {
                if (depth > 0) nested(depth - 1); else listen();
            }
            static void listen() throws Exception {
                for (int c; (c = System.in.read()) != '.';) {
                    if (c == 'g') leaf();
                    if (c == '\\n') System.out.println(\"DONE\");
                }
            }
            static void leaf() { }
        }";
    let classes = headwater_tests::compile_text(jdk, text);
    let mut target = java(jdk, &classes, &[], &["Main"]);
    target.await_line("READY");
    let out = Scratch::new("report");
    // The calls of the loop's last round are entered in one session and left in the next.
    let sessions = [
        ("Main::nested", "...g", vec![("Main.nested", 6), ("Main.listen", 3), ("Main.leaf", 1)]),
        ("Main::leaf", "g.g", vec![("Main.leaf", 2)]),
    ];
    for (session, (root, say, expected)) in sessions.into_iter().enumerate() {
        let file = out.file(&format!("{session}.json"));
        let tool = profile(&target, &["--root", root, "-o", &file.to_string_lossy()]);
        target.say(say);
        target.await_line("DONE");
        tool.signal(Signal::INT);
        let tool = tool.finish();
        assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
        let report = read_report(&file);
        assert_eq!(report["events"]["healed"], 0, "JDK {}: {session}", jdk.version);
        let calls = calls_by_method(&report);
        let calls: BTreeMap<&str, u64> =
            calls.iter().map(|(method, calls)| (method.split('(').next().unwrap_or(method), *calls)).collect();
        assert_eq!(calls, BTreeMap::from_iter(expected), "JDK {}: session {session}", jdk.version);
    }
    target.say(".");
    let target = target.finish();
    assert!(target.status.success(), "JDK {}: {:#?}", jdk.version, target.stderr);
}

fn a_target_that_is_killed_leaves_its_results(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let out = Scratch::new("report");
    let file = out.file("profile.json");
    let tool = profile(&target.process, &["--root", "Counting::root", "-o", &file.to_string_lossy()]);
    target.go();
    target.process.signal(Signal::KILL);
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(5), "{:#?}", tool.stderr);
    assert!(tool.stderr.iter().any(|line| line.contains("the target ended")), "{:#?}", tool.stderr);
    let report = read_report(&file);
    assert_eq!((root_calls(&report), &report["events"]["lost"]), (1, &Value::from(0)));
    assert!(report["warnings"][0].as_str().is_some_and(|warning| warning.contains("target ended")));
}

fn a_target_that_ends_by_itself_leaves_its_results(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let out = Scratch::new("report");
    let file = out.file("profile.json");
    let tool = profile(&target.process, &["--root", "Counting::root", "-o", &file.to_string_lossy()]);
    target.go();
    target.quit();
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(5), "{:#?}", tool.stderr);
    assert_eq!(root_calls(&read_report(&file)), 1);
}

fn a_tool_that_is_killed_does_no_harm_and_another_can_attach(jdk: &Jdk) {
    let expected = undisturbed(jdk, 4);
    let mut target = Target::start(jdk);
    let tool = profile(&target.process, &["--root", "Counting::root", "--bare", "auto"]);
    let mut results = vec![target.go()];
    tool.signal(Signal::KILL);
    results.push(target.go());
    drop(tool);
    results.push(target.go());

    let profile = Profile::start(&target.process, &["--root", "Counting::root", "--calls", "1"]);
    results.push(target.go());
    assert_eq!(root_calls(&profile.report()), 1);
    assert_eq!(results, expected, "JDK {}", jdk.version);
    target.quit();
}

fn a_tool_that_is_stopped_does_not_hold_the_target(jdk: &Jdk) {
    let expected = undisturbed(jdk, 2);
    let mut target = Target::start(jdk);
    let tool = profile(&target.process, &["--root", "Counting::root", "--format", "json"]);
    tool.stop();
    let mut results = vec![target.go()];
    tool.signal(Signal::CONT);
    results.push(target.go());
    tool.signal(Signal::INT);
    let tool = tool.finish();
    // The agent may have given the tool up: then it says so, and fails.
    assert!(matches!(tool.status.code(), Some(0 | 1)), "{:#?}", tool.stderr);
    let report: Value = serde_json::from_str(&tool.stdout.join("\n")).expect("JSON");
    assert_ne!(report["warnings"], Value::Array(Vec::new()), "calls are missing, and it must say so");
    assert_eq!(results, expected, "JDK {}", jdk.version);
    target.quit();
}

fn detaching_ends_a_session_whose_tool_is_alive(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let tool = profile(&target.process, &["--root", "Counting::root", "--format", "json"]);
    target.go();
    let detached = run_headwater(&["detach", &target.process.pid().to_string()]);
    assert!(detached.status.success(), "{}", String::from_utf8_lossy(&detached.stderr));
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(1), "{:#?}", tool.stderr);
    let report: Value = serde_json::from_str(&tool.stdout.join("\n")).expect("JSON");
    assert_eq!(root_calls(&report), 1);
    assert!(report["warnings"].to_string().contains("ended by somebody else"), "{}", report["warnings"]);
    target.go();
    target.quit();
}

fn detaching_removes_what_a_killed_tool_left(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let pid = target.process.pid().to_string();
    let never = run_headwater(&["detach", &pid]);
    assert!(never.status.success());
    assert!(String::from_utf8_lossy(&never.stdout).contains("nothing to detach"));

    let tool = profile(&target.process, &["--root", "Counting::root", "--bare", "auto"]);
    target.go();
    drop(tool);
    let detached = run_headwater(&["detach", &pid]);
    assert!(detached.status.success(), "{}", String::from_utf8_lossy(&detached.stderr));
    target.go();
    target.quit();
}

/// Where a target has the event buffer: the larger one of the two mappings that it has of it.
fn event_buffer(target: &Process) -> u64 {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", target.pid())).expect("it runs");
    let range = |line: &str| {
        let (from, to) = line.split_whitespace().next()?.split_once('-')?;
        let [from, to] = [from, to].map(|address| u64::from_str_radix(address, 16).expect("an address"));
        Some((to - from, from))
    };
    maps.lines().filter(|line| line.contains("memfd:headwater")).filter_map(range).max().expect("it is mapped").1
}

fn the_same_jvm_is_profiled_again_and_again(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let out = Scratch::new("report");
    let mut buffers = BTreeSet::new();
    for (round, root) in
        ["Counting::root", "Counting$Recursion::run", "Counting$Shapes::*", "Counting::root"].into_iter().enumerate()
    {
        let file = out.file(&format!("{round}.json"));
        let arguments = ["--root", root, "--exclude", "Counter", "-o", &file.to_string_lossy()];
        let tool = profile(&target.process, &arguments);
        buffers.insert(event_buffer(&target.process));
        target.go();
        tool.signal(Signal::INT);
        let tool = tool.finish();
        assert!(tool.status.success(), "{root}: {:#?}", tool.stderr);
        let report = read_report(&file);
        assert!(root_calls(&report) >= 1, "{root}");
        assert!(calls_by_method(&report).len() > 1, "{root}");
        let internals = report["target"]["internals"].as_object().expect("they are told");
        assert_eq!(internals.len(), 8, "{internals:?}");
        let stands = |standing: &serde_json::Value| ["holds", "not needed", "untested"].iter().any(|it| standing == it);
        assert!(internals.values().all(stands), "JDK {}: {internals:?}", jdk.version);
        // Nothing of the sessions before is still instrumented.
        if root == "Counting$Recursion::run" {
            let methods = calls_by_method(&report);
            assert!(methods.keys().all(|method| method.starts_with("Counting$Recursion.")), "{methods:#?}");
        }
    }
    assert_eq!(buffers.len(), 1, "JDK {}: it takes addresses with each profile: {buffers:x?}", jdk.version);
    target.quit();
}

fn threads_may_end_between_two_sessions(jdk: &Jdk) {
    let text = "
        import java.util.ArrayList;
        import java.util.List;
        import java.util.concurrent.SynchronousQueue;

        class Main {
            public static void main(String[] args) throws Exception {
                System.out.println(\"READY\");
                List<Thread> threads = new ArrayList<>();
                List<SynchronousQueue<String>> queues = new ArrayList<>();
                for (int c; (c = System.in.read()) >= 0;) {
                    for (int i = 0; c == 'l' && i < 50; i++) {
                        SynchronousQueue<String> queue = new SynchronousQueue<>();
                        Thread thread = new Thread(() -> run(queue));
                        thread.start();
                        threads.add(thread);
                        queues.add(queue);
                        queue.put(\"load\");
                    }
                    if (c == 'e') {
                        System.gc();
                        for (var queue : queues) queue.put(\"end\");
                        for (Thread thread : threads) thread.join();
                        queues.clear();
                        threads.clear();
                    }
                    if (c == '\\n') System.out.println(\"DONE\");
                }
            }
            static void run(SynchronousQueue<String> queue) {
                try {
                    while (!queue.take().equals(\"end\")) root();
                } catch (Exception e) {
                    System.out.println(e);
                }
            }
            static void root() throws Exception {
                var loader = new ClassLoader(null) {
                    Class<?> late() throws Exception {
                        try (var in = Main.class.getResourceAsStream(\"Late.class\")) {
                            byte[] bytes = in.readAllBytes();
                            return defineClass(\"Late\", bytes, 0, bytes.length);
                        }
                    }
                };
                loader.late();
            }
        }
        class Late { }";
    let classes = headwater_tests::compile_text(jdk, text);
    // What the JVM has of a thread is unmapped as soon as it is freed: no access to it goes unnoticed.
    let mut java = jdk.verifying();
    java.arg("-cp").arg(classes.path()).arg("Main").env("MALLOC_MMAP_THRESHOLD_", "1024");
    let mut target = Process::spawn(&mut java);
    target.await_line("READY");
    for _ in 0..3 {
        let tool = profile(&target, &["--root", "Main::root"]);
        target.say("l");
        target.await_line("DONE");
        tool.signal(Signal::INT);
        let tool = tool.finish();
        assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
        // A collection while nobody is attached, and then they end.
        target.say("e");
        target.await_line("DONE");
    }
    assert!(target.finish().status.success(), "JDK {}", jdk.version);
}

fn detaching_gives_every_class_its_bytes_back(jdk: &Jdk) {
    let classes = compile(jdk, &["ClassBytes.java"]);
    let manifest = classes.file("manifest");
    std::fs::write(&manifest, "Premain-Class: ClassBytes\nCan-Retransform-Classes: true\n").expect("a file");
    let jar = classes.file("agent.jar");
    let mut archiver = Command::new(jdk.program("jar"));
    archiver.args(["--create", "--file"]).arg(&jar).arg("--manifest").arg(&manifest);
    assert!(run(&mut archiver).status.success());
    let agent = format!("-javaagent:{}", jar.display());
    let mut target = java(jdk, &classes, &[&agent], &["ClassBytes"]);
    target.await_line("WORK ");
    target.say("digest");
    let before = target.await_line("DIGEST ");
    assert!(before.starts_with("DIGEST 5 "), "{before}");
    for _ in 0..2 {
        let profile = Profile::start(&target, &["--root", "ClassBytes$Work::root", "--calls", "1"]);
        target.say("go");
        assert_eq!(target.await_line("WORK "), "WORK 36");
        assert_eq!(calls_by_method(&profile.report()).len(), 5);
        target.say("digest");
        assert_eq!(target.await_line("DIGEST "), before, "JDK {}", jdk.version);
    }
}

fn a_root_that_is_loaded_later_is_awaited(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let options = ["--root", "Counting$Throwing::run", "--await-root", "--calls", "1"];
    let profile = Profile::start(&target.process, &options);
    target.go();
    let report = profile.report();
    assert_eq!(root_calls(&report), 1);
    assert!(calls_by_method(&report).len() > 1);
    target.quit();
}

fn a_program_is_profiled_from_its_start(jdk: &Jdk) {
    let classes = compile(jdk, &["Counter.java", "Counting.java"]);
    let out = Scratch::new("report");
    // The root of all, and one whose class is loaded later.
    for root in ["Counting::main", "Counting::root"] {
        let file = out.file("profile.json");
        let mut program = Process::spawn(
            headwater()
                .args(["run", "--root", root, "--exclude", "Counter", "-o"])
                .arg(&file)
                .arg("--")
                .arg(jdk.program("java"))
                .args(["-Xverify:all", "-cp"])
                .arg(classes.path())
                .arg("Counting"),
        );
        program.await_line("READY");
        program.say("go");
        program.say("quit");
        let program = program.finish();
        assert!(program.status.success(), "{:#?}", program.stderr);
        let report = read_report(&file);
        assert_eq!(root_calls(&report), 1);
        let internals = report["target"]["internals"].as_object().expect("what is read of the JVM");
        assert!(internals.values().all(|standing| standing != "failed"), "JDK {}: {internals:?}", jdk.version);
        let ours = calls_by_method(&report);
        assert_eq!(report["warnings"], Value::Array(Vec::new()), "a program that ends is what `run` waits for");
        let exact = root == "Counting::root";
        for (method, count) in counts_of_target(&program.stdout) {
            let calls = ours.get(&method).copied().unwrap_or(0);
            // Below main the program also calls these outside its own counting.
            assert!(calls == count || calls > count && !exact, "JDK {}, {root}: {method}", jdk.version);
        }
    }
}

fn what_finds_no_place_in_its_file_is_shown(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let arguments =
        ["--root", "Counting::root", "--calls", "1", "--bare", "off", "--format", "json", "-o", "/dev/full"];
    let tool = profile(&target.process, &arguments);
    target.go();
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(1));
    assert!(tool.stderr.iter().any(|line| line.contains("/dev/full: No space left")), "{:#?}", tool.stderr);
    assert!(tool.stdout.contains(&"root Counting::root: entered once".to_owned()), "{:#?}", tool.stdout);
    target.quit();
}

fn a_script_may_start_several_jvms(jdk: &Jdk) {
    let classes = compile(jdk, &["Counter.java", "Counting.java"]);
    let expected = undisturbed(jdk, 1);
    let java = jdk.program("java");
    let script = format!("{0} -version && {0} -cp {1} Counting", java.display(), classes.path().display());
    let mut program = Process::spawn(headwater().args(["run", "--root", "Counting::root", "--", "sh", "-c", &script]));
    program.await_line("READY");
    program.say("go");
    assert_eq!(vec![program.await_line("RESULT ")], expected, "JDK {}", jdk.version);
    program.say("quit");
    let program = program.finish();
    assert_eq!(program.status.code(), Some(4), "the first JVM, which was profiled, has no such root");
}

fn more_threads_than_chunks_lose_nothing(jdk: &Jdk) {
    // A buffer of 1 MiB has about thirty chunks, or eight times as many short ones.
    many_threads(jdk, 400, "1");
}

fn two_thousand_threads_have_room(jdk: &Jdk) {
    many_threads(jdk, 2_000, "64");
}

/// Threads that all stay, and call the root at the same time.
fn many_threads(jdk: &Jdk, threads: u64, buffer: &str) {
    const ROUNDS: u64 = 5;
    let main = ["ManyThreads", &threads.to_string()];
    let mut target = Launched::of_files(jdk, &["ManyThreads.java"], &[], &main);
    let profile = Profile::start(&target, &["--root", "ManyThreads::root", "--buffer", buffer]);
    for _ in 0..ROUNDS {
        target.say("go");
        target.await_line("ROUND ");
    }
    let report = profile.interrupted();
    assert_eq!(root_calls(&report), threads * ROUNDS, "JDK {}", jdk.version);
    assert_eq!(calls_by_method(&report)["ManyThreads.leaf(I)I"], 3 * threads * ROUNDS, "JDK {}", jdk.version);
    assert_eq!(report["events"]["lost"], 0, "JDK {}", jdk.version);
    assert_eq!(report["threads"].as_array().map(Vec::len), Some(threads as usize));
    target.quit_by("q");
}

fn the_list_shows_a_target(jdk: &Jdk) {
    let target = Target::start(jdk);
    let pid = target.process.pid();
    let listed: Value = serde_json::from_slice(&run_headwater(&["list", "--format", "json"]).stdout).expect("JSON");
    let rows = listed.as_array().expect("an array");
    assert!(rows.iter().any(|row| row["pid"] == pid && row["main"] == "Counting"), "{listed:#}");
    let text = String::from_utf8(run_headwater(&["list"]).stdout).expect("text");
    assert!(text.lines().any(|line| line.contains(&pid.to_string()) && line.contains("Counting")), "{text}");
    target.quit();
}

fn a_tree_for_each_thread_adds_up_to_the_merged_one(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let out = Scratch::new("report");
    let mut reports = Vec::new();
    for threads in [false, true] {
        let file = out.file("profile.json");
        let file_name = file.to_string_lossy().into_owned();
        let mut arguments = vec!["--root", "Counting$Shapes::total", "--calls", "1000", "-o", &file_name];
        arguments.extend(threads.then_some("--threads"));
        let tool = profile(&target.process, &arguments).finish();
        assert!(tool.status.success(), "{:#?}", tool.stderr);
        reports.push(read_report(&file));
    }
    assert_eq!(calls_by_method(&reports[0]), calls_by_method(&reports[1]));
    let nodes = |report: &Value| report["nodes"].as_array().expect("nodes").clone();
    assert!(nodes(&reports[0]).iter().all(|node| node.get("thread").is_none()));
    let threads = reports[1]["threads"].as_array().expect("threads").clone();
    assert!(nodes(&reports[1]).iter().all(|node| threads.iter().any(|thread| thread["id"] == node["thread"])));
    target.go();
    target.quit();
}

fn what_the_tool_does_is_logged_if_that_is_wanted(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let pid = target.process.pid().to_string();
    // Over a limit threads tell what they call in passing, and ask nothing.
    let arguments = ["profile", &pid, "--root", "Counting::root", "--calls", "1", "--bare", "off", "--gentle", "off"];
    let mut logged = |wanted| {
        let mut tool = Process::spawn(headwater().env("HEADWATER_LOG", wanted).args(arguments));
        tool.await_error_line("instrumented");
        target.go();
        let tool = tool.finish();
        assert!(tool.status.success(), "{:#?}", tool.stderr);
        tool.stderr.join("\n")
    };
    let [some, all, nothing] = ["debug", "headwater::session=trace", "off"].map(&mut logged);
    assert!(some.contains("DEBUG session: stop recording: ") && !some.contains(" TRACE "), "{some}");
    assert!(some.contains(" INFO  profiling::finishing: recorded for "), "{some}");
    assert!(all.contains(" TRACE session::questions: ") && !all.contains(" INFO  profiling"), "{all}");
    assert!(!nothing.contains("session::"), "{nothing}");
    target.quit();
}
