//! A program in a pseudo-terminal, driven as a user does it: type, and wait for what appears.

use std::fmt;
use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::Patience;

/// The program; killed, by its id, when the test is over.
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// What has appeared and not been waited for yet, without escape sequences.
    pending: String,
    /// Bytes that are not a complete sequence yet.
    stripped: anstream::adapter::StripBytes,
    /// What a terminal would show.
    shown: vt100::Parser,
    /// How many bytes have been looked at.
    received: usize,
}

/// How a terminal passes keys on and shows what is written to it, but for the speed of its line.
#[derive(Debug, PartialEq, Eq)]
pub struct Modes {
    input: rustix::termios::InputModes,
    output: rustix::termios::OutputModes,
    control: rustix::termios::ControlModes,
    local: rustix::termios::LocalModes,
}

impl Terminal {
    /// Starts a program whose controlling terminal is a new pseudo-terminal of 120 columns and 40 rows.
    pub fn spawn(command: &Command) -> Terminal {
        Terminal::sized(command, 120, 40)
    }

    /// The same with so many columns and rows.
    pub fn sized(command: &Command, columns: u16, rows: u16) -> Terminal {
        let master =
            rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pty");
        rustix::pty::grantpt(&master).and_then(|()| rustix::pty::unlockpt(&master)).expect("a pty");
        let name = rustix::pty::ptsname(&master, Vec::new()).expect("its name");
        let slave = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
        let slave = File::from(slave.expect("the other end"));
        rustix::termios::tcsetwinsize(&slave, size(columns, rows)).expect("a size");
        // setsid of util-linux makes the terminal the controlling one and becomes the program.
        let child = Command::new("setsid")
            .arg("--ctty")
            .arg(command.get_program())
            .args(command.get_args())
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .env("TERM", "xterm")
            .stdin(slave.try_clone().expect("a descriptor"))
            .stdout(slave.try_clone().expect("a descriptor"))
            .stderr(slave)
            .spawn()
            .expect("setsid starts");
        let mut screen = File::from(master);
        let keyboard = screen.try_clone().expect("a descriptor");
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // An error is the end: nobody has the other side open any more.
            while let Ok(count @ 1..) = screen.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let shown = vt100::Parser::new(cells(rows), cells(columns), 0);
        let stripped = anstream::adapter::StripBytes::default();
        Terminal { child, keyboard, screen: receiver, pending: String::new(), stripped, shown, received: 0 }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives the terminal another size; the program is told.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.shown.screen_mut().set_size(cells(rows), cells(columns));
        rustix::termios::tcsetwinsize(&self.keyboard, size(columns, rows)).expect("a size");
    }

    /// What a terminal shows by now.
    pub fn screen(&self) -> &vt100::Screen {
        self.shown.screen()
    }

    /// What a terminal shows by now, in lines without blanks at their ends.
    pub fn lines(&self) -> Vec<String> {
        let (_, columns) = self.screen().size();
        self.screen().rows(0, columns.get()).map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until what a terminal shows is as it should be.
    pub fn await_screen(&mut self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut patience = Patience::default();
        loop {
            let lines = self.lines();
            if is_so(&lines) {
                return lines;
            }
            match patience.receive(&self.screen) {
                Ok(bytes) => self.appear(&bytes),
                Err(_) => panic!("{what} never was on the screen:\n{}", lines.join("\n")),
            }
        }
    }

    /// Waits until a text is on the screen.
    pub fn await_text(&mut self, text: &str) -> Vec<String> {
        self.await_screen(text, |lines| lines.iter().any(|line| line.contains(text)))
    }

    /// How many bytes were written to it, as far as they have been waited for.
    pub fn received(&self) -> usize {
        self.received
    }

    /// What is set of it now.
    pub fn modes(&self) -> Modes {
        let termios = rustix::termios::tcgetattr(&self.keyboard).expect("a terminal's modes");
        Modes {
            input: termios.input_modes,
            output: termios.output_modes,
            control: termios.control_modes,
            local: termios.local_modes,
        }
    }

    /// Sends the program a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid().cast_signed()).expect("a pid");
        rustix::process::kill_process(pid, signal).expect("the program is there");
    }

    /// Waits for the program's end, without what is left to be waited for: the terminal stays.
    pub fn await_end(&mut self) -> ExitStatus {
        let mut patience = Patience::default();
        while let Ok(bytes) = patience.receive(&self.screen) {
            self.appear(&bytes);
        }
        let ended = self.child.try_wait().expect("our own child");
        ended.or_else(|| self.child.wait().ok()).expect("it has ended")
    }

    /// Presses keys; `\r` is Enter, `\x03` Ctrl-C, `\x04` Ctrl-D, `\t` Tab.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Types a line.
    pub fn say(&mut self, line: &str) {
        self.press(&format!("{line}\r"));
    }

    /// Whether the program reads single keys just now: Ctrl-C is then a key, and else a signal.
    pub fn is_raw(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.keyboard).expect("a terminal's modes");
        !modes.local_modes.contains(rustix::termios::LocalModes::ISIG)
    }

    /// Waits until a text appears; what appeared before it, and it. What comes later stays for the next call.
    pub fn expect(&mut self, text: &str) -> String {
        let mut patience = Patience::default();
        loop {
            if let Some(at) = self.pending.find(text) {
                let rest = self.pending.split_off(at + text.len());
                return std::mem::replace(&mut self.pending, rest);
            }
            match patience.receive(&self.screen) {
                Ok(bytes) => self.appear(&bytes),
                Err(_) => panic!("{text:?} never appeared after:\n{}", self.pending),
            }
        }
    }

    fn appear(&mut self, bytes: &[u8]) {
        self.received += bytes.len();
        self.shown.process(bytes);
        for printable in self.stripped.strip_next(bytes) {
            self.pending.push_str(&String::from_utf8_lossy(printable));
        }
    }

    /// Waits for the program's end; the rest of what appeared.
    pub fn finish(mut self) -> (ExitStatus, String) {
        let status = self.await_end();
        (status, std::mem::take(&mut self.pending))
    }
}

fn cells(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a terminal has rows and columns")
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").field("child", &self.child).field("lines", &self.lines()).finish_non_exhaustive()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
