//! How long a test waits for a step: what it takes on a machine that is not busy, and on one that is as much longer as others are in line.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// How often it is looked how busy the machine is.
pub(crate) const LOOK: Duration = Duration::from_millis(500);

/// What is left of [`PATIENCE`]. Of time that passes, only that part is taken from it which a thread gets of the processors just now.
#[derive(Debug)]
pub struct Patience {
    left: Duration,
    looked: Instant,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience::of(PATIENCE)
    }
}

impl Patience {
    /// As long as this, where nobody is in line.
    pub fn of(left: Duration) -> Patience {
        Patience { left, looked: Instant::now() }
    }

    /// Whether any is left.
    pub fn lasts(&mut self) -> bool {
        let now = Instant::now();
        if now - self.looked >= LOOK {
            self.left = self.left.saturating_sub((now - self.looked).mul_f64(share()));
            self.looked = now;
        }
        !self.left.is_zero()
    }

    /// Waits for what a channel brings.
    pub fn receive<T>(&mut self, from: &Receiver<T>) -> Result<T, RecvTimeoutError> {
        while self.lasts() {
            match from.recv_timeout(LOOK) {
                Err(RecvTimeoutError::Timeout) => {}
                other => return other,
            }
        }
        Err(RecvTimeoutError::Timeout)
    }
}

/// Waits until something is so, which nobody tells.
///
/// # Panics
/// If it never is.
pub fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    /// Often enough, and no load.
    const PAUSE: Duration = Duration::from_millis(1);
    let mut patience = Patience::default();
    while !is_so() {
        assert!(patience.lasts(), "{what}: never");
        std::thread::sleep(PAUSE);
    }
}

/// The part of a processor that a thread gets just now, from 0 to 1, as far as the machine's load tells.
pub fn share() -> f64 {
    let processors = std::thread::available_parallelism().map_or(1.0, |processors| processors.get() as f64);
    let load = std::fs::read_to_string("/proc/loadavg").ok().and_then(|text| waiting(&text)).unwrap_or(0.0);
    (processors / load.max(1.0)).min(1.0)
}

/// How many threads want a processor (proc_loadavg(5)): in the mean of a minute, or just now, whichever is more.
fn waiting(text: &str) -> Option<f64> {
    let mut fields = text.split_whitespace();
    let minute: f64 = fields.next()?.parse().ok()?;
    let (now, _) = fields.nth(2)?.split_once('/')?;
    Some(minute.max(now.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_that_of_the_last_minute_or_that_of_now() {
        assert_eq!(waiting("25.31 18.02 9.88 3/412 20112\n"), Some(25.31));
        assert_eq!(waiting("0.20 0.10 0.05 12/412 20112\n"), Some(12.0));
        assert_eq!(waiting("nonsense"), None);
    }

    #[test]
    fn patience_that_is_used_up_does_not_last() {
        let mut patience = Patience { left: Duration::from_nanos(1), ..Patience::default() };
        while patience.lasts() {}
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        assert_eq!(patience.receive(&receiver), Err(RecvTimeoutError::Timeout));
        drop(sender);
        assert_eq!(Patience::default().receive(&receiver), Err(RecvTimeoutError::Disconnected));
    }
}
