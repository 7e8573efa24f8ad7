//! The live engine: an attached JVM, and a profile of it while it is being recorded.
//!
//! [`Attached`] is a conversation in which nothing is instrumented yet, [`Live`] one that records. Whatever stands on it (one
//! profile from the command line, the interactive session, a script) has two duties: to keep serving the target
//! ([`Live::serve_until`]), because threads of the target wait for answers, and to end it ([`Live::finish`]).
//!
//! Results are there at any moment ([`Live::profile`]): the draining thread returns a copy of its trees, in which methods
//! that are open have their time up to now, and correction works on the copy while the target is served.

use std::sync::Arc;
use std::time::Duration;

use headwater_protocol::ClassId;
use headwater_protocol::message::{Calibration, MethodInfo, Reveal};
use headwater_protocol::segment::Segment;
use headwater_protocol::word::Counting;

use crate::attach::AttachError;
use crate::callgraph::{CallGraph, Options, Without};
use crate::clock_source::ClockSourceError;
use crate::connection::Connection;
use crate::cpu_share::CpuSampler;
use crate::drain::{Drain, Progress};
use crate::jvm::process::has_program;
use crate::locks::LocksError;
use crate::profile::{ClockMode, Contention, Profile, Target};
use crate::profiling::assemble;
use crate::profiling::before::{Sampling, Taken};
use crate::profiling::facts::Facts;
use crate::profiling::{
    self, Afterwards, BareTiming, Compiling, Ending, History, LockWaits, Observer, Outcome, Prepared, ProfileError,
    Settings, Stage, Start, Undisturbed,
};
use crate::profiling::{contention, drift};
use crate::pulse::Pulse;
use crate::session::{Gentle, Session, SessionError};
use crate::ticker::{Ticker, monotonic_ns};

/// Names the mechanisms that are left out, with commas between them. For developers.
const WITHOUT: &str = "HEADWATER_WITHOUT";

/// A conversation with an agent; nothing is instrumented and nothing recorded.
#[derive(Debug)]
pub struct Attached {
    session: Session,
    segment: Arc<Segment>,
    target: Target,
    /// What is to be said before anything is changed.
    notes: Vec<String>,
    /// Waits for locks, if the recorder had to begin before the agent.
    waits: Option<LockWaits>,
    /// The agent gives up a tool without it.
    _pulse: Pulse,
}

impl Attached {
    pub(crate) fn new(
        connection: Connection,
        (segment, pulse): (Arc<Segment>, Pulse),
        target: Target,
        (notes, waits): (Vec<String>, Option<LockWaits>),
    ) -> Attached {
        let session = Session::new(connection, Arc::clone(&segment), CallGraph::new(Options::default()));
        Attached { session, segment, target, notes, waits, _pulse: pulse }
    }

    /// The JVM.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Learns of all loaded classes, and from then on of every class that is loaded.
    pub async fn list_classes(&mut self) -> Result<(), SessionError> {
        self.session.list_classes(Reveal::Blocking).await
    }

    /// Where the target writes its events.
    pub fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// The conversation, to ask and to serve.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Instruments the roots and begins to record. The agent was welcomed with the same clock, controls and buffer as
    /// `settings` have. When this fails, the target has its original code back.
    pub(crate) async fn record(
        mut self,
        settings: Settings,
        observer: Observer<'_>,
        start: Start,
    ) -> Result<Live, ProfileError> {
        std::mem::take(&mut self.notes).into_iter().for_each(|note| observer(Stage::Note(note)));
        observer(Stage::Preparing);
        // A program that was started for the profile's sake may be held up by it.
        let gentle = settings.gentle(start);
        let watch_idle = gentle == Gentle::On;
        let without = std::env::var(WITHOUT).map_or(Ok(Without::default()), |names| names.parse())?;
        if !without.is_nothing() {
            observer(Stage::Note(format!("left out: {without}")));
        }
        let options = Options { look_ahead: true, watch_idle, without, ..settings.subgraph.clone() };
        self.session.graph_mut().set_options(options);
        self.session.be(gentle, profiling::announced(&settings));
        let period = settings.clock.period();
        let ticker = period.map(|period| Ticker::start(Arc::clone(&self.segment), period));
        let ticker = ticker.transpose().map_err(ProfileError::Thread)?;
        let decoding = profiling::decoding(&settings);
        let sampler = (settings.clock != ClockMode::Cpu).then(|| {
            let (sampler, threads) = CpuSampler::new(self.session.peer_pid().unwrap_or(self.target.pid));
            self.session.tell_threads_to(threads);
            sampler
        });
        let waits = self.waits.take();
        let drain = Drain::start(Arc::clone(&self.segment), decoding, sampler).map_err(ProfileError::Thread)?;
        let pid = self.session.peer_pid().unwrap_or(self.target.pid);
        let sampling = Sampling::is_wanted(&settings, start).then(|| Sampling::begin(pid, &self.target.jdk)).flatten();
        let prepared = profiling::prepare(&mut self.session, &settings, (&drain, pid), observer, start, sampling).await;
        match prepared {
            Ok(Prepared { calibration, before }) => {
                self.session.begin_time(settings.duration);
                ticker.iter().for_each(Ticker::begin);
                let compiling = Compiling::begun(self.session.peer_pid().unwrap_or(self.target.pid));
                let mut live = Live {
                    start,
                    history: History::begun(settings.counting),
                    session: self.session,
                    segment: self.segment,
                    progress: drain.progress(),
                    drain,
                    ticker,
                    settings,
                    target: self.target,
                    before,
                    calibration,
                    compiling,
                    waits,
                    former_waits: Vec::new(),
                    _pulse: self._pulse,
                };
                live.waits.iter_mut().for_each(LockWaits::begin);
                if live.settings.counting.locks && live.waits.is_none() {
                    live.begin_waits().await;
                }
                Ok(live)
            }
            Err(error) => {
                // The agent leaves by itself when the connection closes; asking makes sure that it has, and an error changes
                // nothing about the one to be reported.
                let _ = self.session.detach().await;
                drain.finish();
                Err(match error {
                    ProfileError::Session(_) | ProfileError::Connection(_) if !has_program(self.target.pid) => {
                        SessionError::TargetEnded.into()
                    }
                    other => other,
                })
            }
        }
    }

    /// Ends the conversation; there is nothing to be given back.
    pub async fn detach(mut self) -> Result<(), SessionError> {
        self.session.detach().await.map(|_| ())
    }
}

/// A profile that is being recorded.
#[derive(Debug)]
pub struct Live {
    start: Start,
    session: Session,
    segment: Arc<Segment>,
    drain: Drain,
    progress: Arc<Progress>,
    ticker: Option<Ticker>,
    settings: Settings,
    target: Target,
    /// What was sampled before anything was changed.
    before: Option<Taken>,
    calibration: Calibration,
    /// What was counted beside calls, and when.
    history: History,
    compiling: Compiling,
    /// Waits for locks, where they are counted.
    waits: Option<LockWaits>,
    /// Those that were recorded until locks were switched off.
    former_waits: Vec<Result<Contention, LocksError>>,
    _pulse: Pulse,
}

/// What came of switching what is counted.
#[derive(Debug)]
pub(crate) enum Switched {
    /// It is so from now on.
    Now,
    /// It is not: somebody wanted an end before.
    Interrupted,
    /// It is not, because that cannot be: a sentence.
    Refused(String),
}

impl Live {
    /// The JVM.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What is profiled.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What the draining thread tells.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// How many methods are instrumented.
    pub fn instrumented(&self) -> usize {
        self.session.graph().instrumented()
    }

    /// How long was recorded.
    pub fn recorded(&self) -> Duration {
        self.session.recorded().elapsed()
    }

    /// Whether recording is interrupted.
    pub fn is_paused(&self) -> bool {
        !self.session.recorded().is_running()
    }

    /// The conversation, to ask and to serve.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Serves the target until something else is ready.
    pub async fn serve_until<T>(&mut self, until: impl Future<Output = T>) -> Result<T, SessionError> {
        self.session.serve_until(until).await
    }

    /// The profile up to now; recording goes on. Methods that are open have their time up to now.
    pub async fn profile(&mut self) -> Result<Profile, SessionError> {
        let paused = self.is_paused();
        let (mut decoder, now_ns) = loop {
            let (now_ns, dropped) = (monotonic_ns(), self.dropped());
            let copy = self.drain.copy();
            let decoder = self.serve_until(copy).await?;
            // A method that was dropped meanwhile may have calls that this copy has not.
            if dropped == self.dropped() {
                break (decoder, now_ns);
            }
        };
        let facts = Facts::of(&self.session, &self.settings, &self.history, self.step_ns());
        let (target, mode, calibration) = (self.target.clone(), self.settings.clock, self.calibration);
        let duration = self.recorded();
        let assembled = tokio::task::spawn_blocking(move || {
            if !paused {
                decoder.finish(now_ns);
            }
            assemble::profile(facts, &mut decoder, target, mode, calibration, &Undisturbed::default(), duration)
        });
        Ok(self.serve_until(assembled).await?.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())))
    }

    fn step_ns(&self) -> Option<f64> {
        self.ticker.as_ref().and_then(Ticker::step_ns)
    }

    /// How many methods have been dropped.
    fn dropped(&self) -> usize {
        self.session.governor().map_or(0, |governor| governor.all_dropped().len())
    }

    /// Forgets what was recorded, and goes on.
    pub async fn clear(&mut self) -> Result<(), SessionError> {
        let cleared = self.drain.clear(monotonic_ns());
        self.serve_until(cleared).await?;
        self.session.cleared();
        self.history.clear();
        self.compiling.clear();
        self.waits.iter_mut().for_each(LockWaits::clear);
        self.former_waits.clear();
        self.ticker.iter().for_each(Ticker::begin);
        Ok(())
    }

    /// What the target's JIT compilers have had of the processors since recording began.
    pub(crate) fn compiled(&mut self) -> Duration {
        self.compiling.so_far()
    }

    /// Interrupts recording: the instrumented methods stay so, and their probes do next to nothing.
    pub async fn pause(&mut self) -> Result<(), SessionError> {
        if !self.is_paused() {
            let time_ns = self.session.pause().await?;
            let interrupted = self.drain.interrupt(time_ns);
            self.serve_until(interrupted).await?;
            self.compiling.interrupt();
            self.waits.iter_mut().for_each(LockWaits::interrupt);
        }
        Ok(())
    }

    /// Goes on recording, with the next entry of each thread into a root.
    pub async fn resume(&mut self) -> Result<(), SessionError> {
        if self.is_paused() {
            self.session.resume().await?;
            self.compiling.begin();
            self.waits.iter_mut().for_each(LockWaits::begin);
        }
        Ok(())
    }

    /// What is counted beside calls, and when it was.
    pub(crate) fn counted(&self) -> &History {
        &self.history
    }

    /// Counts these beside calls from now on, and nothing else. What code has to have for that it gets before, `announce` is told in how many classes, as
    /// fast as the limits allow.
    pub(crate) async fn count(
        &mut self,
        what: Counting,
        interrupt: impl Future<Output = ()>,
        announce: impl FnOnce(usize),
    ) -> Result<Switched, SessionError> {
        if what.gc && self.settings.clock == ClockMode::Cpu {
            return Ok(Switched::Refused(ClockSourceError::NoCommonTime.to_string()));
        }
        // What ends waits for nothing.
        self.switch(what.among(self.history.now())).await?;
        let classes = self.session.lacks_probes(what);
        if classes > 0 {
            announce(classes);
            if !self.session.probe_those(interrupt).await? {
                return Ok(Switched::Interrupted);
            }
        }
        if what.locks && self.waits.is_none() {
            let mut waits = self.session.serve_until(LockWaits::begun(self.target.pid, self.settings.duration)).await?;
            if let Some(why) = waits.failed() {
                return Ok(Switched::Refused(why));
            }
            if !self.is_paused() {
                waits.begin();
            }
            self.waits = Some(waits);
        }
        self.switch(what).await?;
        Ok(Switched::Now)
    }

    /// Has waits for locks recorded from now on. A program that was held until now could not be asked for it, and may end while it is.
    async fn begin_waits(&mut self) {
        let pid = self.target.pid;
        match self.session.serve_until(LockWaits::begun(pid, self.settings.duration)).await {
            Ok(mut waits) => {
                waits.begin_late(self.recorded());
                self.waits = Some(waits);
            }
            // Whoever goes on with the conversation finds out.
            Err(_) => self.former_waits.push(Err(AttachError::Gone { pid }.into())),
        }
    }

    async fn switch(&mut self, what: Counting) -> Result<(), SessionError> {
        if what != self.history.now() {
            self.session.recount(what).await?;
            self.history.switch(self.recorded(), self.progress.events(), what);
        }
        let waits = self.waits.take_if(|_| !what.locks);
        self.former_waits.extend(contention::ended(&mut self.session, waits, false).await);
        Ok(())
    }

    /// The methods that classes declare.
    pub async fn methods_of(&mut self, classes: Vec<ClassId>) -> Result<Vec<(ClassId, Vec<MethodInfo>)>, SessionError> {
        self.session.methods_of(classes).await
    }

    /// Ends the recording, for the reason given, times the roots without it, for as long as `enough` is not ready, gives the original
    /// code back, and detaches.
    pub async fn finish(
        mut self,
        recorded: Result<Ending, SessionError>,
        enough: impl Future<Output = ()>,
        observer: Observer<'_>,
    ) -> Outcome {
        let (duration, step_ns) = (self.recorded(), self.step_ns());
        let timing = self.settings.bare;
        let pair_ns = self.calibration.inner_ns + self.calibration.outer_ns;
        let (compiling, ticker, waits) = (self.compiling, self.ticker, self.waits);
        let before = match self.before.take() {
            // It was read long ago.
            Some(taken) => self.session.serve_until(taken.read()).await.ok().flatten(),
            None => None,
        };
        let afterwards = Afterwards {
            timing,
            before,
            duration,
            calls: self.settings.calls,
            compiling,
            pair_ns,
            ticker,
            waits,
            history: &self.history,
            enough,
        };
        let (session, pid) = (&mut self.session, self.target.pid);
        let end = profiling::finish(session, &self.segment, self.drain, recorded, afterwards, pid, observer).await;
        let (calibration, drift) = match end.calibration {
            Some(after) => drift::settled(self.calibration, after),
            None => (self.calibration, None),
        };
        let calibration = match end.otherwise {
            // What is told of at each event makes a pair dearer.
            Some(otherwise) => {
                let at_first = self.history.at_first().at_events();
                let part = self.history.part(end.decoder.events(), |what| what.at_events() != at_first);
                drift::mixed(calibration, otherwise, part)
            }
            None => calibration,
        };
        let facts = Facts::of(&self.session, &self.settings, &self.history, step_ns);
        let unmatched = profiling::unmatched(&self.session, &self.settings);
        // What a program takes that is being started, or has ended, is what it took.
        let undisturbed = match (self.start, end.ending) {
            (Start::Held, _) | (_, Ending::TargetEnded) => end.undisturbed,
            _ => end.undisturbed.unless_compiled(end.compiling, duration),
        };
        let mut decoder = end.decoder;
        let mut profile = assemble::profile(
            facts,
            &mut decoder,
            self.target,
            self.settings.clock,
            calibration,
            &undisturbed,
            duration,
        );
        profile.clock.drift = drift;
        let waits = contention::joined(self.former_waits.into_iter().chain(end.waits));
        waits.into_iter().for_each(|waits| contention::add(&mut profile, waits));
        if end.ending == Ending::TargetEnded {
            profile.warnings.push(profiling::TARGET_ENDED.to_owned());
        }
        // A program that has ended was as fast as it was.
        if timing == BareTiming::Auto && end.ending != Ending::TargetEnded {
            profile.warnings.extend(profiling::not_compiled(end.compiling, &profile));
        }
        profile.warnings.extend(profiling::too_few(self.settings.calls, &profile));
        profile.warnings.extend(end.warning);
        Outcome { profile, ending: end.ending, unmatched }
    }
}
