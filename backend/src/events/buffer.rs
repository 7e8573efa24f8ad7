//! What has happened and is not sent yet: so much at most.
//!
//! A thread of the target that leaves something here does not wait, but for another that does the same at this moment. Collections have a place of
//! their own: the JVM is stopped while they are left there, and only the agent's thread ever holds it, to take them out.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use headwater_protocol::message::events::{JvmEvent, Sort};
use jni::sys::jmethodID;

use crate::jvmti::Call;

/// Of all that is sent at once there is no more than this.
const MOST: usize = 1024;
/// Collections have this beside it.
const MOST_COLLECTIONS: usize = 256;

/// A call on a stack, not named yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The method's id: a number, as long as nobody asks JVMTI for its name.
    method: usize,
    /// The index of its instruction.
    pub at: Option<usize>,
}

impl Frame {
    /// Of a call.
    pub fn of(call: &Call) -> Frame {
        Frame { at: call.at, ..Frame::of_method(call.method) }
    }

    /// Of a method alone.
    pub fn of_method(method: jmethodID) -> Frame {
        Frame { method: method as usize, at: None }
    }

    /// The method; JVMTI knows whether it still is one.
    pub fn method(self) -> jmethodID {
        self.method as jmethodID
    }
}

/// An event whose stacks are not named yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// Without them.
    pub event: JvmEvent,
    /// The thread's, or the method that it is about.
    pub stack: Vec<Frame>,
    /// The owner's.
    pub owner_stack: Vec<Frame>,
}

impl From<JvmEvent> for Raw {
    fn from(event: JvmEvent) -> Raw {
        Raw { event, stack: Vec::new(), owner_stack: Vec::new() }
    }
}

/// What was in the buffer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// In order of time.
    pub events: Vec<Raw>,
    /// So many others found no room.
    pub left_out: Vec<(Sort, u64)>,
}

impl Taken {
    /// Whether nothing has happened.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.left_out.is_empty()
    }
}

/// The buffer.
#[derive(Debug, Default)]
pub struct Buffer {
    events: Mutex<Vec<Raw>>,
    /// How many these are.
    count: AtomicUsize,
    collections: Mutex<Vec<JvmEvent>>,
    left_out: [AtomicU64; Sort::ALL.len()],
}

impl Buffer {
    /// Whether there is room for an event, before it is looked at more closely; one for which there is none is counted.
    pub fn has_room(&self, sort: Sort) -> bool {
        // Relaxed: a limit, which need not be exact.
        let has_room = self.count.load(Ordering::Relaxed) < MOST;
        if !has_room {
            self.leave_out(sort);
        }
        has_room
    }

    /// Leaves an event here.
    pub fn add(&self, event: impl Into<Raw>) {
        let event = event.into();
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.len() >= MOST {
            drop(events);
            return self.leave_out(event.event.what.sort());
        }
        events.push(event);
        self.count.store(events.len(), Ordering::Relaxed);
    }

    /// Leaves a collection here.
    pub fn add_collection(&self, event: JvmEvent) {
        let mut collections = self.collections.lock().unwrap_or_else(PoisonError::into_inner);
        if collections.len() >= MOST_COLLECTIONS {
            drop(collections);
            return self.leave_out(Sort::Collection);
        }
        collections.push(event);
    }

    /// An event that is known to have been, and of which nothing else can be told.
    pub fn leave_out(&self, sort: Sort) {
        self.left_out[sort as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Takes everything out.
    pub fn take(&self) -> Taken {
        let mut events = {
            let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
            self.count.store(0, Ordering::Relaxed);
            std::mem::take(&mut *events)
        };
        let collections = std::mem::take(&mut *self.collections.lock().unwrap_or_else(PoisonError::into_inner));
        events.extend(collections.into_iter().map(Raw::from));
        events.sort_by_key(|raw| raw.event.time_ns);
        let left_out =
            Sort::ALL.into_iter().map(|sort| (sort, self.left_out[sort as usize].swap(0, Ordering::Relaxed)));
        Taken { events, left_out: left_out.filter(|(_, count)| *count > 0).collect() }
    }
}

#[cfg(test)]
mod tests {
    use headwater_protocol::message::events::What;

    use super::*;

    fn unload(time_ns: i64) -> JvmEvent {
        JvmEvent { time_ns, what: What::ClassUnload { class: "a.B".into() } }
    }

    fn collection(time_ns: i64) -> JvmEvent {
        JvmEvent { time_ns, what: What::Collection { duration_ns: 1, cause: None, collector: None, pools: Vec::new() } }
    }

    #[test]
    fn what_finds_no_room_is_counted_by_sort_until_it_is_taken() {
        let buffer = Buffer::default();
        for time in 0..MOST as i64 + 3 {
            buffer.add(unload(time));
        }
        assert!(!buffer.has_room(Sort::ThreadStart));
        let taken = buffer.take();
        assert_eq!(taken.events.len(), MOST);
        assert_eq!(taken.left_out, [(Sort::ClassUnload, 3), (Sort::ThreadStart, 1)]);
        assert!(buffer.has_room(Sort::ThreadStart) && buffer.take().is_empty());
    }

    #[test]
    fn collections_have_room_of_their_own_and_stand_where_they_were() {
        let buffer = Buffer::default();
        for time in 0..MOST as i64 {
            buffer.add(unload(10 * time));
        }
        buffer.add_collection(collection(15));
        let taken = buffer.take();
        assert_eq!(taken.events[2].event, collection(15));
        for time in 0..MOST_COLLECTIONS as i64 + 2 {
            buffer.add_collection(collection(time));
        }
        assert_eq!(buffer.take().left_out, [(Sort::Collection, 2)]);
    }
}
