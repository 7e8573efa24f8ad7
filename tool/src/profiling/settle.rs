//! Before anything is timed in a JVM that has just been hotswapped: waiting until its code is compiled again.
//!
//! Up to JDK 22 the first redefinition in a JVM to which one has attached discards all compiled code; what calls take until it is compiled again
//! may be ten times what they take otherwise. A profile's calls are timed after it, when that is over ([`bare`](super::bare)). Regions are timed at once, so
//! they wait for it here, and what was timed before does not count.

use std::time::Duration;

use tokio::time::Instant;

use crate::profiling::live::Live;
use crate::session::SessionError;

/// How often it is looked at.
const STEP: Duration = Duration::from_millis(100);
/// For so long the compilers must have had little to do.
const QUIET: Duration = Duration::from_millis(500);
/// With less than this of one processor they have little to do.
const LITTLE: f64 = 0.1;
/// It takes at least this long until hot code is compiled.
const SHORTEST: Duration = Duration::from_secs(1);
/// Nobody waits for longer, nor for longer than times are to be recorded, if that is more than this.
const LONGEST: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(30));
/// Fewer calls are not given up: there may be no others.
const FEW: u64 = 3;

/// What is told where code was not settled.
pub(crate) const UNSETTLED: &str = "the JIT compilers were at work on the program when timing began: the times are those of code that is not compiled yet. Time it once more";

/// Waits until the JVM's code is settled, and forgets what was timed before; whether it is, or `None` if that was interrupted.
pub(super) async fn settle(live: &mut Live, interrupt: impl Future<Output = ()>) -> Result<Option<bool>, SessionError> {
    tokio::pin!(interrupt);
    let begin = Instant::now();
    let longest = live.settings().duration.map_or(LONGEST.1, |duration| duration.clamp(LONGEST.0, LONGEST.1));
    let mut used = vec![(begin, live.compiled())];
    loop {
        let step = async {
            tokio::select! {
                () = tokio::time::sleep(STEP) => false,
                () = &mut interrupt => true,
            }
        };
        if live.serve_until(step).await? {
            return Ok(None);
        }
        let now = Instant::now();
        used.push((now, live.compiled()));
        let passed = now - begin;
        let is_quiet = passed >= SHORTEST && is_quiet(&used);
        if is_quiet || passed >= longest {
            if live.progress().roots_entered() >= FEW {
                live.clear().await?;
            }
            return Ok(Some(is_quiet));
        }
    }
}

/// Whether compilers have had little to do of late: what they had had of the processors at moments, up to now.
fn is_quiet(used: &[(Instant, Duration)]) -> bool {
    let Some(&(now, latest)) = used.last() else { return false };
    let before = used.iter().rev().find(|(at, _)| now - *at >= QUIET);
    before.is_some_and(|&(at, earlier)| latest - earlier <= (now - at).mul_f64(LITTLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_quiet_when_compilers_have_had_little_to_do_for_a_while() {
        let begin = Instant::now();
        let used = |ms: &[u64]| -> Vec<(Instant, Duration)> {
            let at = |(step, used): (usize, &u64)| (begin + STEP * step as u32, Duration::from_millis(*used));
            ms.iter().enumerate().map(at).collect()
        };
        assert!(!is_quiet(&used(&[0, 1, 2, 3])), "for too short a while");
        assert!(!is_quiet(&used(&[0, 100, 200, 210, 215, 220])));
        assert!(is_quiet(&used(&[0, 100, 200, 210, 215, 220, 225, 230])));
        assert!(!is_quiet(&[]));
    }
}
