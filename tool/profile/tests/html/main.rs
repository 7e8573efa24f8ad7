//! The page in a browser: what it shows must be what the JSON says, and it must do what a reader asks of it.
//!
//! `cargo xtask test` installs Chromium and what drives it. Each test is a case of `tests/consumers/page.mjs`, which also sees to it, in
//! every case, that no request leaves the page, and that nothing is written to the console.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use headwater_profile::diff::{self, Run, compare};
use headwater_profile::page;
use headwater_profile::profile::{Column, Profile};
use headwater_profile::report::{Options, View, json};
use headwater_profile::snapshot;
use headwater_tests::{Process, Scratch};

mod made_up;

const WEB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/web");

/// The build's directory, where `cargo xtask test` has put what npm installs.
fn target() -> PathBuf {
    let own = std::env::current_exe().expect("our own path");
    own.ancestors().nth(3).expect("target/<profile>/deps/<test>").to_owned()
}

/// Runs a program to its end.
fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}. See cargo xtask test"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}; `cargo xtask test` installs what it needs:\n{stdout}{stderr}");
}

/// A directory with `page.html`, and what the other reports say of the same: `tree.json`, `flat.json` and so on.
fn written(profile: &Profile) -> Scratch {
    let scratch = Scratch::new("page");
    let mut html = Vec::new();
    page::write_profile(profile, &mut html).expect("memory takes it");
    std::fs::write(scratch.file("page.html"), html).expect("a scratch file");
    let threads = profile.threads.iter().map(|thread| Some(thread.id.0));
    for thread in [None].into_iter().chain(threads) {
        let selectors: Vec<_> = thread.iter().map(|id| id.to_string().parse().expect("a selector")).collect();
        for (name, view) in [("tree", View::Tree), ("callers", View::Callers), ("flat", View::Flat)] {
            let options = Options { view, threads: selectors.clone(), ..Options::default() };
            let mut out = Vec::new();
            json::write(profile, &options, &mut out).expect("memory takes it");
            let of_thread = thread.map_or_else(String::new, |id| format!("-{id}"));
            std::fs::write(scratch.file(&format!("{name}{of_thread}.json")), out).expect("a scratch file");
        }
    }
    scratch
}

/// The profile with several metrics that `golden/several-metrics.hw` is, and JSON with what follows from them.
fn several() -> Profile {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/several-metrics.hw");
    snapshot::read(&mut &std::fs::read(file).expect("the snapshot")[..]).expect("readable")
}

fn written_several() -> Scratch {
    let profile = several();
    let scratch = written(&profile);
    let metrics = profile.derived().into_iter().map(|metric| metric.id.into_owned()).collect();
    let options = Options { metrics, ..Options::default() };
    let json = |view| {
        let mut out = Vec::new();
        json::write(&profile, &Options { view, ..options.clone() }, &mut out).expect("memory takes it");
        serde_json::from_slice::<serde_json::Value>(&out).expect("JSON")
    };
    let mut derived = json(View::Tree);
    derived["flat"] = json(View::Flat)["flat"].take();
    std::fs::write(scratch.file("derived.json"), derived.to_string()).expect("a scratch file");
    scratch
}

/// The same of a comparison: `page.html` and `diff.json`.
fn written_diff(before: &Profile, after: &Profile) -> Scratch {
    let scratch = Scratch::new("page");
    let run = |file, profile| Run { file, profile };
    let comparison = compare(&[run("before.hw", before)], &[run(made_up::HOSTILE, after)], None);
    let conditions = ["self(com.acme.*) > +5%"].map(|text| {
        let condition: diff::condition::Condition = text.parse().expect("a condition");
        let judgement = condition.judge(&comparison);
        (condition, judgement)
    });
    let (mut html, mut json) = (Vec::new(), Vec::new());
    page::write_diff(&comparison, &conditions, &mut html).expect("memory takes it");
    diff::json::write(&comparison, &conditions, &mut json).expect("memory takes it");
    std::fs::write(scratch.file("page.html"), html).expect("a scratch file");
    std::fs::write(scratch.file("diff.json"), json).expect("a scratch file");
    scratch
}

/// Browsers that wait for cases: to start one takes longer than most cases. They end when the tests' process does.
static IDLE: Mutex<Vec<Process>> = Mutex::new(Vec::new());

fn idle() -> MutexGuard<'static, Vec<Process>> {
    // Nobody panics with it.
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn browser() -> Process {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/consumers/page.mjs");
    let mut browser = Process::spawn(Command::new("node").arg(script).arg(target().join("consumers/node_modules")));
    browser.await_line("READY");
    browser
}

/// Has a case of `page.mjs` look at what was written.
fn browse(case: &str, written: &Scratch) {
    let one = idle().pop();
    let mut browser = one.unwrap_or_else(browser);
    browser.say(&format!("{}\0{case}", written.path().display()));
    let (said, end) = browser.await_line_and_those_before("END ");
    assert!(end == "END good", "{case}: {}", said.join("\n"));
    idle().push(browser);
}

fn of_profile(case: &str) {
    browse(case, &written(&made_up::profile()));
}

fn of_diff(case: &str) {
    browse(case, &written_diff(&made_up::profile(), &made_up::changed()));
}

#[test]
fn the_committed_page_is_what_its_sources_are_built_to() {
    let modules = target().join("web/node_modules");
    run(Command::new("node").arg(modules.join("typescript/bin/tsc")).args(["--project", WEB]));
    let scratch = Scratch::new("page");
    let built = scratch.file("page.html");
    run(Command::new("node").arg(format!("{WEB}/build.mjs")).arg(modules).arg(&built));
    let read = |path: &Path| std::fs::read_to_string(path).expect("a page");
    let (committed, built) = (read(&Path::new(WEB).join("dist/page.html")), read(&built));
    assert!(committed == built, "tool/profile/web/dist/page.html is stale: run cargo xtask web");
    assert!(built.len() < 150 * 1024, "the page's own code has grown to {} bytes", built.len());
}

#[test]
fn methods_calls_and_times_are_those_of_the_json() {
    of_profile("flat");
}

#[test]
fn the_tree_is_that_of_the_json() {
    of_profile("tree");
}

#[test]
fn callers_and_callees_are_those_of_the_json() {
    of_profile("callers");
}

#[test]
fn a_thread_has_its_own_tree_and_table() {
    of_profile("threads");
}

#[test]
fn a_metric_takes_the_place_of_time() {
    of_profile("metric");
}

#[test]
fn frames_are_as_wide_as_one_metric_and_coloured_by_another() {
    browse("width_and_colour", &written_several());
}

#[test]
fn waits_are_stacked_as_json_divides_them() {
    browse("waits", &written_several());
}

#[test]
fn a_node_has_all_metrics_and_what_follows_from_them() {
    browse("others", &written_several());
}

#[test]
fn what_is_by_samples_is_as_uncertain_as_their_number() {
    browse("sampled", &written(&made_up::stacks_of_samples()));
}

#[test]
fn methods_are_scattered_by_two_metrics() {
    browse("scatter", &written_several());
}

#[test]
fn everything_can_be_read_on_a_screen_and_a_phone() {
    browse("layout", &written_several());
    of_diff("layout");
}

#[test]
fn any_metric_is_compared() {
    let (before, mut after) = (several(), several());
    let tree = &mut after.merged;
    // All but the uncertain ones have become half as much again.
    tree.counted = (tree.counted.iter())
        .map(|column| Column::of_time(&tree.nodes, column.amounts().iter().map(|it| (it.own * 3 / 2, it.own_error))))
        .collect();
    browse("compared", &written_diff(&before, &after));
}

/// Three threads of two stacks, two of which wait for each other, and the third for one of them.
fn threads() -> serde_json::Value {
    let thread = |id: usize, name: &str, wait: serde_json::Value, holds: serde_json::Value| {
        serde_json::json!({
            "id": id, "name": name, "java_id": id + 20, "state": "BLOCKED", "doing": "blocked on a monitor",
            "cpu_ns": 1_000_000 * (id + 1), "recent_cpu_ns": 1_000 * (3 - id), "elapsed_ns": 5_000_000_000_u64,
            "allocated_bytes": null, "group": id.min(1), "wait": wait, "holds": holds, "notes": [],
        })
    };
    let wait = |lock: usize, holder: usize| serde_json::json!({ "kind": "monitor", "lock": lock, "frame": 0, "holder": holder });
    let edge = |thread: usize, lock: usize, holder: usize| serde_json::json!({ "thread": thread, "kind": "monitor", "lock": lock, "holder": holder, "certain": true });
    serde_json::json!({
        "target": { "pid": 4711, "main": "com.acme.Shop", "vm": "OpenJDK" },
        "cpu": { "window_ns": 1_000_000_000, "recent_ns": 6_000, "ended_ns": 0, "process_ns": 9_000_000_000_u64 },
        "virtual_threads": null,
        "deadlocks": [{ "certain": true, "waits": [edge(0, 0, 1), edge(1, 1, 0)] }],
        "blockers": [{
            "thread": null, "deadlock": 0, "doing": null, "waiting": [2],
            "wanted": [{ "holder": 1, "kind": "monitor", "lock": 0, "waiting": 1 }],
        }],
        "groups": [
            { "threads": [0], "recent_cpu_ns": 3_000, "stack": ["com.acme.Cart.lock(Cart.java:7)", "com.acme.Shop.run(Shop.java:1)"] },
            { "threads": [1, 2], "recent_cpu_ns": 3_000, "stack": ["com.acme.Till.lock(Till.java:9)"] },
        ],
        "threads": [
            thread(0, "worker-1", wait(0, 1), serde_json::json!([{ "lock": 1, "frame": 1 }])),
            thread(1, "</script><img src=x onerror=alert(1)>", wait(1, 0), serde_json::json!([{ "lock": 0, "frame": null }])),
            thread(2, "worker-3", wait(0, 1), serde_json::json!([])),
        ],
        "locks": [{ "object": "com.acme.Till <0x7>" }, { "object": "com.acme.Cart <0x9>" }],
        "unread": [],
        "warnings": ["owners of java.util.concurrent locks are not known"],
    })
}

#[test]
fn all_threads_have_a_page_of_their_own() {
    let scratch = Scratch::new("page");
    let (mut html, report) = (Vec::new(), threads());
    page::write_other("threads", "com.acme.Shop (pid 4711): threads", &report, &mut html).expect("memory takes it");
    assert!(!String::from_utf8_lossy(&html).contains("<img"), "a name has become markup");
    std::fs::write(scratch.file("page.html"), html).expect("a scratch file");
    std::fs::write(scratch.file("threads.json"), report.to_string()).expect("a scratch file");
    browse("all_threads", &scratch);
}

#[test]
fn locks_have_a_view_where_they_were_recorded() {
    browse("locks", &written(&made_up::contended()));
}

#[test]
fn a_search_filters_methods_and_marks_what_it_finds() {
    of_profile("search");
}

#[test]
fn the_flame_graph_zooms_in_and_out() {
    of_profile("zoom");
}

#[test]
fn the_tree_opens_node_by_node_and_level_by_level() {
    of_profile("levels");
}

#[test]
fn the_node_information_has_what_javiz_table_1_has() {
    of_profile("information");
}

#[test]
fn colours_map_an_attribute_and_a_key_says_which() {
    of_profile("colours");
}

#[test]
fn find_next_goes_depth_first_or_breadth_first() {
    of_profile("find");
}

#[test]
fn a_malformed_query_is_refused_with_its_column() {
    of_profile("queries");
}

#[test]
fn everything_can_be_reached_by_keyboard() {
    of_profile("keyboard");
}

#[test]
fn names_from_the_target_are_text_and_nothing_else() {
    of_profile("hostile");
}

#[test]
fn what_the_text_report_says_is_there() {
    of_profile("about");
}

#[test]
fn what_happened_to_the_whole_jvm_has_lanes_and_tables() {
    browse("tracks", &written(&made_up::happened()));
}

#[test]
fn it_is_dark_or_light_as_the_system_or_the_reader_says() {
    of_profile("themes");
}

#[test]
fn no_width_needs_sideways_scrolling() {
    of_profile("widths");
}

#[test]
fn axe_finds_no_fault() {
    of_profile("axe");
}

#[test]
fn what_was_handed_over_is_below_its_origin_and_no_part_of_its_time() {
    browse("handed", &written(&made_up::handed()));
}

#[test]
fn a_profile_without_calls_is_shown_as_one() {
    let mut profile = made_up::profile();
    profile.merged.nodes.clear();
    profile.threads.clear();
    browse("empty", &written(&profile));
}

#[test]
fn two_hundred_thousand_nodes_cost_what_is_seen_of_them() {
    let profile = made_up::large(200_100);
    let written = written(&profile);
    let bytes = std::fs::metadata(written.file("page.html")).expect("the page").len();
    // Random numbers hardly compress: a real profile takes a quarter.
    assert!(bytes < 5 << 20, "{bytes} bytes");
    browse("large", &written);
}

#[test]
fn changes_are_those_of_the_json() {
    of_diff("changes");
}

#[test]
fn a_comparison_shows_what_changed_and_the_rest_on_demand() {
    of_diff("unchanged");
}

#[test]
fn axe_finds_no_fault_in_a_comparison() {
    of_diff("axe");
}

#[test]
fn a_comparison_fits_every_width() {
    of_diff("widths");
}
