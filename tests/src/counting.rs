//! The target that most tests of sessions use.

use serde_json::Value;

use crate::{Jdk, Process, Scratch, compile, java};

/// The target `Counting`, which counts its own calls.
#[derive(Debug)]
pub struct Target {
    jdk: Jdk,
    _classes: Scratch,
    /// Its JVM.
    pub process: Process,
}

impl Target {
    /// Starts it, and waits until it listens.
    pub fn start(jdk: &Jdk) -> Target {
        Target::start_with(jdk, &[], "Counting")
    }

    /// The same, with options for the JVM, by a class that may do something before.
    pub fn start_with(jdk: &Jdk, options: &[&str], main: &str) -> Target {
        let classes = compile(jdk, &["Counter.java", "Counting.java", "LeftBehind.java"]);
        let mut process = java(jdk, &classes, options, &[main]);
        process.await_line("READY");
        Target { jdk: jdk.clone(), _classes: classes, process }
    }

    /// The root runs once; what the target says of it.
    pub fn go(&mut self) -> String {
        self.process.say("go");
        self.process.await_line("RESULT ")
    }

    /// Ends it; it must be unharmed.
    pub fn quit(mut self) {
        self.process.say("quit");
        let finished = self.process.finish();
        assert!(finished.status.success(), "JDK {}: {:#?}", self.jdk.version, finished.stderr);
        assert!(finished.stdout.iter().any(|line| line == "BYE"));
    }
}

/// What the target says of so many runs of the root, without a profiler.
pub fn undisturbed(jdk: &Jdk, times: usize) -> Vec<String> {
    let mut target = Target::start(jdk);
    let results = (0..times).map(|_| target.go()).collect();
    target.quit();
    results
}

/// Calls of a report's first root.
pub fn root_calls(report: &Value) -> u64 {
    report["roots"][0]["calls"].as_u64().expect("calls")
}
