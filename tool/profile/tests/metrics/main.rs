//! A metric that nothing in the tool has heard of goes through every view, export, comparison, snapshot and page.

use std::io::Read;

use headwater_profile::diff::condition::{Condition, Judgement, Verdict};
use headwater_profile::diff::{self, Run};
use headwater_profile::export::{self, Format};
use headwater_profile::profile::{Column, Extent, Metric, Part, Profile, Quantity, Unit};
use headwater_profile::report::select::MethodSelector;
use headwater_profile::report::text::Style;
use headwater_profile::report::{NothingSelected, Options, View, json, text};
use headwater_profile::{page, snapshot};

mod several;
#[path = "../support/mod.rs"]
mod support;

use support::{check, recursive};

/// Where the golden files are.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// Of each node of [`recursive`]; 21 MiB altogether, 20 of them below the first call of the second method.
const OWN: [u64; 6] = [1 << 20, 2 << 20, 3 << 20, 4 << 20, 5 << 20, 6 << 20];

/// Bytes that the tool cannot know of, and a count of methods themselves.
fn with_made_up(factor: u64) -> Profile {
    let mut profile = recursive();
    profile.counted = vec![
        Metric::counted("made-up", "made-up bytes", Unit::Bytes, Extent::OwnAndTotal, "What a test says."),
        Metric::counted("odd-things", "odd things", Unit::Count, Extent::Own, "What a test counts."),
    ];
    let trees = [&mut profile.merged].into_iter().chain(profile.threads.iter_mut().map(|thread| &mut thread.tree));
    for tree in trees {
        let bytes = Column::of(&tree.nodes, OWN.iter().map(|own| (own * factor, 0)));
        let things = Column::of(&tree.nodes, (0..6).map(|node| (node * factor, 0)));
        tree.counted = vec![bytes, things];
    }
    profile
}

fn report(view: View, metrics: &[&str]) -> String {
    let metrics = metrics.iter().map(|id| (*id).to_owned()).collect();
    let options = Options { view, metrics, ..Options::default() };
    let mut out = Vec::new();
    text::write(&with_made_up(1), &options, &Style::default(), &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

/// The numbers in front of a method's name, in the first line that ends in it.
fn numbers(report: &str, name: &str) -> Vec<String> {
    let line = report.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("no {name}:\n{report}"));
    line[..line.len() - name.len()]
        .split("  ")
        .map(|cell| cell.trim().to_owned())
        .filter(|cell| !cell.is_empty())
        .collect()
}

#[test]
fn it_is_in_every_view_as_text_alone_and_beside_others() {
    let tree = report(View::Tree, &["made-up"]);
    assert!(tree.contains("share made-up total made-up self  method"), "{tree}");
    let name = |method: usize| recursive().methods[method].display.clone();
    assert_eq!(numbers(&tree, &name(0)), ["100.0%", "21.00 MiB", "1.000 MiB"], "{tree}");
    let both = report(View::Tree, &["wall", "made-up", "odd-things"]);
    check("metrics-tree.txt", &both);
    // Recursion counts once: all of the second method's lies below its first call.
    let flat = report(View::Flat, &["made-up"]);
    assert_eq!(numbers(&flat, &name(1))[1..], ["10.00 MiB", "20.00 MiB"], "{flat}");
    let callers = report(View::Callers, &["made-up"]);
    assert!(callers.contains("21.00 MiB"), "{callers}");
    // By a metric without totals, what leads to the largest is shown too.
    let things = report(View::Tree, &["odd-things"]);
    assert!(things.contains("share    odd-things  method"), "{things}");
    assert_eq!(things.lines().filter(|line| line.contains('%') && line.contains("com.acme")).count(), 6, "{things}");
}

#[test]
fn what_a_profile_does_not_have_is_named_with_what_it_has() {
    let options = Options { metrics: vec!["bytes".to_owned()], ..Options::default() };
    let refused = options.check(&with_made_up(1)).expect_err("there is none");
    assert!(matches!(refused, NothingSelected::Metric { .. }));
    assert_eq!(
        refused.to_string(),
        "the profile has no metric bytes. It has wall, calls, thrown, made-up, odd-things; and what follows from these: \
         wall-per-call, thrown-per-call, made-up-per-call, odd-things-per-call"
    );
}

#[test]
fn it_is_in_json_in_every_view() {
    for (view, rows) in [(View::Tree, "nodes"), (View::Flat, "flat"), (View::Callers, "stanzas")] {
        let mut out = Vec::new();
        json::write(&with_made_up(1), &Options { view, ..Options::default() }, &mut out).expect("memory takes it");
        let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        let described = json["metrics"].as_array().expect("metrics").iter().find(|metric| metric["id"] == "made-up");
        assert_eq!(described.expect("described")["unit"], "bytes");
        let rows = json[rows].as_array().expect("rows");
        let of = |row: &serde_json::Value| {
            let row = if row["self"].is_object() { &row["self"] } else { row };
            row["metrics"]["made-up"]["self"].as_u64().expect("its own")
        };
        assert_eq!(rows.iter().map(of).sum::<u64>(), OWN.iter().sum::<u64>());
    }
}

#[test]
fn it_is_in_every_export() {
    let options = Options { metrics: vec!["made-up".to_owned()], ..Options::default() };
    let (profile, usual) = (with_made_up(1), Options::default());
    let written = |format, options: &Options| {
        let mut out = Vec::new();
        export::write(format, &profile, options, &mut out).expect("memory takes it");
        if format == Format::Pprof {
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(&out[..]).read_to_end(&mut unpacked).expect("gzip");
            return String::from_utf8_lossy(&unpacked).into_owned();
        }
        String::from_utf8(out).expect("text")
    };
    let whole: u64 = OWN.iter().sum();
    let collapsed = written(Format::Collapsed, &options);
    let last = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse::<u64>().ok()).expect("a value");
    assert_eq!(collapsed.lines().map(last).sum::<u64>(), whole);
    assert!(written(Format::Svg, &options).contains("made-up bytes"));
    for name in ["made-up", "odd-things", "wall", "calls"] {
        assert!(written(Format::Pprof, &usual).contains(name), "{name}");
    }
    let callgrind = written(Format::Callgrind, &usual);
    assert!(callgrind.contains("event: made_up : Made-up bytes (bytes)\n"), "{callgrind}");
    let things: u64 = (0..6).sum();
    let thrown: u64 = profile.merged.nodes.iter().map(|node| node.thrown).sum();
    let events = format!("events: ns thrown made_up odd_things\nsummary: 1000000 {thrown} {whole} {things}\n");
    assert!(callgrind.contains(&events), "{callgrind}");
    let csv = written(Format::Csv, &usual);
    assert!(
        csv.lines().next().expect("a heading").ends_with(",made_up_self_bytes,made_up_total_bytes,odd_things_self")
    );
    assert!(csv.lines().nth(1).expect("a row").ends_with(&format!(",{},{whole},0", OWN[0])), "{csv}");
    let metrics = written(Format::OpenMetrics, &usual);
    assert!(metrics.contains("# UNIT headwater_method_made_up_self_bytes bytes\n"), "{metrics}");
    assert!(metrics.contains("headwater_method_odd_things_self_total{method="), "{metrics}");
    for format in [Format::Speedscope, Format::Firefox] {
        let both = written(format, &usual);
        assert!(both.contains("[all threads]: made-up bytes") || both.contains("all threads: made-up bytes"), "{both}");
        let one: serde_json::Value = serde_json::from_str(&written(format, &options)).expect("JSON");
        let tracks = if format == Format::Firefox { &one["threads"] } else { &one["profiles"] };
        assert_eq!(tracks.as_array().map(Vec::len), Some(1), "only what was asked for");
    }
    let speedscope: serde_json::Value = serde_json::from_str(&written(Format::Speedscope, &options)).expect("JSON");
    assert_eq!(
        (&speedscope["profiles"][0]["unit"], &speedscope["profiles"][0]["endValue"]),
        (&"bytes".into(), &whole.into())
    );
}

#[test]
fn it_is_compared_and_conditions_can_be_about_it() {
    let (before, after) = (with_made_up(1), with_made_up(2));
    let run = |profile| [Run { file: "x.hw", profile }];
    let (before, after) = (run(&before), run(&after));
    let comparison = diff::compare(&before, &after, None);
    let change = comparison.change(comparison.whole(), &Quantity::of("made-up", Part::Total));
    assert_eq!(change.relative(), 1.0);
    for (condition, verdict) in [
        ("made-up(*) > 50%", Verdict::Failed),
        ("made-up.total(*) > +2 MiB", Verdict::Failed),
        ("made-up.total(*) > +3 MiB", Verdict::Passed),
        ("odd-things(*) > 1000", Verdict::Passed),
        ("odd-things.total(*) > 1", Verdict::NoSuchMetric),
        ("made-up(*) > 1ms", Verdict::NoSuchMetric),
        ("unheard-of(*) > 1", Verdict::NoSuchMetric),
        ("thrown(*) > 1", Verdict::Passed),
    ] {
        let parsed: Condition = condition.parse().expect(condition);
        let Judgement { verdict: found, .. } = parsed.judge(&comparison);
        assert_eq!(found, verdict, "{condition}");
    }
    let selection = diff::text::Selection { metrics: vec!["made-up".to_owned()], ..Default::default() };
    let mut out = Vec::new();
    diff::text::write(&comparison, &[], &selection, &Style::default(), &mut out).expect("memory takes it");
    let text = String::from_utf8(out).expect("text");
    assert!(text.contains("methods by made-up bytes of methods themselves, per root call:"), "{text}");
    let mut out = Vec::new();
    diff::json::write(&comparison, &[], &mut out).expect("memory takes it");
    let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(json["nodes"][0]["metrics"]["made-up"]["total"]["relative"], 1.0);
    for metric in
        json["metrics"].as_array().expect("metrics").iter().map(|metric| metric["id"].as_str().expect("an id"))
    {
        let row = &json["nodes"][0];
        assert!(
            metric == "wall" || row[metric].is_object() || row["metrics"][metric]["self"].is_object(),
            "{metric}: {row:#}"
        );
    }
    // Of profiles that do not both have it, nothing is said.
    let without = recursive();
    let comparison = diff::compare(&run(&without), &after, None);
    assert!(comparison.metric(&Quantity::of("made-up", Part::Own)).is_none());
}

#[test]
fn it_is_in_snapshots_and_sums_of_threads() {
    let profile = with_made_up(3);
    let mut bytes = Vec::new();
    snapshot::write(&profile, &mut bytes).expect("memory takes it");
    let read = snapshot::read(&mut &bytes[..]).expect("readable");
    assert_eq!(read.merged, profile.merged);
    assert_eq!(read.threads, profile.threads);
    let ids = |profile: &Profile| profile.metrics().iter().map(|metric| metric.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ids(&read), ids(&profile));
    let two: MethodSelector = "*".parse().expect("a selector");
    let options =
        Options { threads: vec!["worker-*".parse().expect("threads")], focus: Some(two), ..Options::default() };
    let sum = options.narrowed(&profile).into_owned();
    // The first node of one thread, and the first two of another.
    let column = &sum.merged.counted[0];
    assert_eq!(column.amounts().iter().map(|amount| amount.own).sum::<u64>(), 3 * (2 * OWN[0] + OWN[1]));
}

#[test]
fn it_is_in_the_page() {
    let mut out = Vec::new();
    page::write_profile(&with_made_up(1), &mut out).expect("memory takes it");
    let page = String::from_utf8(out).expect("text");
    let start = page.find("id=\"data\"").and_then(|at| Some(at + page[at..].find('>')? + 1)).expect("data");
    let data = &page[start..start + page[start..].find('<').expect("an end")];
    let packed = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data.trim()).expect("base64");
    let mut unpacked = Vec::new();
    flate2::read::DeflateDecoder::new(&packed[..]).read_to_end(&mut unpacked).expect("deflate");
    let length = u32::from_le_bytes(unpacked[..4].try_into().expect("four")) as usize;
    let facts: serde_json::Value = serde_json::from_slice(&unpacked[4..4 + length]).expect("JSON");
    let titles: Vec<&str> =
        facts["metrics"].as_array().expect("metrics").iter().filter_map(|metric| metric["title"].as_str()).collect();
    assert_eq!(titles, ["wall time", "calls", "exceptions", "made-up bytes", "odd things"]);
}
