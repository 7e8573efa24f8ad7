//! What `malloc` keeps of what was freed.
//!
//! HotSpot takes megabytes for a moment where it changes classes and walks stacks, each thread in an arena of its own, and glibc gives little of it back
//! to the system by itself: a JVM that was profiled would stay larger, by more with each profile.

#[cfg(target_env = "gnu")]
use std::sync::atomic::{AtomicU32, Ordering};

/// Of more than this, in bytes, that is free before a session, most is the program's own, and giving it back would hold its threads up.
#[cfg(target_env = "gnu")]
const LARGE: u32 = 256 << 20;

/// What was free when it was given back last: `malloc` still has it among what is free, and it costs no memory.
#[cfg(target_env = "gnu")]
static GIVEN_BACK: AtomicU32 = AtomicU32::new(0);

/// What was free when a session began.
#[derive(Debug)]
pub struct FreeBefore {
    #[cfg(target_env = "gnu")]
    bytes: u32,
}

impl FreeBefore {
    /// Looks.
    #[cfg(target_env = "gnu")]
    pub fn now() -> FreeBefore {
        FreeBefore { bytes: free_bytes().saturating_sub(GIVEN_BACK.load(Ordering::Relaxed)) }
    }

    /// Gives whole pages back that are free now, unless too much was before.
    #[cfg(target_env = "gnu")]
    pub fn give_back(&self) {
        if self.bytes <= LARGE {
            // SAFETY: nothing that is in use is touched.
            unsafe { libc::malloc_trim(0) };
            GIVEN_BACK.store(free_bytes(), Ordering::Relaxed);
        }
    }

    /// Nothing is known of other allocators.
    #[cfg(not(target_env = "gnu"))]
    pub fn now() -> FreeBefore {
        FreeBefore {}
    }

    /// Others have no such request.
    #[cfg(not(target_env = "gnu"))]
    pub fn give_back(&self) {}
}

/// What `malloc` has that is not in use.
#[cfg(target_env = "gnu")]
fn free_bytes() -> u32 {
    // SAFETY: it reads, under the locks of the arenas. `mallinfo2`, whose numbers are wider, is in no glibc before 2.33.
    unsafe { libc::mallinfo() }.fordblks.cast_unsigned()
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    fn resident_bytes() -> usize {
        const PAGE: usize = 4096;
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        pages.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap() * PAGE
    }

    #[test]
    fn pages_between_what_is_in_use_are_given_back() {
        const PIECES: usize = 16_384;
        const PIECE: usize = 8 << 10;
        let before = FreeBefore::now();
        let mut pieces: Vec<Vec<u8>> = (0..PIECES).map(|_| vec![1; PIECE]).collect();
        // The last ones of each arena's end stay in use.
        pieces.drain(..PIECES - 8);
        let kept = resident_bytes();
        FreeBefore { bytes: LARGE + 1 }.give_back();
        assert!(resident_bytes() + (PIECES * PIECE / 2) > kept);
        before.give_back();
        assert!(resident_bytes() + (PIECES * PIECE / 2) < kept, "{kept} bytes before");
        assert_eq!(pieces.len(), 8);
        // It is free all the same, and the next session's too.
        assert!(free_bytes() as usize > PIECES * PIECE / 2);
        assert!((FreeBefore::now().bytes as usize) < PIECES * PIECE / 2);
    }
}
