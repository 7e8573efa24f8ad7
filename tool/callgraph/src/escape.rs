//! What has left the filter, and may be called back from there.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::mentions::Mentions;
use super::mirror::{ClassKey, Signature};
use super::opaque::Opaque;
use super::source::Source;

/// The memory of it.
#[derive(Debug, Default)]
pub(super) struct Escape {
    /// Methods from which nothing leaves the filter as long as none of their calls does, by what these call.
    pub(super) staying: FxHashMap<Signature, FxHashSet<(ClassKey, Signature)>>,
    /// Whose objects are called from outside the filter, whoever made them.
    pub(super) opaque: Opaque,
    /// Types of objects that escape to code outside the filter.
    pub(super) types: FxHashMap<ClassKey, Source>,
    /// The same, not loaded yet.
    pub(super) pending_types: FxHashMap<Arc<str>, Source>,
    /// Callbacks that are withheld.
    pub(super) mentions: Mentions,
}
