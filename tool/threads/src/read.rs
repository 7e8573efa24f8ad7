//! HotSpot's own thread dump, as `threaddump` of its attach protocol and `jcmd Thread.print` write it: one text, taken at one safepoint.
//!
//! The format is nowhere specified and hardly changes: JDK 11 to 25 differ in what a header has and in single lines. So whatever is
//! not understood is kept, with its thread ([`Thread::notes`](super::Thread::notes)) or apart ([`Dump::unread`]), and never an error.

use rustc_hash::FxHashSet;

use headwater_terms::pattern::stable_name;

use super::header::{self, number};
use super::{Dump, FoundWait, Frame, Kind, LockIndex, LockKey, Owned, State, Thread, Wait, WaitKind};

/// Lines that a thread's name may have at most, before what begins like a thread is taken for something else.
const LONGEST_NAME: usize = 64;
const SMR: &str = "Threads class SMR info:";
const DEADLOCK: &str = "Found one Java-level deadlock:";
const DEADLOCK_STACKS: &str = "Java stack information for the threads listed above:";
const CLASS_MONITOR: &str = "waiting on the Class initialization monitor for ";

/// Reads a dump.
pub fn read(text: &str) -> Dump {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut reader = Reader { threads: addresses(&lines), ..Reader::default() };
    reader.last_thread =
        lines.iter().rposition(|line| tid(line).is_some_and(|tid| reader.threads.contains(&tid))).unwrap_or(0);
    let mut at = 0;
    while at < lines.len() {
        at = reader.step(&lines, at);
    }
    reader.end_thread();
    name_waited(&mut reader.dump);
    reader.dump
}

/// Finds what threads wait at whose JVM does not say it: of a compiled `Object.wait` HotSpot has no object to tell, while the frames of its callers have
/// their monitors, the one that is waited at among them.
fn name_waited(dump: &mut Dump) {
    let monitors = |thread: &Thread| -> FxHashSet<LockIndex> {
        thread.owned.iter().filter(|owned| owned.frame.is_some()).map(|owned| owned.lock).collect()
    };
    let set = |thread: &mut Thread, lock: LockIndex| {
        if let Some(wait) = &mut thread.wait {
            wait.lock = Some(lock);
        }
        settle(thread);
    };
    let mut several = Vec::new();
    for (at, thread) in dump.threads.iter_mut().enumerate().filter(|(_, thread)| thread.waits_at_something()) {
        if let Some(wait) = thread.wait.as_mut().filter(|_| thread.state == State::Blocked) {
            wait.kind = WaitKind::Reenter;
        }
        // Who waits at a monitor has it.
        let held = monitors(thread);
        match held.len() {
            0 => {}
            1 => held.into_iter().for_each(|lock| set(thread, lock)),
            _ => several.push((at, held)),
        }
    }
    let elsewhere: FxHashSet<LockIndex> =
        dump.threads.iter().filter(|thread| !thread.waits_at_something()).flat_map(monitors).collect();
    for (at, held) in several {
        // What another thread has now is what this one has left.
        let mut left = held.intersection(&elsewhere).copied();
        if let (Some(lock), None) = (left.next(), left.next()) {
            set(&mut dump.threads[at], lock);
        }
    }
}

/// The JVM's list of its own structures for Java threads: what tells a thread from a name that looks like one.
fn addresses(lines: &[&str]) -> FxHashSet<u64> {
    let Some(begin) = lines.iter().position(|line| *line == SMR) else { return FxHashSet::default() };
    let list = lines[begin + 1..].iter().take_while(|line| !line.starts_with('}'));
    let words = list.flat_map(|line| line.split([',', ' ', '{', '\t']));
    words.filter_map(|word| number(word.trim())).collect()
}

fn tid(line: &str) -> Option<u64> {
    let (_, behind) = line.rsplit_once(" tid=")?;
    number(behind.split(' ').next()?)
}

#[derive(Default)]
struct Reader {
    dump: Dump,
    threads: FxHashSet<u64>,
    /// The last line that begins a Java thread: behind it the JVM's own follow, with names of its own.
    last_thread: usize,
    current: Option<Thread>,
    /// The virtual thread on the current one, if its frames follow.
    mounted: Option<Thread>,
    in_synchronizers: bool,
}

impl Reader {
    /// Understands the line at `at`, and some that belong to it; where the next one is.
    fn step(&mut self, lines: &[&str], at: usize) -> usize {
        let line = lines[at];
        if line.starts_with('"')
            && let Some((thread, next)) = self.begins_thread(lines, at)
        {
            self.end_thread();
            self.current = Some(thread);
            return next;
        }
        if line == DEADLOCK {
            self.end_thread();
            return self.deadlock(lines, at + 1);
        }
        if line == SMR {
            // Lists of threads that have ended may follow, up to a blank line.
            let length = lines[at..].iter().position(|line| line.is_empty());
            return length.map_or(at + 1, |length| at + length);
        }
        if line.is_empty() {
            return at + 1;
        }
        if self.current.is_some() {
            if line.starts_with([' ', '\t']) {
                self.of_thread(line);
                return at + 1;
            }
            self.end_thread();
        }
        self.of_dump(line);
        at + 1
    }

    /// The thread that begins here, and where its other lines are.
    fn begins_thread(&self, lines: &[&str], at: usize) -> Option<(Thread, usize)> {
        let mut header = String::new();
        for (offset, line) in lines[at..].iter().take(LONGEST_NAME).enumerate() {
            if offset > 0 {
                header.push('\n');
            }
            header.push_str(line);
            if tid(line).is_none() {
                continue;
            }
            let Some((thread, address)) = header::parse(&header) else { continue };
            let is_one = match thread.kind {
                Kind::Vm => self.threads.is_empty() || at > self.last_thread,
                _ => self.threads.is_empty() || self.threads.contains(&address),
            };
            if is_one {
                return Some((thread, at + offset + 1));
            }
        }
        None
    }

    fn end_thread(&mut self) {
        self.in_synchronizers = false;
        for mut thread in self.current.take().into_iter().chain(self.mounted.take()) {
            settle(&mut thread);
            self.dump.threads.push(thread);
        }
    }

    fn of_dump(&mut self, line: &str) {
        if let Some(vm) = line.strip_prefix("Full thread dump ") {
            self.dump.vm = vm.trim_end_matches(':').to_owned();
        } else if line.starts_with("JNI global ref") {
            self.dump.is_whole = true;
        } else if !is_known(line) {
            self.dump.unread.push(line.to_owned());
        }
    }

    /// An indented line.
    fn of_thread(&mut self, line: &str) {
        let text = line.trim_start();
        let Some(carrier) = &mut self.current else { return };
        if let Some(state) = text.strip_prefix("java.lang.Thread.State: ") {
            carrier.state = State::of(state.split(' ').next().unwrap_or(state));
            return;
        }
        if let Some(id) = text.strip_prefix("Carrying virtual thread #") {
            carrier.mount = id.trim().parse().ok();
            return;
        }
        if let Some(id) = text.strip_prefix("Mounted virtual thread #") {
            let mut mounted = Thread::named("", Kind::Virtual);
            mounted.java_id = id.trim().parse().ok();
            mounted.mount = carrier.java_id;
            self.mounted = Some(mounted);
            return;
        }
        if text == "Locked ownable synchronizers:" {
            self.in_synchronizers = true;
            return;
        }
        let is_understood = match (text.strip_prefix("at "), text.strip_prefix("- ")) {
            (Some(frame), _) => {
                let thread = self.mounted.as_mut().unwrap_or(carrier);
                thread.stack.push(frame_of(frame));
                true
            }
            (None, Some("None")) => true,
            (None, Some(lock)) if self.in_synchronizers => match object(&mut self.dump, lock) {
                Some(lock) => {
                    carrier.owned.push(Owned { lock, frame: None });
                    true
                }
                None => false,
            },
            (None, Some(lock)) => lock_line(&mut self.dump, self.mounted.as_mut().unwrap_or(carrier), lock),
            _ => false,
        };
        if !is_understood && let Some(thread) = self.mounted.as_mut().or(self.current.as_mut()) {
            thread.notes.push(text.to_owned());
        }
    }

    /// A deadlock that the JVM has found: a waiting thread and its lock, again and again, then their stacks once more.
    fn deadlock(&mut self, lines: &[&str], begin: usize) -> usize {
        let mut found = Vec::new();
        let mut name: Option<String> = None;
        let mut at = begin;
        while at < lines.len() && lines[at] != DEADLOCK_STACKS && lines[at] != DEADLOCK {
            let line = lines[at];
            at += 1;
            if let Some(begun) = &mut name {
                // A name may be of several lines.
                if let Some(name) = begun.strip_prefix('"').and_then(|rest| rest.strip_suffix("\":")) {
                    found.push(FoundWait { name: name.to_owned(), address: waited_for(line) });
                } else {
                    begun.push('\n');
                    begun.push_str(line);
                    continue;
                }
                name = None;
            } else if line.starts_with('"') {
                name = Some(line.to_owned());
            }
        }
        if !found.is_empty() {
            self.dump.found.push(found);
        }
        // The stacks are those that were shown already.
        let next = lines[at..].iter().position(|line| *line == DEADLOCK);
        next.map_or(lines.len(), |next| at + next)
    }
}

/// Above the title stands the time, and `jcmd`'s pid.
fn is_known(line: &str) -> bool {
    line.starts_with("Found ") || line.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | ':' | ' '))
}

/// `waiting to lock monitor 0x.. (object 0x.., a X),` and `waiting for ownable synchronizer 0x.., (a X),`.
fn waited_for(line: &str) -> Option<u64> {
    let behind = ["(object ", "ownable synchronizer "].iter().find_map(|before| line.split_once(before))?.1;
    number(behind.split(',').next()?)
}

/// What its lock lines mean together: a monitor that is waited at is not held.
fn settle(thread: &mut Thread) {
    if let Some(Wait { kind: WaitKind::Notification | WaitKind::Reenter, lock: Some(lock), .. }) = thread.wait {
        thread.owned.retain(|owned| owned.lock != lock || owned.frame.is_none());
    }
    if thread.wait.is_none() && waits_for_a_class(thread) {
        thread.wait = Some(Wait { kind: WaitKind::Initialisation, lock: None, frame: 0 });
    }
}

/// A thread that waits for a class's initialisation runs, by its Java state, and waits, by the JVM's; JDK 11 says no more.
fn waits_for_a_class(thread: &Thread) -> bool {
    let waits_in_java = |frame: &Frame| frame.method.starts_with("java.lang.Object.wait");
    thread.state == State::Runnable
        && thread.doing == "in Object.wait()"
        && thread.stack.first().is_some_and(|top| !waits_in_java(top))
}

/// What stands behind `- ` below a frame; whether it was understood.
fn lock_line(dump: &mut Dump, thread: &mut Thread, text: &str) -> bool {
    let Some(frame) = thread.stack.len().checked_sub(1) else { return false };
    if let Some(class) = text.strip_prefix(CLASS_MONITOR) {
        let lock = dump.locks.of(LockKey::Initialisation(class.to_owned()), class);
        thread.wait = Some(Wait { kind: WaitKind::Initialisation, lock: Some(lock), frame });
        return true;
    }
    if let Some(object_text) = text.strip_prefix("locked ") {
        let Some(lock) = object(dump, object_text) else { return false };
        thread.owned.push(Owned { lock, frame: Some(frame) });
        return true;
    }
    if text.starts_with("eliminated ") {
        // The compiler has found that nobody else can have it.
        return true;
    }
    let kinds = [
        ("waiting to lock ", WaitKind::Enter),
        ("waiting to re-lock in wait() ", WaitKind::Reenter),
        ("waiting on ", WaitKind::Notification),
        ("parking to wait for ", WaitKind::Park),
    ];
    let Some((object_text, kind)) = kinds.iter().find_map(|(begin, kind)| Some((text.strip_prefix(begin)?, *kind)))
    else {
        return false;
    };
    let lock = object(dump, object_text);
    match (kind, thread.state, &mut thread.wait) {
        // JDK 11 says so of the frame that has the monitor, whether it is to be entered again yet or not.
        (WaitKind::Reenter, state, Some(wait)) if state != State::Blocked => wait.lock = wait.lock.or(lock),
        (WaitKind::Reenter, state, None) if state != State::Blocked => {
            thread.wait = Some(Wait { kind: WaitKind::Notification, lock, frame });
        }
        (_, _, wait) => *wait = Some(Wait { kind, lock, frame }),
    }
    true
}

/// `<0x000000069ec1b0f0> (a java.lang.Object)`.
fn object(dump: &mut Dump, text: &str) -> Option<LockIndex> {
    let (address, class) = text.trim_start().strip_prefix('<')?.split_once('>')?;
    let address = number(address)?;
    let class = class.trim().trim_start_matches("(a ").trim_end_matches(')');
    Some(dump.locks.of(LockKey::Address(address), class))
}

/// `a.b.C.m(module@version/C.java:12)`.
fn frame_of(text: &str) -> Frame {
    let (method, source) = text.rsplit_once('(').unwrap_or((text, ")"));
    let source = source.trim_end_matches(')');
    let source = source.rsplit_once('/').map_or(source, |(_, source)| source);
    Frame { method: stable_name(method).into_owned(), source: source.to_owned() }
}
