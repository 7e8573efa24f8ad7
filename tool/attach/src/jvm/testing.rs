//! Processes for the tests of finding and attaching: each is killed by its id when its guard is dropped.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

use headwater_tests::{Jdk, Scratch, compile_text};

/// A child process, killed and waited for on drop.
pub(crate) struct Child(std::process::Child);

impl Child {
    pub(crate) fn start(program: &str, arguments: &[&str]) -> Child {
        Child::spawn(Command::new(program).args(arguments).stdin(Stdio::piped()))
    }

    pub(crate) fn spawn(command: &mut Command) -> Child {
        Child(command.spawn().expect("the program starts"))
    }

    /// A process that is no JVM, has started, and waits.
    pub(crate) fn waiting() -> Child {
        let mut child = Child::spawn(Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()));
        child.0.stdin.as_mut().expect("piped").write_all(b"\n").expect("cat reads");
        child.0.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("cat writes");
        child
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.0.try_wait().expect("our own child").is_none()
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An id that belonged to a process of ours a moment ago.
pub(crate) fn free_pid() -> u32 {
    let mut child = Child::start("true", &[]);
    child.kill();
    child.pid()
}

/// The JDKs on this machine, each once.
pub(crate) fn jdks() -> Vec<PathBuf> {
    let home = env::var_os("JAVA_HOME").map(PathBuf::from);
    let installed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut jdks: Vec<PathBuf> = home
        .into_iter()
        .chain(installed)
        .filter(|jdk| jdk.join("bin/java").is_file())
        .filter_map(|jdk| jdk.canonicalize().ok())
        .collect();
    jdks.sort();
    jdks.dedup();
    assert!(!jdks.is_empty(), "these tests need a JDK in JAVA_HOME or /usr/lib/jvm");
    jdks
}

/// A running JVM whose program has started and waits for the end of its standard input.
pub(crate) struct Target {
    child: Child,
    main: String,
    name: String,
    directory: Scratch,
}

/// Small, and quick to start.
const MODEST: &[&str] = &["-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];

/// The text of a program, under a name that no other test uses.
fn program() -> (String, String) {
    let name = format!("Headwater{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let text = format!(
        "class {name} {{ public static void main(String[] a) throws Exception {{
            System.out.println(\"ready\"); while (System.in.read() >= 0) {{}} }} }}"
    );
    (name, text)
}

/// Its class, in a directory of its own.
fn compiled(jdk: &Path) -> (String, Scratch) {
    let (name, text) = program();
    let jdk = Jdk::at(jdk).expect("a JDK that compiles");
    (name, compile_text(&jdk, &text))
}

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Target {
    pub(crate) fn start(jdk: &Path, options: &[&str], arguments: &[&str]) -> Target {
        Target::start_with(jdk, options, arguments, |_| {})
    }

    pub(crate) fn start_with(
        jdk: &Path,
        options: &[&str],
        arguments: &[&str],
        prepare: impl FnOnce(&mut Command),
    ) -> Target {
        let (name, directory) = compiled(jdk);
        let mut command = Command::new(jdk.join("bin/java"));
        command.args(MODEST).args(options).arg("-cp").arg(directory.path()).arg(&name).args(arguments);
        prepare(&mut command);
        Target::spawn(command, name.clone(), name, directory)
    }

    /// Starts `java` with a source file, which it compiles itself.
    pub(crate) fn start_source(jdk: &Path, options: &[&str], arguments: &[&str]) -> Target {
        let (name, text) = program();
        let directory = Scratch::new("source");
        let source = directory.file(&format!("{name}.java"));
        fs::write(&source, text).expect("the source is written");
        let mut command = Command::new(jdk.join("bin/java"));
        command.args(MODEST).args(options).arg(&source).args(arguments);
        Target::spawn(command, source.to_str().expect("ASCII").to_owned(), name, directory)
    }

    /// Starts `java` as the last arguments of another command, which may hide /tmp: the program's directory is then /mnt.
    pub(crate) fn start_wrapped(jdk: &Path, wrapper: &[&str]) -> Target {
        let (name, directory) = compiled(jdk);
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(jdk.join("bin/java")).args(MODEST).args(["-cp", "/mnt", &name]);
        Target::spawn(command, name.clone(), name, directory)
    }

    fn spawn(mut command: Command, main: String, name: String, directory: Scratch) -> Target {
        command.current_dir(directory.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut target = Target { child: Child::spawn(&mut command), main, name, directory };
        let mut line = String::new();
        let stdout = target.child.0.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("the program writes");
        assert_eq!(line, "ready\n");
        target
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(crate) fn main(&self) -> &str {
        &self.main
    }

    pub(crate) fn unique_name(&self) -> &str {
        &self.name
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.child.kill();
        // A JVM that is killed leaves its attach socket.
        let _ = fs::remove_file(env::temp_dir().join(format!(".java_pid{}", self.pid())));
    }
}
