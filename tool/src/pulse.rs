//! The tool's sign of life, for the agent: as long as this process runs it comes, however busy the conversation is.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use headwater_protocol::segment::Segment;

use crate::ticker::monotonic_ns;

/// How often it comes. The agent waits for ten of them (`backend::presence`).
const PERIOD: Duration = Duration::from_millis(100);

/// The thread that gives it; it ends when this is dropped.
#[derive(Debug)]
pub struct Pulse {
    _stop: Sender<()>,
}

impl Pulse {
    /// Gives a sign now, and from now on.
    pub fn start(segment: Arc<Segment>) -> io::Result<Pulse> {
        segment.beat(monotonic_ns());
        let (stop, stopped) = channel();
        std::thread::Builder::new().name("pulse".into()).spawn(move || {
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                segment.beat(monotonic_ns());
            }
        })?;
        Ok(Pulse { _stop: stop })
    }
}
