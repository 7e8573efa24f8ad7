//! What HotSpot tells debuggers about itself: where in memory its structures' fields are (`gHotSpotVMStructs`), and
//! what its constants are (`gHotSpotVMIntConstants`), both exported by `libjvm.so`.
//!
//! Everything is read through `/proc/self/mem`: an address that leads nowhere then is an error and no crash. In a JVM that is made otherwise
//! nothing is found, and whoever asks does without.
//!
//! Why so, and at what cost: docs/decisions/agent.md.

use std::ffi::CStr;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The JVM's library, by the name that it is linked as.
const LIBRARY: &CStr = c"libjvm.so";
/// More fields, or constants, than any JVM describes: the table's end must have been missed.
const MOST_FIELDS: u64 = 20_000;
/// Longer than any name that is looked for.
const LONGEST_NAME: usize = 64;

/// This process's memory.
#[derive(Debug)]
pub struct Memory(File);

/// Where a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// In its structure, in bytes.
    pub offset: u64,
    /// In memory, of one that there is only once.
    pub address: u64,
}

impl Memory {
    /// Makes it readable.
    pub fn open() -> Option<Memory> {
        File::open("/proc/self/mem").ok().map(Memory)
    }

    /// What is there, if there is anything.
    pub fn read<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }

    /// So many bytes.
    pub fn bytes(&self, at: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.0.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }

    /// A pointer, or another word of its size.
    pub fn word(&self, at: u64) -> Option<u64> {
        self.read(at).map(u64::from_ne_bytes)
    }

    /// A string of C's, or so much of it that it is none of those that are looked for.
    fn text(&self, at: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; LONGEST_NAME];
        let length = self.0.read_at(&mut bytes, at).ok()?;
        let end = bytes[..length].iter().position(|byte| *byte == 0).unwrap_or(length);
        bytes.truncate(end);
        Some(bytes)
    }

    /// The fields of these types and names; those that this JVM does not describe are missing.
    pub fn fields<const N: usize>(&self, wanted: [(&str, &str); N]) -> Option<[Option<Field>; N]> {
        let library = Library::open()?;
        let variable = |name| self.word(library.symbol(name)?);
        let fields = variable(c"gHotSpotVMStructs")?;
        let stride = variable(c"gHotSpotVMStructEntryArrayStride")?;
        let type_name = variable(c"gHotSpotVMStructEntryTypeNameOffset")?;
        let field_name = variable(c"gHotSpotVMStructEntryFieldNameOffset")?;
        let offset = variable(c"gHotSpotVMStructEntryOffsetOffset")?;
        let address = variable(c"gHotSpotVMStructEntryAddressOffset")?;
        let mut found = [None; N];
        for index in 0..MOST_FIELDS {
            let entry = fields + index * stride;
            let name = self.word(entry + type_name)?;
            if name == 0 {
                break;
            }
            let of = self.text(name)?;
            if wanted.iter().all(|(wanted, _)| wanted.as_bytes() != of) {
                continue;
            }
            let field = self.text(self.word(entry + field_name)?)?;
            let is_wanted = |(name, part): &(&str, &str)| name.as_bytes() == of && part.as_bytes() == field;
            if let Some(index) = wanted.iter().position(is_wanted) {
                found[index] = Some(Field { offset: self.word(entry + offset)?, address: self.word(entry + address)? });
            }
        }
        Some(found)
    }

    /// The constants of these names; those that this JVM does not describe are missing.
    pub fn constants<const N: usize>(&self, wanted: [&str; N]) -> Option<[Option<i32>; N]> {
        let library = Library::open()?;
        let variable = |name| self.word(library.symbol(name)?);
        let constants = variable(c"gHotSpotVMIntConstants")?;
        let stride = variable(c"gHotSpotVMIntConstantEntryArrayStride")?;
        let name_offset = variable(c"gHotSpotVMIntConstantEntryNameOffset")?;
        let value_offset = variable(c"gHotSpotVMIntConstantEntryValueOffset")?;
        let mut found = [None; N];
        for index in 0..MOST_FIELDS {
            let entry = constants + index * stride;
            let name = self.word(entry + name_offset)?;
            if name == 0 {
                break;
            }
            let name = self.text(name)?;
            if let Some(index) = wanted.iter().position(|wanted| wanted.as_bytes() == name) {
                found[index] = Some(i32::from_ne_bytes(self.read(entry + value_offset)?));
            }
        }
        Some(found)
    }
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
        let memory = Memory::open().expect("the process's memory");
        assert_eq!(memory.word(8), None);
        assert_eq!(memory.text(8), None);
        assert_eq!(memory.bytes(8, 100), None);
        let here = 0x1234_5678_u64;
        assert_eq!(memory.word(&raw const here as u64), Some(here));
        assert_eq!(memory.text(c"a name".as_ptr() as u64).as_deref(), Some(&b"a name"[..]));
    }

    #[test]
    fn without_a_jvm_there_is_nothing_to_be_found() {
        assert_eq!(Memory::open().expect("the process's memory").fields([("Method", "_code")]), None);
        assert_eq!(Memory::open().expect("the process's memory").constants(["oopSize"]), None);
    }
}
