//! The agent's questions and notices: each is answered, and one at a time while a hotswap is under way.

use std::time::Instant;

use headwater_protocol::message::{Answer, ClassInfo, MethodRef, Notice, RequestId, ToAgent, ToTool, Upcall};
use headwater_protocol::{ClassId, MethodId, ThreadId};

use super::{Running, Session, SessionError, SessionEvent};
use crate::cpu_share::OsThread;
use crate::decode::Returned;

/// A question of the agent's that waits for its turn.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) request: RequestId,
    pub(super) thread: Option<ThreadId>,
    pub(super) upcall: Upcall,
}

/// What a running hotswap's own thread has told, or threads that do not wait: seen to with everything else of its kind.
#[derive(Debug, Default)]
pub(super) struct Meanwhile {
    /// Classes that were linked.
    pub(super) linked: Vec<ClassInfo>,
    /// Methods that were entered for the first time.
    pub(super) entered: Vec<MethodId>,
    /// Methods that were called by reflection for the first time.
    pub(super) reflected: Vec<MethodRef>,
    /// ... and on objects of which class.
    pub(super) received: Vec<(u32, ClassId)>,
    /// Methods that were watched and have run.
    pub(super) run: Vec<MethodRef>,
    /// Somebody who told some of this went on.
    pub(super) went_on: bool,
    /// Questions that were answered because recording ends: some of those who asked may have gone on before.
    pub(super) answered: Vec<Pending>,
}

impl Session {
    /// Handles one event and whatever it makes possible.
    pub async fn serve(&mut self, event: SessionEvent) -> Result<(), SessionError> {
        let message = match event {
            SessionEvent::Message(message) => message,
            SessionEvent::Tally => {
                self.tallied();
                let is_idle = self.left_over.is_empty() && self.losing.is_empty() && !self.has_chosen();
                return if is_idle { Ok(()) } else { self.turn().await };
            }
            SessionEvent::Due => return self.turn().await,
        };
        match message {
            ToTool::Notice(notice) => {
                self.note(notice)?;
                if self.puts_off() {
                    return Ok(());
                }
            }
            ToTool::Upcall { request, thread, upcall } => self.called(Pending { request, thread, upcall }).await?,
            // A reply to a command that was given up: nobody waits for it any more.
            ToTool::Reply { .. } => {}
        }
        self.turn().await
    }

    /// The queue's turn, as long as no hotswap is running.
    pub(super) async fn turn(&mut self) -> Result<(), SessionError> {
        self.puts_off_nothing();
        while self.running.is_none() {
            self.tell_time();
            self.look_at_tally();
            self.drop_due().await?;
            let classes = self.settle_after_hotswap().await?;
            self.hotswap_in_background(classes).await?;
            self.watch_new().await?;
            let Some(pending) = self.queue.pop_front() else { return self.relent().await };
            self.deciding = Some(pending.request);
            self.asker = self.asker_of(&pending);
            let decided = self.decide(pending).await;
            (self.deciding, self.asker) = (None, None);
            decided?;
        }
        Ok(())
    }

    /// The same while recording is being prepared: what threads tell that do not wait is seen to when it has begun. A program that does much for the first time
    /// tells for seconds.
    pub(super) async fn turn_if_waited_for(&mut self) -> Result<(), SessionError> {
        if self.is_in_background && self.queue.is_empty() { Ok(()) } else { self.turn().await }
    }

    /// Who asks, if it is a thread of the graph.
    fn asker_of(&self, pending: &Pending) -> Option<(RequestId, ThreadId)> {
        pending.thread.filter(|thread| self.inside.contains_key(thread)).map(|thread| (pending.request, thread))
    }

    pub(super) async fn called(&mut self, mut pending: Pending) -> Result<(), SessionError> {
        log::trace!("{:?} asks: {}", pending.thread, kind(&pending.upcall));
        if let Upcall::FirstCall(_) = pending.upcall {
            self.first_entry.get_or_insert_with(Instant::now);
        }
        match pending.upcall {
            Upcall::ClassBytes { class, loader, ref name, ref bytes } => {
                let answer = self.rewrite(pending.thread, class, loader, name, bytes);
                self.answer(pending.request, Answer::Bytes(answer)).await
            }
            Upcall::Hotswapped(ref result) => {
                self.deciding = Some(pending.request);
                self.asker = self.asker_of(&pending);
                let next = self.hotswapped(pending.thread, result).await;
                self.has_asked_again(&mut pending);
                (self.deciding, self.asker) = (None, None);
                self.tell_to_hotswap(&pending, next?).await
            }
            // It cannot wait for its own hotswap to end.
            upcall if self.is_hotswapping(pending.thread) => self.settle_later(pending.request, upcall).await,
            // Nobody waits for it any more.
            Upcall::Linked => self.settle_later(pending.request, Upcall::Linked).await,
            Upcall::FirstCall(_) | Upcall::Reflected(_) | Upcall::Received { .. } | Upcall::ClassPrepared(_) => {
                self.queue.push_back(pending);
                Ok(())
            }
        }
    }

    /// Decides a question whose turn has come: no hotswap is running.
    async fn decide(&mut self, mut pending: Pending) -> Result<(), SessionError> {
        let step = match &pending.upcall {
            Upcall::FirstCall(method) => self.graph.first_call(*method),
            Upcall::Reflected(method) => self.graph.reflected(method),
            Upcall::Received { call, class } => self.graph.received(*call, *class),
            Upcall::ClassPrepared(info) => self.graph.class_prepared(info.clone()),
            Upcall::ClassBytes { .. } | Upcall::Hotswapped(_) | Upcall::Linked => return Ok(()),
        };
        let mut classes = self.settle(step).await?;
        if !classes.is_empty() {
            classes.extend(self.settle_queued().await?);
            classes.sort_unstable();
            classes.dedup();
        }
        self.has_asked_again(&mut pending);
        self.tell_to_hotswap(&pending, classes).await
    }

    /// A thread that has linked classes meanwhile waits for the answer to another question.
    fn has_asked_again(&self, pending: &mut Pending) {
        pending.request = self.asker.map_or(pending.request, |(request, _)| request);
    }

    /// What other threads wait for goes into a hotswap that is due anyway; they are answered when it is over.
    async fn settle_queued(&mut self) -> Result<Vec<ClassId>, SessionError> {
        let (mut entered, mut received) = (Vec::new(), Vec::new());
        for pending in &self.queue {
            match pending.upcall {
                Upcall::FirstCall(method) => entered.push(method),
                Upcall::Received { call, class } => received.push((call, class)),
                _ => {}
            }
        }
        let mut classes = self.settle_first_calls(entered).await?;
        for (call, class) in received {
            let step = self.graph.received(call, class);
            classes.extend(self.settle(step).await?);
        }
        Ok(classes)
    }

    /// Answers a question with a hotswap, which the asking thread then executes.
    async fn tell_to_hotswap(&mut self, pending: &Pending, classes: Vec<ClassId>) -> Result<(), SessionError> {
        if self.abandoned.remove(&pending.request) {
            // Nobody would execute it: the agent does, in its turn.
            self.nobody_waits_for(&classes);
            self.left_over.extend(classes);
            return Ok(());
        }
        if self.must_wait_for(&classes) {
            self.nobody_waits_for(&classes);
            self.left_over.extend(classes);
            self.answer(pending.request, Answer::Hotswap { classes: Vec::new() }).await?;
            return self.exceed().await;
        }
        let classes = self.batch(classes);
        if !classes.is_empty() {
            self.running = Some(Running { request: pending.request, thread: pending.thread, classes: classes.clone() });
        }
        self.answer(pending.request, Answer::Hotswap { classes }).await
    }

    /// A thread went on without an answer, and without executing the hotswap that it was or would be told.
    fn went_on(&mut self, request: RequestId) {
        if let Some(running) = self.running.take_if(|running| running.request == request) {
            self.nobody_waits_for(&running.classes);
            self.left_over.extend(running.classes);
        } else if self.deciding == Some(request) {
            self.abandoned.insert(request);
        } else if let Some(waiting) = self.queue.iter().position(|pending| pending.request == request)
            && let Some(pending) = self.queue.remove(waiting)
        {
            self.heard_in_passing(pending.upcall);
        } else if let Some(answered) = self.meanwhile.answered.iter().position(|pending| pending.request == request) {
            let pending = self.meanwhile.answered.swap_remove(answered);
            self.heard_in_passing(pending.upcall);
        }
    }

    /// Answers a question that comes when recording ends.
    pub(super) async fn answer_at_the_end(&mut self, pending: Pending) -> Result<(), SessionError> {
        self.answer(pending.request, Answer::Hotswap { classes: Vec::new() }).await?;
        self.meanwhile.answered.push(pending);
        Ok(())
    }

    pub(super) fn note(&mut self, notice: Notice) -> Result<(), SessionError> {
        match notice {
            Notice::ThreadStarted { thread, name, os_thread } => {
                if !name.is_empty() {
                    self.threads.push((thread, name));
                }
                if let Some(number) = os_thread {
                    // This is the number by which it asks.
                    self.inside.insert(ThreadId(number.into()), thread);
                    if let Some(listener) = &self.os_threads {
                        // A listener that has ended needs no more threads.
                        let _ = listener.send(OsThread { thread, number });
                    }
                }
            }
            Notice::DeadlinePassed { request, waited_for } => {
                self.deadlines_passed.push(waited_for);
                self.went_on(request);
            }
            Notice::OutOfPatience { request } => self.went_on(request),
            Notice::Uncounted { reason } => self.uncounted.push(reason),
            Notice::FirstCall(method) => {
                self.first_entry.get_or_insert_with(Instant::now);
                self.heard_in_passing(Upcall::FirstCall(method));
            }
            Notice::Reflected(method) => self.heard_in_passing(Upcall::Reflected(method)),
            Notice::Received { call, class } => self.heard_in_passing(Upcall::Received { call, class }),
            Notice::HasRun(methods) => {
                self.meanwhile.went_on = true;
                self.meanwhile.run.extend(methods);
            }
            Notice::ClassPrepared(info) => self.heard_in_passing(Upcall::ClassPrepared(info)),
            Notice::FramesLeft { thread, open, time_ns, error_ns } => {
                if let Some(returns) = &self.returns {
                    // Without the draining thread there is nobody who wants to know.
                    let _ = returns.send(Returned { thread, open: open as usize, time_ns, error_ns });
                }
            }
            // Not asked for here.
            Notice::Happened(_) => {}
            Notice::VmDeath => return Err(SessionError::TargetEnded),
        }
        Ok(())
    }

    pub(super) async fn answer(&mut self, request: RequestId, answer: Answer) -> Result<(), SessionError> {
        self.send(&ToAgent::Answer { request, answer }).await
    }

    /// What the agent says while something else is waited for.
    pub(super) async fn hear_meanwhile(&mut self, message: ToTool) -> Result<(), SessionError> {
        match message {
            ToTool::Reply { .. } => Ok(()),
            ToTool::Notice(notice) => self.note(notice),
            ToTool::Upcall { request, thread, upcall } => {
                self.called_meanwhile(Pending { request, thread, upcall }).await
            }
        }
    }

    /// Answers a question of a thread that would wait for itself: what it says is seen to when it has done what it does.
    pub(super) async fn settle_later(&mut self, request: RequestId, upcall: Upcall) -> Result<(), SessionError> {
        self.heard(upcall);
        self.answer(request, Answer::Hotswap { classes: Vec::new() }).await
    }

    /// What a thread has told that does what it does next unseen.
    fn heard_in_passing(&mut self, upcall: Upcall) {
        self.meanwhile.went_on = true;
        self.heard(upcall);
    }

    /// What nobody waits for is seen to with everything else of its kind.
    fn heard(&mut self, upcall: Upcall) {
        match upcall {
            Upcall::FirstCall(method) => self.meanwhile.entered.push(method),
            Upcall::Reflected(method) => self.meanwhile.reflected.push(method),
            Upcall::Received { call, class } => self.meanwhile.received.push((call, class)),
            Upcall::ClassPrepared(info) => self.meanwhile.linked.push(info),
            Upcall::ClassBytes { .. } | Upcall::Hotswapped(_) | Upcall::Linked => {}
        }
    }

    /// A question while a command is under way, or a hotswap is waited for.
    async fn called_meanwhile(&mut self, pending: Pending) -> Result<(), SessionError> {
        match pending.upcall {
            Upcall::ClassBytes { class, loader, ref name, ref bytes } => {
                let answer = self.rewrite(pending.thread, class, loader, name, bytes);
                self.answer(pending.request, Answer::Bytes(answer)).await
            }
            Upcall::Hotswapped(ref result) => {
                // What was linked by it has its turn after the command.
                if let Some(running) = self.running.take_if(|running| running.thread == pending.thread) {
                    self.account(&running.classes, result);
                }
                self.answer(pending.request, Answer::Hotswap { classes: Vec::new() }).await
            }
            upcall if pending.thread.is_none() || self.is_hotswapping(pending.thread) => {
                self.settle_later(pending.request, upcall).await
            }
            // By that thread, or by one that keeps it from linking the same class; no other is in the graph.
            upcall @ Upcall::ClassPrepared(_) if self.linking => self.settle_later(pending.request, upcall).await,
            Upcall::Linked => self.settle_later(pending.request, Upcall::Linked).await,
            Upcall::FirstCall(_) | Upcall::Reflected(_) | Upcall::Received { .. } | Upcall::ClassPrepared(_)
                if self.stopping =>
            {
                self.answer_at_the_end(pending).await
            }
            Upcall::FirstCall(_) | Upcall::Reflected(_) | Upcall::Received { .. } | Upcall::ClassPrepared(_) => {
                self.queue.push_back(pending);
                Ok(())
            }
        }
    }
}

/// What a question is about, on a line.
fn kind(upcall: &Upcall) -> String {
    match upcall {
        Upcall::ClassBytes { name, bytes, .. } => format!("what to make of {name}, {} bytes", bytes.len()),
        Upcall::ClassPrepared(class) => format!("{} is linked", class.name),
        Upcall::Hotswapped(result) => format!("a hotswap of {} classes is over", result.classes),
        Upcall::FirstCall(method) => format!("the first call of method {}", method.0),
        Upcall::Reflected(_) | Upcall::Received { .. } | Upcall::Linked => format!("{upcall:?}"),
    }
}
