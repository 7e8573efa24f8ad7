//! The methods that were selected.

use std::time::Duration;

use headwater_protocol::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::known::Known;
use super::lines::Lines;
use super::mirror::{ClassKey, Signature};
use super::policy::Probability;
use super::record::{Drop, Guess, MethodRecord};

/// All of them, and those that could not be.
#[derive(Debug, Default)]
pub(super) struct Methods {
    /// In the order of their numbers, which begin at 1.
    pub(super) all: Vec<MethodRecord>,
    pub(super) by_signature: FxHashMap<(ClassKey, Signature), MethodId>,
    /// Of methods whose lines are roots.
    pub(super) by_lines: FxHashMap<(ClassKey, Signature), Vec<MethodId>>,
    pub(super) by_class: FxHashMap<ClassKey, Vec<MethodId>>,
    pub(super) new_roots: Vec<MethodId>,
    /// Methods that should be instrumented and are not, with the reason.
    pub(super) skipped: Vec<(String, String)>,
    pub(super) skipped_before: FxHashSet<(ClassKey, Signature)>,
    /// Methods that are too trivial to be instrumented, if the user wants that.
    pub(super) trivial: FxHashSet<(ClassKey, Signature)>,
    /// How long has been recorded.
    pub(super) now: Duration,
}

impl Methods {
    /// A method's probability is at least so large; its callees' follow.
    pub(super) fn raise(&mut self, method: MethodId, probability: Probability) {
        let mut pending = vec![(method, probability)];
        while let Some((method, probability)) = pending.pop() {
            let Some(record) = self.record_mut(method) else { continue };
            // Small changes change no decision.
            if probability <= record.probability + 0.01 {
                continue;
            }
            record.probability = probability;
            pending.extend(record.callees.iter().map(|callee| (callee.method, probability * callee.probability)));
        }
    }

    pub(super) fn record(&self, method: MethodId) -> Option<&MethodRecord> {
        self.all.get((method.0 as usize).checked_sub(1)?)
    }

    pub(super) fn record_mut(&mut self, method: MethodId) -> Option<&mut MethodRecord> {
        self.all.get_mut((method.0 as usize).checked_sub(1)?)
    }

    pub(super) fn key_of(&self, method: MethodId) -> Option<ClassKey> {
        Some(self.record(method)?.key)
    }

    /// Whether a class is not to be changed for the sake of objects that nobody names.
    pub(super) fn is_left_running(&self, known: &Known, class: ClassKey) -> bool {
        known.mirrors.get(class).running && !self.by_class.contains_key(&class)
    }

    /// Whether a method is known never to have run, seldom not being never: nobody would tell when it is called.
    pub(super) fn has_never_run_here(&self, known: &Known, class: ClassKey, signature: Signature) -> bool {
        let is_entered =
            self.by_signature.get(&(class, signature)).and_then(|it| self.record(*it)).is_some_and(|it| it.entered);
        !is_entered && known.mirrors.method(class, signature).and_then(|method| method.calls) == Some(0)
    }

    /// Gives a method a number.
    pub(super) fn new_record(
        &mut self,
        known: &Known,
        key: ClassKey,
        signature: Signature,
        lines: Option<Lines>,
    ) -> MethodId {
        let id = MethodId(self.all.len() as u32 + 1);
        let (name, descriptor) = known.mirrors.signature(signature).clone();
        self.all.push(MethodRecord {
            id,
            class: known.mirrors.get(key).name.clone(),
            name,
            descriptor,
            lines,
            root_of: Vec::new(),
            refused: None,
            is_native: false,
            key,
            signature,
            expanded: false,
            callees: Vec::new(),
            probability: 0.0,
            entered: false,
            guess: Guess::None,
            called_next: false,
            missed: None,
            handed_out: false,
            in_place: false,
            drop: Drop::No,
        });
        id
    }
}
