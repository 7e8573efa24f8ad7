//! One tool's visit to this JVM: from the agent's connection to the last class given back.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use headwater_protocol::message::{Command, Greeting, HotswapResult, Notice, Reply, RequestId, Reveal, ToTool};
use headwater_protocol::segment::Segment;
use headwater_protocol::{ClassId, PROTOCOL_VERSION};
use jni::sys::jclass;

use crate::below;
use crate::classes::Classes;
use crate::compiled;
use crate::connection::{Connection, Next};
use crate::hotswap;
use crate::invocations::Invocations;
use crate::jni_env::Jni;
use crate::jvmti::{EventKind, Jvmti};
use crate::mentions;
use crate::open_calls::{self, OpenCalls};
use crate::originals::Originals;
use crate::patience::Patience;
use crate::peek;
use crate::profiles::Remembering;
use crate::runtime::Runtime;
use crate::settling::Settling;
use crate::stale::Stale;
use crate::watch::Watch;

/// How long the end of a session waits for threads that are still on their way out of the agent.
const LEAVE_DEADLINE: Duration = Duration::from_secs(2);
/// How long the end of a session waits for classes that have been given instrumented bytes and are not defined yet. Those whose
/// definition failed are waited for in vain.
const DEFINING_DEADLINE: Duration = Duration::from_millis(500);
/// How long the end of a session has threads that leave a root wait at most, until the others have left it and code is given back.
const LONGEST_HOLD: Duration = Duration::from_millis(100);
/// How long it waits for the others.
const LONGEST_QUIET: Duration = Duration::from_millis(50);
/// How long the end of a session waits for code that has been given back to be compiled anew, and has its calls settled.
const LAST_SETTLING: Duration = Duration::from_millis(250);
/// The events that are on while a profile runs.
const PROFILE_EVENTS: [EventKind; 3] = [EventKind::ClassFileLoadHook, EventKind::ClassPrepare, EventKind::ThreadEnd];

/// The current session, if there is one.
static CURRENT: RwLock<Option<Arc<Session>>> = RwLock::new(None);

/// The state of one session.
#[derive(Debug)]
pub struct Session {
    /// This session's own JVMTI environment; it is disposed at the end.
    pub jvmti: Jvmti,
    /// The socket.
    pub connection: Connection,
    /// The classes' numbers.
    pub classes: Classes,
    /// Which methods have been called, once somebody has asked.
    invocations: OnceLock<Option<Invocations>>,
    /// What classes are without us.
    pub originals: Originals,
    /// Calls that began before recording.
    pub open_calls: OpenCalls,
    /// Methods that have not been called.
    watch: Watch,
    /// ... for a while.
    stale: Stale,
    /// How long threads of the target wait.
    pub patience: Patience,
    /// Code that hotswaps have discarded.
    settling: Settling,
    /// The Java side.
    pub runtime: &'static Runtime,
    segment: Mutex<Option<Segment>>,
    /// Events are timed by the CPU time of their threads.
    cpu_time: bool,
    /// Original code is being given back: hooks change nothing and ask nobody.
    restoring: AtomicBool,
    /// Threads of the target tell what they reveal, and do not wait.
    background: AtomicBool,
    /// The JVM goes down: nothing can or need be given back.
    vm_dead: AtomicBool,
    /// Threads of the target that are in a callback or a native method of ours.
    inside: AtomicUsize,
    /// In start-up mode, `main` waits here.
    gate: Mutex<bool>,
    gate_opened: Condvar,
    /// Threads that leave a root wait until then, or until there is no such time any more.
    held: Mutex<Option<Instant>>,
    let_go: Condvar,
    ended: Mutex<bool>,
    end_reached: Condvar,
}

/// Holds the current session for the time of a callback.
pub struct Inside(Arc<Session>);

impl std::ops::Deref for Inside {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Release);
    }
}

/// The current session, kept alive until the result is dropped.
pub fn enter() -> Option<Inside> {
    let current = CURRENT.read().unwrap_or_else(PoisonError::into_inner);
    let session = current.as_ref()?;
    session.inside.fetch_add(1, Ordering::Acquire);
    Some(Inside(Arc::clone(session)))
}

/// The current session, without being counted as inside.
pub fn current() -> Option<Arc<Session>> {
    CURRENT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Drops a session whose thread could not be started.
pub fn forget() {
    let forgotten = CURRENT.write().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(session) = forgotten {
        session.abandon_segment();
    }
}

/// Whether a session is under way.
pub fn is_active() -> bool {
    CURRENT.read().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Ends the current session as if its tool had gone away, and waits for that, for at most `patience`. Whether there
/// is none now.
pub fn end(patience: Duration) -> bool {
    let Some(session) = current() else { return true };
    session.connection.close();
    session.wait_for_end(patience)
}

/// Whether there is no session, or one that has been giving everything back, and is done with it within `patience`.
pub fn is_free(patience: Duration) -> bool {
    current().is_none_or(|session| {
        (session.is_restoring() || session.connection.is_closed()) && session.wait_for_end(patience)
    })
}

/// Connects to the tool and makes ready; nothing in the target is changed yet.
pub fn open(jvmti: Jvmti, jni: Jni, socket: &Path, startup: bool) -> Result<Arc<Session>, String> {
    let runtime = Runtime::install(jni).map_err(|error| error.to_string())?;
    let originals = Originals::find(jvmti, jni);
    let greeting = Greeting {
        protocol: PROTOCOL_VERSION,
        pid: std::process::id(),
        vm_version: jvmti.system_property("java.vm.version").unwrap_or_default(),
        java_version: jvmti.system_property("java.version").unwrap_or_default(),
        startup,
        forgets_names: originals.forgets_names(),
    };
    let (connection, descriptor) = Connection::open(socket, greeting).map_err(|error| error.to_string())?;
    let segment = Segment::open(&File::from(descriptor)).map_err(|error| error.to_string())?;
    if let Err(error) = runtime.attach(jni, &segment) {
        // The runtime may know the address already.
        let _ = segment.abandon();
        return Err(error.to_string());
    }
    let cpu_time = segment.uses_thread_cpu();
    let session = Arc::new(Session {
        jvmti,
        connection,
        classes: Classes::new(jvmti),
        invocations: OnceLock::new(),
        originals,
        open_calls: OpenCalls::default(),
        watch: Watch::default(),
        stale: Stale::default(),
        patience: Patience::default(),
        settling: Settling::of(jvmti),
        runtime,
        segment: Mutex::new(Some(segment)),
        cpu_time,
        restoring: AtomicBool::new(false),
        background: AtomicBool::new(false),
        vm_dead: AtomicBool::new(false),
        inside: AtomicUsize::new(0),
        gate: Mutex::new(false),
        gate_opened: Condvar::new(),
        held: Mutex::new(None),
        let_go: Condvar::new(),
        ended: Mutex::new(false),
        end_reached: Condvar::new(),
    });
    *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&session));
    Ok(session)
}

impl Session {
    /// Serves the tool until it detaches or goes away; then leaves the target as it was. On the agent's own thread.
    pub fn serve(&self, jni: Jni) {
        self.connection.read_here();
        let mut detach = None;
        loop {
            self.open_calls.look_if_due(jni, self);
            self.settling.settle_if_due(self.jvmti, jni);
            self.watch.look_if_due(self);
            let next = || {
                [self.open_calls.next_look(), self.settling.next(), self.watch.next_look()].into_iter().flatten().min()
            };
            let (request, command) = match self.connection.next_command(next) {
                Next::Command(request, command) => (request, command),
                Next::Deadline => continue,
                Next::Closed => break,
            };
            if command == Command::Detach {
                detach = Some(request);
                break;
            }
            let reply = self.execute(jni, command);
            if self.connection.send(&ToTool::Reply { request, reply }).is_err() {
                break;
            }
        }
        if !self.vm_dead.load(Ordering::Acquire) {
            self.leave(jni, detach);
        }
    }

    fn execute(&self, jni: Jni, command: Command) -> Result<Reply, String> {
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        match command {
            Command::Calibrate => self.runtime.calibrate(jni).map(Reply::Calibration).map_err(|error| failed(&error)),
            Command::ListClasses { reveal, patience } => {
                self.reveal(reveal);
                if let Some(patience) = patience {
                    self.patience.limit(patience);
                    self.stale.begin();
                }
                // Hooks first: a class that is loaded meanwhile is then reported at least once.
                for event in PROFILE_EVENTS {
                    self.jvmti.enable(event).map_err(|error| failed(&error))?;
                }
                let (linked, unlinked) = self.classes.list(jni).map_err(|error| failed(&error))?;
                Ok(Reply::Classes { linked, unlinked })
            }
            Command::Reveal(reveal) => Ok(self.reveal(reveal)),
            Command::ListStale => {
                Ok(Reply::Methods(self.invocations().map_or(Vec::new(), |it| self.stale.take(self.jvmti, it))))
            }
            Command::Watch { methods } => {
                self.watch.add(jni, self, methods).map(|()| Reply::Done).map_err(|error| failed(&error))
            }
            Command::ListMethods { classes } => self
                .classes
                .methods(jni, &classes, self.invocations(), &self.stale)
                .map(Reply::Methods)
                .map_err(|error| failed(&error)),
            Command::ReadClasses { classes } => peek::class_files(self.jvmti, jni, &self.classes, &classes)
                .map(Reply::ClassFiles)
                .map_err(|error| failed(&error)),
            Command::ListMentions => {
                mentions::list(self.jvmti, jni, &self.classes).map(Reply::Mentions).map_err(|error| failed(&error))
            }
            Command::ListCompiled => {
                compiled::list(self.jvmti, jni, &self.classes).map(Reply::Compiled).map_err(|error| failed(&error))
            }
            Command::Hotswap { classes } => Ok(Reply::Hotswapped(self.hotswap(jni, &classes))),
            Command::ForgetLambdas => {
                let remembering = Remembering::find(self.jvmti, jni, &self.classes);
                let forgotten = hotswap::restore(self.jvmti, jni, &self.classes, &[], &remembering.classes);
                if !remembering.classes.is_empty() {
                    self.settling.begin();
                }
                if let Some(spared) = remembering.spared {
                    self.classes.lambdas_forgotten(spared);
                }
                Ok(Reply::Hotswapped(forgotten))
            }
            Command::Record => self.runtime.record(jni).map(|()| Reply::Done).map_err(|error| failed(&error)),
            Command::ListCalls => open_calls::running(jni, self).map(Reply::Calls).map_err(|error| failed(&error)),
            Command::ListStacks { roots } => {
                self.open_calls.list(jni, self, &roots).map(Reply::Stacks).map_err(|error| failed(&error))
            }
            Command::Sample { roots, looks } => below::sample(jni, self, &roots, looks).map_err(|error| failed(&error)),
            Command::FollowOpen { methods, threads } => self
                .open_calls
                .follow(jni, self, methods, threads)
                .map(|()| Reply::Done)
                .map_err(|error| failed(&error)),
            Command::Stop => {
                // In this order: a thread that finds its open calls forgotten knows that its recording has ended.
                let stopped = self.runtime.stop(jni);
                self.open_calls.forget(jni);
                self.watch.forget();
                let time_ns = stopped.map_err(|error| failed(&error))?;
                Ok(Reply::Stopped { time_ns })
            }
            Command::Release => {
                self.open_gate();
                Ok(Reply::Done)
            }
            Command::Detach => unreachable!("handled by serve"),
        }
    }

    fn reveal(&self, reveal: Reveal) -> Reply {
        self.background.store(reveal == Reveal::Background, Ordering::Release);
        Reply::Done
    }

    /// How often methods have been called, if the JVM tells.
    pub fn invocations(&self) -> Option<&Invocations> {
        self.invocations.get_or_init(|| Invocations::find(self.runtime.called())).as_ref()
    }

    /// Retransforms these classes, on the current thread.
    pub fn hotswap(&self, jni: Jni, classes: &[ClassId]) -> HotswapResult {
        self.watch.look_before(self, classes);
        let result = hotswap::retransform(self.jvmti, jni, &self.classes, classes);
        if result.classes > 0 {
            self.settling.begin();
        }
        HotswapResult { threads: self.runtime.threads(jni), ..result }
    }

    /// Whether events are timed by the CPU time of their threads.
    pub fn counts_cpu_time(&self) -> bool {
        self.cpu_time
    }

    /// Whether threads of the target wait for nothing that they reveal.
    pub fn reveals_in_background(&self) -> bool {
        self.background.load(Ordering::Acquire)
    }

    /// Whether original code is being given back.
    pub fn is_restoring(&self) -> bool {
        self.restoring.load(Ordering::SeqCst)
    }

    /// Waits until a chunk is free, in vain at most as long as the deadline.
    pub fn await_chunk(&self) -> bool {
        // The tool polls about every millisecond; there is nobody to be woken by.
        const NAP: Duration = Duration::from_micros(200);
        let deadline = Instant::now() + self.connection.deadline();
        while !self.connection.is_closed() && !self.is_restoring() && Instant::now() < deadline {
            let segment = self.segment.lock().unwrap_or_else(PoisonError::into_inner);
            match segment.as_ref() {
                Some(segment) if segment.has_free_chunk() => return true,
                Some(_) => {}
                None => return false,
            }
            drop(segment);
            std::thread::sleep(NAP);
        }
        false
    }

    /// Holds the current thread until the tool lets it go, or is gone, or too slow.
    pub fn wait_for_release(&self, patience: Duration) {
        let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.gate_opened.wait_timeout_while(gate, patience, |open| !*open));
    }

    fn open_gate(&self) {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.gate_opened.notify_all();
    }

    /// Has threads that leave a root wait, until no thread is in one, if that is soon. A call that goes on would go on with lambdas that are gone,
    /// and leave them in the profiles that HotSpot begins anew.
    fn hold(&self, jni: Jni) {
        const NAP: Duration = Duration::from_micros(100);
        let start = Instant::now();
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(start + LONGEST_HOLD);
        // What cannot be known is not waited for.
        while self.runtime.hold(jni).is_ok_and(|inside| inside > 0) && start.elapsed() < LONGEST_QUIET {
            std::thread::sleep(NAP);
        }
    }

    /// Lets threads go that wait outside roots.
    fn let_go(&self, jni: Jni) {
        // An exception here was cleared: then they find out by themselves that nobody holds them.
        let _ = self.runtime.let_go(jni);
        self.nobody_stays();
    }

    fn nobody_stays(&self) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.let_go.notify_all();
    }

    /// Keeps the current thread as long as those are held that leave a root.
    pub fn stay(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(left) =
            held.and_then(|end| end.checked_duration_since(Instant::now())).filter(|left| !left.is_zero())
        {
            held = self.let_go.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The JVM goes down: tell the tool and let nobody wait any longer.
    pub fn vm_death(&self) {
        self.vm_dead.store(true, Ordering::Release);
        self.nobody_stays();
        self.connection.notice(Notice::VmDeath);
        self.connection.close();
    }

    /// Cuts the event buffer off from the tool; the runtime may go on to write into it.
    fn abandon_segment(&self) {
        if let Some(segment) = self.segment.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // When even this fails the pages stay shared with a tool that no longer reads them.
            let _ = segment.abandon();
        }
    }

    /// Waits until all is as it was, for at most `patience`; whether it is.
    fn wait_for_end(&self, patience: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.end_reached.wait_timeout_while(ended, patience, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Gives all classes their own code back, and has the lambdas forgotten that it had.
    fn restore(&self, jni: Jni) -> HotswapResult {
        const NAP: Duration = Duration::from_millis(2);
        let restore = |batch: &[_], same: &[_]| hotswap::restore(self.jvmti, jni, &self.classes, batch, same);
        let mut remembering = Remembering::find(self.jvmti, jni, &self.classes);
        let deadline = Instant::now() + DEFINING_DEADLINE;
        let mut restored = HotswapResult::default();
        let mut was_held = false;
        loop {
            match self.classes.take_instrumented(jni) {
                Ok(classes) => {
                    let is_last = |class: &jclass| self.classes.is_among(jni, *class, &remembering.with_them);
                    let same = std::mem::take(&mut remembering.classes);
                    let is_one_batch = classes.len() + same.len() <= hotswap::RESTORE_BATCH;
                    let is_any = !classes.is_empty() || !same.is_empty();
                    let (mut last, mut others): (Vec<_>, Vec<_>) = classes.into_iter().partition(is_last);
                    if is_one_batch && !last.is_empty() {
                        // By roots among them threads are held.
                        last.append(&mut others);
                    }
                    restored.add(restore(&others, &[]));
                    if !last.is_empty() && !std::mem::replace(&mut was_held, true) {
                        self.hold(jni);
                    }
                    // In one go: what the compilers made of the program in between would stay so.
                    restored.add(restore(&last, &same));
                    if is_any {
                        self.settling.begin();
                    }
                }
                Err(error) => restored.refused.push((ClassId(0), error.to_string())),
            }
            self.let_go(jni);
            // A callback that is under way may still hand instrumented bytes out.
            let pending = self.classes.is_defining() || self.inside.load(Ordering::Acquire) != 0;
            if !pending || Instant::now() > deadline {
                return restored;
            }
            std::thread::sleep(NAP);
        }
    }

    /// Gives everything back, on the agent's own thread, and answers `detach` if there is somebody to be answered.
    pub fn leave(&self, jni: Jni, detach: Option<RequestId>) {
        // Each step is tried whatever became of the one before.
        let _ = self.runtime.stop(jni);
        self.open_calls.forget(jni);
        self.open_gate();
        self.restoring.store(true, Ordering::SeqCst);
        self.connection.answer_nobody();
        let restored = self.restore(jni);
        for event in PROFILE_EVENTS {
            let _ = self.jvmti.disable(event);
        }
        self.settling.settle(self.jvmti, jni, LAST_SETTLING, || self.vm_dead.load(Ordering::Acquire));
        *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(request) = detach {
            let reply = Ok(Reply::Detached { hotswap: restored });
            let _ = self.connection.send(&ToTool::Reply { request, reply });
        }
        self.connection.close();
        let deadline = Instant::now() + LEAVE_DEADLINE;
        while self.inside.load(Ordering::Acquire) != 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        // A thread that is still inside may use the environment: it is then left alone, with all its events off.
        if self.inside.load(Ordering::Acquire) == 0 {
            let _ = self.jvmti.dispose();
        }
        self.abandon_segment();
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.end_reached.notify_all();
    }
}
