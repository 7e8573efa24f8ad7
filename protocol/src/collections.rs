//! The JVM's garbage collections, as the target tells of them: a ring in the segment's header page.
//!
//! A collection is told of while all threads are stopped for it, so it is in the ring before any of them writes its next word. Whoever
//! looks here after reading a word finds all collections that ended before it.

use std::sync::Arc;

use crate::layout::{
    COLLECTION_BYTES, COLLECTION_CAUSE, COLLECTION_CAUSE_BYTES, COLLECTION_COLLECTOR, COLLECTION_DURATION_NS,
    COLLECTION_HEAP_AFTER, COLLECTION_HEAP_BEFORE, COLLECTION_START_NS, COLLECTIONS, COLLECTIONS_KEPT, COLLECTOR_BYTES,
    HEAP_UNKNOWN, OFFSET_COLLECTIONS,
};
use crate::memory::Ordering;
use crate::segment::Segment;

/// For so long a collection stopped the JVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// When it began, by `System.nanoTime()`.
    pub start_ns: i64,
    /// How long the JVM was stopped for it, without the time that threads took to stop.
    pub duration_ns: u64,
    /// How many bytes of the heap were in use when it began, where the JVM says so.
    pub heap_before: Option<u64>,
    /// How many were when it was over.
    pub heap_after: Option<u64>,
    /// What the JVM says was the reason; empty where it does not.
    pub cause: String,
    /// Which of the JVM's collectors it was, where the JVM says so.
    pub collector: String,
}

impl Collection {
    /// When it was over.
    pub fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add_unsigned(self.duration_ns)
    }
}

impl Segment {
    /// Tells of a collection. Of one thread at a time.
    pub fn add_collection(&self, collection: &Collection) {
        let added = self.memory.u64_at(OFFSET_COLLECTIONS);
        let number = added.load(Ordering::Relaxed);
        let place = place(number);
        // Release: pairs with the reader's acquire fence, which so sees that this place is no more what it was.
        std::sync::atomic::fence(Ordering::Release);
        self.memory.u64_at(place + COLLECTION_START_NS).store(collection.start_ns as u64, Ordering::Relaxed);
        self.memory.u64_at(place + COLLECTION_DURATION_NS).store(collection.duration_ns, Ordering::Relaxed);
        let heap = [(COLLECTION_HEAP_BEFORE, collection.heap_before), (COLLECTION_HEAP_AFTER, collection.heap_after)];
        for (at, bytes) in heap {
            self.memory.u64_at(place + at).store(bytes.unwrap_or(HEAP_UNKNOWN), Ordering::Relaxed);
        }
        self.store_text::<COLLECTION_CAUSE_BYTES>(place + COLLECTION_CAUSE, &collection.cause);
        self.store_text::<COLLECTOR_BYTES>(place + COLLECTION_COLLECTOR, &collection.collector);
        // Release: pairs with the reader's acquire.
        added.store(number + 1, Ordering::Release);
    }

    /// As much of a text as there is room for, filled up with zeros.
    fn store_text<const BYTES: usize>(&self, at: usize, text: &str) {
        let mut bytes = [0; BYTES];
        let length = text.len().min(BYTES);
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        for (index, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
            self.memory.u64_at(at + index * 8).store(u64::from_le_bytes(*word), Ordering::Relaxed);
        }
    }
}

/// Reads a segment's collections.
#[derive(Debug)]
pub struct CollectionReader {
    segment: Arc<Segment>,
    read: u64,
}

impl CollectionReader {
    /// Reads everything.
    pub fn new(segment: Arc<Segment>) -> CollectionReader {
        CollectionReader { segment, read: 0 }
    }

    /// Hands over what is new; how many were overwritten before they could be read.
    pub fn read(&mut self, mut to: impl FnMut(Collection)) -> u64 {
        let memory = &self.segment.memory;
        let added = memory.u64_at(OFFSET_COLLECTIONS).load(Ordering::Acquire);
        let mut lost = 0;
        while self.read < added {
            let oldest = added.saturating_sub(COLLECTIONS_KEPT);
            if self.read < oldest {
                lost += oldest - self.read;
                self.read = oldest;
            }
            let collection = self.at(self.read);
            std::sync::atomic::fence(Ordering::Acquire);
            // The next to be written may be under way.
            let now = memory.u64_at(OFFSET_COLLECTIONS).load(Ordering::Relaxed);
            if now.saturating_sub(self.read) >= COLLECTIONS_KEPT {
                lost += 1;
            } else {
                to(collection);
            }
            self.read += 1;
        }
        lost
    }

    fn at(&self, number: u64) -> Collection {
        let word = |offset| self.segment.memory.u64_at(place(number) + offset).load(Ordering::Relaxed);
        let text = |at: usize, length: usize| {
            let bytes = (0..length / 8).flat_map(|index| word(at + index * 8).to_le_bytes());
            let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Collection {
            start_ns: word(COLLECTION_START_NS) as i64,
            duration_ns: word(COLLECTION_DURATION_NS),
            heap_before: Some(word(COLLECTION_HEAP_BEFORE)).filter(|bytes| *bytes != HEAP_UNKNOWN),
            heap_after: Some(word(COLLECTION_HEAP_AFTER)).filter(|bytes| *bytes != HEAP_UNKNOWN),
            cause: text(COLLECTION_CAUSE, COLLECTION_CAUSE_BYTES),
            collector: text(COLLECTION_COLLECTOR, COLLECTOR_BYTES),
        }
    }
}

fn place(number: u64) -> usize {
    COLLECTIONS + (number % COLLECTIONS_KEPT) as usize * COLLECTION_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Shape;
    use crate::segment::Recording;

    fn collection(number: u64) -> Collection {
        let heap_after = (!number.is_multiple_of(3)).then_some(number);
        Collection {
            start_ns: number as i64 * 10,
            duration_ns: number,
            heap_before: Some(number * 1_000),
            heap_after,
            cause: format!("cause {number}"),
            collector: format!("collector {number}"),
        }
    }

    #[test]
    fn what_one_side_tells_the_other_reads_in_order_and_once() {
        let (ours, file) = Segment::create(Shape::of(2), Recording::default()).unwrap();
        let theirs = Segment::open(&file).unwrap();
        let mut reader = CollectionReader::new(Arc::new(ours));
        let mut next = 0;
        for round in 0..COLLECTIONS_KEPT {
            let first = next;
            (0..round).for_each(|_| {
                theirs.add_collection(&collection(next));
                next += 1;
            });
            let mut read = Vec::new();
            assert_eq!(reader.read(|collection| read.push(collection)), 0);
            assert_eq!(read, (first..next).map(collection).collect::<Vec<_>>());
        }
    }

    #[test]
    fn who_reads_too_late_knows_how_many_are_missing() {
        let (ours, file) = Segment::create(Shape::of(2), Recording::default()).unwrap();
        let theirs = Segment::open(&file).unwrap();
        let mut reader = CollectionReader::new(Arc::new(ours));
        (0..COLLECTIONS_KEPT + 5).for_each(|number| theirs.add_collection(&collection(number)));
        let mut read = Vec::new();
        let lost = reader.read(|collection| read.push(collection));
        // The oldest place might be written anew at this moment.
        assert_eq!((lost, read.first().cloned()), (6, Some(collection(6))));
        assert_eq!(read.len() as u64, COLLECTIONS_KEPT - 1);
    }

    #[test]
    fn a_text_is_cut_where_there_is_no_room_for_it() {
        let (ours, file) = Segment::create(Shape::of(2), Recording::default()).unwrap();
        let theirs = Segment::open(&file).unwrap();
        let mut reader = CollectionReader::new(Arc::new(ours));
        theirs.add_collection(&Collection { cause: "x".repeat(1_000), ..collection(1) });
        theirs.add_collection(&Collection { collector: "y".repeat(1_000), ..collection(2) });
        let mut texts = Vec::new();
        reader.read(|collection| texts.push([collection.cause, collection.collector]));
        let cut = [
            ["x".repeat(COLLECTION_CAUSE_BYTES), "collector 1".into()],
            ["cause 2".into(), "y".repeat(COLLECTOR_BYTES)],
        ];
        assert_eq!(texts, cut);
    }
}
