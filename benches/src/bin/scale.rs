//! How the cost of a profile grows with what there is in the target: classes, loaders of one class name, methods, lambdas, threads; all there before
//! (standing), or more with each call of the root (coming). What is measured is the time from the tool's start to its end, less what was
//! to be recorded. Four times as many of something should take four times as long, not sixteen.
//!
//! Arguments pick from all rows: versions of JDKs, dimensions, `standing` or `coming`; a number is how many there are in the larger program.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use headwater_benches::{compile, headwater, is_chosen};
use headwater_tests::{Jdk, Process, Scratch, jdks};

const DIMENSIONS: [&str; 5] = ["classes", "loaders", "methods", "lambdas", "threads"];
const MODES: [&str; 2] = ["standing", "coming"];
/// How many there are in the larger program, and how much smaller the other is.
const MOST: usize = 100_000;
const MOST_THREADS: usize = 10_000;
const SMALLER: usize = 4;
/// With each call of the root come so many.
const MORE: usize = 100;
/// How long is recorded where all are there before.
const RECORDED: Duration = Duration::from_secs(2);
/// What takes longer than that has no figure.
const LONGEST: Duration = Duration::from_secs(300);

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let most = chosen.iter().find_map(|argument| argument.parse().ok().filter(|number| *number >= 1_000));
    let jdks = jdks();
    let versions: Vec<String> = jdks.iter().map(|jdk| jdk.version.to_string()).collect();
    println!("| JDK | dimension | | N | seconds | 4 N | seconds | times as long |");
    println!("|---|---|---|---|---|---|---|---|");
    for (jdk, _) in jdks.iter().zip(&versions).filter(|(_, version)| is_chosen(&chosen, &versions, version)) {
        let program = compile(jdk, "Scale.java");
        for dimension in DIMENSIONS.into_iter().filter(|dimension| is_chosen(&chosen, &DIMENSIONS, dimension)) {
            for mode in MODES.into_iter().filter(|mode| is_chosen(&chosen, &MODES, mode)) {
                let default = if dimension == "threads" { MOST_THREADS } else { MOST };
                let larger = most.unwrap_or(default);
                let smaller = larger / SMALLER;
                let [few, many] = [smaller, larger].map(|count| measure(jdk, &program, dimension, mode, count));
                let seconds = |time: Option<Duration>| {
                    time.map_or(format!("> {}", LONGEST.as_secs()), |time| format!("{:.1}", time.as_secs_f64()))
                };
                let times = few
                    .zip(many)
                    .map_or(String::new(), |(few, many)| format!("{:.1}", many.as_secs_f64() / few.as_secs_f64()));
                println!(
                    "| {} | {dimension} | {mode} | {smaller} | {} | {larger} | {} | {times} |",
                    jdk.version,
                    seconds(few),
                    seconds(many)
                );
            }
        }
    }
}

/// What a profile takes beside what is recorded; `None` if it takes too long.
fn measure(jdk: &Jdk, program: &Scratch, dimension: &str, mode: &str, count: usize) -> Option<Duration> {
    let mut java = Command::new(jdk.program("java"));
    java.args(["-XX:+UseSerialGC", "-Xmx2g", "-cp"]).arg(program.path()).args(["Scale", dimension, mode]);
    let mut target = Process::spawn(java.arg(count.to_string()));
    target.await_line("READY");
    let out = Scratch::new("report");
    let is_coming = mode == "coming";
    let root = if dimension == "threads" { "Scale::rootOfThread" } else { "Scale::root" };
    let calls = if dimension == "threads" { count } else { count / MORE };
    let mut tool = Command::new(headwater());
    tool.args(["profile", &target.pid().to_string(), "--root", root, "--bare", "off", "--format", "json", "-o"])
        .arg(out.file("report.json"))
        .args(if is_coming {
            ["--calls".to_owned(), calls.to_string()]
        } else {
            ["-d".to_owned(), format!("{}s", RECORDED.as_secs())]
        })
        .stderr(Stdio::null());
    let start = Instant::now();
    let mut tool = tool.spawn().expect("headwater starts");
    loop {
        if let Some(status) = tool.try_wait().expect("it is ours") {
            let taken = start.elapsed();
            assert!(status.success(), "{status}");
            return Some(if is_coming { taken } else { taken.saturating_sub(RECORDED) });
        }
        if start.elapsed() > LONGEST {
            // It is ours, and has no children.
            let _ = tool.kill();
            let _ = tool.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
