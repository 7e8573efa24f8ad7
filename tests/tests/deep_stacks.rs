//! Stacks so deep that the JVM would take hundreds of megabytes to tell of them.

use headwater_tests::{Jdk, Launched, Profile, calls_by_method};

headwater_tests::trials! {
    each_jdk {
        an_open_root_below_a_very_deep_stack_stays_open_and_takes_no_memory,
    }
}

/// HotSpot takes kilobytes for each call of a stack that it is asked for.
fn an_open_root_below_a_very_deep_stack_stays_open_and_takes_no_memory(jdk: &Jdk) {
    const MOST_KIB: u64 = 160 << 10;
    const TEXT: &str = "
        class Main {
            static int sum;
            public static void main(String[] args) throws Exception {
                Thread thread = new Thread(null, Main::serve, \"serving\", 1L << 30);
                thread.start();
                thread.join();
            }
            static void serve() {
                System.out.println(\"READY\");
                while (read() != 'q') { }
            }
            static int read() {
                try {
                    int c = System.in.read();
                    if (c == 'd') dive(60_000);
                    if (c == 'a') after();
                    if (c == '\\n') System.out.println(\"DONE\");
                    return c;
                } catch (java.io.IOException e) {
                    return 'q';
                }
            }
            static int dive(int n) { return n == 0 ? stay() : dive(n - 1) + 1; }
            static void after() { sum++; }
            static int stay() {
                for (long end = System.nanoTime() + 1_000_000_000L; System.nanoTime() < end;) sum++;
                return sum;
            }
        }";
    let options = ["-Xint", "-Xmx64m", "-XX:+AlwaysPreTouch"];
    let mut target = Launched::of_text(jdk, TEXT, &options, &["Main"]);
    let profile = Profile::start(&target, &["--root", "Main::serve", "--bare", "off"]);
    let most = |target: &Launched| {
        let status = std::fs::read_to_string(format!("/proc/{}/status", target.pid())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a kernel that tells");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    };
    let before = most(&target);
    target.say("d");
    target.await_line("DONE");
    let grown = most(&target) - before;
    target.say("a");
    target.await_line("DONE");
    let report = profile.interrupted();
    target.quit_by("q");
    let calls = calls_by_method(&report);
    let of = |method| calls.get(method).copied();
    assert_eq!((of("Main.dive(I)I"), of("Main.after()V")), (Some(60_001), Some(1)), "JDK {}: {calls:?}", jdk.version);
    assert_eq!(report["roots"][0]["open"]["still_open"], 1, "JDK {}", jdk.version);
    assert!(grown < MOST_KIB, "JDK {}: {grown} KiB", jdk.version);
}
