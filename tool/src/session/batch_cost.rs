//! What a hotswap costs in this JVM, learnt from those that were: so much for the batch, which grows with the number of loaded
//! classes and of compiled methods, and so much for each class in it.

use std::time::Duration;

use headwater_protocol::message::HotswapResult;

/// No batch is to stop the program longer.
const LONGEST_PAUSE_NS: f64 = 40e6;
/// Where even the smallest does, because the fixed part alone takes so long, its classes may take this part of that, for many small batches
/// would stop the program as long, each, and for longer altogether: as far as that can be told apart, which takes batches of different sizes. In a
/// Spring service it took 100 to 145 ms on JDK 25, so a limit of 400 ms for all batches allows two or three.
const CLASSES_PART: f64 = 1.0;
/// However long the fixed part takes.
const FEWEST_CLASSES: usize = 16;
/// However little a class takes: what is late for one is late for all.
const MOST_CLASSES: usize = 400;
/// Measured on JDK 17 and 25 at 1,600, 8,100 and 20,000 loaded classes, on two cores: 1.0, 3.7 and 8.7 ms a batch, 0.1 to 0.2 ms a
/// class.
const FIXED_NS: f64 = 350e3;
const LOADED_CLASS_NS: f64 = 420.0;
const CLASS_NS: f64 = 150e3;
/// Of so many classes, a batch that is taken for measured before the first.
const PRIOR_CLASSES: f64 = 50.0;
/// A batch has at most so many times the classes of the largest one before: a line through small batches says little of large
/// ones. Where the fixed part takes long the second batch may be the last.
const GROWTH: f64 = 8.0;
/// Where a batch is too long anyway, the largest before counts as so much smaller after each that is.
const FORGET: f64 = 0.8;
/// So many times the shortest pause is more than its classes may take.
const TOO_LONG: f64 = 1.25 * (1.0 + CLASSES_PART);
/// By so much, from one batch to the next, the shortest pause may have become longer: code is compiled.
const LENGTHENING: f64 = 1.05;
/// Old batches count less and less: the number of loaded classes grows.
const DECAY: f64 = 0.95;
/// And very little when one has shown that it is otherwise now.
const OUTDATED: f64 = 0.25;

/// A line through pauses over numbers of classes: weighted sums for the least squares.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchCost {
    weight: f64,
    classes: f64,
    squares: f64,
    pauses: f64,
    products: f64,
    /// Classes of the largest batch that was measured, or taken for it.
    largest: f64,
    /// The same of the last few.
    recent: f64,
    /// The shortest pause.
    shortest_ns: f64,
    measured: Measured,
}

/// Which batches have been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measured {
    Nothing,
    First,
    Others,
}

impl BatchCost {
    /// Before the first batch: what so many loaded classes make likely.
    pub(super) fn expected(loaded: usize) -> BatchCost {
        BatchCost::assumed(FIXED_NS + LOADED_CLASS_NS * loaded as f64, Measured::Nothing)
    }

    /// The first batch will be like the others: this JVM throws no compiled code away for it.
    pub(super) fn keeps_compiled_code(&mut self) {
        if self.measured == Measured::Nothing {
            self.measured = Measured::First;
        }
    }

    /// A fixed part, and what a class usually takes.
    fn assumed(fixed_ns: f64, measured: Measured) -> BatchCost {
        let mut cost = BatchCost {
            weight: 0.0,
            classes: 0.0,
            squares: 0.0,
            pauses: 0.0,
            products: 0.0,
            largest: PRIOR_CLASSES,
            recent: PRIOR_CLASSES,
            shortest_ns: f64::INFINITY,
            measured,
        };
        cost.observe(1.0, fixed_ns + CLASS_NS);
        cost.observe(PRIOR_CLASSES, fixed_ns + PRIOR_CLASSES * CLASS_NS);
        cost
    }

    /// A batch is over. The first one is none like the others, unless it is known to be: HotSpot may throw all compiled code away.
    pub(super) fn add(&mut self, result: &HotswapResult) {
        if result.classes == 0 {
            return;
        }
        let (classes, pause_ns) = (f64::from(result.classes), result.pause_ns as f64);
        let largest = self.largest;
        match self.measured {
            Measured::Nothing => self.measured = Measured::First,
            // The fixed part depends on the compiled code, too. What was expected is too little where there is much of it, and a line through that and
            // what is measured would take the difference for the classes' part.
            Measured::First => *self = BatchCost::assumed((pause_ns - classes * CLASS_NS).max(0.0), Measured::Others),
            Measured::Others => {}
        }
        if self.measured == Measured::Others {
            self.largest = largest;
            let shortest_ns = pause_ns.min(self.shortest_ns * LENGTHENING);
            let is_too_long = pause_ns > TOO_LONG * shortest_ns;
            if is_too_long {
                self.forget(OUTDATED);
            }
            self.observe(classes, pause_ns);
            self.shortest_ns = shortest_ns;
            // Then it was too large, whatever the line says: the next has half as many classes.
            if is_too_long {
                self.recent = classes / 2.0 / GROWTH;
            }
        }
    }

    /// What was seen so far counts so much less.
    fn forget(&mut self, part: f64) {
        for sum in [&mut self.weight, &mut self.classes, &mut self.squares, &mut self.pauses, &mut self.products] {
            *sum *= part;
        }
    }

    fn observe(&mut self, classes: f64, pause_ns: f64) {
        self.forget(DECAY);
        self.weight += 1.0;
        self.largest = self.largest.max(classes);
        self.recent = classes.max(FORGET * self.recent);
        self.classes += classes;
        self.squares += classes * classes;
        self.pauses += pause_ns;
        self.products += classes * pause_ns;
    }

    /// Nanoseconds a class, which cannot be less than nothing.
    fn class_ns(&self) -> f64 {
        let spread = self.weight * self.squares - self.classes * self.classes;
        // Batches of one size say nothing about it.
        if spread <= self.weight * self.weight {
            return CLASS_NS;
        }
        ((self.weight * self.products - self.classes * self.pauses) / spread).max(CLASS_NS / 10.0)
    }

    fn fixed_ns(&self) -> f64 {
        ((self.pauses - self.class_ns() * self.classes) / self.weight).max(0.0)
    }

    /// What is saved when a class goes into a batch with others.
    pub(super) fn fixed(&self) -> Duration {
        Duration::from_nanos(self.fixed_ns() as u64)
    }

    /// How long a batch of so many classes pauses, or as many of them as may be in one.
    pub(super) fn of(&self, classes: usize) -> Duration {
        let classes = classes.min(self.most_classes());
        Duration::from_nanos((self.fixed_ns() + classes as f64 * self.class_ns()) as u64)
    }

    /// How many classes may be hotswapped at once.
    pub(super) fn most_classes(&self) -> usize {
        let short = (LONGEST_PAUSE_NS - self.fixed_ns()) / self.class_ns();
        let no_longer = (CLASSES_PART * self.fixed_ns() / self.class_ns()).min(GROWTH * self.recent);
        (short.max(no_longer).min(GROWTH * self.largest) as usize).clamp(FEWEST_CLASSES, MOST_CLASSES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(classes: u32, pause_ms: f64) -> HotswapResult {
        HotswapResult { classes, pause_ns: (pause_ms * 1e6) as u64, ..HotswapResult::default() }
    }

    #[test]
    fn more_loaded_classes_make_dearer_batches() {
        let [small, large] = [1_600, 60_000].map(BatchCost::expected);
        assert!(small.fixed() < Duration::from_micros(1_500), "{small:?}");
        assert!(large.fixed() > Duration::from_millis(24), "{large:?}");
        assert!(large.most_classes() < small.most_classes());
    }

    #[test]
    fn what_is_measured_soon_outweighs_what_was_expected() {
        let mut cost = BatchCost::expected(1_000);
        cost.add(&batch(1, 500.0));
        assert!(cost.fixed() < Duration::from_millis(2), "the first batch is like no other");
        for round in 0..60 {
            let classes = 1 + round % 7 * 10;
            cost.add(&batch(classes, 10.0 + 0.5 * f64::from(classes)));
        }
        let fixed_ms = cost.fixed_ns() / 1e6;
        assert!((9.0..11.0).contains(&fixed_ms), "{fixed_ms}");
        assert!((50..70).contains(&cost.most_classes()), "{}", cost.most_classes());
    }

    #[test]
    fn a_dear_batch_is_not_taken_for_one_of_dear_classes() {
        let mut cost = BatchCost::expected(12_000);
        cost.add(&batch(100, 90.0));
        cost.add(&batch(100, 50.0));
        let fixed_ms = cost.fixed_ns() / 1e6;
        assert!((30.0..40.0).contains(&fixed_ms), "{fixed_ms}");
        assert!(cost.most_classes() >= 30, "{}", cost.most_classes());
    }

    #[test]
    fn where_the_fixed_part_is_all_batches_are_not_divided_for_nothing() {
        let mut cost = BatchCost::expected(1_000);
        let mut classes = 50;
        for _ in 0..40 {
            cost.add(&batch(classes, 55.0 + 0.1 * f64::from(classes)));
            classes = cost.most_classes() as u32;
        }
        assert!((150..=MOST_CLASSES as u32).contains(&classes), "{classes}");
        for _ in 0..40 {
            cost.add(&batch(classes, 5.0 * f64::from(classes)));
            classes = cost.most_classes() as u32;
        }
        assert!(classes as usize <= 2 * FEWEST_CLASSES, "here it is the classes that take long: {classes}");
    }

    #[test]
    fn where_compiled_code_stays_the_first_batch_tells_already() {
        let after_first = |keeps: bool| {
            let mut cost = BatchCost::expected(12_000);
            if keeps {
                cost.keeps_compiled_code();
            }
            cost.add(&batch(1, 130.0));
            cost
        };
        let (kept, thrown_away) = (after_first(true), after_first(false));
        assert!(thrown_away.fixed() < Duration::from_millis(10), "{thrown_away:?}");
        assert!((120..140).contains(&kept.fixed().as_millis()), "{kept:?}");
        assert!((300..=MOST_CLASSES).contains(&kept.most_classes()), "two small ones would take longer: {kept:?}");
    }

    #[test]
    fn no_measurement_makes_batches_vanish_or_explode() {
        let mut cost = BatchCost::expected(1_000);
        for _ in 0..100 {
            cost.add(&batch(10, 900.0));
        }
        assert!(cost.most_classes() <= 80, "eight times what there were lately, at most: {}", cost.most_classes());
        for _ in 0..1_000 {
            cost.add(&batch(10, 0.001));
        }
        assert!(
            (200..=400).contains(&cost.most_classes()),
            "eight times what has been measured: {}",
            cost.most_classes()
        );
    }
}
