//! A profile in the formats of other tools; docs/GUIDE.md says which tool opens which.
//!
//! A format that has room for several values a node has all metrics of the profile; one that has not has the leading one, which is
//! corrected time unless the user says another. What the profile does not know, such as files and lines, is left out.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::profile::{Amount, Columns, MethodIndex, Metric, NodeIndex, Profile, ThreadProfile, Tree};
use crate::report::chosen::Chosen;
use crate::report::units::{count, plural};
use crate::report::{NothingSelected, Options, Trees, is_doubtful};
use headwater_terms::printable::printable;
use rustc_hash::FxHashSet;

mod callgrind;
mod collapsed;
mod csv;
mod dot;
mod firefox;
mod functions;
mod graph;
mod graph_svg;
mod layout;
mod openmetrics;
mod pprof;
mod speedscope;
mod svg;
mod walk;

/// A format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// One line a stack, frames joined by semicolons, and its self time: what flame graph scripts read.
    Collapsed,
    /// A flame graph, with zoom and search, for a browser.
    Svg,
    /// The call graph, each method once, for Graphviz.
    Dot,
    /// The same as a picture.
    Graph,
    /// Gzipped protocol buffers for `go tool pprof`, Pyroscope and Parca.
    Pprof,
    /// For <https://www.speedscope.app>.
    Speedscope,
    /// For <https://profiler.firefox.com>: its processed profile format.
    Firefox,
    /// For KCachegrind and `callgrind_annotate`.
    Callgrind,
    /// One row a node, for spreadsheets and data frames.
    Csv,
    /// One set of metrics a method, for Prometheus and its kin.
    OpenMetrics,
}

/// File names' endings, and the formats that they mean. Longer ones come first.
const ENDINGS: [(&str, Format); 15] = [
    (".speedscope.json", Format::Speedscope),
    (".firefox.json", Format::Firefox),
    (".graph.svg", Format::Graph),
    (".openmetrics", Format::OpenMetrics),
    (".callgrind", Format::Callgrind),
    (".collapsed", Format::Collapsed),
    (".folded", Format::Collapsed),
    (".pb.gz", Format::Pprof),
    (".pprof", Format::Pprof),
    (".prom", Format::OpenMetrics),
    (".svg", Format::Svg),
    (".dot", Format::Dot),
    (".csv", Format::Csv),
    (".gv", Format::Dot),
    (".om", Format::OpenMetrics),
];

impl Format {
    /// What the command line calls it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Collapsed => "collapsed",
            Format::Svg => "svg",
            Format::Dot => "dot",
            Format::Graph => "graph",
            Format::Pprof => "pprof",
            Format::Speedscope => "speedscope",
            Format::Firefox => "firefox",
            Format::Callgrind => "callgrind",
            Format::Csv => "csv",
            Format::OpenMetrics => "openmetrics",
        }
    }

    /// Who reads it, in a few words.
    pub fn consumer(self) -> &'static str {
        match self {
            Format::Collapsed => "Collapsed stacks, for flame graph scripts",
            Format::Svg => "A flame graph, for browsers",
            Format::Dot => "The call graph, for Graphviz",
            Format::Graph => "The call graph as a picture (SVG)",
            Format::Pprof => "For `go tool pprof`, Pyroscope and Parca",
            Format::Speedscope => "For speedscope.app",
            Format::Firefox => "For profiler.firefox.com",
            Format::Callgrind => "For KCachegrind and callgrind_annotate",
            Format::Csv => "A table of the tree's nodes",
            Format::OpenMetrics => "Metrics of the methods, for Prometheus",
        }
    }

    /// The format that a file's name asks for: by its ending, or by its beginning, as `callgrind.out.4711` does.
    pub fn of_file_name(name: &str) -> Option<Format> {
        let ending = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        ending.map(|(_, format)| *format).or_else(|| name.starts_with("callgrind.out").then_some(Format::Callgrind))
    }

    /// Fails if a metric that was asked for is none that it can have: all are sums over nodes.
    ///
    /// # Errors
    ///
    /// [`NothingSelected::Quotient`].
    pub fn check(self, profile: &Profile, options: &Options) -> Result<(), NothingSelected> {
        match Chosen::of(profile, options).derived().next() {
            None => Ok(()),
            Some(quotient) => Err(NothingSelected::Quotient {
                id: quotient.id.clone().into_owned(),
                what: self.name(),
                ids: additive(profile).into_iter().map(|metric| metric.id.into_owned()).collect(),
            }),
        }
    }
}

/// Writes the trees of a profile that the options name, and of the metrics that they name the first where there is room for one. Nothing is
/// left out, but of call graphs.
///
/// # Errors
///
/// Those of the writer.
pub fn write(format: Format, profile: &Profile, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let parts = parts(profile, options.trees);
    let lead = Chosen::of(profile, options).weight().clone();
    let started = started(profile);
    match format {
        Format::Collapsed => collapsed::write(profile, &lead, &parts, out),
        Format::Svg => svg::write(profile, &lead, &parts, out),
        Format::Dot => dot::write(profile, &lead, options.min_share, out),
        Format::Graph => graph_svg::write(profile, &lead, options.min_share, out),
        Format::Pprof => pprof::write(profile, &lead, &parts, started, out),
        Format::Speedscope => speedscope::write(profile, &tracks(profile, options), &parts, out),
        Format::Firefox => firefox::write(profile, &tracks(profile, options), &parts, started, out),
        Format::Callgrind => callgrind::write(profile, &parts, out),
        Format::Csv => csv::write(profile, &parts, out),
        Format::OpenMetrics => openmetrics::write(profile, &parts, out),
    }
}

/// When the recording began, if that is known: pprof and the Firefox Profiler have a place for it.
fn started(profile: &Profile) -> Option<SystemTime> {
    let seconds = profile.environment.started_s;
    (seconds != 0).then(|| UNIX_EPOCH.checked_add(Duration::from_secs(seconds))).flatten()
}

/// One of the trees to be exported.
#[derive(Clone, Debug)]
struct ExportedTree<'a> {
    /// Whose it is; `None` for the tree of all threads.
    thread: Option<&'a ThreadProfile>,
    tree: &'a Tree,
    columns: Columns<'a>,
}

impl<'a> ExportedTree<'a> {
    fn of(profile: &Profile, thread: Option<&'a ThreadProfile>, tree: &'a Tree) -> ExportedTree<'a> {
        ExportedTree { thread, tree, columns: profile.columns(tree) }
    }

    /// A metric of a node.
    fn amount(&self, metric: &Metric, index: NodeIndex) -> Amount {
        metric.at_node(self.tree, &self.columns, index)
    }

    /// A metric of all nodes.
    fn whole(&self, metric: &Metric) -> u64 {
        (0..self.tree.nodes.len()).map(|index| self.amount(metric, NodeIndex(index)).own).sum()
    }

    /// A frame that stands for the thread, as async-profiler writes it.
    fn thread_frame(&self) -> Option<String> {
        self.thread.map(|thread| format!("[{} tid={}]", thread.shown_name(), thread.id.0))
    }

    /// A name for the whole tree.
    fn title(&self) -> String {
        self.thread_frame().unwrap_or_else(|| "[all threads]".to_owned())
    }
}

fn parts(profile: &Profile, trees: Trees) -> Vec<ExportedTree<'_>> {
    match trees {
        Trees::Merged => vec![ExportedTree::of(profile, None, &profile.merged)],
        Trees::PerThread => {
            profile.threads.iter().map(|thread| ExportedTree::of(profile, Some(thread), &thread.tree)).collect()
        }
    }
}

/// The metrics that flame graphs can be made of: those that add up.
fn additive(profile: &Profile) -> Vec<Metric> {
    profile.metrics().into_iter().filter(|metric| metric.is_additive).collect()
}

/// The metrics that are exported where each takes the room of a whole tree: those that the user names, or all but counts that every
/// profile has.
fn tracks(profile: &Profile, options: &Options) -> Vec<Metric> {
    let named = |metric: &Metric| options.metrics.iter().any(|id| metric.id == *id);
    let is_usual = |metric: &Metric| metric.is_time() || metric.is_column();
    let is_meant = |metric: &Metric| if options.metrics.is_empty() { is_usual(metric) } else { named(metric) };
    additive(profile).into_iter().filter(is_meant).collect()
}

/// A metric's name where only letters, digits and underscores may be.
fn identifier(metric: &Metric) -> String {
    metric.id.replace('-', "_")
}

/// The tool and its version, for formats that name their creator.
fn creator() -> &'static str {
    concat!("headwater ", env!("CARGO_PKG_VERSION"))
}

/// What a file of profiles is called.
fn title(profile: &Profile) -> String {
    if profile.imported.is_some() {
        return one_line(&profile.target.main);
    }
    let roots: Vec<&str> = profile.roots.iter().map(|root| root.pattern.as_str()).collect();
    one_line(&format!("{} (pid {}): {}", profile.target.main, profile.target.pid, roots.join(", ")))
}

/// What the reader should know of a profile, for formats that have room for remarks.
fn remarks(profile: &Profile) -> Vec<String> {
    if let Some(format) = &profile.imported {
        return vec![format!("{}, read from {format}", title(profile))];
    }
    let mut remarks = vec![
        format!("{}, JDK {}", title(profile), profile.target.jdk),
        format!(
            "{} in nanoseconds, the profiler's own cost taken out; calls are counted, not sampled",
            profile.time_metric().title
        ),
    ];
    let events = &profile.events;
    remarks.push(format!("{} events recorded, {} lost, {} healed", events.recorded, events.lost, events.healed));
    remarks.extend(shortcomings(profile));
    remarks.extend(profile.warnings.iter().map(|warning| format!("warning: {warning}")));
    remarks
}

/// What of a profile's numbers is a bound only: where a format has no place for it at each number, it is said once.
fn shortcomings(profile: &Profile) -> Vec<String> {
    /// Methods that are named.
    const NAMED: usize = 50;
    let mut shortcomings = Vec::new();
    let named = |methods: &mut dyn Iterator<Item = MethodIndex>| {
        let mut names: Vec<&str> = Vec::new();
        let mut known = FxHashSet::default();
        names.extend(methods.map(|method| &*profile.methods[method.0].display).filter(|name| known.insert(*name)));
        let methods = plural(names.len() as u64, "method", "methods");
        if names.len() > NAMED {
            names.splice(NAMED.., ["..."]);
        }
        (methods, names.join(", "))
    };
    if !profile.at_least.is_empty() {
        let (methods, names) = named(&mut profile.at_least.iter().map(|at_least| at_least.method));
        shortcomings.push(format!("calls may be missing of {methods}, and of what they call: {names}"));
    }
    if !profile.unseen.is_empty() {
        let (methods, names) = named(&mut profile.unseen.iter().map(|unseen| unseen.method));
        shortcomings.push(format!(
            "{methods} may have been called and got no probes; what only these call is missing too: {names}"
        ));
    }
    let nodes = &profile.merged.nodes;
    let bounded = nodes.iter().filter(|node| is_doubtful(node.self_ns, node.error_ns)).count();
    if bounded > 0 {
        shortcomings.push(format!(
            "of the self times of {} of {} only a bound is known: their uncertainty is larger",
            count(bounded as u64),
            plural(nodes.len() as u64, "calling context", "calling contexts")
        ));
    }
    shortcomings
}

/// A text for a format whose lines or XML documents control characters would break.
fn one_line(text: &str) -> String {
    printable(text).into_owned()
}

/// A count for a format that has signed numbers only.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use headwater_protocol::ThreadId;

    use super::*;
    use crate::profile::testing::{profile_of, random_tree};

    /// A profile some of whose counts are too low, and some of whose times are bounds.
    fn incomplete() -> Profile {
        let mut profile = profile_of(random_tree(7, 60, 4), Vec::new(), 4);
        profile.merged.nodes[0].error_ns = profile.merged.nodes[0].self_ns + 1;
        profile
    }

    fn written(format: Format, profile: &Profile) -> String {
        let mut out = Vec::new();
        write(format, profile, &Options::default(), &mut out).expect("memory takes it");
        if format == Format::Pprof {
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(&out[..]).read_to_end(&mut unpacked).expect("gzip");
            out = unpacked;
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn counts_that_may_be_too_low_and_times_that_are_bounds_are_marked_as_far_as_a_format_can() {
        let marked = incomplete();
        let complete = Profile { at_least: Vec::new(), unseen: Vec::new(), ..marked.clone() };
        const NAMED: &str = "calls may be missing of 1 method, and of what they call: com.acme.Shop.m1(int)";
        const UNSEEN: &str = "1 method may have been called and got no probes";
        const BOUNDS: &str = "only a bound is known: their uncertainty is larger";
        for (format, marks) in [
            (Format::Csv, &["cpu_share,at_least,unseen_callees", ",true,"][..]),
            (Format::Pprof, &[NAMED, UNSEEN, BOUNDS, "at least", "time_at_most"]),
            (Format::Callgrind, &[NAMED, UNSEEN, BOUNDS]),
            (Format::Speedscope, &[NAMED, UNSEEN, BOUNDS]),
            (Format::Firefox, &[NAMED, UNSEEN, BOUNDS]),
            // Its subtitle has room for one.
            (Format::Svg, &[NAMED]),
            (
                Format::OpenMetrics,
                &[
                    "headwater_method_calls_incomplete{method=\"com.acme.Shop.m1(I)V\"} 1",
                    "at least so many",
                    "headwater_method_inclusive_error_seconds{",
                ],
            ),
        ] {
            let text = written(format, &marked);
            for mark in marks {
                assert!(text.contains(mark), "{format:?}: {mark} is not in\n{text}");
            }
            assert!(!written(format, &complete).contains(NAMED), "{format:?}");
        }
        assert!(!written(Format::Csv, &complete).contains(",true,"));
    }

    #[test]
    fn no_format_that_is_read_as_text_has_what_a_terminal_obeys() {
        let mut hostile = incomplete();
        const NAME: &str = "a\u{1b}[2J\u{202e}\nb";
        hostile.target.main = NAME.into();
        hostile.roots[0].pattern = NAME.into();
        for method in &mut hostile.methods {
            method.machine = method.machine.replace("Shop", NAME);
            method.display = method.display.replace("Shop", NAME);
        }
        let threads = vec![ThreadProfile { id: ThreadId(1), name: NAME.into(), tree: hostile.merged.clone() }];
        hostile.threads = threads;
        for format in
            [Format::Collapsed, Format::Svg, Format::Dot, Format::Graph, Format::Callgrind, Format::OpenMetrics]
        {
            for trees in [Trees::Merged, Trees::PerThread] {
                let mut out = Vec::new();
                write(format, &hostile, &Options { trees, ..Options::default() }, &mut out).expect("memory takes it");
                let text = String::from_utf8(out).expect("text");
                assert!(!text.contains(['\u{1b}', '\u{202e}']), "{format:?}: {text}");
                assert!(!text.lines().any(|line| line.starts_with('b')), "{format:?}: {text}");
            }
        }
    }

    #[test]
    fn a_file_name_tells_the_format() {
        for (name, format) in [
            ("a.collapsed", Some(Format::Collapsed)),
            ("a.folded", Some(Format::Collapsed)),
            ("a.svg", Some(Format::Svg)),
            ("a.graph.svg", Some(Format::Graph)),
            ("a.dot", Some(Format::Dot)),
            ("a.pb.gz", Some(Format::Pprof)),
            ("a.pprof", Some(Format::Pprof)),
            ("a.speedscope.json", Some(Format::Speedscope)),
            ("a.firefox.json", Some(Format::Firefox)),
            ("a.callgrind", Some(Format::Callgrind)),
            ("callgrind.out.4711", Some(Format::Callgrind)),
            ("a.csv", Some(Format::Csv)),
            ("a.om", Some(Format::OpenMetrics)),
            ("a.prom", Some(Format::OpenMetrics)),
            ("a.json", None),
            ("a.gz", None),
            ("speedscope.json", None),
        ] {
            assert_eq!(Format::of_file_name(name), format, "{name}");
        }
    }
}
