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

impl Decoder {
    #[cold]
    pub(super) fn count(&mut self, index: usize, counter: Counter, value: u64) {
        self.wait_for_monitor(index, counter, value);
        let thread = &mut self.threads[index];
        if counter == Counter::Bytecodes {
            thread.execute(value);
        } else if !thread.skipping && !thread.is_outside() {
            thread.tree.add_counted(thread.top, counter, value);
        }
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
            }
            if !is_over {
                break;
            }
            thread.collections += 1;
        }
    }
}
