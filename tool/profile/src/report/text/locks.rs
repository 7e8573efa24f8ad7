//! Contended locks, the one most waited for first.

use std::io::{self, Write};

use super::lines::{Emphasis, Lines};
use crate::profile::{Blocked, ContendedLock, Contention, Holder, LockKind, Unfinished, WaitPlace};
use crate::report::units::{count, plural, time};
use crate::report::{Options, share};

/// Frames of a stack that are shown, unless it is said otherwise.
const FRAMES: usize = 8;
/// Of a lock so many places are shown, and of those each so many holders and threads.
const PLACES: usize = 5;
const HOLDERS: usize = 3;
/// Waits that had not ended, so many are shown.
const UNFINISHED: usize = 20;

pub(super) fn write<W: Write>(contention: &Contention, options: &Options, lines: &mut Lines<'_, W>) -> io::Result<()> {
    let mut text = Text { contention, frames: options.max_depth.unwrap_or(FRAMES), lines };
    text.summary()?;
    let whole = contention.blocked().total_ns;
    let is_shown = |lock: &&ContendedLock| share(lock.blocked().total_ns, whole) >= options.min_share;
    if !contention.locks.is_empty() {
        writeln!(text.lines.out)?;
        let heading = format!("{:>7} {:>11} {:>9} {:>11} {:>11}  ", "share", "blocked", "waits", "longest", "mean");
        text.lines.line(&heading, "lock", Emphasis::Faint)?;
    }
    for lock in contention.locks.iter().filter(is_shown) {
        text.lock(lock, whole)?;
    }
    let hidden: Vec<Blocked> =
        contention.locks.iter().filter(|lock| !is_shown(lock)).map(ContendedLock::blocked).collect();
    if !hidden.is_empty() {
        let sum = hidden.iter().copied().fold(Blocked::default(), Blocked::and);
        let others = plural(hidden.len() as u64, "other lock", "other locks");
        text.lines.line(&row(sum, whole), &format!("... {others}"), Emphasis::Faint)?;
    }
    text.unfinished()?;
    for limit in &contention.limits {
        text.lines.line("note: ", limit, Emphasis::None)?;
    }
    Ok(())
}

struct Text<'a, 'b, W> {
    contention: &'a Contention,
    frames: usize,
    lines: &'a mut Lines<'b, W>,
}

impl<W: Write> Text<'_, '_, W> {
    fn summary(&mut self) -> io::Result<()> {
        let Contention { looks, other_parks, .. } = self.contention;
        writeln!(self.lines.out, "{}", summary(self.contention))?;
        if other_parks.count > 0 {
            let parks = plural(other_parks.count, "time", "times");
            writeln!(
                self.lines.out,
                "parked for something else than locks (queues, results, timers), not counted: {parks}, {}",
                time(other_parks.total_ns)
            )?;
        }
        match looks {
            0 => Ok(()),
            looks => writeln!(self.lines.out, "who holds locks was looked at {}", plural(*looks, "time", "times")),
        }
    }

    fn lock(&mut self, lock: &ContendedLock, whole: u64) -> io::Result<()> {
        let blocked = lock.blocked();
        let part = share(blocked.total_ns, whole);
        let what = if lock.kind == LockKind::Monitor { "monitor of " } else { "" };
        let name = format!("{what}{} <0x{:x}>", lock.class, lock.address);
        self.lines.line(&row(blocked, whole), &name, Emphasis::of_share(part))?;
        for wait in lock.waits.iter().take(PLACES) {
            self.place(lock, wait)?;
        }
        let hidden = lock.waits.get(PLACES..).unwrap_or_default();
        if !hidden.is_empty() {
            let sum = hidden.iter().map(|wait| wait.blocked).fold(Blocked::default(), Blocked::and);
            let places = plural(hidden.len() as u64, "other place", "other places");
            self.lines.line("    ", &format!("in {places}: {}", waits(sum)), Emphasis::Faint)?;
        }
        writeln!(self.lines.out)
    }

    fn place(&mut self, lock: &ContendedLock, wait: &WaitPlace) -> io::Result<()> {
        let threads = plural(wait.threads.len() as u64, "thread", "threads");
        self.lines.line("    ", &format!("{}, {threads}, in", waits(wait.blocked)), Emphasis::None)?;
        let methods = &self.contention.methods;
        let names = wait.stack.iter().rev().filter_map(|method| methods.get(*method)).map(|name| name.display.as_str());
        // What is the lock's own code everywhere says nothing.
        let is_lock = |name: &&str| {
            lock.kind == LockKind::Concurrent
                && ["jdk.internal.misc.Unsafe.", "sun.misc.Unsafe.", "java.util.concurrent.locks."]
                    .iter()
                    .any(|own| name.starts_with(own))
        };
        let names: Vec<&str> = names.skip_while(is_lock).collect();
        self.stack(&names)?;
        for leaver in wait.left_by.iter().take(HOLDERS) {
            let said = format!("after {} had left it: {}", leaver.thread, waits(leaver.blocked));
            self.lines.line("      ", &said, Emphasis::None)?;
        }
        let others = wait.left_by.get(HOLDERS..).unwrap_or_default();
        if !others.is_empty() {
            let sum = others.iter().map(|leaver| leaver.blocked).fold(Blocked::default(), Blocked::and);
            let threads = plural(others.len() as u64, "other thread", "other threads");
            self.lines.line("      ", &format!("after {threads}: {}", waits(sum)), Emphasis::None)?;
        }
        for holder in wait.holders.iter().take(HOLDERS) {
            let Holder { thread, stack, seen } = holder;
            let said = format!("held meanwhile by {thread}, seen {} of {}, in", count(*seen), times(wait.seen));
            self.lines.line("      ", &said, Emphasis::None)?;
            self.stack(stack)?;
        }
        Ok(())
    }

    fn stack(&mut self, frames: &[impl AsRef<str>]) -> io::Result<()> {
        for frame in frames.iter().take(self.frames) {
            self.lines.line("        ", frame.as_ref(), Emphasis::None)?;
        }
        match frames.len().saturating_sub(self.frames) {
            0 => Ok(()),
            more => writeln!(self.lines.out, "        ... {}", plural(more as u64, "more frame", "more frames")),
        }
    }

    fn unfinished(&mut self) -> io::Result<()> {
        let unfinished = &self.contention.unfinished;
        for Unfinished { kind, lock, thread, stack, seen_ns, holder } in unfinished.iter().take(UNFINISHED) {
            let what = if *kind == LockKind::Monitor { "the monitor of " } else { "" };
            let before = time(*seen_ns);
            let heading =
                format!("{thread} waited for {what}{lock} at the end, as at each look of {before} before, in");
            self.lines.line("", &heading, Emphasis::Bold)?;
            self.stack(stack)?;
            if let Some(holder) = holder {
                self.lines.line("  ", &format!("held by {}, in", holder.thread), Emphasis::None)?;
                self.stack(&holder.stack)?;
            }
            writeln!(self.lines.out)?;
        }
        match unfinished.len().saturating_sub(UNFINISHED) {
            0 => Ok(()),
            more => {
                writeln!(self.lines.out, "{} that still waited are in the JSON", plural(more as u64, "other", "others"))
            }
        }
    }
}

/// How much was waited for how many of them.
pub(super) fn summary(contention: &Contention) -> String {
    let Contention { locks, over_ns, .. } = contention;
    let all = contention.blocked();
    let over = if *over_ns == 0 { String::new() } else { format!(" of {} or longer", time(*over_ns)) };
    match locks.len() {
        0 => format!("no waits{over} for locks"),
        locks => format!(
            "{}: {}{over}, blocked for {}, {} at most",
            plural(locks as u64, "contended lock", "contended locks"),
            plural(all.count, "wait", "waits"),
            time(all.total_ns),
            time(all.longest_ns)
        ),
    }
}

fn row(blocked: Blocked, whole: u64) -> String {
    let Blocked { count: waits, total_ns, longest_ns } = blocked;
    let mean = time(total_ns / waits.max(1));
    let share = 100.0 * share(total_ns, whole);
    format!("{share:>6.1}% {:>11} {:>9} {:>11} {mean:>11}  ", time(total_ns), count(waits), time(longest_ns))
}

fn waits(blocked: Blocked) -> String {
    let Blocked { count, total_ns, longest_ns } = blocked;
    match count {
        1 => format!("1 wait of {}", time(total_ns)),
        waits => format!("{}, {}, {} at most", plural(waits, "wait", "waits"), time(total_ns), time(longest_ns)),
    }
}

fn times(n: u64) -> String {
    plural(n, "time", "times")
}
