//! Methods that may have been called before they were instrumented, where nobody waits for that.

use headwater_protocol::MethodId;

use super::CallGraph;

impl CallGraph {
    /// How many methods may have been called before they were instrumented, if nobody waited for that.
    pub fn late(&self) -> usize {
        self.methods.iter().filter(|method| method.refused.is_none() && method.late).count()
    }

    /// What an entered method calls and is not instrumented yet may be called without being seen.
    pub(super) fn mark_late(&mut self, method: MethodId) {
        let Some(record) = self.record(method).filter(|record| record.entered) else { return };
        for callee in record.callees.clone() {
            if let Some(callee) = self.record_mut(callee.method) {
                callee.late |= !callee.in_place;
            }
        }
    }

    /// Of what has just been linked, or is about to be called by reflection, the methods that are new from this one on: they
    /// are called next.
    pub(super) fn mark_late_from(&mut self, known: usize) {
        self.methods[known..].iter_mut().for_each(|method| method.late = true);
    }
}
