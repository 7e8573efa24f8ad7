//! HotSpot's type profiles: the classes that it has seen at virtual calls, by which its JIT compilers inline them.
//!
//! The entries of a profile are not described, but a class is the address of its structure, wherever it stands. A profile that changes or is
//! freed while it is read is at worst read wrongly, and nothing depends on it but time.

use std::collections::HashSet;

use jni::sys::{jclass, jmethodID};

use crate::jni_env::Jni;
use crate::jvmti::Jvmti;

use super::vm_structs::{Description, Memory};

/// A word of the JVM's, in bytes.
const WORD: usize = size_of::<u64>();
/// Longer than any profile: what says so is none.
const LONGEST_PROFILE: usize = 1 << 22;
/// Of different classes, to see whether they are told apart.
const KNOWN: [&str; 2] = ["java/lang/Class", "java/lang/String"];

/// Where profiles are.
#[derive(Clone, Debug)]
pub struct TypeProfiles {
    memory: Memory,
    layout: Layout,
}

/// Offsets, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// In a `Method`: what never changes of it.
    constant_part: u64,
    /// In a `ConstMethod`: its class's constants.
    constants: u64,
    /// In a `ConstantPool`: the class.
    holder: u64,
    /// In a `Method`: its profile; null until it has been called often.
    profile: u64,
    /// In a `MethodData`: how long the entries are together.
    length: u64,
    /// In a `MethodData`: the entries.
    entries: u64,
}

impl TypeProfiles {
    /// Finds out where they are; `None` if it is not known for sure.
    pub(super) fn find(memory: &Memory, described: &Description, (jvmti, jni): (Jvmti, Jni)) -> Option<TypeProfiles> {
        let profiles = TypeProfiles { memory: memory.clone(), layout: Layout::find(described)? };
        let classes = KNOWN.map(|name| profiles.address_of(jvmti, jni, jni.find_class(name).ok()?));
        (classes[0]? != classes[1]?).then_some(profiles)
    }

    /// The address of a class's structure, if all its methods have the same; its profiles are profiles.
    fn address_of(&self, jvmti: Jvmti, jni: Jni, class: jclass) -> Option<u64> {
        let methods = jvmti.methods(class);
        jni.delete_local(class);
        let methods = methods.ok()?;
        let address = self.class_of(*methods.first()?)?;
        let is_right = |method: &jmethodID| {
            self.class_of(*method) == Some(address) && self.remembers(*method, &HashSet::new()).is_some()
        };
        methods.iter().all(is_right).then_some(address)
    }

    /// The address of the structure of a method's class.
    pub fn class_of(&self, method: jmethodID) -> Option<u64> {
        let (memory, layout) = (&self.memory, &self.layout);
        // A method's id is the address of a pointer to it.
        let method = memory.word(method as u64)?;
        let constant_part = memory.word(method.checked_add(layout.constant_part)?)?;
        let constants = memory.word(constant_part.checked_add(layout.constants)?)?;
        memory.word(constants.checked_add(layout.holder)?).filter(|class| *class != 0)
    }

    /// Whether a method's profile remembers one of these classes; `None` if that cannot be read.
    pub fn remembers(&self, method: jmethodID, classes: &HashSet<u64>) -> Option<bool> {
        let (memory, layout) = (&self.memory, &self.layout);
        let method = memory.word(method as u64)?;
        let profile = memory.word(method.checked_add(layout.profile)?)?;
        if profile == 0 {
            return Some(false);
        }
        let length = i32::from_ne_bytes(memory.read(profile.checked_add(layout.length)?)?);
        let length = usize::try_from(length).ok().filter(|length| *length <= LONGEST_PROFILE)?;
        let entries = memory.bytes(profile.checked_add(layout.entries)?, length)?;
        Some(entries.as_chunks::<WORD>().0.iter().any(|word| classes.contains(&u64::from_ne_bytes(*word))))
    }
}

impl Layout {
    fn find(described: &Description) -> Option<Layout> {
        Some(Layout {
            constant_part: described.offset("Method", "_constMethod")?,
            constants: described.offset("ConstMethod", "_constants")?,
            holder: described.offset("ConstantPool", "_pool_holder")?,
            profile: described.offset("Method", "_method_data")?,
            length: described.offset("MethodData", "_data_size")?,
            entries: described.offset("MethodData", "_data[0]")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profiles() -> TypeProfiles {
        let memory = Memory::open().expect("the process's memory");
        let layout = Layout { constant_part: 0, constants: 8, holder: 16, profile: 8, length: 4, entries: 8 };
        TypeProfiles { memory, layout }
    }

    fn id(method: &*const u64) -> jmethodID {
        std::ptr::from_ref(method) as jmethodID
    }

    #[test]
    fn a_class_is_found_by_its_method() {
        let constants = [0_u64, 0, 4711];
        let constant_part = [0, constants.as_ptr() as u64];
        let method = [constant_part.as_ptr() as u64];
        assert_eq!(profiles().class_of(id(&method.as_ptr())), Some(4711));
        let nowhere = [8_u64];
        assert_eq!(profiles().class_of(id(&nowhere.as_ptr())), None);
    }

    #[test]
    fn a_profile_remembers_the_classes_in_its_entries_and_no_others() {
        // The length in the upper half of the first word.
        let profile = [16_u64 << 32, 1, 4711, 4712];
        let method = [0, profile.as_ptr() as u64];
        let remembers = |class| profiles().remembers(id(&method.as_ptr()), &HashSet::from([class]));
        assert_eq!(remembers(4711), Some(true));
        assert_eq!(remembers(4712), Some(false), "it stands behind the last entry");
        let none = [0_u64, 0];
        assert_eq!(profiles().remembers(id(&none.as_ptr()), &HashSet::from([0])), Some(false));
        for length in [-1_i32, i32::MAX] {
            let odd = [u64::from(length as u32) << 32, 4711];
            let method = [0, odd.as_ptr() as u64];
            assert_eq!(profiles().remembers(id(&method.as_ptr()), &HashSet::from([4711])), None);
        }
    }
}
