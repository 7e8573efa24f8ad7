//! Processes that keep processors busy beside the program, and children that end with us.

use std::process::{Child, Command, Stdio};

/// A child that does not outlive its use.
#[derive(Debug)]
pub(crate) struct Ended(pub(crate) Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A process that computes on one thread until this is dropped, or we end in whatever way.
#[derive(Debug)]
pub(crate) struct Busy(Child);

/// The loop ends when there is no more standard input.
const LOOP: &str = "while :; do :; done & cat > /dev/null; kill $!; wait";

/// So many of them.
pub(crate) fn start(processes: usize) -> Result<Vec<Busy>, String> {
    (0..processes)
        .map(|_| {
            let mut command = Command::new("sh");
            command.args(["-c", LOOP]).stdin(Stdio::piped());
            command.spawn().map(Busy).map_err(|error| format!("cannot start {command:?}: {error}"))
        })
        .collect()
}

impl Drop for Busy {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // Fails only when it has ended already.
        let _ = self.0.wait();
    }
}
