//! What was seen of the threads from outside, at some moments: who was on top, whether it ran, and what it had of the processors.

use headwater_protocol::ThreadId;

use super::Decoder;
use super::Scheduled;

impl Decoder {
    /// Takes a sample of a thread that is inside a root: whether it is `running`, or `None` if that cannot be told, which is asked
    /// only then. Whether it is inside. A sample counts when the next is taken, or at the end.
    pub fn sample(&mut self, id: ThreadId, running: impl FnOnce() -> Option<bool>) -> bool {
        let Some(thread) = self.by_id.get(&id).and_then(|index| self.threads.get_mut(*index)) else { return false };
        thread.count_sample();
        if thread.skipping || thread.is_outside() {
            return false;
        }
        thread.sampled = running().map(|running| (thread.top, running));
        true
    }

    /// Adds what threads that have been inside a root had of the processors.
    pub fn add_scheduled(&mut self, scheduled: Scheduled) {
        self.scheduled.add(scheduled);
    }

    /// What threads that have been inside a root had of the processors.
    pub fn scheduled(&self) -> Scheduled {
        self.scheduled
    }
}
