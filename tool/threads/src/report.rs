//! All threads of a JVM, for people: deadlocks, who holds others up, and each stack once. [`json`] has the same for programs, [`page`] for browsers.

use std::io::{self, Write};

use rustc_hash::FxHashMap;

use crate::Taken;
use crate::blockers::{Blocker, End, blockers};
use crate::deadlocks::Deadlock;
use crate::doing::{doing, doing_each};
use crate::groups::{Group, family, groups};
use crate::waits::{Certainty, holders};
use crate::{Dump, Kind, LockIndex, Thread, ThreadIndex, WaitKind};
use headwater_profile::report::text::Style;
use headwater_profile::report::text::lines::{Emphasis, Lines};
use headwater_profile::report::units::{self, plural, time};
use headwater_terms::printable::{printable, printable_lines};

pub mod json;
pub mod page;

/// Names of a group that are shown.
const NAMES: usize = 3;
/// Of those whom others wait for, so many are shown.
const BLOCKERS: usize = 20;

/// How much of it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Depth(pub Option<usize>);

/// Writes it.
///
/// # Errors
///
/// Those of the writer.
pub fn write_text(taken: &Taken, depth: Depth, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let groups = groups(&taken.dump);
    let mut text = Text { taken, depth, lines: Lines { style, out } };
    text.title(&groups)?;
    for (number, deadlock) in taken.deadlocks.iter().enumerate() {
        text.deadlock(number + 1, deadlock)?;
    }
    text.blockers()?;
    text.stacks(&groups)?;
    text.others(&groups)?;
    text.notes()
}

struct Text<'a, W> {
    taken: &'a Taken,
    depth: Depth,
    lines: Lines<'a, W>,
}

impl<W: Write> Text<'_, W> {
    fn title(&mut self, groups: &[Group]) -> io::Result<()> {
        let Taken { pid, main, dump, cpu, .. } = self.taken;
        let (main, vm) = (printable(main), printable(&dump.vm));
        writeln!(self.lines.out, "{main} (pid {pid}, {vm})")?;
        let of_virtual = |is: fn(&Thread) -> bool| dump.threads.iter().filter(|thread| is(thread)).count() as u64;
        let all = plural(dump.threads.len() as u64, "thread", "threads");
        let stacks = groups.iter().filter(|group| !dump[group.threads[0]].stack.is_empty()).count();
        write!(self.lines.out, "{all}, {}", plural(stacks as u64, "different stack", "different stacks"))?;
        if let Some(count) = dump.virtual_threads {
            let [parked, pinned] = [Thread::is_parked, Thread::is_pinned].map(|is| units::count(of_virtual(is)));
            let count = plural(count as u64, "virtual thread", "virtual threads");
            write!(self.lines.out, "; {count}: {parked} parked, {pinned} pinned")?;
        }
        writeln!(self.lines.out)?;
        let Some(cpu) = cpu else { return Ok(()) };
        write!(self.lines.out, "CPU ")?;
        if !cpu.window.is_zero() {
            let all_ns = cpu.recent_ns + cpu.ended_ns;
            let share = 100.0 * all_ns as f64 / cpu.window.as_nanos() as f64;
            let window = time(cpu.window.as_nanos() as u64);
            write!(self.lines.out, "in the last {window}: {} ({share:.0} %)", time(all_ns))?;
            if cpu.ended_ns > 0 {
                write!(self.lines.out, ", {} of it by threads that have ended", time(cpu.ended_ns))?;
            }
            write!(self.lines.out, "; ")?;
        }
        writeln!(self.lines.out, "since the start: {}", time(cpu.process_ns))
    }

    fn deadlock(&mut self, number: usize, deadlock: &Deadlock) -> io::Result<()> {
        let dump = &self.taken.dump;
        let likely = if deadlock.certainty == Certainty::Likely { ", likely" } else { "" };
        let heading = format!("deadlock {number}{likely}: {} wait for each other", threads(deadlock.waits.len()));
        writeln!(self.lines.out)?;
        self.lines.line("", &heading, Emphasis::Bold)?;
        for edge in &deadlock.waits {
            let held = if edge.kind == WaitKind::Initialisation { "initialised by" } else { "held by" };
            self.lines.line("  ", &named(dump, edge.from), Emphasis::None)?;
            if let Some(place) = place(&dump[edge.from]) {
                self.lines.line("      at ", &place, Emphasis::None)?;
            }
            self.lines.line("      wants ", &lock(dump, edge.lock), Emphasis::None)?;
            self.lines.line("      ", &format!("{held} {}", named(dump, edge.to)), Emphasis::None)?;
        }
        Ok(())
    }

    fn blockers(&mut self) -> io::Result<()> {
        let dump = &self.taken.dump;
        let blockers = blockers(&self.taken.waits, &self.taken.deadlocks);
        if blockers.is_empty() {
            return Ok(());
        }
        writeln!(self.lines.out)?;
        self.lines.line("", "who holds others up", Emphasis::Bold)?;
        for blocker in blockers.iter().take(BLOCKERS) {
            self.lines.line("  ", &holds_up(dump, blocker), Emphasis::None)?;
            if let End::Thread(thread) = blocker.end
                && let Some(place) = place(&dump[thread])
            {
                self.lines.line("      at ", &place, Emphasis::None)?;
            }
            for wanted in blocker.wanted.iter().take(BLOCKERS) {
                let whose = match blocker.end {
                    End::Thread(thread) if thread == wanted.owner => String::new(),
                    _ => format!(" of {}", named(dump, wanted.owner)),
                };
                let said = format!("{} {}{whose}", wait_for(wanted.waiting), lock(dump, wanted.lock));
                self.lines.line("      ", &said, Emphasis::None)?;
            }
        }
        if let Some(more) = blockers.len().checked_sub(BLOCKERS + 1) {
            writeln!(self.lines.out, "  {} more of them are in the JSON", more + 1)?;
        }
        Ok(())
    }

    /// The threads that have stacks.
    fn stacks(&mut self, groups: &[Group]) -> io::Result<()> {
        let dump = &self.taken.dump;
        let holders = holders(dump, &self.taken.waits);
        for group in groups.iter().filter(|group| !dump[group.threads[0]].stack.is_empty()) {
            let first = &dump[group.threads[0]];
            writeln!(self.lines.out)?;
            self.lines.line("", &heading(dump, group), Emphasis::Bold)?;
            self.lines.line("  ", &self.state(group, first), Emphasis::None)?;
            let shown = self.depth.0.unwrap_or(usize::MAX);
            for (at, frame) in first.stack.iter().enumerate().take(shown) {
                self.lines.line("    at ", &frame.to_string(), Emphasis::None)?;
                for said in locks_at(dump, group, at, &holders) {
                    self.lines.line("      - ", &said, Emphasis::None)?;
                }
            }
            if let Some(more) = first.stack.len().checked_sub(shown).filter(|more| *more > 0) {
                writeln!(self.lines.out, "    ... {}", plural(more as u64, "more frame", "more frames"))?;
            }
            for owned in first.owned.iter().filter(|owned| owned.frame.is_none()) {
                let said = format!("holds {}", of_group(dump, group, owned.lock));
                self.lines.line("    - ", &said, Emphasis::None)?;
            }
            for note in &first.notes {
                self.lines.line("    ", note, Emphasis::Faint)?;
            }
        }
        Ok(())
    }

    /// What stands below a group's names.
    fn state(&self, group: &Group, first: &Thread) -> String {
        let dump = &self.taken.dump;
        let pinned = if first.is_pinned() { ", pinned to its carrier" } else { "" };
        let sum = |of: fn(&Thread) -> Option<u64>| group.threads.iter().filter_map(|at| of(&dump[*at])).sum::<u64>();
        let does = if has_one_lock(dump, group) { doing(dump, first) } else { doing_each(dump, first) };
        let mut said = format!("{}{pinned}, {does}", first.state.name());
        if first.kind != Kind::Virtual {
            said.push_str(&format!("; CPU {}", time(sum(|thread| thread.cpu_ns))));
            if group.recent_cpu_ns > 0 {
                said.push_str(&format!(", {} of it just now", time(group.recent_cpu_ns)));
            }
        }
        said
    }

    /// The JVM's own threads and others without Java stacks: a line a family.
    fn others(&mut self, groups: &[Group]) -> io::Result<()> {
        let dump = &self.taken.dump;
        let mut groups = groups.iter().filter(|group| dump[group.threads[0]].stack.is_empty()).peekable();
        if groups.peek().is_none() {
            return Ok(());
        }
        writeln!(self.lines.out)?;
        self.lines.line("", "without Java stacks: CPU just now, since the start", Emphasis::Bold)?;
        for group in groups {
            let first = &dump[group.threads[0]];
            let known = group.threads.iter().any(|at| dump[*at].recent_cpu_ns.is_some());
            let recent = if known { time(group.recent_cpu_ns) } else { "?".to_owned() };
            let since = time(group.threads.iter().filter_map(|at| dump[*at].cpu_ns).sum());
            let native = if first.kind == Kind::Native { ", native" } else { "" };
            let numbers = format!("{recent:>10} {since:>10}  ");
            // What a compiler compiles, say.
            let notes = first.notes.iter().filter(|note| group.threads.len() == 1 && *note != "No compile task");
            let notes: String = notes.map(|note| format!(", {note}")).collect();
            self.lines.line(&numbers, &format!("{}{native}{notes}", heading(dump, group)), Emphasis::None)?;
        }
        Ok(())
    }

    fn notes(&mut self) -> io::Result<()> {
        let Taken { dump, warnings, .. } = self.taken;
        if !warnings.is_empty() || !dump.unread.is_empty() {
            writeln!(self.lines.out)?;
        }
        for line in &dump.unread {
            self.lines.line("the JVM also said: ", line, Emphasis::Faint)?;
        }
        warnings.iter().try_for_each(|warning| writeln!(self.lines.out, "warning: {}", printable_lines(warning)))
    }
}

/// `17 threads wait for "owner" #27, which waits for a socket`.
fn holds_up(dump: &Dump, blocker: &Blocker) -> String {
    let who = match blocker.end {
        End::Thread(thread) => format!("{}, which {}", named(dump, thread), doing(dump, &dump[thread])),
        End::Deadlock(at) => format!("deadlock {}", at + 1),
    };
    format!("{} {who}", wait_for(blocker.waiting.len()))
}

fn wait_for(count: usize) -> String {
    format!("{} for", if count == 1 { "1 thread waits".to_owned() } else { format!("{} wait", threads(count)) })
}

fn threads(count: usize) -> String {
    plural(count as u64, "thread", "threads")
}

/// `"main" #1`.
fn named(dump: &Dump, thread: ThreadIndex) -> String {
    let Thread { name, java_id, kind, .. } = &dump[thread];
    let kind = if *kind == Kind::Virtual { "virtual thread " } else { "" };
    let id = java_id.map_or(String::new(), |id| format!(" #{id}"));
    format!("{kind}\"{name}\"{id}")
}

fn heading(dump: &Dump, group: &Group) -> String {
    let first = &dump[group.threads[0]];
    let names: Vec<String> = group.threads.iter().take(NAMES).map(|thread| named(dump, *thread)).collect();
    match group.threads.len() {
        1 => names.concat(),
        count if count <= NAMES => format!("{}: {}", threads(count), names.join(", ")),
        count => {
            let stem = family(&first.name);
            let is_family = group.threads.iter().all(|at| family(&dump[*at].name) == stem);
            let virtuals = if first.kind == Kind::Virtual { "virtual " } else { "" };
            let count = units::count(count as u64);
            if is_family && !stem.is_empty() {
                format!("{count} {virtuals}threads \"{stem}\"")
            } else {
                format!("{count} {virtuals}threads: {}, ...", names.join(", "))
            }
        }
    }
}

fn lock(dump: &Dump, lock: Option<LockIndex>) -> String {
    lock.map_or("the initialisation of a class".to_owned(), |lock| dump.locks[lock].to_string())
}

/// The innermost frame that is not the JDK's, or the innermost one.
fn place(thread: &Thread) -> Option<String> {
    let is_jdk = |method: &str| ["java.", "javax.", "jdk.", "sun."].iter().any(|begin| method.starts_with(begin));
    let own = thread.stack.iter().find(|frame| !is_jdk(&frame.method));
    own.or(thread.stack.first()).map(ToString::to_string)
}

/// A lock of a group's first thread: of several threads only the class is common, unless it is one lock.
fn of_group(dump: &Dump, group: &Group, lock: LockIndex) -> String {
    match group.threads.len() {
        1 => dump.locks[lock].to_string(),
        _ => format!("{} each", dump.locks[lock].class),
    }
}

/// Whether all wait for the same lock, if for any.
fn has_one_lock(dump: &Dump, group: &Group) -> bool {
    let lock = |at: &ThreadIndex| dump[*at].wait.and_then(|wait| wait.lock);
    group.threads.iter().all(|at| lock(at) == lock(&group.threads[0]))
}

/// What the threads of a group hold and wait for in a frame.
fn locks_at(dump: &Dump, group: &Group, frame: usize, holders: &FxHashMap<LockIndex, ThreadIndex>) -> Vec<String> {
    let first = &dump[group.threads[0]];
    let mut said = Vec::new();
    if let Some(wait) = first.wait.filter(|wait| wait.frame == frame) {
        let is_one = has_one_lock(dump, group);
        let what = match wait.lock {
            Some(at) if is_one => lock(dump, Some(at)),
            Some(at) => format!("{} each", dump.locks[at].class),
            None if wait.kind == WaitKind::Initialisation => lock(dump, None),
            None => "an object".to_owned(),
        };
        let holder =
            wait.lock.filter(|_| is_one && wait.kind != WaitKind::Notification).and_then(|lock| holders.get(&lock));
        let does = if wait.kind == WaitKind::Initialisation { "initialises" } else { "holds" };
        let holder = holder.map_or(String::new(), |holder| format!(", which {} {does}", named(dump, *holder)));
        let verb = match wait.kind {
            WaitKind::Enter | WaitKind::Reenter => "wants",
            _ => "waits for",
        };
        said.push(format!("{verb} {what}{holder}"));
    }
    let held = first.owned.iter().filter(|owned| owned.frame == Some(frame));
    said.extend(held.map(|owned| format!("holds {}", of_group(dump, group, owned.lock))));
    said
}

#[cfg(test)]
mod tests;
