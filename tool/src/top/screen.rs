//! The terminal: taken over, drawn on, and given back whatever happens. A thread of its own draws, so that keys are
//! answered while the engine is busy with the target.

use std::cell::Cell;
use std::io::{self, BufWriter, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::{cursor, execute, terminal};
use ratatui::layout::{Position, Rect};
use tokio::sync::mpsc::UnboundedSender;

use super::view::{Phase, Request, View};
use crate::profile::Profile;

/// How often the thread that reads keys looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);
/// More than a picture of a large terminal takes: it is written at once.
const PICTURE_BYTES: usize = 256 << 10;

/// Whether the terminal is taken over.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);
/// Held by the thread that is drawing, and by the one that gives the terminal back: a picture is finished before that, or never begun.
static DRAWING: Mutex<()> = Mutex::new(());

thread_local! {
    /// Whether this thread is the one that is drawing.
    static DRAWS: Cell<bool> = const { Cell::new(false) };
}

/// What the view is told.
#[derive(Debug)]
pub(super) enum Input {
    /// By the user.
    Terminal(Event),
    /// Newer results, and how many calls a second were made since the ones before.
    Results(Arc<Profile>, Option<f64>),
    /// What the profile is doing now.
    Phase(Phase),
    /// Something to be said.
    Say(String),
    /// To give the terminal back.
    Leave,
}

/// The view on the terminal.
pub(super) struct Screen {
    inputs: Sender<Input>,
    drawing: JoinHandle<io::Result<()>>,
}

impl Screen {
    /// Takes the terminal over. What the user asks for goes to `requests`; when that is closed, the terminal is gone.
    pub(super) fn open(view: View, requests: UnboundedSender<Request>) -> io::Result<Screen> {
        let mut taken = Taken::take()?;
        let (inputs, received) = channel();
        let (keys, files) = (inputs.clone(), inputs.clone());
        std::thread::Builder::new()
            .name("keys".into())
            .spawn(move || read_keys(|event| keys.send(Input::Terminal(event)).is_ok()))?;
        let drawing = std::thread::Builder::new().name("screen".into());
        let drawing = drawing.spawn(move || show(&mut taken, view, &received, &files, &requests))?;
        Ok(Screen { inputs, drawing })
    }

    /// Where the view is told things.
    pub(super) fn inputs(&self) -> Sender<Input> {
        self.inputs.clone()
    }

    /// Gives the terminal back.
    pub(super) fn close(self) {
        // A view whose terminal is gone has left already.
        let _ = self.inputs.send(Input::Leave);
        // What it could not draw any more is no loss to the profile.
        let _ = self.drawing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

/// The terminal in raw mode, on its alternate screen, without a cursor; given back when this is dropped.
pub(crate) struct Taken {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Taken {
    pub(crate) fn take() -> io::Result<Taken> {
        give_back_before_a_panic_is_told();
        terminal::enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::SeqCst);
        let taken = execute!(io::stdout(), terminal::EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(BufWriter::with_capacity(PICTURE_BYTES, io::stdout()))));
        match taken {
            Ok(terminal) => Ok(Taken { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Has a picture drawn; `draw` says where the cursor is, if it is to be seen.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(Rect, &mut Buffer) -> Option<Position>) -> io::Result<()> {
        self.while_taken(|terminal| {
            let picture = terminal.draw(|frame| {
                let area = frame.area();
                if let Some(cursor) = draw(area, frame.buffer_mut()) {
                    frame.set_cursor_position(cursor);
                }
            });
            picture.map(drop)
        })
    }

    /// The next picture is drawn as a whole.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.while_taken(Terminal::clear)
    }

    /// Writes to the terminal, unless it has been given back: after a panic elsewhere it belongs to its message.
    fn while_taken(
        &mut self,
        write: impl FnOnce(&mut Terminal<CrosstermBackend<BufWriter<Stdout>>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let _drawing = DRAWING.lock().unwrap_or_else(PoisonError::into_inner);
        if !IS_TAKEN.load(Ordering::SeqCst) {
            return Ok(());
        }
        DRAWS.set(true);
        let written = write(&mut self.terminal);
        DRAWS.set(false);
        written
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back, once.
fn give_back() {
    // A picture of this thread's own, in which it panicked, will not be finished.
    let _no_picture = (!DRAWS.get()).then(|| DRAWING.lock().unwrap_or_else(PoisonError::into_inner));
    if IS_TAKEN.swap(false, Ordering::SeqCst) {
        // On a terminal that is gone nothing can be done, and nothing has to be.
        let _ = execute!(io::stdout(), terminal::LeaveAlternateScreen, cursor::Show);
        let _ = terminal::disable_raw_mode();
        let _ = io::stdout().flush();
    }
}

fn give_back_before_a_panic_is_told() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            tell(panic);
        }));
    });
}

/// Reads what the user does, until the terminal is given back or nobody takes it any more.
pub(crate) fn read_keys(take: impl Fn(Event) -> bool) {
    while IS_TAKEN.load(Ordering::SeqCst) {
        let event = match event::poll(LOOK) {
            Ok(true) => event::read(),
            Ok(false) => continue,
            Err(error) => Err(error),
        };
        let sent = event.is_ok_and(&take);
        if !sent {
            return;
        }
    }
}

/// Draws whenever there is something new, until it is told to leave.
fn show(
    taken: &mut Taken,
    mut view: View,
    received: &Receiver<Input>,
    inputs: &Sender<Input>,
    requests: &UnboundedSender<Request>,
) -> io::Result<()> {
    loop {
        taken.draw(|area, buffer| view.draw(area, buffer))?;
        // What has come in meanwhile makes one picture.
        let Ok(first) = received.recv() else { return Ok(()) };
        let pending: Vec<Input> = std::iter::once(first).chain(received.try_iter()).collect();
        let newest = pending.iter().rposition(|input| matches!(input, Input::Results(..)));
        for (index, input) in pending.into_iter().enumerate() {
            let request = match input {
                // Of large trees there may be newer results before these are walked.
                Input::Results(..) if Some(index) != newest => None,
                Input::Terminal(Event::Key(key)) if key.kind != KeyEventKind::Release => view.press(key),
                // The size is asked for with each picture.
                Input::Terminal(_) => None,
                Input::Results(profile, rate) => {
                    view.update(profile, rate);
                    None
                }
                Input::Phase(phase) => {
                    view.set_phase(phase);
                    None
                }
                Input::Say(message) => {
                    view.say(message);
                    None
                }
                Input::Leave => return Ok(()),
            };
            match request {
                None => {}
                Some(Request::Redraw) => taken.clear()?,
                Some(Request::Save { file, profile }) => save(file, profile, inputs.clone())?,
                // When nobody listens any more, the order to leave is on its way.
                Some(request) => drop(requests.send(request)),
            }
        }
    }
}

/// Writes a profile to a file, in a thread of its own: a large one takes a while.
fn save(file: std::path::PathBuf, profile: Arc<Profile>, inputs: Sender<Input>) -> io::Result<()> {
    let saving = move || {
        let said = match super::write_to(&file, &profile) {
            Ok(()) => format!("saved to {}", file.display()),
            Err(error) => format!("not saved: {error}"),
        };
        // A view that is gone shows nothing.
        let _ = inputs.send(Input::Say(said));
    };
    std::thread::Builder::new().name("save".into()).spawn(saving).map(drop)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use headwater_tests::terminal::Terminal as PseudoTerminal;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::report::{Trees, View as Shape};
    use crate::top::view::{Glyphs, Look, Palette};

    /// Set where those of these tests are to do what they say that need a process and a terminal of their own.
    const TO_PANIC: &str = "HEADWATER_TEST_PANIC";
    const IN_BETWEEN: &str = "given back in the middle of a picture";

    /// Executed by another one.
    #[test]
    fn panics_on_a_terminal_that_is_taken_over() {
        if std::env::var_os(TO_PANIC).is_none() {
            return;
        }
        let look = Look {
            shape: Shape::Tree,
            trees: Trees::Merged,
            sort: None,
            glyphs: Glyphs::Unicode,
            palette: Palette::Color,
        };
        let (asking, _requests) = unbounded_channel();
        let _screen = Screen::open(View::new(look, String::new()), asking).expect("a terminal");
        panic!("in the middle of it");
    }

    /// Executed by another one.
    #[test]
    fn panics_while_another_thread_draws() {
        if std::env::var_os(TO_PANIC).is_none() {
            return;
        }
        let mut taken = Taken::take().expect("a terminal");
        let (begin, begun) = channel();
        let drawing = std::thread::spawn(move || {
            taken.while_taken(|terminal| {
                begin.send(()).expect("somebody waits");
                let left_in_between = (0..100_000).any(|_| {
                    std::thread::yield_now();
                    !IS_TAKEN.load(Ordering::SeqCst)
                });
                terminal.hide_cursor()?;
                assert!(!left_in_between, "{IN_BETWEEN}");
                Ok(())
            })
        });
        begun.recv().expect("a picture");
        let panicking = std::thread::spawn(|| panic!("in the middle of it"));
        drawing.join().expect("a picture").expect("a terminal");
        panicking.join().expect_err("a panic");
        panic!("and of this");
    }

    #[test]
    fn a_panic_anywhere_is_told_on_a_terminal_that_has_been_given_back() {
        check_panic("panics_on_a_terminal_that_is_taken_over");
    }

    #[test]
    fn a_picture_is_finished_before_the_terminal_is_given_back() {
        let told = check_panic("panics_while_another_thread_draws");
        assert!(!told.iter().any(|line| line == IN_BETWEEN), "{told:#?}");
    }

    /// Executes one of the tests above, and says what is on the screen then.
    fn check_panic(test: &str) -> Vec<String> {
        let before = PseudoTerminal::spawn(&Command::new("true")).modes();
        let mut command = Command::new(std::env::current_exe().expect("our own path"));
        let test = format!("top::screen::tests::{test}");
        command.args(["--exact", &test, "--nocapture"]).env(TO_PANIC, "1");
        let mut terminal = PseudoTerminal::spawn(&command);
        assert!(!terminal.await_end().success());
        assert!(!terminal.screen().alternate_screen() && !terminal.screen().hide_cursor());
        assert_eq!(terminal.modes(), before);
        let lines = terminal.lines();
        assert!(lines.iter().any(|line| line == "in the middle of it"), "{lines:#?}");
        lines
    }
}
