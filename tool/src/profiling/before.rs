//! Samples of the program before anything in it is changed.
//!
//! While the tool learns what there is to be instrumented, which in a large program takes seconds, the program runs as it always does: in code that is compiled. The
//! JVM's flight recorder says meanwhile where its threads are. After a profile such code comes back only when the compilers have done all of it again.
//!
//! When all is known, the roots' calls are [timed](timing), for one to three seconds, with nothing below them changed, and samples are taken meanwhile, too.
//!
//! Where a profile is ready at once, and nobody was seen below the roots, it has no such samples: nobody waits for the recorder then. Nor is it begun before a profile in a JVM that discards
//! all of its compiled code for that: its event classes are redefined, and up to JDK 22 the first redefinition in a JVM does so. In one whose recorder has been used nothing
//! is lost. On these JDKs the agent [looks](walking) at threads' stacks as well, for two seconds: where the recorder is not begun, or finds less than that.

mod timing;
mod walking;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headwater_jfr::Samples;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub(super) use self::timing::{RootsTimed, TimedBefore, time_roots};
pub(super) use self::walking::Walking;
use super::recorder::{PERIOD, Recorder};
use super::{BareTiming, Settings, Start};
use crate::budget::Governor;
use crate::callgraph::CallGraph;
use crate::cct::Cct;
use crate::clock_source::feature;
use crate::correction::{Names, Placed, grow, looks, placed};
use crate::decode::Decoder;
use crate::session::{Session, SessionError};

/// Where this class is loaded, the recorder has been begun before.
const RECORDER: &str = "jdk/jfr/internal/PlatformRecorder";
/// The first JDK that keeps compiled code when the recorder begins.
const FIRST_JDK: u32 = 23;
/// What is ready sooner has no samples: the recorder takes a while to begin.
const LEAST: Duration = Duration::from_millis(500);
/// While one thread runs below the roots, there are some 500 samples in this time: of a Spring service's methods 300 have one in a hundred wrong by five points and a fifth,
/// 450 one in five hundred. Where calls of the roots were timed it is waited for, for what comes after a profile is other code: of Clojure's `compare`, which had 30 %
/// before one, it had 8.
const SAMPLED: Duration = Duration::from_millis(2_400);
/// Such a part of the time until the roots were changed counts: where all processors are busy, half as much runs below the roots beside a tool that is at work.
const BESIDE_THE_TOOL: f64 = 0.5;
/// In less there are too few samples for times of the roots to be of use.
const LEAST_TIMED: Duration = Duration::from_secs(1);
/// So long it is waited for what was sampled, before that is instrumented first.
const SOON: Duration = Duration::from_secs(1);
/// The roots' own code is compiled again by then, where they were instrumented alone.
const COMPILED: Duration = Duration::from_millis(500);
/// It takes no longer than this to get ready.
const LONGEST: Duration = Duration::from_secs(120);
/// How deep the program is below its roots is not known yet.
const DEPTH: usize = 1024;
/// With so many samples below the roots no others are needed,
const ENOUGH: u64 = 150;
/// if not more than this part of them was in calls that the recording has not seen: then the program does something else now.
const MOST_UNSEEN: f64 = 0.2;
/// and if they say as much as so many would that have nothing to do with each other.
const ENOUGH_APART: f64 = 100.0;
/// With half as many, they say how far samples from after the profile are from them.
const SOME: f64 = 0.5;
/// A recorder that finds less than this part of what looks at stacks do misses some methods more than others.
const LEAST_FOUND: f64 = 0.75;

/// Samples of a program to which nothing had been done.
#[derive(Debug, Default)]
pub(super) struct Before {
    pub(super) samples: Samples,
    /// When they were taken, in ns since 1970.
    pub(super) taken: (i64, i64),
    /// Recordings of others that got them too.
    pub(super) other_recordings: usize,
    /// What calls of the roots took.
    pub(super) roots: Option<RootsTimed>,
    pub(super) how: How,
    /// What was seen by other means.
    pub(super) walked: Option<Box<Before>>,
}

/// Who took samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum How {
    /// The JVM's recorder.
    #[default]
    Recorded,
    /// The agent, by so many looks.
    Walked { looks: u32 },
}

/// What samples from before a profile are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    Nothing,
    /// As much as as many from after it.
    Some,
    /// No others are needed.
    Enough,
}

/// Samples are being taken.
#[derive(Debug)]
pub(crate) struct Sampling {
    begun: Instant,
    /// Since when there are samples.
    from: Arc<OnceLock<SystemTime>>,
    /// Since when the roots' own classes are others.
    changed: Option<SystemTime>,
    end: oneshot::Sender<Span>,
    reading: JoinHandle<Option<Before>>,
}

/// Until when samples count.
#[derive(Clone, Copy, Debug)]
struct Span {
    until: SystemTime,
    /// What is between these two moments does not: the roots' own code was compiled again.
    but: Option<(SystemTime, SystemTime)>,
}

/// Samples that are being read, or none; and what is known of the roots.
#[derive(Debug)]
pub(crate) struct Taken {
    reading: Reading,
    roots: Option<RootsTimed>,
    walked: Option<Box<Before>>,
}

/// How far samples are read.
#[derive(Debug)]
enum Reading {
    UnderWay(JoinHandle<Option<Before>>),
    Over(Option<Box<Before>>),
}

impl Sampling {
    /// Whether times are to be made of samples, and the program runs already.
    pub(super) fn is_wanted(settings: &Settings, start: Start) -> bool {
        start == Start::Running
            && settings.bare != BareTiming::Off
            && !(settings.subgraph.only_roots || settings.await_roots)
    }

    /// Begins with the JVM of this pid and version, if that does it no harm.
    pub(super) fn begin(pid: u32, java_version: &str) -> Option<Sampling> {
        (feature(java_version)? >= FIRST_JDK).then(|| Sampling::of(pid))
    }

    /// The same with one of any version, whose classes are known by now: where the recorder has been used it discards nothing any more.
    pub(super) fn begin_again(pid: u32, graph: &CallGraph) -> Option<Sampling> {
        graph.classes().any(|(_, name)| &**name == RECORDER).then(|| Sampling::of(pid))
    }

    fn of(pid: u32) -> Sampling {
        let (end, mut ended) = oneshot::channel();
        let from = Arc::new(OnceLock::new());
        let begun = Arc::clone(&from);
        let sampling = async move {
            tokio::select! {
                _ = &mut ended => return None,
                () = tokio::time::sleep(LEAST) => {}
            }
            let mut recorder = Recorder::start(pid, PERIOD, DEPTH, LONGEST);
            recorder.begin().await;
            let from = *begun.get_or_init(SystemTime::now);
            let span = ended.await;
            let (samples, other_recordings) = recorder.finish().await;
            // Without an end nothing was begun.
            let (mut samples, Span { until, but }) = (samples.ok()?, span.ok()?);
            if let Some(gap) = but {
                leave_out(&mut samples, gap);
            }
            Some(Before { samples, taken: (ns(from), ns(until)), other_recordings, ..Before::default() })
        };
        Sampling { begun: Instant::now(), from, changed: None, end, reading: tokio::spawn(sampling) }
    }

    /// Something is about to be changed: the roots.
    pub(super) fn changing(&mut self) {
        self.changed = Some(SystemTime::now());
    }

    /// Whether there may be enough samples: there will be where threads have been seen below the roots.
    pub(super) fn may_be_enough(&self, have_seen_roots: bool) -> bool {
        have_seen_roots || self.begun.elapsed() >= LEAST_TIMED
    }

    /// How long is still to be sampled, where calls of the roots were timed.
    pub(super) fn lacking(&self, roots: Option<&RootsTimed>) -> Duration {
        let (Some(from), Some(roots)) = (self.from.get(), roots) else { return Duration::ZERO };
        let changed = self.changed.and_then(|changed| changed.duration_since(*from).ok()).unwrap_or_default();
        SAMPLED.saturating_sub(changed.mul_f64(BESIDE_THE_TOOL) + roots.since.elapsed().unwrap_or_default())
    }

    /// More is about to be changed than the roots, calls of which took so long. While they were timed, samples were taken as before, be it known or not what calls took. And
    /// what was seen by other means.
    pub(super) fn end(self, roots: Option<RootsTimed>, were_alone: bool, walked: Option<Before>) -> Taken {
        let now = SystemTime::now();
        let changed = self.changed.unwrap_or(now);
        let span = match &roots {
            Some(roots) => Span { until: now, but: Some((changed, roots.since)) },
            None if were_alone => Span { until: now, but: Some((changed, changed + COMPILED)) },
            None => Span { until: changed, but: None },
        };
        // Nobody hears it when it has failed.
        let _ = self.end.send(span);
        Taken { reading: Reading::UnderWay(self.reading), roots, walked: walked.map(Box::new) }
    }
}

fn leave_out(samples: &mut Samples, (from, until): (SystemTime, SystemTime)) {
    let gap = ns(from)..ns(until);
    samples.stacks.retain(|sample| !gap.contains(&sample.at_ns));
}

fn ns(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64)
}

impl From<Before> for Taken {
    fn from(before: Before) -> Taken {
        Taken { reading: Reading::Over(Some(before.into())), roots: None, walked: None }
    }
}

impl Taken {
    pub(super) async fn read(mut self) -> Option<Before> {
        self.ready().await;
        match self.reading {
            Reading::Over(Some(before)) => Some(Before { roots: self.roots, walked: self.walked, ..*before }),
            Reading::Over(None) | Reading::UnderWay(_) => {
                self.walked.map(|walked| Before { roots: self.roots, ..*walked })
            }
        }
    }

    /// Waits until they are read. May be cancelled.
    async fn ready(&mut self) {
        if let Reading::UnderWay(reading) = &mut self.reading {
            self.reading = Reading::Over(reading.await.ok().flatten().map(Box::new));
        }
    }

    /// The samples, if they are there soon: what ran is instrumented first.
    pub(super) async fn soon(&mut self, session: &mut Session) -> Result<Option<&Samples>, SessionError> {
        if self.walked.is_none() {
            let ready = tokio::time::timeout(SOON, self.ready());
            session.serve_until(async { drop(ready.await) }).await?;
        }
        let recorded = match &self.reading {
            Reading::Over(before) => before.as_deref(),
            Reading::UnderWay(_) => None,
        };
        Ok(self.walked.as_deref().or(recorded).map(|before| &before.samples))
    }
}

impl Before {
    /// What calls of the roots took, if it is known of all of them that were recorded.
    pub(super) fn times_of_roots(&self, decoder: &Decoder) -> Option<RootsTimed> {
        self.roots.clone().filter(|roots| roots.are_all(decoder))
    }

    /// The recorder's, unless other means have found far more.
    pub(super) fn better(mut self, session: &Session, decoder: &Decoder) -> Before {
        let a_look = |of: &Before| {
            let told = |placed: &Placed, names: &Names<'_>| match of.how {
                How::Recorded => placed.inside as f64 / looks(names).max(1.0),
                How::Walked { looks } => placed.inside as f64 / f64::from(looks).max(1.0),
            };
            on_tree(session, decoder, &of.samples, of.taken, told)
        };
        let Some(walked) = self.walked.take() else { return self };
        let [recorded, seen] = [&self, &*walked].map(a_look);
        log::debug!("samples before, below roots: {recorded:.2} a look recorded, {seen:.2} seen");
        if recorded < LEAST_FOUND * seen { Before { roots: self.roots, ..*walked } } else { self }
    }

    /// What they are worth as samples of what was recorded.
    pub(super) fn worth(&self, session: &Session, decoder: &Decoder) -> Worth {
        let told = |placed: &Placed, _: &Names<'_>| (placed.inside, placed.unseen, placed.alike());
        let (inside, unseen, alike) = on_tree(session, decoder, &self.samples, self.taken, told);
        log::debug!("samples before: {inside} below roots, {unseen} in calls not seen; {alike:.1} as good as one");
        match (worth(inside, if decoder.is_partial() { 0 } else { unseen }, alike), self.how) {
            (Worth::Enough, How::Walked { .. }) => Worth::Some,
            (worth, _) => worth,
        }
    }
}

/// What samples say on the tree of what was recorded.
pub(super) fn on_tree<T>(
    session: &Session,
    decoder: &Decoder,
    samples: &Samples,
    window: (i64, i64),
    told: impl FnOnce(&Placed, &Names<'_>) -> T,
) -> T {
    let mut all = Cct::new();
    decoder.threads().for_each(|(_, tree)| drop(tree.merge_into(&mut all)));
    let names: Vec<String> = session.graph().methods().iter().map(|method| method.java_name()).collect();
    let names = Names::of(names.iter().map(String::as_str), samples, window);
    let dropped = session.governor().into_iter().flat_map(Governor::all_dropped).map(|dropped| dropped.method);
    let missed = session.graph().missed().map(|(method, _)| method).chain(dropped).collect();
    let recorded = grow(&mut all, &names, &missed);
    told(&placed(&all, &names, recorded, &missed), &names)
}

/// What so many samples below the roots are worth, of which some were in calls that the recording has not seen, and so many as good as one.
fn worth(inside: u64, unseen: u64, alike: f64) -> Worth {
    let of_needed = (inside as f64 / ENOUGH as f64).min(inside as f64 / (ENOUGH_APART * alike));
    match of_needed {
        _ if unseen as f64 > MOST_UNSEEN * inside as f64 => Worth::Nothing,
        of_needed if of_needed >= 1.0 => Worth::Enough,
        of_needed if of_needed >= SOME => Worth::Some,
        _ => Worth::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use headwater_jfr::Sample;
    use rustc_hash::FxHashMap;

    use super::*;
    use crate::timing::Timed;

    #[test]
    fn few_samples_or_those_of_something_else_are_not_enough() {
        assert_eq!([worth(150, 30, 1.5), worth(3_000, 0, 30.0)], [Worth::Enough; 2]);
        assert_eq!([worth(149, 0, 1.0), worth(75, 15, 1.0), worth(300, 0, 3.1)], [Worth::Some; 3]);
        assert_eq!([worth(74, 0, 1.0), worth(150, 31, 1.0), worth(300, 0, 6.1), worth(0, 0, 1.0)], [Worth::Nothing; 4]);
    }

    #[tokio::test]
    async fn a_recorder_that_fails_leaves_what_was_seen_by_other_means() {
        let before = |how| Some(Box::new(Before { how, ..Before::default() }));
        const SEEN: How = How::Walked { looks: 5 };
        let taken = |recorded| Taken { reading: Reading::Over(recorded), roots: None, walked: before(SEEN) };
        assert_eq!(taken(None).read().await.map(|before| before.how), Some(SEEN));
        let both = taken(before(How::Recorded)).read().await.expect("both");
        assert_eq!((both.how, both.walked.map(|walked| walked.how)), (How::Recorded, Some(SEEN)));
    }

    #[test]
    fn what_was_sampled_while_the_roots_were_compiled_again_does_not_count() {
        let at = |at_ns| Sample { at_ns, thread: 1, frames: Arc::from([]), is_cut: false, is_native: false };
        let mut samples = Samples { methods: Vec::new(), stacks: [1, 2, 3, 4].map(at).to_vec() };
        let time = |ns| UNIX_EPOCH + Duration::from_nanos(ns);
        leave_out(&mut samples, (time(2), time(4)));
        assert_eq!(samples.stacks, [1, 4].map(at));
    }

    #[tokio::test]
    async fn what_is_lacking_is_waited_for_where_roots_were_timed() {
        let mut sampling = Sampling::of(u32::MAX);
        let ago = |ms| SystemTime::now() - Duration::from_millis(ms);
        let roots = |since| RootsTimed {
            timed: Timed::default(),
            since,
            unsettled: 0.0,
            wanted: FxHashMap::default(),
            wanted_over: Duration::ZERO,
        };
        assert_eq!(sampling.lacking(Some(&roots(ago(100)))), Duration::ZERO, "the recorder has not begun");
        sampling.from.set(ago(1_000)).expect("it is not known yet");
        sampling.changed = Some(ago(700));
        // 300 ms before, which count half, and 500 since; a busy machine may take its time.
        let lacking = sampling.lacking(Some(&roots(ago(500))));
        assert!(lacking <= SAMPLED - Duration::from_millis(650) && !lacking.is_zero(), "{lacking:?}");
        assert_eq!(sampling.lacking(Some(&roots(ago(5_000)))), Duration::ZERO);
        assert_eq!(sampling.lacking(None), Duration::ZERO, "nothing counts from the roots' change on");
    }

    #[tokio::test]
    async fn roots_that_run_are_timed_however_soon_all_is_ready() {
        let mut sampling = Sampling::of(u32::MAX);
        sampling.begun += LEAST_TIMED;
        assert_eq!([true, false].map(|have_seen_roots| sampling.may_be_enough(have_seen_roots)), [true, false]);
    }

    #[tokio::test]
    async fn who_is_ready_at_once_has_no_samples_and_asks_the_jvm_for_none() {
        assert!(Sampling::of(u32::MAX).end(None, false, None).read().await.is_none());
        assert!(Sampling::begin(u32::MAX, "17.0.15+6").is_none(), "it would discard compiled code");
    }
}
