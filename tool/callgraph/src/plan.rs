//! What is asked of the rewriter and of the JVM: which classes are to be given other code, and what is probed in them.

use headwater_protocol::{ClassId, MethodId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::guards::Guards;
use super::known::Known;
use super::methods::Methods;
use super::mirror::ClassKey;
use super::natives::Natives;
use super::open_calls::Ran;
use super::record::MethodRecord;
use super::reflection::Reflection;
use super::sites::Sites;

/// The order of the day.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Classes with methods that were selected and are not instrumented yet.
    pub(super) to_hotswap: FxHashSet<ClassKey>,
    /// So many methods' classes have been put there.
    taken_up: usize,
    /// So many can be hotswapped soon; `None` if there is no limit.
    pub(super) room: Option<usize>,
    /// Methods whose instrumented code has been given to the JVM, and not been accepted by HotSpot yet.
    pub(super) submitted: Vec<MethodId>,
    /// ... and methods of classes that are being loaded: whether they have that code is told when they are linked.
    pub(super) loading: FxHashMap<ClassKey, Vec<MethodId>>,
    /// Methods that are to be dropped, or were since somebody asked.
    pub(super) dropping: Vec<MethodId>,
    /// What was seen to run.
    pub(super) ran: Ran,
    pub(super) guards: Guards,
    pub(super) reflection: Reflection,
    pub(super) natives: Natives,
    pub(super) sites: Sites,
    /// The classes in which work passes from thread to thread, or threads wait, as far as they are probed.
    pub(super) passed: FxHashSet<ClassKey>,
}

impl Plan {
    /// The loaded classes with methods to be instrumented. One that is not linked yet stays until it is.
    fn due<'p>(&'p self, known: &'p Known) -> impl Iterator<Item = ClassKey> + 'p {
        self.to_hotswap.iter().copied().filter(|key| {
            let mirror = known.mirrors.get(*key);
            mirror.id.is_some() && mirror.linked
        })
    }

    /// Whether there are any.
    pub(super) fn wants_hotswap(&self, known: &Known) -> bool {
        self.due(known).next().is_some()
    }

    /// Whether there are as many as there is room for.
    pub(super) fn is_full(&self, known: &Known) -> bool {
        self.room.is_some_and(|room| self.due(known).count() >= room)
    }

    /// The loaded classes with methods to be instrumented; they count as being hotswapped from now on.
    pub(super) fn hotswap(&mut self, known: &mut Known) -> Vec<ClassId> {
        let mut classes: Vec<ClassId> = Vec::new();
        // A class that is loaded but not linked yet stays until it is.
        let mirrors = &known.mirrors;
        self.to_hotswap.retain(|key| {
            let id = mirrors.get(*key).id.filter(|_| mirrors.get(*key).linked);
            classes.extend(id);
            id.is_none()
        });
        classes.sort_unstable();
        for id in &classes {
            if let Some(key) = known.mirrors.by_id(*id) {
                known.mirrors.get_mut(key).hotswaps += 1;
            }
        }
        classes
    }

    /// What was selected since the last time is to be instrumented.
    pub(super) fn take_up(&mut self, known: &Known, methods: &Methods) {
        for record in methods.all()[self.taken_up..].iter().filter(|record| !record.is_native) {
            self.to_hotswap.insert(record.key);
            self.natives.want(known, record.key, record.signature);
        }
        self.taken_up = methods.all().len();
    }

    /// From now on nothing but the roots is instrumented; the classes to be retransformed for that.
    pub(super) fn keep_only_roots(&mut self, known: &Known, methods: &Methods) -> Vec<ClassId> {
        self.to_hotswap.clear();
        self.reflection.forget_discarded();
        let is_other = |method: &&MethodRecord| {
            method.submitted && method.refused.is_none() && !method.is_native && method.root_of.is_empty()
        };
        let others = methods.all().iter().filter(is_other).map(|method| method.key);
        let others = others.chain(self.reflection.probed()).chain(self.natives.probed());
        let others = others.chain(self.passed()).chain(self.sites.probed());
        let mut classes: Vec<ClassId> = others.filter_map(|key| known.mirrors.get(key).id).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// A class has been linked, with the code that it got when it was loaded or, because its thread did not wait for that, with its own.
    pub(super) fn came(&mut self, methods: &mut Methods, key: ClassKey, probed: bool) {
        let submitted = self.loading.remove(&key).unwrap_or_default();
        if !probed && (!submitted.is_empty() || self.passed.contains(&key)) {
            self.to_hotswap.insert(key);
        }
        if probed {
            self.reflection.born_with_probes(&submitted);
        }
        for id in submitted {
            if probed {
                methods.is_in_place(id);
            } else if let Some(record) = methods.record_mut(id) {
                // Whoever links a class is about to call it.
                (record.submitted, record.called_next) = (false, true);
            }
        }
    }

    /// Of a class whose instrumented code is not accepted: the methods that it had been given for.
    pub(super) fn take_submitted(&mut self, methods: &Methods, key: ClassKey) -> Vec<MethodId> {
        let submitted = std::mem::take(&mut self.submitted).into_iter();
        let (own, others) = submitted.partition(|id| methods.key_of(*id) == Some(key));
        self.submitted = others;
        own
    }
}
