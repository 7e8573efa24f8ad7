//! `headwater region`: methods and lines are timed as often as the program runs them, and in no other way disturbed.

use std::path::Path;

use headwater_tests::{Jdk, Process, Scratch, compile, counts_of_target, headwater, java, read_report, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        regions_are_counted_as_the_program_counts_them,
        so_many_calls_are_timed_and_no_more,
    }
    first_jdk {
        what_cannot_be_timed_is_said,
    }
}

/// The line of the target's source with this comment.
fn line(comment: &str) -> usize {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets/Regions.java");
    let source = std::fs::read_to_string(source).expect("the target's source");
    let ending = format!("// {comment}");
    source.lines().position(|line| line.ends_with(&ending)).expect("a line with this comment") + 1
}

fn lines(first: &str, last: &str) -> String {
    format!("Regions:{}-{}", line(first), line(last))
}

/// Times regions while the target goes so often; the report and the target's own counts. Without a profiler its output is the same.
fn measure(
    jdk: &Jdk,
    regions: &[&str],
    options: &[&str],
    rounds: usize,
) -> (Value, std::collections::BTreeMap<String, u64>) {
    let classes = compile(jdk, &["Regions.java"]);
    let output = |target: &mut Process| {
        for _ in 0..rounds {
            target.say("go");
            target.await_line("DONE");
        }
    };
    let mut alone = java(jdk, &classes, &[], &["Regions"]);
    alone.await_line("READY");
    output(&mut alone);
    alone.say("quit");
    let expected = alone.finish().stdout;

    let mut target = java(jdk, &classes, &[], &["Regions"]);
    target.await_line("READY");
    let scratch = Scratch::new("report");
    let file = scratch.file("times.json");
    let mut command = headwater();
    command.arg("region").arg(target.pid().to_string()).args(regions).arg("-o").arg(&file).args(options);
    let mut tool = Process::spawn(&mut command);
    for _ in regions {
        tool.await_error_line("instrumented");
    }
    output(&mut target);
    if options.is_empty() {
        tool.signal(rustix::process::Signal::INT);
    }
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    target.say("quit");
    let target = target.finish();
    assert!(target.status.success(), "JDK {}: {:#?}", jdk.version, target.stderr);
    assert_eq!(target.stdout, expected, "JDK {}", jdk.version);
    let report = read_report(&file);
    assert_eq!(report["schema"], "headwater-region/1");
    assert_eq!(report["events"]["lost"], 0);
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(0), "{}", report["warnings"]);
    (report, counts_of_target(&target.stdout))
}

/// A region's only method.
fn row<'a>(report: &'a Value, region: &str) -> &'a Value {
    let regions = report["regions"].as_array().expect("regions");
    let found = regions.iter().find(|found| found["region"] == region).expect("the region");
    let methods = found["methods"].as_array().expect("methods");
    assert_eq!(methods.len(), 1, "{found}");
    &methods[0]
}

fn number(row: &Value, field: &str) -> f64 {
    row[field].as_f64().unwrap_or_else(|| panic!("{field} of {row}"))
}

fn regions_are_counted_as_the_program_counts_them(jdk: &Jdk) {
    let loop_lines = lines("loop begins", "loop ends");
    let whole_loop = lines("whole loop begins", "whole loop ends");
    let throwing = lines("throwing begins", "throwing ends");
    let caught = format!("Regions:{}", line("caught"));
    let lambda = format!("Regions:{}", line("lambda"));
    let regions = [
        loop_lines.as_str(),
        &whole_loop,
        &throwing,
        &caught,
        &lambda,
        "Regions::recurse",
        "Regions::outer(int)",
        "Regions::inner",
        "Regions::elsewhere",
    ];
    let (report, theirs) = measure(jdk, &regions, &[], 5);
    for (region, theirs_name) in regions.iter().zip([
        "loop",
        "whole loop",
        "throwing",
        "caught",
        "lambda",
        "recursive",
        "outer",
        "inner",
        "threads",
    ]) {
        let row = row(&report, region);
        assert_eq!(row["count"].as_u64(), Some(theirs[theirs_name]), "JDK {}, {region}: {row}", jdk.version);
        let ordered = ["min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"].map(|field| number(row, field));
        assert!(ordered.is_sorted(), "{row}");
        let (mean, total) = (number(row, "mean_ns"), number(row, "total_ns"));
        assert!((ordered[0]..=ordered[4]).contains(&mean), "{row}");
        assert!((total - mean * number(row, "count")).abs() <= 1.0, "{row}");
    }
}

fn so_many_calls_are_timed_and_no_more(jdk: &Jdk) {
    let (report, theirs) = measure(jdk, &["Regions::outer"], &["--calls", "30"], 3);
    assert_eq!(theirs["outer"], 60);
    assert_eq!(row(&report, "Regions::outer")["count"], 30, "JDK {}", jdk.version);
}

fn what_cannot_be_timed_is_said(jdk: &Jdk) {
    let classes = compile(jdk, &["Regions.java"]);
    let mut target = java(jdk, &classes, &[], &["Regions"]);
    target.await_line("READY");
    let pid = target.pid().to_string();
    for (regions, code, message) in [
        (&["Regions:60000"][..], 4, "has no code of these lines"),
        (&["Regins::go"], 4, "no loaded class matches"),
        (&["Regions::gone"], 4, "Regions::go"),
        (&["Regions:10-20", "Regions:15-30"], 2, "overlap"),
        (&["Regions:20-10"], 2, "write 10-20"),
    ] {
        let output = run_headwater(&[&["region", &pid], regions, &["-d", "1s"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{regions:?}: {said}");
        assert!(said.contains(message), "{regions:?}: {said}");
    }
    target.say("quit");
    assert!(target.finish().status.success());
}
