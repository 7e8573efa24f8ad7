//! Methods that the user's filters hide.
//!
//! They are not instrumented, so no first call tells when theirs come. They are looked through instead: what they call is selected
//! along with what their callers call, and hangs on the nearest shown ancestor in the tree. Code of the JDK is not
//! looked through, for nearly everything is reachable there; see [`callbacks`](super::callbacks).
//!
//! So are lambdas' classes: see [`lambdas`](super::lambdas).

use std::collections::hash_map::Entry;

use headwater_protocol::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::cause::Cause;
use super::mirror::{ClassKey, Signature};
use super::policy::{LOADED_LATER, Probability, UNNAMED};

/// In whose code calls are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// In that of the method that makes them: it has that method's guards.
    Own,
    /// In that of a hidden one, which it comes to for this reason.
    Hidden(Cause),
}

/// A hidden method that shown code comes to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) key: ClassKey,
    pub(super) signature: Signature,
    /// The nearest shown caller, if it is known.
    pub(super) by: Option<MethodId>,
    /// Of being called when that is.
    pub(super) probability: Probability,
    pub(super) cause: Cause,
}

/// The hidden methods that are reachable.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    due: Vec<Due>,
    /// Those that were, with their causes.
    seen: FxHashMap<(ClassKey, Signature), Cause>,
    /// Those that may be called on objects that nobody names; who names one of them is likelier to call it.
    seen_unnamed: FxHashSet<(ClassKey, Signature)>,
    by: Option<MethodId>,
    base: Probability,
    probability: Probability,
    exposing: bool,
}

impl Hidden {
    /// Whether what is pushed is called only by code that is not looked through.
    pub(super) fn set_exposing(&mut self, exposing: bool) {
        self.exposing = exposing;
    }

    /// The same, asked.
    pub(super) fn is_exposing(&self) -> bool {
        self.exposing
    }

    /// What is pushed from now on is called by this method, or by one that it comes to with this probability.
    pub(super) fn begin(&mut self, by: Option<MethodId>, base: Probability) {
        self.by = by;
        self.base = base;
    }

    /// ... and from a place that is come to with this probability.
    pub(super) fn set_probability(&mut self, probability: Probability) {
        self.probability = self.base * probability;
    }

    /// No caller is known any more.
    pub(super) fn end(&mut self) {
        self.begin(None, LOADED_LATER);
        self.set_probability(1.0);
    }

    /// A hidden method is reachable.
    pub(super) fn push(&mut self, key: ClassKey, signature: Signature, cause: Cause) {
        if let Entry::Vacant(seen) = self.seen.entry((key, signature)) {
            seen.insert(cause);
            self.due.push(Due { key, signature, by: self.by, probability: self.probability, cause });
        }
    }

    /// A lambda's method may be called on an object that nobody names.
    pub(super) fn push_unnamed(&mut self, key: ClassKey, signature: Signature, cause: Cause) {
        if !self.seen.contains_key(&(key, signature)) && self.seen_unnamed.insert((key, signature)) {
            self.due.push(Due { key, signature, by: None, probability: UNNAMED, cause });
        }
    }

    /// Those that are to be looked through.
    pub(super) fn take_due(&mut self) -> Vec<Due> {
        std::mem::take(&mut self.due)
    }

    /// For one of them more has to be known.
    pub(super) fn put_off(&mut self, due: Due) {
        self.due.push(due);
    }

    /// Of which classes a method has been looked through.
    pub(super) fn declarers(&self, signature: Signature) -> impl Iterator<Item = ClassKey> {
        self.seen.keys().filter(move |seen| seen.1 == signature).map(|seen| seen.0)
    }

    /// What it calls is to be selected once more.
    pub(super) fn push_again(&mut self, key: ClassKey, signature: Signature) {
        if let Some(cause) = self.seen.remove(&(key, signature)) {
            self.push(key, signature, cause);
        }
    }
}
