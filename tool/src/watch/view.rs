//! The full-screen view: a list of JVMs, the threads of the chosen one, the stack of the chosen thread. Pure: events and keys go in.

use std::collections::BTreeMap;
use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rustc_hash::FxHashMap;

use super::lines::{clock, found};
use crate::report::units::plural;
use crate::top::search::Query;
use crate::top::view::typing::{Typed, edit};
use crate::top::view::{Glyphs, Palette};
use crate::traces::{Process, Reason, Thread, Trace, TraceEvent};

mod draw;

/// One of the three lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pane {
    Jvms,
    Threads,
    Stack,
}

/// Which threads are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// All that run Java code.
    Java,
    /// Of these, those that do not wait for work.
    Active,
    /// All, those of the JVM's own too.
    All,
}

/// By what threads are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Start,
    Cpu,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    Lists,
    /// A search is typed; what was searched for before.
    Search(Query),
    Help,
}

/// What is known of a JVM.
#[derive(Clone, Debug, Default)]
struct Jvm {
    name: String,
    /// Why nothing comes from it; none as long as it is watched.
    gone: Option<String>,
    trace: Option<Arc<Trace>>,
    /// What each thread uses of a processor, by order of start; of a JVM's first trace nothing is known.
    cpu: Option<FxHashMap<u64, f64>>,
}

/// The view.
#[derive(Debug)]
pub(crate) struct View {
    now: BTreeMap<Process, Jvm>,
    /// What is shown while it is paused, and since when.
    paused: Option<(BTreeMap<Process, Jvm>, u64)>,
    now_ms: u64,
    pane: Pane,
    jvm: Option<Process>,
    thread: Option<u64>,
    frame: usize,
    /// The first row that is to be seen of each list.
    tops: [usize; 3],
    /// How many rows each list had room for.
    room: [usize; 3],
    shown: Shown,
    order: Order,
    query: Query,
    mode: Mode,
    message: Option<String>,
    glyphs: Glyphs,
    palette: Palette,
}

/// What the user wants besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// An end.
    Quit,
    /// Everything drawn again.
    Redraw,
}

impl View {
    /// One that has nothing yet.
    pub(crate) fn new(query: Query, glyphs: Glyphs, palette: Palette) -> View {
        View {
            now: BTreeMap::new(),
            paused: None,
            now_ms: 0,
            pane: Pane::Jvms,
            jvm: None,
            thread: None,
            frame: 0,
            tops: [0; 3],
            room: [1; 3],
            shown: Shown::Java,
            order: Order::Start,
            query,
            mode: Mode::Lists,
            message: None,
            glyphs,
            palette,
        }
    }

    /// Something has happened.
    pub(crate) fn hear(&mut self, event: &TraceEvent) {
        let Some(process) = event.process() else {
            if let TraceEvent::Said(said) = event {
                self.say(&format!("[{}] {}", said.analysis, said.line));
            }
            return;
        };
        match event {
            TraceEvent::Connected(connected) => {
                let name = format!("{} {}", connected.name(), connected.arguments);
                self.now.insert(process, Jvm { name: name.trim_end().to_owned(), ..Jvm::default() });
            }
            TraceEvent::Trace(trace) => {
                self.now_ms = self.now_ms.max(trace.time_ms);
                let jvm = self.now.entry(process).or_default();
                jvm.cpu = jvm.trace.as_ref().map(|before| used(before, trace));
                jvm.trace = Some(Arc::new(trace.clone()));
            }
            TraceEvent::Disconnected(event) => {
                let reason = match event.reason {
                    Reason::Ended => "has ended",
                    _ => "is watched no more",
                };
                if let Some(jvm) = self.now.get_mut(&process) {
                    jvm.gone = Some(format!("{reason} ({})", clock(event.time_ms)));
                }
            }
            TraceEvent::Said(_) | TraceEvent::Unknown => {}
        }
    }

    /// A JVM is not watched.
    pub(crate) fn skip(&mut self, process: Process, main: &str, why: &str) {
        let gone = Some(format!("not watched: {why}"));
        self.now.insert(process, Jvm { name: main.to_owned(), gone, ..Jvm::default() });
    }

    /// Something is to be said.
    pub(crate) fn say(&mut self, message: &str) {
        self.message = Some(message.to_owned());
    }

    /// A key is pressed.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Option<Asked> {
        self.message = None;
        match &self.mode {
            Mode::Help => self.mode = Mode::Lists,
            Mode::Search(before) => {
                let before = before.clone();
                self.type_search(key, before);
            }
            Mode::Lists => return self.command(key),
        }
        None
    }

    fn command(&mut self, key: KeyEvent) -> Option<Asked> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            match key.code {
                KeyCode::Char('c') => return Some(Asked::Quit),
                KeyCode::Char('l') => return Some(Asked::Redraw),
                _ => return None,
            }
        }
        let page = isize::try_from(self.room[self.pane as usize].max(2) - 1).unwrap_or(1);
        match key.code {
            KeyCode::Char('q') => return Some(Asked::Quit),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.step(-page),
            KeyCode::PageDown => self.step(page),
            KeyCode::Home | KeyCode::Char('g') => self.step(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.step(isize::MAX),
            KeyCode::Tab | KeyCode::Right | KeyCode::Enter | KeyCode::Char('l') => {
                self.pane = match self.pane {
                    Pane::Jvms => Pane::Threads,
                    Pane::Threads => Pane::Stack,
                    Pane::Stack if key.code == KeyCode::Tab => Pane::Jvms,
                    Pane::Stack => Pane::Stack,
                };
            }
            KeyCode::BackTab | KeyCode::Left | KeyCode::Char('h') => {
                self.pane = match self.pane {
                    Pane::Jvms | Pane::Threads => Pane::Jvms,
                    Pane::Stack => Pane::Threads,
                };
            }
            KeyCode::Char('p' | ' ' | 'f') => self.pause(),
            KeyCode::Char('/') => self.mode = Mode::Search(std::mem::take(&mut self.query)),
            KeyCode::Char('n') => self.next_match(1),
            KeyCode::Char('N') => self.next_match(-1),
            KeyCode::Esc => self.query = Query::default(),
            KeyCode::Char('i') => {
                self.shown = match self.shown {
                    Shown::Java => Shown::Active,
                    Shown::Active => Shown::All,
                    Shown::All => Shown::Java,
                };
            }
            KeyCode::Char('s') => self.order = if self.order == Order::Start { Order::Cpu } else { Order::Start },
            KeyCode::Char('?') | KeyCode::F(1) => self.mode = Mode::Help,
            _ => {}
        }
        None
    }

    /// Freezes all JVMs as they are, or goes on.
    fn pause(&mut self) {
        self.paused = match self.paused.take() {
            Some(_) => None,
            None => Some((self.now.clone(), self.now_ms)),
        };
    }

    fn jvms(&self) -> &BTreeMap<Process, Jvm> {
        self.paused.as_ref().map_or(&self.now, |(then, _)| then)
    }

    /// The chosen JVM: the first one, as long as nobody chooses.
    fn chosen(&self) -> Option<(&Process, &Jvm)> {
        let jvms = self.jvms();
        self.jvm.as_ref().and_then(|process| jvms.get_key_value(process)).or_else(|| jvms.first_key_value())
    }

    /// The threads that are listed of a JVM, those first that are in what is searched for.
    fn threads<'a>(&self, jvm: &'a Jvm) -> Vec<&'a Thread> {
        let Some(trace) = &jvm.trace else { return Vec::new() };
        let is_meant = |thread: &&Thread| {
            self.is_match(trace, thread)
                || match self.shown {
                    Shown::Java => thread.kind != "vm" && thread.stack.is_some(),
                    Shown::Active => !thread.idle,
                    Shown::All => true,
                }
        };
        let mut threads: Vec<&Thread> = trace.threads.iter().filter(is_meant).collect();
        threads.sort_by(|one, other| {
            let by_cpu = match self.order {
                Order::Start => std::cmp::Ordering::Equal,
                Order::Cpu => jvm.cpu_of(other).total_cmp(&jvm.cpu_of(one)),
            };
            let by_match = self.is_match(trace, other).cmp(&self.is_match(trace, one));
            by_match.then(by_cpu).then(one.order.cmp(&other.order))
        });
        threads
    }

    fn is_match(&self, trace: &Trace, thread: &Thread) -> bool {
        self.query.matches(&thread.name) || trace.stack(thread).iter().any(|frame| self.query.matches(frame))
    }

    /// How many threads of a JVM are in what is searched for.
    fn matches(&self, jvm: &Jvm) -> usize {
        let Some(trace) = &jvm.trace else { return 0 };
        trace.threads.iter().filter(|thread| self.is_match(trace, thread)).count()
    }

    /// The chosen thread: the first one listed, as long as nobody chooses, or when the chosen one is not there.
    fn chosen_thread<'a>(&self, jvm: &'a Jvm) -> Option<&'a Thread> {
        let threads = self.threads(jvm);
        let chosen = threads.iter().find(|thread| Some(thread.order) == self.thread);
        chosen.or(threads.first()).copied()
    }

    /// Moves in the list that has the keys.
    fn step(&mut self, by: isize) {
        let moved = |at: usize, count: usize| at.saturating_add_signed(by).min(count.saturating_sub(1));
        match self.pane {
            Pane::Jvms => {
                let processes: Vec<&Process> = self.jvms().keys().collect();
                let at = self.chosen().and_then(|(chosen, _)| processes.iter().position(|it| *it == chosen));
                let next = processes.get(moved(at.unwrap_or(0), processes.len())).map(|process| (*process).clone());
                (self.jvm, self.thread, self.frame) = (next, None, 0);
            }
            Pane::Threads => {
                let Some((_, jvm)) = self.chosen() else { return };
                let threads = self.threads(jvm);
                let chosen = self.chosen_thread(jvm).map(|thread| thread.order);
                let at = threads.iter().position(|thread| Some(thread.order) == chosen).unwrap_or(0);
                let next = threads.get(moved(at, threads.len())).map(|thread| thread.order);
                (self.thread, self.frame) = (next, 0);
            }
            Pane::Stack => {
                let Some((_, jvm)) = self.chosen() else { return };
                let (Some(trace), Some(thread)) = (&jvm.trace, self.chosen_thread(jvm)) else { return };
                self.frame = moved(self.frame, trace.stack(thread).len());
            }
        }
    }

    fn type_search(&mut self, key: KeyEvent, before: Query) {
        let mut text = self.query.text().to_owned();
        match edit(&mut text, key) {
            Some(Typed::Accepted) => self.mode = Mode::Lists,
            Some(Typed::Dropped) => (self.query, self.mode) = (before, Mode::Lists),
            None => {
                self.query = Query::new(&text);
                self.mode = Mode::Search(before);
            }
        }
        // The frame that is meant, if the chosen thread is in one.
        let at_match = || {
            let (process, jvm) = self.chosen()?;
            let thread = self.chosen_thread(jvm).filter(|thread| {
                let trace = jvm.trace.as_ref();
                trace.is_some_and(|trace| self.is_match(trace, thread))
            })?;
            Some(self.found_frame((process, thread.order)))
        };
        if self.query.is_empty() {
            return;
        }
        match at_match() {
            Some(frame) => {
                self.frame = frame;
                self.say_matches();
            }
            None => self.next_match(1),
        }
    }

    /// Chooses the next, or previous, thread of all JVMs that is in what is searched for.
    fn next_match(&mut self, by: isize) {
        if self.query.is_empty() {
            return self.say("nothing is searched for; / begins");
        }
        let mut places: Vec<(&Process, u64)> = Vec::new();
        for (process, jvm) in self.jvms() {
            let Some(trace) = &jvm.trace else { continue };
            let listed = self.threads(jvm).into_iter().filter(|thread| self.is_match(trace, thread));
            places.extend(listed.map(|thread| (process, thread.order)));
        }
        if places.is_empty() {
            let text = self.query.text().to_owned();
            return self.say(&format!("no thread of these JVMs is in `{text}`"));
        }
        let at = self.chosen().and_then(|(process, jvm)| {
            let thread = self.chosen_thread(jvm)?.order;
            places.iter().position(|place| *place == (process, thread))
        });
        let count = places.len();
        let next = match (at, by > 0) {
            (Some(at), true) => (at + 1) % count,
            (Some(at), false) => (at + count - 1) % count,
            (None, true) => self.first_behind(&places),
            (None, false) => count - 1,
        };
        let (process, thread) = (places[next].0.clone(), places[next].1);
        (self.jvm, self.thread, self.frame) = (Some(process), Some(thread), self.found_frame(places[next]));
        self.say_matches();
    }

    fn say_matches(&mut self) {
        let found = self.jvms().values().map(|jvm| self.matches(jvm)).filter(|found| *found > 0);
        let (threads, jvms) = found.fold((0, 0), |(threads, jvms), found| (threads + found as u64, jvms + 1));
        self.say(&format!("{} in {}", plural(threads, "thread", "threads"), plural(jvms, "JVM", "JVMs")));
    }

    /// The first of these places in the chosen JVM or one behind it.
    fn first_behind(&self, places: &[(&Process, u64)]) -> usize {
        let chosen = self.chosen().map(|(process, _)| process);
        places.iter().position(|(process, _)| Some(*process) >= chosen).unwrap_or(0)
    }

    /// Where in a thread's stack that is which is searched for.
    fn found_frame(&self, (process, order): (&Process, u64)) -> usize {
        let place = || {
            let trace = self.jvms().get(process)?.trace.as_ref()?;
            let (_, frame) = found(trace, &self.query).find(|(thread, _)| thread.order == order)?;
            let thread = trace.threads.iter().find(|thread| thread.order == order)?;
            trace.stack(thread).iter().position(|it| it == frame)
        };
        place().unwrap_or(0)
    }
}

impl Jvm {
    fn cpu_of(&self, thread: &Thread) -> f64 {
        self.cpu.as_ref().and_then(|cpu| cpu.get(&thread.order).copied()).unwrap_or(0.0)
    }
}

/// What each thread used of a processor between two traces.
fn used(before: &Trace, now: &Trace) -> FxHashMap<u64, f64> {
    let passed_ns = now.time_ms.saturating_sub(before.time_ms).max(1) as f64 * 1e6;
    let then: FxHashMap<u64, u64> =
        before.threads.iter().filter_map(|thread| Some((thread.order, thread.cpu_ns?))).collect();
    let used = |thread: &Thread| {
        let ns = thread.cpu_ns?.saturating_sub(then.get(&thread.order).copied().unwrap_or(0));
        Some((thread.order, ns as f64 / passed_ns))
    };
    now.threads.iter().filter_map(used).collect()
}

#[cfg(test)]
mod tests;
