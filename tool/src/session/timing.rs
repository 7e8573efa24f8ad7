//! The roots' calls, timed as wholes without a profile: before anything below them is instrumented, or when all of that has been given back.

use std::num::NonZeroU32;
use std::time::Duration;

use headwater_protocol::ClassId;
use headwater_protocol::message::{Command, Reply, ToTool, Upcall};

use super::{Session, SessionError, unexpected};

impl Session {
    /// Instruments the roots among selected classes alone, and has each of their calls timed as a whole, until
    /// [`Session::end_timing`]; whether there are any. Meanwhile only [`Session::hear`] is to be called.
    ///
    /// Only in a JVM that keeps its compiled code. Not where a call may go on for longer than that: the classes are redefined twice, and what it had
    /// called by then could not be told from what it calls later.
    pub async fn time_roots_alone(&mut self, classes: &[ClassId]) -> Result<bool, SessionError> {
        let classes: Vec<ClassId> = classes.iter().copied().filter(|class| self.graph.has_root(*class)).collect();
        if classes.is_empty() || !self.graph.each_root_is_called_again() {
            return Ok(false);
        }
        self.segment.set_control(Some(NonZeroU32::MIN));
        self.cost.keeps_compiled_code();
        self.graph.hold_back_others(true);
        let hotswap = Command::Hotswap { classes: classes.clone() };
        let reply = self.command(hotswap, "hotswap the roots").await;
        self.graph.hold_back_others(false);
        match reply? {
            Reply::Hotswapped(result) => self.account(&classes, &result),
            other => return Err(unexpected("hotswap the roots", &other)),
        }
        self.command(Command::Record, "time the roots").await?;
        Ok(true)
    }

    /// Hears what the agent says: threads are answered at once, and what they ask for has its turn afterwards.
    pub async fn hear(&mut self) -> Result<(), SessionError> {
        let message = self.connection.receive().await.map_err(|error| SessionError::of(error, &self.segment))?;
        match message {
            ToTool::Upcall { upcall: Upcall::ClassBytes { .. } | Upcall::Hotswapped(_), .. } => {
                self.hear_meanwhile(message).await
            }
            ToTool::Upcall { request, upcall, .. } => self.settle_later(request, upcall).await,
            other => self.hear_meanwhile(other).await,
        }
    }

    /// No more calls are timed; of those that will be recorded, so many are timed as wholes. The target's time of the last that was timed.
    pub async fn end_timing(&mut self, control: Option<NonZeroU32>) -> Result<i64, SessionError> {
        let time_ns = match self.command(Command::Stop, "stop timing").await? {
            Reply::Stopped { time_ns } => time_ns,
            other => return Err(unexpected("stop timing", &other)),
        };
        self.segment.set_control(control);
        Ok(time_ns)
    }

    /// Hears what the agent says until a thread waits for an answer, or for so long.
    pub(super) async fn await_question(&mut self, long: Duration) -> Result<(), SessionError> {
        let begun = tokio::time::Instant::now();
        let until = begun + long;
        while self.queue.is_empty() {
            let Ok(message) = tokio::time::timeout_at(until, self.connection.receive()).await else { break };
            let message = message.map_err(|error| SessionError::of(error, &self.segment))?;
            self.hear_meanwhile(message).await?;
        }
        self.spent.add("wait", begun.elapsed());
        Ok(())
    }

    /// After [`Session::stop`]: restores everything below the roots, and has each call of a root timed as a
    /// whole, until the next [`Session::stop`].
    pub async fn time_roots(&mut self) -> Result<(), SessionError> {
        self.stopping = false;
        // What is given back is no discovery.
        self.allowance = None;
        let (hotswaps, last_hotswap) = (self.hotswaps.clone(), self.last_hotswap);
        let others = self.graph.keep_only_roots();
        // What was to be instrumented and has not been is what it was.
        self.left_over.retain(|class| self.graph.has_root(*class));
        // A part at a time: no pause is to be longer than those of the profile.
        self.hotswap_by_agent(others).await?;
        // Else they would be timed as the profile has left the compilers, not as the program runs without.
        self.command(Command::ForgetLambdas, "have profiles forgotten").await?;
        // What the profile cost is another matter.
        (self.hotswaps, self.last_hotswap) = (hotswaps, last_hotswap);
        self.segment.set_control(Some(NonZeroU32::MIN));
        self.command(Command::Record, "time the roots").await?;
        self.turn().await
    }
}
