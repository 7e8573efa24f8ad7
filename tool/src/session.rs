//! The conversation with the agent: it feeds the [`CallGraph`] with what happens in the target, and executes what the
//! call graph wants instrumented.
//!
//! One hotswap is under way at a time. While a thread of the target executes one, the class files it needs are rewritten
//! at once; first calls by other threads wait their turn (a method that is being instrumented just now must not be called
//! before it is), and classes that the hotswap itself loads are looked at when it is over.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use headwater_protocol::message::{
    Calibration, Command, HotswapResult, MethodInfo, Omitted, Reply, RequestId, Reveal, ToAgent, ToTool,
};
use headwater_protocol::segment::Segment;
use headwater_protocol::word::Counting;
use headwater_protocol::{ClassId, ThreadId};

use crate::callgraph::{CallGraph, Mechanism};
use crate::connection::Connection;
use crate::cpu_share::OsThread;
use crate::decode::Returned;

mod allowance;
mod batch_cost;
mod budget;
mod calls;
mod counting;
mod error;
mod gentle;
mod hotswaps;
mod loops;
mod questions;
mod recorded;
mod rewriting;
mod spent;
#[cfg(test)]
mod tests;
mod timing;

pub use allowance::CompilerTime;
pub use error::SessionError;
pub use gentle::{Gentle, TARGET_DEADLINE};
use hotswaps::Hotswaps;
pub use hotswaps::{HotswapTotals, Hotswapped};
pub use recorded::Recorded;
pub use spent::Spent;

use allowance::Allowance;
use batch_cost::BatchCost;
use budget::Budget;
use calls::Looks;
use gentle::{Compiled, PATIENCE};
use questions::{Meanwhile, Pending};
use spent::Account;

/// How long a command to the agent may take; hotswapping thousands of classes is the longest.
pub(crate) const COMMAND_DEADLINE: Duration = Duration::from_secs(120);
/// Classes whose methods are asked for in one message: what happens meanwhile is seen to afterwards.
const LIST_AT_ONCE: usize = 1_000;
/// What takes the tool time while commands are executed.
const REWRITING: &str = "rewrite classes";
/// So much of a wrong answer is told.
const LONGEST_REPLY: usize = 200;
/// What a session has to see to next.
#[derive(Debug)]
pub enum SessionEvent {
    /// The agent says something.
    Message(ToTool),
    /// What was decoded has been added up: the budget is looked at.
    Tally,
    /// The limits allow what they did not.
    Due,
}

/// What is about to be changed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// So many classes are loaded.
    pub loaded: usize,
    /// Of them so many are instrumented: the roots', and what these will probably call.
    pub classes: usize,
    /// Methods in those.
    pub methods: usize,
    /// Hotswaps that takes.
    pub batches: usize,
    /// So long the JVM will probably be stopped for each, at least.
    pub pause: Duration,
    /// So long the limits let it be stopped at once; `None` where there are none.
    pub allowed: Option<Duration>,
    /// So many of the classes they let be changed at once, if not all.
    pub at_once: Option<usize>,
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
    connection: Connection,
    segment: Arc<Segment>,
    graph: CallGraph,
    next_request: RequestId,
    running: Option<Running>,
    /// Questions that wait until no hotswap is running.
    queue: VecDeque<Pending>,
    /// The question that is being decided just now.
    deciding: Option<RequestId>,
    /// Questions being decided that nobody waits for any more: their hotswaps are executed by the agent.
    abandoned: HashSet<RequestId>,
    /// Classes whose hotswap was to be executed by a thread that no longer does, or that were too many for one batch.
    left_over: Vec<ClassId>,
    /// Classes with methods that are to be dropped.
    losing: Vec<ClassId>,
    meanwhile: Meanwhile,
    hotswaps: Hotswaps,
    cost: BatchCost,
    first_entry: Option<Instant>,
    last_hotswap: Option<Instant>,
    threads: Vec<(ThreadId, String)>,
    /// The platform threads among them, and virtual ones' carriers, by the numbers that stand for them in questions.
    inside: HashMap<ThreadId, ThreadId>,
    /// Who wants to know of platform threads that enter the call graph.
    os_threads: Option<Sender<OsThread>>,
    deadlines_passed: Vec<String>,
    remarks: Vec<String>,
    uncounted: Vec<String>,
    /// Where it is told that calls which began before recording have returned.
    returns: Option<Sender<Returned>>,
    counting: Counting,
    /// What probes can tell of, in code that is instrumented from now on.
    probed: Counting,
    /// Classes whose code is to tell more than it does.
    unprobed: Vec<ClassId>,
    /// Who waits for what is being decided just now: a thread of the graph, with its latest question.
    asker: Option<(RequestId, ThreadId)>,
    /// It links classes.
    linking: bool,
    /// Nothing is instrumented any more.
    stopping: bool,
    budget: Option<Budget>,
    /// How long a thread may wait for one answer.
    deadline: Duration,
    /// What may be taken of the target; `None` where there is no limit.
    allowance: Option<Allowance>,
    /// What is known of compiled code.
    compiled: Compiled,
    /// Threads do not wait for now, on account of the limits.
    is_in_background: bool,
    recorded: Recorded,
    spent: Account,
}

impl Session {
    /// Begins with an empty call graph.
    pub fn new(connection: Connection, segment: Arc<Segment>, graph: CallGraph) -> Session {
        Session {
            connection,
            segment,
            graph,
            next_request: 1,
            running: None,
            queue: VecDeque::new(),
            deciding: None,
            abandoned: HashSet::new(),
            left_over: Vec::new(),
            losing: Vec::new(),
            meanwhile: Meanwhile::default(),
            hotswaps: Hotswaps::default(),
            cost: BatchCost::expected(0),
            first_entry: None,
            last_hotswap: None,
            threads: Vec::new(),
            inside: HashMap::new(),
            os_threads: None,
            deadlines_passed: Vec::new(),
            remarks: Vec::new(),
            uncounted: Vec::new(),
            returns: None,
            counting: Counting::default(),
            probed: Counting::default(),
            unprobed: Vec::new(),
            asker: None,
            linking: false,
            stopping: false,
            budget: None,
            deadline: TARGET_DEADLINE,
            allowance: None,
            compiled: Compiled::default(),
            is_in_background: false,
            recorded: Recorded::default(),
            spent: Account::default(),
        }
    }

    /// The call graph as far as it is known.
    pub fn graph(&self) -> &CallGraph {
        &self.graph
    }

    /// What hotswapping has cost.
    pub fn hotswap_totals(&self) -> HotswapTotals {
        self.hotswaps.totals
    }

    /// The hotswaps themselves, as many as are known.
    pub fn hotswaps(&self) -> &[Hotswapped] {
        &self.hotswaps.each
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

    /// The platform threads that have been inside the call graph, or carried virtual ones that were, as the target knows them.
    pub fn os_threads(&self) -> impl Iterator<Item = OsThread> {
        let numbered = |(number, thread): (&ThreadId, &ThreadId)| {
            Some(OsThread { thread: *thread, number: u32::try_from(number.0).ok()? })
        };
        self.inside.iter().filter_map(numbered)
    }

    /// The target's pid as we see it; `None` where it is in a pid namespace that is not below ours.
    pub fn peer_pid(&self) -> Option<u32> {
        self.connection.peer_pid()
    }

    /// Threads that entered the call graph, with their names.
    pub fn threads(&self) -> &[(ThreadId, String)] {
        &self.threads
    }

    /// What threads of the target stopped waiting for: some calls may be missing.
    pub fn deadlines_passed(&self) -> &[String] {
        &self.deadlines_passed
    }

    /// What the rewriter could not do, but for what it refused.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
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
        if reveal == Reveal::Background {
            self.graph.forbid_guards();
        }
        let patience = self.allowance.map(|_| PATIENCE);
        let deadline_ms = self.deadline.as_millis() as u32;
        match self.command(Command::ListClasses { reveal, deadline_ms, patience }, "list its classes").await? {
            Reply::Classes { linked, unlinked } => {
                self.cost = BatchCost::expected(linked.len());
                self.graph.set_batch_cost(self.cost.fixed());
                self.graph.add_classes(linked);
                self.graph.add_unlinked(unlinked, reveal == Reveal::Blocking);
                self.turn().await
            }
            other => Err(unexpected("list its classes", &other)),
        }
    }

    /// Has the agent do without what is left out.
    pub async fn omit(&mut self) -> Result<(), SessionError> {
        let without = self.graph.without();
        let omitted = Omitted {
            settling: without.has(Mechanism::Settling),
            profiles: without.has(Mechanism::Profiles),
            holding: without.has(Mechanism::Holding),
        };
        if omitted != Omitted::default() {
            self.command(Command::Omit(omitted), "leave something out").await?;
        }
        Ok(())
    }

    /// Selects the roots that are loaded, with what they will probably call: the classes to be changed for that. Before anything is, `announce` is told what.
    pub async fn select_roots(&mut self, announce: impl FnOnce(Estimate)) -> Result<Vec<ClassId>, SessionError> {
        self.learn_what_runs().await?;
        if self.graph.changes_unnamed() || self.allowance.is_some() {
            self.find_running().await?;
        }
        self.tell_time();
        let step = self.graph.start();
        let mut classes = self.settle(step).await?;
        classes.extend(self.select_seen().await?);
        classes.sort_unstable();
        classes.dedup();
        announce(Estimate {
            loaded: self.graph.loaded_classes(),
            classes: classes.len(),
            methods: self.graph.methods().len(),
            batches: classes.len().div_ceil(self.cost.most_classes()),
            pause: self.cost.of(classes.len()),
            allowed: self.allowance.map(|allowance| allowance.paused_at_once()),
            at_once: self.classes_at_once_of(classes.clone()),
        });
        Ok(classes)
    }

    /// Instruments what was selected, and lets it record: calls of a root that has probes already, while what it calls has none, would be counted
    /// without what is below them. Where a call of the roots, which were timed, takes `long`, it begins with the next that waits for that: the one
    /// that is under way is not recorded, and would be slow for nothing.
    pub async fn instrument(&mut self, classes: Vec<ClassId>, long: Option<Duration>) -> Result<(), SessionError> {
        // The roots are among the first.
        let first = self.batch(classes);
        if let Some(long) = long {
            self.command(Command::Record, "begin recording").await?;
            self.await_question(long).await?;
        }
        self.hotswap_batch(first).await?;
        if long.is_none() {
            self.command(Command::Record, "begin recording").await?;
        }
        self.turn_if_waited_for().await
    }

    /// Learns which methods have been called before; where the JVM does not tell, at least which its JIT compiler has compiled.
    async fn learn_what_runs(&mut self) -> Result<(), SessionError> {
        let mut looks = Looks::default();
        for part in self.graph.worth_listing().chunks(LIST_AT_ONCE) {
            self.list_methods(part.to_vec()).await?;
            // Who has linked a class meanwhile has waited long enough.
            self.turn().await?;
            // The roots are known by now, and what takes time passes the time between two looks.
            if self.allowance.is_some() && self.graph.knows_what_was_called() {
                self.look_once_more(&mut looks).await?;
            }
        }
        if self.graph.knows_what_was_called() {
            self.learn_what_is_compiled(Duration::ZERO).await?;
            return self.learn_what_is_stale(looks).await;
        }
        self.list_compiled().await
    }

    /// In start-up mode: lets `main` begin.
    pub async fn release(&mut self) -> Result<(), SessionError> {
        self.command(Command::Release, "start the program").await.map(|_| ())
    }

    /// What is to be seen to next, by [`Session::serve`]. May be cancelled: nothing is lost.
    pub async fn next_event(&mut self) -> Result<SessionEvent, SessionError> {
        let due = self.next_due();
        tokio::select! {
            message = self.connection.receive() => match message {
                Ok(message) => Ok(SessionEvent::Message(message)),
                Err(error) => Err(SessionError::of(error, &self.segment)),
            },
            () = budget::tallied(self.budget.as_mut()) => Ok(SessionEvent::Tally),
            () = until(due) => Ok(SessionEvent::Due),
        }
    }

    /// How long has been recorded.
    pub fn recorded(&self) -> Recorded {
        self.recorded
    }

    /// Recording is prepared: its time begins, and ends by itself after so long, if that is known.
    pub fn begin_time(&mut self, duration: Option<Duration>) {
        self.recorded.begin();
        self.recording_for(duration);
    }

    /// Ends recording; the target's time of that moment.
    pub async fn stop(&mut self) -> Result<i64, SessionError> {
        self.stopping = true;
        // The hotswap that is under way may end after the profile.
        self.graph.drops_accepted();
        self.note_drops();
        self.left_over.append(&mut self.losing);
        for pending in std::mem::take(&mut self.queue) {
            self.answer_at_the_end(pending).await?;
        }
        let reply = self.command(Command::Stop, "stop recording").await?;
        let Reply::Stopped { time_ns } = reply else { return Err(unexpected("stop recording", &reply)) };
        // Nothing more is instrumented, but it is to be known what came too late.
        self.tell_time();
        self.settle_meanwhile().await?;
        Ok(time_ns)
    }

    /// Interrupts recording, for [`Session::resume`]; the target's time of that moment. Questions are answered as before.
    pub async fn pause(&mut self) -> Result<i64, SessionError> {
        let reply = self.command(Command::Stop, "interrupt recording").await?;
        self.recorded.interrupt();
        self.turn().await?;
        match reply {
            Reply::Stopped { time_ns } => Ok(time_ns),
            other => Err(unexpected("interrupt recording", &other)),
        }
    }

    /// Goes on recording: threads are followed from their next entry into a root.
    pub async fn resume(&mut self) -> Result<(), SessionError> {
        self.command(Command::Record, "go on recording").await?;
        self.recorded.begin();
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

    /// Restores every class and ends the agent.
    pub async fn detach(&mut self) -> Result<HotswapResult, SessionError> {
        match self.command(Command::Detach, "give the original code back").await? {
            Reply::Detached { hotswap } => Ok(hotswap),
            other => Err(unexpected("give the original code back", &other)),
        }
    }

    /// Sends a command and waits for its reply; class files are rewritten meanwhile, other questions are queued.
    async fn command(&mut self, command: Command, what: &'static str) -> Result<Reply, SessionError> {
        let request = self.next_request;
        self.next_request += 1;
        self.send(&ToAgent::Command { request, command }).await?;
        let (begun, rewriting) = (Instant::now(), self.spent.on(REWRITING));
        let deadline = tokio::time::Instant::now() + COMMAND_DEADLINE;
        loop {
            match self.receive_by(deadline, what).await? {
                ToTool::Reply { request: answered, reply } if answered == request => {
                    let rewriting = self.spent.on(REWRITING) - rewriting;
                    log::debug!("{what}: {:.1?}", begun.elapsed());
                    self.spent.add(what, begun.elapsed().saturating_sub(rewriting));
                    return reply.map_err(|reason| SessionError::Agent { what, reason });
                }
                other => self.hear_meanwhile(other).await?,
            }
        }
    }

    async fn send(&mut self, message: &ToAgent) -> Result<(), SessionError> {
        self.connection.send(message).await.map_err(|error| SessionError::of(error, &self.segment))
    }

    /// The agent's next message, if it comes in time.
    async fn receive_by(&mut self, deadline: tokio::time::Instant, what: &'static str) -> Result<ToTool, SessionError> {
        let received = tokio::time::timeout_at(deadline, self.connection.receive()).await;
        received.map_err(|_| SessionError::Deadline { what })?.map_err(|error| SessionError::of(error, &self.segment))
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

fn unexpected(what: &'static str, reply: &Reply) -> SessionError {
    // It may be a list of all classes.
    let reply: String = format!("{reply:?}").chars().take(LONGEST_REPLY).collect();
    SessionError::Agent { what, reason: format!("it answered something else: {reply}") }
}
