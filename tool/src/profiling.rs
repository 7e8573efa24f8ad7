//! One profile from beginning to end: agent in, roots instrumented, events decoded, agent out, result corrected. What
//! happens in between is the live engine's ([`live`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use headwater_protocol::MethodId;
use headwater_protocol::message::{Calibration, HotswapResult};

use crate::budget::Governor;
use crate::callgraph::{PatternIndex, RootMatch};
use crate::clock_source::{ClockChoice, ClockSourceError};
use crate::drain::Drain;
use crate::jvm::Jvm;
use crate::profile::Profile;
use crate::profiling::live::{Attached, Live};
use crate::session::{CompilerTime, Estimate, Gentle, Session, SessionError, SessionEvent, Spent};
use crate::ticker::monotonic_ns;

pub(crate) mod assemble;
mod bare;
mod before;
mod budget;
mod connecting;
mod contention;
pub(crate) mod counters;
pub(crate) mod drift;
mod error;
pub(crate) mod facts;
mod finishing;
mod history;
mod jit;
pub mod live;
mod missing;
mod named;
mod objects;
mod processor_time;
mod reach;
mod recorder;
mod settings;
pub(crate) mod settle;
mod steady;
mod tracks;
mod unmatched;

pub(crate) use bare::Undisturbed;
use before::{Sampling, Taken, TimedBefore, Walking};
pub(crate) use connecting::{Connected, connect_for_events};
pub use connecting::{connect, detach};
pub(crate) use contention::LockWaits;
pub use error::{ProfileError, Sought};
pub(crate) use finishing::{Afterwards, finish};
pub(crate) use history::History;
pub(crate) use missing::too_few;
use processor_time::ProcessorTime;
pub use settings::{BareTiming, Keeping, Settings};
pub(crate) use settings::{agreed, decoding};
pub use unmatched::Unmatched;
use unmatched::not_found;
pub(crate) use unmatched::unmatched;

use jit::Compilers;
pub(crate) use jit::{Compiling, not_compiled};

/// What made a profile end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The time or the number of calls was reached.
    Complete,
    /// The user.
    Interrupted,
    /// The target went away.
    TargetEnded,
    /// Something broke, or somebody else ended the session; a warning of the profile says what.
    Broken,
}

/// A profile, and how it ended.
#[derive(Debug)]
pub struct Outcome {
    /// The result.
    pub profile: Profile,
    /// What ended it.
    pub ending: Ending,
    /// The roots that matched nothing to the end, if others or the end were waited for.
    pub unmatched: Vec<Unmatched>,
}

impl Outcome {
    /// What is wrong if no root matched anything, and so nothing can have been recorded.
    pub fn nothing_matched(&self) -> Option<String> {
        let lines: Vec<String> = self.unmatched.iter().map(ToString::to_string).collect();
        (!lines.is_empty() && lines.len() == self.profile.roots.len()).then(|| lines.join("\n"))
    }
}

/// A root that is instrumented.
#[derive(Clone, Debug)]
pub struct InstrumentedRoot {
    /// As the user gave it.
    pub pattern: String,
    /// What it matches.
    pub found: RootMatch,
    /// How many threads are in it already.
    pub inside: usize,
}

/// What goes on, for a progress line.
#[derive(Clone, Debug)]
pub enum Stage {
    /// The agent is being loaded.
    Attaching,
    /// What is to be known of the target before anything in it is changed.
    Note(String),
    /// The probes are being timed, the classes listed, the roots instrumented.
    Preparing,
    /// What is about to be changed first, and what compilers have had of the processors so far, if that is known and they may want as much again.
    Estimated(Estimate, Option<Duration>),
    /// The roots are instrumented: what each pattern matches.
    RootsInstrumented(Vec<InstrumentedRoot>),
    /// What took time until the roots were instrumented.
    Attached(Vec<Spent>),
    /// Recording begins, for so long; afterwards the roots are timed and sampled without probes, for so long at most.
    Begins {
        /// Of the recording.
        recording: Duration,
        /// Of what comes after it.
        undisturbed: Duration,
    },
    /// Recording; told about once a second.
    Recording {
        /// Root invocations so far.
        root_calls: u64,
        /// Events so far.
        events: u64,
        /// Instrumented methods so far.
        instrumented: usize,
    },
    /// The roots' calls are being timed and sampled without a profile.
    TimingRoots {
        /// How long at most.
        limit: Duration,
    },
    /// What was recorded so far; told as often as [`Settings::live`] says.
    SoFar(Box<Profile>),
    /// The original code is being given back.
    Detaching,
    /// It has been.
    Detached(HotswapResult),
}

/// Told what goes on.
pub type Observer<'a> = &'a (dyn Fn(Stage) + Sync);

/// Attaches to a running JVM and profiles it until one of the ends of `settings`, or until `interrupt` is ready.
pub async fn attach(
    jvm: &Jvm,
    settings: &Settings,
    interrupt: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> Result<Outcome, ProfileError> {
    tokio::pin!(interrupt);
    observer(Stage::Attaching);
    let begun = Instant::now();
    let mut attached = unless(interrupt.as_mut(), connect(jvm, settings)).await?;
    attached.session().spend("attach", begun.elapsed());
    conduct(attached, settings, interrupt, observer, Start::Running).await
}

/// What `beginning` begins, unless `interrupt` is ready before that. What was begun is dropped then, and with it the connection: the
/// agent gives everything back by itself.
pub(crate) async fn unless<T>(
    interrupt: impl Future<Output = ()>,
    beginning: impl Future<Output = Result<T, ProfileError>>,
) -> Result<T, ProfileError> {
    tokio::select! {
        biased;
        // Nothing is begun when it has come already.
        () = interrupt => Err(ProfileError::Interrupted),
        begun = beginning => begun,
    }
}

/// Starts a program with the agent in it and profiles it from its first instruction.
pub async fn run(
    command: &[String],
    settings: &Settings,
    interrupt: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> Result<(Outcome, std::process::ExitStatus), ProfileError> {
    tokio::pin!(interrupt);
    observer(Stage::Attaching);
    let (mut started, listener) = connecting::start(command)?;
    let attached = match unless(interrupt.as_mut(), started.connected(listener, settings)).await {
        Ok(attached) => attached,
        Err(error) => {
            // Without a profile the program is of no use to who asked for one.
            let _ = started.program.kill().await;
            return Err(error);
        }
    };
    let outcome = match conduct(attached, settings, interrupt, observer, Start::Held).await {
        Err(ProfileError::Interrupted) => {
            // Its `main` begins only now, because nobody holds it any more.
            let _ = started.program.kill().await;
            return Err(ProfileError::Interrupted);
        }
        conducted => conducted?,
    };
    // The agent's file stays until now: a script may start further JVMs with the same options, and one that does not
    // find its agent does not start. One that finds it, but no listener, runs on without.
    let status =
        started.program.wait().await.map_err(|error| ProfileError::Spawn { command: command.join(" "), error })?;
    drop(started.directory);
    Ok((outcome, status))
}

/// Said where a profile was to go on when its target ended.
pub(crate) const TARGET_ENDED: &str = "the target ended before the profile did; open methods are counted up to then";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The program runs already.
    Running,
    /// Its `main` waits until it is released.
    Held,
}

/// How long the roots are timed without probes after so long a recording, at most.
fn undisturbed(settings: &Settings, recording: Duration) -> Duration {
    bare::limit(settings.bare, Ending::Complete, recording).unwrap_or_default()
}

/// How long the profile takes in all, at most; nothing, where it ends some other way.
fn announced(settings: &Settings) -> Duration {
    settings.duration.map(|recording| recording + undisturbed(settings, recording)).unwrap_or_default()
}

/// Everything between the handshake and the result.
pub(crate) async fn conduct(
    attached: Attached,
    settings: &Settings,
    interrupt: impl Future<Output = ()>,
    observer: Observer<'_>,
    start: Start,
) -> Result<Outcome, ProfileError> {
    tokio::pin!(interrupt);
    let mut live = unless(interrupt.as_mut(), attached.record(settings.clone(), observer, start)).await?;
    if let Some(recording) = settings.duration {
        observer(Stage::Begins { recording, undisturbed: undisturbed(settings, recording) });
    }
    let mut is_settled = true;
    let recorded = match settled(&mut live, interrupt.as_mut()).await {
        Ok(Some(settled)) => {
            is_settled = settled;
            record(&mut live, interrupt.as_mut(), observer).await
        }
        Ok(None) => Ok(Ending::Interrupted),
        Err(error) => Err(error),
    };
    // What ended the recording does not come twice.
    let is_over = matches!(recorded, Ok(Ending::Interrupted));
    let enough = async move { if is_over { std::future::pending().await } else { interrupt.await } };
    // The end of a program is what ends its profile, unless something else was to.
    let ends_with_program = start == Start::Held && settings.duration.is_none() && settings.calls.is_none();
    let mut outcome = live.finish(recorded, enough, observer).await;
    if !is_settled {
        outcome.profile.warnings.insert(0, settle::UNSETTLED.to_owned());
    }
    if outcome.ending == Ending::TargetEnded && ends_with_program {
        outcome.ending = Ending::Complete;
        outcome.profile.warnings.retain(|warning| warning != TARGET_ENDED);
    }
    Ok(outcome)
}

/// Whether code is settled, where it has to be before anything is timed; `None` if it was interrupted.
async fn settled(live: &mut Live, interrupt: impl Future<Output = ()>) -> Result<Option<bool>, SessionError> {
    let Settings { subgraph, calls, await_roots, .. } = live.settings();
    // So many calls are wanted, or the first ones.
    if !subgraph.only_roots || calls.is_some() || (*await_roots && live.instrumented() == 0) {
        return Ok(Some(true));
    }
    settle::settle(live, interrupt).await
}

/// What is known when recording begins.
pub(crate) struct Prepared {
    pub(crate) calibration: Calibration,
    /// Of the program as it was before anything in it was changed.
    pub(crate) before: Option<Taken>,
}

pub(crate) async fn prepare(
    session: &mut Session,
    settings: &Settings,
    (drain, pid): (&Drain, u32),
    observer: Observer<'_>,
    start: Start,
    mut sampling: Option<Sampling>,
) -> Result<Prepared, ProfileError> {
    let mut wanted = ProcessorTime::of_all(pid);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let compilers = Compilers::of(pid);
    let (compiling, compilers) = (compilers.so_far(), compilers.of_hot_code());
    session.count(settings.counting).await?; // First: what probes tell besides has its cost.
    let calibration = session.calibrate().await?;
    log::debug!("{calibration:?}");
    if settings.clock_source == ClockChoice::Tsc && !session.uses_tsc() {
        return Err(ClockSourceError::Linker.into());
    }
    session.omit().await?;
    session.list_classes(settings.reveal).await?;
    // What is sampled so early keeps its compiled code, but for what is changed.
    let keeps_code = sampling.is_some();
    let mut walking = None;
    if sampling.is_none() && Sampling::is_wanted(settings, start) {
        sampling = Sampling::begin_again(pid, session.graph());
        walking = Some(Walking::begin(session).await?);
    }
    if let Some(had) = compiling {
        let (threads, over) = wanted.so_far();
        session.limit_code(&CompilerTime { number: compilers, had, threads, over });
    }
    let announce = |estimate: Estimate| {
        let is_limited = keeps_code && estimate.at_once.is_some();
        observer(Stage::Estimated(estimate, compiling.filter(|_| !is_limited)));
    };
    let mut first = session.select_roots(announce).await?;
    let walked = match walking {
        Some(walking) => Some(walking.end(session).await?),
        None => None,
    };
    sampling.iter_mut().for_each(Sampling::changing);
    let timed = match &sampling {
        // Who has asked for an undisturbed phase gets times from it.
        Some(sampling)
            if settings.bare == BareTiming::Auto && sampling.may_be_enough(session.graph().has_run_below_roots()) =>
        {
            before::time_roots(session, drain, pid, &first, settings.control).await?
        }
        _ => TimedBefore::default(),
    };
    if let Some(sampling) = &sampling {
        let lacking = sampling.lacking(timed.settled.as_ref());
        log::debug!("sampled for {lacking:.1?} more");
        session.serve_until(tokio::time::sleep(lacking)).await?;
    }
    let long = timed.long();
    let mut before = match sampling {
        Some(sampling) => Some(sampling.end(timed.settled, timed.were_alone, walked)),
        None => walked.map(Taken::from),
    };
    // Without limits nothing has to be among the first.
    if let Some(before) = before.as_mut().filter(|_| settings.gentle(start) == Gentle::On)
        && let Some(samples) = before.soon(session).await?
    {
        first.extend(session.select_sampled(samples).await?);
        first.sort_unstable();
        first.dedup();
    }
    if let Some(limit) = settings.budget.limit(settings.gentle(start), settings.counting) {
        let probes = assemble::probes(settings.clock, session.uses_tsc(), calibration);
        let (scheduled, over) = wanted.so_far();
        let governor = Governor::new(limit, probes, timed.roughly);
        let governor = governor.with_processors(processors).with_scheduled(scheduled, over);
        session.keep_to(governor, drain.tallies());
    }
    session.instrument(first, long).await?;
    let matches = session.graph().root_matches();
    // Of a class that is left alone nothing is worth waiting for.
    let is_awaited =
        |root: usize| settings.await_roots && session.graph().looping(&settings.subgraph.roots[root]).is_none();
    if start == Start::Running
        && let Some(missing) = (0..matches.len()).find(|root| matches[*root].methods == 0 && !is_awaited(*root))
    {
        return Err(not_found(session, settings, PatternIndex(missing), matches[missing]));
    }
    // So many whole calls are wanted: one that began before is none.
    let open = match (start, settings.calls) {
        (Start::Running, None) => session.find_open_calls().await?,
        _ => Vec::new(),
    };
    if !open.is_empty() {
        drain.open(open.clone(), monotonic_ns()).await;
        session.follow_open_calls(&open, drain.returns()).await?;
        drain.followed().await;
    }
    let instrumented = |(index, (pattern, found)): (usize, (String, &RootMatch))| {
        let methods: Vec<MethodId> = session.graph().roots_of(PatternIndex(index)).map(|method| method.id).collect();
        let inside = open.iter().filter(|open| open.calls.iter().any(|call| methods.contains(call))).count();
        InstrumentedRoot { pattern, found: *found, inside }
    };
    let instrumented = settings.root_names().zip(&matches).enumerate().map(instrumented).collect();
    if start == Start::Held {
        session.release().await?;
    }
    if long.is_some() && settings.calls.is_none() {
        // Calls that began while what is below them was instrumented, and were slow for it, are none of the profile's.
        drain.clear(monotonic_ns()).await;
        session.cleared();
    }
    log::info!("{} methods have probes, {} calls were open: it records", session.graph().instrumented(), open.len());
    observer(Stage::Attached(session.spent().to_vec()));
    // Last: who reads it may rely on what is recorded.
    observer(Stage::RootsInstrumented(instrumented));
    Ok(Prepared { calibration, before })
}

async fn record(
    live: &mut Live,
    interrupt: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> Result<Ending, SessionError> {
    let duration = live.settings().duration;
    let end = duration.map(|duration| tokio::time::Instant::now() + duration);
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let period = live.settings().live;
    let mut so_far = tokio::time::interval(period.unwrap_or(Duration::from_secs(1)));
    so_far.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    so_far.reset();
    let progress = Arc::clone(live.progress());
    tokio::pin!(interrupt);
    loop {
        let next = tokio::select! {
            event = live.session().next_event() => Next::SessionEvent(event?),
            () = &mut interrupt => return Ok(Ending::Interrupted),
            () = progress.enough() => return Ok(Ending::Complete),
            () = tokio::time::sleep_until(end.unwrap_or_else(tokio::time::Instant::now)), if end.is_some() => {
                return Ok(Ending::Complete);
            }
            _ = second.tick() => Next::Progress,
            _ = so_far.tick(), if period.is_some() => Next::SoFar,
        };
        match next {
            Next::SessionEvent(event) => live.session().serve(event).await?,
            Next::Progress => observer(Stage::Recording {
                root_calls: progress.roots_entered(),
                events: progress.events(),
                instrumented: live.instrumented(),
            }),
            Next::SoFar => observer(Stage::SoFar(Box::new(live.profile().await?))),
        }
    }
}

/// What recording is to do next.
enum Next {
    SessionEvent(SessionEvent),
    Progress,
    SoFar,
}
