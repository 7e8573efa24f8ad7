//! Memory that is mapped by both processes, as atomics at offsets.
//!
//! The other process writes to this memory at any time, so it is never borrowed as a slice: every access is an atomic
//! load or store through a raw pointer that was bounds-checked against the mapping.

use std::fs::File;
use std::io;
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A mapping. Unmapped when dropped, unless it is where another was.
#[derive(Debug)]
pub(crate) struct Memory {
    range: Range,
    /// What is mapped of it.
    len: usize,
    /// Somebody may still write here who has been writing since before.
    is_kept: bool,
}

// SAFETY: it is owned like a box, and every access to what it holds is atomic.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// Addresses that nothing else is mapped at, for as long as the process lives.
#[derive(Debug)]
pub struct Range {
    address: *mut u8,
    len: usize,
}

// SAFETY: a number that nobody reads or writes through but `Memory`.
unsafe impl Send for Range {}

impl Range {
    /// How much can be mapped there.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether that is nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Memory {
    /// Maps the first `len` bytes of a file.
    pub(crate) fn map(file: &File, len: usize) -> io::Result<Memory> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses addresses at which there is nothing.
        let address = unsafe { mmap(std::ptr::null_mut(), len, protection, MapFlags::SHARED, file, 0)? };
        Ok(Memory { range: Range { address: address.cast(), len }, len, is_kept: false })
    }

    /// The same, at the beginning of a range that has room for it.
    pub(crate) fn map_in(file: &File, len: usize, range: Range) -> io::Result<Memory> {
        assert!(len <= range.len, "{len} bytes in a range of {}", range.len);
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: the range is nobody else's, page-aligned, and replaced atomically: whoever still writes there writes into other pages.
        unsafe { mmap(range.address.cast(), len, protection, flags, file, 0)? };
        Ok(Memory { range, len, is_kept: true })
    }

    /// Address of the first byte.
    pub(crate) fn address(&self) -> usize {
        self.range.address as usize
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Replaces the pages by private ones that stay for as long as the process lives. Gives up the address range, not
    /// memory.
    pub(crate) fn abandon(self) -> io::Result<Range> {
        let range = Range { address: self.range.address, len: self.range.len };
        // The range must not be unmapped by Drop, whatever happens below.
        std::mem::forget(self);
        make_private(&range)?;
        Ok(range)
    }

    fn pointer(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset.is_multiple_of(bytes) && offset + bytes <= self.len, "offset {offset} in the segment");
        // SAFETY: the offset was just checked to lie within the mapping.
        unsafe { self.range.address.add(offset) }
    }

    pub(crate) fn u8_at(&self, offset: usize) -> &AtomicU8 {
        // SAFETY: in bounds (checked by `pointer`), alive as long as `self`, and only ever accessed atomically.
        unsafe { AtomicU8::from_ptr(self.pointer(offset, 1)) }
    }

    pub(crate) fn u32_at(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as in `u8_at`; aligned, because mappings are page-aligned and `pointer` checks the offset.
        unsafe { AtomicU32::from_ptr(self.pointer(offset, 4).cast()) }
    }

    pub(crate) fn u64_at(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: as in `u32_at`.
        unsafe { AtomicU64::from_ptr(self.pointer(offset, 8).cast()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.is_kept {
            // What cannot be replaced stays what it is.
            let _ = make_private(&self.range);
        } else {
            // SAFETY: the mapping is this one's own, and nothing refers to it any more.
            let _ = unsafe { munmap(self.range.address.cast(), self.range.len) };
        }
    }
}

/// Replaces what is mapped in a range by private pages, which take no memory until somebody writes there.
fn make_private(range: &Range) -> io::Result<()> {
    let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
    // SAFETY: the range is nobody else's, page-aligned, and replaced atomically; nothing in this process holds a
    // reference into it (see the module's first lines), and raw accesses stay valid.
    unsafe { mmap_anonymous(range.address.cast(), range.len, protection, flags | MapFlags::FIXED)? };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_memory_can_still_be_written() {
        let fd = rustix::fs::memfd_create("headwater", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let file = File::from(fd);
        file.set_len(4096).unwrap();
        let ours = Memory::map(&file, 4096).unwrap();
        let theirs = Memory::map(&file, 4096).unwrap();
        let address = theirs.address();
        theirs.abandon().unwrap();
        // SAFETY: `abandon` keeps the range mapped for good.
        unsafe { AtomicU8::from_ptr(address as *mut u8).store(1, Ordering::Relaxed) };
        assert_eq!(ours.u8_at(0).load(Ordering::Relaxed), 0);
    }
}
