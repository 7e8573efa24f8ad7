//! What has been found reachable, remembered for classes that come later.

use std::sync::Arc;

use headwater_protocol::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::PatternIndex;
use super::ahead::Callee;
use super::filter::Caller;
use super::mirror::{ClassKey, Signature};
use super::opaque::Opaque;
use super::receivers::Spare;

/// A method that is called, and by whom.
pub(super) type Target = (Signature, Caller);

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
    /// Methods from which nothing leaves the filter as long as none of their calls does, by what these call.
    pub(super) staying: FxHashMap<Signature, FxHashSet<(ClassKey, Signature)>>,
    /// Whose objects are called from outside the filter, whoever made them.
    pub(super) opaque: Opaque,
    /// Types that methods mention by which objects leave the filter, or are passed on.
    pub(super) mentioned: FxHashSet<ClassKey>,
    /// Types of objects that escape to code outside the filter.
    pub(super) handed_out: FxHashMap<ClassKey, Caller>,
    /// The same, not loaded yet.
    pub(super) handed_out_pending: FxHashMap<Arc<str>, Caller>,
}
