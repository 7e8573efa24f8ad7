//! A thread of the target asks the tool, and does what it is answered; or it tells, and goes on.

use std::time::{Duration, Instant};

use headwater_protocol::message::{Answer, Notice, Upcall};

use super::Session;
use crate::connection::AskError;
use crate::jni_env::Jni;
use crate::patience::LEAST;
use crate::peek;

impl Session {
    /// Whether the current thread waits for what it reveals.
    pub fn waits(&self) -> bool {
        !self.time_left().is_zero()
    }

    fn time_left(&self) -> Duration {
        let nobody_waits = self.reveals_in_background() || self.target.connection.presence().is_absent();
        if nobody_waits { Duration::ZERO } else { self.patience.left() }
    }

    /// Has the tool decide what the current thread reveals: the thread asks, waits, and executes what it is answered; or it tells, and goes on.
    pub fn ask_and_follow(&self, jni: Jni, upcall: Upcall) {
        let left = self.time_left();
        if left.is_zero() || !self.target.connection.presence().may_ask() {
            self.target.connection.notice(told(upcall));
            return;
        }
        let start = Instant::now();
        let mut answer = self.target.connection.ask(upcall, left);
        loop {
            let next = match &answer {
                Ok(Answer::Hotswap { classes }) if !classes.is_empty() => {
                    Upcall::Hotswapped(self.hotswap(jni, classes))
                }
                Ok(Answer::Link { classes }) => {
                    // Another could call what is linked before it is instrumented.
                    if self.target.runtime.threads(jni) == 1 {
                        peek::link(self.target.jvmti, jni, &self.target.classes, classes);
                    }
                    Upcall::Linked
                }
                _ => break,
            };
            answer = self.target.connection.ask(next, left.saturating_sub(start.elapsed()).max(LEAST));
        }
        self.patience.spend(start);
    }

    /// Asks the tool what the bytes of a class that is being loaded are to be.
    pub fn ask_while_loading(&self, upcall: Upcall) -> Result<Option<Vec<u8>>, AskError> {
        if !self.target.connection.presence().may_ask() {
            return Err(AskError::Deadline);
        }
        let start = Instant::now();
        let answer = self.target.connection.ask(upcall, self.time_left());
        self.patience.spend(start);
        answer.map(bytes)
    }

    /// Asks the tool what the bytes of a class that is being retransformed are to be. Who retransforms does not go on without: the class would be
    /// given its own code; but if the tool is absent, that is what becomes of it.
    pub fn ask_while_retransforming(&self, upcall: Upcall) -> Result<Option<Vec<u8>>, AskError> {
        if self.target.connection.presence().is_absent() {
            return Err(AskError::Deadline);
        }
        self.target.connection.ask(upcall, Duration::MAX).map(bytes)
    }
}

fn bytes(answer: Answer) -> Option<Vec<u8>> {
    match answer {
        Answer::Bytes(bytes) => bytes,
        Answer::Hotswap { .. } | Answer::Link { .. } => None,
    }
}

/// What a thread tells that does not ask.
fn told(upcall: Upcall) -> Notice {
    match upcall {
        Upcall::FirstCall(method) => Notice::FirstCall(method),
        Upcall::Reflected(method) => Notice::Reflected(method),
        Upcall::Received { call, class } => Notice::Received { call, class },
        Upcall::ClassPrepared(info) => Notice::ClassPrepared(info),
        Upcall::ClassBytes { .. } | Upcall::Hotswapped(_) | Upcall::Linked => {
            unreachable!("a thread that is asked for class files, or hotswaps, waits")
        }
    }
}
