//! All threads of a JVM, sampled: where its CPU time goes, without a root and without an agent.
//!
//! Where threads are is told by the JVM's own flight recorder (execution samples, once in a period). How much CPU time each of them took is
//! read from `/proc`, once a second. A thread's CPU time of a second is divided among its samples of that second: so it is conserved, and only its
//! places are sampled. What the JVM itself burns (collectors, compilers), and what threads burned in which no Java code was seen, stands beside it.
//!
//! Why so, and at what cost: docs/decisions/sampling.md.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustc_hash::FxHashMap;

use crate::attach::{AttachError, TargetHost};
use crate::flight_recorder::{self, RecorderError, Recording};
use crate::import::recording;
use crate::jvm::Jvm;
use crate::profile::{MethodIndex, Profile, Unit};
use crate::report::units::{count, plural, time};
use crate::thread_dump;
use crate::thread_dump::cpu::Reading;
use crate::threads::{Kind, Thread};
use headwater_jfr::{Sample, Samples};
use headwater_profile::build::{Builder, MetricIndex, SAMPLES, jvms_own};

/// Stacks hold so many frames, where nobody has used the recorder before.
const DEPTH: usize = 512;
/// How often threads' CPU times are read.
const SECOND: Duration = Duration::from_secs(1);
/// An interruption is noticed within this time.
const STEP: Duration = Duration::from_millis(50);
/// The JVM's number of threads that are no platform threads.
const VIRTUAL: u32 = 0;

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// For so long.
    pub duration: Duration,
    /// Threads are sampled once in this time.
    pub every: Duration,
}

/// Why nothing was sampled.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// It cannot be asked.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// Its recorder samples nothing.
    #[error("nothing could be sampled: {0}")]
    Recorder(#[from] RecorderError),
    /// The user does not want it any more.
    #[error("interrupted before anything was sampled")]
    Interrupted,
}

impl SampleError {
    /// The exit code of the command line contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            SampleError::Attach(error) | SampleError::Recorder(RecorderError::Attach(error)) => error.exit_code(),
            SampleError::Recorder(RecorderError::Target(error)) => error.exit_code(),
            SampleError::Recorder(_) => 1,
            SampleError::Interrupted => 130,
        }
    }
}

/// Samples a JVM, until the time is over or `interrupt` is ready.
pub(crate) async fn take(
    jvm: Jvm,
    wanted: Wanted,
    interrupt: impl Future<Output = ()>,
) -> Result<Profile, SampleError> {
    let taken = thread_dump::until(interrupt, move |is_enough| sample(&jvm, wanted, is_enough)).await;
    taken.unwrap_or(Err(SampleError::Interrupted))
}

fn sample(jvm: &Jvm, wanted: Wanted, is_enough: &AtomicBool) -> Result<Profile, SampleError> {
    let host = TargetHost::of(jvm)?;
    let recording =
        Recording::start(jvm.pid, flight_recorder::Wanted::Executions(wanted.every), DEPTH, wanted.duration)?;
    let others = recording.others();
    let begin = Instant::now();
    let mut readings = vec![Reading::now(host.pid())];
    let mut due = begin + SECOND;
    while begin.elapsed() < wanted.duration && !is_enough.load(Ordering::Acquire) {
        thread::sleep(STEP.min(wanted.duration.saturating_sub(begin.elapsed())));
        if Instant::now() >= due {
            readings.push(Reading::now(host.pid()));
            due += SECOND;
        }
    }
    readings.push(Reading::now(host.pid()));
    let samples = recording.finish()?;
    let duration = begin.elapsed();
    // It may have ended since: what was sampled is shown all the same.
    let (threads, unnamed) = match thread_dump::names(jvm) {
        Ok(threads) => (threads, None),
        Err(error) => (Vec::new(), Some(format!("threads' names are not known: {error}"))),
    };
    let mut sampled = Sampled { duration, others, readings, samples, threads };
    sampled.keep_inner_numbers(&host);
    let mut profile = sampled.profile(jvm);
    profile.notes.extend(unnamed);
    Ok(profile)
}

/// What was seen of a JVM.
struct Sampled {
    duration: Duration,
    /// Recordings of others, which have our samples too.
    others: usize,
    /// Each with threads by the numbers that the JVM knows.
    readings: Vec<Reading>,
    samples: Samples,
    threads: Vec<Thread>,
}

/// What a thread took between two readings, and its samples of that time.
#[derive(Default)]
struct Part {
    cpu_ns: u64,
    samples: Vec<usize>,
}

impl Sampled {
    /// Readings are by our numbers; in a namespace the JVM has others.
    fn keep_inner_numbers(&mut self, host: &TargetHost) {
        if host.pid() != host.vm_pid() {
            self.readings.iter_mut().for_each(|reading| reading.by_inner_numbers(host.pid()));
        }
    }

    /// Of each thread, what it took between two readings.
    fn parts(&self) -> BTreeMap<u32, Vec<Part>> {
        let windows = self.readings.len() - 1;
        let mut parts: BTreeMap<u32, Vec<Part>> = BTreeMap::new();
        let new = || (0..windows).map(|_| Part::default()).collect::<Vec<Part>>();
        for (window, pair) in self.readings.windows(2).enumerate() {
            for (thread, after) in &pair[1].threads {
                let before = pair[0].threads.get(thread).copied().unwrap_or(0);
                parts.entry(*thread).or_insert_with(new)[window].cpu_ns = after.saturating_sub(before);
            }
        }
        for (index, sample) in self.samples.stacks.iter().enumerate() {
            let window = self.readings[1..].iter().position(|reading| sample.at_ns < reading.at_ns);
            let window = window.unwrap_or(windows - 1);
            parts.entry(sample.thread).or_insert_with(new)[window].samples.push(index);
        }
        parts
    }

    fn profile(self, jvm: &Jvm) -> Profile {
        let mut builder = Builder::default();
        let cpu = builder.metric_called("cpu", "CPU time", Unit::Nanoseconds);
        let number = builder.metric(SAMPLES, Unit::Count);
        let methods = recording::methods(&mut builder, &self.samples.methods);
        let cut = recording::cut(&mut builder);
        let of_thread: FxHashMap<u32, &Thread> =
            self.threads.iter().filter_map(|thread| Some((thread.os_id?, thread))).collect();
        let stack = |sample: &Sample| -> Vec<MethodIndex> {
            let frames = sample.frames.iter().filter_map(|frame| methods.get(frame.0 as usize).copied());
            sample.is_cut.then_some(cut).into_iter().chain(frames).collect()
        };
        let mut parts = self.parts();
        let has_virtual = parts.contains_key(&VIRTUAL);
        // What carriers took belongs to the virtual threads that they carried, which have no time of their own.
        if has_virtual {
            let carriers: Vec<u32> = of_thread
                .iter()
                .filter(|(_, thread)| thread.mount.is_some() || thread.name.starts_with("ForkJoinPool-1-worker-"))
                .map(|(number, _)| *number)
                .filter(|number| parts.get(number).is_some_and(|of| of.iter().all(|part| part.samples.is_empty())))
                .collect();
            for carrier in carriers {
                let taken = parts.remove(&carrier).unwrap_or_default();
                if let Some(all) = parts.get_mut(&VIRTUAL) {
                    all.iter_mut().zip(taken).for_each(|(all, part)| all.cpu_ns += part.cpu_ns);
                }
            }
        }
        let mut placed = 0;
        let mut all_cpu = 0;
        let mut unplaced = 0;
        for (thread, parts) in &parts {
            let known = of_thread.get(thread);
            let name = match (known, *thread) {
                (_, VIRTUAL) => "virtual threads".to_owned(),
                (Some(thread), _) => thread.name.clone(),
                (None, number) => format!("tid={number}"),
            };
            let index = builder.thread(Some(&name));
            let put = |stack: Vec<MethodIndex>, values: &[(MetricIndex, u64)], builder: &mut Builder| {
                builder.add_stack(index, stack, values.iter().copied());
            };
            let all: Vec<usize> = parts.iter().flat_map(|part| part.samples.iter().copied()).collect();
            for part in parts {
                all_cpu += part.cpu_ns;
                // Of a second in which it was not seen, the places are those of the whole time.
                let places = if part.samples.is_empty() { &all } else { &part.samples };
                for (at, share) in shares(part.cpu_ns, places.len()).enumerate() {
                    put(stack(&self.samples.stacks[places[at]]), &[(cpu, share)], &mut builder);
                    placed += share;
                }
                for sample in &part.samples {
                    put(stack(&self.samples.stacks[*sample]), &[(number, 1)], &mut builder);
                }
                if places.is_empty() && part.cpu_ns > 0 {
                    // Compilers are Java threads to the JVM, without a stack.
                    let what = match known.map(|thread| thread.kind == Kind::Java && !thread.stack.is_empty()) {
                        Some(true) => {
                            unplaced += part.cpu_ns;
                            "[no Java code seen]".to_owned()
                        }
                        Some(false) => jvms_own(&name),
                        None => "[threads that have ended]".to_owned(),
                    };
                    let frame = builder.method(&what, &what);
                    put(vec![frame], &[(cpu, part.cpu_ns)], &mut builder);
                }
            }
        }
        let process = self.process_ns();
        // What threads took that began and ended between two readings, and what those took that have ended since their last.
        let rest = process.saturating_sub(all_cpu);
        if rest > 0 {
            let name = "[threads that have ended]";
            let (frame, thread) = (builder.method(name, name), builder.thread(Some("threads that have ended")));
            builder.add_stack(thread, [frame], [(cpu, rest)]);
        }
        let seen = self.samples.stacks.len() as u64;
        builder.grain(cpu, placed.checked_div(seen).unwrap_or(0));
        let seconds = self.duration.as_secs_f64();
        builder.recorded = (self.began_s(), self.duration);
        let mut profile = builder.finish(&jvm.main, "samples of all threads");
        profile.target.pid = jvm.pid;
        profile.target.jdk = jvm.java_version.clone().unwrap_or_default();
        let whole = process.max(all_cpu);
        profile.notes.push(format!(
            "CPU time of the process: {} in {seconds:.1} s, {:.2} processors; {} of it placed in Java code by {}",
            time(whole),
            whole as f64 / 1e9 / seconds.max(1e-9),
            percent(placed, whole),
            plural(seen, "sample", "samples"),
        ));
        if unplaced > whole / 100 {
            profile.notes.push(format!(
                "{} of it is of Java threads in which no Java code was seen: they are in native code, or the recorder did not come to them",
                percent(unplaced, whole)
            ));
        }
        profile
            .notes
            .push("waiting takes no CPU time and is in no sample: `headwater threads` shows who waits".to_owned());
        if self.others > 0 {
            let others = plural(self.others as u64, "other recording", "other recordings");
            profile.notes.push(format!("{others} of the flight recorder went on meanwhile, and got these samples too"));
        }
        if has_virtual {
            profile.notes.push(format!(
                "virtual threads are one here ({}): what their carriers took is theirs",
                count(self.samples.stacks.iter().filter(|sample| sample.thread == VIRTUAL).count() as u64) + " samples"
            ));
        }
        profile
    }

    fn process_ns(&self) -> u64 {
        match (self.readings.first(), self.readings.last()) {
            (Some(first), Some(last)) => last.process_ns.saturating_sub(first.process_ns),
            _ => 0,
        }
    }

    fn began_s(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(self.duration).as_secs()
    }
}

/// Divides a whole into so many equal parts, to the last of it.
fn shares(whole: u64, parts: usize) -> impl Iterator<Item = u64> {
    let parts = parts as u64;
    (0..parts).map(move |at| whole * (at + 1) / parts - whole * at / parts)
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.0} %", 100.0 * part as f64 / whole.max(1) as f64)
}

#[cfg(test)]
mod tests;
