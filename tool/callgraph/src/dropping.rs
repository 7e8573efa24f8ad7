//! Dropping: methods whose probes cost more than the user wants to pay are restored, and stay so.
//!
//! Such a method stays in the graph: it has been entered, or will be, and what it calls is instrumented as if it were. So its callees hang on
//! their nearest shown ancestor from then on, as below a method that the filters hide. Calls of it that are under way end with the code that
//! they began with, exits included: HotSpot lets them (JVMTI, RedefineClasses: "active stack frames continue to run the bytecodes of the
//! original method").

use headwater_protocol::{ClassId, MethodId};

use super::known::Known;
use super::methods::Methods;
use super::mirror::ClassKey;
use super::plan::Plan;
use super::record::Drop;

impl Plan {
    /// A class file goes out without its dropped methods' probes.
    pub(super) fn submit_dropped(&mut self, methods: &mut Methods, key: ClassKey) {
        self.turn_dropped(methods, Some(key), Drop::Due, Drop::Submitted);
    }

    /// HotSpot does not take it.
    pub(super) fn drop_refused(&mut self, methods: &mut Methods, key: ClassKey) {
        self.turn_dropped(methods, Some(key), Drop::Submitted, Drop::Refused);
    }

    /// It was not answered in time.
    pub(super) fn drop_again(&mut self, methods: &mut Methods, key: ClassKey) {
        self.turn_dropped(methods, Some(key), Drop::Submitted, Drop::Due);
    }

    fn turn_dropped(&mut self, methods: &mut Methods, class: Option<ClassKey>, from: Drop, to: Drop) {
        for method in self.dropping.clone() {
            let record = methods.record_mut(method).filter(|record| class.is_none_or(|key| record.key == key));
            if let Some(record) = record.filter(|record| record.drop == from) {
                record.drop = to;
            }
        }
    }

    /// From now on these methods are not instrumented any more; the classes to be retransformed for that.
    pub(super) fn drop_methods(&mut self, known: &Known, methods: &mut Methods, dropped: &[MethodId]) -> Vec<ClassId> {
        let mut classes = Vec::new();
        for &method in dropped {
            if !methods.can_drop(known, method) {
                continue;
            }
            let Some(record) = methods.record_mut(method) else { continue };
            record.drop = Drop::Due;
            let key = record.key;
            self.dropping.push(method);
            classes.extend(known.mirrors.get(key).id);
        }
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Whether a hotswap is under way that methods are dropped by.
    pub(super) fn is_dropping(&self, methods: &Methods) -> bool {
        let is_submitted = |id: &MethodId| methods.record(*id).is_some_and(|record| record.drop == Drop::Submitted);
        self.dropping.iter().any(is_submitted)
    }

    /// A hotswap is over, and what HotSpot refused has been told.
    pub(super) fn drops_accepted(&mut self, methods: &mut Methods) {
        self.turn_dropped(methods, None, Drop::Submitted, Drop::Done);
    }

    /// What became of methods that were to be dropped, since the last call: each with whether it was restored.
    pub(super) fn take_drops(&mut self, methods: &Methods) -> Vec<(MethodId, bool)> {
        let mut ended = Vec::new();
        for method in std::mem::take(&mut self.dropping) {
            match methods.record(method).map(|record| record.drop) {
                Some(Drop::Done) => ended.push((method, true)),
                Some(Drop::Due | Drop::Submitted) => self.dropping.push(method),
                _ => ended.push((method, false)),
            }
        }
        ended
    }
}

impl Methods {
    /// Whether a method can be dropped: it is instrumented, and no root. A native one's probes are in other methods.
    pub(super) fn can_drop(&self, known: &Known, method: MethodId) -> bool {
        let Some(record) = self.record(method) else { return false };
        let mirror = known.mirrors.get(record.key);
        let is_instrumented = record.refused.is_none() && !record.is_native && record.drop == Drop::No;
        is_instrumented && record.root_of.is_empty() && mirror.id.is_some() && mirror.linked
    }
}
