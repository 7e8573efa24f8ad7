//! Classes that were loaded when we came, and not linked.
//!
//! The verifier loads classes long before anybody uses them. Of such a class neither methods nor supertypes are known, so what is called
//! in it is selected when it is linked, which takes a batch; in a javac that has just started, two of five batches were of that kind, most of them of
//! one class. So what a batch is about to call there is linked before, as the program would soon, and goes into the same batch.
//!
//! Only in a program that starts, where little else is as dear; and only classes of the JDK's application class loader: to link a class may load
//! others, which runs the code of its loader, and that must not be the application's.

use std::sync::Arc;

use headwater_protocol::ClassId;
use headwater_protocol::message::{ClassInfo, UnlinkedClass};
use headwater_rewriter::CallSites;
use rustc_hash::{FxHashMap, FxHashSet};

use super::ahead::{self, Probability};
use super::filter::JdkMethods;
use super::mirror::ClassKey;
use super::{CallGraph, Step};

/// From this probability of a call on its class is linked ahead.
const LINKED_AHEAD: Probability = 0.1;

/// What is known of them.
#[derive(Debug, Default)]
pub(super) struct Unlinked {
    /// By name: they are all of one loader.
    classes: FxHashMap<Arc<str>, ClassId>,
    /// Those of them that are probably used soon.
    wanted: FxHashSet<ClassId>,
    /// Those that were linked for the current work.
    linked: Vec<ClassKey>,
    /// ... and are not instrumented yet.
    bare: Vec<ClassKey>,
    /// Methods of such classes that may have been called before they were.
    late: usize,
}

impl Unlinked {
    /// A class is linked now.
    pub(super) fn remove(&mut self, name: &str) {
        if let Some(class) = self.classes.remove(name) {
            self.wanted.remove(&class);
        }
    }

    /// To which the call graph has to be applied until the current work is done.
    pub(super) fn linked_ahead(&self) -> Vec<ClassKey> {
        self.linked.clone()
    }

    /// The current work is done.
    pub(super) fn settled(&mut self) {
        self.linked.clear();
    }
}

impl CallGraph {
    /// Classes of the JDK's application class loader that are loaded, and not linked.
    pub fn add_unlinked(&mut self, classes: Vec<UnlinkedClass>) {
        self.unlinked.classes.extend(classes.into_iter().map(|class| (class.name.into(), class.id)));
    }

    /// A method is about to call this: what it uses for that is worth linking.
    pub(super) fn want_linked(&mut self, sites: &CallSites, probability: Probability) {
        if self.unlinked.classes.is_empty() {
            return;
        }
        for call in &sites.calls {
            if probability * ahead::of_call(call.likelihood) >= LINKED_AHEAD
                && let Some(class) = self.unlinked.classes.get(&*call.owner)
            {
                self.unlinked.wanted.insert(*class);
            }
        }
    }

    /// What is to be linked before a batch, if one is due.
    pub(super) fn links_ahead(&mut self) -> Vec<ClassId> {
        // Where the JDK's code is instrumented, linking would run it.
        let may_link = self.options.jdk == JdkMethods::None && !self.roots_only && self.is_starting();
        if self.unlinked.wanted.is_empty() || !may_link || !self.wants_hotswap() {
            return Vec::new();
        }
        let wanted = std::mem::take(&mut self.unlinked.wanted);
        // What cannot be linked is not asked for again.
        self.unlinked.classes.retain(|_, class| !wanted.contains(class));
        let mut links: Vec<ClassId> = wanted.into_iter().collect();
        links.sort_unstable();
        links
    }

    /// Classes have been linked, for the current work or meanwhile; goes on with it.
    pub fn add_linked(&mut self, classes: Vec<ClassInfo>) -> Step {
        for info in classes {
            self.unlinked.remove(&info.name);
            let key = self.mirrors.linked(info);
            self.unlinked.linked.push(key);
            self.unlinked.bare.push(key);
        }
        self.resume()
    }

    /// A batch is over, and so many threads had been in the graph then: another than the one that linked classes for it may have called
    /// them before.
    pub fn instrumented_linked(&mut self, threads: u32) {
        for class in std::mem::take(&mut self.unlinked.bare) {
            let methods = self.by_class.get(&class).map_or(&[][..], Vec::as_slice);
            let records = || methods.iter().filter_map(|method| self.record(*method));
            if records().any(|record| !record.handed_out && record.refused.is_none()) {
                // It comes in the next batch.
                self.unlinked.bare.push(class);
            } else if threads > 1 {
                self.unlinked.late += records().filter(|record| record.refused.is_none()).count();
            }
        }
    }

    /// How many methods they may have called.
    pub fn linked_late(&self) -> usize {
        self.unlinked.late
    }
}
