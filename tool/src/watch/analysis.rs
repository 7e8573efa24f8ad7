//! Programs that are given what is seen, one object a line on their standard input, each in a process of its own.
//!
//! A program that ends, or does not read, harms nothing else: its lines wait in an [`Outlet`], and what has no room there is left out, and told.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::outlet::{Given, Lines, Outlet, Weight};

/// Of a line that an analysis says so much is shown.
const LONGEST_LINE_BYTES: usize = 16 << 10;
/// What an analysis has said when it ended is read for so long; another process may still have its output open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Heard from an analysis.
#[derive(Debug)]
pub(super) enum Heard {
    /// It said a line, on its standard output or standard error.
    Said { analysis: usize, line: String },
    /// It has ended.
    Ended { analysis: usize, status: io::Result<ExitStatus> },
}

/// A program that is given what is seen.
pub(super) struct Analysis {
    pub(super) command: String,
    outlet: Outlet,
    kill: Option<oneshot::Sender<()>>,
    pub(super) has_ended: bool,
    pub(super) left_out: u64,
}

impl Analysis {
    /// Starts the program, by a shell. What it says, and that it has ended, is heard as of the analysis with this number.
    pub(super) fn start(command: &str, number: usize, heard: Sender<Heard>) -> io::Result<Analysis> {
        let mut shell = std::process::Command::new("/bin/sh");
        shell.arg("-c").arg(command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C is for us, and all of it can be ended.
        shell.process_group(0);
        let mut shell = Command::from(shell);
        shell.kill_on_drop(true);
        let mut child = shell.spawn()?;
        let pipe = || io::Error::other("its standard streams are not there");
        let stdin = child.stdin.take().ok_or_else(pipe)?.into_owned_fd()?;
        let (stdout, stderr) = (child.stdout.take().ok_or_else(pipe)?, child.stderr.take().ok_or_else(pipe)?);
        let outlet = Outlet::to(Lines(std::fs::File::from(stdin)))?;
        let (kill, mut killed) = oneshot::channel();
        let listening =
            [tokio::spawn(listen(stdout, number, heard.clone())), tokio::spawn(listen(stderr, number, heard.clone()))];
        tokio::spawn(async move {
            let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
            let status = tokio::select! {
                status = child.wait() => status,
                // Dropped too: then nobody wants it any more.
                _ = &mut killed => {
                    // The child has not been waited for, so the number is still its own.
                    if let Some(group) = group {
                        let _ = rustix::process::kill_process_group(group, Signal::KILL);
                    }
                    child.wait().await
                }
            };
            for mut listening in listening {
                if timeout(LAST_WORDS, &mut listening).await.is_err() {
                    listening.abort();
                }
            }
            let _ = heard.send(Heard::Ended { analysis: number, status }).await;
        });
        Ok(Analysis { command: command.to_owned(), outlet, kill: Some(kill), has_ended: false, left_out: 0 })
    }

    /// Gives it a line. Says when the first of several has to be left out.
    pub(super) fn give(&mut self, line: Arc<str>, weight: Weight) -> Option<String> {
        if self.has_ended {
            return None;
        }
        match self.outlet.give(line, weight) {
            Given::Taken => None,
            // That it has ended is heard.
            Given::Broken => None,
            Given::LeftOut { is_first } => {
                self.left_out += 1;
                is_first.then(|| {
                    format!(
                        "the analysis `{}` does not read what it is given: traces are left out for it",
                        self.command
                    )
                })
            }
        }
    }

    /// Nothing more is given to it.
    pub(super) fn close(&self) {
        self.outlet.close();
    }

    /// Ends it, and what it has started.
    pub(super) fn kill(&mut self) {
        self.kill = None;
    }
}

/// How a program has ended, behind its name.
pub(super) fn ended(status: &io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => format!("{status}"),
        Err(error) => error.to_string(),
    }
}

/// Reads lines, as far as they are not too long.
async fn listen(stream: impl AsyncRead + Unpin, analysis: usize, heard: Sender<Heard>) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        let (used, is_end) = match stream.fill_buf().await {
            Ok([]) | Err(_) => (0, true),
            Ok(bytes) => {
                let end = bytes.iter().position(|byte| *byte == b'\n');
                let part = &bytes[..end.unwrap_or(bytes.len())];
                let room = LONGEST_LINE_BYTES - line.len();
                line.extend_from_slice(&part[..part.len().min(room)]);
                (end.map_or(bytes.len(), |end| end + 1), end.is_some())
            }
        };
        stream.consume(used);
        if is_end && (used > 0 || !line.is_empty()) {
            let said = Heard::Said { analysis, line: String::from_utf8_lossy(&line).into_owned() };
            if heard.send(said).await.is_err() {
                return;
            }
            line.clear();
        }
        if used == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{Receiver, channel};

    use super::*;

    async fn next(heard: &mut Receiver<Heard>) -> String {
        match heard.recv().await.expect("its end is heard") {
            Heard::Said { line, .. } => line,
            Heard::Ended { status, .. } => format!("ended: {}", ended(&status)),
        }
    }

    #[tokio::test]
    async fn a_program_is_given_lines_and_what_it_says_is_heard() {
        let (sender, mut heard) = channel(4);
        let mut analysis = Analysis::start("while read a; do echo got $a; done; exit 3", 0, sender).expect("a shell");
        assert_eq!(analysis.give("one".into(), Weight::Needed), None);
        assert_eq!(next(&mut heard).await, "got one");
        assert_eq!(analysis.give("two".into(), Weight::Needed), None);
        analysis.close();
        assert_eq!(next(&mut heard).await, "got two");
        assert_eq!(next(&mut heard).await, "ended: exit status: 3");
    }

    #[tokio::test]
    async fn one_that_does_not_read_is_told_of_and_is_ended_with_all_that_it_has_started() {
        let (sender, mut heard) = channel(4);
        let mut analysis = Analysis::start("sleep 1000 & echo $!; wait", 0, sender).expect("a shell");
        let started = next(&mut heard).await;
        let large: Arc<str> = "x".repeat(8 << 20).into();
        let said = loop {
            if let Some(said) = analysis.give(Arc::clone(&large), Weight::Passing) {
                break said;
            }
        };
        assert!(said.starts_with("the analysis `sleep 1000 & echo $!; wait` does not read"), "{said}");
        analysis.kill();
        assert_eq!(next(&mut heard).await, "ended: signal: 9 (SIGKILL)");
        // What it had started is gone too, but for what its new parent has still to wait for.
        let is_there = || {
            let stat = std::fs::read_to_string(format!("/proc/{started}/stat")).ok()?;
            (!stat.rsplit_once(") ")?.1.starts_with('Z')).then_some(())
        };
        while is_there().is_some() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_line_without_end_is_cut_and_not_kept() {
        let (sender, mut heard) = channel(4);
        let long = "head -c 200000 /dev/zero | tr '\\0' x; echo; echo done";
        let _analysis = Analysis::start(long, 0, sender).expect("a shell");
        assert_eq!(next(&mut heard).await.len(), LONGEST_LINE_BYTES);
        assert_eq!(next(&mut heard).await, "done");
    }
}
