use std::collections::BTreeMap;

use headwater_tests::recording::{Happened, recording_of};
use prost::Message;

use super::*;
use crate::export;
use crate::profile::testing::{Random, profile_of, random_tree};
use crate::profile::{Extent, NodeIndex, Tree};
use crate::report::{self, Options, Trees, View};

fn imported(bytes: &[u8]) -> Profile {
    read("file", &mut &bytes[..]).expect("a profile")
}

fn complaint(bytes: &[u8]) -> String {
    read("file", &mut &bytes[..]).expect_err("there is none").to_string()
}

/// What each stack has of a metric itself, by the names for people.
fn by_stack(profile: &Profile, tree: &Tree, id: &str) -> BTreeMap<Vec<String>, u64> {
    let metric = profile.metric(id).unwrap_or_else(|| panic!("no {id} in {:?}", profile.metrics()));
    let columns = profile.columns(tree);
    let mut stacks: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for index in 0..tree.nodes.len() {
        let mut stack = Vec::new();
        let mut at = Some(NodeIndex(index));
        while let Some(node) = at {
            stack.push(profile.method_of(&tree.nodes[node.0]).display.clone());
            at = tree.nodes[node.0].parent;
        }
        stack.reverse();
        *stacks.entry(stack).or_default() += metric.at_node(tree, &columns, NodeIndex(index)).own;
    }
    stacks.retain(|_, own| *own > 0);
    stacks
}

fn exported(format: export::Format, profile: &Profile, trees: Trees) -> Vec<u8> {
    let mut out = Vec::new();
    export::write(format, profile, &Options { trees, ..Options::default() }, &mut out).expect("memory takes it");
    out
}

#[test]
fn what_we_export_comes_back() {
    for seed in 1..30 {
        let trees = vec![random_tree(seed, 40, 5), random_tree(seed + 100, 40, 5)];
        let profile = profile_of(random_tree(seed + 200, 80, 5), trees, 5);
        if profile.merged.total_ns() == 0 || !profile.merged.has_cpu_samples() {
            continue;
        }
        for (format, ids) in [
            (export::Format::Pprof, &[("wall", "wall"), ("calls", "calls"), ("cpu", "cpu")][..]),
            (export::Format::Speedscope, &[("wall", "wall"), ("cpu", "cpu")]),
            (export::Format::Collapsed, &[("wall", "samples")]),
        ] {
            let back = imported(&exported(format, &profile, Trees::Merged));
            assert!(back.threads.is_empty());
            for (id, other) in ids {
                let (expected, found) = (by_stack(&profile, &profile.merged, id), by_stack(&back, &back.merged, other));
                assert_eq!(found, expected, "{format:?}, {id}, seed {seed}");
            }
            let back = imported(&exported(format, &profile, Trees::PerThread));
            for (thread, other) in profile.threads.iter().zip(&back.threads) {
                if !thread.tree.nodes.is_empty() {
                    assert!(other.name.contains(&thread.name), "{format:?}: {}", other.name);
                    let (expected, found) =
                        (by_stack(&profile, &thread.tree, ids[0].0), by_stack(&back, &other.tree, ids[0].1));
                    assert_eq!(found, expected, "{format:?}, seed {seed}");
                }
            }
        }
    }
}

#[test]
fn what_we_export_comes_back_however_much_it_is() {
    let profile = profile_of(random_tree(7, 6_000, 5), Vec::new(), 5);
    for (format, id) in
        [(export::Format::Pprof, "wall"), (export::Format::Speedscope, "wall"), (export::Format::Collapsed, "samples")]
    {
        let back = imported(&exported(format, &profile, Trees::Merged));
        assert!(by_stack(&back, &back.merged, id) == by_stack(&profile, &profile.merged, "wall"), "{format:?} differs");
    }
}

#[test]
fn collapsed_stacks_of_other_tools() {
    let profile = imported(
        b"[main tid=7];java/lang/Thread.run_[j];com/acme/Shop.sell_[i];memcpy 3\n\
          [main tid=7];java/lang/Thread.run_[j] 2\n\n[GC tid=8];G1 Evacuation (young) 1\n",
    );
    let stacks = by_stack(&profile, &profile.merged, "samples");
    let stack = |frames: &[&str]| frames.iter().map(|frame| (*frame).to_owned()).collect::<Vec<_>>();
    assert_eq!(stacks[&stack(&["java.lang.Thread.run", "com.acme.Shop.sell", "memcpy"])], 3);
    assert_eq!(stacks[&stack(&["java.lang.Thread.run"])], 2);
    assert_eq!(stacks[&stack(&["G1 Evacuation (young)"])], 1);
    assert_eq!(profile.threads.iter().map(|thread| &*thread.name).collect::<Vec<_>>(), ["main tid=7", "GC tid=8"]);
    let total = profile.metric("samples").expect("samples");
    assert_eq!(
        (total.whole(&profile.merged, &profile.columns(&profile.merged)), total.extent),
        (6, Extent::OwnAndTotal)
    );
}

#[test]
fn a_stack_may_be_longer_than_what_a_file_is_known_by() {
    let package = "a".repeat(2_000);
    let deep: String = (0..100).map(|level| format!("{package}.B.m{level};")).collect();
    assert!(deep.len() > 2 * BEGINNING);
    for before in ["", "# what a tool says of itself: 7\n\n", &"#\n".repeat(BEGINNING)] {
        let profile = imported(format!("{before}{deep}a.B.last 3\n").as_bytes());
        let stacks = by_stack(&profile, &profile.merged, "samples");
        assert_eq!(stacks.into_iter().map(|(stack, own)| (stack.len(), own)).collect::<Vec<_>>(), [(101, 3)]);
    }
    for other in ["# only a comment\n".to_owned(), format!("{}\n", "word ".repeat(BEGINNING)), "a;b\n".to_owned()] {
        assert!(!complaint(other.as_bytes()).contains("looks like"), "{}", complaint(other.as_bytes()));
    }
    // What is cut and is none of it says so of its line.
    let long = complaint(format!("{deep}\n").as_bytes());
    assert!(long.contains("line 1 does not end in a space and a number"), "{long}");
}

/// A pipe has what was written last, and no more.
#[test]
fn a_file_that_comes_in_small_parts_is_known_all_the_same() {
    let text = b"com.acme.Shop.checkout;com.acme.Shop.sell 3\n";
    let profile = read("-", &mut BufReader::with_capacity(7, &text[..])).expect("a profile");
    assert_eq!(by_stack(&profile, &profile.merged, "samples").into_values().sum::<u64>(), 3);
}

#[test]
fn signatures_of_collapsed_stacks_make_machine_names() {
    let profile =
        imported(b"Main.run()[B_[i];com/acme/Shop.sell(Ljava/lang/String|[I)V_[j];operator new(unsigned long) 3\n");
    let names: Vec<_> = profile.methods.iter().map(|method| (&*method.machine, &*method.display)).collect();
    let shop = ("com.acme.Shop.sell(Ljava/lang/String;[I)V", "com.acme.Shop.sell(String, int[])");
    assert_eq!(
        names,
        [("Main.run()[B", "Main.run()"), shop, ("operator new(unsigned long)", "operator new(unsigned long)")]
    );
}

#[test]
fn speedscopes_frames_that_are_never_closed_go_on_to_the_end() {
    let profile = imported(
        br#"{"$schema":"speedscope","shared":{"frames":[{"name":"a"},{"name":"b"}]},"profiles":[{"type":"evented","name":"x",
            "unit":"bytes","startValue":0,"endValue":9,"events":[{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":2}]}]}"#,
    );
    assert_eq!(by_stack(&profile, &profile.merged, "bytes").values().copied().collect::<Vec<_>>(), [2, 7]);
}

#[test]
fn speedscopes_samples_have_units() {
    let profile = imported(
        br#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[{"name":"a"},{"name":"b"}]},
            "profiles":[{"type":"sampled","name":"x","unit":"milliseconds","startValue":0,"endValue":3,
            "samples":[[0],[0,1]],"weights":[1.5,2]}]}"#,
    );
    let stacks = by_stack(&profile, &profile.merged, "wall-time");
    assert_eq!(stacks.values().copied().collect::<Vec<_>>(), [1_500_000, 2_000_000]);
    assert!(profile.threads.is_empty(), "one profile is no thread");
}

#[test]
fn pprofs_inlined_frames_are_frames_and_its_default_leads() {
    use crate::pprof::{Function, Line, Location, Profile as File, Sample, ValueType};
    let texts = ["", "alloc_space", "bytes", "cpu", "microseconds", "outer", "inlined", "leaf"];
    let function = |id, name| Function { id, name, system_name: 0, filename: 0 };
    let file = File {
        sample_type: vec![ValueType { r#type: 1, unit: 2 }, ValueType { r#type: 3, unit: 4 }],
        default_sample_type: 3,
        sample: vec![Sample { location_id: vec![2, 1], value: vec![100, 7], label: Vec::new() }],
        location: vec![
            Location { id: 1, line: vec![Line { function_id: 2 }, Line { function_id: 1 }] },
            Location { id: 2, line: vec![Line { function_id: 3 }] },
        ],
        function: vec![function(1, 5), function(2, 6), function(3, 7)],
        string_table: texts.map(str::to_owned).to_vec(),
        time_nanos: 1_700_000_000_000_000_000,
        period_type: Some(ValueType { r#type: 3, unit: 4 }),
        period: 3,
        ..File::default()
    };
    let profile = imported(&file.encode_to_vec());
    let ids: Vec<_> = profile.metrics().iter().map(|metric| metric.id.to_string()).collect();
    assert_eq!(ids, ["cpu", "alloc-space"]);
    let stack = ["outer", "inlined", "leaf"].map(str::to_owned).to_vec();
    assert_eq!(by_stack(&profile, &profile.merged, "cpu")[&stack], 7_000);
    assert_eq!(by_stack(&profile, &profile.merged, "alloc-space")[&stack], 100);
    assert_eq!(profile.environment.started_s, 1_700_000_000);
    // Two samples and a third, of 3 us each.
    let columns = profile.columns(&profile.merged);
    let cpu = profile.metric("cpu").expect("cpu").at_node(&profile.merged, &columns, NodeIndex(0));
    assert_eq!((cpu.total, cpu.total_error), (7_000, 4_582));
}

/// A profile of each format, with samples that stand for more than one of a unit.
fn of_each_format() -> Vec<Profile> {
    use crate::pprof::{Function, Line, Location, Profile as File, Sample, ValueType};
    let line = |function_id| vec![Line { function_id }];
    let kinds = vec![ValueType { r#type: 1, unit: 2 }, ValueType { r#type: 3, unit: 4 }];
    let pprof = File {
        sample_type: kinds.clone(),
        sample: vec![
            Sample { location_id: vec![2, 1], value: vec![9_000, 3], label: Vec::new() },
            Sample { location_id: vec![1], value: vec![-5_000, 4], label: Vec::new() },
            Sample { location_id: Vec::new(), value: vec![3_000, 1], label: Vec::new() },
        ],
        location: vec![Location { id: 1, line: line(1) }, Location { id: 2, line: line(2) }],
        function: vec![
            Function { id: 1, name: 5, system_name: 0, filename: 0 },
            Function { id: 2, name: 6, system_name: 6, filename: 0 },
        ],
        string_table: ["", "cpu", "nanoseconds", "turns", "rounds", "outer", "com/acme/Shop$$Lambda$3.0x7f00.call"]
            .map(str::to_owned)
            .to_vec(),
        period_type: Some(kinds[0]),
        period: 1_000,
        ..File::default()
    };
    let speedscope = r#"{"$schema":"https://www.speedscope.app/file-format-schema.json",
        "shared":{"frames":[{"name":"f","file":"a.js"},{"name":"f","file":"b.js"}]},
        "profiles":[{"type":"sampled","name":"x","unit":"none","samples":[[0],[0,1],[]],"weights":[2.5,3.5,1]}]}"#;
    let happened = |kind, amount, stack| Happened { kind, at_ns: 1, duration_ns: 0, amount, stack, lock: None };
    let stack = &[["a/b/C", "run", "()V"]][..];
    let allocated = |weight| happened("jdk.ObjectAllocationSample", ("weight", weight), stack);
    let lost = happened("jdk.CPUTimeSamplesLost", ("lostSamples", 81), &[]);
    let recording = recording_of(4711, &[allocated(700), allocated(900), lost]);
    let collapsed = b"[a tid=1];a;b 512000\n[b tid=2];a;b 1024000\na;c 512000\n";
    [&collapsed[..], &pprof.encode_to_vec(), speedscope.as_bytes(), &recording].map(imported).into()
}

#[test]
fn what_is_imported_is_the_same_after_it_was_saved() {
    for profile in of_each_format() {
        let format = profile.imported.clone();
        let mut saved = Vec::new();
        crate::snapshot::write(&profile, &mut saved).expect("memory takes it");
        let back = imported(&saved);
        assert!(back.metrics() == profile.metrics(), "{format:?}");
        assert!(profile.metrics().iter().any(|metric| metric.is_uncertain), "{format:?}");
        assert!(back.merged == profile.merged, "{format:?}: {:?} {:?}", back.merged.counted, profile.merged.counted);
        assert!(back.threads == profile.threads, "{format:?}");
    }
}

#[test]
fn nothing_of_a_file_is_lost_and_what_is_left_out_is_said() {
    let [collapsed, pprof, speedscope, recording] = &of_each_format()[..] else { panic!("four") };
    assert_eq!(recording.notes, ["the JVM lost 81 samples of CPU time"]);
    // Each is of so many bytes at least, not one of millions of samples.
    let whole = |profile: &Profile, id: &str| {
        let (metric, columns) = (profile.metric(id).expect(id), profile.columns(&profile.merged));
        let of = |at| metric.at_node(&profile.merged, &columns, NodeIndex(at));
        let roots = (0..profile.merged.nodes.len()).filter(|at| profile.merged.nodes[*at].parent.is_none());
        roots.map(of).map(|amount| (amount.total, amount.total_error)).collect::<Vec<_>>()
    };
    assert_eq!(whole(collapsed, "samples"), [(2_048_000, 1_024_000)]);
    assert_eq!(whole(pprof, "cpu"), [(9_000, 3_000), (3_000, 1_732)]);
    assert_eq!(whole(pprof, "turns--rounds"), [(7, 0), (1, 0)]);
    assert_eq!(pprof.notes, ["1 value is negative, and left out: the file is of a difference"]);
    let names = |profile: &Profile| profile.methods.iter().map(|method| method.display.clone()).collect::<Vec<_>>();
    assert_eq!(names(pprof), ["outer", "com.acme.Shop$$Lambda.call", "[no stack]"]);
    assert_eq!(names(speedscope), ["f [a.js]", "f [b.js]", "[no stack]"]);
    assert_eq!(whole(speedscope, "samples").iter().map(|(total, _)| total).sum::<u64>(), 7);
    let fractions = imported("a;b 0.4\n".repeat(1_000).as_bytes());
    assert_eq!(whole(&fractions, "samples")[0].0, 400);
    let times = imported(b"a;b 3000000000\na;c 1\n");
    assert_eq!(whole(&times, "weight"), [(3_000_000_001, 0)]);
}

#[test]
fn a_file_that_counts_nothing_has_every_report() {
    let nothing =
        r#"{"$schema":"https://www.speedscope.app/file-format-schema.json","shared":{"frames":[]},"profiles":[]}"#;
    let profile = imported(nothing.as_bytes());
    for view in [View::Tree, View::Flat, View::Callers] {
        let options = Options { view, ..Options::default() };
        let mut out = Vec::new();
        report::json::write(&profile, &options, &mut out).expect("memory takes it");
        report::text::write(&profile, &options, &report::text::Style::default(), &mut out).expect("memory takes it");
    }
    for format in [export::Format::Csv, export::Format::Pprof, export::Format::Speedscope] {
        exported(format, &profile, Trees::Merged);
    }
    let mut profile = profile;
    profile.counted.clear();
    profile.merged.counted.clear();
    let mut saved = Vec::new();
    crate::snapshot::write(&profile, &mut saved).expect("memory takes it");
    assert!(complaint(&saved).contains("it counts nothing"));
}

#[test]
fn what_makes_no_sense_is_named() {
    let speedscope = |rest: &str| format!("{{\"x\":\"speedscope\",{rest}}}").into_bytes();
    for (bytes, expected) in [
        (b"a;b 3\na;b\n".to_vec(), "looks like collapsed stacks, but line 2 does not end in a space and a number"),
        (b"a;b 3\na;b -3\n".to_vec(), "line 2 does not end in a space and a number"),
        (speedscope(""), "looks like speedscope's JSON, but it is malformed"),
        (
            speedscope(
                "\"shared\":{\"frames\":[]},\"profiles\":[{\"type\":\"sampled\",\"name\":\"x\",\"unit\":\"none\",\"samples\":[[3]],\"weights\":[1]}]",
            ),
            "it has no frame number 3",
        ),
        (vec![0x1F, 0x8B, 8, 0, 1], "looks like a gzip file, but it cannot be unpacked"),
        (vec![0x0A, 0x04, 0x08, 0x01, 0x10, 0x02, 0x12, 0xFF], "looks like pprof, but its messages are malformed"),
        (b"{\"schema\":\"headwater/1\"}".to_vec(), "is no snapshot: it looks like JSON"),
        (b"".to_vec(), "is no snapshot: it is empty"),
        (b"hello\n".to_vec(), "is no snapshot"),
    ] {
        let found = complaint(&bytes);
        assert!(found.contains(expected) && found.starts_with("file "), "{found}");
    }
}

#[test]
fn damaged_files_are_refused_or_read_and_never_a_panic() {
    let profile = profile_of(random_tree(5, 60, 5), vec![random_tree(6, 30, 5)], 5);
    let mut random = Random::new(3);
    for format in [export::Format::Pprof, export::Format::Speedscope, export::Format::Collapsed] {
        let mut whole = exported(format, &profile, Trees::PerThread);
        if format == export::Format::Pprof {
            let mut unpacked = Vec::new();
            GzDecoder::new(&whole[..]).read_to_end(&mut unpacked).expect("gzip");
            whole = unpacked;
        }
        for _ in 0..2_000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes[at] = random.draw() as u8,
                    1 => bytes[at] ^= 1 << random.below(8),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            // Whatever is read is a profile whose trees hold together.
            if let Ok(profile) = read("file", &mut &bytes[..]) {
                let metrics = profile.metrics();
                let columns = profile.columns(&profile.merged);
                metrics.iter().for_each(|metric| {
                    metric.values(&profile.merged, &columns);
                });
            }
        }
    }
}

#[test]
fn a_flight_recording_has_samples_of_threads() {
    let stack = [["a/b/C", "deep", "(ILjava/lang/String;)V"], ["a/b/C", "run", "()V"]];
    let bytes = headwater_tests::recording::recording(
        4711,
        &[(5_000_000_000, &stack), (7_000_000_000, &stack[1..]), (9_000_000_000, &stack)],
    );
    let profile = imported(&bytes);
    let stacks = by_stack(&profile, &profile.merged, "samples");
    let stack = |frames: &[&str]| frames.iter().map(|frame| (*frame).to_owned()).collect::<Vec<_>>();
    assert_eq!(stacks[&stack(&["a.b.C.run()", "a.b.C.deep(int, String)"])], 2);
    assert_eq!(stacks[&stack(&["a.b.C.run()"])], 1);
    assert_eq!(profile.threads.iter().map(|thread| &*thread.name).collect::<Vec<_>>(), ["main"]);
    assert_eq!(profile.duration.as_secs(), 4);
    // Two of three samples are 2 ± 1.4.
    let metric = profile.metric("samples").expect("samples");
    let columns = profile.columns(&profile.merged);
    let root = metric.at_node(&profile.merged, &columns, NodeIndex(0));
    assert_eq!((root.total, root.total_error, metric.is_uncertain), (3, 1, true));
    assert!(
        complaint(&headwater_tests::recording::recording(1, &[]))
            .contains("it has no events with stacks that are understood")
    );
}

#[test]
fn each_kind_of_events_of_a_flight_recording_has_its_metrics() {
    const RUN: [&str; 3] = ["a/b/C", "run", "()V"];
    const WORK: [&str; 3] = ["a/b/C", "work", "()V"];
    const READ: [&str; 3] = ["libc.so.6", "__read", "()L;"];
    let happened = |kind, duration_ns, amount, stack| Happened {
        kind,
        at_ns: 5_000_000_000,
        duration_ns,
        amount,
        stack,
        lock: None,
    };
    let events = [
        happened("jdk.ExecutionSample", 0, ("none", 0), &[WORK, RUN]),
        happened("jdk.CPUTimeSample", 0, ("samplingPeriod", 10_000), &[WORK, RUN]),
        happened("jdk.CPUTimeSample", 0, ("samplingPeriod", 10_000), &[]),
        happened("jdk.ObjectAllocationSample", 0, ("weight", 700), &[WORK, RUN]),
        happened("jdk.ObjectAllocationSample", 0, ("weight", 300), &[RUN]),
        happened("jdk.ObjectAllocationInNewTLAB", 0, ("tlabSize", 4_096), &[RUN]),
        happened("jdk.ObjectAllocationOutsideTLAB", 0, ("allocationSize", 4), &[RUN]),
        happened("jdk.JavaMonitorEnter", 2_000_000, ("none", 0), &[WORK, RUN]),
        happened("jdk.JavaMonitorEnter", 3_000_000, ("none", 0), &[WORK, RUN]),
        happened("jdk.SocketRead", 9_000_000, ("bytesRead", 12), &[READ, RUN]),
        happened("profiler.WallClockSample", 0, ("samples", 5), &[READ, RUN]),
        happened("jdk.Unheard", 7, ("none", 7), &[RUN]),
    ];
    let profile = imported(&recording_of(4711, &events));
    let columns = profile.columns(&profile.merged);
    let wholes: Vec<(String, u64)> = profile
        .metrics()
        .iter()
        .map(|metric| (metric.id.to_string(), metric.whole(&profile.merged, &columns)))
        .collect();
    let expected = [
        ("cpu", 20_000_000),
        ("samples", 1),
        ("wall-samples", 5),
        ("alloc", 1_000),
        ("tlab-allocated", 4_100),
        ("blocked", 5_000_000),
        ("socket-read-time", 9_000_000),
        ("socket-read", 12),
        ("cpu-samples", 2),
        ("allocation-samples", 2),
        ("new-tlabs", 1),
        ("outside-tlabs", 1),
        ("blocks", 2),
        ("socket-reads", 1),
    ];
    assert_eq!(wholes, expected.map(|(id, whole)| (id.to_owned(), whole)));
    let stack = |frames: &[&str]| frames.iter().map(|frame| (*frame).to_owned()).collect::<Vec<_>>();
    let work = stack(&["a.b.C.run()", "a.b.C.work()"]);
    assert_eq!(by_stack(&profile, &profile.merged, "blocked")[&work], 5_000_000);
    assert_eq!(by_stack(&profile, &profile.merged, "cpu")[&stack(&["[no stack]"])], 10_000_000);
    assert_eq!(by_stack(&profile, &profile.merged, "socket-read")[&stack(&["a.b.C.run()", "__read"])], 12);
    let cpu = profile.metric("cpu").expect("cpu");
    assert!(cpu.is_uncertain && !profile.metric("blocked").expect("blocked").is_uncertain);
    // Without samples of allocations, what is known of buffers is what was allocated.
    let profile = imported(&recording_of(1, &events[5..7]));
    assert_eq!(profile.metrics()[0].id, "alloc");
}

#[test]
fn what_another_tools_profile_does_not_know_is_not_zero_in_it() {
    let profile = imported(b"a;b 3\n");
    let mut json = Vec::new();
    for view in [View::Tree, View::Flat, View::Callers] {
        report::json::write(&profile, &Options { view, ..Options::default() }, &mut json).expect("memory takes it");
    }
    let json = String::from_utf8(json).expect("text");
    for field in ["calls", "thrown", "self_ns", "total_ns", "base_ns", "cum_ns", "hotswap", "events", "clock", "times"]
    {
        assert!(!json.contains(&format!("\"{field}\":")), "{field}: {json}");
    }
    let csv = String::from_utf8(exported(export::Format::Csv, &profile, Trees::Merged)).expect("text");
    let heading =
        "id,parent,thread_id,thread,level,name,method,samples_self,samples_total,samples_error,samples_total_error";
    assert_eq!(csv.lines().next(), Some(heading));
}
