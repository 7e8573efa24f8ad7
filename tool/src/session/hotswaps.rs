//! Hotswaps: what is in one, what it cost, and what it makes necessary.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use headwater_protocol::message::{Answer, Command, HotswapResult, Reply, ToTool, Upcall};
use headwater_protocol::{ClassId, MethodId, ThreadId};

use super::allowance::Taking;
use super::gentle::CompiledSoon;
use super::questions::Pending;
use super::{COMMAND_DEADLINE, Running, Session, SessionError, unexpected};
use crate::callgraph::{Moment, Step};
use crate::ticker::monotonic_ns;

/// Class files that are asked for in one message: what happens meanwhile is seen to afterwards.
const READ_AT_ONCE: usize = 64;
/// Of so many hotswaps each is known by itself.
const REMEMBERED: usize = 10_000;

/// What hotswapping has cost so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct HotswapTotals {
    /// Retransformations.
    pub batches: u64,
    /// Classes in them.
    pub classes: u64,
    /// Sum of the pauses.
    pub pause_ns_total: u64,
    /// The longest pause.
    pub pause_ns_max: u64,
    /// Sum of the retransformations' wall times.
    pub total_ns: u64,
}

/// A hotswap.
#[derive(Clone, Copy, Debug)]
pub struct Hotswapped {
    /// When it was over, by [`monotonic_ns`].
    pub ended_ns: i64,
    /// How long it took.
    pub total_ns: u64,
    /// For how long of that the JVM was stopped.
    pub pause_ns: u64,
    /// How many classes were in it.
    pub classes: u64,
}

/// All hotswaps so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Hotswaps {
    pub(super) totals: HotswapTotals,
    /// The first of them, [`REMEMBERED`] at most.
    pub(super) each: Vec<Hotswapped>,
    /// How many classes were changed at once, where compilers limit that,
    pub(super) most_at_once: usize,
    /// whether others had to wait for them,
    pub(super) are_held_back: bool,
    /// and those that never had their turn, by themselves.
    pub(super) too_much: BTreeSet<ClassId>,
}

impl Hotswaps {
    fn add(&mut self, result: &HotswapResult) {
        self.totals.add(result);
        if self.each.len() < REMEMBERED {
            self.each.push(Hotswapped {
                ended_ns: monotonic_ns(),
                total_ns: result.total_ns,
                pause_ns: result.pause_ns,
                classes: u64::from(result.classes),
            });
        }
    }
}

impl HotswapTotals {
    fn add(&mut self, result: &HotswapResult) {
        // What a target says may be anything.
        self.batches += 1;
        self.classes = self.classes.saturating_add(u64::from(result.classes));
        self.pause_ns_total = self.pause_ns_total.saturating_add(result.pause_ns);
        self.pause_ns_max = self.pause_ns_max.max(result.pause_ns);
        self.total_ns = self.total_ns.saturating_add(result.total_ns);
    }
}

impl Session {
    /// As many of these classes as may be hotswapped at once; the others are left over.
    pub(super) fn batch(&mut self, mut classes: Vec<ClassId>) -> Vec<ClassId> {
        let allowed = self.cost.most_classes();
        if allowed >= classes.len() && self.limit_of_code().is_none() {
            return classes;
        }
        self.graph.sort_by_urgency(&mut classes);
        let all = classes.len();
        let CompiledSoon { mut first, others, too_much } = self.compiled_soon(classes);
        self.hotswaps.too_much.extend(too_much);
        self.hotswaps.are_held_back |= first.len() < all;
        self.left_over.extend(first.drain(allowed.min(first.len())..));
        self.left_over.extend(others);
        self.hotswaps.most_at_once = self.hotswaps.most_at_once.max(first.len());
        first
    }

    /// A thread's hotswap is over; what it is to do next.
    pub(super) async fn hotswapped(
        &mut self,
        thread: Option<ThreadId>,
        result: &HotswapResult,
    ) -> Result<Vec<ClassId>, SessionError> {
        let Some(running) = self.running.take_if(|running| running.thread == thread) else { return Ok(Vec::new()) };
        self.account(&running.classes, result);
        self.settle_after_hotswap().await
    }

    /// The classes to hotswap next, after a hotswap: on account of the code that became known by it, of classes that it linked
    /// and methods that it ran, and those that were left over.
    pub(super) async fn settle_after_hotswap(&mut self) -> Result<Vec<ClassId>, SessionError> {
        let step = self.graph.hotswapped();
        self.note_drops();
        let mut classes = self.settle(step).await?;
        classes.extend(self.settle_meanwhile().await?);
        classes.append(&mut self.left_over);
        classes.sort_unstable();
        classes.dedup();
        Ok(classes)
    }

    /// The classes to hotswap on account of what happened while nobody waited for it.
    pub(super) async fn settle_meanwhile(&mut self) -> Result<Vec<ClassId>, SessionError> {
        let went_on = std::mem::take(&mut self.meanwhile.went_on);
        let mut classes = Vec::new();
        let linked = std::mem::take(&mut self.meanwhile.linked);
        if !linked.is_empty() {
            let step = self.graph.classes_prepared(linked);
            classes.extend(self.settle(step).await?);
        }
        let entered = std::mem::take(&mut self.meanwhile.entered);
        classes.extend(self.settle_first_calls(entered).await?);
        for (call, class) in std::mem::take(&mut self.meanwhile.received) {
            let step = self.graph.received(call, class);
            classes.extend(self.settle(step).await?);
        }
        for method in std::mem::take(&mut self.meanwhile.reflected) {
            let step = self.graph.reflected(&method);
            classes.extend(self.settle(step).await?);
        }
        let run = std::mem::take(&mut self.meanwhile.run);
        if !run.is_empty() {
            let step = self.graph.have_run(&run);
            classes.extend(self.settle(step).await?);
        }
        // Whoever executes this hotswap waits for it; whoever it is necessary for need not.
        if went_on || self.meanwhile.went_on {
            self.nobody_waits_for(&classes);
        }
        Ok(classes)
    }

    /// The classes to hotswap on account of first calls, and of calls that were not expected, which are another reason.
    pub(super) async fn settle_first_calls(&mut self, methods: Vec<MethodId>) -> Result<Vec<ClassId>, SessionError> {
        let (guards, methods): (Vec<MethodId>, Vec<MethodId>) =
            methods.into_iter().partition(|method| self.graph.is_guard(*method));
        let mut classes = Vec::new();
        for calls in [methods, guards].into_iter().filter(|calls| !calls.is_empty()) {
            let step = self.graph.first_calls(calls);
            classes.extend(self.settle(step).await?);
        }
        Ok(classes)
    }

    /// Tells the call graph how far it is.
    pub(super) fn tell_time(&mut self) {
        let batches = u32::try_from(self.hotswaps.totals.batches).unwrap_or(u32::MAX);
        self.graph.set_time(Moment { recorded: self.recorded.elapsed(), batches });
        self.graph.set_room(self.room());
    }

    pub(super) fn account(&mut self, classes: &[ClassId], result: &HotswapResult) {
        self.hotswaps.add(result);
        let [pause, all] = [result.pause_ns, result.total_ns].map(Duration::from_nanos);
        log::debug!(
            "hotswap {} of {} classes: {pause:.1?} of {all:.1?} in a pause, {:.3?}",
            self.hotswaps.totals.batches,
            result.classes,
            self.graph.discarded(classes)
        );
        self.tell_time();
        let (is_dropping, code) = (self.graph.is_dropping(), self.code_of(classes));
        self.graph.are_changed(classes);
        // Drops have their own limit of pauses; what they discard is compiled again as well.
        let mut taken = Taking { pause, code };
        if let Some(governor) = self.governor_mut().filter(|_| is_dropping) {
            governor.paused(result.pause_ns);
            taken.pause = Duration::ZERO;
        }
        if let Some(allowance) = &mut self.allowance {
            allowance.take(taken, Instant::now());
        }
        self.cost.add(result);
        self.last_hotswap = Some(Instant::now());
        self.graph.set_batch_cost(self.cost.fixed());
        self.graph.instrumented_linked(result.threads);
        for (class, reason) in &result.refused {
            self.graph.class_refused(*class, format!("its class is left alone: {reason}"));
        }
        for class in &result.unanswered {
            self.graph.hotswap_again(*class);
        }
    }

    /// Fetches the methods that a step needs until it is decided; the classes to hotswap.
    pub(super) async fn settle(&mut self, mut step: Step) -> Result<Vec<ClassId>, SessionError> {
        let mut went_on = false;
        loop {
            match step {
                Step::Hotswap(classes) => {
                    // A root that came to be one may be instrumented already.
                    self.mark_roots();
                    if went_on {
                        self.nobody_waits_for(&classes);
                    }
                    return Ok(classes);
                }
                Step::NeedMethods(classes) => {
                    self.list_methods(classes).await?;
                    step = self.graph.resume();
                }
                Step::NeedCode(classes) => {
                    self.read_classes(classes).await?;
                    step = self.graph.resume();
                }
                Step::NeedLinks(classes) => {
                    self.link_classes(classes).await?;
                    went_on |= self.meanwhile.went_on;
                    step = self.graph.add_linked(std::mem::take(&mut self.meanwhile.linked));
                }
                Step::NeedMentions => {
                    let reply = self.command(Command::ListMentions, "list mentions").await?;
                    let Reply::Mentions(mentions) = reply else { return Err(unexpected("list mentions", &reply)) };
                    self.graph.add_mentions(mentions);
                    step = self.graph.resume();
                }
            }
        }
    }

    /// Fetches the methods that classes declare.
    pub(super) async fn list_methods(&mut self, classes: Vec<ClassId>) -> Result<(), SessionError> {
        let mut unknown: HashSet<ClassId> = classes.iter().copied().collect();
        let reply = self.command(Command::ListMethods { classes }, "list methods").await?;
        let Reply::Methods(methods) = reply else { return Err(unexpected("list methods", &reply)) };
        for (class, methods) in methods {
            unknown.remove(&class);
            self.graph.add_methods(class, methods);
        }
        for class in unknown {
            self.graph.add_methods(class, Vec::new());
        }
        Ok(())
    }

    /// Fetches class files, a part at a time. To the JVM that is a hotswap, too.
    async fn read_classes(&mut self, classes: Vec<ClassId>) -> Result<(), SessionError> {
        // Boxed, because a thread whose hotswap ends may need class files for the next.
        Box::pin(self.let_hotswap_end()).await?;
        for part in classes.chunks(READ_AT_ONCE) {
            let reply = self.command(Command::ReadClasses { classes: part.to_vec() }, "read class files").await?;
            let Reply::ClassFiles(files) = reply else { return Err(unexpected("read class files", &reply)) };
            let mut files: HashMap<ClassId, Vec<u8>> = files.into_iter().map(|file| (file.class, file.bytes)).collect();
            for class in part {
                self.graph.add_code(*class, files.remove(class));
            }
        }
        Ok(())
    }

    /// Has the thread that waits for the current decision link classes, which it tells of, if it is a thread of the graph.
    async fn link_classes(&mut self, classes: Vec<ClassId>) -> Result<(), SessionError> {
        let Some((request, thread)) = self.asker else { return Ok(()) };
        // One that waits for us in the midst of linking a class would keep it from linking the same.
        if self.queue.iter().any(|pending| matches!(pending.upcall, Upcall::ClassPrepared(_))) {
            return Ok(());
        }
        self.answer(request, Answer::Link { classes }).await?;
        self.linking = true;
        let deadline = tokio::time::Instant::now() + COMMAND_DEADLINE;
        // A thread that has waited too long for this does not come back.
        while self.linking && !self.abandoned.contains(&request) {
            match self.receive_by(deadline, "link classes").await? {
                ToTool::Upcall { request, thread: Some(by), upcall: Upcall::Linked } if by == thread => {
                    self.asker = Some((request, thread));
                    self.deciding = Some(request);
                    self.linking = false;
                }
                other => self.hear_meanwhile(other).await?,
            }
        }
        self.linking = false;
        Ok(())
    }

    /// Has the agent's own thread execute a hotswap, and those that it entails.
    pub(super) async fn hotswap_by_agent(&mut self, classes: Vec<ClassId>) -> Result<(), SessionError> {
        let first = self.batch(classes);
        self.hotswap_batch(first).await
    }

    /// The same, whatever is allowed: all of these are in the first batch.
    pub(super) async fn hotswap_batch(&mut self, mut batch: Vec<ClassId>) -> Result<(), SessionError> {
        if !batch.is_empty() {
            self.let_hotswap_end().await?;
        }
        while !batch.is_empty() {
            self.running = Some(Running { request: 0, thread: None, classes: batch.clone() });
            let reply = self.command(Command::Hotswap { classes: batch }, "hotswap classes").await;
            let Ok(Reply::Hotswapped(result)) = reply else {
                // Nobody is to wait for its end.
                self.running = None;
                return Err(reply.map_or_else(|error| error, |other| unexpected("hotswap classes", &other)));
            };
            let classes = self.hotswapped(None, &result).await?;
            if self.must_wait_for(&classes) {
                self.nobody_waits_for(&classes);
                self.left_over.extend(classes);
                return self.exceed().await;
            }
            batch = self.batch(classes);
        }
        Ok(())
    }

    /// Waits until no thread of the target executes a hotswap, nor those that it entails. Of two at once one would wait, inside the JVM, for
    /// the classes of the other: the agent's thread, which reads all answers, for a thread that waits for one.
    pub(super) async fn let_hotswap_end(&mut self) -> Result<(), SessionError> {
        let deadline = tokio::time::Instant::now() + COMMAND_DEADLINE;
        while self.running.is_some() {
            match self.receive_by(deadline, "end a hotswap").await? {
                ToTool::Upcall { request, thread, upcall: upcall @ Upcall::Hotswapped(_) } if !self.stopping => {
                    self.called(Pending { request, thread, upcall }).await?;
                }
                other => self.hear_meanwhile(other).await?,
            }
        }
        Ok(())
    }

    pub(super) fn is_hotswapping(&self, thread: Option<ThreadId>) -> bool {
        self.running.as_ref().is_some_and(|running| running.thread == thread)
    }
}
