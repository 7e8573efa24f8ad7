//! Roots that threads are in already when the tool attaches: those calls count as open, what they call is recorded in its place,
//! and their return is noticed.

use headwater_tests::{Jdk, Launched, Process, Profile, Scratch, compile_text, java, profile, read_report};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        what_an_open_root_calls_is_recorded_in_its_place_and_its_return_is_noticed,
        main_stays_open_and_has_its_time,
        a_recursion_below_an_open_call_is_counted_to_its_end,
        every_level_of_an_open_recursion_is_closed_at_its_time,
        open_calls_are_seen_through_code_that_is_not_shown_in_several_threads_and_roots,
        what_is_open_when_recording_ends_has_not_returned,
        whole_calls_are_counted_alone_when_a_number_of_them_is_wanted,
        waiting_and_computing_are_told_apart_below_open_calls,
        a_root_that_runs_since_before_is_found_whatever_was_profiled_before,
        a_root_that_was_found_running_and_returns_is_entered_anew_by_its_probes,
        an_open_root_that_calls_another_without_a_pause_stays_open,
    }
}

const LOOP: &str = "
    class Main {
        static int sum;
        public static void main(String[] args) throws Exception {
            serve();
            outside();
            System.out.println(\"OUTSIDE\");
            serve();
            outside();
            System.out.println(\"TWICE\");
            while (System.in.read() > 0) { }
        }
        static void serve() throws Exception {
            inner();
            after();
        }
        static void inner() throws Exception {
            System.out.println(\"READY\");
            for (int c; (c = System.in.read()) > 0 && c != '.';) {
                try {
                    if (c == 'g') handle();
                    if (c == 't') fails();
                } catch (IllegalStateException e) {
                    sum++;
                }
                if (c == '\\n') System.out.println(\"DONE\");
            }
        }
        static void handle() { sum += deeper(2); }
        static int deeper(int n) { return n == 0 ? 1 : deeper(n - 1); }
        static void fails() { throw new IllegalStateException(); }
        static void after() { sum++; }
        static void outside() { sum += deeper(5); }
    }";

/// A program, a profile of it that begins at its first `READY`, a dialogue, and the report. `end` is what ends the profile.
fn profiled(jdk: &Jdk, text: &str, options: &[&str], dialogue: impl Fn(&mut Process)) -> Value {
    let mut target = Launched::of_text(jdk, text, &[], &["Main"]);
    let profile = Profile::start(&target, options);
    dialogue(&mut target);
    let report = profile.interrupted();
    target.quit_by("q");
    assert_eq!(report["events"]["healed"], 0, "JDK {}", jdk.version);
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(0), "JDK {}: {}", jdk.version, report["warnings"]);
    report
}

/// The tree's calls, a line a context: `main/serve 1`.
fn contexts(report: &Value) -> Vec<String> {
    let nodes = report["nodes"].as_array().expect("nodes");
    let mut paths: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for node in nodes {
        let name = node["method"].as_str().expect("a name");
        let name = name.split('(').next().unwrap_or(name);
        let name = name.rsplit('.').next().unwrap_or(name);
        let path = match node["parent"].as_u64() {
            Some(parent) => format!("{}/{name}", paths[parent as usize]),
            None => name.to_owned(),
        };
        lines.push(format!("{path} {}", node["calls"]));
        paths.push(path);
    }
    lines.sort();
    lines
}

fn what_an_open_root_calls_is_recorded_in_its_place_and_its_return_is_noticed(jdk: &Jdk) {
    let report = profiled(jdk, LOOP, &["--root", "Main::serve"], |target| {
        target.say("ggtg");
        target.await_line("DONE");
        target.say("..");
        // What is called by methods of the graph when the root has returned is not below it.
        target.await_line("OUTSIDE");
        target.await_line("TWICE");
    });
    assert_eq!(
        contexts(&report),
        [
            "serve 1",
            "serve/after 2",
            "serve/inner 1",
            "serve/inner/fails 1",
            "serve/inner/handle 3",
            "serve/inner/handle/deeper 3",
            "serve/inner/handle/deeper/deeper 3",
            "serve/inner/handle/deeper/deeper/deeper 3",
        ],
        "JDK {}",
        jdk.version
    );
    let root = &report["roots"][0];
    assert_eq!(
        (&root["calls"], &root["open"]["threads"], &root["open"]["still_open"]),
        (&1.into(), &1.into(), &0.into())
    );
}

fn main_stays_open_and_has_its_time(jdk: &Jdk) {
    let report = profiled(jdk, LOOP, &["--root", "Main::main"], |target| {
        target.say("gg");
        target.await_line("DONE");
    });
    assert_eq!(
        contexts(&report),
        [
            "main 0",
            "main/serve 0",
            "main/serve/inner 0",
            "main/serve/inner/handle 2",
            "main/serve/inner/handle/deeper 2",
            "main/serve/inner/handle/deeper/deeper 2",
            "main/serve/inner/handle/deeper/deeper/deeper 2",
        ],
        "JDK {}",
        jdk.version
    );
    let root = &report["roots"][0];
    assert_eq!(
        (&root["calls"], &root["open"]["threads"], &root["open"]["still_open"]),
        (&0.into(), &1.into(), &1.into())
    );
    // It has been inside all the time, of which its waits for the profiler are not its own: in so short a profile they may be most.
    let time = |of: &Value, name: &str| of[name].as_u64().expect("a time");
    let waits: u64 = report["waits"].as_array().expect("waits").iter().map(|wait| time(wait, "duration_ns")).sum();
    assert!((time(&report["nodes"][0], "total_ns") + waits) * 2 > time(&report, "duration_ns"), "{report:#}");
}

fn a_recursion_below_an_open_call_is_counted_to_its_end(jdk: &Jdk) {
    let text = "
        class Main {
            static int sum;
            public static void main(String[] args) throws Exception {
                System.out.println(\"READY\");
                for (int c; (c = System.in.read()) > 0;) {
                    if (c == 'g') sum += fibonacci(3);
                    if (c == '\\n') System.out.println(\"DONE\");
                }
            }
            static int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
        }";
    let report = profiled(jdk, text, &["--root", "Main::main"], |target| {
        target.say("gg");
        target.await_line("DONE");
    });
    assert_eq!(
        contexts(&report),
        ["main 0", "main/fibonacci 2", "main/fibonacci/fibonacci 4", "main/fibonacci/fibonacci/fibonacci 4"],
        "JDK {}",
        jdk.version
    );
}

fn every_level_of_an_open_recursion_is_closed_at_its_time(jdk: &Jdk) {
    let text = "
        class Main {
            static int sum;
            public static void main(String[] args) throws Exception {
                walk(2);
                System.out.println(\"OUT\");
                while (System.in.read() > 0) { }
            }
            static void walk(int n) throws Exception {
                if (n > 0) {
                    walk(n - 1);
                } else {
                    System.out.println(\"READY\");
                    while (System.in.read() != '.') { }
                }
                leave();
                if (n == 1) walk(-1);
            }
            static void leave() { sum++; }
        }"
    .replace("if (n > 0) {", "if (n == -1) return;\nif (n > 0) {");
    let report = profiled(jdk, &text, &["--root", "Main::walk"], |target| {
        target.say(".");
        target.await_line("OUT");
    });
    assert_eq!(
        contexts(&report),
        ["walk 0", "walk/leave 1", "walk/walk 0", "walk/walk/leave 1", "walk/walk/walk 1", "walk/walk/walk/leave 1"],
        "JDK {}",
        jdk.version
    );
}

fn open_calls_are_seen_through_code_that_is_not_shown_in_several_threads_and_roots(jdk: &Jdk) {
    let text = "
        import java.util.List;
        import java.util.concurrent.*;
        class Main {
            static final BlockingQueue<Integer> work = new LinkedBlockingQueue<>();
            static final CountDownLatch ready = new CountDownLatch(2);
            static volatile int sum;
            public static void main(String[] args) throws Exception {
                for (int i = 0; i < 2; i++) {
                    Thread thread = new Thread(Main::accept, \"acceptor-\" + i);
                    thread.setDaemon(true);
                    thread.start();
                }
                ready.await();
                System.out.println(\"READY\");
                for (int c; (c = System.in.read()) != 'q';) {
                    if (c == 'g') work.put(1);
                }
            }
            static void accept() { List.of(1).forEach(Main::each); }
            static void each(int i) {
                try {
                    for (;;) { new Turn().take(); }
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
            static class Turn {
                void take() throws InterruptedException {
                    ready.countDown();
                    int number = work.take();
                    handle(number);
                    synchronized (Main.class) { sum++; System.out.println(\"HANDLED\"); }
                }
                static void handle(int number) { }
            }
        }";
    let options = ["--root", "Main::accept", "--root", "Main$Turn::take"];
    let report = profiled(jdk, text, &options, |target| {
        target.say("gggggg");
        (0..6).for_each(|_| drop(target.await_line("HANDLED")));
    });
    let found = contexts(&report);
    let calls = |context: &str| -> u64 {
        let line = found.iter().find_map(|line| line.strip_prefix(context)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("JDK {}: {context}: {found:#?}", jdk.version)).parse().expect("a number")
    };
    assert_eq!(calls("accept"), 0);
    assert_eq!(calls("accept/each"), 0);
    assert_eq!(calls("accept/each/take/handle"), 6, "{found:#?}");
    for root in [0, 1] {
        assert_eq!(report["roots"][root]["calls"], 0);
        assert_eq!(report["roots"][root]["open"]["threads"], 2);
    }
    assert_eq!(report["roots"][0]["open"]["still_open"], 2);
    let names: Vec<&str> =
        report["threads"].as_array().expect("threads").iter().filter_map(|thread| thread["name"].as_str()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("acceptor-")), "{names:?}");
}

fn what_is_open_when_recording_ends_has_not_returned(jdk: &Jdk) {
    let text = "
        class Main {
            static volatile boolean over;
            public static void main(String[] args) throws Exception {
                for (int i = 0; i < 2; i++) new Thread(Main::accept).start();
                while (!Turn.taken) Thread.onSpinWait();
                System.out.println(\"READY\");
                for (int c; (c = System.in.read()) != 'q';) if (c == 'g') System.out.println(\"GOING\");
                over = true;
            }
            // Open calls that make others without a pause may be recorded in part.
            static void accept() { for (; !over; java.util.concurrent.locks.LockSupport.parkNanos(1_000_000)) new Turn(); }
            static class Turn {
                static volatile boolean taken;
                Turn() { taken = true; }
            }
        }";
    let report = profiled(jdk, text, &["--root", "Main::accept"], |target| {
        target.say("g");
        target.await_line("GOING");
    });
    assert_eq!(report["roots"][0]["open"]["threads"], 2, "JDK {}", jdk.version);
    assert_eq!(report["roots"][0]["open"]["still_open"], 2, "JDK {}", jdk.version);
}

fn whole_calls_are_counted_alone_when_a_number_of_them_is_wanted(jdk: &Jdk) {
    let classes = compile_text(jdk, LOOP);
    let mut target = java(jdk, &classes, &[], &["Main"]);
    target.await_line("READY");
    let out = Scratch::new("report");
    let file = out.file("profile.json");
    let tool = profile(&target, &["--root", "Main::serve", "--calls", "1", "-o", &file.to_string_lossy()]);
    target.say("gg.");
    target.await_line("OUTSIDE");
    target.say("g.");
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    target.say("q");
    assert!(target.finish().status.success());
    let report = read_report(&file);
    assert_eq!(report["roots"][0]["calls"], 1);
    assert_eq!(report["roots"][0]["open"]["threads"], 0);
    assert!(contexts(&report).contains(&"serve/inner/handle 1".to_owned()), "{:#?}", contexts(&report));
}

fn waiting_and_computing_are_told_apart_below_open_calls(jdk: &Jdk) {
    let text = "
        class Main {
            static double sum;
            public static void main(String[] args) throws Exception { serve(); }
            static void serve() throws Exception {
                System.out.println(\"READY\");
                for (int c; (c = System.in.read()) > 0 && c != 'q';) {
                    if (c == 'g') handle();
                }
            }
            static void handle() {
                for (long end = System.nanoTime() + 1_000_000_000L; System.nanoTime() < end;) computes();
                System.out.println(\"DONE\");
            }
            static void computes() { for (int i = 0; i < 10_000; i++) sum += Math.sqrt(i); }
        }";
    let report = profiled(jdk, text, &["--root", "Main::serve", "--min", "0"], |target| {
        target.say("g");
        target.await_line("DONE");
    });
    let nodes = report["nodes"].as_array().expect("nodes");
    let samples: u64 = nodes.iter().filter_map(|node| node["cpu_samples"].as_u64()).sum();
    assert!(samples > 0, "JDK {}: {nodes:#?}", jdk.version);
}

/// A server: a loop that accepts, and what it calls for each letter.
const SERVE: &str = "
    class Main {
        static int sum;
        public static void main(String[] args) throws Exception {
            System.out.println(\"READY\");
            new Main().accept();
        }
        void accept() throws Exception {
            for (int c; (c = System.in.read()) > 0;) {
                if (c == 'g') handle();
                if (c == '\\n') System.out.println(\"DONE\");
                if (c == 'q') return;
            }
        }
        void handle() { sum += work(sum); }
        int work(int of) { return of / 2 + 1; }
    }";

fn a_root_that_runs_since_before_is_found_whatever_was_profiled_before(jdk: &Jdk) {
    const ORDERS: [&[&str]; 3] = [
        &["Main::handle", "Main::accept"],
        &["Main::accept", "Main::handle", "Main::accept", "Main::accept"],
        &["Main::work", "Main::handle", "Main::main", "Main::accept"],
    ];
    for order in ORDERS {
        let classes = compile_text(jdk, SERVE);
        let mut target = java(jdk, &classes, &[], &["Main"]);
        target.await_line("READY");
        for root in order {
            let out = Scratch::new("report");
            let file = out.file("profile.json");
            let tool = profile(&target, &["--root", root, "-o", &file.to_string_lossy()]);
            target.say("ggg");
            target.await_line("DONE");
            tool.signal(rustix::process::Signal::INT);
            let tool = tool.finish();
            assert!(tool.status.success(), "JDK {}, {root} of {order:?}: {:#?}", jdk.version, tool.stderr);
            let expected: &[&str] = match *root {
                "Main::work" => &["work 3"],
                "Main::handle" => &["handle 3", "handle/work 3"],
                "Main::accept" => &["accept 0", "accept/handle 3", "accept/handle/work 3"],
                _ => &["main 0", "main/accept 0", "main/accept/handle 3", "main/accept/handle/work 3"],
            };
            assert_eq!(contexts(&read_report(&file)), expected, "JDK {}, {root} of {order:?}", jdk.version);
        }
        target.say("q");
        assert!(target.finish().status.success());
    }
}

fn a_root_that_was_found_running_and_returns_is_entered_anew_by_its_probes(jdk: &Jdk) {
    let text = LOOP.replace(
        "serve();\n            outside();\n            System.out.println(\"TWICE\");",
        "serve();\n            System.out.println(\"TWICE\");",
    );
    let classes = compile_text(jdk, &text);
    let mut target = java(jdk, &classes, &[], &["Main"]);
    target.await_line("READY");
    let earlier = profile(&target, &["--root", "Main::handle"]);
    target.say("g");
    target.await_line("DONE");
    earlier.signal(rustix::process::Signal::INT);
    assert!(earlier.finish().status.success());
    let out = Scratch::new("report");
    let file = out.file("profile.json");
    let tool = profile(&target, &["--root", "Main::serve", "-o", &file.to_string_lossy()]);
    target.say("gg");
    target.await_line("DONE");
    target.say(".g");
    target.await_line("OUTSIDE");
    target.await_line("DONE");
    target.say(".");
    target.await_line("TWICE");
    tool.signal(rustix::process::Signal::INT);
    assert!(tool.finish().status.success());
    let report = read_report(&file);
    let calls: Vec<String> = contexts(&report).into_iter().filter(|line| !line.contains("deeper")).collect();
    assert_eq!(calls, ["serve 1", "serve/after 2", "serve/inner 1", "serve/inner/handle 3"], "JDK {}", jdk.version);
    let root = &report["roots"][0];
    assert_eq!((&root["open"]["threads"], &root["open"]["still_open"]), (&1.into(), &0.into()));
    target.say("q");
    assert!(target.finish().status.success());
}

/// Two threads that call a method as fast as they can, and count that.
const WITHOUT_PAUSE: &str = "
    class Main {
        static volatile boolean over;
        static final java.util.concurrent.atomic.LongAdder STEPS = new java.util.concurrent.atomic.LongAdder();
        public static void main(String[] args) throws Exception {
            Thread[] threads = { new Thread(Main::loop), new Thread(Main::loop) };
            for (Thread thread : threads) thread.start();
            await(100_000);
            System.out.println(\"READY\");
            for (int c; (c = System.in.read()) != 'q';) {
                if (c != '\\n') {
                    await(2_000);
                    System.out.println(\"DONE\");
                }
            }
            over = true;
            for (Thread thread : threads) thread.join();
        }
        static void await(long steps) throws Exception {
            for (long until = STEPS.sum() + steps; STEPS.sum() < until;) Thread.sleep(1);
        }
        static void loop() {
            while (!over) step();
        }
        static void step() { STEPS.increment(); }
    }";

fn an_open_root_that_calls_another_without_a_pause_stays_open(jdk: &Jdk) {
    // Of code that is compiled at once calls come soonest, before the threads know that they are in one.
    let mut target = Launched::of_text(jdk, WITHOUT_PAUSE, &["-XX:TieredStopAtLevel=1"], &["Main"]);
    let profile = Profile::start(&target, &["--root", "Main::loop", "--root", "Main::step", "--threads"]);
    target.say("g");
    target.await_line("DONE");
    let report = profile.interrupted();
    target.quit_by("q");
    let open = &report["roots"][0]["open"];
    assert_eq!((&open["threads"], &open["still_open"]), (&2.into(), &2.into()), "JDK {}: {open}", jdk.version);
    assert_eq!(report["events"]["healed"], 0, "JDK {}", jdk.version);
    let below = report["nodes"].as_array().expect("nodes").iter().filter(|node| !node["parent"].is_null());
    let steps: u64 = below.filter_map(|step| step["calls"].as_u64()).sum();
    assert!(steps >= 2_000, "JDK {}: {steps}", jdk.version);
}
