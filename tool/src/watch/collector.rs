//! Asks many JVMs for their threads, each in a task of its own: one that does not answer holds up no other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc::Sender;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::source::{JvmHandle, Source, Unasked};
use super::traces::{Numbering, Taken};
use crate::jvm::Jvm;
use crate::threads::Dump;
use crate::traces::{Connected, Disconnected, Process, Reason, Schema, TraceEvent};

/// Between two looks at least so many times as long passes as one takes.
const REST: u32 = 20;
/// A JVM that fails to answer is asked again after so many intervals at most, as a power of two.
const MOST_PATIENT: u32 = 5;

/// Which JVMs are watched.
#[derive(Clone, Debug, Default)]
pub(crate) struct JvmSelector {
    /// These.
    pub(crate) jvms: Vec<Jvm>,
    /// Those that are called so, whenever they come.
    pub(crate) names: Vec<String>,
    /// All.
    pub(crate) all: bool,
}

impl JvmSelector {
    /// Whether others than those that are known may come.
    fn is_open(&self) -> bool {
        self.all || !self.names.is_empty()
    }

    fn has(&self, jvm: &Jvm) -> bool {
        self.all || self.names.iter().any(|name| jvm.is_called(name))
    }
}

/// How often they are asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// Each of them once in this time.
    pub(crate) every: Duration,
    /// An answer that takes longer is told of.
    pub(crate) deadline: Duration,
    /// It is looked for JVMs that have come once in this time.
    pub(crate) look: Duration,
}

/// What is heard.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// Of a JVM that is watched.
    TraceEvent(TraceEvent),
    /// A JVM is not watched.
    Skipped { process: Process, main: String, why: String },
    /// Something about a JVM: a sentence.
    Remark(String),
    /// All that were to be watched have ended.
    Over,
}

/// Asks them.
pub(crate) struct Collector {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) wanted: JvmSelector,
    pub(crate) pace: Pace,
    /// The name of this host.
    pub(crate) host: String,
    pub(crate) news: Sender<News>,
}

/// How it ended with a JVM.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is gone.
    Gone,
    /// It is there, and is asked no more.
    Skipped,
}

/// JVMs by their pids.
#[derive(Default)]
struct Known {
    followed: BTreeMap<u32, AbortHandle>,
    skipped: BTreeMap<u32, String>,
}

impl Collector {
    /// Asks until nobody listens, or nothing is left to be asked. When this is dropped nothing is asked any more.
    pub(crate) async fn run(self) {
        let collector = Arc::new(self);
        let mut tasks = JoinSet::new();
        let mut known = Known::default();
        let begun = Instant::now();
        for jvm in &collector.wanted.jvms {
            collector.begin(jvm.clone(), begun, &mut known, &mut tasks);
        }
        let mut look = Box::pin(collector.look(Duration::ZERO));
        loop {
            tokio::select! {
                ended = tasks.join_next(), if !tasks.is_empty() => {
                    // A task that panicked has said so; its JVM may be looked at again.
                    if let Some(Ok((jvm, end))) = ended {
                        known.followed.remove(&jvm.pid);
                        if end == End::Skipped {
                            known.skipped.insert(jvm.pid, jvm.main);
                        }
                    }
                    if tasks.is_empty() && !collector.wanted.is_open() {
                        let _ = collector.news.send(News::Over).await;
                        return;
                    }
                }
                found = &mut look, if collector.wanted.is_open() => {
                    let (jvms, took) = found;
                    // The number may be another's by now.
                    known.skipped.retain(|pid, main| jvms.iter().any(|jvm| jvm.pid == *pid && jvm.main == *main));
                    let new = |jvm: &Jvm| !known.followed.contains_key(&jvm.pid) && !known.skipped.contains_key(&jvm.pid);
                    let new: Vec<Jvm> = jvms.into_iter().filter(|jvm| collector.wanted.has(jvm) && new(jvm)).collect();
                    for jvm in new {
                        collector.begin(jvm, begun, &mut known, &mut tasks);
                    }
                    look = Box::pin(collector.look(collector.pace.look.max(took * REST)));
                }
                () = collector.news.closed() => return,
            }
        }
    }

    fn begin(self: &Arc<Collector>, jvm: Jvm, begun: Instant, known: &mut Known, tasks: &mut JoinSet<(Jvm, End)>) {
        let (collector, pid) = (Arc::clone(self), jvm.pid);
        let task = async move {
            let end = collector.follow(&jvm, begun).await;
            (jvm, end)
        };
        known.followed.insert(pid, tasks.spawn(task));
    }

    /// The JVMs that are there after a while, and how long it took to look.
    fn look(self: &Arc<Collector>, after: Duration) -> impl Future<Output = (Vec<Jvm>, Duration)> + use<> {
        let source = Arc::clone(&self.source);
        async move {
            sleep(after).await;
            let begun = Instant::now();
            let jvms = tokio::task::spawn_blocking(move || source.jvms()).await;
            (jvms.unwrap_or_default(), begun.elapsed())
        }
    }

    /// Asks one JVM until it is gone.
    async fn follow(&self, jvm: &Jvm, begun: Instant) -> End {
        let held = match self.hold(jvm).await {
            Ok(held) => held,
            Err(Unasked::Gone) => return End::Gone,
            Err(Unasked::Refused(why) | Unasked::Failed(why)) => return self.skip(jvm, why).await,
        };
        // Whatever ends this: what the JVM is being asked then is given up.
        let _guard = Guard(Arc::clone(&held));
        let mut numbering = Numbering::default();
        let mut failures = 0;
        let mut is_slow = false;
        loop {
            let (asked, time_ms) = (Instant::now(), now_ms());
            let answer = self.ask(jvm, &held).await;
            let took = asked.elapsed();
            match answer {
                Ok(dump) => {
                    if failures > 0 && numbering.traces() > 0 {
                        self.tell(News::Remark(format!("{} answers again", named(jvm)))).await;
                    }
                    failures = 0;
                    if numbering.traces() == 0 {
                        self.tell(News::TraceEvent(TraceEvent::Connected(self.connected(jvm, &dump, time_ms)))).await;
                    }
                    let taken = Taken { host: self.host.clone(), pid: jvm.pid, time_ms, took };
                    self.tell(News::TraceEvent(TraceEvent::Trace(numbering.trace(&dump, taken)))).await;
                    // The first time it also makes what answers.
                    let is_first = numbering.traces() == 1;
                    if !is_first && took > self.pace.every / 2 && !std::mem::replace(&mut is_slow, true) {
                        self.tell(News::Remark(format!(
                            "{} takes {:.1} s to tell of its threads, and is asked less often",
                            named(jvm),
                            took.as_secs_f64()
                        )))
                        .await;
                    }
                }
                Err(Unasked::Gone) => {
                    self.disconnect(jvm, &numbering, Reason::Ended).await;
                    return End::Gone;
                }
                Err(Unasked::Refused(why)) => {
                    self.disconnect(jvm, &numbering, Reason::Refused).await;
                    return self.skip(jvm, why).await;
                }
                Err(Unasked::Failed(why)) => {
                    if failures == 0 {
                        self.tell(News::Remark(format!("{} does not answer, and is asked again: {why}", named(jvm))))
                            .await;
                    }
                    failures += 1;
                }
            }
            sleep_until(begun + due(self.pace.every, asked - begun, took, failures)).await;
        }
    }

    async fn hold(&self, jvm: &Jvm) -> Result<Arc<dyn JvmHandle>, Unasked> {
        let (source, of) = (Arc::clone(&self.source), jvm.clone());
        let holding = tokio::task::spawn_blocking(move || source.hold(&of));
        match timeout(self.pace.deadline, holding).await {
            Ok(held) => held.unwrap_or(Err(Unasked::Gone)),
            Err(_) => Err(Unasked::Failed(format!(
                "its files in /proc could not be read within {:.1} s",
                self.pace.deadline.as_secs_f64()
            ))),
        }
    }

    /// Asks once. An answer that comes late is waited for: the JVM is not asked another question before.
    async fn ask(&self, jvm: &Jvm, held: &Arc<dyn JvmHandle>) -> Result<Dump, Unasked> {
        let asked = Arc::clone(held);
        let mut asking = tokio::task::spawn_blocking(move || asked.dump());
        let answer = match timeout(self.pace.deadline, &mut asking).await {
            Ok(answer) => answer,
            Err(_) => {
                self.tell(News::Remark(format!(
                    "{} has not answered for {:.1} s; the others go on without it",
                    named(jvm),
                    self.pace.deadline.as_secs_f64()
                )))
                .await;
                held.set_given_up(true);
                let answer = asking.await;
                held.set_given_up(false);
                answer
            }
        };
        answer.unwrap_or(Err(Unasked::Gone))
    }

    fn connected(&self, jvm: &Jvm, dump: &Dump, time_ms: u64) -> Connected {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Connected {
            schema: Schema,
            time_ms,
            host: self.host.clone(),
            pid: jvm.pid,
            main: jvm.main.clone(),
            arguments: jvm.arguments.clone(),
            java: jvm.java_version.clone(),
            vm: dump.vm.clone(),
            system: format!("Linux {} {}", release.trim(), std::env::consts::ARCH),
            uid: jvm.uid,
        }
    }

    async fn disconnect(&self, jvm: &Jvm, numbering: &Numbering, reason: Reason) {
        if numbering.traces() > 0 {
            let (host, pid) = (self.host.clone(), jvm.pid);
            let event = Disconnected { schema: Schema, time_ms: now_ms(), host, pid, reason };
            self.tell(News::TraceEvent(TraceEvent::Disconnected(event))).await;
        }
    }

    async fn skip(&self, jvm: &Jvm, why: String) -> End {
        let process = Process { host: self.host.clone(), pid: jvm.pid };
        self.tell(News::Skipped { process, main: jvm.main.clone(), why }).await;
        End::Skipped
    }

    async fn tell(&self, news: News) {
        // Nobody listens any more: the end is on its way.
        let _ = self.news.send(news).await;
    }
}

struct Guard(Arc<dyn JvmHandle>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.set_given_up(true);
    }
}

/// How a JVM is called in sentences.
fn named(jvm: &Jvm) -> String {
    format!("the JVM {} ({})", jvm.pid, jvm.main)
}

pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// When a JVM is asked next, after the watch's beginning. All are asked at multiples of the interval, so that what is seen is of one moment; one
/// that takes long to answer is left alone for as long as it took, and one that fails for longer each time.
fn due(every: Duration, asked: Duration, took: Duration, failures: u32) -> Duration {
    let nanos = |time: Duration| time.as_nanos();
    let every_ns = nanos(every).max(1);
    let usual = nanos(asked) / every_ns + (1 << failures.min(MOST_PATIENT));
    let rested = nanos(asked + 2 * took).div_ceil(every_ns);
    let multiple = u64::try_from(usual.max(rested) * every_ns).unwrap_or(u64::MAX);
    Duration::from_nanos(multiple)
}

#[cfg(test)]
mod tests;
