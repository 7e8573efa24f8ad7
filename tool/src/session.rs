//! The conversation with the agent: it feeds the [`CallGraph`] with what happens in the target, and executes what the
//! call graph wants instrumented.
//!
//! One hotswap is under way at a time. While a thread of the target executes one, the class files it needs are rewritten
//! at once; first calls by other threads wait their turn (a method that is being instrumented just now must not be called
//! before it is), and classes that the hotswap itself loads are looked at when it is over.

use std::collections::{HashMap, HashSet, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use headwater_protocol::message::{
    Answer, Calibration, ClassInfo, Command, HotswapResult, MethodInfo, MethodRef, Notice, Reply, RequestId, Reveal,
    ToAgent, ToTool, Upcall,
};
use headwater_protocol::segment::Segment;
use headwater_protocol::wire::WireError;
use headwater_protocol::{ClassId, LoaderId, MethodId, ThreadId};
use headwater_rewriter::{Place, Probes, Refusal, Request};

use crate::callgraph::{CallGraph, Invoker, Lines, OpenThread, Selected, Step};
use crate::cpu_share::OsThread;
use crate::decode::Returned;
use crate::link::Link;

mod batch_cost;
#[cfg(test)]
mod tests;

use batch_cost::BatchCost;

/// What the probes call in the target.
const PROBES: Probes<'static> = Probes {
    class: headwater_runtime_java::PROBE_CLASS,
    enter: headwater_runtime_java::ENTER,
    exit: headwater_runtime_java::EXIT,
    throw: headwater_runtime_java::THROWN,
    allocate: None,
    receive: Some(headwater_runtime_java::REFLECTED),
};
/// How many classes are given their own code back at once: it bounds a single pause.
const RESTORE_BATCH: usize = 100;
/// How long a command to the agent may take; hotswapping thousands of classes is the longest.
const COMMAND_DEADLINE: Duration = Duration::from_secs(120);
/// Class files that are asked for in one message: while the agent gathers them, nobody else gets an answer.
const READ_AT_ONCE: usize = 64;
/// How often the stacks of threads inside the roots are looked at, at most, while methods found there are being instrumented.
const MOST_LOOKS: usize = 8;

/// Why a session ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The target says that it is ending.
    #[error("the target ended")]
    TargetEnded,
    /// The agent has closed the connection, or the target is gone.
    #[error("the agent in the target closed the connection: somebody ran `headwater detach`, or the JVM is ending")]
    Disconnected,
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

impl From<WireError> for SessionError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Io(_) => SessionError::Disconnected,
            other => SessionError::Wire(other),
        }
    }
}

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

impl HotswapTotals {
    fn add(&mut self, result: &HotswapResult) {
        self.batches += 1;
        self.classes += u64::from(result.classes);
        self.pause_ns_total += result.pause_ns;
        self.pause_ns_max = self.pause_ns_max.max(result.pause_ns);
        self.total_ns += result.total_ns;
    }
}

/// A question of the agent's that waits for its turn.
#[derive(Debug)]
struct Pending {
    request: RequestId,
    thread: Option<ThreadId>,
    upcall: Upcall,
}

/// A hotswap that a thread of the target executes.
#[derive(Debug)]
struct Running {
    request: RequestId,
    thread: Option<ThreadId>,
    classes: Vec<ClassId>,
}

/// One conversation.
#[derive(Debug)]
pub struct Session {
    link: Link,
    segment: Arc<Segment>,
    graph: CallGraph,
    next_request: RequestId,
    running: Option<Running>,
    /// Questions that wait until no hotswap is running.
    queue: VecDeque<Pending>,
    /// The question that is being decided just now.
    deciding: Option<RequestId>,
    /// Questions, waiting or being decided, that nobody waits for any more: their hotswaps are executed by the agent.
    abandoned: HashSet<RequestId>,
    /// Classes whose hotswap was to be executed by a thread that no longer does, or that were too many for one batch.
    left_over: Vec<ClassId>,
    /// Classes that were linked by a running hotswap, or by threads that do not wait.
    linked_meanwhile: Vec<ClassInfo>,
    /// Methods that a running hotswap's own thread has entered for the first time, or threads that do not wait.
    entered_meanwhile: Vec<MethodId>,
    /// Methods that threads which do not wait have called by reflection for the first time.
    reflected_meanwhile: Vec<MethodRef>,
    totals: HotswapTotals,
    cost: BatchCost,
    first_entry: Option<Instant>,
    last_hotswap: Option<Instant>,
    threads: Vec<(ThreadId, String)>,
    /// Who wants to know of platform threads that enter the call graph.
    os_threads: Option<Sender<OsThread>>,
    deadlines_passed: Vec<String>,
    unparsable: Vec<(String, String)>,
    /// Where it is told that calls which began before recording have returned.
    returns: Option<Sender<Returned>>,
    /// Nothing is instrumented any more.
    stopping: bool,
}

impl Session {
    /// Begins with an empty call graph.
    pub fn new(link: Link, segment: Arc<Segment>, graph: CallGraph) -> Session {
        Session {
            link,
            segment,
            graph,
            next_request: 1,
            running: None,
            queue: VecDeque::new(),
            deciding: None,
            abandoned: HashSet::new(),
            left_over: Vec::new(),
            linked_meanwhile: Vec::new(),
            entered_meanwhile: Vec::new(),
            reflected_meanwhile: Vec::new(),
            totals: HotswapTotals::default(),
            cost: BatchCost::expected(0),
            first_entry: None,
            last_hotswap: None,
            threads: Vec::new(),
            os_threads: None,
            deadlines_passed: Vec::new(),
            unparsable: Vec::new(),
            returns: None,
            stopping: false,
        }
    }

    /// The call graph as far as it is known.
    pub fn graph(&self) -> &CallGraph {
        &self.graph
    }

    /// What hotswapping has cost.
    pub fn hotswap_totals(&self) -> HotswapTotals {
        self.totals
    }

    /// How long after the first entry of a root the last hotswap was over; `None` before that entry.
    pub fn quiet_after(&self) -> Option<Duration> {
        let first = self.first_entry?;
        Some(self.last_hotswap.map_or(Duration::ZERO, |last| last.saturating_duration_since(first)))
    }

    /// Whether the target reads the time stamp counter. Known after [`calibrate`](Session::calibrate).
    pub fn uses_tsc(&self) -> bool {
        self.segment.uses_tsc()
    }

    /// Events that the target could not store.
    pub fn lost(&self) -> u64 {
        self.segment.lost()
    }

    /// Has somebody told of every platform thread that enters the call graph from now on.
    pub fn tell_threads_to(&mut self, listener: Sender<OsThread>) {
        self.os_threads = Some(listener);
    }

    /// The target's pid as we see it; `None` where it is in a pid namespace that is not below ours.
    pub fn peer_pid(&self) -> Option<u32> {
        self.link.peer_pid()
    }

    /// Threads that entered the call graph, with their names.
    pub fn threads(&self) -> &[(ThreadId, String)] {
        &self.threads
    }

    /// What threads of the target stopped waiting for: some calls may be missing.
    pub fn deadlines_passed(&self) -> &[String] {
        &self.deadlines_passed
    }

    /// Classes that the rewriter could not read, with its reasons.
    pub fn unparsable(&self) -> &[(String, String)] {
        &self.unparsable
    }

    /// Times the probes in the target.
    pub async fn calibrate(&mut self) -> Result<Calibration, SessionError> {
        match self.command(Command::Calibrate, "time its probes").await? {
            Reply::Calibration(calibration) => Ok(calibration),
            other => Err(unexpected("time its probes", &other)),
        }
    }

    /// Learns of all loaded classes, and from now on of what happens in the target.
    pub async fn list_classes(&mut self, reveal: Reveal) -> Result<(), SessionError> {
        match self.command(Command::ListClasses { reveal }, "list its classes").await? {
            Reply::Classes(classes) => {
                self.cost = BatchCost::expected(classes.len());
                self.graph.set_batch_cost(self.cost.fixed());
                self.graph.add_classes(classes);
                self.turn().await
            }
            other => Err(unexpected("list its classes", &other)),
        }
    }

    /// Lets instrumented methods record, and instruments the roots that are loaded.
    pub async fn instrument_roots(&mut self) -> Result<(), SessionError> {
        self.command(Command::Record, "begin recording").await?;
        self.list_compiled().await?;
        let step = self.graph.start();
        let classes = self.settle(step).await?;
        self.hotswap_by_agent(classes).await?;
        self.turn().await
    }

    /// Finds the threads that are inside the roots already, and instruments what they can call next: the threads, with the
    /// methods that they are in.
    pub async fn find_open_calls(&mut self) -> Result<Vec<OpenThread>, SessionError> {
        let roots = self.graph.instrumented_roots();
        if roots.is_empty() {
            return Ok(Vec::new());
        }
        let mut looks = 0;
        loop {
            let command = Command::ListStacks { roots: roots.clone() };
            let reply = self.command(command, "list the threads' stacks").await?;
            let Reply::Stacks(stacks) = reply else { return Err(unexpected("list the threads' stacks", &reply)) };
            let step = self.graph.open_calls(&stacks);
            let classes = self.settle(step).await?;
            looks += 1;
            // While methods are instrumented, threads may come into others: those are looked for once more.
            if classes.is_empty() || looks == MOST_LOOKS {
                self.left_over.extend(classes);
                self.turn().await?;
                let threads = self.graph.open_threads(&stacks);
                self.threads.extend(threads.iter().map(|open| (open.thread, open.name.clone())));
                return Ok(threads);
            }
            self.hotswap_by_agent(classes).await?;
            self.turn().await?;
        }
    }

    /// Has the target record what these threads call from now on, and tell when they have returned.
    pub async fn follow_open_calls(
        &mut self,
        threads: &[OpenThread],
        returns: Sender<Returned>,
    ) -> Result<(), SessionError> {
        self.returns = Some(returns);
        let mut methods: Vec<MethodId> = threads.iter().flat_map(|open| open.calls.iter().copied()).collect();
        methods.sort_unstable();
        methods.dedup();
        let methods = methods.into_iter().filter_map(|id| Some((id, self.graph.reference(id)?))).collect();
        let threads = threads.iter().map(|open| (open.thread, open.calls.clone())).collect();
        self.command(Command::FollowOpen { methods, threads }, "follow threads that are inside a root").await?;
        self.turn().await
    }

    /// Learns what the JIT compiler knows of the methods.
    async fn list_compiled(&mut self) -> Result<(), SessionError> {
        match self.command(Command::ListCompiled, "list compiled methods").await? {
            Reply::Compiled(classes) => {
                classes.into_iter().for_each(|(class, methods)| self.graph.add_compiled(class, methods));
                Ok(())
            }
            other => Err(unexpected("list compiled methods", &other)),
        }
    }

    /// In start-up mode: lets `main` begin.
    pub async fn release(&mut self) -> Result<(), SessionError> {
        self.command(Command::Release, "start the program").await.map(|_| ())
    }

    /// The next message of the agent, for [`Session::serve`]. May be cancelled: nothing is lost.
    pub async fn next_message(&mut self) -> Result<ToTool, SessionError> {
        Ok(self.link.receive().await?)
    }

    /// Ends recording; the target's time of that moment.
    pub async fn stop(&mut self) -> Result<i64, SessionError> {
        self.stopping = true;
        for pending in std::mem::take(&mut self.queue) {
            self.answer(pending.request, Answer::Hotswap { classes: Vec::new() }).await?;
        }
        match self.command(Command::Stop, "stop recording").await? {
            Reply::Stopped { time_ns } => Ok(time_ns),
            other => Err(unexpected("stop recording", &other)),
        }
    }

    /// After [`Session::stop`]: gives everything below the roots its own code back, and has each call of a root timed as a
    /// whole, until the next [`Session::stop`].
    pub async fn time_roots(&mut self) -> Result<(), SessionError> {
        self.stopping = false;
        let (totals, last_hotswap) = (self.totals, self.last_hotswap);
        for classes in self.graph.keep_only_roots().chunks(RESTORE_BATCH) {
            self.hotswap_by_agent(classes.to_vec()).await?;
        }
        // What the profile cost is another matter.
        (self.totals, self.last_hotswap) = (totals, last_hotswap);
        self.segment.set_control(Some(NonZeroU32::MIN));
        self.command(Command::Record, "time the roots").await?;
        self.turn().await
    }

    /// Interrupts recording, for [`Session::resume`]; the target's time of that moment. Questions are answered as before.
    pub async fn pause(&mut self) -> Result<i64, SessionError> {
        let reply = self.command(Command::Stop, "interrupt recording").await?;
        self.turn().await?;
        match reply {
            Reply::Stopped { time_ns } => Ok(time_ns),
            other => Err(unexpected("interrupt recording", &other)),
        }
    }

    /// Goes on recording: threads are followed from their next entry into a root.
    pub async fn resume(&mut self) -> Result<(), SessionError> {
        self.command(Command::Record, "go on recording").await?;
        self.turn().await
    }

    /// The methods that classes declare, for people: what is instrumented does not depend on it.
    pub async fn methods_of(&mut self, classes: Vec<ClassId>) -> Result<Vec<(ClassId, Vec<MethodInfo>)>, SessionError> {
        let reply = self.command(Command::ListMethods { classes }, "list methods").await?;
        self.turn().await?;
        match reply {
            Reply::Methods(methods) => Ok(methods),
            other => Err(unexpected("list methods", &other)),
        }
    }

    /// The call graph, as long as nothing is instrumented: to say what is wanted.
    pub fn graph_mut(&mut self) -> &mut CallGraph {
        &mut self.graph
    }

    /// Gives every class its own code back and ends the agent.
    pub async fn detach(&mut self) -> Result<HotswapResult, SessionError> {
        match self.command(Command::Detach, "give the original code back").await? {
            Reply::Detached { hotswap } => Ok(hotswap),
            other => Err(unexpected("give the original code back", &other)),
        }
    }

    /// Handles one message and whatever it makes possible.
    pub async fn serve(&mut self, message: ToTool) -> Result<(), SessionError> {
        match message {
            ToTool::Notice(notice) => self.note(notice)?,
            ToTool::Upcall { request, thread, upcall } => self.called(Pending { request, thread, upcall }).await?,
            // A reply to a command that was given up: nobody waits for it any more.
            ToTool::Reply { .. } => {}
        }
        self.turn().await
    }

    /// The queue's turn, as long as no hotswap is running.
    async fn turn(&mut self) -> Result<(), SessionError> {
        while self.running.is_none() {
            let classes = self.settle_after_hotswap().await?;
            self.hotswap_by_agent(classes).await?;
            let Some(pending) = self.queue.pop_front() else { return Ok(()) };
            self.deciding = Some(pending.request);
            let decided = self.decide(pending).await;
            self.deciding = None;
            decided?;
        }
        Ok(())
    }

    async fn called(&mut self, pending: Pending) -> Result<(), SessionError> {
        if let Upcall::FirstCall(_) = pending.upcall {
            self.first_entry.get_or_insert_with(Instant::now);
        }
        match pending.upcall {
            Upcall::ClassBytes { class, loader, ref name, ref bytes } => {
                let answer = self.rewrite(class, loader, name, bytes);
                self.answer(pending.request, Answer::Bytes(answer)).await
            }
            Upcall::Hotswapped(ref result) => {
                self.deciding = Some(pending.request);
                let next = self.hotswapped(pending.thread, result).await;
                self.deciding = None;
                self.tell_to_hotswap(&pending, next?).await
            }
            Upcall::ClassPrepared(ref info) if self.is_hotswapping(pending.thread) => {
                self.linked_meanwhile.push(info.clone());
                self.answer(pending.request, Answer::Hotswap { classes: Vec::new() }).await
            }
            Upcall::FirstCall(method) if self.is_hotswapping(pending.thread) => {
                // It cannot wait for its own hotswap to end.
                self.entered_meanwhile.push(method);
                self.answer(pending.request, Answer::Hotswap { classes: Vec::new() }).await
            }
            Upcall::FirstCall(_) | Upcall::Reflected(_) | Upcall::ClassPrepared(_) => {
                self.queue.push_back(pending);
                Ok(())
            }
        }
    }

    /// Decides a question whose turn has come: no hotswap is running.
    async fn decide(&mut self, pending: Pending) -> Result<(), SessionError> {
        let step = match &pending.upcall {
            Upcall::FirstCall(method) => self.graph.first_call(*method),
            Upcall::Reflected(method) => self.graph.reflected(method),
            Upcall::ClassPrepared(info) => self.graph.class_prepared(info.clone()),
            Upcall::ClassBytes { .. } | Upcall::Hotswapped(_) => return Ok(()),
        };
        let classes = self.settle(step).await?;
        self.tell_to_hotswap(&pending, classes).await
    }

    /// Answers a question with a hotswap, which the asking thread then executes.
    async fn tell_to_hotswap(&mut self, pending: &Pending, classes: Vec<ClassId>) -> Result<(), SessionError> {
        if self.abandoned.remove(&pending.request) {
            // Nobody would execute it: the agent does, in its turn.
            self.left_over.extend(classes);
            return Ok(());
        }
        let classes = self.batch(classes);
        if !classes.is_empty() {
            self.mark_roots();
            self.running = Some(Running { request: pending.request, thread: pending.thread, classes: classes.clone() });
        }
        self.answer(pending.request, Answer::Hotswap { classes }).await
    }

    /// As many of these classes as may be hotswapped at once; the others are left over.
    fn batch(&mut self, mut classes: Vec<ClassId>) -> Vec<ClassId> {
        let most = self.cost.most_classes().min(classes.len());
        self.left_over.extend(classes.drain(most..));
        classes
    }

    /// A thread's hotswap is over; what it is to do next.
    async fn hotswapped(
        &mut self,
        thread: Option<ThreadId>,
        result: &HotswapResult,
    ) -> Result<Vec<ClassId>, SessionError> {
        if self.running.take_if(|running| running.thread == thread).is_none() {
            return Ok(Vec::new());
        }
        self.account(result);
        self.settle_after_hotswap().await
    }

    /// The classes to hotswap next, after a hotswap: on account of the code that became known by it, of classes that it linked
    /// and methods that it ran, and those that were left over.
    async fn settle_after_hotswap(&mut self) -> Result<Vec<ClassId>, SessionError> {
        let step = self.graph.hotswapped();
        let mut classes = self.settle(step).await?;
        // In their order: a class's supertypes come before it.
        for info in std::mem::take(&mut self.linked_meanwhile) {
            let step = self.graph.class_prepared(info);
            classes.extend(self.settle(step).await?);
        }
        for method in std::mem::take(&mut self.entered_meanwhile) {
            let step = self.graph.first_call(method);
            classes.extend(self.settle(step).await?);
        }
        for method in std::mem::take(&mut self.reflected_meanwhile) {
            let step = self.graph.reflected(&method);
            classes.extend(self.settle(step).await?);
        }
        classes.append(&mut self.left_over);
        classes.sort_unstable();
        classes.dedup();
        Ok(classes)
    }

    fn account(&mut self, result: &HotswapResult) {
        self.totals.add(result);
        self.cost.add(result);
        self.last_hotswap = Some(Instant::now());
        self.graph.set_batch_cost(self.cost.fixed());
        for (class, reason) in &result.refused {
            self.graph.class_refused(*class, format!("the JVM refuses its class: {reason}"));
        }
        for class in &result.unanswered {
            self.graph.hotswap_again(*class);
        }
    }

    /// Fetches the methods that a step needs until it is decided; the classes to hotswap.
    async fn settle(&mut self, mut step: Step) -> Result<Vec<ClassId>, SessionError> {
        loop {
            match step {
                Step::Hotswap(classes) => return Ok(classes),
                Step::NeedMethods(classes) => {
                    let reply = self.command(Command::ListMethods { classes: classes.clone() }, "list methods").await?;
                    let Reply::Methods(methods) = reply else { return Err(unexpected("list methods", &reply)) };
                    let missing = classes.iter().filter(|class| methods.iter().all(|(known, _)| known != *class));
                    let missing: Vec<ClassId> = missing.copied().collect();
                    for (class, methods) in methods {
                        self.graph.add_methods(class, methods);
                    }
                    for class in missing {
                        self.graph.add_methods(class, Vec::new());
                    }
                    step = self.graph.resume();
                }
                Step::NeedCode(classes) => {
                    self.read_classes(classes).await?;
                    step = self.graph.resume();
                }
            }
        }
    }

    /// Fetches class files, a part at a time.
    async fn read_classes(&mut self, classes: Vec<ClassId>) -> Result<(), SessionError> {
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

    /// Has the agent's own thread execute a hotswap, and those that it entails.
    async fn hotswap_by_agent(&mut self, mut classes: Vec<ClassId>) -> Result<(), SessionError> {
        while !classes.is_empty() {
            self.mark_roots();
            classes = self.batch(classes);
            self.running = Some(Running { request: 0, thread: None, classes: classes.clone() });
            let reply = self.command(Command::Hotswap { classes }, "hotswap classes").await?;
            let Reply::Hotswapped(result) = reply else { return Err(unexpected("hotswap classes", &reply)) };
            classes = self.hotswapped(None, &result).await?;
        }
        Ok(())
    }

    fn is_hotswapping(&self, thread: Option<ThreadId>) -> bool {
        self.running.as_ref().is_some_and(|running| running.thread == thread)
    }

    /// The new bytes of a class, or `None` where it stays as it is.
    fn rewrite(&mut self, class: Option<ClassId>, loader: LoaderId, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.stopping {
            return None;
        }
        let selected = self.graph.class_bytes(class, loader, name, bytes);
        self.mark_roots();
        let invokers = self.graph.invokers(class, bytes);
        let methods = selected.iter().map(|method: &Selected| Request {
            method_index: method.method_index,
            id: method.id.0,
            place: method.lines.map_or(Place::Method, Lines::place),
        });
        let receivers = invokers.iter().map(|invoker| Request {
            method_index: invoker.method_index,
            id: invoker.kind,
            place: Place::Receiver,
        });
        let requests: Vec<Request> = methods.chain(receivers).collect();
        if requests.is_empty() {
            return None;
        }
        match headwater_rewriter::instrument(bytes, &PROBES, &requests) {
            Ok(rewritten) => {
                for refused in &rewritten.refused {
                    let Request { method_index, id, place } = refused.request;
                    let reason = refused.refusal.to_string();
                    match place {
                        Place::Receiver => self.graph.invoker_refused(Invoker { method_index, kind: id }, &reason),
                        _ if refused.refusal == Refusal::NoSuchPlace => self.graph.no_such_lines(MethodId(id)),
                        _ => self.graph.refused(MethodId(id), reason),
                    }
                }
                (rewritten.refused.len() < requests.len()).then_some(rewritten.bytes)
            }
            Err(error) => {
                for method in &selected {
                    self.graph.refused(method.id, format!("its class file could not be read: {error}"));
                }
                self.unparsable.push((name.to_owned(), error.to_string()));
                None
            }
        }
    }

    /// Declares the roots that are about to be instrumented.
    fn mark_roots(&mut self) {
        for method in self.graph.take_new_roots() {
            self.segment.mark_root(method);
        }
    }

    /// A thread went on without an answer, and without executing the hotswap that it was or would be told.
    fn deadline_passed(&mut self, request: RequestId, waited_for: String) {
        self.deadlines_passed.push(waited_for);
        if let Some(running) = self.running.take_if(|running| running.request == request) {
            self.left_over.extend(running.classes);
        } else if self.deciding == Some(request) || self.queue.iter().any(|pending| pending.request == request) {
            self.abandoned.insert(request);
        }
    }

    fn note(&mut self, notice: Notice) -> Result<(), SessionError> {
        match notice {
            Notice::ThreadStarted { thread, name, os_thread } => {
                if !name.is_empty() {
                    self.threads.push((thread, name));
                }
                if let (Some(number), Some(listener)) = (os_thread, &self.os_threads) {
                    // A listener that has ended needs no more threads.
                    let _ = listener.send(OsThread { thread, number });
                }
            }
            Notice::DeadlinePassed { request, waited_for } => self.deadline_passed(request, waited_for),
            Notice::FirstCall(method) => {
                self.first_entry.get_or_insert_with(Instant::now);
                self.entered_meanwhile.push(method);
            }
            Notice::Reflected(method) => self.reflected_meanwhile.push(method),
            Notice::ClassPrepared(info) => self.linked_meanwhile.push(info),
            Notice::FramesLeft { thread, open, time_ns, error_ns } => {
                if let Some(returns) = &self.returns {
                    // Without the draining thread there is nobody who wants to know.
                    let _ = returns.send(Returned { thread, open: open as usize, time_ns, error_ns });
                }
            }
            Notice::VmDeath => return Err(SessionError::TargetEnded),
        }
        Ok(())
    }

    async fn answer(&mut self, request: RequestId, answer: Answer) -> Result<(), SessionError> {
        Ok(self.link.send(&ToAgent::Answer { request, answer }).await?)
    }

    /// Sends a command and waits for its reply; class files are rewritten meanwhile, other questions are queued.
    async fn command(&mut self, command: Command, what: &'static str) -> Result<Reply, SessionError> {
        let request = self.next_request;
        self.next_request += 1;
        self.link.send(&ToAgent::Command { request, command }).await?;
        let deadline = tokio::time::Instant::now() + COMMAND_DEADLINE;
        loop {
            let message = tokio::time::timeout_at(deadline, self.link.receive())
                .await
                .map_err(|_| SessionError::Deadline { what })??;
            match message {
                ToTool::Reply { request: answered, reply } if answered == request => {
                    return reply.map_err(|reason| SessionError::Agent { what, reason });
                }
                ToTool::Reply { .. } => {}
                ToTool::Notice(notice) => self.note(notice)?,
                ToTool::Upcall { request, thread, upcall } => {
                    self.called_meanwhile(Pending { request, thread, upcall }).await?;
                }
            }
        }
    }

    /// A question while a command is under way.
    async fn called_meanwhile(&mut self, pending: Pending) -> Result<(), SessionError> {
        match pending.upcall {
            Upcall::ClassBytes { class, loader, ref name, ref bytes } => {
                let answer = self.rewrite(class, loader, name, bytes);
                self.answer(pending.request, Answer::Bytes(answer)).await
            }
            Upcall::ClassPrepared(info) if pending.thread.is_none() || self.is_hotswapping(pending.thread) => {
                self.linked_meanwhile.push(info);
                self.answer(pending.request, Answer::Hotswap { classes: Vec::new() }).await
            }
            Upcall::Hotswapped(ref result) => {
                // What was linked by it has its turn after the command.
                if self.running.take_if(|running| running.thread == pending.thread).is_some() {
                    self.account(result);
                }
                self.answer(pending.request, Answer::Hotswap { classes: Vec::new() }).await
            }
            Upcall::FirstCall(method) if self.is_hotswapping(pending.thread) => {
                self.entered_meanwhile.push(method);
                self.answer(pending.request, Answer::Hotswap { classes: Vec::new() }).await
            }
            Upcall::FirstCall(_) | Upcall::Reflected(_) | Upcall::ClassPrepared(_) if self.stopping => {
                self.answer(pending.request, Answer::Hotswap { classes: Vec::new() }).await
            }
            Upcall::FirstCall(_) | Upcall::Reflected(_) | Upcall::ClassPrepared(_) => {
                self.queue.push_back(pending);
                Ok(())
            }
        }
    }
}

fn unexpected(what: &'static str, reply: &Reply) -> SessionError {
    SessionError::Agent { what, reason: format!("it answered something else: {reply:?}") }
}
