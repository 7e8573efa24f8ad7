//! What is counted beside calls, where it happens: by words, and by the times at which the JVM was stopped for collections.

use headwater_protocol::collections::Collection;
use headwater_protocol::word::Counter;

use super::{Decoder, TimeBase};

/// The collections so far, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Collections {
    all: Vec<Collection>,
    lost: u64,
}

impl Collections {
    /// When the first of those begins that a thread has not come to. It needs care only then.
    pub(super) fn next_ns(&self, passed: usize) -> i64 {
        self.all.get(passed).map_or(i64::MAX, |next| next.start_ns)
    }
}

/// A class was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// When, or a little later: its thread's latest event was then.
    pub after_ns: i64,
    /// The class's number.
    pub class: u64,
}

/// The first classes that were loaded, thread by thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads {
    first: Vec<Load>,
    others: u64,
}

impl Loads {
    /// So many are known by themselves.
    const MOST: usize = 10_000;

    fn add(&mut self, load: Load) {
        if self.first.len() < Loads::MOST { self.first.push(load) } else { self.others += 1 }
    }
}

impl Decoder {
    #[cold]
    pub(super) fn count(&mut self, index: usize, counter: Counter, value: u64) {
        self.wait_for_monitor(index, counter, value);
        let thread = &mut self.threads[index];
        if counter == Counter::Bytecodes {
            thread.execute(value);
        } else if !thread.skipping && !thread.is_outside() {
            thread.tree.add_counted(thread.top, counter, value);
            // A thread's own clock does not tell when.
            if counter == Counter::Loaded && self.options.time_base == TimeBase::System {
                self.loads.add(Load { after_ns: thread.last_ns, class: value });
            }
        }
    }

    /// Classes that were loaded below roots, and how many more there were.
    pub fn loads(&self) -> (&[Load], u64) {
        (&self.loads.first, self.loads.others)
    }

    /// The JVM was stopped. To be told before words that were written later.
    pub fn collection(&mut self, collection: Collection) {
        self.collections.all.push(collection);
    }

    /// So many others were not told of in time.
    pub fn lost_collections(&mut self, lost: u64) {
        self.collections.lost += lost;
    }

    /// All collections, and how many more there were.
    pub fn collections(&self) -> (&[Collection], u64) {
        (&self.collections.all, self.collections.lost)
    }

    /// A thread's events have come so far: what collections had of the time since the latest is counted where the thread was.
    pub(super) fn pass_collections(&mut self, index: usize, now_ns: i64) {
        let thread = &mut self.threads[index];
        // A thread's own clock tells nothing of when.
        if self.options.time_base == TimeBase::Carrier {
            return;
        }
        while let Some(next) = self.collections.all.get(thread.collections).filter(|next| next.start_ns < now_ns) {
            let common_ns = next.end_ns().min(now_ns).saturating_sub(next.start_ns.max(thread.last_ns));
            let is_over = next.end_ns() <= now_ns;
            if let Some(common_ns) = u64::try_from(common_ns).ok().filter(|ns| *ns > 0)
                && !thread.skipping
                && !thread.is_outside()
            {
                thread.tree.add_count(thread.top, Counter::CollectedNs, common_ns);
                thread.tree.add_count(thread.top, Counter::Collected, u64::from(is_over));
                if !thread.waits.has_wait() {
                    thread.tree.add_count(thread.top, Counter::StoppedNs, common_ns);
                }
            }
            if !is_over {
                break;
            }
            thread.collections += 1;
        }
    }
}
