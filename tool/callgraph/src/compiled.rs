//! What a hotswap discards, and how much of the program's time is in it.
//!
//! The JVM discards what is compiled of a changed class, and what has inlined its methods: it tells which that is. Samples tell where the time is, by methods;
//! in the code of which of them the innermost one is, is found by what they have inlined.

use std::borrow::Cow;

use headwater_protocol::message::CompiledPiece;
use rustc_hash::{FxHashMap, FxHashSet};

use super::mirror::{ClassKey, Signature};

/// A sample's innermost method is looked for in the code of so many of its callers: HotSpot inlines no deeper as a rule.
const DEEPEST: usize = 16;

type Method = (ClassKey, Signature);

/// What is compiled, and samples of the threads that run it below roots.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    pieces: Vec<Piece>,
    /// All of them, in bytes, when they were most: some JVMs discard all for the first class that is changed.
    bytes: u64,
    /// Which have methods of a class in them.
    with: FxHashMap<ClassKey, Vec<usize>>,
    /// Which are a method's own.
    of: FxHashMap<Method, Vec<usize>>,
    /// Innermost calls, the innermost first.
    samples: Vec<Box<[Method]>>,
    /// What was discarded since.
    gone: Gone,
}

#[derive(Debug)]
struct Piece {
    bytes: u32,
    inlined: FxHashSet<Method>,
    /// The samples that are in it.
    samples: Vec<usize>,
}

/// Which part of what is compiled is discarded by a hotswap,
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Discarded {
    /// by its size,
    pub code: f64,
    /// and which part of the time below roots is in it, as far as samples tell.
    pub time: f64,
}

/// Some of many things: a bit for each.
#[derive(Clone, Debug, Default)]
struct Those(Vec<u64>);

impl Those {
    /// Whether it is new.
    fn insert(&mut self, thing: usize) -> bool {
        let (word, bit) = (thing / 64, 1 << (thing % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

/// What is discarded so far.
#[derive(Clone, Debug, Default)]
struct Gone {
    pieces: Those,
    samples: Those,
    bytes: u64,
    sampled: usize,
}

impl Compiled {
    /// This is compiled by now, and nothing else. Pieces' methods are indices into these.
    pub(super) fn replace(&mut self, methods: &[Option<Method>], pieces: Vec<CompiledPiece>) {
        self.pieces = Vec::with_capacity(pieces.len());
        self.with.clear();
        self.of.clear();
        self.gone = Gone::default();
        let known = |index: u32| *methods.get(index as usize)?;
        for CompiledPiece { bytes, method, inlined } in pieces {
            let method = method.and_then(known);
            let at = self.pieces.len();
            let inlined: FxHashSet<Method> = inlined.into_iter().filter_map(known).collect();
            let classes: FxHashSet<ClassKey> = inlined.iter().chain(&method).map(|(class, _)| *class).collect();
            classes.into_iter().for_each(|class| self.with.entry(class).or_default().push(at));
            method.into_iter().for_each(|method| self.of.entry(method).or_default().push(at));
            self.pieces.push(Piece { bytes, inlined, samples: Vec::new() });
        }
        self.bytes = self.bytes.max(self.pieces.iter().map(|piece| u64::from(piece.bytes)).sum());
        (0..self.samples.len()).for_each(|sample| self.place(sample));
    }

    /// One sample more, of these calls, the innermost first.
    pub(super) fn add_sample(&mut self, calls: impl Iterator<Item = Method>) {
        let calls: Box<[Method]> = calls.take(DEEPEST).collect();
        if !calls.is_empty() {
            self.samples.push(calls);
            self.place(self.samples.len() - 1);
        }
    }

    /// A sample is in its outermost method's code that has inlined all those that are further in.
    fn place(&mut self, sample: usize) {
        let calls = &self.samples[sample];
        for (further_in, outer) in (0..calls.len()).rev().map(|at| (&calls[..at], calls[at])) {
            let has_all = |piece: &&usize| {
                further_in.iter().all(|call| *call == outer || self.pieces[**piece].inlined.contains(call))
            };
            let pieces: Vec<usize> = self.of.get(&outer).into_iter().flatten().filter(has_all).copied().collect();
            if !pieces.is_empty() {
                pieces.into_iter().for_each(|piece| self.pieces[piece].samples.push(sample));
                return;
            }
        }
    }

    /// What is discarded when these classes are changed.
    pub(super) fn discarded(&self, classes: impl Iterator<Item = ClassKey>) -> Discarded {
        let mut gone = self.gone.clone();
        classes.for_each(|class| self.discard(class, &mut gone));
        self.part(&gone)
    }

    /// These classes were changed.
    pub(super) fn are_changed(&mut self, classes: impl Iterator<Item = ClassKey>) {
        let mut gone = std::mem::take(&mut self.gone);
        classes.for_each(|class| self.discard(class, &mut gone));
        self.gone = gone;
    }

    /// Which of some classes are admitted, in their order: by what is discarded when all of them are changed.
    pub(super) fn admitted(
        &self,
        classes: impl Iterator<Item = Option<ClassKey>>,
        mut admits: impl FnMut(Discarded) -> bool,
    ) -> Vec<bool> {
        let mut gone = self.gone.clone();
        let is_admitted = |class: Option<ClassKey>| {
            let mut with = Cow::Borrowed(&gone);
            if let Some(class) = class.filter(|class| self.with.contains_key(class)) {
                self.discard(class, with.to_mut());
            }
            let is_admitted = admits(self.part(&with));
            if let Cow::Owned(with) = with
                && is_admitted
            {
                gone = with;
            }
            is_admitted
        };
        classes.map(is_admitted).collect()
    }

    fn discard(&self, class: ClassKey, gone: &mut Gone) {
        for at in self.with.get(&class).into_iter().flatten() {
            if gone.pieces.insert(*at) {
                let piece = &self.pieces[*at];
                gone.bytes += u64::from(piece.bytes);
                gone.sampled += piece.samples.iter().filter(|sample| gone.samples.insert(**sample)).count();
            }
        }
    }

    fn part(&self, gone: &Gone) -> Discarded {
        Discarded {
            code: (gone.bytes - self.gone.bytes) as f64 / self.bytes.max(1) as f64,
            time: (gone.sampled - self.gone.sampled) as f64 / self.samples.len().max(1) as f64,
        }
    }
}
