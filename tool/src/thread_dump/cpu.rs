//! What each thread of a process has used of the processors, by `/proc`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustc_hash::{FxHashMap, FxHashSet};

use super::Cpu;
use crate::attach::TargetHost;
use crate::cpu_share::{inner_number, scheduled, scheduled_in};
use crate::decode::Scheduled;
use crate::jvm::process;
use crate::threads::{Dump, Kind, Thread};

/// An interruption is noticed within this time.
const STEP: Duration = Duration::from_millis(50);
const NS_A_SECOND: u64 = 1_000_000_000;

/// CPU times of all threads at the end of a window, and what was used in it.
#[derive(Debug)]
pub(super) struct Times {
    tasks: PathBuf,
    window: Duration,
    before: BTreeMap<u32, u64>,
    after: BTreeMap<u32, u64>,
    /// What the process had used at both ends, threads that had ended included.
    process_ns: [u64; 2],
}

/// Reads CPU times at the beginning and the end of a window; `None` if they cannot be read.
pub(super) fn window(pid: u32, window: Duration, interrupted: &AtomicBool) -> Option<Times> {
    let tasks = PathBuf::from(format!("/proc/{pid}/task"));
    let of_process = || fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|stat| of_stat(&stat));
    let begin = Instant::now();
    let before = if window.is_zero() { BTreeMap::new() } else { times(&tasks) };
    // Between the readings of threads, so that what these take meanwhile is not that of others.
    let first_ns = of_process()?;
    while begin.elapsed() < window && !interrupted.load(Ordering::Acquire) {
        thread::sleep(STEP.min(window.saturating_sub(begin.elapsed())));
    }
    let process_ns = [first_ns, of_process()?];
    let after = times(&tasks);
    let window = if window.is_zero() { window } else { begin.elapsed() };
    (!after.is_empty()).then_some(Times { tasks, window, before, after, process_ns })
}

/// What all threads of a process have used up to a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// When, in ns since 1970.
    pub(crate) at_ns: i64,
    /// By the number that the thread has in the JVM; nobody counts how long threads stood in line where the kernel has no scheduling statistics.
    pub(crate) threads: BTreeMap<u32, Scheduled>,
    /// By all of it, threads that have ended included.
    pub(crate) process_ns: u64,
}

/// Reads again and again what the threads of a process have used. Their files stay open: to open one takes longer than to read it.
#[derive(Debug)]
pub(crate) struct Readings {
    process: PathBuf,
    /// Threads have other numbers in their own pid namespace, by which they are told of.
    has_others: bool,
    /// By our numbers, so many of them that the tool is not in want of open files.
    tasks: FxHashMap<u32, Task>,
}

#[derive(Debug)]
struct Task {
    number: u32,
    file: File,
}

impl Readings {
    /// Of a process.
    pub(crate) fn of(host: &TargetHost) -> Readings {
        let process = PathBuf::from(format!("/proc/{}", host.pid()));
        Readings { process, has_others: host.pid() != host.vm_pid(), tasks: FxHashMap::default() }
    }

    /// What each thread has used up to now; nothing of a process that is gone.
    pub(crate) fn now(&mut self) -> Reading {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let process = fs::read_to_string(self.process.join("stat")).ok().and_then(|stat| of_stat(&stat));
        Reading {
            at_ns: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
            threads: self.threads(),
            process_ns: process.unwrap_or_default(),
        }
    }

    fn threads(&mut self) -> BTreeMap<u32, Scheduled> {
        let directory = self.process.join("task");
        let there: FxHashSet<u32> = numbers(&directory).collect();
        self.tasks.retain(|ours, _| there.contains(ours));
        there.into_iter().filter_map(|ours| self.thread(&directory, ours)).collect()
    }

    /// `None` of a thread that is gone.
    fn thread(&mut self, directory: &Path, ours: u32) -> Option<(u32, Scheduled)> {
        if let Some(Task { number, file }) = self.tasks.get(&ours)
            && let Some(times) = scheduled_in(file)
        {
            return Some((*number, times));
        }
        // The number may be another thread's by now: then the file that is open is nobody's.
        self.tasks.remove(&ours);
        let number = if self.has_others { inner_number(directory, ours)? } else { ours };
        let times = time(directory, ours)?;
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        if most.is_none_or(|most| (self.tasks.len() as u64) < most / 2)
            && let Ok(file) = File::open(directory.join(format!("{ours}/schedstat")))
        {
            self.tasks.insert(ours, Task { number, file });
        }
        Some((number, times))
    }
}

impl Times {
    /// Gives each thread of the dump its times, and adds those that the JVM does not know.
    pub(super) fn put(self, host: &TargetHost, dump: &mut Dump) -> Cpu {
        let is_namespace = host.pid() != host.vm_pid();
        let by_inner: FxHashMap<u32, u32> = self
            .after
            .keys()
            .filter_map(|ours| Some((if is_namespace { inner_number(&self.tasks, *ours)? } else { *ours }, *ours)))
            .collect();
        let mut left = self.after.clone();
        for thread in &mut dump.threads {
            let Some(ours) = thread.os_id.and_then(|id| by_inner.get(&id).copied()) else { continue };
            left.remove(&ours);
            thread.cpu_ns = self.after.get(&ours).copied().or(thread.cpu_ns);
            thread.recent_cpu_ns = self.recent(ours);
        }
        for (ours, cpu_ns) in left {
            // Gone meanwhile, or not.
            let name = fs::read_to_string(self.tasks.join(format!("{ours}/comm"))).unwrap_or_default();
            let mut thread = Thread::named(name.trim_end_matches('\n'), Kind::Native);
            thread.os_id = if is_namespace { inner_number(&self.tasks, ours) } else { Some(ours) };
            thread.cpu_ns = Some(cpu_ns);
            thread.recent_cpu_ns = self.recent(ours);
            if thread.name.is_empty() {
                "(ended)".clone_into(&mut thread.name);
            }
            dump.threads.push(thread);
        }
        let recent_ns = self.after.keys().filter_map(|thread| self.recent(*thread)).sum();
        let [first_ns, process_ns] = self.process_ns;
        let ended_ns = (process_ns - first_ns.min(process_ns)).saturating_sub(recent_ns);
        // It is counted in ticks, at both ends.
        let ended_ns = if ended_ns > 2 * NS_A_SECOND / process::ticks_per_second() { ended_ns } else { 0 };
        let threads_ns = self.after.values().sum();
        Cpu { window: self.window, recent_ns, ended_ns, threads_ns, process_ns }
    }

    /// What a thread used in the window; all that it ever has, if it began in it.
    fn recent(&self, thread: u32) -> Option<u64> {
        let after = *self.after.get(&thread)?;
        (!self.window.is_zero()).then(|| after.saturating_sub(self.before.get(&thread).copied().unwrap_or(0)))
    }
}

/// By thread, in ns.
fn times(tasks: &Path) -> BTreeMap<u32, u64> {
    numbers(tasks).filter_map(|thread| Some((thread, time(tasks, thread)?.ran_ns))).collect()
}

/// Of all threads.
fn numbers(tasks: &Path) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(tasks).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Kernels without scheduling statistics count in ticks.
fn time(tasks: &Path, thread: u32) -> Option<Scheduled> {
    if let Some(scheduled) = scheduled(tasks, thread) {
        return Some(scheduled);
    }
    let ran_ns = of_stat(&fs::read_to_string(tasks.join(format!("{thread}/stat"))).ok()?)?;
    Some(Scheduled { ran_ns, queued_ns: 0 })
}

/// proc(5): fields 14 and 15, user and system time in ticks.
fn of_stat(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(14 - 3).map(str::parse::<u64>);
    let ticks = fields.next()?.ok()?.checked_add(fields.next()?.ok()?)?;
    ticks.checked_mul(NS_A_SECOND / process::ticks_per_second())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_stat_file_has_ticks_behind_any_name() {
        let stat = "12 (a) b (c)) S 1 12 12 0 -1 4194560 1 2 3 4 50 70 7 8 20 0 30 0 987654 1 2 3";
        assert_eq!(of_stat(stat), Some(120 * (1_000_000_000 / process::ticks_per_second())));
        assert_eq!(of_stat("12 (cut"), None);
    }

    #[test]
    fn our_own_threads_have_times() {
        let times = window(std::process::id(), Duration::from_millis(1), &AtomicBool::new(false)).expect("we may look");
        assert!(times.after.contains_key(&std::process::id()));
        assert!(times.window >= Duration::from_millis(1));
    }

    /// A thread that ends when the sender is gone.
    fn waiting() -> (u32, mpsc::Sender<()>, thread::JoinHandle<()>) {
        let ((told, number), (end, until)) = (mpsc::channel(), mpsc::channel());
        let thread = thread::spawn(move || {
            told.send(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()).expect("it is waited for");
            until.recv().unwrap_or_default();
        });
        (number.recv().expect("it runs"), end, thread)
    }

    #[test]
    fn threads_that_come_and_go_are_read_again_and_again() {
        let mut readings = Readings::of(&TargetHost::ourselves().expect("we are there"));
        let (number, end, thread) = waiting();
        let first = readings.now();
        assert!(first.threads.contains_key(&number));
        assert!(readings.tasks.contains_key(&number));
        let again = readings.now();
        assert!(again.threads[&number].ran_ns >= first.threads[&number].ran_ns);
        drop(end);
        thread.join().expect("it ends");
        // The kernel takes it away a moment after that.
        while Path::new(&format!("/proc/self/task/{number}")).exists() {
            thread::yield_now();
        }
        assert!(!readings.now().threads.contains_key(&number));
        assert!(!readings.tasks.contains_key(&number));
    }
}
