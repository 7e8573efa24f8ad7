//! Where lines go that may stand still: a pipe nobody reads, a slow disk, an analysis. A thread writes them; whoever gives them never waits.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::traces::recording::Writer;

/// What may wait to be written.
const MOST_BYTES: usize = 16 << 20;

/// What lines are written to.
pub(crate) trait Sink: Send + 'static {
    /// Writes some lines. Blocks.
    fn write(&mut self, lines: &[Arc<str>]) -> io::Result<()>;
}

/// Text, a line each.
pub(crate) struct Lines<W>(pub(crate) W);

impl<W: Write + Send + 'static> Sink for Lines<W> {
    fn write(&mut self, lines: &[Arc<str>]) -> io::Result<()> {
        let mut text = String::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        self.0.write_all(text.as_bytes())?;
        self.0.flush()
    }
}

impl Sink for Box<dyn Sink> {
    fn write(&mut self, lines: &[Arc<str>]) -> io::Result<()> {
        (**self).write(lines)
    }
}

impl Sink for Writer {
    fn write(&mut self, lines: &[Arc<str>]) -> io::Result<()> {
        Writer::write(self, lines.iter().map(|line| &**line))
    }
}

/// Whether a line may be left out where others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It is large, and there will be others.
    Passing,
    /// What follows is not understood without it.
    Needed,
}

/// What became of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Taken,
    /// There is no room: it is left out, the first of several or not.
    LeftOut {
        is_first: bool,
    },
    /// Nothing can be written any more.
    Broken,
}

/// How an outlet ended.
#[derive(Debug)]
pub(crate) enum Closed {
    /// All was written, but for so many lines that were left out.
    Done { left_out: u64 },
    /// It could not be written.
    Failed(io::Error),
    /// It is still being written.
    Stuck,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Arc<str>>,
    bytes: usize,
    left_out: u64,
    is_leaving_out: bool,
    is_closed: bool,
    /// The thread is done, and why if it failed.
    done: Option<Option<io::Error>>,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A queue, and the thread that empties it.
#[derive(Debug)]
pub(crate) struct Outlet {
    queue: Arc<Queue>,
}

impl Outlet {
    /// Begins to write. The sink goes away with the last line, or with the first that it does not take.
    pub(crate) fn to(sink: impl Sink) -> io::Result<Outlet> {
        let queue = Arc::new(Queue::default());
        let mut sink = sink;
        let read = Arc::clone(&queue);
        let write = move || {
            let result = empty(&read, &mut sink);
            // What it writes to is closed before anybody hears of the end.
            drop(sink);
            let mut state = read.lock();
            state.lines.clear();
            state.done = Some(result.err());
            read.changed.notify_all();
        };
        std::thread::Builder::new().name("outlet".into()).spawn(write)?;
        Ok(Outlet { queue })
    }

    /// Gives a line. Never waits.
    pub(crate) fn give(&self, line: Arc<str>, weight: Weight) -> Given {
        let mut state = self.queue.lock();
        if state.done.is_some() || state.is_closed {
            return Given::Broken;
        }
        // One that is larger than all room is still taken where nothing else waits.
        let has_room = state.lines.is_empty() || state.bytes + line.len() <= MOST_BYTES;
        if !has_room && weight == Weight::Passing {
            state.left_out += 1;
            let is_first = !std::mem::replace(&mut state.is_leaving_out, true);
            return Given::LeftOut { is_first };
        }
        state.bytes += line.len();
        state.lines.push_back(line);
        self.queue.changed.notify_all();
        Given::Taken
    }

    /// Whether nothing can be written any more.
    pub(crate) fn is_broken(&self) -> bool {
        self.queue.lock().done.is_some()
    }

    /// No more lines follow.
    pub(crate) fn close(&self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_all();
    }

    /// Waits until all is written, for so long at most.
    pub(crate) fn finish(&self, limit: Duration) -> Closed {
        self.close();
        let deadline = Instant::now() + limit;
        let mut state = self.queue.lock();
        loop {
            if let Some(done) = &mut state.done {
                return match done.take() {
                    Some(error) => Closed::Failed(error),
                    None => Closed::Done { left_out: state.left_out },
                };
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Closed::Stuck;
            }
            state = self.queue.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.close();
    }
}

/// Writes until the queue is closed and empty.
fn empty(queue: &Queue, sink: &mut impl Sink) -> io::Result<()> {
    let mut lines = Vec::new();
    loop {
        let mut state = queue.lock();
        while state.lines.is_empty() {
            if state.is_closed {
                return Ok(());
            }
            state = queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        lines.extend(state.lines.drain(..));
        state.bytes = 0;
        state.is_leaving_out = false;
        drop(state);
        sink.write(&lines)?;
        lines.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Takes lines when it is told to.
    struct Played {
        begun: Sender<usize>,
        go: Receiver<()>,
        written: Arc<Mutex<Vec<Arc<str>>>>,
    }

    impl Sink for Played {
        fn write(&mut self, lines: &[Arc<str>]) -> io::Result<()> {
            let _ = self.begun.send(lines.len());
            self.go.recv().map_err(|_| io::ErrorKind::BrokenPipe)?;
            self.written.lock().expect("nobody panics").extend(lines.iter().cloned());
            Ok(())
        }
    }

    const PATIENCE: Duration = Duration::from_secs(3_600);

    #[test]
    fn who_gives_lines_never_waits_and_what_is_needed_is_never_left_out() {
        let (begun, begins) = channel();
        let (go, wait) = channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let outlet = Outlet::to(Played { begun, go: wait, written: Arc::clone(&written) }).expect("a thread");
        assert_eq!(outlet.give("first".into(), Weight::Passing), Given::Taken);
        assert_eq!(begins.recv(), Ok(1));
        let large: Arc<str> = "x".repeat(MOST_BYTES).into();
        assert_eq!(outlet.give(Arc::clone(&large), Weight::Passing), Given::Taken);
        assert_eq!(outlet.give("a".into(), Weight::Passing), Given::LeftOut { is_first: true });
        assert_eq!(outlet.give("b".into(), Weight::Passing), Given::LeftOut { is_first: false });
        assert_eq!(outlet.give("needed".into(), Weight::Needed), Given::Taken);
        assert!(matches!(outlet.finish(Duration::ZERO), Closed::Stuck));
        go.send(()).and_then(|()| go.send(())).expect("it waits");
        assert!(matches!(outlet.finish(PATIENCE), Closed::Done { left_out: 2 }));
        let written: Vec<usize> = written.lock().expect("nobody panics").iter().map(|line| line.len()).collect();
        assert_eq!(written, [5, MOST_BYTES, 6]);
        assert_eq!(outlet.give("late".into(), Weight::Needed), Given::Broken);
    }

    #[test]
    fn what_cannot_be_written_is_said_at_the_end_and_takes_no_more() {
        let (begun, begins) = channel();
        let (go, wait) = channel();
        let outlet = Outlet::to(Played { begun, go: wait, written: Arc::default() }).expect("a thread");
        assert_eq!(outlet.give("first".into(), Weight::Needed), Given::Taken);
        assert_eq!(begins.recv(), Ok(1));
        drop(go);
        let Closed::Failed(error) = outlet.finish(PATIENCE) else { panic!("it failed") };
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        assert!(outlet.is_broken());
    }
}
