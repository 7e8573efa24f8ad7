//! The conversation with an agent that tells of events.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headwater_protocol::message::events::{Happened, Kind, Kinds, Telling};
use headwater_protocol::message::{Command, Notice, Reply, RequestId, ToAgent, ToTool};
use headwater_protocol::wire::WireError;
use tokio::time::timeout;

use crate::jvm::Jvm;
use crate::jvm::process::has_program;
use crate::profiling::{self, Connected, ProfileError};
use crate::session::{COMMAND_DEADLINE, SessionError};

/// Said of a JVM without performance data.
const NO_POOLS: &str = "this JVM does not say why it collects, nor how much of its heap is in use: it has no performance data \
                        (-XX:+UsePerfData), or is one that is not known";
/// Said of one that is older than JDK 15, or is not HotSpot.
const NO_UNLOADS: &str = "this JVM does not tell which classes are unloaded";
/// How long the agent may take to leave.
const LEAVE_DEADLINE: Duration = Duration::from_secs(5);

/// The JVM's clock by the world's: two names for one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// `System.nanoTime()`.
    pub(crate) jvm_ns: i64,
    /// Since 1970.
    pub(crate) world_ns: i64,
}

impl Clock {
    fn now(jvm_ns: i64) -> Clock {
        let world_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64);
        Clock { jvm_ns, world_ns }
    }

    /// How long after this moment.
    pub(crate) fn since_ns(self, time_ns: i64) -> i64 {
        time_ns.saturating_sub(self.jvm_ns)
    }

    /// In ms since 1970.
    pub(crate) fn world_ms(self, time_ns: i64) -> u64 {
        u64::try_from(self.world_ns.saturating_add(self.since_ns(time_ns)) / 1_000_000).unwrap_or_default()
    }
}

/// A visit to a JVM.
pub(super) struct Visit {
    pid: u32,
    connected: Connected,
    next: RequestId,
    /// What came while something else was waited for.
    heard: VecDeque<Happened>,
}

impl Visit {
    /// Attaches. Nothing is told of yet.
    pub(super) async fn begin(jvm: &Jvm) -> Result<Visit, ProfileError> {
        let connected = profiling::connect_for_events(jvm).await?;
        Ok(Visit { pid: jvm.pid, connected, next: 1, heard: VecDeque::new() })
    }

    /// Has these kinds told, and no others; what the JVM cannot tell of them, and its clock.
    pub(super) async fn switch(&mut self, kinds: Kinds) -> Result<(Clock, Vec<&'static str>), SessionError> {
        let what = "switch the events";
        match self.ask(Command::Tell(kinds), what, COMMAND_DEADLINE).await? {
            Reply::Telling(telling) => Ok((Clock::now(telling.now_ns), remarks(kinds, &telling))),
            reply => Err(SessionError::Agent { what, reason: format!("it answered something else: {reply:?}") }),
        }
    }

    /// What happens next. May be cancelled and called again.
    pub(super) async fn next(&mut self) -> Result<Happened, SessionError> {
        loop {
            if let Some(happened) = self.heard.pop_front() {
                return Ok(happened);
            }
            let message = self.receive().await?;
            self.hear(message)?;
        }
    }

    /// Leaves the JVM as it was; what it has told until then.
    pub(super) async fn leave(mut self) -> Vec<Happened> {
        // An agent that cannot be told to leave, or is gone, is left all the same.
        let _ = self.ask(Command::Detach, "leave", LEAVE_DEADLINE).await;
        self.heard.into()
    }

    async fn ask(&mut self, command: Command, what: &'static str, deadline: Duration) -> Result<Reply, SessionError> {
        let request = self.next;
        self.next += 1;
        let sent = self.connected.connection.send(&ToAgent::Command { request, command }).await;
        sent.map_err(|error| self.ended(error))?;
        let answered = async {
            loop {
                match self.receive().await? {
                    ToTool::Reply { request: answered, reply } if answered == request => {
                        return reply.map_err(|reason| SessionError::Agent { what, reason });
                    }
                    message => self.hear(message)?,
                }
            }
        };
        timeout(deadline, answered).await.unwrap_or(Err(SessionError::Deadline { what }))
    }

    async fn receive(&mut self) -> Result<ToTool, SessionError> {
        let received = self.connected.connection.receive().await;
        received.map_err(|error| self.ended(error))
    }

    /// What it means that nothing more can be sent or received.
    fn ended(&self, error: WireError) -> SessionError {
        of_events(SessionError::of(error, &self.connected.segment), has_program(self.pid))
    }

    fn hear(&mut self, message: ToTool) -> Result<(), SessionError> {
        match message {
            ToTool::Notice(Notice::Happened(happened)) => self.heard.push_back(happened),
            ToTool::Notice(Notice::VmDeath) => return Err(SessionError::TargetEnded),
            // Answers that come too late.
            _ => {}
        }
        Ok(())
    }
}

/// Why a telling of events ended, whose target is still there or not.
fn of_events(error: SessionError, is_alive: bool) -> SessionError {
    match error {
        // Killed, it had no time to say so.
        SessionError::Disconnected if !is_alive => SessionError::TargetEnded,
        // No code was ever another.
        SessionError::GivenUp => SessionError::Left,
        error => error,
    }
}

fn remarks(kinds: Kinds, telling: &Telling) -> Vec<&'static str> {
    let mut remarks = Vec::new();
    if kinds.has(Kind::Gc) && !telling.has_pools {
        remarks.push(NO_POOLS);
    }
    if kinds.has(Kind::Classes) && !telling.has_unloads {
        remarks.push(NO_UNLOADS);
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_said_to_be_given_back_where_nothing_was_changed() {
        let said = of_events(SessionError::GivenUp, true).to_string();
        assert!(said.contains("nothing had been changed in the target") && !said.contains("original code"), "{said}");
        assert!(matches!(of_events(SessionError::Disconnected, true), SessionError::Disconnected));
        assert!(matches!(of_events(SessionError::Disconnected, false), SessionError::TargetEnded));
    }

    #[test]
    fn times_of_the_jvm_are_those_of_the_world() {
        let clock = Clock { jvm_ns: -5_000_000, world_ns: 1_000_000_000 };
        assert_eq!(clock.since_ns(7_000_000), 12_000_000);
        assert_eq!([clock.world_ms(7_000_000), clock.world_ms(-6_000_000)], [1_012, 999]);
        assert_eq!(clock.world_ms(i64::MIN), 0);
    }
}
