//! Memory that is mapped by both processes, as atomics at offsets.
//!
//! The other process writes to this memory at any time, so it is never borrowed as a slice: every access is an atomic
//! load or store through a raw pointer that was bounds-checked against the mapping.

use std::fs::File;
use std::io;
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

/// A mapping. Unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Memory {
    map: MmapRaw,
}

impl Memory {
    /// Maps the first `len` bytes of a file.
    pub(crate) fn map(file: &File, len: usize) -> io::Result<Memory> {
        Ok(Memory { map: MmapOptions::new().len(len).map_raw(file)? })
    }

    /// Address of the first byte.
    pub(crate) fn address(&self) -> usize {
        self.map.as_mut_ptr() as usize
    }

    pub(crate) fn len(&self) -> usize {
        self.map.len()
    }

    /// Replaces the pages by private ones that stay for as long as the process lives. Gives up the address range, not
    /// memory.
    pub(crate) fn abandon(self) -> io::Result<()> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let (address, len) = (self.map.as_mut_ptr(), self.map.len());
        // The range must not be unmapped by Drop, whatever happens below.
        std::mem::forget(self.map);
        // SAFETY: the range is this mapping's own, page-aligned, and replaced atomically; nothing in this process
        // holds a reference into it (see the module's first lines), and raw accesses stay valid.
        let replaced = unsafe {
            mmap_anonymous(
                address.cast(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED,
            )
        };
        replaced.map(|_| ()).map_err(io::Error::from)
    }

    fn pointer(&self, offset: usize, bytes: usize) -> *mut u8 {
        assert!(offset.is_multiple_of(bytes) && offset + bytes <= self.map.len(), "offset {offset} in the segment");
        // SAFETY: the offset was just checked to lie within the mapping.
        unsafe { self.map.as_mut_ptr().add(offset) }
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
