//! Every reader of what others write, each as one function: for `cargo xtask fuzz`, which gives them anything.
//!
//! What was read is shown as the commands show it: a number that is believed may do its harm only there. All functions say whether there was
//! something that could be understood.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io;
use std::time::Duration;

use headwater_protocol::message::Calibration;

use crate::decode::Decoder;
use crate::export::{self, Format};
use crate::import;
use crate::import::recording::locks;
use crate::jvm::perfdata::PerfData;
use crate::page;
use crate::profile::{ClockMode, Profile, Target};
use crate::profiling::assemble;
use crate::profiling::facts::Facts;
use crate::profiling::{History, Settings, Undisturbed};
use crate::report::{self, Options, Trees, View, text};
use crate::script::{Script, Target as ScriptTarget};
use crate::session::Session;
use crate::snapshot;
use crate::thread_dump::{self, heap};
use crate::threads::report as threads_report;
use crate::threads::{Taken, read, virtual_threads};

const FORMATS: [Format; 10] = [
    Format::Collapsed,
    Format::Svg,
    Format::Dot,
    Format::Graph,
    Format::Pprof,
    Format::Speedscope,
    Format::Firefox,
    Format::Callgrind,
    Format::Csv,
    Format::OpenMetrics,
];

const VIEWS: [(View, Trees); 5] = [
    (View::Tree, Trees::Merged),
    (View::Callers, Trees::Merged),
    (View::Flat, Trees::PerThread),
    (View::Locks, Trees::Merged),
    (View::Tracks, Trees::Merged),
];
/// In which a profile is shown: these, and the page.
const WAYS: usize = VIEWS.len() + FORMATS.len() + 1;

/// A session script, as it is checked before anything is done.
pub fn script(text: &str) -> bool {
    Script::parse("script", text, &[], ScriptTarget::Given).is_ok_and(|script| script.len() > 0)
}

/// The file in which a JVM publishes its performance data.
pub fn perf_data(bytes: &[u8]) -> bool {
    PerfData::parse(bytes).is_ok_and(|data| data.string("sun.rt.javaCommand").is_some())
}

/// A recording of the JVM's flight recorder.
pub fn recording(bytes: &[u8]) -> bool {
    if let Ok(recorded) = headwater_jfr::waits(bytes) {
        let (contention, places) = locks::contention(&recorded);
        assert!(places.len() == recorded.events.len() && contention.holds(&Default::default()));
    }
    if let Ok(at_work) = headwater_jfr::threads_at_work(bytes, headwater_jfr::Lines::Known) {
        assert_eq!(at_work.lines.len(), at_work.methods.len());
    }
    headwater_jfr::samples(bytes).is_ok_and(|samples| !samples.stacks.is_empty())
}

/// What a JVM says of its threads: HotSpot's own dump, and what it tells of virtual threads.
pub fn threads(text: &str, json: &[u8]) -> bool {
    let mut dump = read::read(text);
    let is_told = virtual_threads::add(&mut dump, json).is_ok();
    let is_understood = !dump.threads.is_empty() && is_told;
    let (waits, deadlocks) = thread_dump::find(&dump, &Default::default());
    let taken = Taken { pid: 1, main: String::new(), dump, waits, deadlocks, cpu: None, warnings: Vec::new() };
    shown(threads_report::write_text(&taken, threads_report::Depth(None), &text::Style::default(), &mut io::sink()));
    shown(threads_report::json::write_json(&taken, &mut io::sink()));
    is_understood
}

/// Smaller answers of a JVM: how much of its heap is used, which classes extend which.
pub fn answers(text: &str) -> bool {
    heap::used_bytes(text).is_some() | !thread_dump::supertypes_of("a.b.C", text).is_empty()
}

/// A profile from a file, and one of the things that are made of it.
pub fn snapshot(bytes: &[u8]) -> bool {
    let Ok(profile) = snapshot::read(&mut &bytes[..]) else { return false };
    show(&profile, way_for(bytes));
    true
}

/// Another tool's profile, and one of the things that are made of it.
pub fn import(bytes: &[u8]) -> bool {
    let Ok(profile) = import::read("file", &mut &bytes[..]) else { return false };
    show(&profile, way_for(bytes));
    profile.imported.is_some()
}

/// The profile of a session that has ended, with what was decoded, and all that is made of it.
pub fn profile(session: &Session, settings: &Settings, decoder: &mut Decoder, calibration: Calibration) {
    let facts = Facts::of(session, settings, &History::begun(settings.counting), None);
    let target = Target { pid: 1, main: String::new(), ..Target::default() };
    let undisturbed = Undisturbed::default();
    let duration = Duration::from_secs(1);
    let profile = assemble::profile(facts, decoder, target, ClockMode::Exact, calibration, &undisturbed, duration);
    (0..WAYS).for_each(|way| show(&profile, way));
}

/// How an input is shown: another is shown otherwise. All ways together take a hundred times as long as reading.
fn way_for(input: &[u8]) -> usize {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(input);
    usize::try_from(hash % WAYS as u64).unwrap_or(0)
}

/// As a view, as a format, or as the page.
fn show(profile: &Profile, way: usize) {
    if let Some((view, trees)) = VIEWS.get(way).copied() {
        let options = Options { view, trees, ..Options::default() };
        let style = text::Style { provenance: true, verbose: true, ..text::Style::default() };
        shown(text::write(profile, &options, &style, &mut io::sink()));
        shown(report::json::write(profile, &options, &mut io::sink()));
    } else if let Some(format) = FORMATS.get(way - VIEWS.len()) {
        shown(export::write(*format, profile, &Options::default(), &mut io::sink()));
    } else {
        shown(page::write_profile(profile, &mut io::sink()));
    }
}

/// A sink takes everything; what a format has no way to say is an error of its own.
fn shown(result: io::Result<()>) {
    drop(result);
}
