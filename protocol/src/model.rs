//! What [`crate::memory`] is to the product, for loom: every interleaving, and every order of memory accesses that the
//! language allows, can be tried on it (`RUSTFLAGS="--cfg loom"`).

use std::collections::BTreeMap;

pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::layout::{
    CHUNK_HEAD_BYTES, CHUNK_HEADS, CHUNK_WORDS, HEAD_BASE_NS, HEAD_CLAIM, HEAD_STATE, HEAD_THREAD, OFFSET_CLAIMS,
    chunk_data,
};

/// The words of a segment that take part in passing chunks on.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    u8s: BTreeMap<usize, AtomicU8>,
    u32s: BTreeMap<usize, AtomicU32>,
    u64s: BTreeMap<usize, AtomicU64>,
}

impl Memory {
    /// All zero.
    pub(crate) fn of(chunks: usize) -> Memory {
        let mut memory = Memory::default();
        memory.u64s.insert(OFFSET_CLAIMS, AtomicU64::new(0));
        for chunk in 0..chunks {
            let head = CHUNK_HEADS + chunk * CHUNK_HEAD_BYTES;
            memory.u32s.insert(head + HEAD_STATE, AtomicU32::new(0));
            for field in [HEAD_CLAIM, HEAD_THREAD, HEAD_BASE_NS] {
                memory.u64s.insert(head + field, AtomicU64::new(0));
            }
        }
        for word in 0..chunks * CHUNK_WORDS {
            memory.u64s.insert(chunk_data(chunks) + word * 8, AtomicU64::new(0));
        }
        memory
    }

    pub(crate) fn u8_at(&self, offset: usize) -> &AtomicU8 {
        &self.u8s[&offset]
    }

    pub(crate) fn u32_at(&self, offset: usize) -> &AtomicU32 {
        &self.u32s[&offset]
    }

    pub(crate) fn u64_at(&self, offset: usize) -> &AtomicU64 {
        &self.u64s[&offset]
    }
}
