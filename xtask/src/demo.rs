//! `cargo xtask demo`: javac compiles this repository's Java sources over and over in one JVM; we attach to it, profile a
//! while, detach, and show the program's own throughput before, during and after.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::machine::{call, cargo, jdk, root};

/// The program says its rate once a second; when it says nothing for so long, something is wrong.
const PATIENCE: Duration = Duration::from_secs(60);
/// Seconds of warm-up, until the JIT compiler has seen most of javac.
const WARM_UP: usize = 25;
/// Seconds that each rate is taken over.
const SAMPLE: usize = 8;
/// Seconds after detaching until the rate is taken: what was thrown away by the JIT compiler is compiled again.
const RECOVERY: usize = 25;

pub(crate) fn run(pattern: &str, seconds: u32) -> Result<(), String> {
    let jdk = jdk()?;
    call(cargo().args(["build", "--release", "--package", "headwater"]))?;
    let work = root().join("target/demo");
    let classes = work.join("classes");
    let output = work.join("output");
    for directory in [&classes, &output] {
        std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    let source = root().join("tests/targets/CompileLoop.java");
    call(Command::new(jdk.join("bin/javac")).arg("-d").arg(&classes).arg(&source))?;

    eprintln!("demo: starting a JVM that compiles Java sources over and over, and letting it warm up for {WARM_UP} s");
    let mut target = Target::start(
        Command::new(jdk.join("bin/java"))
            .arg("-cp")
            .arg(&classes)
            .arg("CompileLoop")
            .arg(&output)
            .arg(root().join("tests/targets")),
    )?;
    target.rates(WARM_UP)?;
    let before = median(target.rates(SAMPLE)?);

    let binary = root().join("target/release/headwater");
    let (pid, duration) = (target.child.id().to_string(), format!("{seconds}s"));
    let arguments = ["profile", &pid, "--root", pattern, "--duration", &duration, "--min", "1", "--depth", "4"];
    eprintln!("demo: headwater {}", arguments.join(" "));
    target.forget_rates();
    call(Command::new(binary).args(arguments))?;
    // After the profile its root is timed without it.
    let half = seconds as usize / 2;
    let during = target.pending_rates().into_iter().skip(half).take(half).collect();
    target.rates(RECOVERY)?;
    let after = median(target.rates(SAMPLE)?);

    println!("\nthe program's own throughput, compilations per second (median of one-second samples):");
    println!("  before           {before:6.2}");
    println!("  while profiled   {:6.2}   (the second half: by then the call graph is found)", median(during));
    println!("  after            {after:6.2}   ({:.2} of before)", after / before);
    Ok(())
}

/// The program, which is ended with the demo.
struct Target {
    child: Child,
    lines: Receiver<String>,
}

impl Target {
    fn start(command: &mut Command) -> Result<Target, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let stdout = child.stdout.take().ok_or("the program has no output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Target { child, lines })
    }

    /// The next so many rates.
    fn rates(&mut self, count: usize) -> Result<Vec<f64>, String> {
        let mut rates = Vec::new();
        while rates.len() < count {
            let line = self.lines.recv_timeout(PATIENCE).map_err(|_| "the program has stopped".to_owned())?;
            rates.extend(rate(&line));
        }
        Ok(rates)
    }

    fn forget_rates(&mut self) {
        self.pending_rates();
    }

    /// The rates that have come in meanwhile.
    fn pending_rates(&mut self) -> Vec<f64> {
        self.lines.try_iter().filter_map(|line| rate(&line)).collect()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rate(line: &str) -> Option<f64> {
    line.strip_prefix("RATE ")?.parse().ok()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}
