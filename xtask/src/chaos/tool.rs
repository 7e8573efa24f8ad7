//! The tool: started, listened to, struck, and looked at when it has ended.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use headwater_tests::{Patience, Process};
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};

use super::place;
use super::plan::{Fault, Moment, Output, Place, Plan, Wrong};
use super::target::LOOK;

/// A running tool.
#[derive(Debug)]
pub(super) struct Tool {
    process: Process,
    pub(super) log: String,
    pub(super) file: Option<PathBuf>,
}

impl Tool {
    /// Begins to profile; the output is written into the directory. What is wrong with messages, the library makes so.
    pub(super) fn start(binary: &Path, between: &Path, pid: u32, plan: &Plan, directory: &Path) -> Tool {
        let file = match plan.output {
            Output::Text => None,
            Output::Snapshot => Some(directory.join("profile.hw")),
            Output::Json => Some(directory.join("profile.json")),
        };
        let mut command = Command::new(binary);
        command.env_remove("RUST_BACKTRACE");
        if let Fault::Message(wrong, at) = plan.fault {
            command.env("LD_PRELOAD", between).env("BETWEEN", asked(wrong, at, &plan.garbage));
        }
        command.args(["profile", &pid.to_string(), "--root", "Chaos::root"]).args(&plan.tool);
        if let Some(file) = &file {
            command.arg("-o").arg(file);
        }
        Tool { process: Process::spawn(&mut command), log: String::new(), file }
    }

    /// Waits for a moment. Without it, the tool has ended before.
    pub(super) fn await_moment(&mut self, moment: Moment, delay: Duration) -> Result<bool, String> {
        let line = match moment {
            Moment::Attach => None,
            Moment::Revelation | Moment::Recording | Moment::Detach => Some(" instrumented"),
            Moment::After => Some("timing and sampling the root's calls"),
        };
        let has_come = line.is_none_or(|line| self.heard(line));
        if has_come && moment == Moment::Detach {
            std::thread::sleep(Duration::from_secs(1));
            self.signal(Signal::INT);
        }
        std::thread::sleep(delay);
        Ok(has_come && self.process.is_alive())
    }

    /// Waits for a part of a line; false when that does not come any more.
    fn heard(&mut self, part: &str) -> bool {
        let mut patience = Patience::default();
        while patience.lasts() {
            let is_alive = self.process.is_alive();
            if self.listen().contains(part) {
                return true;
            }
            if !is_alive {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        false
    }

    /// What it has said on standard error since it was last listened to.
    fn listen(&mut self) -> String {
        let lines = self.process.pending_error_lines().into_iter().map(|line| line + "\n");
        let said: String = lines.collect();
        self.log += &said;
        said
    }

    /// Does to it what the plan has for it.
    pub(super) fn strike(&mut self, plan: &Plan, pid: u32) {
        match plan.fault {
            Fault::Nothing
            | Fault::Message(..)
            | Fault::Target(_)
            | Fault::FullDisk
            | Fault::TwoTools
            | Fault::Scarce(_) => {}
            Fault::Killed => self.signal(Signal::KILL),
            Fault::StoppedAndContinued(time) => self.stop(time, Signal::CONT),
            Fault::StoppedAndKilled(time) => self.stop(time, Signal::KILL),
            Fault::Interrupted => self.signal(Signal::INT),
            Fault::InterruptedTwice(between) => {
                self.signal(Signal::INT);
                std::thread::sleep(between);
                self.signal(Signal::INT);
            }
            Fault::Terminated => self.signal(Signal::TERM),
            Fault::NoDescriptors => self.limit(Resource::Nofile, self.descriptors()),
            Fault::NoMemory => self.limit(Resource::As, self.address_space()),
            Fault::FileLimit => self.limit(Resource::Fsize, 100),
            Fault::OutputClosed => self.process.stop_listening(),
            Fault::Garbled(time) => self.garble(pid, &plan.garbage, time),
        }
    }

    fn signal(&mut self, signal: Signal) {
        if self.process.is_alive() {
            self.process.signal(signal);
        }
    }

    fn stop(&mut self, time: Duration, then: Signal) {
        self.signal(Signal::STOP);
        std::thread::sleep(time);
        self.signal(then);
    }

    fn limit(&mut self, resource: Resource, most: u64) {
        if self.process.is_alive() {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            // Fails where it has just ended.
            let _ = prlimit(Pid::from_raw(self.process.pid().cast_signed()), resource, limit);
        }
    }

    fn descriptors(&self) -> u64 {
        fs::read_dir(format!("/proc/{}/fd", self.process.pid())).map_or(0, |all| all.count() as u64)
    }

    /// proc_pid_statm(5): pages.
    fn address_space(&self) -> u64 {
        const PAGE: u64 = 4096;
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.process.pid())).unwrap_or_default();
        statm.split(' ').next().and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE
    }

    /// Says nonsense where the agent is expected, as soon as there is somebody who listens.
    fn garble(&mut self, pid: u32, garbage: &[u8], time: Duration) {
        let mut patience = Patience::default();
        while patience.lasts() && self.process.is_alive() && !self.listen().contains(" instrumented") {
            let sockets = left_of(pid).into_iter().map(|directory| directory.join("control"));
            if let Some(mut stream) = sockets.filter_map(|socket| UnixStream::connect(socket).ok()).next() {
                // It may be closed at once.
                let _ = stream.write_all(garbage);
                std::thread::sleep(time);
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Waits for its end; its exit code, as a shell has it.
    pub(super) fn end(&mut self) -> Result<i32, String> {
        let mut patience = Patience::default();
        loop {
            let status = self.process.status();
            self.listen();
            if let Some(status) = status {
                return Ok(status.code().unwrap_or(128 + status.signal().unwrap_or(0)));
            }
            if !patience.lasts() {
                return Err("the tool hangs: it does not end".to_owned());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// All that it has said.
    pub(super) fn all_said(&mut self) -> String {
        // Its last lines may still be on the way.
        std::thread::sleep(LOOK);
        self.listen();
        format!("{}--- stdout\n{}\n", self.log, self.process.pending_lines().join("\n"))
    }
}

/// What is asked of the library.
fn asked(wrong: Wrong, at: u64, garbage: &[u8]) -> String {
    let (kind, number) = match wrong {
        // Of its bits, eight at a time change a byte of the message.
        Wrong::Garbled => {
            ("garbled", garbage.first_chunk().map_or(1, |bytes| u128::from(u16::from_le_bytes(*bytes)) | 1))
        }
        Wrong::Truncated => ("truncated", 0),
        Wrong::Repeated => ("repeated", 0),
        Wrong::Delayed(time) => ("delayed", time.as_millis()),
        Wrong::OtherVersion => ("version", 0),
    };
    format!("{kind} {at} {number}")
}

/// Has another tool look for JVMs.
pub(super) fn list(binary: &Path) -> Result<(), String> {
    let list = Command::new(binary).arg("list").output().map_err(|error| error.to_string())?;
    let is_done = list.status.success();
    if is_done { Ok(()) } else { Err(format!("headwater list: {}", String::from_utf8_lossy(&list.stderr))) }
}

/// Has another tool see that nothing is left in a target.
pub(super) fn detach(binary: &Path, pid: u32) -> Result<(), String> {
    let detach = Command::new(binary).args(["detach", &pid.to_string()]).output().map_err(|error| error.to_string())?;
    let is_done = detach.status.success();
    if is_done { Ok(()) } else { Err(format!("headwater detach: {}", String::from_utf8_lossy(&detach.stderr))) }
}

/// What tools and agents have in /tmp for a target.
pub(super) fn left_of(pid: u32) -> Vec<PathBuf> {
    let ours = [format!("headwater-{pid}-"), format!("headwater-samples-{pid}")];
    let trigger = format!(".attach_pid{pid}");
    let entries = fs::read_dir("/tmp").into_iter().flatten().flatten();
    let is_ours = |name: &str| name == trigger || ours.iter().any(|begin| name.starts_with(begin));
    entries.filter(|entry| is_ours(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect()
}

/// What they have in the `/tmp` that a target has for itself.
pub(super) fn left_in(place: Place, pid: u32) -> Vec<PathBuf> {
    if !place.has_own_tmp() {
        return Vec::new();
    }
    let entries = fs::read_dir(place::tmp(pid)).into_iter().flatten().flatten();
    let is_ours = |name: &str| name.starts_with("headwater-") || name.starts_with(".attach_pid");
    entries.filter(|entry| is_ours(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect()
}

/// Why a file that a tool has written is no good; it need not be there.
pub(super) fn flaw(binary: &Path, file: &Path) -> Option<String> {
    if !file.exists() {
        return None;
    }
    if file.extension().is_some_and(|extension| extension == "json") {
        let text = fs::read_to_string(file).unwrap_or_default();
        return serde_json::from_str::<serde_json::Value>(&text).err().map(|error| error.to_string());
    }
    let report = Command::new(binary).arg("report").arg(file).output();
    match report {
        Ok(report) if report.status.success() => None,
        Ok(report) => Some(String::from_utf8_lossy(&report.stderr).into_owned()),
        Err(error) => Some(error.to_string()),
    }
}
