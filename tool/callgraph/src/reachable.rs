//! What has been found reachable, remembered for classes that come later.

use std::sync::Arc;

use headwater_protocol::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::filter::Caller;
use super::hidden::Hidden;
use super::known::Target;
use super::mirror::{ClassKey, Signature};
use super::receivers::Spare;
use super::record::{Callee, PatternIndex};
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
}

/// The memory of the call graph.
#[derive(Debug, Default)]
pub(super) struct Reachable {
    /// Virtual calls, by the type that they are made on.
    pub(super) virtual_on: FxHashMap<ClassKey, FxHashMap<Target, Reached>>,
    /// The same, whatever the type: for classes whose supertypes are not known yet.
    pub(super) virtual_anywhere: FxHashMap<Signature, Caller>,
    /// Calls on classes that are not loaded, by name.
    pub(super) virtual_pending: FxHashMap<Arc<str>, FxHashSet<Target>>,
    /// Static and special calls on classes that are not loaded.
    pub(super) direct_pending: FxHashMap<Arc<str>, FxHashSet<Target>>,
    /// Static and special calls that have been resolved, with the method that they run if it is instrumented.
    pub(super) direct_done: FxHashMap<(ClassKey, Signature, Caller), Option<MethodId>>,
    /// Abstract methods that are roots.
    pub(super) abstract_roots: FxHashMap<ClassKey, FxHashSet<(Signature, PatternIndex)>>,
    /// Classes that code in the graph may initialise.
    pub(super) initializers: FxHashMap<Arc<str>, Caller>,
    /// What is called by method handles, whatever the class: bodies of lambdas, and what method references stand for.
    pub(super) by_handle: FxHashSet<Signature>,
    /// Hidden methods.
    pub(super) hidden: Hidden,
    /// Methods whose callees must be selected.
    pub(super) due: Vec<MethodId>,
    pub(super) unlinked: Unlinked,
    pub(super) watched: Watched,
}
