//! What the JVM tells of virtual threads, by `Thread.dump_to_file -format=json` (JDK 21 and later).
//!
//! HotSpot's own dump has those virtual threads at most that are on a carrier. This one has all, one after the other, not at one
//! moment; and since JDK 25 or so their monitors, by identity hash codes where the other has addresses. Platform threads are in both,
//! which says what object is which. Owners of `java.util.concurrent` locks are in neither, if they are virtual threads.

use headwater_terms::pattern::stable_name;
use rustc_hash::FxHashMap;
use serde::Deserialize;

use super::{Dump, Frame, Kind, LockIndex, LockKey, Owned, State, Thread, Wait, WaitKind};

#[derive(Deserialize)]
struct File {
    #[serde(rename = "threadDump")]
    dump: Containers,
}

#[derive(Deserialize)]
struct Containers {
    #[serde(rename = "threadContainers", default)]
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    #[serde(default)]
    threads: Vec<Told>,
}

/// A thread, as the JVM tells of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    tid: Id,
    #[serde(default)]
    name: String,
    /// From JDK 25 on.
    #[serde(rename = "virtual")]
    is_virtual: Option<bool>,
    state: Option<String>,
    carrier: Option<Id>,
    blocked_on: Option<String>,
    waiting_on: Option<String>,
    park_blocker: Option<Blocker>,
    #[serde(default)]
    monitors_owned: Vec<Monitors>,
    #[serde(default)]
    stack: Vec<String>,
}

/// A number, which some JDKs write as a string.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Id {
    Number(u64),
    Text(String),
}

impl Id {
    fn number(&self) -> Option<u64> {
        match self {
            Id::Number(number) => Some(*number),
            Id::Text(text) => text.parse().ok(),
        }
    }
}

#[derive(Deserialize)]
struct Blocker {
    object: String,
}

/// What a thread has entered in one frame. Locks that the compiler has found to be nobody else's are null.
#[derive(Deserialize)]
struct Monitors {
    depth: usize,
    #[serde(default)]
    locks: Vec<Option<String>>,
}

impl Told {
    /// How it waits, and for what.
    fn wait(&self) -> Option<(WaitKind, &str)> {
        let blocked = self.blocked_on.as_deref().map(|on| (WaitKind::Enter, on));
        let waiting = || self.waiting_on.as_deref().map(|on| (WaitKind::Notification, on));
        let parked = || self.park_blocker.as_ref().map(|blocker| (WaitKind::Park, blocker.object.as_str()));
        blocked.or_else(waiting).or_else(parked)
    }

    /// The monitors that it holds, the innermost first; one that it waits at is not held.
    fn held(&self) -> impl Iterator<Item = (usize, &str)> {
        let waited = self.wait().map(|(_, on)| on);
        let all =
            self.monitors_owned.iter().flat_map(|at| at.locks.iter().flatten().map(|lock| (at.depth, lock.as_str())));
        all.filter(move |(_, lock)| Some(*lock) != waited)
    }

    fn is_virtual(&self) -> bool {
        self.is_virtual
            .unwrap_or_else(|| self.stack.last().is_some_and(|frame| frame.contains("java.lang.VirtualThread.run(")))
    }
}

/// Adds the virtual threads to the dump of the others.
///
/// # Errors
///
/// If it is not what the JVM writes.
pub fn add(dump: &mut Dump, json: &[u8]) -> Result<(), serde_json::Error> {
    let file: File = serde_json::from_slice(json)?;
    let by_id: FxHashMap<u64, usize> =
        dump.threads.iter().enumerate().filter_map(|(at, thread)| Some((thread.java_id?, at))).collect();
    let told = || file.dump.containers.iter().flat_map(|container| &container.threads);
    let known = |told: &Told| told.tid.number().and_then(|id| by_id.get(&id).copied());
    // What is which is found out first.
    for (told, at) in told().filter_map(|told| Some((told, known(told)?))) {
        identify(dump, at, told);
    }
    let carried = |(at, thread): (usize, &Thread)| Some((thread.mount.filter(|_| thread.kind == Kind::Java)?, at));
    let carriers: FxHashMap<u64, usize> = dump.threads.iter().enumerate().filter_map(carried).collect();
    let mut count = 0;
    for told in told().filter(|told| told.is_virtual()) {
        count += 1;
        match known(told) {
            // It is on a carrier, and its stack was in the other dump.
            Some(at) => {
                dump.threads[at].name.clone_from(&told.name);
                // Without a carrier it has left it since, and its state goes with another stack.
                let state = told.state.as_deref().filter(|_| told.carrier.is_some());
                dump.threads[at].state = state.map_or(State::Unknown, State::of);
            }
            None => {
                let mut thread = thread(dump, told);
                // JDK 21 says so of carriers only, and of these for which class the threads on them wait.
                if let Some(carrier) =
                    thread.java_id.and_then(|id| carriers.get(&id)).filter(|_| thread.mount.is_none())
                {
                    let carrier = &mut dump.threads[*carrier];
                    thread.mount = carrier.java_id;
                    thread.wait = carrier.wait.take().map(|wait| Wait { frame: 0, ..wait });
                }
                dump.threads.push(thread);
            }
        }
    }
    dump.virtual_threads = Some(count);
    Ok(())
}

/// Where both dumps saw a thread in the same place, its locks are the same.
fn identify(dump: &mut Dump, at: usize, told: &Told) {
    let thread = &dump.threads[at];
    let same_place =
        thread.stack.first().map(|top| &top.method) == told.stack.first().map(|top| frame(top).method).as_ref();
    let same_state = thread.kind == Kind::Virtual || told.state.as_deref() == Some(thread.state.name());
    if !same_place || !same_state {
        return;
    }
    let mut aliases: Vec<(String, LockIndex)> = Vec::new();
    if let (Some((_, identity)), Some(lock)) = (told.wait(), thread.wait.and_then(|wait| wait.lock))
        && is_of(dump, lock, identity)
    {
        aliases.push((identity.to_owned(), lock));
    }
    let ours = thread.owned.iter().filter(|owned| owned.frame.is_some()).map(|owned| owned.lock);
    let (ours, theirs): (Vec<LockIndex>, Vec<&str>) = (ours.collect(), told.held().map(|(_, lock)| lock).collect());
    if ours.len() == theirs.len() && ours.iter().zip(&theirs).all(|(lock, identity)| is_of(dump, *lock, identity)) {
        aliases.extend(theirs.iter().map(|identity| (*identity).to_owned()).zip(ours));
    }
    for (identity, lock) in aliases {
        dump.locks.alias(LockKey::Identity(identity), lock);
    }
}

/// Whether a lock is of the class that an identity has before its `@`.
fn is_of(dump: &Dump, lock: LockIndex, identity: &str) -> bool {
    let class = class_of(identity);
    let known = dump.locks[lock].class.as_str();
    // Of a class object, the other dump says of which.
    known == class || (class == "java.lang.Class" && known.starts_with("java.lang.Class for "))
}

fn class_of(identity: &str) -> &str {
    identity.rsplit_once('@').map_or(identity, |(class, _)| class)
}

/// A virtual thread that is only here.
fn thread(dump: &mut Dump, told: &Told) -> Thread {
    let mut lock = |identity: &str| dump.locks.of(LockKey::Identity(identity.to_owned()), class_of(identity));
    let mut thread = Thread::named(&*told.name, Kind::Virtual);
    thread.java_id = told.tid.number();
    thread.daemon = true;
    thread.mount = told.carrier.as_ref().and_then(Id::number);
    thread.state = told.state.as_deref().map_or(State::Unknown, State::of);
    thread.stack = told.stack.iter().map(|text| frame(text)).collect();
    thread.wait = told.wait().map(|(kind, on)| Wait { kind, lock: Some(lock(on)), frame: 0 });
    thread.owned = told.held().map(|(depth, on)| Owned { lock: lock(on), frame: Some(depth) }).collect();
    thread
}

/// `loader/module@version/a.b.C.m(C.java:12)`.
fn frame(text: &str) -> Frame {
    let (method, source) = text.rsplit_once('(').unwrap_or((text, ")"));
    // A hidden class has a `/` of its own, before its address.
    let end = method.find("/0x").unwrap_or(method.len());
    let begin = method[..end].rfind('/').map_or(0, |slash| slash + 1);
    Frame { method: stable_name(&method[begin..]).into_owned(), source: source.trim_end_matches(')').to_owned() }
}
