//! What was seen of the threads from outside, at some moments: who was on top, whether it ran, and what it had of the processors.

use headwater_protocol::ThreadId;

use super::Decoder;
use super::Scheduled;

impl Decoder {
    /// Takes a sample of a thread that is inside a root, or of the virtual one that it carries: whether it is `running`, or `None` if that cannot be told, which is
    /// asked only then. Whether it is inside. A sample counts when the next is taken, or at the end.
    pub fn sample(&mut self, id: ThreadId, running: impl FnOnce() -> Option<bool>) -> bool {
        let (id, carrier) = self.carried.get(&id).map_or((id, None), |carried| (*carried, Some(id)));
        let Some(thread) = self.by_id.get(&id).and_then(|index| self.threads.get_mut(*index)) else { return false };
        if thread.carrier != carrier {
            return false;
        }
        thread.count_sample();
        if thread.skipping || thread.is_outside() || thread.is_behind() {
            return false;
        }
        thread.sampled = running().map(|running| (thread.top, running));
        true
    }

    /// Takes a sample of each virtual thread that is inside a root and on whose carrier another one has written since: it waits. One of which that is not known is
    /// its carrier's sample.
    pub fn sample_unmounted(&mut self) {
        for thread in &mut self.threads {
            let is_unmounted = |carrier: &ThreadId| self.carried.get(carrier) != Some(&thread.id);
            if thread.carrier.as_ref().is_some_and(is_unmounted) {
                thread.count_sample();
                thread.sampled =
                    (!(thread.skipping || thread.is_outside() || thread.is_behind())).then_some((thread.top, false));
            }
        }
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
