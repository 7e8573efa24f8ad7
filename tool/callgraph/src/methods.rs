//! The methods that were selected.

use headwater_protocol::MethodId;
use headwater_terms::pattern::java_name;
use headwater_terms::reach::Trigger;
use rustc_hash::{FxHashMap, FxHashSet};

use super::cause::{Cause, History, Moment};
use super::known::Known;
use super::lines::Lines;
use super::mirror::{ClassKey, Signature};
use super::passed_over::PassedOver;
use super::policy::Probability;
use super::record::{Drop, Guess, MethodRecord, Missed};

/// All of them, and those that could not be.
#[derive(Debug, Default)]
pub(super) struct Methods {
    /// In the order of their numbers, which begin at 1.
    all: Vec<MethodRecord>,
    by_signature: FxHashMap<(ClassKey, Signature), MethodId>,
    /// Of methods whose lines are roots.
    by_lines: FxHashMap<(ClassKey, Signature), Vec<MethodId>>,
    by_class: FxHashMap<ClassKey, Vec<MethodId>>,
    new_roots: Vec<MethodId>,
    /// Methods that should be instrumented and are not, with the reason.
    skipped: Vec<(String, String)>,
    skipped_before: FxHashSet<(ClassKey, Signature)>,
    /// Methods that are too trivial to be instrumented, if the user wants that.
    trivial: FxHashSet<(ClassKey, Signature)>,
    /// Methods that are reached and not selected.
    pub(super) passed_over: PassedOver,
    now: Moment,
    /// What methods are found upon just now.
    trigger: Trigger,
}

impl Methods {
    /// In the order of their numbers.
    pub(super) fn all(&self) -> &[MethodRecord] {
        &self.all
    }

    /// There are no more numbers.
    pub(super) fn are_full(&self) -> bool {
        self.all.len() >= MethodId::MAX.0 as usize
    }

    /// A whole method's number.
    pub(super) fn of(&self, class: ClassKey, signature: Signature) -> Option<MethodId> {
        self.by_signature.get(&(class, signature)).copied()
    }

    /// The numbers of its lines that are roots.
    pub(super) fn lines_of(&self, class: ClassKey, signature: Signature) -> &[MethodId] {
        self.by_lines.get(&(class, signature)).map_or(&[], Vec::as_slice)
    }

    /// Those in a class that are not native.
    pub(super) fn in_class(&self, class: ClassKey) -> &[MethodId] {
        self.by_class.get(&class).map_or(&[], Vec::as_slice)
    }

    /// A method that is to be instrumented from now on.
    pub(super) fn add(
        &mut self,
        known: &Known,
        class: ClassKey,
        signature: Signature,
        lines: Option<Lines>,
        cause: Cause,
    ) -> MethodId {
        let id = self.new_record(known, class, signature, lines, cause);
        self.by_class.entry(class).or_default().push(id);
        id
    }

    /// A method should be instrumented and is not, for this reason.
    pub(super) fn skip(&mut self, name: String, reason: String) {
        self.skipped.push((name, reason));
    }

    /// The same, unless that has been said.
    pub(super) fn skip_unless_told(&mut self, name: String, reason: String) {
        if !self.skipped.iter().any(|(known, why)| *known == name && *why == reason) {
            self.skip(name, reason);
        }
    }

    /// The same, told once.
    pub(super) fn skip_once(&mut self, known: &Known, class: ClassKey, signature: Signature, reason: &str) {
        if self.skipped_before.insert((class, signature)) {
            let (name, descriptor) = known.mirrors.signature(signature);
            self.skip(java_name(&known.mirrors.get(class).name, name, descriptor), reason.to_owned());
        }
    }

    /// Those that are not, each with the reason.
    pub(super) fn skipped(&self) -> &[(String, String)] {
        &self.skipped
    }

    /// A method is too trivial to be instrumented.
    pub(super) fn leave_trivial(&mut self, class: ClassKey, signature: Signature) {
        self.trivial.insert((class, signature));
    }

    /// Those that are.
    pub(super) fn trivial(&self) -> &FxHashSet<(ClassKey, Signature)> {
        &self.trivial
    }

    /// A method is a root, and was none before.
    pub(super) fn is_root_now(&mut self, method: MethodId) {
        self.new_roots.push(method);
    }

    /// The roots that are new since the last call.
    pub(super) fn take_new_roots(&mut self) -> Vec<MethodId> {
        std::mem::take(&mut self.new_roots)
    }

    /// How long has been recorded, and how many hotswaps there have been.
    pub(super) fn set_time(&mut self, now: Moment) {
        self.now = now;
    }

    /// What methods are found upon from now on; what before.
    pub(super) fn set_trigger(&mut self, trigger: Trigger) -> Trigger {
        std::mem::replace(&mut self.trigger, trigger)
    }

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
        known.mirrors.get(class).running && self.in_class(class).is_empty()
    }

    /// Whether a method is known never to have run, seldom not being never: nobody would tell when it is called.
    pub(super) fn has_never_run_here(&self, known: &Known, class: ClassKey, signature: Signature) -> bool {
        let is_entered = self.of(class, signature).and_then(|it| self.record(it)).is_some_and(|it| it.entered);
        !is_entered && known.mirrors.method(class, signature).and_then(|method| method.calls) == Some(0)
    }

    /// Gives a method a number. It is found by its signature then, or if it is lines of one, among these.
    pub(super) fn new_record(
        &mut self,
        known: &Known,
        key: ClassKey,
        signature: Signature,
        lines: Option<Lines>,
        cause: Cause,
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
            submitted: false,
            in_place: false,
            drop: Drop::No,
            history: History { cause, trigger: self.trigger, found: self.now, probed: None, was_unnamed: false },
        });
        match lines {
            None => drop(self.by_signature.insert((key, signature), id)),
            Some(_) => self.by_lines.entry((key, signature)).or_default().push(id),
        }
        id
    }

    /// Those methods, and when.
    pub(super) fn missed(&self) -> impl Iterator<Item = (MethodId, Missed)> {
        let is_instrumented = |method: &&MethodRecord| method.refused.is_none();
        self.all.iter().filter(is_instrumented).filter_map(|method| Some((method.id, method.missed?)))
    }

    /// Calls of these methods, and of what they call, are not seen from now on, as far as they are not instrumented.
    pub(super) fn miss(&mut self, methods: Vec<MethodId>) {
        let (now, mut pending) = (self.now.recorded, methods);
        while let Some(method) = pending.pop() {
            let Some(record) = self.record_mut(method).filter(|it| !it.in_place && it.missed.is_none()) else {
                continue;
            };
            record.missed = Some(Missed { since: now, until: None, most: None });
            pending.extend(record.callees.iter().map(|callee| callee.method));
        }
    }

    /// What an entered method calls may be called from now on.
    pub(super) fn expect_callees(&mut self, method: MethodId) {
        let Some(record) = self.record(method).filter(|record| record.entered) else { return };
        let was_missed = record.missed.is_some();
        let callees: Vec<MethodId> = record.callees.iter().map(|callee| callee.method).collect();
        callees.iter().for_each(|callee| self.expect(*callee));
        // Whoever ran it unseen has called them.
        if was_missed {
            self.miss(callees);
        }
    }

    /// A method may be called from now on.
    pub(super) fn expect(&mut self, method: MethodId) {
        if let Some(method) = self.record_mut(method) {
            method.called_next = true;
        }
    }

    /// Of what has just been linked, or is about to be called by reflection, the methods that are new from this one on: they
    /// are called next.
    pub(super) fn expect_from(&mut self, known: usize) {
        self.all[known..].iter_mut().for_each(|method| method.called_next = true);
    }

    /// A method is reached once more.
    pub(super) fn is_reached_again(&mut self, method: MethodId, cause: Cause) {
        let known = self.record(method).map(|record| record.history.cause);
        if !known.is_some_and(|known| cause.says_more_than(known)) {
            return;
        }
        // A way must not lead to itself.
        let callers = std::iter::successors(cause.by, |by| self.record(*by)?.history.cause.by);
        if callers.into_iter().any(|by| by == method) {
            return;
        }
        if let Some(record) = self.record_mut(method) {
            (record.history.cause, record.history.was_unnamed) = (cause, true);
        }
    }

    /// HotSpot has accepted a method's instrumented code.
    pub(super) fn is_in_place(&mut self, method: MethodId) {
        let now = self.now;
        let Some(record) = self.record_mut(method) else { return };
        record.in_place = true;
        record.history.probed.get_or_insert(now);
        if let Some(missed) = &mut record.missed {
            missed.until.get_or_insert(now.recorded);
        }
    }
}
