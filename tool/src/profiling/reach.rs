//! How methods were reached, from what the call graph remembers to what a profile keeps.

use std::sync::Arc;

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use super::Settings;
use crate::callgraph::{CallGraph, Fate, JdkMethods, Moment, Origin, Unselected};
use crate::pattern::{ClassPattern, java_name};
use crate::profile::MethodIndex;
use crate::profile::reach::{self, Cause, Reach, ReachOptions, Reached, Unprobed};

/// What the call graph remembers at one moment: taken quickly, so that the target is served again.
#[derive(Debug)]
pub(super) struct Remembered {
    fates: Vec<Fate>,
    unselected: Vec<Unselected>,
    classes: Vec<Arc<str>>,
    wanted: ReachOptions,
}

impl Remembered {
    /// Whether the user has named what is to be counted.
    pub(super) fn has_includes(&self) -> bool {
        !self.wanted.include.is_empty()
    }

    pub(super) fn of(graph: &CallGraph, settings: &Settings) -> Remembered {
        let options = &settings.subgraph;
        let texts = |patterns: &[ClassPattern]| patterns.iter().map(ToString::to_string).collect();
        Remembered {
            fates: graph.methods().iter().map(|method| graph.fate(method)).collect(),
            unselected: graph.passed_over(),
            classes: graph.application_classes().cloned().collect(),
            wanted: ReachOptions {
                include: texts(&options.include),
                exclude: texts(&options.exclude),
                jdk: match options.jdk {
                    JdkMethods::None => "none",
                    JdkMethods::Edge => "edge",
                    JdkMethods::All => "all",
                }
                .to_owned(),
                natives: options.natives,
                only_roots: options.only_roots,
            },
        }
    }

    /// The same by names.
    pub(super) fn reach(self) -> Reach {
        let mut types = Types::default();
        let methods = self.fates.iter().map(|fate| reached(fate, &mut types)).collect();
        let mut others: Vec<Unprobed> = self.unselected.iter().map(|method| unprobed(method, &mut types)).collect();
        // What is known first counts.
        others.sort_by(|one, other| one.machine.cmp(&other.machine));
        others.dedup_by(|one, other| one.machine == other.machine);
        let mut classes: Vec<String> = self.classes.iter().map(|class| class.replace('/', ".")).collect();
        classes.sort_unstable();
        classes.dedup();
        Reach { wanted: self.wanted, types: types.names, methods, others, classes }
    }
}

/// Names of types, each once.
#[derive(Default)]
struct Types {
    names: Vec<String>,
    known: FxHashMap<Arc<str>, usize>,
}

impl Types {
    fn cause(&mut self, origin: &Origin) -> Cause {
        let by = origin.by.map(|MethodId(number)| MethodIndex(number as usize - 1));
        let through = origin.through.as_ref().map(|name| match self.known.get(name) {
            Some(known) => *known,
            None => {
                self.names.push(name.replace('/', "."));
                self.known.insert(name.clone(), self.names.len() - 1);
                self.names.len() - 1
            }
        });
        Cause { by, way: origin.way, through }
    }
}

fn moment(moment: Moment) -> reach::Moment {
    reach::Moment::new(moment.recorded, moment.batches)
}

fn reached(fate: &Fate, types: &mut Types) -> Reached {
    Reached {
        cause: types.cause(&fate.origin),
        was_unnamed: fate.was_unnamed,
        trigger: fate.trigger,
        found: moment(fate.found),
        probed: fate.probed.map(moment),
        lacks: fate.lacks,
    }
}

fn unprobed(method: &Unselected, types: &mut Types) -> Unprobed {
    Unprobed {
        machine: java_name(&method.class, &method.name, &method.descriptor),
        why: method.why,
        cause: types.cause(&method.origin),
    }
}
