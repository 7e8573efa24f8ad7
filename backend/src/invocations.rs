//! Whether methods have ever been called, by HotSpot's own counters.
//!
//! HotSpot counts the calls of every method, for its JIT compilers' sake, from the very first on; no JVMTI function tells of it. But it describes
//! the layout of its structures for debuggers, in tables that `libjvm.so` exports (`gHotSpotVMStructs`), and there the counters
//! are found. Everything is read through `/proc/self/mem`: an address that leads nowhere then is an error and no crash. Where any of
//! this is otherwise, in a JVM of tomorrow or one that counts nothing (`-Xint`), nothing is known, and nothing is claimed.

use std::ffi::CStr;
use std::fs::File;
use std::os::unix::fs::FileExt;

use jni::sys::jmethodID;

/// The JVM's library, by the name that it is linked as.
const LIBRARY: &CStr = c"libjvm.so";
/// More fields than any JVM describes: the table's end must have been missed.
const MOST_FIELDS: u64 = 20_000;
/// Longer than any name that is looked for.
const LONGEST_NAME: usize = 64;
/// A counter's lowest bit is a flag.
const UNCOUNTED: u32 = 1;
/// The one field of a profile next to its counters that is described: four counters of four bytes lie before it, the first that of calls.
const BEFORE_TRAPS: u64 = 16;

/// Where HotSpot counts.
#[derive(Debug)]
pub struct Invocations {
    memory: File,
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
        let memory = File::open("/proc/self/mem").ok()?;
        let layout = Layout::find(&memory)?;
        let invocations = Invocations { memory, layout };
        (invocations.of(called) == Some(true)).then_some(invocations)
    }

    /// Whether a method has been called since its class was loaded, or changed; `None` when that cannot be read.
    pub fn of(&self, method: jmethodID) -> Option<bool> {
        // A method's id is the address of a pointer to it.
        let method = self.address(method as u64)?;
        let Layout { method_counters, method_data, code, counter, profiled } = self.layout;
        Some(
            self.address(method + code)? != 0
                || self.has_counted(method + method_counters, counter)?
                || self.has_counted(method + method_data, profiled)?,
        )
    }

    /// Whether a structure, if there is one, has counted a call. That there is one says little: code that has been inlined has one.
    fn has_counted(&self, pointer: u64, counter: u64) -> Option<bool> {
        match self.address(pointer)? {
            0 => Some(false),
            structure => Some(u32::from_ne_bytes(read(&self.memory, structure + counter)?) > UNCOUNTED),
        }
    }

    fn address(&self, at: u64) -> Option<u64> {
        read(&self.memory, at).map(u64::from_ne_bytes)
    }
}

impl Layout {
    fn find(memory: &File) -> Option<Layout> {
        let library = Library::open()?;
        let variable = |name| read(memory, library.symbol(name)?).map(u64::from_ne_bytes);
        let fields = variable(c"gHotSpotVMStructs")?;
        let stride = variable(c"gHotSpotVMStructEntryArrayStride")?;
        let type_name = variable(c"gHotSpotVMStructEntryTypeNameOffset")?;
        let field_name = variable(c"gHotSpotVMStructEntryFieldNameOffset")?;
        let offset = variable(c"gHotSpotVMStructEntryOffsetOffset")?;
        let mut found = [None; 6];
        let wanted: [(&[u8], &[u8]); 6] = [
            (b"Method", b"_method_counters"),
            (b"Method", b"_method_data"),
            (b"Method", b"_code"),
            (b"MethodCounters", b"_invocation_counter"),
            (b"InvocationCounter", b"_counter"),
            (b"MethodData", b"_tenure_traps"),
        ];
        for index in 0..MOST_FIELDS {
            let entry = fields + index * stride;
            let at = |part: u64| read(memory, entry + part).map(u64::from_ne_bytes);
            let name = at(type_name)?;
            if name == 0 {
                break;
            }
            let name = text(memory, name)?;
            if wanted.iter().all(|(wanted, _)| *wanted != name) {
                continue;
            }
            let field = (name, text(memory, at(field_name)?)?);
            if let Some(index) = wanted.iter().position(|(name, part)| *name == field.0 && *part == field.1) {
                found[index] = at(offset);
            }
        }
        let [method_counters, method_data, code, invocation_counter, counter, traps] = found;
        Some(Layout {
            method_counters: method_counters?,
            method_data: method_data?,
            code: code?,
            counter: invocation_counter? + counter?,
            profiled: traps?.checked_sub(BEFORE_TRAPS)? + counter?,
        })
    }
}

fn read<const N: usize>(memory: &File, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    memory.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

/// A string of C's, or so much of it that it is none of those that are looked for.
fn text(memory: &File, at: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; LONGEST_NAME];
    let length = memory.read_at(&mut bytes, at).ok()?;
    bytes.truncate(length);
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(length);
    bytes.truncate(end);
    Some(bytes)
}

/// The JVM's library, which is loaded already.
struct Library(std::ptr::NonNull<std::ffi::c_void>);

impl Library {
    fn open() -> Option<Library> {
        // SAFETY: a name that ends in a zero byte; RTLD_NOLOAD loads nothing and runs nothing.
        let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        std::ptr::NonNull::new(library).map(Library)
    }

    fn symbol(&self, name: &CStr) -> Option<u64> {
        // SAFETY: an open library and a name that ends in a zero byte.
        let symbol = unsafe { libc::dlsym(self.0.as_ptr(), name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol as u64)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: it is open, and closed once; the JVM holds the library too.
        unsafe { libc::dlclose(self.0.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_leads_nowhere_is_no_crash() {
        let memory = File::open("/proc/self/mem").expect("the process's memory");
        assert_eq!(read::<8>(&memory, 8), None);
        assert_eq!(text(&memory, 8), None);
        let here = 0x1234_5678_u64;
        assert_eq!(read(&memory, &raw const here as u64).map(u64::from_ne_bytes), Some(here));
        let layout = Layout { method_counters: 0, method_data: 8, code: 16, counter: 0, profiled: 0 };
        let invocations = Invocations { memory, layout };
        assert_eq!(invocations.of(8 as jmethodID), None);
        assert_eq!(invocations.of(&raw const here as jmethodID), None, "it is no pointer to a method");
    }

    #[test]
    fn counters_profiles_and_code_tell_of_calls() {
        let memory = File::open("/proc/self/mem").expect("the process's memory");
        let layout = Layout { method_counters: 0, method_data: 8, code: 16, counter: 4, profiled: 0 };
        let invocations = Invocations { memory, layout };
        let address = |of: &[u32; 2]| of.as_ptr() as u64;
        let (none, some) = ([0_u32, 1], [0_u32, 2]);
        let profiled = [2_u32, 0];
        for (method, called) in [
            ([0, 0, 0], false),
            ([address(&none), 0, 0], false),
            ([address(&some), 0, 0], true),
            ([0, address(&none), 0], false),
            ([0, address(&profiled), 0], true),
            ([0, 0, 1], true),
        ] {
            let pointer = method.as_ptr();
            assert_eq!(invocations.of(&raw const pointer as jmethodID), Some(called), "{method:?}");
        }
    }

    #[test]
    fn without_a_jvm_there_is_nothing_to_be_found() {
        assert!(Invocations::find(std::ptr::null_mut()).is_none());
    }
}
