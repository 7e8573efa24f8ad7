//! What the end-to-end tests share: installed JDKs, compiled targets, JVMs and tool processes that end with their test.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, waitpid};
use serde_json::Value;

pub mod appearing;
mod compiling;
pub mod counting;
mod course;
mod jdk;
pub mod load;
pub mod mutation;
mod patience;
pub mod random;
pub mod recording;
pub mod terminal;
pub mod tomcat;
pub mod trials;
mod verified;
mod watchdog;

pub use compiling::{compile, compile_directory, compile_library, compile_text, compile_with, javac};
pub use course::{Launched, Profile};
pub use jdk::{INSTEAD, Jdk, jdks, modules};
pub use patience::{Patience, await_that, share};

/// No step of a test takes longer on a machine that is not busy, unless it hangs; [`Patience`] is for those that are.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// So long after its end a process's output may be held by others, before nobody asks for it any more.
const GRACE: Duration = Duration::from_secs(5);

/// Every class file below a directory.
pub fn class_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "class") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A directory that goes away with the test.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A fresh one.
    pub fn new(name: &str) -> Scratch {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("headwater-test-{}-{}-{name}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(unique);
        std::fs::create_dir(&path).expect("a scratch directory");
        Scratch(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What a killed target still holds open is removed with it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process whose lines are read as they come, and which is killed, by its id, when the test is over.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    /// Everything it has said so far that was looked at, for messages.
    seen: Vec<String>,
}

impl Process {
    /// Starts it.
    pub fn spawn(command: &mut Command) -> Process {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let stdin = child.stdin.take();
        let stdout = lines_of(child.stdout.take().expect("piped"));
        let stderr = lines_of(child.stderr.take().expect("piped"));
        Process { child, stdin, stdout, stderr, seen: Vec::new() }
    }

    /// Its id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its standard input.
    pub fn say(&mut self, line: &str) {
        self.tell(line).expect("the process reads");
    }

    /// Writes a line to its standard input, unless it reads no more.
    pub fn tell(&mut self, line: &str) -> std::io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(std::io::ErrorKind::BrokenPipe)?;
        writeln!(stdin, "{line}").and_then(|()| stdin.flush())
    }

    /// Reads no more of what it says: from the next line on that cannot be written.
    pub fn stop_listening(&mut self) {
        (self.stdout, self.stderr) = (channel().1, channel().1);
    }

    /// How it has ended, if it has.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child")
    }

    /// Every line of its standard output that nobody has waited for yet.
    pub fn pending_lines(&mut self) -> Vec<String> {
        self.stdout.try_iter().collect()
    }

    /// The same of its standard error.
    pub fn pending_error_lines(&mut self) -> Vec<String> {
        self.stderr.try_iter().collect()
    }

    /// Waits for a line of its standard output that begins so, and returns that line.
    pub fn await_line(&mut self, beginning: &str) -> String {
        Self::find(&self.stdout, &mut self.seen, beginning).unwrap_or_else(|| self.fail(beginning))
    }

    /// The same, and the lines that came before.
    pub fn await_line_and_those_before(&mut self, beginning: &str) -> (Vec<String>, String) {
        self.seen.clear();
        let line = self.await_line(beginning);
        self.seen.pop();
        (std::mem::take(&mut self.seen), line)
    }

    /// The same for standard error, with a part of a line.
    pub fn await_error_line(&mut self, part: &str) -> String {
        let mut patience = Patience::default();
        loop {
            match patience.receive(&self.stderr) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(_) => self.fail(part),
            }
        }
    }

    fn find(from: &Receiver<String>, seen: &mut Vec<String>, beginning: &str) -> Option<String> {
        let mut patience = Patience::default();
        while let Ok(line) = patience.receive(from) {
            seen.push(line.clone());
            if line.starts_with(beginning) {
                return Some(line);
            }
        }
        None
    }

    fn fail(&mut self, wanted: &str) -> ! {
        let errors: Vec<String> = self.stderr.try_iter().collect();
        panic!("{wanted:?} never came.\nseen: {:#?}\nerrors: {errors:#?}", self.seen)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.raw_pid(), signal).expect("the process is there");
    }

    /// Stops it: its threads are stopped when this returns.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let waited = waitpid(Some(self.raw_pid()), WaitOptions::UNTRACED).expect("our own child");
        assert!(waited.is_some_and(|(_, status)| status.stopped()), "it has not stopped");
    }

    fn raw_pid(&self) -> Pid {
        Pid::from_raw(self.pid().cast_signed()).expect("a pid")
    }

    /// Closes its standard input and waits for its end; the rest of its output.
    pub fn finish(mut self) -> Finished {
        drop(self.stdin.take());
        let (stdout, has_ended) = drain(&self.stdout);
        let (stderr, have_errors_ended) = drain(&self.stderr);
        if !(has_ended && have_errors_ended) {
            panic!("its output never ended.\nseen: {stdout:#?}\nerrors: {stderr:#?}");
        }
        let status = self.child.wait().expect("it has ended");
        Finished { status, stdout, stderr }
    }

    /// Whether it is still running.
    pub fn is_alive(&mut self) -> bool {
        self.status().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a process ended, and what it said since it was last listened to.
#[derive(Debug)]
pub struct Finished {
    /// Its status.
    pub status: ExitStatus,
    /// Lines of standard output.
    pub stdout: Vec<String>,
    /// Lines of standard error.
    pub stderr: Vec<String>,
}

fn lines_of(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// All lines up to the end of the stream; `None` when that does not come.
fn drain(from: &Receiver<String>) -> (Vec<String>, bool) {
    let mut lines = Vec::new();
    loop {
        match Patience::default().receive(from) {
            Ok(line) => lines.push(line),
            Err(error) => return (lines, error == RecvTimeoutError::Disconnected),
        }
    }
}

/// Starts a JVM under full verification, in the directory of its classes.
pub fn java(jdk: &Jdk, classes: &Scratch, options: &[&str], main: &[&str]) -> Process {
    java_with(jdk, classes, &[], options, main)
}

/// The same, for a program that needs libraries.
pub fn java_with(jdk: &Jdk, classes: &Scratch, libraries: &[PathBuf], options: &[&str], main: &[&str]) -> Process {
    let class_path =
        std::env::join_paths(std::iter::once(&classes.0).chain(libraries)).expect("no colons in these paths");
    Process::spawn(jdk.verifying().current_dir(&classes.0).args(options).arg("-cp").arg(class_path).args(main))
}

/// The tool's binary: that of the build these tests belong to.
pub fn headwater() -> Command {
    let own = std::env::current_exe().expect("our own path");
    let binary = own.ancestors().nth(2).expect("target/<profile>/deps/<test>").join("headwater");
    assert!(binary.exists(), "{} is missing: run the tests by `cargo xtask test`", binary.display());
    Command::new(binary)
}

/// Runs the tool to its end.
pub fn run_headwater(arguments: &[&str]) -> Output {
    run(headwater().args(arguments))
}

/// Runs a program to its end, which has to come.
///
/// # Panics
/// If it does not, with what the program said.
pub fn run(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a pid");
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output().expect("our own child")));
    Patience::default().receive(&receiver).unwrap_or_else(|_| {
        // Nobody has waited for it yet, so that the id is still its own.
        let _ = rustix::process::kill_process(pid, Signal::KILL);
        // What it has started may hold its output for ever.
        panic!("{command:?} does not end: {:#?}", receiver.recv_timeout(GRACE))
    })
}

/// What profiles of tests do unless they say otherwise: the target waits as long as it takes, since the limits are of time, and what is asserted of calls has
/// to hold on a machine that is busy with other things; and nothing is timed afterwards, which takes as long again.
const UNLESS_SAID: [[&str; 2]; 2] = [["--gentle", "off"], ["--bare", "off"]];

/// Starts `headwater profile` on a target and waits until its roots are instrumented.
pub fn profile(target: &Process, arguments: &[&str]) -> Process {
    let pid = target.pid().to_string();
    let unsaid = UNLESS_SAID.iter().filter(|[option, _]| !arguments.contains(option)).flatten();
    let mut tool = Process::spawn(headwater().args(["profile", &pid]).args(arguments).args(unsaid));
    tool.await_error_line("instrumented");
    tool
}

/// What a profile says, whose program is told these lines meanwhile, and says `RESULT` to each; it ends with its input.
pub fn profile_while_told(mut target: Launched, options: &[&str], lines: &[&str]) -> Value {
    let profile = Profile::start(&target, options);
    for line in lines {
        target.say(line);
        target.await_line("RESULT");
    }
    let report = profile.interrupted();
    target.ended();
    report
}

/// Calls per method of a JSON report: sums over the tree's nodes.
pub fn calls_by_method(report: &Value) -> BTreeMap<String, u64> {
    let mut calls = BTreeMap::new();
    for node in report["nodes"].as_array().expect("nodes") {
        let method = node["method"].as_str().expect("a method's name").to_owned();
        // Our own machine names end in the return type, as the JVM has it.
        *calls.entry(method).or_default() += node["calls"].as_u64().expect("a number of calls");
    }
    calls
}

/// The merged tree of a JSON report, in the order of names: depth, method and calls of each node, before those below it.
pub fn tree(report: &Value) -> Vec<(usize, String, u64)> {
    let nodes = report["nodes"].as_array().expect("nodes");
    let method = |node: &Value| node["method"].as_str().expect("a method's name").to_owned();
    let mut below: BTreeMap<Option<u64>, Vec<&Value>> = BTreeMap::new();
    for node in nodes {
        below.entry(node["parent"].as_u64()).or_default().push(node);
    }
    // The first by name is taken first, from the end.
    below.values_mut().for_each(|nodes| nodes.sort_by_key(|node| std::cmp::Reverse(method(node))));
    let mut tree = Vec::with_capacity(nodes.len());
    let mut open = vec![(0, below.remove(&None).unwrap_or_default())];
    while let Some((depth, nodes)) = open.last_mut() {
        let Some(node) = nodes.pop() else {
            open.pop();
            continue;
        };
        tree.push((*depth, method(node), node["calls"].as_u64().expect("a number of calls")));
        let deeper = *depth + 1;
        if let Some(nodes) = below.remove(&node["id"].as_u64()) {
            open.push((deeper, nodes));
        }
    }
    tree
}

/// The `COUNT n method` lines of a target's output.
pub fn counts_of_target(lines: &[String]) -> BTreeMap<String, u64> {
    lines
        .iter()
        .filter_map(|line| line.strip_prefix("COUNT "))
        .map(|line| {
            let (count, method) = line.split_once(' ').expect("COUNT n method");
            (method.to_owned(), count.parse().expect("a number"))
        })
        .collect()
}

/// A report that was written to a file.
pub fn read_report(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("the report is JSON")
}

/// Profiles the counting program with these options while it is told these lines; the report, and its own counts.
pub fn counting(jdk: &Jdk, options: &[&str], lines: &[&str]) -> (Value, BTreeMap<String, u64>) {
    counting_while(jdk, options, |target, _| lines.iter().for_each(|line| target.say(line)))
}

/// The same, while something is done with the target and the tool.
pub fn counting_while(
    jdk: &Jdk,
    options: &[&str],
    run: impl FnOnce(&mut Process, &mut Process),
) -> (Value, BTreeMap<String, u64>) {
    let mut target = Launched::of_files(jdk, &["Counter.java", "Counting.java"], &[], &["Counting"]);
    let fixed = ["--root", "Counting::root", "--exclude", "Counter"];
    let mut profile = Profile::start(&target, &[&fixed, options].concat());
    run(&mut target, &mut profile.tool);
    let report = profile.report();
    (report, counts_of_target(&target.quit().stdout))
}
