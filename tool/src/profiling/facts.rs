//! What a session knows at one moment, taken from it quickly: the profile is made of it while the session goes on serving the target.

use std::sync::Arc;

use headwater_protocol::{MethodId, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Settings;
use super::history::History;
use super::reach::Remembered;
use crate::budget::Governor;
use crate::callgraph::{MethodRecord, Missed, PatternIndex, Unseen};
use crate::profile::{Discovery, MethodIndex, MethodName, Skipped, tell_apart};
use crate::session::{HotswapTotals, Hotswapped, Session};

/// What a session knows at one moment.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The root patterns with their methods.
    pub(super) roots: Vec<(String, Vec<MethodIndex>)>,
    pub(super) methods: Vec<MethodName>,
    pub(super) instrumented: usize,
    pub(super) discovery: Discovery,
    pub(super) missed: Vec<(MethodIndex, Missed)>,
    pub(super) unseen: Vec<Unseen>,
    /// Methods that have probes because one sample has shown them, if it is such.
    pub(super) by_chance: FxHashSet<MethodId>,
    pub(super) skipped: Vec<Skipped>,
    pub(super) remembered: Remembered,
    pub(super) hotswap: HotswapTotals,
    pub(super) hotswaps: Vec<Hotswapped>,
    /// How many classes were changed at once, if others had to wait for compilers.
    pub(super) held_back_to: Option<usize>,
    /// The classes that were not changed because each by itself would have taken too much of the program's time.
    pub(super) too_much: Vec<String>,
    pub(super) lost: u64,
    pub(super) uses_tsc: bool,
    pub(super) threads: FxHashMap<ThreadId, String>,
    pub(super) deadlines_passed: Vec<String>,
    pub(super) remarks: Vec<String>,
    pub(super) uncounted: Vec<String>,
    pub(super) governor: Option<Governor>,
    /// What was counted beside calls, and when.
    pub(super) history: History,
    /// Names of classes by their numbers, if something is counted by them.
    pub(super) classes: FxHashMap<u64, Arc<str>>,
    /// What objects are called by the numbers of the sites that make them, if they are counted.
    pub(super) sites: Vec<Arc<str>>,
    /// When recording began.
    pub(super) began_ns: i64,
    /// How long the steps of the coarse clock were, if there is one.
    pub(super) step_ns: Option<f64>,
}

impl Facts {
    /// Takes them.
    pub(crate) fn of(session: &Session, settings: &Settings, history: &History, step_ns: Option<f64>) -> Facts {
        let graph = session.graph();
        let roots_of = |(index, pattern): (usize, String)| {
            let methods = graph.roots_of(PatternIndex(index)).map(|method| MethodIndex(method.id.0 as usize - 1));
            (pattern, methods.collect())
        };
        let skipped = |(method, reason): &(String, String)| Skipped { method: method.clone(), reason: reason.clone() };
        let name = |method: &MethodRecord| MethodName { machine: method.java_name(), display: method.display_name() };
        let mut methods: Vec<MethodName> = graph.methods().iter().map(name).collect();
        tell_apart(&mut methods);
        Facts {
            roots: settings.root_names().enumerate().map(roots_of).collect(),
            methods,
            instrumented: graph.instrumented(),
            discovery: Discovery {
                scheme: graph.scheme(),
                reveal: settings.reveal,
                late: graph.late() + graph.linked_late(),
                trivial: graph.trivial(),
                quiet_after: session.quiet_after(),
            },
            missed: graph.missed().map(|(id, missed)| (MethodIndex(id.0 as usize - 1), missed)).collect(),
            unseen: graph.unseen(),
            by_chance: graph.chosen_by_chance().collect(),
            skipped: graph.skipped().iter().map(skipped).collect(),
            remembered: Remembered::of(graph, settings),
            hotswap: session.hotswap_totals(),
            hotswaps: session.hotswaps().to_vec(),
            held_back_to: session.held_back_to(),
            too_much: session.too_much().collect(),
            lost: session.lost(),
            uses_tsc: session.uses_tsc(),
            // A thread that comes back after an interruption is told of again.
            threads: session.threads().iter().cloned().collect(),
            deadlines_passed: session.deadlines_passed().to_vec(),
            remarks: session.remarks().to_vec(),
            uncounted: session.uncounted().to_vec(),
            governor: session.governor().cloned(),
            history: history.clone(),
            classes: match history.ever().names_classes() {
                true => graph.classes().map(|(id, name)| (id.0, name.clone())).collect(),
                false => FxHashMap::default(),
            },
            sites: graph.objects().to_vec(),
            began_ns: session.recorded().began_ns(),
            step_ns,
        }
    }

    /// Methods that may have been called, and were not instrumented by now.
    pub(super) fn never_instrumented(&self) -> impl Iterator<Item = MethodIndex> {
        self.missed.iter().filter(|(_, missed)| missed.until.is_none()).map(|(method, _)| *method)
    }
}
