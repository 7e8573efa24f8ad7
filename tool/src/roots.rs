//! Which method to name: candidates for a root, of a JVM about which nothing is known.
//!
//! All threads are sampled for some seconds ([`sampling`](crate::sampling)), which says where they run, wait and allocate. Of what holds much of
//! that, some methods are timed, each call as a whole ([`profiling`](crate::profiling), as `region` does): that says which are entered again
//! and again, and how long a call takes.
//!
//! Why so, and what it finds: docs/decisions/roots.md.

use std::time::Duration;

use headwater_jfr::Lines;
use tokio::sync::Notify;

use crate::jvm::Jvm;
use crate::pattern::MethodPattern;
use crate::profile::{Profile, Target};
use crate::profiling::settle::UNSETTLED;
use crate::profiling::{self, Observer, ProfileError, Settings, Stage};
use crate::report::units::plural;
use crate::sampling::{self, Classes, SampleError, SampleOptions, Waits};
use crate::session::SessionError;
use crate::whole_jvm::Recorder;

pub mod choice;
pub(crate) mod choosing;
pub mod cost;
pub mod held;
mod names;
mod nothing;
mod seen;
pub mod show;
pub mod timed;
mod tried;

use choice::{Candidate, candidates};
use cost::Looked;
use held::{By, Held};
use names::Names;
use seen::Seen;
use timed::{is_enough, timed};

/// How often threads are sampled.
const EVERY: Duration = Duration::from_millis(10);
/// So many methods are timed; each is in a class that is hotswapped.
const MOST_TIMED: usize = 16;
/// They are timed for so many times as long at most, until one that holds much has been entered again and again.
const PATIENCE: u32 = 5;
/// It is looked at no more often whether that is so.
const SHORTEST: Duration = Duration::from_millis(100);
/// With fewer samples shares say little.
const FEW_SAMPLES: u64 = 50;

/// How long is looked.
#[derive(Clone, Copy, Debug)]
pub struct Looking {
    /// All threads are sampled for so long.
    pub sampling: Duration,
    /// Then single methods are timed for so long, or some times as long, where calls are long.
    pub timing: Duration,
    /// What candidates hold much of.
    pub by: By,
    /// So many of the candidates are profiled for a second, to know what that costs.
    pub tried: usize,
    /// Whether the flight recorder says where they are.
    pub recorder: Recorder,
}

/// Which methods could be roots.
#[derive(Clone, Debug)]
pub struct Found {
    /// Of which JVM.
    pub target: Target,
    /// How long was to be looked, and for what.
    pub looking: Looking,
    /// For so long methods were timed.
    pub timed: Duration,
    /// What the process took of the processors meanwhile.
    pub cpu_ns: u64,
    /// What was seen in Java code.
    pub whole: Held,
    /// Whether anything is known of allocations.
    pub has_allocations: bool,
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
    #[error("no method outside the JDK was seen at work in {seconds:.0} s: {why}")]
    Nothing {
        /// For so long.
        seconds: f64,
        /// Why, and what to do.
        why: String,
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
    let Looking { sampling: duration, recorder, by, .. } = looking;
    let wanted = SampleOptions {
        duration,
        every: EVERY,
        lines: Lines::Unknown,
        classes: Classes::Together,
        recorder,
        waits: Waits::On,
        live: None,
    };
    let sampled = sampling::take(jvm.clone(), wanted, |_| {}, &mut interrupt).await?;
    if sampled.target_ended {
        return Err(ProfileError::from(SessionError::TargetEnded).into());
    }
    let seconds = sampled.profile.duration.as_secs_f64();
    let seen = Seen::of(&sampled.profile, by);
    let names = Names::of(&jvm.main);
    let chosen = seen.to_time(&names, MOST_TIMED);
    if chosen.is_empty() || nothing::is_still(&seen, seconds) {
        return Err(RootsError::Nothing { seconds, why: nothing::why(&seen, by, seconds) });
    }
    let profile = time(jvm, (&seen, &chosen), looking.timing, &mut interrupt, observer).await?;
    let calls = timed(&seen, &chosen, &profile);
    let looked = Looked {
        pair_ns: profile.clock.inner_ns + profile.clock.outer_ns,
        seconds,
        is_compiled: !profile.warnings.iter().any(|warning| warning == UNSETTLED),
        processors: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let mut candidates = candidates(&seen, &names, &calls, looked);
    let (timed, mut warnings) = (profile.duration, profile.warnings);
    for candidate in candidates.iter_mut().take(looking.tried) {
        match tried::cost(jvm, candidate, &mut interrupt, observer).await {
            Ok(Some(cost)) => candidate.cost = Ok(cost),
            Ok(None) => {}
            // What is known so far is told all the same.
            Err(error) => {
                warnings.push(format!("costs are estimates, as a profile could not be tried: {error}"));
                break;
            }
        }
    }
    if nothing::is_idle(&seen, seconds) {
        warnings.push(format!("hardly anything ran: {}", nothing::why(&seen, by, seconds)));
    } else if seen.whole.samples < FEW_SAMPLES && by != By::Alloc {
        let samples = plural(seen.whole.samples, "sample", "samples");
        warnings.push(format!("shares are of {samples} of running code: look for longer with -d"));
    }
    let Seen { process_ns, whole, has_allocations, .. } = seen;
    let target = Target { pid: jvm.pid, ..profile.target };
    Ok(Found { target, looking, timed, cpu_ns: process_ns, whole, has_allocations, candidates, warnings })
}

/// Times the calls of methods until there are enough of them.
async fn time(
    jvm: &Jvm,
    (seen, chosen): (&Seen, &[usize]),
    timing: Duration,
    interrupt: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> Result<Profile, ProfileError> {
    let patterns: Vec<MethodPattern> =
        chosen.iter().filter_map(|method| seen.methods[*method].pattern().parse().ok()).collect();
    let lines = vec![None; patterns.len()];
    let settings = Settings {
        duration: Some(timing * PATIENCE),
        live: Some(timing.max(SHORTEST)),
        // A class may be gone meanwhile, or hidden.
        await_roots: true,
        ..Settings::of_regions(patterns, lines)
    };
    let enough = Notify::new();
    let observe = |stage: Stage| match stage {
        Stage::SoFar(profile) if is_enough(seen, chosen, &profile) => enough.notify_one(),
        Stage::SoFar(_) => {}
        other => observer(other),
    };
    let over = async {
        tokio::select! {
            () = interrupt => {}
            () = enough.notified() => {}
        }
    };
    Ok(profiling::attach(jvm, &settings, over, &observe).await?.profile)
}
