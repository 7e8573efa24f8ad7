//! What has been found reachable, remembered for classes that come later.

use std::sync::Arc;

use headwater_protocol::{LoaderId, MethodId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::CallGraph;
use super::cause::Cause;
use super::filter::Caller;
use super::hidden::Hidden;
use super::known::Target;
use super::mirror::{ClassKey, Meant, Signature};
use super::receivers::Spare;
use super::record::{Callee, PatternIndex};
use super::source::Source;
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
    /// To how many classes of a name, of which there are very many, something has been applied: those that come are told of it when they do.
    applied: FxHashMap<Arc<str>, FxHashMap<Applied, usize>>,
    /// Virtual calls on classes of a name that [leave](Reached::leaves) the filter on some of them.
    pub(super) leaving: FxHashMap<Arc<str>, FxHashSet<Target>>,
    /// What is called by method handles, whatever the class: bodies of lambdas, and what method references stand for.
    pub(super) by_handle: FxHashSet<Signature>,
    /// Hidden methods.
    pub(super) hidden: Hidden,
    /// Methods whose callees must be selected.
    pub(super) due: Vec<MethodId>,
    pub(super) unlinked: Unlinked,
    pub(super) watched: Watched,
}

impl CallGraph {
    /// The classes that a name may mean in a class of this loader; of very many those to which this has not been applied yet, whoever named them.
    pub(super) fn still_to_apply(&self, name: &str, loader: LoaderId, what: &Applied) -> Vec<ClassKey> {
        match self.known.mirrors.meant(name, loader) {
            Meant::Own(own) => vec![own],
            Meant::Others(all) => {
                let done = self.reachable.applied.get(name).and_then(|applied| applied.get(what));
                all[done.copied().unwrap_or(0)..].to_vec()
            }
        }
    }

    /// This has been applied to all of them, and is remembered for those that come.
    pub(super) fn has_applied(&mut self, name: &str, loader: LoaderId, what: Applied) {
        if let meant @ Meant::Others(all) = self.known.mirrors.meant(name, loader)
            && meant.is_very_many()
        {
            let count = all.len();
            self.reachable.applied.entry(name.into()).or_default().insert(what, count);
        }
    }
}
