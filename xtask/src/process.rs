//! Child processes that end: by themselves, or killed when their time is over.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a process said.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// Runs a process to its end. That it fails, or takes longer than the limit, is an error.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<Said, String> {
    const POLL: Duration = Duration::from_millis(10);
    let started = Instant::now();
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut process = Running(spawned.map_err(|error| format!("cannot start {command:?}: {error}"))?);
    let stdout = process.0.stdout.take().map(read_all);
    let stderr = process.0.stderr.take().map(read_all);
    let status = loop {
        match process.0.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if started.elapsed() > limit => {
                return Err(format!("not at its end after {} s: {command:?}", limit.as_secs()));
            }
            Ok(None) => std::thread::sleep(POLL),
            Err(error) => return Err(format!("{command:?}: {error}")),
        }
    };
    let read = |reader: Option<std::thread::JoinHandle<Vec<u8>>>| {
        reader.and_then(|thread| thread.join().ok()).unwrap_or_default()
    };
    let said = Said { stdout: read(stdout), stderr: String::from_utf8_lossy(&read(stderr)).into_owned() };
    if status.success() {
        Ok(said)
    } else {
        let stdout = String::from_utf8_lossy(&said.stdout);
        Err(format!("{command:?} ended with {status}:\n{}{}", tail(&stdout), tail(&said.stderr)))
    }
}

/// The end of a text, where the reason stands.
fn tail(text: &str) -> String {
    const LINES: usize = 30;
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].iter().map(|line| format!("{line}\n")).collect()
}

fn read_all(mut stream: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is what there is.
        let _ = stream.read_to_end(&mut bytes);
        bytes
    })
}

/// A child that does not outlive its use.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
