//! How often methods have been called, by HotSpot's own counters.
//!
//! HotSpot counts the calls of every method, for its JIT compilers' sake, from the very first on; no JVMTI function tells of it, but
//! its structures are described for debuggers ([`vm_structs`](super::vm_structs)). Where they are otherwise, or nothing is counted (`-Xint`),
//! nothing is known, and nothing is claimed.
//!
//! Why so, and at what cost: docs/decisions/look-ahead.md.

use jni::sys::jmethodID;

use crate::jni_env::Jni;
use crate::jvmti::Jvmti;

use super::vm_structs::{Description, Memory};

/// A counter's lowest bit is a flag, whose meaning depends on the JVM.
const FLAGS: u32 = 1;
/// The one field of a profile next to its counters that is described: four counters of four bytes lie before it, the first that of calls.
const BEFORE_TRAPS: u64 = 16;

/// Has been called in every JVM before anybody can attach to it.
const CALLED: (&str, &str) = ("java/lang/String", "hashCode");

/// Sizes, in bytes.
const WORD: u64 = 8;
const COUNTER: u64 = 4;

/// What HotSpot has counted of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// How often it has been called, at least, since its class was loaded or changed: once it is compiled for good, nothing is counted any more.
    pub calls: u32,
    /// It has compiled code.
    pub is_compiled: bool,
}

/// Where HotSpot counts.
#[derive(Debug)]
pub struct Invocations {
    memory: Memory,
    layout: Layout,
}

/// Offsets, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// In a `Method`: what the interpreter counts with; null before the first call.
    method_counters: u64,
    /// In a `Method`: what it is profiled with; null until it has been called often.
    method_data: u64,
    /// In a `Method`: its compiled code.
    code: u64,
    /// In a `MethodCounters`: calls in the interpreter.
    counter: u64,
    /// In a `MethodData`: calls by code that profiles.
    profiled: u64,
}

impl Invocations {
    /// Finds the counters; `None` if it is not known for sure that they count.
    pub(super) fn find(memory: &Memory, described: &Description, (jvmti, jni): (Jvmti, Jni)) -> Option<Invocations> {
        let invocations = Invocations { memory: memory.clone(), layout: Layout::find(described)? };
        let class = jni.find_class(CALLED.0).ok()?;
        let methods = jvmti.methods(class);
        jni.delete_local(class);
        let is_meant = |method: &jmethodID| jvmti.method_name(*method).is_ok_and(|(name, _)| name == CALLED.1);
        let called = methods.ok()?.into_iter().find(is_meant)?;
        let looked = invocations.look(&[called]);
        looked[0].is_some_and(|counted| counted.calls > 0).then_some(invocations)
    }

    /// What is counted of these methods; `None` of one of which that cannot be read.
    pub fn look(&self, methods: &[jmethodID]) -> Vec<Option<Counted>> {
        let Layout { method_counters, method_data, code, counter, profiled } = self.layout;
        let first = method_counters.min(method_data).min(code);
        let span = method_counters.max(method_data).max(code) + WORD - first;
        // A method's id is the address of a pointer to it.
        let ids: Vec<u64> = methods.iter().map(|id| *id as u64).collect();
        let addresses = self.memory.words(&ids);
        let parts: Vec<u64> = addresses.iter().map(|at| at.map_or(0, |at| at.saturating_add(first))).collect();
        let parts = self.memory.pieces(&parts, span as usize);
        let word = |part: &[u8], field: u64| {
            let at = (field - first) as usize;
            part.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes)
        };
        // What the interpreter counts with and what profiling code does, of each method: there may be none.
        let structures: Vec<Option<[u64; 2]>> = parts
            .iter()
            .map(|part| part.as_ref().and_then(|part| Some([word(part, method_counters)?, word(part, method_data)?])))
            .collect();
        let counters = [counter, profiled];
        let counted: Vec<u64> = structures
            .iter()
            .flatten()
            .flat_map(|structures| structures.iter().zip(counters))
            .filter(|(structure, _)| **structure != 0)
            .map(|(structure, counter)| structure.saturating_add(counter))
            .collect();
        let mut counted = self.memory.pieces(&counted, COUNTER as usize).into_iter();
        let mut next = |structure: u64| match structure {
            0 => Some(0),
            _ => counted.next().flatten()?.first_chunk().map(|count| u32::from_ne_bytes(*count) >> FLAGS),
        };
        let looked = structures.into_iter().zip(&parts).map(|(structures, part)| {
            let [interpreted, profiled] = structures?.map(&mut next);
            let is_compiled = word(part.as_ref()?, code)? != 0;
            let calls = interpreted?.saturating_add(profiled?).max(u32::from(is_compiled));
            Some(Counted { calls, is_compiled })
        });
        looked.collect()
    }
}

impl Layout {
    fn find(described: &Description) -> Option<Layout> {
        let counter = described.offset("InvocationCounter", "_counter")?;
        Some(Layout {
            method_counters: described.offset("Method", "_method_counters")?,
            method_data: described.offset("Method", "_method_data")?,
            code: described.offset("Method", "_code")?,
            counter: described.offset("MethodCounters", "_invocation_counter")? + counter,
            profiled: described.offset("MethodData", "_tenure_traps")?.checked_sub(BEFORE_TRAPS)? + counter,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocations() -> Invocations {
        let memory = Memory::open().expect("the process's memory");
        let layout = Layout { method_counters: 0, method_data: 8, code: 16, counter: 4, profiled: 0 };
        Invocations { memory, layout }
    }

    #[test]
    fn counters_profiles_and_code_tell_of_calls() {
        let address = |of: &[u32; 2]| of.as_ptr() as u64;
        let (none, some) = ([0_u32, 1], [0_u32, 6]);
        let profiled = [4_u32, 0];
        for (method, calls) in [
            ([0, 0, 0], 0),
            ([address(&none), 0, 0], 0),
            ([address(&some), 0, 0], 3),
            ([0, address(&none), 0], 0),
            ([0, address(&profiled), 1], 2),
            ([address(&some), address(&profiled), 1], 5),
            ([0, 0, 1], 1),
        ] {
            let pointer = method.as_ptr();
            let counted = Counted { calls, is_compiled: method[2] != 0 };
            assert_eq!(invocations().look(&[&raw const pointer as jmethodID]), [Some(counted)], "{method:?}");
        }
    }

    #[test]
    fn of_many_methods_each_has_its_own() {
        let counters: Vec<[u32; 2]> = (0..3_000).map(|calls| [0, calls << FLAGS]).collect();
        let methods: Vec<[u64; 3]> = counters.iter().map(|counters| [counters.as_ptr() as u64, 0, 0]).collect();
        let pointers: Vec<u64> = methods.iter().map(|method| method.as_ptr() as u64).collect();
        let mut ids: Vec<jmethodID> = pointers.iter().map(|pointer| std::ptr::from_ref(pointer) as jmethodID).collect();
        let nowhere = 8_u64;
        ids[7] = nowhere as jmethodID;
        ids[2_000] = &raw const nowhere as jmethodID;
        for (calls, counted) in invocations().look(&ids).into_iter().enumerate() {
            let is_readable = calls != 7 && calls != 2_000;
            assert_eq!(counted, is_readable.then_some(Counted { calls: calls as u32, is_compiled: false }), "{calls}");
        }
    }

    #[test]
    fn what_is_no_method_has_no_calls() {
        let nowhere = 8_u64;
        assert_eq!(invocations().look(&[nowhere as jmethodID]), [None]);
        assert_eq!(invocations().look(&[&raw const nowhere as jmethodID]), [None]);
    }
}
