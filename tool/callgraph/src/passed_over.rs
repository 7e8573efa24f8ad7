//! Methods that are reached and not selected, and why, as far as that is known when they are reached.

use headwater_terms::reach::Obstacle;
use rustc_hash::FxHashMap;

use super::cause::Cause;
use super::mirror::{ClassKey, Signature};

/// Those methods.
#[derive(Debug, Default)]
pub(super) struct PassedOver(FxHashMap<(ClassKey, Signature), (Obstacle, Cause)>);

impl PassedOver {
    /// A method is reached, and not selected. The last reason is kept, and the first cause, unless another says more.
    pub(super) fn add(&mut self, class: ClassKey, signature: Signature, why: Obstacle, cause: Cause) {
        let known = self.0.entry((class, signature)).or_insert((why, cause));
        known.0 = why;
        if cause.says_more_than(known.1) {
            known.1 = cause;
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> impl Iterator<Item = (ClassKey, Signature, Obstacle, Cause)> {
        self.0.iter().map(|(&(class, signature), &(why, cause))| (class, signature, why, cause))
    }
}
