//! `Workload.java`: a JVM that calls a root over and over, and says twice a second how long a call took.

use std::process::Command;

use headwater_tests::{Jdk, Process, Scratch};

/// A running workload.
#[derive(Debug)]
pub struct Target {
    /// The JVM.
    pub process: Process,
    /// Nanoseconds of two reads of the clock, as last said.
    pub clock_pair: f64,
}

impl Target {
    /// Starts the workload of this name.
    pub fn start(jdk: &Jdk, classes: &Scratch, workload: &str) -> Target {
        Target::started(jdk, classes, &[workload])
    }

    /// Starts one that reads the clock around each call, by its own code.
    pub fn start_timing_each(jdk: &Jdk, classes: &Scratch, workload: &str) -> Target {
        Target::started(jdk, classes, &[workload, "each"])
    }

    fn started(jdk: &Jdk, classes: &Scratch, arguments: &[&str]) -> Target {
        let mut java = Command::new(jdk.program("java"));
        java.args(["-XX:+UseSerialGC", "-cp"]).arg(classes.path()).arg("Workload").args(arguments);
        Target { process: Process::spawn(&mut java), clock_pair: f64::NAN }
    }

    /// Waits for so many rounds: nanoseconds a call in each.
    pub fn rounds(&mut self, count: usize) -> Vec<f64> {
        (0..count)
            .filter_map(|_| {
                let line = self.process.await_line("NS ");
                self.read(&line)
            })
            .collect()
    }

    /// The rounds that have come in meanwhile.
    pub fn pending(&mut self) -> Vec<f64> {
        let lines = self.process.pending_lines();
        lines.iter().filter_map(|line| self.read(line)).collect()
    }

    /// `NS <a call> CLOCK <two reads>`
    fn read(&mut self, line: &str) -> Option<f64> {
        let (call, clock) = line.strip_prefix("NS ")?.split_once(" CLOCK ")?;
        self.clock_pair = clock.parse().ok()?;
        call.parse().ok()
    }
}
