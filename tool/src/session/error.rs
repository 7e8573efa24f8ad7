//! Why a session ended before its time.

use headwater_protocol::pulse::End;
use headwater_protocol::segment::Segment;
use headwater_protocol::wire::WireError;

use super::COMMAND_DEADLINE;

/// Why a session ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The target says that it is ending.
    #[error("the target ended")]
    TargetEnded,
    /// The agent has closed the connection, or the target is gone.
    #[error("the agent in the target closed the connection: somebody ran `headwater detach`, or the JVM is ending")]
    Disconnected,
    /// The agent has heard nothing of us for too long.
    #[error(
        "this process did not run for too long, or read nothing (it was stopped, or got no processor): the agent has given the target its original \
         code back, and ended the session"
    )]
    GivenUp,
    /// The same of an agent that tells of events.
    #[error(
        "this process did not run for too long, or read nothing (it was stopped, or got no processor): the agent has ended the telling of events; \
         nothing had been changed in the target"
    )]
    Left,
    /// The agent could not do what it was asked.
    #[error("the agent could not {what}: {reason}")]
    Agent {
        /// What was asked.
        what: &'static str,
        /// The agent's reason.
        reason: String,
    },
    /// The agent does not answer.
    #[error("the agent did not {what} within {COMMAND_DEADLINE:?}. Is the target stopped, or out of CPU time?")]
    Deadline {
        /// What was asked.
        what: &'static str,
    },
    /// A message of the agent made no sense.
    #[error("the conversation with the agent broke down: {0}")]
    Wire(WireError),
}

impl SessionError {
    /// What it means that a message could not be sent or received. The agent may have said why before it closed the connection.
    pub(crate) fn of(error: WireError, segment: &Segment) -> SessionError {
        match (error, segment.end()) {
            (WireError::Io(_), Some(End::JvmEnds)) => SessionError::TargetEnded,
            (WireError::Io(_), Some(End::Silence)) => SessionError::GivenUp,
            (WireError::Io(_), Some(End::Detached) | None) => SessionError::Disconnected,
            (other, _) => SessionError::Wire(other),
        }
    }

    /// Whether there is nobody left who could be asked for anything.
    pub fn is_final(&self) -> bool {
        use SessionError::{Disconnected, GivenUp, Left, TargetEnded};
        matches!(self, TargetEnded | Disconnected | GivenUp | Left)
    }
}
