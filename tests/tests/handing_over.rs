//! Work that is handed to other threads inside the root (`--follow threads`): every call of it counts, and hangs on the call that
//! handed it over; what was handed over outside does not show, on whatever thread it runs.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Launched, Profile, calls_by_method, counts_of_target};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        tasks_that_the_submitter_runs_itself_are_its_callees_and_dropped_ones_are_forgotten,
        nothing_is_followed_unless_the_user_wants_it,
        threads_belong_to_the_calls_that_start_them,
        tasks_belong_to_the_calls_that_submit_them,
        scheduled_and_periodic_tasks_belong_to_the_calls_that_schedule_them,
        fork_join_tasks_belong_to_the_calls_that_fork_them,
        stages_of_futures_belong_to_the_calls_that_add_them,
        tasks_that_run_after_the_root_has_returned_belong_to_it,
    }
    since(21) {
        virtual_threads_belong_to_the_calls_that_start_them,
    }
}

/// How often each scenario is run.
const TIMES: usize = 3;

struct Recorded {
    report: Value,
    counts: BTreeMap<String, u64>,
}

fn record(jdk: &Jdk, scenario: &str, options: &[&str]) -> Recorded {
    let mut target = Launched::of_files(jdk, &["Handing.java"], &[], &["Handing"]);
    let fixed = ["--root", "Handing::root", "--exclude", "Handing::hit"];
    let profile = Profile::start(&target, &[&fixed, options].concat());
    for _ in 0..TIMES {
        target.say(scenario);
        target.await_line("DONE");
    }
    let report = profile.interrupted();
    let target = target.quit();
    // Newer JVMs warn of every agent.
    let said: Vec<&String> = target.stderr.iter().filter(|line| !line.starts_with("WARNING:")).collect();
    assert!(said.is_empty(), "{scenario}, {options:?}: {said:#?}");
    Recorded { report, counts: counts_of_target(&target.stdout) }
}

fn counts_are_exact(jdk: &Jdk, scenario: &str) {
    for options in [&[][..], &["--clock", "tick", "--scheme", "a"]] {
        let Recorded { report, counts } = record(jdk, scenario, &[&["--follow", "threads"], options].concat());
        let what = format!("JDK {}, {scenario}, {options:?}", jdk.version);
        let ours = calls_by_method(&report);
        let found: BTreeMap<String, u64> =
            counts.keys().map(|method| (method.clone(), ours.get(method).copied().unwrap_or(0))).collect();
        assert_eq!(found, counts, "{what}");
        assert_eq!(ours.get("Handing$Work.outside()I"), None, "{what}: handed over outside");
        assert_eq!(report["events"]["healed"], 0, "{what}");
        assert_eq!(report["warnings"].as_array().map(Vec::len), Some(0), "{what}: {}", report["warnings"]);
        assert!(links(&report) > 0, "{what}");
    }
}

/// How many nodes were not called by their parents.
fn links(report: &Value) -> usize {
    report["nodes"].as_array().expect("nodes").iter().filter(|node| node["link"] == "thread").count()
}

fn threads_belong_to_the_calls_that_start_them(jdk: &Jdk) {
    counts_are_exact(jdk, "threads");
}

fn tasks_belong_to_the_calls_that_submit_them(jdk: &Jdk) {
    counts_are_exact(jdk, "executors");
}

fn scheduled_and_periodic_tasks_belong_to_the_calls_that_schedule_them(jdk: &Jdk) {
    counts_are_exact(jdk, "scheduled");
}

fn fork_join_tasks_belong_to_the_calls_that_fork_them(jdk: &Jdk) {
    counts_are_exact(jdk, "forkJoin");
}

fn stages_of_futures_belong_to_the_calls_that_add_them(jdk: &Jdk) {
    counts_are_exact(jdk, "futures");
}

fn tasks_that_run_after_the_root_has_returned_belong_to_it(jdk: &Jdk) {
    counts_are_exact(jdk, "late");
}

fn tasks_that_the_submitter_runs_itself_are_its_callees_and_dropped_ones_are_forgotten(jdk: &Jdk) {
    let Recorded { report, counts } = record(jdk, "callerRuns", &["--follow", "threads"]);
    let ours = calls_by_method(&report);
    for method in ["Handing$Work.inside()V", "Handing$Work.leaf(Z)V"] {
        assert_eq!(ours.get(method), counts.get(method), "JDK {}", jdk.version);
    }
    assert_eq!(ours.get("Handing$Work.outside()I"), None, "JDK {}: dropped inside, run outside", jdk.version);
}

fn virtual_threads_belong_to_the_calls_that_start_them(jdk: &Jdk) {
    counts_are_exact(jdk, "virtual");
}

fn nothing_is_followed_unless_the_user_wants_it(jdk: &Jdk) {
    for scenario in ["threads", "executors"] {
        let Recorded { report, .. } = record(jdk, scenario, &[]);
        let ours = calls_by_method(&report);
        assert_eq!(links(&report), 0);
        assert_eq!(ours.get("Handing$OwnThread.run()V"), None, "JDK {}, {scenario}", jdk.version);
        assert_eq!(ours.get("Handing$Work.result(I)I"), None, "JDK {}, {scenario}", jdk.version);
    }
}
