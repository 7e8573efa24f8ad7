//! Event words: what an instrumented method writes, 8 bytes each, never zero.
//!
//! ```text
//! 63    61 60          41 40                                      0
//! +-------+--------------+-----------------------------------------+
//! | kind  | id (20 bits) | payload (41 bits)                       |
//! +-------+--------------+-----------------------------------------+
//! ```
//!
//! `ENTER`, `ROOT`, `EXIT`, `THROW`: id is the method, payload the time in ns since the chunk's base.
//! `PAUSE`: id is a [`PauseReason`], payload a duration in ns to be taken off the thread's clock; it lies entirely
//! between the event before and the event after it.
//! The same kind with the id of a [`Counter`] or of a [`Handover`]: a count for the method on top, or work that changes hands. With that
//! of a [`ProbedWait`], its payload is a time again.
//! `CONTROL`: id is a root, payload how long a call of it took that was not recorded.
//! `THREAD`: the thread that the following words belong to, in the lower 36 bits, and the number of its run in the 25 above.
//!
//! A run is what a virtual thread writes between two changes of its carrier, whose chunk it writes into; it counts them. A
//! thread whose words are all in chunks of its own has no runs: 0.

use crate::{MethodId, ThreadId};

pub use crate::ids::ID_BITS;

mod counters;

pub use counters::{Counter, Counting, Made, ProbedWait, SITE_BITS, SIZE_BITS, SIZE_UNIT, WAIT_BEGINS, WAIT_ENDS};

/// Bits of the payload (time in ns since the chunk's base: 36 minutes).
pub const PAYLOAD_BITS: u32 = 41;
/// Where the id begins.
pub const ID_SHIFT: u32 = PAYLOAD_BITS;
/// Where the kind begins.
pub const KIND_SHIFT: u32 = PAYLOAD_BITS + ID_BITS;
/// Largest payload.
pub const MAX_PAYLOAD: u64 = (1 << PAYLOAD_BITS) - 1;

/// Bits of a `THREAD` word's thread: a hundred thousand new ones a second for a week.
pub const THREAD_BITS: u32 = 36;
/// Largest thread of a `THREAD` word.
pub const MAX_THREAD: u64 = (1 << THREAD_BITS) - 1;
/// Bits of a `THREAD` word's run, which counts up to the largest number and goes on with 1.
pub const RUN_BITS: u32 = KIND_SHIFT - THREAD_BITS;

/// A method was entered, in the root's context.
pub const KIND_ENTER: u64 = 1;
/// A method returned.
pub const KIND_EXIT: u64 = 2;
/// An exception left a method.
pub const KIND_THROW: u64 = 3;
/// A root method was entered from outside the call graph: the thread's simulated stack is empty before this word.
pub const KIND_ROOT: u64 = 4;
/// Time to be factored out.
pub const KIND_PAUSE: u64 = 5;
/// A control invocation of a root: none of its calls was recorded.
pub const KIND_CONTROL: u64 = 6;
/// The thread of the words that follow.
pub const KIND_THREAD: u64 = 7;

/// Why a thread was held up on our account (id of a `PAUSE` word).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PauseReason {
    /// It triggered, or waited for, the instrumentation of what it is about to call.
    Hotswap,
    /// No chunk was free: the tool had fallen behind.
    Buffer,
    /// A class it loads was analysed by the tool.
    ClassLoad,
    /// Its stack was looked at: calls that began before recording may have returned.
    OpenCalls,
}

impl PauseReason {
    /// All reasons, at the index of their number.
    pub const ALL: [PauseReason; 4] =
        [PauseReason::Hotswap, PauseReason::Buffer, PauseReason::ClassLoad, PauseReason::OpenCalls];

    /// The number that stands in the word.
    pub fn number(self) -> u32 {
        match self {
            PauseReason::Hotswap => 0,
            PauseReason::Buffer => 1,
            PauseReason::ClassLoad => 2,
            PauseReason::OpenCalls => 3,
        }
    }
}

/// What a thread has to do with work that is handed from thread to thread (id of a `PAUSE` word; these have no time).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Handover {
    /// It hands work over, from where it is: whoever takes it will name the word's number.
    Submit,
    /// From here on it runs what was handed over under the word's number: what it enters was called there. Number 0: nothing that
    /// was handed over in the call graph.
    Run,
    /// It has done that; the latest that has not been ended before.
    End,
    /// Nobody will run what was handed over under the word's number.
    Drop,
}

impl Handover {
    /// All of them.
    pub const ALL: [Handover; 4] = [Handover::Submit, Handover::Run, Handover::End, Handover::Drop];

    /// The number that stands in the word: none that a reason for a pause has.
    pub fn number(self) -> u32 {
        match self {
            Handover::Submit => 16,
            Handover::Run => 17,
            Handover::End => 18,
            Handover::Drop => 19,
        }
    }

    fn of(number: u32) -> Option<Handover> {
        Handover::ALL.into_iter().find(|handover| handover.number() == number)
    }
}

/// A decoded event word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A method was entered at `time_ns` since the chunk's base.
    Enter {
        /// The method.
        method: MethodId,
        /// Since the chunk's base.
        time_ns: u64,
        /// Entered from outside the call graph.
        root: bool,
    },
    /// A method was left.
    Exit {
        /// The method.
        method: MethodId,
        /// Since the chunk's base.
        time_ns: u64,
        /// By an exception.
        thrown: bool,
    },
    /// Time to be taken off the thread's clock.
    Pause {
        /// What it was spent on; `None` for a number this version does not know.
        reason: Option<PauseReason>,
        /// How long.
        duration_ns: u64,
    },
    /// Work is handed from thread to thread.
    Handover {
        /// What happens with it.
        what: Handover,
        /// Which work.
        link: u64,
    },
    /// Something happened in the method on top.
    Count {
        /// What.
        counter: Counter,
        /// How often, or how much of it.
        value: u64,
    },
    /// The thread begins to wait, or has waited.
    Wait {
        /// In what.
        wait: ProbedWait,
        /// Whether it begins.
        begins: bool,
        /// Since the chunk's base.
        time_ns: u64,
    },
    /// A control invocation of a root is over.
    Control {
        /// The root.
        method: MethodId,
        /// How long it took.
        duration_ns: u64,
    },
    /// The following words belong to this thread.
    Thread {
        /// The thread.
        thread: ThreadId,
        /// Which of its runs, if it has any.
        run: Option<Run>,
    },
}

/// The number of a virtual thread's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run(u32);

impl Run {
    /// The number, without what is beyond its bits; `None` for 0.
    pub fn new(number: u32) -> Option<Run> {
        let number = number & ((1 << RUN_BITS) - 1);
        (number != 0).then_some(Run(number))
    }

    /// Whether this run was before another one. Both are among the latest sixteen million of their thread.
    pub fn is_before(self, other: Run) -> bool {
        let ahead = other.0.wrapping_sub(self.0) & ((1 << RUN_BITS) - 1);
        ahead != 0 && ahead < 1 << (RUN_BITS - 1)
    }
}

impl Event {
    /// When it was, in ns since the chunk's base; `None` of what only tells of the events around it.
    #[inline]
    pub fn time_ns(self) -> Option<u64> {
        match self {
            Event::Enter { time_ns, .. } | Event::Exit { time_ns, .. } | Event::Wait { time_ns, .. } => Some(time_ns),
            _ => None,
        }
    }

    /// Decodes a word; `None` for the zero word and for kinds that do not exist.
    #[inline]
    pub fn decode(word: u64) -> Option<Event> {
        let payload = word & MAX_PAYLOAD;
        let id = ((word >> ID_SHIFT) as u32) & MethodId::MAX.0;
        let method = MethodId(id);
        Some(match word >> KIND_SHIFT {
            KIND_ENTER => Event::Enter { method, time_ns: payload, root: false },
            KIND_ROOT => Event::Enter { method, time_ns: payload, root: true },
            KIND_EXIT => Event::Exit { method, time_ns: payload, thrown: false },
            KIND_THROW => Event::Exit { method, time_ns: payload, thrown: true },
            KIND_PAUSE => match (Handover::of(id), Counter::of(id), ProbedWait::of(id)) {
                (Some(what), ..) => Event::Handover { what, link: payload },
                (_, Some(counter), _) => Event::Count { counter, value: payload },
                (_, _, Some((wait, begins))) => Event::Wait { wait, begins, time_ns: payload },
                (None, None, None) => {
                    Event::Pause { reason: PauseReason::ALL.get(id as usize).copied(), duration_ns: payload }
                }
            },
            KIND_CONTROL => Event::Control { method, duration_ns: payload },
            KIND_THREAD => {
                Event::Thread { thread: ThreadId(word & MAX_THREAD), run: Run::new((word >> THREAD_BITS) as u32) }
            }
            _ => return None,
        })
    }

    /// The word for this event; payloads are cut to [`MAX_PAYLOAD`].
    pub fn encode(self) -> u64 {
        let (kind, id, payload) = match self {
            Event::Enter { method, time_ns, root } => (if root { KIND_ROOT } else { KIND_ENTER }, method.0, time_ns),
            Event::Exit { method, time_ns, thrown } => (if thrown { KIND_THROW } else { KIND_EXIT }, method.0, time_ns),
            Event::Pause { reason, duration_ns } => {
                (KIND_PAUSE, reason.map_or(MethodId::MAX.0, PauseReason::number), duration_ns)
            }
            Event::Handover { what, link } => (KIND_PAUSE, what.number(), link),
            Event::Count { counter, value } => (KIND_PAUSE, counter.number(), value),
            Event::Wait { wait, begins, time_ns } => {
                (KIND_PAUSE, if begins { WAIT_BEGINS } else { WAIT_ENDS } + wait.number(), time_ns)
            }
            Event::Control { method, duration_ns } => (KIND_CONTROL, method.0, duration_ns),
            Event::Thread { thread, run } => {
                let run = run.map_or(0, |run| run.0);
                return KIND_THREAD << KIND_SHIFT | u64::from(run) << THREAD_BITS | thread.0 & MAX_THREAD;
            }
        };
        kind << KIND_SHIFT | u64::from(id) << ID_SHIFT | payload.min(MAX_PAYLOAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_survives_encoding() {
        let method = MethodId::MAX;
        let events = [
            Event::Enter { method, time_ns: MAX_PAYLOAD, root: false },
            Event::Enter { method: MethodId(0), time_ns: 0, root: true },
            Event::Exit { method, time_ns: 7, thrown: false },
            Event::Exit { method, time_ns: 7, thrown: true },
            Event::Pause { reason: Some(PauseReason::Buffer), duration_ns: 12 },
            Event::Count { counter: Counter::BlockedNs, value: MAX_PAYLOAD },
            Event::Handover { what: Handover::Submit, link: MAX_PAYLOAD },
            Event::Handover { what: Handover::End, link: 0 },
            Event::Control { method, duration_ns: 5 },
            Event::Wait { wait: ProbedWait::Parked, begins: true, time_ns: MAX_PAYLOAD },
            Event::Wait { wait: ProbedWait::File, begins: false, time_ns: 0 },
            Event::Thread { thread: ThreadId(0), run: None },
            Event::Thread { thread: ThreadId(MAX_THREAD), run: Run::new(1) },
            Event::Thread { thread: ThreadId(1), run: Run::new(u32::MAX) },
        ];
        for event in events {
            assert_ne!(event.encode(), 0);
            assert_eq!(Event::decode(event.encode()), Some(event));
        }
        for what in Handover::ALL {
            assert_eq!(Handover::of(what.number()), Some(what));
            assert!(PauseReason::ALL.iter().all(|reason| reason.number() != what.number()));
            assert!(Counter::ALL.iter().all(|counter| counter.number() != what.number()));
        }
        for reason in PauseReason::ALL {
            assert_eq!(PauseReason::ALL[reason.number() as usize], reason);
        }
    }

    #[test]
    fn runs_are_in_order_beyond_the_last_number() {
        let run = |number| Run::new(number).expect("not 0");
        assert!(run(1).is_before(run(2)) && !run(2).is_before(run(1)) && !run(1).is_before(run(1)));
        let last = run((1 << RUN_BITS) - 1);
        assert!(last.is_before(run(1)) && !run(1).is_before(last));
        assert_eq!(Run::new(1 << RUN_BITS), None);
    }

    #[test]
    fn zero_is_no_event() {
        assert_eq!(Event::decode(0), None);
    }
}
