//! One tool's visit to this JVM: from the agent's connection to the last class given back.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use headwater_protocol::collections::Collection;
use headwater_protocol::message::{Command, Greeting, HotswapResult, Notice, Omitted, Reply, Reveal, ToTool};
use headwater_protocol::pulse::End;
use headwater_protocol::segment::Segment;
use headwater_protocol::{ClassId, PROTOCOL_VERSION};

use crate::below;
use crate::carriers::Mounts;
use crate::classes::Classes;
use crate::compiled;
use crate::connection::{Connection, Next};
use crate::counting::Counters;
use crate::free_chunks::FreeChunks;
use crate::hotspot::HotSpot;
use crate::hotswap;
use crate::initiating::Initiating;
use crate::jni_env::Jni;
use crate::jvmti::{EventKind, Jvmti};
use crate::mentions;
use crate::open_calls::{self, OpenCalls};
use crate::originals::Originals;
use crate::patience::Patience;
use crate::peek;
use crate::profiles::Remembering;
use crate::ranges;
use crate::runtime::Runtime;
use crate::settling::Settling;
use crate::stale::Stale;
use crate::target::Target;
use crate::walk::Walk;
use crate::watch::Watch;

mod asking;
mod leaving;

/// The events that are on while a profile runs.
const PROFILE_EVENTS: [EventKind; 3] = [EventKind::ClassFileLoadHook, EventKind::ClassPrepare, EventKind::ThreadEnd];

/// The current session, if there is one.
static CURRENT: RwLock<Option<Arc<Session>>> = RwLock::new(None);

/// The state of one session.
#[derive(Debug)]
pub struct Session {
    /// What it works on.
    pub target: Target,
    /// Loaders that know the runtime.
    initiating: Initiating,
    /// What classes are without us.
    pub originals: Originals,
    /// Calls that began before recording.
    pub open_calls: OpenCalls,
    /// Methods that have not been called.
    watch: Watch,
    /// ... for a while.
    stale: Stale,
    /// Where threads run.
    walk: Walk,
    /// How long threads of the target wait.
    pub patience: Patience,
    /// Code that hotswaps have discarded.
    settling: Settling,
    /// What is not done, to measure what it is worth.
    omitted: Mutex<Omitted>,
    /// What is counted beside calls.
    pub counting: Counters,
    segment: Mutex<Option<Segment>>,
    free_chunks: FreeChunks,
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
    session.target.connection.presence().end(End::Detached);
    session.target.connection.close();
    session.wait_for_end(patience)
}

/// Whether there is no session, or one that has been giving everything back, and is done with it within `patience`.
pub fn is_free(patience: Duration) -> bool {
    current().is_none_or(|session| {
        (session.is_restoring() || session.target.connection.is_closed()) && session.wait_for_end(patience)
    })
}

/// Connects to the tool and makes ready; nothing in the target is changed yet.
pub fn open(
    (jvmti, jni, runtime): (Jvmti, Jni, &'static Runtime),
    socket: &Path,
    startup: bool,
    mounts: Mounts,
) -> Result<Arc<Session>, String> {
    let hotspot = HotSpot::find(jvmti, jni);
    let greeting = Greeting {
        protocol: PROTOCOL_VERSION,
        pid: std::process::id(),
        vm_version: jvmti.system_property("java.vm.version").unwrap_or_default(),
        java_version: jvmti.system_property("java.version").unwrap_or_default(),
        startup,
        internals: hotspot.standings(),
    };
    let (connection, file) = Connection::open(socket, greeting).map_err(|error| error.to_string())?;
    let segment = ranges::open(jvmti, jni, &file).map_err(|error| error.to_string())?;
    if startup {
        // The program waits.
        connection.presence().watch();
    }
    if let Err(error) = runtime.attach(jni, &segment) {
        // The runtime may know the address already.
        ranges::give_up(segment);
        return Err(error.to_string());
    }
    let cpu_time = segment.uses_thread_cpu();
    let session = Arc::new(Session {
        target: Target { jvmti, connection, classes: Classes::new(jvmti), hotspot, runtime },
        initiating: Initiating::default(),
        originals: Originals::of_jvm(jvmti),
        open_calls: OpenCalls::default(),
        watch: Watch::default(),
        stale: Stale::default(),
        walk: Walk::default(),
        patience: Patience::default(),
        settling: Settling::of(jvmti),
        omitted: Mutex::default(),
        counting: Counters::new(mounts),
        segment: Mutex::new(Some(segment)),
        free_chunks: FreeChunks::default(),
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
        self.target.connection.read_here();
        let presence = self.target.connection.presence();
        let mut detach = None;
        loop {
            if presence.is_given_up() {
                presence.end(End::Silence);
                self.target.connection.close();
                break;
            }
            self.open_calls.look_if_due(jni, &self.target);
            self.settling.settle_if_due(self.target.jvmti, jni);
            self.watch.look_if_due(&self.target);
            self.walk.look_if_due(jni, &self.target);
            let next = || {
                let looks = [self.open_calls.next_look(), self.watch.next_look(), self.walk.next_look()];
                looks.into_iter().chain([presence.next_look(), self.settling.next()]).flatten().min()
            };
            let (request, command) = match self.target.connection.next_command(next) {
                Next::Command(request, command) => (request, command),
                Next::Deadline => continue,
                Next::Closed => break,
            };
            if command == Command::Detach {
                detach = Some(request);
                break;
            }
            let reply = self.execute(jni, command);
            if self.target.connection.send(&ToTool::Reply { request, reply }).is_err() {
                break;
            }
        }
        if !self.vm_dead.load(Ordering::Acquire) {
            self.leave(jni, detach);
        }
    }

    fn execute(&self, jni: Jni, command: Command) -> Result<Reply, String> {
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        let Target { jvmti, connection, classes: known, hotspot, runtime } = &self.target;
        let jvmti = *jvmti;
        match command {
            Command::Calibrate => runtime.calibrate(jni).map(Reply::Calibration).map_err(|error| failed(&error)),
            Command::ListClasses { reveal, deadline_ms, patience } => {
                self.reveal(reveal);
                connection.set_deadline(Duration::from_millis(deadline_ms.into()));
                if let Some(patience) = patience {
                    self.patience.limit(patience);
                    self.stale.begin();
                }
                // From now on it costs the program something.
                connection.presence().watch();
                // Hooks first: a class that is loaded meanwhile is then reported at least once.
                for event in PROFILE_EVENTS {
                    jvmti.enable(event).map_err(|error| failed(&error))?;
                }
                let (linked, unlinked) = known.list(jni, connection).map_err(|error| failed(&error))?;
                Ok(Reply::Classes { linked, unlinked })
            }
            Command::Omit(omitted) => {
                *self.omitted.lock().unwrap_or_else(PoisonError::into_inner) = omitted;
                Ok(Reply::Done)
            }
            Command::Reveal(reveal) => Ok(self.reveal(reveal)),
            Command::ListStale => {
                Ok(Reply::Methods(self.target.invocations().map_or(Vec::new(), |it| self.stale.take(jvmti, it))))
            }
            Command::Watch { methods } => {
                self.watch.add(jni, &self.target, methods).map(|()| Reply::Done).map_err(|error| failed(&error))
            }
            Command::ListMethods { classes } => known
                .methods(jni, &classes, self.target.invocations(), &self.stale, connection)
                .map(Reply::Methods)
                .map_err(|error| failed(&error)),
            Command::ReadClasses { classes } => peek::class_files(jvmti, jni, (known, connection), &classes)
                .map(Reply::ClassFiles)
                .map_err(|error| failed(&error)),
            Command::ListMentions => {
                mentions::list(jvmti, jni, known, connection).map(Reply::Mentions).map_err(|error| failed(&error))
            }
            Command::ListCompiled => {
                compiled::list(jvmti, jni, connection).map(Reply::Compiled).map_err(|error| failed(&error))
            }
            Command::Hotswap { classes } => Ok(Reply::Hotswapped(self.hotswap(jni, &classes))),
            Command::ForgetLambdas => {
                let remembering = self.remembering(jni);
                let forgotten = hotswap::restore(jvmti, jni, known, &[], &remembering.classes);
                if !remembering.classes.is_empty() {
                    self.has_discarded_code();
                }
                if let Some(spared) = remembering.spared {
                    known.lambdas_forgotten(spared);
                }
                Ok(Reply::Hotswapped(forgotten))
            }
            Command::Count(what) => self.counting.count(jvmti, jni, (hotspot, runtime), what).map(|()| Reply::Done),
            Command::Record => runtime.record(jni).map(|()| Reply::Done).map_err(|error| failed(&error)),
            Command::ListCalls => {
                open_calls::running(jni, &self.target).map(Reply::Calls).map_err(|error| failed(&error))
            }
            Command::ListStacks { roots } => {
                self.open_calls.list(jni, &self.target, &roots).map(Reply::Stacks).map_err(|error| failed(&error))
            }
            Command::Sample { roots, looks } => {
                below::sample(jni, &self.target, &roots, looks).map(Reply::Sampled).map_err(|error| failed(&error))
            }
            Command::Walk { period_us, longest_ms } => {
                self.walk.begin(Duration::from_micros(period_us.into()), Duration::from_millis(longest_ms.into()));
                Ok(Reply::Done)
            }
            Command::EndWalk => Ok(Reply::Walked(self.walk.end())),
            Command::FollowOpen { methods, threads } => self
                .open_calls
                .follow(jni, &self.target, methods, threads)
                .map(|()| Reply::Done)
                .map_err(|error| failed(&error)),
            Command::Stop => {
                // In this order: a thread that finds its open calls forgotten knows that its recording has ended.
                let stopped = runtime.stop(jni);
                self.open_calls.forget(jni);
                self.watch.forget();
                let time_ns = stopped.map_err(|error| failed(&error))?;
                Ok(Reply::Stopped { time_ns })
            }
            Command::Release => {
                self.open_gate();
                Ok(Reply::Done)
            }
            Command::Tell(_) => Err("a profile's agent tells of no events".to_owned()),
            Command::Detach => unreachable!("handled by serve"),
        }
    }

    fn reveal(&self, reveal: Reveal) -> Reply {
        self.background.store(reveal == Reveal::Background, Ordering::Release);
        Reply::Done
    }

    fn omitted(&self) -> Omitted {
        *self.omitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A hotswap has discarded compiled code.
    fn has_discarded_code(&self) {
        if !self.omitted().settling {
            self.settling.begin();
        }
    }

    fn remembering(&self, jni: Jni) -> Remembering {
        let profiles = self.target.hotspot.type_profiles.as_ref().filter(|_| !self.omitted().profiles);
        Remembering::find((self.target.jvmti, jni), &self.target.classes, profiles)
    }

    /// Retransforms these classes, on the current thread.
    pub fn hotswap(&self, jni: Jni, classes: &[ClassId]) -> HotswapResult {
        self.watch.look_before(&self.target, classes);
        let result = hotswap::retransform(self.target.jvmti, jni, &self.target.classes, &self.initiating, classes);
        if result.classes > 0 {
            self.has_discarded_code();
        }
        HotswapResult { threads: self.target.runtime.threads(jni), ..result }
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

    /// Waits until a chunk is free, in vain at most as long as the deadline, and not for a tool that is absent.
    pub fn await_chunk(&self) -> bool {
        self.free_chunks.wait(Instant::now() + self.target.connection.deadline(), |most| {
            let is_over = self.target.connection.is_closed()
                || self.target.connection.presence().is_absent()
                || self.is_restoring();
            let segment = self.segment.lock().unwrap_or_else(PoisonError::into_inner);
            segment.as_ref().filter(|_| !is_over).map(|segment| segment.some_free_chunks(most))
        })
    }

    /// Tells of a collection. Nobody who holds these locks waits for the JVM, which waits for this.
    pub fn collected(&self, collection: &Collection) {
        if let Some(segment) = &*self.segment.lock().unwrap_or_else(PoisonError::into_inner) {
            segment.add_collection(collection);
        }
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

    /// The JVM goes down: tell the tool and let nobody wait any longer.
    pub fn vm_death(&self) {
        self.vm_dead.store(true, Ordering::Release);
        self.nobody_stays();
        self.target.connection.presence().end(End::JvmEnds);
        self.target.connection.notice(Notice::VmDeath);
        self.target.connection.close();
    }

    /// Waits until all is as it was, for at most `patience`; whether it is.
    fn wait_for_end(&self, patience: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.end_reached.wait_timeout_while(ended, patience, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
