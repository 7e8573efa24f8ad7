//! How much of the program's time is in code that a hotswap discards.
//!
//! The JVM discards what is compiled of a changed class, and what has inlined its methods. Which that is it does not tell; but what is inlined is a few
//! calls away from the innermost. So of each sample below the roots the classes of those are kept.

use rustc_hash::FxHashMap;

use super::mirror::ClassKey;

/// So many of a sample's innermost calls are taken to be compiled into one another. Of a Spring service's time 14 % is in code of 30 classes then, and 63
/// in that of 60, with which it was as slow as with all.
const INLINED: usize = 4;

/// Samples below roots, by the classes of their innermost calls.
#[derive(Debug, Default)]
pub(super) struct Innermost {
    samples: usize,
    /// In which of them a class is.
    of: FxHashMap<ClassKey, Those>,
}

/// Some of the samples: a bit for each.
#[derive(Clone, Debug, Default)]
struct Those(Vec<u64>);

impl Those {
    fn add(&mut self, sample: usize) {
        let (word, bit) = (sample / 64, sample % 64);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << bit;
    }

    fn with(mut self, others: Option<&Those>) -> Those {
        let others = others.map_or(&[][..], |others| &others.0);
        if self.0.len() < others.len() {
            self.0.resize(others.len(), 0);
        }
        self.0.iter_mut().zip(others).for_each(|(word, other)| *word |= other);
        self
    }
}

impl Innermost {
    /// One more, of calls of these classes, the innermost first.
    pub(super) fn add(&mut self, classes: impl Iterator<Item = ClassKey>) {
        let mut is_any = false;
        for class in classes.take(INLINED) {
            self.of.entry(class).or_default().add(self.samples);
            is_any = true;
        }
        self.samples += usize::from(is_any);
    }

    /// What part of them is in code of these classes.
    pub(super) fn share(&self, classes: impl Iterator<Item = ClassKey>) -> f64 {
        self.part(&classes.fold(Those::default(), |those, class| those.with(self.of.get(&class))))
    }

    /// Which of some classes are admitted, in their order: by how many there are with each, and by what part of the samples is in code of all of them.
    pub(super) fn admitted(
        &self,
        classes: impl Iterator<Item = Option<ClassKey>>,
        admits: impl Fn(usize, f64) -> bool,
    ) -> Vec<bool> {
        let (mut count, mut those) = (0, Those::default());
        let is_admitted = |class: Option<ClassKey>| {
            let with = those.clone().with(class.and_then(|class| self.of.get(&class)));
            let is_admitted = admits(count + 1, self.part(&with));
            if is_admitted {
                (count, those) = (count + 1, with);
            }
            is_admitted
        };
        classes.map(is_admitted).collect()
    }

    fn part(&self, Those(words): &Those) -> f64 {
        let samples: u32 = words.iter().map(|word| word.count_ones()).sum();
        f64::from(samples) / self.samples.max(1) as f64
    }
}
