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

/// So many processes that compute, each on one thread, until they are dropped.
pub(crate) fn start(processes: usize) -> Result<Vec<Ended>, String> {
    (0..processes)
        .map(|_| {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            command.spawn().map(Ended).map_err(|error| format!("cannot start {command:?}: {error}"))
        })
        .collect()
}
