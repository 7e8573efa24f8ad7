//! One method in files that name it differently: with its signature, as people write it, or by class and name alone.

use rustc_hash::FxHashMap;

use crate::profile::{MethodName, Profile};

/// The methods of some profiles that have a signature.
pub(super) struct Signatures<'a> {
    /// By what others may call them; nothing where that is several.
    of: FxHashMap<&'a str, Option<&'a MethodName>>,
}

impl<'a> Signatures<'a> {
    pub(super) fn of(profiles: impl Iterator<Item = &'a Profile>) -> Signatures<'a> {
        let mut of: FxHashMap<&str, Option<&MethodName>> = FxHashMap::default();
        for method in profiles.flat_map(|profile| &profile.methods).filter(|method| !is_bare(method)) {
            let short = method.machine.split('(').next().unwrap_or_default();
            for name in [&*method.display, short] {
                let known = of.entry(name).or_insert(Some(method));
                if known.is_some_and(|known| known.machine != method.machine) {
                    *known = None;
                }
            }
        }
        Signatures { of }
    }

    /// What a method is called with its signature, if its own file has none and another's has.
    pub(super) fn full(&self, method: &'a MethodName) -> &'a MethodName {
        match is_bare(method) {
            true => self.of.get(&*method.display).copied().flatten().unwrap_or(method),
            false => method,
        }
    }
}

/// Whether people and machines call it the same, as of what has no signature.
fn is_bare(method: &MethodName) -> bool {
    method.machine == method.display
}
