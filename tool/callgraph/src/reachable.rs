//! What has been found reachable, remembered for classes that come later.

use std::sync::Arc;

use headwater_protocol::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::cause::Cause;
use super::filter::Caller;
use super::hidden::Hidden;
use super::known::{Known, Target};
use super::mirror::{ClassKey, Meant, Signature};
use super::record::{Callee, PatternIndex};
use super::source::{Called, Named, Source, Spare};
use super::unlinked::Unlinked;
use super::watched::Watched;

/// What a virtual call can run.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    /// The methods that it ran on the classes of that time.
    pub(super) methods: Arc<[Callee]>,
    /// What was spared of them.
    pub(super) spared: Spare,
    /// On objects of some class it runs what a superclass outside the filter has.
    pub(super) leaves: bool,
    /// Why it was reached first.
    pub(super) cause: Cause,
}

/// What is done to each class that a name may mean.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Applied {
    /// A static or special call.
    Direct(Target, Spare),
    /// A virtual call.
    Virtual(Target, Spare),
    /// It may be initialised.
    Initializer(Caller),
    /// Objects of it leave the filter as objects of these; of any, if there are none.
    Escaped(Caller, Arc<[ClassKey]>),
}

/// The memory of the call graph.
#[derive(Debug, Default)]
pub(super) struct Reachable {
    /// Virtual calls, by the type that they are made on.
    pub(super) virtual_on: FxHashMap<ClassKey, FxHashMap<Target, Reached>>,
    /// The same, whatever the type: for classes whose supertypes are not known yet.
    pub(super) virtual_anywhere: FxHashMap<Signature, Source>,
    /// Calls on classes that are not loaded, by name.
    pub(super) virtual_pending: FxHashMap<Arc<str>, FxHashMap<Target, Cause>>,
    /// Static and special calls on classes that are not loaded.
    pub(super) direct_pending: FxHashMap<Arc<str>, FxHashMap<Target, Cause>>,
    /// Static and special calls that have been resolved, with the method that they run if it is instrumented.
    pub(super) direct_done: FxHashMap<(ClassKey, Signature, Caller), Option<MethodId>>,
    /// Abstract methods that are roots.
    pub(super) abstract_roots: FxHashMap<ClassKey, FxHashSet<(Signature, PatternIndex)>>,
    /// Classes that code in the graph may initialise.
    pub(super) initializers: FxHashMap<Arc<str>, Source>,
    /// It may initialise classes that it does not name.
    pub(super) any_initializer: Option<Source>,
    /// To how many classes of a name, of which there are very many, something has been applied: those that come are told of it when they do.
    applied: FxHashMap<Arc<str>, FxHashMap<Applied, usize>>,
    /// Virtual calls on classes of a name that [leave](Reached::leaves) the filter on some of them.
    pub(super) leaving: FxHashMap<Arc<str>, FxHashSet<Target>>,
    /// What is called by method handles, whatever the class: bodies of lambdas, and what method references stand for.
    pub(super) by_handle: FxHashSet<Signature>,
    /// Types that methods mention by which objects leave the filter, or are passed on.
    pub(super) mentioned: FxHashSet<ClassKey>,
    /// Hidden methods.
    pub(super) hidden: Hidden,
    /// Methods whose callees must be selected.
    pub(super) due: Vec<MethodId>,
    /// Selected methods whose callees are not, yet.
    pub(super) frontier: Vec<MethodId>,
    pub(super) unlinked: Unlinked,
    pub(super) watched: Watched,
}

impl Reachable {
    /// The classes that a name may mean; of very many those to which this has not been applied yet, whoever named them.
    pub(super) fn still_to_apply(&self, known: &Known, named: Named<'_>, what: &Applied) -> Vec<ClassKey> {
        match known.mirrors.meant(named.name, named.loader) {
            Meant::Own(own) => vec![own],
            Meant::Others(all) => {
                let done = self.applied.get(named.name).and_then(|applied| applied.get(what));
                all[done.copied().unwrap_or(0)..].to_vec()
            }
        }
    }

    /// This has been applied to all of them, and is remembered for those that come.
    pub(super) fn has_applied(&mut self, known: &Known, named: Named<'_>, what: Applied) {
        if let meant @ Meant::Others(all) = known.mirrors.meant(named.name, named.loader)
            && meant.is_very_many()
        {
            self.applied.entry(named.name.into()).or_default().insert(what, all.len());
        }
    }

    /// The virtual calls that are made on a type.
    pub(super) fn virtual_calls_on(&self, owner: ClassKey) -> Vec<Called> {
        let reached = self.virtual_on.get(&owner).into_iter().flatten();
        reached.map(|((signature, caller), reached)| called(*signature, *caller, reached.cause)).collect()
    }

    /// The static and special calls on classes of a name that are still to come.
    pub(super) fn direct_calls_to_come(&self, name: &str) -> Vec<Called> {
        pending(self.direct_pending.get(name))
    }

    /// The virtual ones.
    pub(super) fn virtual_calls_to_come(&self, name: &str) -> Vec<Called> {
        pending(self.virtual_pending.get(name))
    }

    /// Who may initialise the classes of a name.
    pub(super) fn initializer_of(&self, name: &str) -> Option<Source> {
        self.initializers.get(name).copied().or(self.any_initializer)
    }
}

fn called(signature: Signature, caller: Caller, cause: Cause) -> Called {
    (signature, Source { caller, cause })
}

fn pending(targets: Option<&FxHashMap<Target, Cause>>) -> Vec<Called> {
    targets.into_iter().flatten().map(|((signature, caller), cause)| called(*signature, *caller, *cause)).collect()
}
