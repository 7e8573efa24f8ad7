//! How often methods have been called, by HotSpot's own counters.
//!
//! HotSpot counts the calls of every method, for its JIT compilers' sake, from the very first on; no JVMTI function tells of it, but
//! its structures are described for debuggers ([`vm_structs`](crate::vm_structs)). Where they are otherwise, or nothing is counted (`-Xint`),
//! nothing is known, and nothing is claimed.
//!
//! Why so, and at what cost: docs/decisions/look-ahead.md.

use jni::sys::jmethodID;

use crate::vm_structs::Memory;

/// A counter's lowest bit is a flag, whose meaning depends on the JVM.
const FLAGS: u32 = 1;
/// The one field of a profile next to its counters that is described: four counters of four bytes lie before it, the first that of calls.
const BEFORE_TRAPS: u64 = 16;

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
    /// Finds the counters; `called` is a method that has been called in this JVM, to tell whether it counts.
    pub fn find(called: jmethodID) -> Option<Invocations> {
        let memory = Memory::open()?;
        let layout = Layout::find(&memory)?;
        let invocations = Invocations { memory, layout };
        invocations.of(called).is_some_and(|calls| calls > 0).then_some(invocations)
    }

    /// How often a method has been called, at least, since its class was loaded or changed: once it is compiled for good, nothing is counted any more.
    /// `None` when that cannot be read.
    pub fn of(&self, method: jmethodID) -> Option<u32> {
        // A method's id is the address of a pointer to it.
        let method = self.memory.word(method as u64)?;
        let Layout { method_counters, method_data, code, counter, profiled } = self.layout;
        let interpreted = self.counted(method + method_counters, counter)?;
        let profiled = self.counted(method + method_data, profiled)?;
        let is_compiled = self.memory.word(method + code)? != 0;
        Some(interpreted.saturating_add(profiled).max(u32::from(is_compiled)))
    }

    /// How often a method that is not compiled has been called; `None` also for one that is.
    pub fn uncompiled(&self, method: jmethodID) -> Option<u32> {
        let calls = self.of(method)?;
        let method = self.memory.word(method as u64)?;
        (self.memory.word(method + self.layout.code)? == 0).then_some(calls)
    }

    /// The calls that a structure has counted, if there is one. That there is one says little: code that has been inlined has one.
    fn counted(&self, pointer: u64, counter: u64) -> Option<u32> {
        match self.memory.word(pointer)? {
            0 => Some(0),
            structure => Some(u32::from_ne_bytes(self.memory.read(structure + counter)?) >> FLAGS),
        }
    }
}

impl Layout {
    fn find(memory: &Memory) -> Option<Layout> {
        let fields = memory.fields([
            ("Method", "_method_counters"),
            ("Method", "_method_data"),
            ("Method", "_code"),
            ("MethodCounters", "_invocation_counter"),
            ("InvocationCounter", "_counter"),
            ("MethodData", "_tenure_traps"),
        ])?;
        let [method_counters, method_data, code, calls, counter, traps] = fields.map(|field| Some(field?.offset));
        Some(Layout {
            method_counters: method_counters?,
            method_data: method_data?,
            code: code?,
            counter: calls? + counter?,
            profiled: traps?.checked_sub(BEFORE_TRAPS)? + counter?,
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
            assert_eq!(invocations().of(&raw const pointer as jmethodID), Some(calls), "{method:?}");
            let uncompiled = (method[2] == 0).then_some(calls);
            assert_eq!(invocations().uncompiled(&raw const pointer as jmethodID), uncompiled, "{method:?}");
        }
    }

    #[test]
    fn what_is_no_method_has_no_calls() {
        let nowhere = 8_u64;
        assert_eq!(invocations().of(nowhere as jmethodID), None);
        assert_eq!(invocations().of(&raw const nowhere as jmethodID), None);
    }
}
