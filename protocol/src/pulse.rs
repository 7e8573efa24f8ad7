//! What tool and agent know of each other by the segment's first page: the agent, when the tool last gave a sign of life, and the tool, why the agent
//! has ended the session. Neither needs room on the socket, or somebody who reads it.

use std::fs::File;
use std::io;

use crate::layout::{FLAGS, OFFSET_BEAT, OFFSET_END};
use crate::memory::{Memory, Ordering};
use crate::segment::Segment;

/// Why the agent has ended a session by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The tool gave no sign of life for too long, or did not read what it was told.
    Silence,
    /// Somebody asked for it.
    Detached,
    /// The JVM goes down.
    JvmEnds,
}

impl End {
    const ALL: [End; 3] = [End::Silence, End::Detached, End::JvmEnds];

    fn number(self) -> u32 {
        match self {
            End::Silence => 1,
            End::Detached => 2,
            End::JvmEnds => 3,
        }
    }

    fn of(number: u32) -> Option<End> {
        End::ALL.into_iter().find(|end| end.number() == number)
    }
}

/// The agent's view: a mapping of its own, which stays when the segment is abandoned. Unmapped when dropped.
#[derive(Debug)]
pub struct Pulse {
    memory: Memory,
}

impl Pulse {
    /// Maps the beginning of a segment that has been opened.
    pub fn open(file: &File) -> io::Result<Pulse> {
        Ok(Pulse { memory: Memory::map(file, FLAGS)? })
    }

    /// When the tool last gave a sign of life, in ns by its own clock.
    pub fn beat_ns(&self) -> i64 {
        // Relaxed: a time, and nothing else, is published.
        self.memory.u64_at(OFFSET_BEAT).load(Ordering::Relaxed) as i64
    }

    /// The session ends, for this reason; the first one stays.
    pub fn end(&self, why: End) {
        // Relaxed: the tool looks when it has found the connection closed, which is a stronger edge.
        let _ = self.memory.u32_at(OFFSET_END).compare_exchange(0, why.number(), Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Segment {
    /// The tool gives a sign of life.
    pub fn beat(&self, now_ns: i64) {
        // Relaxed: as above.
        self.memory.u64_at(OFFSET_BEAT).store(now_ns as u64, Ordering::Relaxed);
    }

    /// Why the agent has ended the session, if it has, and by itself.
    pub fn end(&self) -> Option<End> {
        End::of(self.memory.u32_at(OFFSET_END).load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Shape;
    use crate::segment::Recording;

    #[test]
    fn each_knows_of_the_other() {
        let (tool, file) = Segment::create(Shape::of(2), Recording::default()).unwrap();
        let segment = Segment::open(&file).unwrap();
        let agent = Pulse::open(&file).unwrap();
        tool.beat(-7);
        assert_eq!((agent.beat_ns(), tool.end()), (-7, None));
        segment.abandon().unwrap();
        tool.beat(8);
        agent.end(End::Detached);
        agent.end(End::JvmEnds);
        assert_eq!((agent.beat_ns(), tool.end()), (8, Some(End::Detached)), "the first reason is the reason");
    }
}
