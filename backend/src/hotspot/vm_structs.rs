//! What HotSpot tells debuggers about itself: where in memory its structures' fields are (`gHotSpotVMStructs`), and
//! what its constants are (`gHotSpotVMIntConstants`), both exported by `libjvm.so`.
//!
//! Everything is read through `/proc/self/mem`, or `process_vm_readv`: an address that leads nowhere then is an error and no crash. In a JVM that is made otherwise
//! nothing is found, and whoever asks does without.
//!
//! Why so, and at what cost: docs/decisions/agent.md.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The JVM's library, by the name that it is linked as.
const LIBRARY: &CStr = c"libjvm.so";
/// More fields, or constants, than any JVM describes: the table's end must have been missed.
const MOST_FIELDS: u64 = 20_000;
/// The kernel reads at so many places at once (`UIO_MAXIOV`).
const AT_ONCE: usize = 1024;
/// Longer than any name that is looked for.
const LONGEST_NAME: usize = 64;
/// Longer than an entry of any table.
const LONGEST_ENTRY: usize = 256;

/// This process's memory.
#[derive(Clone, Debug)]
pub struct Memory(Arc<File>);

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
        File::open("/proc/self/mem").ok().map(|file| Memory(Arc::new(file)))
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

    /// A word at each of these places, as far as there are any.
    pub fn words(&self, at: &[u64]) -> Vec<Option<u64>> {
        let word = |piece: Option<Vec<u8>>| piece?.first_chunk().copied().map(u64::from_ne_bytes);
        self.pieces(at, size_of::<u64>()).into_iter().map(word).collect()
    }

    /// So many bytes at each of these places, as far as there are any: many places take hardly more time than one.
    pub fn pieces(&self, at: &[u64], length: usize) -> Vec<Option<Vec<u8>>> {
        let mut pieces = Vec::with_capacity(at.len());
        for mut places in at.chunks(AT_ONCE) {
            while !places.is_empty() {
                let read = read_at_once(places, length);
                pieces.extend(read.chunks_exact(length).map(|piece| Some(piece.to_vec())));
                places = &places[read.len() / length..];
                // The first that was not read leads nowhere, or must not be read so here.
                if let Some((place, others)) = places.split_first() {
                    pieces.push(self.bytes(*place, length));
                    places = others;
                }
            }
        }
        pieces
    }

    /// Strings of C's, or so much of them that they are none of those that are looked for.
    fn texts(&self, at: &[u64]) -> Vec<Option<Vec<u8>>> {
        let ended = |bytes: &Vec<u8>| bytes.iter().position(|byte| *byte == 0);
        let pieces = self.pieces(at, LONGEST_NAME).into_iter().zip(at);
        pieces
            .map(|(piece, at)| match piece {
                Some(mut bytes) => {
                    bytes.truncate(ended(&bytes).unwrap_or(LONGEST_NAME));
                    Some(bytes)
                }
                // It may end where nothing can be read any more.
                None => self.text(*at),
            })
            .collect()
    }

    /// One.
    fn text(&self, at: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; LONGEST_NAME];
        let length = self.0.read_at(&mut bytes, at).ok()?;
        let end = bytes[..length].iter().position(|byte| *byte == 0).unwrap_or(length);
        bytes.truncate(end);
        Some(bytes)
    }
}

/// Fields by their types and names.
type Fields = HashMap<(Vec<u8>, Vec<u8>), Field>;

/// What the JVM says of itself; empty where it says nothing.
#[derive(Debug, Default)]
pub struct Description {
    fields: Fields,
    constants: HashMap<Vec<u8>, i32>,
}

impl Description {
    /// Reads it.
    pub fn read(memory: &Memory) -> Description {
        let Some(library) = Library::open() else { return Description::default() };
        Description {
            fields: fields(memory, &library).unwrap_or_default(),
            constants: constants(memory, &library).unwrap_or_default(),
        }
    }

    /// The field of a type; `None` where this JVM describes none.
    pub fn field(&self, of: &str, name: &str) -> Option<Field> {
        self.fields.get(&(of.into(), name.into())).copied()
    }

    /// Where a field is in its structure, in bytes.
    pub fn offset(&self, of: &str, name: &str) -> Option<u64> {
        self.field(of, name).map(|field| field.offset)
    }

    /// A constant.
    pub fn constant(&self, name: &str) -> Option<i32> {
        self.constants.get(name.as_bytes()).copied()
    }
}

fn fields(memory: &Memory, library: &Library) -> Option<Fields> {
    let variable = |name| memory.word(library.symbol(name)?);
    let (table, stride) = (variable(c"gHotSpotVMStructs")?, variable(c"gHotSpotVMStructEntryArrayStride")?);
    let type_name = variable(c"gHotSpotVMStructEntryTypeNameOffset")?;
    let field_name = variable(c"gHotSpotVMStructEntryFieldNameOffset")?;
    let (offset, address) =
        (variable(c"gHotSpotVMStructEntryOffsetOffset")?, variable(c"gHotSpotVMStructEntryAddressOffset")?);
    let entries = entries(memory, table, stride, type_name)?;
    let texts = |at| Some(memory.texts(&entries.iter().map(|entry| word(entry, at)).collect::<Option<Vec<_>>>()?));
    let (types, names) = (texts(type_name)?, texts(field_name)?);
    let mut found = Fields::new();
    for (entry, name) in entries.iter().zip(types.into_iter().zip(names)) {
        let (Some(of), Some(name)) = name else { return None };
        found.insert((of, name), Field { offset: word(entry, offset)?, address: word(entry, address)? });
    }
    Some(found)
}

fn constants(memory: &Memory, library: &Library) -> Option<HashMap<Vec<u8>, i32>> {
    let variable = |name| memory.word(library.symbol(name)?);
    let stride = variable(c"gHotSpotVMIntConstantEntryArrayStride")?;
    let name = variable(c"gHotSpotVMIntConstantEntryNameOffset")?;
    let entries = entries(memory, variable(c"gHotSpotVMIntConstants")?, stride, name)?;
    let value = usize::try_from(variable(c"gHotSpotVMIntConstantEntryValueOffset")?).ok()?;
    let names = memory.texts(&entries.iter().map(|entry| word(entry, name)).collect::<Option<Vec<_>>>()?);
    let constant = |(entry, name): (&Vec<u8>, Option<Vec<u8>>)| {
        Some((name?, i32::from_ne_bytes(*entry.get(value..)?.first_chunk()?)))
    };
    entries.iter().zip(names).map(constant).collect()
}

/// The entries of a table, up to the one without a name; `None` if there is no such one.
fn entries(memory: &Memory, table: u64, stride: u64, name: u64) -> Option<Vec<Vec<u8>>> {
    let length = usize::try_from(stride).ok().filter(|length| (1..=LONGEST_ENTRY).contains(length))?;
    let mut entries = Vec::new();
    for first in (0..MOST_FIELDS).step_by(AT_ONCE) {
        let places: Vec<u64> =
            (first..first + AT_ONCE as u64).map(|index| table.saturating_add(index * stride)).collect();
        for entry in memory.pieces(&places, length) {
            let entry = entry?;
            if word(&entry, name)? == 0 {
                return Some(entries);
            }
            entries.push(entry);
        }
    }
    None
}

fn word(entry: &[u8], at: u64) -> Option<u64> {
    entry.get(usize::try_from(at).ok()?..)?.first_chunk().copied().map(u64::from_ne_bytes)
}

/// So many bytes at each of the first of these places, up to one that cannot be read; at most [`AT_ONCE`] places.
fn read_at_once(places: &[u64], length: usize) -> Vec<u8> {
    let mut bytes = vec![0_u8; places.len() * length];
    let here = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let there = |place: &u64| libc::iovec { iov_base: *place as *mut c_void, iov_len: length };
    let there: Vec<libc::iovec> = places.iter().map(there).collect();
    // SAFETY: the kernel writes into `bytes` only, no more than its length, and checks what it reads: an address that leads nowhere is an error.
    let read = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const here, 1, there.as_ptr(), there.len() as libc::c_ulong, 0)
    };
    bytes.truncate(usize::try_from(read).unwrap_or(0) / length * length);
    bytes
}

/// The JVM's library, which is loaded already.
struct Library(std::ptr::NonNull<c_void>);

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
    fn many_places_are_read_and_those_that_lead_nowhere_are_missing() {
        let memory = Memory::open().expect("the process's memory");
        let here: Vec<u64> = (0..2_500).collect();
        let mut places: Vec<u64> = here.iter().map(|word| &raw const *word as u64).collect();
        for nowhere in [0, 700, 1_023, 1_024, 2_499] {
            places[nowhere] = 8;
        }
        let words = memory.words(&places);
        for (word, (place, read)) in here.iter().zip(places.iter().zip(words)) {
            assert_eq!(read, (*place != 8).then_some(*word));
        }
        assert_eq!(memory.words(&[]), []);
    }

    #[test]
    fn without_a_jvm_there_is_nothing_to_be_found() {
        let described = Description::read(&Memory::open().expect("the process's memory"));
        assert_eq!(described.field("Method", "_code"), None);
        assert_eq!(described.constant("oopSize"), None);
    }
}
