//! A recording of ours in the target's flight recorder, which takes a while to begin.

use std::time::Duration;

use headwater_jfr::Samples;
use tokio::task::JoinHandle;

use crate::flight_recorder::{RecorderError, Recording, RecordingKind};

/// A thread's stack is sampled so often in its running time. A sample stops its thread for some 20 us.
pub(super) const PERIOD: Duration = Duration::from_millis(4);
/// Not more often: sampled every 2 ms, a service had half as much again in one of its parts as at any longer period (docs/decisions/times.md).
pub(super) const LEAST_PERIOD: Duration = Duration::from_millis(3);

/// How far it has come.
#[derive(Debug)]
pub(super) enum Recorder {
    NotYet,
    Starting(JoinHandle<Result<Recording, RecorderError>>),
    Runs(Box<Recording>),
    Failed(String),
}

impl Recorder {
    /// Begins one that samples so often, keeps so many frames of a stack, and ends after so long by itself.
    pub(super) fn start(pid: u32, period: Duration, depth: usize, longest: Duration) -> Recorder {
        Recorder::Starting(tokio::task::spawn_blocking(move || {
            Recording::start(pid, RecordingKind::Executions(period), depth, longest)
        }))
    }

    /// Looks whether it has begun.
    pub(super) async fn look(&mut self) {
        if let Recorder::Starting(starting) = self
            && starting.is_finished()
        {
            *self = Recorder::begun(starting.await);
        }
    }

    /// Waits until it has begun, or failed.
    pub(super) async fn begin(&mut self) {
        if let Recorder::Starting(starting) = self {
            *self = Recorder::begun(starting.await);
        }
    }

    fn begun(started: Result<Result<Recording, RecorderError>, tokio::task::JoinError>) -> Recorder {
        match started {
            Ok(Ok(recording)) => Recorder::Runs(Box::new(recording)),
            Ok(Err(error)) => Recorder::Failed(error.to_string()),
            Err(panic) => Recorder::Failed(panic.to_string()),
        }
    }

    /// Ends it: what was sampled, and how many recordings of others it had beside it.
    pub(super) async fn finish(mut self) -> (Result<Samples, String>, usize) {
        self.begin().await;
        match self {
            Recorder::Runs(recording) => {
                let others = recording.others();
                // A recording that makes no sense may make its reader panic.
                let read = tokio::task::spawn_blocking(move || recording.finish().map_err(|error| error.to_string()));
                (read.await.unwrap_or_else(|panic| Err(panic.to_string())), others)
            }
            Recorder::Failed(reason) => (Err(reason), 0),
            Recorder::NotYet | Recorder::Starting(_) => (Err("there was no time for it".to_owned()), 0),
        }
    }
}
