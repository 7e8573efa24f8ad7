//! A program in a pseudo-terminal, driven as a user does it: type, and wait for what appears.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

use crate::PATIENCE;

/// The program; killed, by its id, when the test is over.
#[derive(Debug)]
pub struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    /// What has appeared and not been waited for yet, without escape sequences.
    pending: String,
    /// Bytes that are not a complete sequence yet.
    stripped: anstream::adapter::StripBytes,
}

impl Terminal {
    /// Starts a program whose controlling terminal is a new pseudo-terminal of 120 columns and 40 rows.
    pub fn spawn(command: &Command) -> Terminal {
        let master =
            rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pty");
        rustix::pty::grantpt(&master).and_then(|()| rustix::pty::unlockpt(&master)).expect("a pty");
        let name = rustix::pty::ptsname(&master, Vec::new()).expect("its name");
        let slave = rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty());
        let slave = File::from(slave.expect("the other end"));
        let size = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&slave, size).expect("a size");
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
        Terminal { child, keyboard, screen: receiver, pending: String::new(), stripped: Default::default() }
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
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.pending.find(text) {
                let rest = self.pending.split_off(at + text.len());
                return std::mem::replace(&mut self.pending, rest);
            }
            match self.screen.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.appear(&bytes),
                Err(_) => panic!("{text:?} never appeared after:\n{}", self.pending),
            }
        }
    }

    fn appear(&mut self, bytes: &[u8]) {
        for printable in self.stripped.strip_next(bytes) {
            self.pending.push_str(&String::from_utf8_lossy(printable));
        }
    }

    /// Waits for the program's end; the rest of what appeared.
    pub fn finish(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(bytes) = self.screen.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.appear(&bytes);
        }
        let ended = self.child.try_wait().expect("our own child");
        let status = ended.or_else(|| self.child.wait().ok()).expect("it has ended");
        (status, std::mem::take(&mut self.pending))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
