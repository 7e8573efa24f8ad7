//! Methods whose time is spent in native code, where the recorder's execution samples do not look.

use headwater_tests::{Jdk, Launched, Scratch, profile, read_report};

headwater_tests::trials! {
    each_jdk {
        what_calls_native_methods_has_its_time,
    }
}

/// Nine tenths and more of `job` are in the operating system's code, in `stat`.
const TEXT: &str = "
    class Main {
        static final java.io.File NONE = new java.io.File(\"/does/not/exist\");
        static long sum;
        public static void main(String[] args) throws Exception {
            Thread worker = new Thread(() -> { while (true) job(); });
            worker.setDaemon(true);
            worker.start();
            System.out.println(\"READY\");
            while (System.in.read() > 0) { }
        }
        static void job() {
            stat();
            math();
        }
        static void stat() { for (int i = 0; i < 500; i++) if (NONE.exists()) sum++; }
        static void math() { for (int i = 0; i < 10_000; i++) sum = sum * 31 + (sum >>> 7) + i; }
    }";

fn what_calls_native_methods_has_its_time(jdk: &Jdk) {
    let target = Launched::of_text(jdk, TEXT, &[], &["Main"]);
    let directory = Scratch::new("native-code");
    let report = directory.file("report.json");
    let report_path = report.to_str().expect("a path").to_owned();
    let arguments = ["--root", "Main::job", "-d", "3s", "--bare", "auto", "--format", "json", "-o", &report_path];
    let done = profile(&target, &arguments).finish();
    assert!(done.status.success(), "JDK {}: {:#?}", jdk.version, done.stderr);
    let report = read_report(&report);
    let total = |name: &str| {
        let nodes = report["nodes"].as_array().expect("nodes");
        let of = |node: &&serde_json::Value| node["method"].as_str().is_some_and(|method| method.starts_with(name));
        nodes.iter().find(of).and_then(|node| node["total_ns"].as_u64()).expect("it was called")
    };
    let [job, stat] = ["Main.job", "Main.stat"].map(total);
    assert!(2 * stat > job, "JDK {}: {stat} of {job} ns", jdk.version);
    target.quit_by("q");
}
