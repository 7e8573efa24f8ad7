//! Which method to name: candidates for a root, of a JVM about which nothing is known.
//!
//! All threads are sampled for some seconds ([`sampling`](crate::sampling)), which says where CPU time goes. Of what holds much of it, some
//! methods are timed, each call as a whole ([`profiling`](crate::profiling), as `region` does): that says which are entered again
//! and again, and how long a call takes.
//!
//! Why so, and what it finds: docs/decisions/roots.md.

use std::time::Duration;

use headwater_jfr::Lines;
use rustc_hash::FxHashMap;

use crate::jvm::Jvm;
use crate::pattern::MethodPattern;
use crate::profile::{Profile, Target};
use crate::profiling::{self, Observer, ProfileError, Settings};
use crate::sampling::{self, Classes, SampleError, Waits, Wanted};
use crate::whole_jvm::Recorder;

pub mod choice;
mod seen;
pub mod show;

use choice::{Candidate, Timed, candidates};
use seen::Seen;

/// How often threads are sampled.
const EVERY: Duration = Duration::from_millis(10);
/// So many methods are timed; each is in a class that is hotswapped.
const MOST_TIMED: usize = 16;

/// How long is looked.
#[derive(Clone, Copy, Debug)]
pub struct Looking {
    /// All threads are sampled for so long.
    pub sampling: Duration,
    /// Then single methods are timed for so long.
    pub timing: Duration,
    /// Whether the flight recorder says where they are.
    pub recorder: Recorder,
}

/// Which methods could be roots.
#[derive(Clone, Debug)]
pub struct Found {
    /// Of which JVM.
    pub target: Target,
    /// How long was looked.
    pub looking: Looking,
    /// What the process took of the processors meanwhile, and how much of that was seen in Java code.
    pub cpu_ns: [u64; 2],
    /// The best first.
    pub candidates: Vec<Candidate>,
    /// What the reader should know.
    pub warnings: Vec<String>,
}

/// Why nothing was found out.
#[derive(Debug, thiserror::Error)]
pub enum RootsError {
    /// Nothing was sampled.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// Nothing was timed.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The program does nothing.
    #[error(
        "no method outside the JDK was seen running in {seconds:.0} s: the program waits, or works in the JDK alone. `headwater threads` shows \
         what it waits for; look for longer with -d, while it is at work"
    )]
    Nothing {
        /// For so long.
        seconds: f64,
    },
}

impl RootsError {
    /// The exit code of the command line contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            RootsError::Sample(error) => error.exit_code(),
            RootsError::Profile(error) => error.exit_code(),
            RootsError::Nothing { .. } => 1,
        }
    }
}

/// Looks at a JVM; nothing is left in it that a profile does not leave.
pub(crate) async fn find(
    jvm: &Jvm,
    looking: Looking,
    mut interrupt: impl Future<Output = ()> + Unpin,
    observer: Observer<'_>,
) -> Result<Found, RootsError> {
    let Looking { sampling: duration, recorder, .. } = looking;
    let wanted = Wanted {
        duration,
        every: EVERY,
        lines: Lines::Unknown,
        classes: Classes::Together,
        recorder,
        waits: Waits::Off,
        live: None,
    };
    let sampled = sampling::take(jvm.clone(), wanted, |_| {}, &mut interrupt).await?;
    let seen = Seen::of(&sampled.profile);
    let chosen = seen.to_time(MOST_TIMED);
    if chosen.is_empty() {
        return Err(RootsError::Nothing { seconds: looking.sampling.as_secs_f64() });
    }
    let patterns: Vec<MethodPattern> =
        chosen.iter().filter_map(|method| seen.methods[*method].pattern().parse().ok()).collect();
    let lines = vec![None; patterns.len()];
    // A class may be gone meanwhile, or hidden.
    let settings =
        Settings { duration: Some(looking.timing), await_roots: true, ..Settings::of_regions(patterns, lines) };
    let outcome = profiling::attach(jvm, &settings, interrupt, observer).await?;
    let timed = timed(&seen, &chosen, &outcome.profile);
    let warnings = outcome.profile.warnings.clone();
    let together = |a: usize, b: usize| seen.together(a, b);
    let candidates = candidates(&seen.methods, seen.whole_ns, &timed, &together);
    let target = Target { pid: jvm.pid, ..outcome.profile.target };
    Ok(Found { target, looking, cpu_ns: [seen.process_ns, seen.whole_ns], candidates, warnings })
}

/// What the timing says of the methods that were seen.
fn timed(seen: &Seen, chosen: &[usize], profile: &Profile) -> Vec<Timed> {
    let by_name: FxHashMap<&str, usize> =
        chosen.iter().map(|method| (seen.methods[*method].name.machine.as_str(), *method)).collect();
    let seconds = profile.duration.as_secs_f64().max(1e-3);
    let timed = profile.statistics.iter().filter_map(|known| {
        let method = *by_name.get(profile.methods[known.method.0].machine.as_str())?;
        let (calls, per_second) = (known.count, known.count as f64 / seconds);
        Some(Timed { method, calls, per_second, mean_ns: known.mean_ns, p99_ns: known.p99_ns })
    });
    timed.collect()
}
