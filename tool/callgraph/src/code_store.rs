//! Class files: what methods call is read from them when it is asked for.

use std::cell::RefCell;

use headwater_rewriter::{CallSites, ClassFile, Lambda, call_sites, constant_sites, lambdas};
use rustc_hash::{FxHashMap, FxHashSet};

use super::mirror::ClassKey;

const ACC_SYNCHRONIZED: u16 = 0x0020;
/// Of a trivial method.
const MOST_INSTRUCTIONS: usize = 8;
/// Of a method that HotSpot's C1 inlines, in bytes (`C1MaxInlineSize`).
const MOST_INLINED: u32 = 35;

/// Whether an instruction does nothing but move a value (JVMS 6.5): constants, loads, fields, returns.
fn passes_on(opcode: u8) -> bool {
    const NOTHING_TO_LOADS: std::ops::RangeInclusive<u8> = 0x00..=0x2d;
    const RETURNS_AND_FIELDS: std::ops::RangeInclusive<u8> = 0xac..=0xb5;
    const CHECKCAST: u8 = 0xc0;
    NOTHING_TO_LOADS.contains(&opcode) || RETURNS_AND_FIELDS.contains(&opcode) || opcode == CHECKCAST
}

/// The class files that are known.
#[derive(Debug, Default)]
pub(super) struct CodeStore {
    /// `None` for those that cannot be had.
    files: FxHashMap<ClassKey, Option<Vec<u8>>>,
    /// Those that are to be asked for.
    needed: RefCell<FxHashSet<ClassKey>>,
}

impl CodeStore {
    /// A class's file, or that it cannot be had.
    pub(super) fn add(&mut self, key: ClassKey, bytes: Option<Vec<u8>>) {
        self.needed.get_mut().remove(&key);
        self.files.insert(key, bytes);
    }

    /// Whether a class's file is there; if not, and it can be asked for, it is needed.
    pub(super) fn has(&self, key: ClassKey, can_be_had: bool) -> bool {
        match self.files.get(&key) {
            Some(file) => file.is_some(),
            None => {
                if can_be_had {
                    self.needed.borrow_mut().insert(key);
                }
                false
            }
        }
    }

    /// Nothing is needed.
    pub(super) fn is_complete(&self) -> bool {
        self.needed.borrow().is_empty()
    }

    /// A class's file will not come.
    pub(super) fn is_missing(&self, key: ClassKey) -> bool {
        self.files.get(&key).is_some_and(Option::is_none)
    }

    /// What is needed; it is asked for now.
    pub(super) fn take_needed(&mut self) -> Vec<ClassKey> {
        let mut needed: Vec<ClassKey> = self.needed.get_mut().drain().collect();
        needed.sort_unstable();
        needed
    }

    /// Whether a method only hands a value on: a getter, a setter, a constant, nothing at all.
    pub(super) fn is_trivial(&self, key: ClassKey, name: &str, descriptor: &str) -> bool {
        let trivial = || {
            let file = ClassFile::parse(self.files.get(&key)?.as_ref()?).ok()?;
            let method = file.methods().iter().find(|it| it.name() == name && it.descriptor() == descriptor)?;
            let sites = call_sites(&file, method.index).ok()?;
            let own = file.name().ok()?;
            let calls = !sites.calls.is_empty() || !sites.dynamic.is_empty();
            // Its own class is initialised before it is called.
            if calls || method.access & ACC_SYNCHRONIZED != 0 || sites.initialized.iter().any(|class| *class != own) {
                return Some(false);
            }
            let code = file.code(method).ok()??;
            let few = code.instructions().nth(MOST_INSTRUCTIONS).is_none();
            Some(few && code.instructions().all(|instruction| passes_on(instruction.opcode)))
        };
        trivial().unwrap_or(false)
    }

    /// Whether C1 may inline a method; of a class that is not known any may be.
    pub(super) fn may_be_inlined(&self, key: ClassKey, name: &str, descriptor: &str) -> bool {
        let is_larger = || {
            let file = ClassFile::parse(self.files.get(&key)?.as_ref()?).ok()?;
            let method = file.methods().iter().find(|it| it.name() == name && it.descriptor() == descriptor)?;
            let last = file.code(method).ok()??.instructions().last()?;
            Some(last.offset >= MOST_INLINED)
        };
        !is_larger().unwrap_or(false)
    }

    /// What a method calls; `None` when its class is not known, nothing when it cannot be read. Of a hidden class, what any of its methods may.
    pub(super) fn sites(&self, key: ClassKey, name: &str, descriptor: &str) -> Option<CallSites> {
        let bytes = self.files.get(&key)?.as_ref()?;
        let sites = || {
            let file = ClassFile::parse(bytes).ok()?;
            if file.methods().is_empty() {
                return constant_sites(&file).ok();
            }
            let method = file.methods().iter().find(|it| it.name() == name && it.descriptor() == descriptor)?;
            call_sites(&file, method.index).ok()
        };
        Some(sites().unwrap_or_default())
    }

    /// The lambdas and method references of a class; none when its file is not known, or cannot be read.
    pub(super) fn lambdas(&self, key: ClassKey) -> Vec<Lambda> {
        let bytes = self.files.get(&key).and_then(Option::as_ref);
        let file = bytes.and_then(|bytes| ClassFile::parse(bytes).ok());
        file.and_then(|file| lambdas(&file).ok()).unwrap_or_default()
    }
}
