//! Looking ahead: what is likely to be entered next goes into the same batch.
//!
//! A redefinition costs nearly the same for one class as for a hundred, so with each first call the callees of likely callees
//! are selected too, some levels down: of those that are called directly, and of virtual calls that can run only one method.
//! A method whose callees are selected costs no redefinition when it is entered.

use headwater_protocol::MethodId;

use super::CallGraph;

/// Methods whose callees are to be selected.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// With the number of levels that are left below each.
    waiting: Vec<(MethodId, u8)>,
}

impl Ahead {
    /// Has a method's callees selected, and so many levels more.
    pub(super) fn push(&mut self, method: MethodId, levels: u8) {
        match self.waiting.iter_mut().find(|(waiting, _)| *waiting == method) {
            Some((_, known)) => *known = levels.max(*known),
            None => self.waiting.push((method, levels)),
        }
    }
}

impl CallGraph {
    /// Selects the callees of all methods that are waiting for it and whose code is known. The others stay: their code
    /// becomes known when they are hotswapped, their callees' classes when their methods have been told.
    pub(super) fn select_ahead(&mut self) {
        let mut unknown = Vec::new();
        while let Some((method, levels)) = self.ahead.waiting.pop() {
            let Some(record) = self.record_mut(method) else { continue };
            if record.expanded || record.refused.is_some() {
                continue;
            }
            if record.sites.is_none() {
                unknown.push((method, levels));
                continue;
            }
            let needs_before = self.needs;
            let likely = self.select_callees(method);
            if self.needs != needs_before {
                unknown.push((method, levels));
                continue;
            }
            if let Some(record) = self.record_mut(method) {
                record.expanded = true;
                record.sites = None;
            }
            if let Some(levels) = levels.checked_sub(1) {
                likely.into_iter().for_each(|callee| self.ahead.push(callee, levels));
            }
        }
        self.ahead.waiting = unknown;
    }
}
