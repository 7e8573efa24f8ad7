//! What is asked of the rewriter and of the JVM: which classes are to be given other code, and what is probed in them.

use headwater_protocol::{ClassId, MethodId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::cause::Cause;
use super::guards::Guards;
use super::known::Known;
use super::lines::Lines;
use super::methods::Methods;
use super::mirror::{ClassKey, Signature};
use super::natives::Natives;
use super::open_calls::OnStacks;
use super::reflection::Reflection;
use super::sites::Sites;

/// The order of the day.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Classes with methods that were selected and are not instrumented yet.
    pub(super) to_hotswap: FxHashSet<ClassKey>,
    /// So many can be hotswapped soon; `None` if there is no limit.
    pub(super) room: Option<usize>,
    /// Methods whose instrumented code has been given to the JVM, and not been accepted by HotSpot yet.
    pub(super) submitted: Vec<MethodId>,
    /// ... and methods of classes that are being loaded: whether they have that code is told when they are linked.
    pub(super) loading: FxHashMap<ClassKey, Vec<MethodId>>,
    /// Methods that are to be dropped, or were since somebody asked.
    pub(super) dropping: Vec<MethodId>,
    /// On how many stacks below roots classes were seen.
    pub(super) ran: FxHashMap<ClassKey, u32>,
    /// In how many samples methods were.
    pub(super) sampled: FxHashMap<(ClassKey, Signature), u32>,
    /// Methods that were seen there.
    pub(super) seen: OnStacks,
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

    /// A method that is to be instrumented from now on.
    pub(super) fn add_record(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        key: ClassKey,
        signature: Signature,
        lines: Option<Lines>,
        cause: Cause,
    ) -> MethodId {
        let id = methods.add(known, key, signature, lines, cause);
        self.to_hotswap.insert(key);
        self.natives.want(known, key, signature);
        id
    }
}
