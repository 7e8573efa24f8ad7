//! Telling waiting from computing: about a hundred times a second, at times that follow no rhythm, the draining thread looks whether the
//! threads that are inside the call graph run, and counts that for the methods on top of their simulated stacks.
//!
//! A thread that is ready to run and stands in line for a processor counts as running: it does not wait for anything of the
//! program's. How long the threads stood in line is read now and then, where the kernel knows it. A virtual thread has no state that the
//! operating system knows: it runs if it was the last to write on its carrier, and that runs; else it waits.
//!
//! The agent knows its threads by the numbers of its own pid namespace, which need not be ours.
//!
//! Why so, and at what cost: docs/decisions/running-or-waiting.md.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use headwater_protocol::ThreadId;

use crate::decode::{Decoder, Scheduled};

/// Mean time between samples.
const PERIOD: Duration = Duration::from_millis(10);
/// Threads whose state is read in one sample at most; the others have their turn in the next.
const READ_AT_ONCE: usize = 64;
/// Threads that are looked at for one sample at most, inside the call graph or not.
const LOOKED_AT: usize = 1024;
/// Three numbers of 64 bits.
const LONGEST_SCHEDSTAT: usize = 64;
/// A sample takes no longer than that, and one read.
const LONGEST: Duration = Duration::from_micros(300);
/// So often a thread is found outside the call graph until somebody looks whether it is still there.
const IDLE: u32 = 128;
/// All threads of another pid namespace are looked through no more often than that.
const SEARCH_PERIOD: Duration = Duration::from_secs(1);

/// A thread of the target, and its number in the agent's pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OsThread {
    /// The JVM's number, or, of a carrier of virtual ones, that of its chunks.
    pub thread: ThreadId,
    /// The operating system's.
    pub number: u32,
}

#[derive(Debug)]
struct Sampled {
    thread: ThreadId,
    /// How often it was found outside the call graph.
    idle: u32,
    /// What it had had when it was first found inside, since the last account.
    scheduled: Option<Scheduled>,
}

/// Samples the states of a process's threads.
#[derive(Debug)]
pub struct CpuSampler {
    /// `/proc/PID/task`.
    tasks: PathBuf,
    inbox: Receiver<OsThread>,
    /// By our own numbers.
    threads: BTreeMap<u32, Sampled>,
    /// The thread that was looked at last.
    latest: u32,
    due: Instant,
    /// Threads that do not have the same number here.
    foreign: Vec<OsThread>,
    searched: Option<Instant>,
    random: u64,
}

impl CpuSampler {
    /// For the process with this pid (as we see it), and where it is to be told of the process's threads.
    pub fn new(pid: u32) -> (CpuSampler, Sender<OsThread>) {
        let (sender, inbox) = channel();
        let sampler = CpuSampler {
            tasks: PathBuf::from(format!("/proc/{pid}/task")),
            inbox,
            threads: BTreeMap::new(),
            latest: 0,
            due: Instant::now(),
            foreign: Vec::new(),
            searched: None,
            random: u64::from(pid) | 1,
        };
        (sampler, sender)
    }

    /// Takes a sample if it is time for one. The decoder has just decoded what there was.
    pub fn sample(&mut self, decoder: &mut Decoder) {
        let now = Instant::now();
        if now < self.due {
            return;
        }
        self.due = now + self.pause();
        self.take_in(now);
        decoder.sample_unmounted();
        let mut read = 0;
        for _ in 0..self.threads.len().min(LOOKED_AT) {
            let Some(number) = self.next() else { return };
            let tasks = &self.tasks;
            let Some(sampled) = self.threads.get_mut(&number) else { return };
            let mut is_gone = false;
            let mut look = || {
                let state = is_running(tasks, number);
                is_gone = state.is_none();
                read += 1;
                state
            };
            if decoder.sample(sampled.thread, &mut look) {
                sampled.scheduled = sampled.scheduled.or_else(|| scheduled(tasks, number));
            } else {
                sampled.idle += 1;
                if sampled.idle % IDLE == 0 {
                    look();
                }
            }
            if is_gone {
                self.threads.remove(&number);
            }
            if read >= READ_AT_ONCE || now.elapsed() > LONGEST {
                return;
            }
        }
    }

    /// Tells the decoder what the threads that have been inside the call graph had of the processors since then, or since the last time.
    pub fn account(&mut self, decoder: &mut Decoder) {
        for (number, sampled) in self.threads.iter_mut().take(LOOKED_AT) {
            let Some(before) = sampled.scheduled.take() else { continue };
            if let Some(now) = scheduled(&self.tasks, *number) {
                decoder.add_scheduled(now.since(before));
            }
        }
    }

    /// Between half and one and a half of the period: a program's own rhythm must not be ours.
    fn pause(&mut self) -> Duration {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        PERIOD / 2 + PERIOD.mul_f64((self.random >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// The thread whose turn it is.
    fn next(&mut self) -> Option<u32> {
        let behind = (Bound::Excluded(self.latest), Bound::Unbounded);
        let next = self.threads.range(behind).next().or_else(|| self.threads.iter().next());
        let (number, _) = next?;
        self.latest = *number;
        Some(self.latest)
    }

    /// Threads that were told of.
    fn take_in(&mut self, now: Instant) {
        while let Ok(told) = self.inbox.try_recv() {
            if inner_number(&self.tasks, told.number) == Some(told.number) {
                self.insert(told.number, told.thread);
            } else {
                self.foreign.push(told);
            }
        }
        if self.foreign.is_empty() || self.searched.is_some_and(|searched| now - searched < SEARCH_PERIOD) {
            return;
        }
        self.searched = Some(now);
        let tasks = std::fs::read_dir(&self.tasks).into_iter().flatten().flatten();
        let ours = tasks.filter_map(|task| task.file_name().to_str()?.parse::<u32>().ok());
        let by_inner: BTreeMap<u32, u32> =
            ours.filter_map(|ours| Some((inner_number(&self.tasks, ours)?, ours))).collect();
        // Those that are not found have ended.
        for told in std::mem::take(&mut self.foreign) {
            if let Some(ours) = by_inner.get(&told.number) {
                self.insert(*ours, told.thread);
            }
        }
    }

    /// The number's earlier thread, if there was one, has ended.
    fn insert(&mut self, number: u32, thread: ThreadId) {
        self.threads.insert(number, Sampled { thread, idle: 0, scheduled: None });
    }
}

/// Whether a thread runs, or is ready to; `None` when it cannot be told, or is gone.
fn is_running(tasks: &Path, number: u32) -> Option<bool> {
    let mut file = File::open(tasks.join(format!("{number}/stat"))).ok()?;
    let mut text = [0; 256];
    let length = file.read(&mut text).ok()?;
    state(&text[..length]).map(|state| state == b'R')
}

/// The state in a `stat` file: behind the name, which may have any character, also a `)`.
fn state(stat: &[u8]) -> Option<u8> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name_end + 2).copied()
}

/// What a thread has had of the processors; `None` where the kernel does not count that, or the thread is gone.
pub fn scheduled(tasks: &Path, number: u32) -> Option<Scheduled> {
    scheduled_in(&File::open(tasks.join(format!("{number}/schedstat"))).ok()?)
}

/// The same, by the thread's `schedstat` file, which may stay open.
pub fn scheduled_in(schedstat: &File) -> Option<Scheduled> {
    let mut text = [0; LONGEST_SCHEDSTAT];
    let length = schedstat.read_at(&mut text, 0).ok()?;
    parsed(std::str::from_utf8(&text[..length]).ok()?)
}

/// A `schedstat` file: two times in ns, and how often it had its turn.
fn parsed(schedstat: &str) -> Option<Scheduled> {
    let mut numbers = schedstat.split_whitespace().map(str::parse);
    Some(Scheduled { ran_ns: numbers.next()?.ok()?, queued_ns: numbers.next()?.ok()? })
}

/// A thread's number in its own, the innermost pid namespace.
pub fn inner_number(tasks: &Path, number: u32) -> Option<u32> {
    let status = std::fs::read_to_string(tasks.join(format!("{number}/status"))).ok()?;
    innermost(&status, number)
}

/// Kernels before 4.1 do not tell: there the number itself has to do.
fn innermost(status: &str, number: u32) -> Option<u32> {
    match status.lines().find_map(|line| line.strip_prefix("NSpid:")) {
        Some(numbers) => numbers.split_whitespace().next_back()?.parse().ok(),
        None => Some(number),
    }
}

#[cfg(test)]
mod tests {
    use headwater_protocol::MethodId;
    use headwater_protocol::word::Event;

    use super::*;
    use crate::decode::{ChunkCursor, DecodeOptions};

    #[test]
    fn a_threads_state_stands_behind_its_name() {
        assert_eq!(state(b"17 (Thread-1) S 1 2 3"), Some(b'S'));
        assert_eq!(state(b"17 (a) R (b) ) R 1 2 3"), Some(b'R'));
        assert_eq!(state(b"17 (cut"), None);
        assert_eq!(state(b""), None);
    }

    #[test]
    fn a_schedstat_file_has_two_times() {
        assert_eq!(parsed("176501272 20650426 542\n"), Some(Scheduled { ran_ns: 176_501_272, queued_ns: 20_650_426 }));
        assert_eq!((parsed("17"), parsed("")), (None, None));
        let scheduled = |ran_ns, queued_ns| Scheduled { ran_ns, queued_ns };
        assert_eq!(scheduled(300, 100).queued(), Some(0.25));
        assert_eq!(Scheduled::default().queued(), None, "nothing is known");
    }

    #[test]
    fn the_innermost_number_is_the_agents() {
        assert_eq!(innermost("Name:\tjava\nNSpid:\t4711\t23\t7\nNSsid:\t1\n", 4711), Some(7));
        assert_eq!(innermost("Name:\tjava\nNSpid:\t4711\n", 4711), Some(4711));
        assert_eq!(innermost("Name:\tjava\n", 4711), Some(4711));
    }

    #[test]
    fn threads_inside_a_root_are_sampled_by_turns_and_the_dead_are_forgotten() {
        let (mut sampler, told) = CpuSampler::new(std::process::id());
        let ours = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        let mut decoder = Decoder::new(DecodeOptions::default());
        let root = Event::Enter { method: MethodId(1), time_ns: 1, root: true }.encode();
        decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &[root]);
        decoder.words(&mut ChunkCursor::new(ThreadId(2), 0), &[root]);
        told.send(OsThread { thread: ThreadId(1), number: ours }).expect("it listens");
        // No thread has the largest number, and the third is not inside a root.
        told.send(OsThread { thread: ThreadId(2), number: u32::MAX }).expect("it listens");
        for _ in 0..5 {
            sampler.due = Instant::now();
            sampler.sample(&mut decoder);
        }
        let accounts = |sampler: &CpuSampler| sampler.threads.values().filter(|it| it.scheduled.is_some()).count();
        let known = scheduled(&sampler.tasks, ours).is_some();
        assert_eq!(accounts(&sampler), usize::from(known), "one is there and inside");
        sampler.account(&mut decoder);
        assert_eq!(accounts(&sampler), 0, "it is accounted for once");
        decoder.finish(10);
        let samples: Vec<(u64, u32, u32)> = decoder
            .threads()
            .flat_map(|(id, tree)| tree.nodes().skip(1).map(move |(node, _)| (id.0, tree.cpu(node))))
            .map(|(id, cpu)| (id, cpu.samples, cpu.running))
            .collect();
        assert_eq!(samples, [(1, 5, 5), (2, 0, 0)], "we are running");
        assert_eq!(sampler.threads.len(), 1);
    }
}
