//! Methods as a reader tells them apart: by their names.

use rustc_hash::FxHashMap;

use crate::profile::{MethodIndex, Profile};

/// Which methods are one to the reader: classes of the same name, of different loaders, are.
pub struct Names(Vec<MethodIndex>);

impl Names {
    /// Those of a profile.
    pub fn of(profile: &Profile) -> Names {
        let mut first: FxHashMap<&str, MethodIndex> = FxHashMap::default();
        let methods = profile.methods.iter().enumerate();
        Names(methods.map(|(index, name)| *first.entry(&name.machine).or_insert(MethodIndex(index))).collect())
    }

    /// The first method of the same name.
    pub(crate) fn first(&self, method: MethodIndex) -> MethodIndex {
        self.0[method.0]
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
