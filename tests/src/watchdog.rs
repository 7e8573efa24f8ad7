//! A trial that hangs is named, with what its processes are doing, and ends all: waited for in vain, it would hide every other's result. Those that took
//! longest are named in the end.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::patience::{LOOK, Patience};

/// Several times what the longest takes on a machine that is not busy.
const LIMIT: Duration = Duration::from_secs(600);
/// What a test program ends with that has failed.
const FAILED: i32 = 101;

/// Trials that are running.
static RUNNING: Mutex<BTreeMap<String, Patience>> = Mutex::new(BTreeMap::new());
/// What those that have ended took.
static TOOK: Mutex<Vec<(Duration, String)>> = Mutex::new(Vec::new());

/// A trial, for as long as it runs.
#[derive(Debug)]
pub(crate) struct Watched {
    name: String,
    begun: Instant,
}

impl Watched {
    pub(crate) fn begin(name: String) -> Watched {
        if let Ok(mut running) = RUNNING.lock() {
            running.insert(name.clone(), Patience::of(LIMIT));
        }
        Watched { name, begun: Instant::now() }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Ok(mut running) = RUNNING.lock() {
            running.remove(&self.name);
        }
        if let Ok(mut took) = TOOK.lock() {
            took.push((self.begun.elapsed(), std::mem::take(&mut self.name)));
        }
    }
}

/// Begins to watch.
pub(crate) fn start() {
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(LOOK);
            let mut running = RUNNING.lock().expect("nobody panics with it");
            let hanging: Vec<&String> =
                running.iter_mut().filter_map(|(name, patience)| (!patience.lasts()).then_some(name)).collect();
            if !hanging.is_empty() {
                let ours = descendants(std::process::id());
                eprintln!("\nno end of {hanging:?}; what was started and runs:");
                ours.iter().for_each(|pid| eprintln!("{}", described(*pid)));
                // From the youngest on: nobody starts another when one has gone.
                for pid in ours.into_iter().rev().filter_map(|pid| Pid::from_raw(pid.cast_signed())) {
                    // One that has just ended is fine too.
                    let _ = kill_process(pid, Signal::KILL);
                }
                std::process::exit(FAILED);
            }
        }
    });
}

/// Says what the longest took.
pub(crate) fn tell_longest() {
    const TOLD: usize = 15;
    let mut took = std::mem::take(&mut *TOOK.lock().expect("nobody panics with it"));
    took.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
    println!("The longest, in seconds:");
    took.iter().take(TOLD).for_each(|(took, name)| println!("{:8.1} {name}", took.as_secs_f64()));
}

/// Processes that this one has started, and those that they have.
fn descendants(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(of) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the name, which may have anything in it, and the state.
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// Its id, what it was started with, and in what each of its threads waits.
fn described(pid: u32) -> String {
    let read = |file: String| fs::read_to_string(file).unwrap_or_default();
    let command = read(format!("/proc/{pid}/cmdline")).replace('\0', " ");
    let mut threads: BTreeMap<(String, String), usize> = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let of = |file: &str| fs::read_to_string(task.path().join(file)).unwrap_or_default().trim().to_owned();
        *threads.entry((of("comm"), of("wchan"))).or_default() += 1;
    }
    let threads: Vec<String> = threads.iter().map(|((name, wait), count)| format!("{count} {name} {wait}")).collect();
    format!("{pid} {command}\n  {}", threads.join(", "))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_was_started_is_found_and_told_of() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo; read line; true"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a shell");
        // Before that the kernel may not have what it was started with.
        let mut line = [0];
        child.stdout.take().expect("a pipe").read_exact(&mut line).expect("a line");
        let own = descendants(std::process::id());
        assert!(own.contains(&child.id()) && !own.contains(&std::process::id()), "{own:?}");
        assert!(described(child.id()).contains("read line"), "{}", described(child.id()));
        drop(child.stdin.take());
        child.wait().expect("our own child");
        assert!(!descendants(std::process::id()).contains(&child.id()));
    }
}
