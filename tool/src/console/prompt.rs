//! The prompt: a line editor with history and completion in a thread of its own, while the session serves the target.

use std::io::{self, BufRead, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, ExternalPrinter, Helper};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::complete::Completion;
use super::events::Printer;
use super::{Console, ConsoleEvent, Failure, Flow, command};
use crate::printable::printable_lines;

/// How long the editor waits for the session to complete a word: it may be busy with the target.
const COMPLETION_DEADLINE: Duration = Duration::from_secs(2);
/// Lines of history that are kept.
const HISTORY_LINES: usize = 1_000;
const PROMPT: &str = "headwater> ";

/// What comes from the user.
enum Input {
    Line(String),
    /// The editor wants to know how a line may go on.
    Complete(String, mpsc::Sender<Completion>),
    End,
}

/// What the user may send beside lines. From its making on none of them ends the process by itself, and none is missed.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    hangup: Signal,
    interrupts: Signal,
}

impl Signals {
    /// Receives them.
    pub fn new() -> io::Result<Signals> {
        let [terminate, hangup, interrupts] = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        Ok(Signals { terminate: signal(terminate)?, hangup: signal(hangup)?, interrupts: signal(interrupts)? })
    }

    /// Ready when there is one, of whatever kind.
    pub async fn any(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
            _ = self.interrupts.recv() => {}
        }
    }
}

/// Asks for commands and executes them until the user has enough; the exit code.
pub async fn run(mut console: Console, signals: Signals) -> u8 {
    let (inputs, mut received) = unbounded_channel();
    let (turns, turn) = mpsc::channel();
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let mut printer = None;
    let started = if is_terminal {
        let (made, editor) = mpsc::channel();
        let thread = std::thread::Builder::new().name("prompt".into());
        let thread = thread.spawn(move || edit_lines(&inputs, &turn, &made));
        printer = editor.recv().ok().flatten();
        thread
    } else {
        std::thread::Builder::new().name("commands".into()).spawn(move || read_lines(&inputs, &turn))
    };
    if let Err(error) = started {
        let _ = writeln!(io::stderr(), "headwater: a thread could not be started: {error}");
        return 1;
    }
    let printer = printer.map(|printer| Printer(Arc::new(Mutex::new(printer))));
    console.happening.printer = printer.clone();
    let mut told = Told { printer, is_prompting: false };
    let code = converse(&mut console, &mut received, &turns, (signals, &mut told)).await;
    let left = console.detach().await;
    if let Err(failure) = left {
        told.tell(&failure.message);
        return failure.code;
    }
    code
}

/// What is said without having been asked for.
struct Told {
    printer: Option<Printer>,
    /// The user may be typing: the line must not be torn.
    is_prompting: bool,
}

impl Told {
    fn tell(&mut self, message: &str) {
        let message = printable_lines(message);
        let printed = match &self.printer {
            Some(printer) if self.is_prompting => printer.print(format!("{message}\n")),
            _ => false,
        };
        if !printed {
            let _ = writeln!(io::stderr(), "{message}");
        }
    }
}

async fn converse(
    console: &mut Console,
    received: &mut UnboundedReceiver<Input>,
    turns: &mpsc::Sender<()>,
    (signals, told): (Signals, &mut Told),
) -> u8 {
    let Signals { mut terminate, mut hangup, mut interrupts } = signals;
    let mut code = 0;
    loop {
        // What came too late to stop the last command is not meant for the next one.
        while let Ok(Some(())) = tokio::time::timeout(Duration::ZERO, interrupts.recv()).await {}
        // The editor reads one line at a time: a command has the terminal to itself.
        if turns.send(()).is_err() {
            return code;
        }
        told.is_prompting = true;
        let line = loop {
            let input = async {
                tokio::select! {
                    input = received.recv() => input.unwrap_or(Input::End),
                    _ = terminate.recv() => Input::End,
                    _ = hangup.recv() => Input::End,
                }
            };
            let mut input = pin!(input);
            match console.serve_until(input.as_mut()).await {
                Ok(Input::Line(line)) => break line,
                Ok(Input::End) => return code,
                Ok(Input::Complete(line, answer)) => {
                    // An editor that no longer waits shows nothing.
                    let _ = answer.send(console.complete(&line).await);
                }
                Err(ConsoleEvent::Complete(message)) => told.tell(&message),
                Err(ConsoleEvent::Lost(failure)) => {
                    told.tell(&failure.message);
                    // A root that matches nothing does not end what goes on.
                    if failure.code != 4 {
                        code = failure.code;
                    }
                }
            }
        };
        told.is_prompting = false;
        let environment = |name: &str| std::env::var(name).ok();
        let executed = match command::parse(&line, &environment) {
            Ok(statement) => {
                // While the editor does not read, Ctrl-C is a signal, and stops what is under way.
                let interrupt = async {
                    interrupts.recv().await;
                };
                console.execute(statement, interrupt).await
            }
            Err(error) => Err(Failure { code: 2, message: error.message }),
        };
        match executed {
            Ok(Flow::Continue) => {}
            Ok(Flow::Quit) => return code,
            Err(failure) => {
                told.tell(&failure.message);
                if failure.code == 5 {
                    code = failure.code;
                }
            }
        }
    }
}

/// Without a terminal: plain lines.
fn read_lines(inputs: &UnboundedSender<Input>, turn: &mpsc::Receiver<()>) {
    let mut lines = io::stdin().lock().lines();
    while turn.recv().is_ok() {
        let input = match lines.next() {
            Some(Ok(line)) => Input::Line(line),
            Some(Err(_)) | None => Input::End,
        };
        if inputs.send(input).is_err() {
            return;
        }
    }
}

/// With a terminal: the line editor.
fn edit_lines(
    inputs: &UnboundedSender<Input>,
    turn: &mpsc::Receiver<()>,
    made: &mpsc::Sender<Option<Box<dyn ExternalPrinter + Send>>>,
) {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .history_ignore_space(true)
        .max_history_size(HISTORY_LINES)
        .map(|builder| builder.build())
        .unwrap_or_default();
    let Ok(mut editor) = Editor::<Asking, FileHistory>::with_config(config) else {
        // What the terminal cannot do is done without.
        let _ = made.send(None);
        return read_lines(inputs, turn);
    };
    let printer = editor.create_external_printer().ok();
    let _ = made.send(printer.map(|printer| Box::new(printer) as Box<dyn ExternalPrinter + Send>));
    editor.set_helper(Some(Asking { inputs: inputs.clone() }));
    let history = history_file();
    if let Some(file) = &history {
        // There is none the first time.
        let _ = editor.load_history(file);
    }
    while turn.recv().is_ok() {
        let input = loop {
            match editor.readline(PROMPT) {
                Ok(line) => {
                    let _ = editor.add_history_entry(&line);
                    break Input::Line(line);
                }
                // Ctrl-C at the prompt drops the line.
                Err(ReadlineError::Interrupted) => {}
                Err(_) => break Input::End,
            }
        };
        let ends = matches!(input, Input::End);
        if let Some(file) = &history {
            // A history that cannot be kept is no reason to stop.
            let _ = editor.save_history(file);
        }
        if inputs.send(input).is_err() || ends {
            return;
        }
    }
}

/// `$XDG_STATE_HOME/headwater/history`; its directory is made. None where these belong to somebody else, as after `sudo` may be: he could
/// have us write anywhere.
fn history_file() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let (base, below) = match variable("XDG_STATE_HOME") {
        Some(state) => (state, "headwater"),
        None => (variable("HOME")?, ".local/state/headwater"),
    };
    let is_ours = |owner: u32| owner == rustix::process::geteuid().as_raw();
    if std::fs::metadata(&base).is_ok_and(|base| !is_ours(base.uid())) {
        return None;
    }
    let directory = base.join(below);
    std::fs::create_dir_all(&directory).ok()?;
    Some(directory.join("history"))
}

/// Completion by asking the session.
struct Asking {
    inputs: UnboundedSender<Input>,
}

impl Completer for Asking {
    type Candidate = String;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let (answer, answered) = mpsc::channel();
        let asked = self.inputs.send(Input::Complete(line[..position].to_owned(), answer));
        let completion = asked.ok().and_then(|()| answered.recv_timeout(COMPLETION_DEADLINE).ok()).unwrap_or_default();
        Ok((completion.start, completion.candidates))
    }
}

impl Hinter for Asking {
    type Hint = String;
}

impl Highlighter for Asking {}
impl Validator for Asking {}
impl Helper for Asking {}
