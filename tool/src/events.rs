//! What happens in a JVM, told as it happens: collections, classes, threads, waits for monitors, compilations.
//!
//! An agent in the JVM tells a [`visit`]; [`running`] hands on what it hears to a [`teller`], which writes [`text`] or [`json`] and keeps a
//! [`summary`]. The same on the command line, where it is [`run`], and in a session, beside a profile.
//!
//! Why so: docs/decisions/events.md.

use std::time::Duration;

use headwater_protocol::message::events::{Kind, Kinds};
use tokio::time::{Instant, sleep_until};

use crate::jvm::Jvm;
use crate::profiling::ProfileError;
use crate::session::SessionError;

mod json;
pub(crate) mod running;
mod said;
pub(crate) mod summary;
pub(crate) mod teller;
mod text;
mod visit;

use running::{Over, Running};
use teller::Teller;

/// What a kind is called, on the command line, in lines and in objects.
pub(crate) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Gc => "gc",
        Kind::Classes => "classes",
        Kind::Threads => "threads",
        Kind::Monitors => "monitors",
        Kind::Compile => "compile",
    }
}

/// What kinds are called.
pub(crate) fn names(kinds: Kinds) -> String {
    kinds.each().map(name).collect::<Vec<_>>().join(", ")
}

/// How the telling came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The time was over, the user had enough, or who reads had; or the target ended and there was no time for which it was to be told.
    Done,
    /// The target ended before the time was over.
    TargetEnded,
    /// What was told could not be written.
    Failed,
}

/// Has a JVM tell of these kinds of events, for a time, until `interrupt` is ready, or to its own end. `say` is for remarks.
pub(crate) async fn run(
    jvm: &Jvm,
    kinds: Kinds,
    duration: Option<Duration>,
    teller: Teller,
    say: &dyn Fn(&str),
    interrupt: impl Future<Output = ()>,
) -> Result<Ending, ProfileError> {
    let mut interrupt = std::pin::pin!(interrupt);
    let began = async {
        let mut running = Running::begin(jvm, teller).await?;
        let remarks = running.switch(kinds).await?;
        Ok::<_, ProfileError>((running, remarks))
    };
    let (mut running, remarks) = tokio::select! {
        biased;
        // What was begun is dropped, and with it the connection: the agent leaves by itself.
        () = interrupt.as_mut() => return Err(ProfileError::Interrupted),
        began = began => began?,
    };
    remarks.iter().for_each(|remark| say(remark));
    let until = duration
        .map_or_else(|| "until the target ends".to_owned(), |time| format!("for {}", humantime::format_duration(time)));
    say(&format!("telling of {} {until} (Ctrl-C ends it)", names(kinds)));
    let deadline = duration.map(|duration| Instant::now() + duration);
    let over = tokio::select! {
        over = running.over() => over,
        () = interrupt.as_mut() => running.leave().await,
        () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => running.leave().await,
    };
    ended(over, duration.is_some(), say)
}

fn ended(over: Over, has_time: bool, say: &dyn Fn(&str)) -> Result<Ending, ProfileError> {
    if let Some(failed) = over.failed {
        say(&failed);
        return Ok(Ending::Failed);
    }
    match over.lost {
        None => Ok(Ending::Done),
        Some(SessionError::TargetEnded) if has_time => Ok(Ending::TargetEnded),
        Some(SessionError::TargetEnded) => Ok(Ending::Done),
        Some(error) => Err(error.into()),
    }
}
