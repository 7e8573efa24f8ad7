//! Asking a JVM for all its threads, through its attach mechanism alone: nothing is loaded into it and nothing in it is changed.
//!
//! 1. CPU times are read from `/proc` twice, a window apart.
//! 2. `threaddump -l -e`: all threads with their stacks and locks, at one safepoint. For the owners of `java.util.concurrent` locks
//!    (`-l`) the JVM looks through its whole heap meanwhile, so that is left out where much of it is used ([`Owners::Auto`]).
//! 3. If there may be virtual threads, `Thread.dump_to_file` through a pipe, so that nothing of it is ever on a disk.
//! 4. If a class is waited for that no stack shows being initialised, `VM.class_hierarchy`.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;

use crate::attach::{self, AttachError, SharedDir, TargetHost, jcmd};
use crate::jvm::Jvm;
use crate::report::units::plural;
use crate::threads::deadlocks::{Deadlock, deadlocks};
use crate::threads::waits::{Supertypes, WaitGraph, uninitialised};
use crate::threads::{Cpu, Dump, Kind, LockIndex, Taken, Thread, ThreadIndex, WaitKind, read, virtual_threads};

pub(crate) mod cpu;
pub(crate) mod heap;
pub(crate) mod pace;

/// What our directories' names in the target's /tmp begin with; its pid follows.
pub(crate) const DIRECTORY_PREFIX: &str = "headwater-threads-";
const PIPE: &str = "threads.json";
/// Of what the JVM says of virtual threads. Some thousand bytes each.
const MOST_BYTES: usize = 256 << 20;
/// For so long another tool is waited for that asks the same.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How long to wait when the pipe is empty.
const PAUSE: Duration = Duration::from_millis(1);
/// Of a dump's classes so many are asked for.
const MOST_CLASSES: usize = 16;
/// What is looked through for owners, unless it is said otherwise: some 60 ms, if it is full of small objects.
pub(crate) const MOST_HEAP: u64 = 256 << 20;

/// Whether the owners of `java.util.concurrent` locks are looked for in the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// Where that is quick.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct DumpOptions {
    /// For so long CPU times are measured before the dump; zero: not at all.
    pub window: Duration,
    /// Whether owners are looked for.
    pub owners: Owners,
}

/// Why there is no dump.
#[derive(Debug, thiserror::Error)]
pub enum DumpError {
    /// It cannot be asked.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// Its answer is none.
    #[error(
        "the JVM {pid} answered `threaddump` with something that is no thread dump: `{answer}`; is it a HotSpot JVM?"
    )]
    NoDump {
        /// The process.
        pid: u32,
        /// The answer's beginning.
        answer: String,
    },
    /// The user does not want it any more.
    #[error("interrupted before the threads were known")]
    Interrupted,
}

impl DumpError {
    /// The exit code of the command line contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            DumpError::Attach(error) => error.exit_code(),
            DumpError::NoDump { .. } => 1,
            DumpError::Interrupted => 130,
        }
    }
}

/// Takes a dump of all threads, unless `interrupt` is ready before.
pub(crate) async fn take_unless(
    jvm: Jvm,
    wanted: DumpOptions,
    interrupt: impl Future<Output = ()>,
) -> Result<Taken, DumpError> {
    let taken = until(interrupt, move |is_unwanted| take(&jvm, wanted, is_unwanted)).await;
    taken.unwrap_or(Err(DumpError::Interrupted))
}

/// Work that blocks, and that is told when `interrupt` is ready: what the JVM has been asked for is seen through, since nobody else would take it
/// from it. `None` if it has panicked, or the program is ending.
pub(crate) async fn until<T: Send + 'static>(
    interrupt: impl Future<Output = ()>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Option<T> {
    let is_over = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_over);
    let mut working = tokio::task::spawn_blocking(move || work(&seen));
    let done = tokio::select! {
        done = &mut working => done,
        () = interrupt => {
            is_over.store(true, Ordering::Release);
            working.await
        }
    };
    done.ok()
}

/// All threads by name, and nothing else of them.
pub(crate) fn names(jvm: &Jvm) -> Result<Vec<Thread>, DumpError> {
    plain(&TargetHost::of(jvm)?).map(|dump| dump.threads)
}

/// All threads with their stacks, by one question to the JVM: without owners of `java.util.concurrent` locks, and of virtual threads only
/// those that are on a carrier.
pub(crate) fn plain(host: &TargetHost) -> Result<Dump, DumpError> {
    ask(host, "-e").map(|(dump, _)| dump)
}

/// A dump, and its text.
fn ask(host: &TargetHost, options: &str) -> Result<(Dump, String), DumpError> {
    let text = attach::thread_dump(host, options)?;
    let dump = read::read(&text);
    if dump.threads.is_empty() {
        return Err(DumpError::NoDump { pid: host.pid(), answer: text.chars().take(80).collect() });
    }
    Ok((dump, text))
}

/// Takes a dump of all threads. Blocks for the window and as long as the JVM takes; `interrupted` ends it between two steps.
///
/// # Errors
///
/// If the JVM cannot be asked. What it does not tell of virtual threads or classes is a warning.
fn take(jvm: &Jvm, wanted: DumpOptions, interrupted: &AtomicBool) -> Result<Taken, DumpError> {
    let host = TargetHost::of(jvm)?;
    let mut warnings = Vec::new();
    // Opens the JVM's socket, if need be, before anything is measured.
    let heap = match jcmd(&host, "GC.heap_info") {
        Ok(info) => heap::used_bytes(&info),
        // Not every JVM has it.
        Err(AttachError::CommandFailed { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let with_owners = match wanted.owners {
        Owners::On => true,
        Owners::Off => false,
        Owners::Auto => heap.is_some_and(|used| used <= MOST_HEAP),
    };
    let times = cpu::window(host.pid(), wanted.window, interrupted);
    if interrupted.load(Ordering::Acquire) {
        return Err(DumpError::Interrupted);
    }
    let (mut dump, text) = ask(&host, if with_owners { "-l -e" } else { "-e" })?;
    if !dump.is_whole {
        warnings.push(
            "the JVM's dump has no end: it has more threads than it can tell of, and some are missing".to_owned(),
        );
    }
    let has_virtual = may_have_virtual(&dump);
    if has_virtual {
        add_virtual(&host, &mut dump, &mut warnings);
    }
    if interrupted.load(Ordering::Acquire) {
        return Err(DumpError::Interrupted);
    }
    let cpu = times.map(|times| times.put(&host, &mut dump));
    let supertypes = supertypes(&host, &dump);
    let (waits, deadlocks) = find(&dump, &supertypes);
    if !with_owners {
        say_owners(&dump, &waits, heap, &mut warnings);
    }
    say_virtual_owners(&dump, &waits, &mut warnings);
    let deadlocks = confirmed(&host, &text, &dump, deadlocks, &supertypes);
    Ok(Taken { pid: jvm.pid, main: jvm.main.clone(), dump, waits, deadlocks, cpu, warnings })
}

pub(crate) fn find(dump: &Dump, supertypes: &Supertypes) -> (WaitGraph, Vec<Deadlock>) {
    let waits = WaitGraph::of(dump, supertypes);
    let deadlocks = deadlocks(&waits);
    (waits, deadlocks)
}

/// The locks that have owners, which threads of a kind wait for and nobody is known to hold.
fn ownerless(dump: &Dump, waits: &WaitGraph, kind: Kind) -> FxHashSet<LockIndex> {
    let is_ownerless = |(at, thread): (usize, &Thread)| {
        let lock = thread.wait.filter(|wait| wait.kind == WaitKind::Park && thread.kind == kind)?.lock?;
        let is_owned = dump.locks[lock].class.starts_with("java.util.concurrent.locks.Reentrant");
        (is_owned && waits.blocker(ThreadIndex(at)).is_none()).then_some(lock)
    };
    dump.threads.iter().enumerate().filter_map(is_ownerless).collect()
}

/// No dump joins such locks of virtual threads with what others hold, or tells what those hold.
fn say_virtual_owners(dump: &Dump, waits: &WaitGraph, warnings: &mut Vec<String>) {
    let locks = ownerless(dump, waits, Kind::Virtual);
    if !locks.is_empty() {
        let count = plural(locks.len() as u64, "java.util.concurrent lock", "java.util.concurrent locks");
        warnings.push(format!(
            "who holds {count} that virtual threads wait for is not known, as the JVM does not tell: a deadlock that they take part in is not found"
        ));
    }
}

/// Says that the owners of some locks are not known, if any thread waits for one.
fn say_owners(dump: &Dump, waits: &WaitGraph, heap: Option<u64>, warnings: &mut Vec<String>) {
    let locks = ownerless(dump, waits, Kind::Java);
    if locks.is_empty() {
        return;
    }
    let count = plural(locks.len() as u64, "java.util.concurrent lock", "java.util.concurrent locks");
    let size = heap.map_or("a heap of unknown size".to_owned(), |used| format!("a heap of {} MiB", used >> 20));
    warnings.push(format!(
        "who holds {count} is not known: for that the JVM is stopped while it looks through {size}; --owners on has it do so"
    ));
}

/// From JDK 24 on a thread of the JDK's own tells; before, virtual threads may be there without a trace in the dump.
fn may_have_virtual(dump: &Dump) -> bool {
    let version =
        dump.vm.split_once('(').and_then(|(_, rest)| rest.split(['.', '+', '-', ' ']).next()?.parse::<u32>().ok());
    let has_sign = || {
        dump.threads.iter().any(|thread| {
            thread.kind == Kind::Virtual || thread.mount.is_some() || thread.name == "VirtualThread-unblocker"
        })
    };
    match version {
        Some(..=20) | None => false,
        Some(21..=23) => true,
        Some(24..) => has_sign(),
    }
}

fn add_virtual(host: &TargetHost, dump: &mut Dump, warnings: &mut Vec<String>) {
    let added = ask_virtual(host).and_then(|json| {
        virtual_threads::add(dump, &json).map_err(|error| format!("what it said of them cannot be read ({error})"))
    });
    if let Err(why) = added {
        warnings.push(format!("virtual threads are not known: {why}"));
    }
}

/// What the JVM writes of all threads, virtual ones too.
fn ask_virtual(host: &TargetHost) -> Result<Vec<u8>, String> {
    let directory = directory(host).map_err(|error| error.to_string())?;
    let mut pipe = directory.create_pipe(PIPE).map_err(|error| error.to_string())?;
    let command = format!("Thread.dump_to_file -overwrite -format=json {}/{PIPE}", directory.there());
    thread::scope(|scope| {
        let answer = scope.spawn(|| jcmd(host, &command));
        let mut json = Vec::new();
        let read = drain(&mut pipe, &mut json, || answer.is_finished());
        // Whoever writes on gets an error and stops.
        drop(pipe);
        let answer = answer.join().map_err(|_| "asking for them failed".to_owned())?;
        match (read, answer) {
            (Err(error), _) => Err(error.to_string()),
            (Ok(()), Err(error)) => Err(error.to_string()),
            (Ok(()), Ok(answer)) if json.is_empty() || !answer.contains("Created") => {
                Err(format!("the JVM said `{}`", answer.split_whitespace().collect::<Vec<_>>().join(" ")))
            }
            (Ok(()), Ok(_)) => Ok(json),
        }
    })
}

/// Where the pipe is. Another tool that asks for the same is waited for.
fn directory(host: &TargetHost) -> Result<SharedDir, AttachError> {
    let name = format!("{DIRECTORY_PREFIX}{}", host.pid());
    let begin = Instant::now();
    loop {
        match host.create_dir_or_another(&name) {
            Err(AttachError::InUse { .. }) if begin.elapsed() < LONGEST_WAIT => thread::sleep(10 * PAUSE),
            created => return created,
        }
    }
}

/// Reads a pipe until all has been written.
fn drain(pipe: &mut impl Read, into: &mut Vec<u8>, is_written: impl Fn() -> bool) -> io::Result<()> {
    let mut chunk = vec![0; 1 << 16];
    loop {
        // In this order: what is written before the answer is in the pipe by then.
        let over = is_written();
        match pipe.read(&mut chunk) {
            Ok(0) if over => return Ok(()),
            Ok(0) => thread::sleep(PAUSE),
            Ok(count) => into.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !over => thread::sleep(PAUSE),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if into.len() > MOST_BYTES {
            return Err(io::Error::other(format!("there are more than {} MiB of them", MOST_BYTES >> 20)));
        }
    }
}

/// What classes extend and implement that are waited for, and that no stack shows being initialised.
fn supertypes(host: &TargetHost, dump: &Dump) -> Supertypes {
    let classes = uninitialised(dump).into_iter().take(MOST_CLASSES);
    let known = classes.filter_map(|class| {
        // Quoted: what a class's name may have, and what ends an argument.
        let plain = |c: char| !c.is_whitespace() && !matches!(c, '"' | '\'' | ',' | '=');
        let answer = class.chars().all(plain).then(|| jcmd(host, &format!("VM.class_hierarchy -i {class}")).ok())??;
        Some((class.to_owned(), supertypes_of(class, &answer)))
    });
    known.collect()
}

/// From `|  |--a.b.C/0x..` and `|  implements a.b.I/0x.. (declared intf)`: all but the class itself.
pub(crate) fn supertypes_of(class: &str, answer: &str) -> FxHashSet<String> {
    let names = answer.lines().filter_map(|line| {
        let text = line.trim_start_matches(['|', ' ', '-']);
        let text = text.strip_prefix("implements ").unwrap_or(text);
        text.split_once("/0x").or_else(|| text.split_once("/null")).map(|(name, _)| name)
    });
    names.filter(|name| *name != class).map(str::to_owned).collect()
}

/// What is said of virtual threads is not of one moment: their deadlocks are those that are still there when it is asked again.
fn confirmed(
    host: &TargetHost,
    text: &str,
    dump: &Dump,
    found: Vec<Deadlock>,
    supertypes: &Supertypes,
) -> Vec<Deadlock> {
    let ids = |dump: &Dump, deadlock: &Deadlock| -> Vec<Option<u64>> {
        deadlock.waits.iter().map(|edge| dump[edge.from].java_id).collect()
    };
    let has_virtual = |deadlock: &Deadlock| deadlock.waits.iter().any(|edge| dump[edge.from].kind == Kind::Virtual);
    if !found.iter().any(has_virtual) {
        return found;
    }
    let mut again = read::read(text);
    let Ok(json) = ask_virtual(host) else { return found };
    if virtual_threads::add(&mut again, &json).is_err() {
        return found;
    }
    let (_, standing) = find(&again, supertypes);
    let standing: FxHashSet<Vec<Option<u64>>> = standing.iter().map(|deadlock| ids(&again, deadlock)).collect();
    found.into_iter().filter(|deadlock| !has_virtual(deadlock) || standing.contains(&ids(dump, deadlock))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supertypes_are_classes_and_interfaces_of_all_levels() {
        let answer = "java.lang.Object/null\n|--a.Base/0x00007f09f02d3380\n|  implements a.First/0x1 (declared intf)\n\
                      |  |--a.Derived/0x2\n|  |  implements a.First/0x1 (inherited intf)\n";
        let mut names: Vec<String> = supertypes_of("a.Derived", answer).into_iter().collect();
        names.sort();
        assert_eq!(names, ["a.Base", "a.First", "java.lang.Object"]);
        assert!(supertypes_of("a.B", "No class found\n").is_empty());
    }

    #[test]
    fn a_pipe_is_read_until_its_writer_is_done() {
        let mut out = Vec::new();
        drain(&mut &b"all of it"[..], &mut out, || true).expect("a slice can be read");
        assert_eq!(out, b"all of it");
    }

    #[test]
    fn only_jvms_that_can_have_virtual_threads_are_asked_for_them() {
        let of = |vm: &str, thread: &str| {
            let mut dump = Dump { vm: vm.to_owned(), ..Dump::default() };
            dump.threads.push(crate::threads::Thread::named(thread, Kind::Java));
            may_have_virtual(&dump)
        };
        assert!(!of("OpenJDK 64-Bit Server VM (17.0.15+6-Debian mixed mode)", "VirtualThread-unblocker"));
        assert!(of("OpenJDK 64-Bit Server VM (21.0.8+9-LTS mixed mode)", "main"));
        assert!(!of("OpenJDK 64-Bit Server VM (25.0.3+9-LTS mixed mode)", "main"));
        assert!(of("OpenJDK 64-Bit Server VM (25-ea+9 mixed mode)", "VirtualThread-unblocker"));
        assert!(!of("", "main"));
    }
}
