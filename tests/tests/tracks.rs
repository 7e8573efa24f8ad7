//! What happened to the whole JVM, and when: from a profile, from samples, and from a recording that the JVM made by itself.

use headwater_tests::{Jdk, Process, Scratch, compile, headwater, java, profile, read_report, run_headwater};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    since(17) {
        classes_and_hotswaps_of_a_profile_have_their_time,
        collections_are_known_of_samples_and_of_recordings,
    }
}

fn track<'a>(report: &'a Value, id: &str) -> &'a [Value] {
    let tracks = report["tracks"].as_array().unwrap_or_else(|| panic!("tracks: {report:#}"));
    let track = tracks.iter().find(|track| track["id"] == id).unwrap_or_else(|| panic!("{id}: {tracks:#?}"));
    track["slices"].as_array().expect("slices")
}

fn report(out: &Scratch, file: &str) -> Value {
    let json = out.file("report.json");
    let written = run_headwater(&["report", file, "-o", &json.to_string_lossy()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    read_report(&json)
}

fn classes_and_hotswaps_of_a_profile_have_their_time(jdk: &Jdk) {
    let classes = compile(jdk, &["Tracked.java"]);
    let mut target = java(jdk, &classes, &[], &["Tracked"]);
    target.await_line("READY");
    let out = Scratch::new("tracks");
    let file = out.file("profile.hw").to_string_lossy().into_owned();
    let tool = profile(&target, &["--root", "Tracked::root", "--calls", "1", "--count", "classes", "-o", &file]);
    target.say("go");
    target.await_line("DONE");
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    target.say("quit");
    assert!(target.finish().status.success(), "JDK {}", jdk.version);
    let report = report(&out, &file);
    let loaded = track(&report, "class-loads");
    assert_eq!(
        loaded.iter().filter(|slice| slice["label"] == "Tracked$Late").count(),
        1,
        "JDK {}: {loaded:#?}",
        jdk.version
    );
    let duration = report["duration_ns"].as_i64().expect("a duration");
    assert!(
        loaded.iter().all(|slice| (0..=duration).contains(&slice["start_ns"].as_i64().expect("a time"))),
        "{loaded:#?}"
    );
    let hotswaps = track(&report, "hotswaps");
    assert_eq!(hotswaps.len() as u64, report["hotswap"]["batches"].as_u64().expect("batches"));
    // The root had its probes before anything was recorded.
    assert!(hotswaps[0]["start_ns"].as_i64().is_some_and(|ns| ns < 0), "JDK {}: {hotswaps:#?}", jdk.version);
    let sum = |place: usize| hotswaps.iter().filter_map(|slice| slice["amounts"][place].as_u64()).sum::<u64>();
    assert_eq!(
        [sum(0), sum(1)],
        ["pause_ns_total", "classes"].map(|of| report["hotswap"][of].as_u64().expect("a sum"))
    );
}

fn collections_are_known_of_samples_and_of_recordings(jdk: &Jdk) {
    let classes = compile(jdk, &["Tracked.java"]);
    let out = Scratch::new("tracks");
    let recording = out.file("own.jfr").to_string_lossy().into_owned();
    let start = format!("-XX:StartFlightRecording=filename={recording},settings=profile");
    let mut target = java(jdk, &classes, &[&start], &["Tracked"]);
    target.await_line("READY");
    let file = out.file("samples.hw").to_string_lossy().into_owned();
    let pid = target.pid().to_string();
    let mut tool = Process::spawn(headwater().args(["sample", &pid, "-d", "1h", "-o", &file]));
    tool.await_error_line("sampling ");
    target.say("collect");
    target.await_line("COLLECTED");
    tool.signal(Signal::INT);
    let tool = tool.finish();
    target.say("quit");
    assert!(target.finish().status.success(), "JDK {}", jdk.version);
    for file in [&file, &recording] {
        let report = report(&out, file);
        let slices = track(&report, "whole-collections");
        let asked_for = |slice: &&Value| slice["label"] == "System.gc()" && slice["by"] != "";
        let Some(slice) = slices.iter().find(asked_for) else {
            panic!("JDK {}, {file}: {:#?}, {slices:#?}", jdk.version, tool.stderr)
        };
        let amounts: Vec<u64> = (0..4).filter_map(|place| slice["amounts"][place].as_u64()).collect();
        let [stopped, longest, before, after] = amounts[..] else { panic!("JDK {}: {slice}", jdk.version) };
        assert!(stopped >= longest && longest > 0 && before >= after && after > 0, "JDK {}: {slice}", jdk.version);
    }
}
