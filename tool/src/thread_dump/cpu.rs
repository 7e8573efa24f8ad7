//! What each thread of a process has used of the processors, by `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustc_hash::FxHashMap;

use super::Cpu;
use crate::attach::TargetHost;
use crate::cpu_share::{inner_number, scheduled};
use crate::decode::Scheduled;
use crate::jvm::process;
use crate::threads::{Dump, Kind, Thread};

/// An interruption is noticed within this time.
const STEP: Duration = Duration::from_millis(50);

/// CPU times of all threads at the end of a window, and what was used in it.
#[derive(Debug)]
pub(super) struct Times {
    tasks: PathBuf,
    window: Duration,
    before: BTreeMap<u32, u64>,
    after: BTreeMap<u32, u64>,
    process_ns: u64,
}

/// Reads CPU times at the beginning and the end of a window; `None` if they cannot be read.
pub(super) fn window(pid: u32, window: Duration, interrupted: &AtomicBool) -> Option<Times> {
    let tasks = PathBuf::from(format!("/proc/{pid}/task"));
    let begin = Instant::now();
    let before = if window.is_zero() { BTreeMap::new() } else { times(&tasks) };
    while begin.elapsed() < window && !interrupted.load(Ordering::Acquire) {
        thread::sleep(STEP.min(window.saturating_sub(begin.elapsed())));
    }
    let after = times(&tasks);
    let process_ns = fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|stat| of_stat(&stat))?;
    let window = if window.is_zero() { window } else { begin.elapsed() };
    (!after.is_empty()).then_some(Times { tasks, window, before, after, process_ns })
}

/// What all threads of a process have used up to a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    /// When, in ns since 1970.
    pub(crate) at_ns: i64,
    /// By thread; nobody counts how long threads stood in line where the kernel has no scheduling statistics.
    pub(crate) threads: BTreeMap<u32, Scheduled>,
    /// By all of it, threads that have ended included.
    pub(crate) process_ns: u64,
}

impl Reading {
    /// Now; nothing of a process that is gone.
    pub(crate) fn now(pid: u32) -> Reading {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let threads = all_scheduled(&PathBuf::from(format!("/proc/{pid}/task")));
        let process = fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|stat| of_stat(&stat));
        Reading {
            at_ns: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
            threads,
            process_ns: process.unwrap_or_default(),
        }
    }

    /// With threads by the numbers that they have in their own pid namespace; those that are gone have none.
    pub(crate) fn by_inner_numbers(&mut self, pid: u32) {
        let tasks = PathBuf::from(format!("/proc/{pid}/task"));
        let inner = |(ours, times): (u32, Scheduled)| Some((inner_number(&tasks, ours)?, times));
        self.threads = std::mem::take(&mut self.threads).into_iter().filter_map(inner).collect();
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
        Cpu { window: self.window, recent_ns, threads_ns: self.after.values().sum(), process_ns: self.process_ns }
    }

    /// What a thread used in the window; all that it ever has, if it began in it.
    fn recent(&self, thread: u32) -> Option<u64> {
        let after = *self.after.get(&thread)?;
        (!self.window.is_zero()).then(|| after.saturating_sub(self.before.get(&thread).copied().unwrap_or(0)))
    }
}

/// By thread, in ns.
fn times(tasks: &Path) -> BTreeMap<u32, u64> {
    all_scheduled(tasks).into_iter().map(|(thread, times)| (thread, times.ran_ns)).collect()
}

fn all_scheduled(tasks: &Path) -> BTreeMap<u32, Scheduled> {
    let entries = fs::read_dir(tasks).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter_map(|thread| Some((thread, time(tasks, thread)?))).collect()
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
    ticks.checked_mul(1_000_000_000 / process::ticks_per_second())
}

#[cfg(test)]
mod tests {
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
}
