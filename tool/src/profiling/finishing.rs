//! The end of a profile: what is left is read, the roots are timed, and the target has its original code again.

use std::sync::Arc;
use std::time::Duration;

use headwater_protocol::message::{Calibration, HotswapResult};
use headwater_protocol::segment::Segment;
use headwater_protocol::word::Counting;

use super::bare::{self, RecordingFacts, Undisturbed};
use super::before::{Before, How, Worth, on_tree};
use super::contention::{LockWaits, ended};
use super::history::History;
use super::settings::BareTiming;
use super::{Compiling, Ending, Observer, Stage};
use crate::correction::{Names, Placed, coverage};
use crate::decode::Decoder;
use crate::drain::Drain;
use crate::jvm::process::has_program;
use crate::locks::LocksError;
use crate::profile::Contention;
use crate::report::units::count;
use crate::session::{Session, SessionError};
use crate::ticker::{Ticker, monotonic_ns};

/// How recording ended.
pub(crate) struct End {
    pub(crate) ending: Ending,
    pub(crate) decoder: Decoder,
    /// What was seen of the roots without the profile.
    pub(crate) undisturbed: Undisturbed,
    /// What the JIT compilers had of the processors while it went on.
    pub(crate) compiling: Duration,
    /// Waits for locks, if they were recorded.
    pub(crate) waits: Option<Result<Contention, LocksError>>,
    /// What the probes cost now, if they could be timed once more.
    pub(crate) calibration: Option<Calibration>,
    /// What they cost where bytes are counted, if these were switched on meanwhile; where they are not, if they were switched off.
    pub(crate) otherwise: Option<Calibration>,
    pub(crate) warning: Option<String>,
}

/// How the roots are timed after a profile.
pub(crate) struct Afterwards<'a, F> {
    pub(crate) timing: BareTiming,
    /// What was sampled before the profile.
    pub(super) before: Option<Before>,
    /// How long was recorded.
    pub(crate) duration: Duration,
    /// How many of the roots' calls were wanted.
    pub(crate) calls: Option<u64>,
    /// What the JIT compilers had meanwhile.
    pub(crate) compiling: Compiling,
    /// What a probe pair was found to cost, in ns.
    pub(crate) pair_ns: f64,
    /// The coarse clock, if there is one.
    pub(crate) ticker: Option<Ticker>,
    pub(crate) waits: Option<LockWaits>,
    /// What was counted beside calls.
    pub(crate) history: &'a History,
    /// Ready when somebody waits for the end.
    pub(crate) enough: F,
}

/// One in so many samples from after the profile is to count beside those that were seen before it: altogether as much as they tell of. However many there are, they are of
/// code that was compiled anew: of Clojure's `compare`, which has 16 to 22 %, 1,641 from after a profile had 1.7.
fn beside(before: &Before, undisturbed: &Undisturbed, session: &Session, decoder: &Decoder) -> usize {
    let Some(Ok(samples)) = &undisturbed.samples else { return 1 };
    let told = |placed: &Placed, names: &Names<'_>| {
        (placed.inside, coverage(placed, names, &undisturbed.wanted, undisturbed.wanted_over))
    };
    let (after, covered) = on_tree(session, decoder, samples, undisturbed.counted, told);
    log::debug!("samples after: {after} below roots, of {:.0} % of what threads ran", 100.0 * covered);
    let before = on_tree(session, decoder, &before.samples, before.taken, |placed, _| placed.inside);
    (after as f64 / (covered * before as f64).max(1.0)).ceil() as usize
}

/// Stops recording, reads what is left, times the probes again, times and samples the roots without a profile, and detaches.
pub(crate) async fn finish(
    session: &mut Session,
    segment: &Arc<Segment>,
    drain: Drain,
    recorded: Result<Ending, SessionError>,
    Afterwards { timing, before, duration, calls, mut compiling, pair_ns, ticker, waits, history, enough }: Afterwards<
        '_,
        impl Future<Output = ()>,
    >,
    pid: u32,
    observer: Observer<'_>,
) -> End {
    log::info!("recorded for {duration:.1?}: {recorded:?}");
    let is_gone = recorded.as_ref().is_err_and(SessionError::is_final);
    let stopped = if is_gone { None } else { session.stop().await.ok() };
    let compiled = compiling.so_far();
    let waits = ended(session, waits, is_gone).await;
    let mut decoder = drain.finish();
    log::info!("all events are read");
    decoder.finish(stopped.unwrap_or_else(monotonic_ns));
    let mut undisturbed = Undisturbed::default();
    let (mut calibration, mut otherwise) = (None, None);
    let mut failed = None;
    if stopped.is_some() {
        if let Err(error) = session.acquit_idle().await {
            failed = lost(error);
        }
        match calibrated(session, history).await {
            Ok((again, other)) => (calibration, otherwise) = (Some(again), other),
            // What was timed before recording has to do.
            Err(error) => failed = lost(error),
        }
    }
    // It interrupts whoever has the processor ten thousand times a second, which nobody would do to the bare calls.
    drop(ticker);
    let before = before.map(|before| before.better(session, &decoder));
    let worth = before.as_ref().map_or(Worth::Nothing, |before| before.worth(session, &decoder));
    let is_sampled = worth == Worth::Enough;
    // Where no sample is from before, code that is compiled anew was sampled: it is timed then, too.
    let mut roots = before
        .as_ref()
        .filter(|_| worth != Worth::Nothing && timing == BareTiming::Auto)
        .and_then(|before| before.times_of_roots(&decoder));
    if let Some(roots) = roots.take_if(|_| is_sampled) {
        undisturbed.timed_before(roots);
    } else if let (Ok(ending), Some(_), None) = (&recorded, stopped, &failed) {
        let facts = RecordingFacts { ending: *ending, duration, pair_ns, is_sampled };
        if let Some(plan) = bare::plan(timing, facts, &decoder, segment) {
            let compilers = compiling.into_compilers();
            let (seen, error) = bare::measure(session, segment, pid, plan, compilers, enough, observer).await;
            undisturbed = seen;
            failed = error.and_then(lost);
        }
    }
    if let Some(roots) = roots {
        undisturbed.timed_before(roots);
    }
    match (before, worth) {
        (Some(before), Worth::Enough) => undisturbed.sampled_before(before),
        (Some(before), Worth::Some) => match before.how {
            How::Recorded => undisturbed.sampled_before_too(before, None),
            How::Walked { .. } => {
                let every = beside(&before, &undisturbed, session, &decoder);
                undisturbed.sampled_before_too(before, Some(every));
            }
        },
        _ => {}
    }
    let detached = match failed {
        _ if is_gone => None,
        // The profile itself is complete.
        Some(error) => Some(Err(error)),
        None => {
            observer(Stage::Detaching);
            Some(session.detach().await)
        }
    };
    // Who wanted so many calls, and has them, does not mind that the target has ended.
    let with_target = if calls.is_some_and(|calls| decoder.roots_completed() >= calls) {
        Ending::Complete
    } else {
        Ending::TargetEnded
    };
    let (ending, warning) = match (recorded, detached) {
        (Ok(ending), Some(Ok(result))) => {
            let warning = not_restored(&result);
            observer(Stage::Detached(result));
            (ending, warning)
        }
        (Err(error), Some(Ok(_))) => (Ending::Broken, Some(format!("the profile ended early: {error}"))),
        (Err(SessionError::TargetEnded), _) | (_, Some(Err(SessionError::TargetEnded))) => (with_target, None),
        (Err(error @ SessionError::GivenUp), _) | (_, Some(Err(error @ SessionError::GivenUp))) => {
            (Ending::Broken, Some(format!("the profile ended early: {error}")))
        }
        // Killed, it had no time to say so.
        (Err(_), _) | (_, Some(Err(_))) if !has_program(pid) => (with_target, None),
        (Err(SessionError::Disconnected), _) | (_, Some(Err(SessionError::Disconnected))) => {
            let reason =
                "the session was ended by somebody else (headwater detach); the target has its original code back";
            (Ending::Broken, Some(reason.to_owned()))
        }
        (_, Some(Err(error))) => (Ending::Broken, Some(format!("detaching failed: {error}"))),
        (_, None) => (Ending::Broken, None),
    };
    End { ending, decoder, undisturbed, compiling: compiled, waits, calibration, otherwise, warning }
}

/// Times the probes as they were at first; and as they were otherwise, if it has been switched what they tell of at each event.
async fn calibrated(
    session: &mut Session,
    history: &History,
) -> Result<(Calibration, Option<Calibration>), SessionError> {
    let at_first = history.at_first().at_events();
    let with = |what: Counting| {
        let others = history.now().without(history.now().at_events());
        others.and(what).and(Counting { objects: history.ever().objects, ..Counting::default() })
    };
    let ever = history.ever().at_events();
    if ever == at_first && history.always().at_events() == at_first {
        if with(at_first) != history.now() {
            session.count(with(at_first)).await?;
        }
        return Ok((session.calibrate().await?, None));
    }
    session.count(with(at_first)).await?;
    let calibration = session.calibrate().await?;
    session.count(with(if ever == at_first { Counting::default() } else { ever })).await?;
    Ok((calibration, Some(session.calibrate().await?)))
}

/// An error after which there is nobody to be asked for anything.
fn lost(error: SessionError) -> Option<SessionError> {
    error.is_final().then_some(error)
}

fn not_restored(detached: &HotswapResult) -> Option<String> {
    let (_, reason) = detached.refused.first()?;
    Some(format!(
        "classes could not be given their original code back ({}): {reason}. Their probes are idle from now on",
        count(detached.refused.len() as u64)
    ))
}
