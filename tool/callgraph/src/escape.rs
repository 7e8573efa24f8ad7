//! What has left the filter, and may be called back from there.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::known::Known;
use super::likely::Likely;
use super::mentions::Mentions;
use super::methods::Methods;
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
    /// Types that methods mention by which objects leave the filter, or are passed on.
    pub(super) mentioned: FxHashSet<ClassKey>,
    /// Types of objects that escape to code outside the filter.
    pub(super) types: FxHashMap<ClassKey, Source>,
    /// The same, not loaded yet.
    pub(super) pending_types: FxHashMap<Arc<str>, Source>,
    /// Callbacks that are withheld.
    pub(super) mentions: Mentions,
}

impl Escape {
    /// Whether a method is left alone on objects of a class that nobody names.
    pub(super) fn is_spared(
        &mut self,
        known: &mut Known,
        methods: &mut Methods,
        likely: &Likely,
        class: ClassKey,
        signature: Signature,
        from: Source,
    ) -> bool {
        if known.mirrors.get(class).lambda_host().is_some() {
            return known.home(class).is_none_or(|host| methods.is_left_running(known, host));
        }
        let places = methods.places_of_unnamed(known, class, signature, from.caller);
        let never_ran = |place: &ClassKey| methods.has_never_run_here(known, *place, signature);
        let spares_idle = self.opaque.spares_idle && likely.knows_what_is_idle();
        let is_idle = spares_idle && places.iter().all(never_ran);
        is_idle
            && (known.is_of_object(signature)
                || self.mentions.withholds(known, methods, likely, class, signature, from))
    }
}
