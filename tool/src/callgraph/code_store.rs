//! Class files: what methods call is read from them when it is asked for.

use headwater_rewriter::{CallSites, ClassFile, call_sites};
use rustc_hash::{FxHashMap, FxHashSet};

use super::mirror::ClassKey;

/// The class files that are known.
#[derive(Debug, Default)]
pub(super) struct CodeStore {
    /// `None` for those that cannot be had.
    files: FxHashMap<ClassKey, Option<Vec<u8>>>,
    needed: FxHashSet<ClassKey>,
}

impl CodeStore {
    /// A class's file, or that it cannot be had.
    pub(super) fn add(&mut self, key: ClassKey, bytes: Option<Vec<u8>>) {
        self.needed.remove(&key);
        self.files.insert(key, bytes);
    }

    /// Whether a class's file is there; if not, and it can be asked for, it is needed.
    pub(super) fn has(&mut self, key: ClassKey, can_be_had: bool) -> bool {
        match self.files.get(&key) {
            Some(file) => file.is_some(),
            None => {
                if can_be_had {
                    self.needed.insert(key);
                }
                false
            }
        }
    }

    /// Nothing is needed.
    pub(super) fn is_complete(&self) -> bool {
        self.needed.is_empty()
    }

    /// A class's file will not come.
    pub(super) fn is_missing(&self, key: ClassKey) -> bool {
        self.files.get(&key).is_some_and(Option::is_none)
    }

    /// What is needed; it is asked for now.
    pub(super) fn take_needed(&mut self) -> Vec<ClassKey> {
        let mut needed: Vec<ClassKey> = self.needed.drain().collect();
        needed.sort_unstable();
        needed
    }

    /// What a method calls; `None` when its class is not known, nothing when it cannot be read.
    pub(super) fn sites(&self, key: ClassKey, name: &str, descriptor: &str) -> Option<CallSites> {
        let bytes = self.files.get(&key)?.as_ref()?;
        let sites = || {
            let file = ClassFile::parse(bytes).ok()?;
            let method = file.methods().iter().find(|it| it.name() == name && it.descriptor() == descriptor)?;
            call_sites(&file, method.index).ok()
        };
        Some(sites().unwrap_or_default())
    }
}
