//! When what was counted beside calls: it can be switched on and off while a profile is recorded.

use std::time::Duration;

use headwater_protocol::word::Counting;

use crate::profile::Span;

/// What was counted from when on, in time of recording.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// What was counted at first, be it forgotten or not: so the probes were timed.
    at_first: Counting,
    /// Of these the first is of the beginning.
    changes: Vec<Change>,
}

/// From a moment on something else was counted.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: Duration,
    /// How many events had been recorded.
    events: u64,
    what: Counting,
}

impl History {
    /// Nothing has been switched yet.
    pub(crate) fn begun(what: Counting) -> History {
        History { at_first: what, changes: vec![Change { at: Duration::ZERO, events: 0, what }] }
    }

    /// What is counted now.
    pub(crate) fn now(&self) -> Counting {
        self.changes.last().map_or(Counting::default(), |change| change.what)
    }

    /// What was counted at first, be it forgotten or not.
    pub(crate) fn at_first(&self) -> Counting {
        self.at_first
    }

    /// What was counted at any time.
    pub(crate) fn ever(&self) -> Counting {
        self.changes.iter().fold(Counting::default(), |ever, change| ever.and(change.what))
    }

    /// What was counted all the time.
    pub(crate) fn always(&self) -> Counting {
        self.changes.iter().fold(self.ever(), |always, change| always.among(change.what))
    }

    /// From now on this is counted.
    pub(crate) fn switch(&mut self, at: Duration, events: u64, what: Counting) {
        self.changes.push(Change { at, events, what });
    }

    /// What was recorded is forgotten, and when.
    pub(crate) fn clear(&mut self) {
        *self = History { at_first: self.at_first, ..History::begun(self.now()) };
    }

    /// When something was counted; `None` if that was all the time, up to `end`.
    pub(crate) fn spans(&self, end: Duration, is_on: impl Fn(Counting) -> bool) -> Option<Vec<Span>> {
        let ends = self.changes.iter().skip(1).map(|change| change.at).chain([end]);
        let mut spans: Vec<Span> = Vec::new();
        for (change, until) in self.changes.iter().zip(ends).filter(|(change, _)| is_on(change.what)) {
            let (from_ns, to_ns) = (nanoseconds(change.at), nanoseconds(until));
            match spans.last_mut().filter(|last| last.to_ns == from_ns) {
                Some(last) => last.to_ns = to_ns,
                None => spans.push(Span { from_ns, to_ns }),
            }
        }
        let is_all = self.changes.iter().all(|change| is_on(change.what));
        (!is_all).then_some(spans)
    }

    /// Which part of so many events was recorded while something was counted, 0 to 1.
    pub(crate) fn part(&self, events: u64, is_on: impl Fn(Counting) -> bool) -> f64 {
        let ends = self.changes.iter().skip(1).map(|change| change.events).chain([events]);
        let of =
            |(change, until): (&Change, u64)| if is_on(change.what) { until.saturating_sub(change.events) } else { 0 };
        let counted: u64 = self.changes.iter().zip(ends).map(of).sum();
        (counted as f64 / events.max(1) as f64).min(1.0)
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const ALLOC: Counting = Counting { alloc: true, ..NOTHING };
    const GC: Counting = Counting { gc: true, ..NOTHING };
    const NOTHING: Counting = Counting {
        classes: false,
        exceptions: false,
        locks: false,
        waits: false,
        probed_waits: false,
        bytecodes: false,
        gc: false,
        alloc: false,
        objects: false,
        instructions: false,
        cycles: false,
        page_faults: false,
        context_switches: false,
    };

    fn seconds(history: &History, is_on: impl Fn(Counting) -> bool) -> Option<Vec<(u64, u64)>> {
        let spans = history.spans(10 * SECOND, is_on)?;
        Some(spans.iter().map(|span| (span.from_ns / 1_000_000_000, span.to_ns / 1_000_000_000)).collect())
    }

    #[test]
    fn what_was_never_switched_was_counted_all_the_time() {
        let history = History::begun(GC);
        assert_eq!(seconds(&history, |what| what.gc), None);
        assert_eq!(seconds(&history, |what| what.alloc), Some(Vec::new()));
        assert_eq!(history.part(100, |what| what.gc), 1.0);
    }

    #[test]
    fn times_of_being_on_are_told_and_others_are_not_cut_by_them() {
        let mut history = History::begun(GC);
        history.switch(2 * SECOND, 100, GC.and(ALLOC));
        history.switch(3 * SECOND, 150, GC);
        history.switch(7 * SECOND, 900, GC.and(ALLOC));
        assert_eq!(seconds(&history, |what| what.alloc), Some(vec![(2, 3), (7, 10)]));
        assert_eq!(seconds(&history, |what| what.gc), None);
        history.switch(8 * SECOND, 950, ALLOC);
        assert_eq!(seconds(&history, |what| what.gc), Some(vec![(0, 8)]));
        assert_eq!(seconds(&history, |what| what.alloc), Some(vec![(2, 3), (7, 10)]));
        assert_eq!(history.ever(), GC.and(ALLOC));
        assert_eq!((history.at_first(), history.now()), (GC, ALLOC));
        assert_eq!((history.always(), History::begun(GC).always()), (NOTHING, GC));
        // 50 and 100 events of 1,000.
        assert!((history.part(1_000, |what| what.alloc) - 0.15).abs() < 1e-9);
    }

    #[test]
    fn what_is_on_when_all_is_forgotten_counts_from_the_beginning() {
        let mut history = History::begun(NOTHING);
        history.switch(2 * SECOND, 100, ALLOC);
        history.clear();
        assert_eq!(seconds(&history, |what| what.alloc), None);
        assert_eq!(history.at_first(), NOTHING, "so the probes were timed");
        assert_eq!(history.part(100, |what| what.alloc), 1.0);
    }
}
