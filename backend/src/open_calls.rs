//! Calls that were on threads' stacks before recording began: a server's accept loop, `main`.
//!
//! They run the code that their methods had before: it has no probes, and no event tells of their return. So the stacks
//! are looked at: once, to find them; whenever such a thread enters an instrumented method from outside the call graph, on the
//! thread itself, so that it is known for sure what that call belongs to; and every so often by the agent's own thread.
//!
//! That a call has been open since before is seen from its code: HotSpot tells the version of a method that was replaced by
//! another, and so can only have been entered before that, apart from the current one. But not if the method had been replaced before
//! already by a version with the same code, by an earlier profile or by somebody else: such a call is shown as one of the current version,
//! but at an instruction that is none there, or calls something else.
//!
//! Why so, and at what cost: docs/decisions/open-calls.md.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use headwater_protocol::message::{Frame, MethodRef, Notice, RunningCall, ThreadStack};
use headwater_protocol::{MethodId, ThreadId};
use jni::sys::{jint, jmethodID, jobject};

use crate::jni_env::{Jni, Thrown};
use crate::jvmti::{Call, Jvmti};
use crate::os::{monotonic_ns, os_thread};
use crate::runtime::is_own;
use crate::target::Target;
use crate::versions::Current;

/// How often the agent's thread looks.
const INTERVAL: Duration = Duration::from_millis(25);
/// Looking takes such a part of the time at most: threads are stopped for it.
const PART: u32 = 50;
/// Calls on a stack that are looked at; deeper stacks are looked at once more, up to [`DEEPEST`].
const USUAL_DEPTH: usize = 1024;
/// A stack that is deeper tells nothing: HotSpot takes some 4.5 KiB for each call that it walks, all at once.
const DEEPEST: usize = 1 << 14;

/// The open calls of one session.
#[derive(Debug, Default)]
pub struct OpenCalls(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The methods whose calls may be open.
    methods: HashMap<MethodRef, MethodId>,
    /// What versions of methods are known to be: one of `methods` that was replaced, or nothing of interest. A version's
    /// address; it never changes from one to the other.
    versions: HashMap<usize, Option<MethodId>>,
    /// Methods whose calls from before look like those of their current versions.
    disguised: HashSet<usize>,
    threads: HashMap<ThreadId, Followed>,
    last_look: Option<Instant>,
    /// How long that took.
    took: Duration,
}

/// A thread with open calls.
#[derive(Debug)]
struct Followed {
    /// A global reference.
    thread: Reference,
    /// The calls when the thread was listed, the outermost first.
    calls: Vec<MethodId>,
    /// How many of them are still open.
    open: usize,
    /// The tool knows the operating system's number of it.
    is_told: bool,
}

/// A global reference to a thread.
#[derive(Clone, Copy, Debug)]
struct Reference(jobject);

// SAFETY: global references may be used in every thread.
unsafe impl Send for Reference {}

impl State {
    /// The open calls among those on a stack, which has the outermost first.
    fn open_on(&mut self, jni: Jni, target: &Target, stack: &[jmethodID]) -> Vec<MethodId> {
        let mut open = Vec::new();
        for version in stack {
            let known = self.versions.get(&(*version as usize)).copied();
            let method = known.unwrap_or_else(|| {
                let is_replaced = target.jvmti.is_obsolete(*version).unwrap_or(false)
                    || self.disguised.contains(&(*version as usize));
                let named = if is_replaced { target.classes.reference(jni, *version) } else { None };
                let method = named.and_then(|named| self.methods.get(&named).copied());
                self.versions.insert(*version as usize, method);
                method
            });
            open.extend(method);
        }
        open
    }

    /// How many of a thread's calls are still open, by its stack.
    fn still_open(&mut self, jni: Jni, target: &Target, thread: ThreadId, stack: &[jmethodID]) -> usize {
        let found = self.open_on(jni, target, stack);
        let Some(followed) = self.threads.get_mut(&thread) else { return 0 };
        let same = followed.calls[..followed.open].iter().zip(&found).take_while(|(known, found)| known == found);
        followed.open = same.count();
        followed.open
    }
}

/// The calls that all threads are in.
pub fn running(jni: Jni, target: &Target) -> Result<Vec<(ThreadId, Vec<RunningCall>)>, crate::jvmti::Error> {
    let mut known: HashMap<usize, Option<RunningCall>> = HashMap::new();
    let mut call_of = |call: &Call| {
        let found = known.entry(call.method as usize).or_insert_with(|| {
            let class = target.jvmti.declaring_class(call.method).ok()?;
            let id = target.classes.id(class);
            jni.delete_local(class);
            Some(RunningCall { version: call.method as u64, class: id.ok()?, is_native: call.at.is_none() })
        });
        *found
    };
    let mut threads = Vec::new();
    for (thread, stack) in target.jvmti.all_calls(USUAL_DEPTH)? {
        if let Ok(id) = jni.thread_id(thread) {
            let calls = stack.iter().filter_map(&mut call_of).collect();
            threads.push((ThreadId(id as u64), calls));
        }
        jni.delete_local(thread);
    }
    Ok(threads)
}

/// What is known of methods on stacks.
struct Versions<'t> {
    jni: Jni,
    target: &'t Target,
    known: HashMap<usize, Option<Version>>,
}

/// A method on a stack.
struct Version {
    frame: Frame,
    /// Its class has been redefined before we instrumented it.
    may_be_disguised: bool,
    /// What it runs for sure, if it is the current version.
    code: Option<Current>,
}

impl Versions<'_> {
    /// `None` when its class is gone.
    fn of(&mut self, method: jmethodID) -> Option<&mut Version> {
        let Versions { jni, target, known } = self;
        let version = known.entry(method as usize).or_insert_with(|| {
            /// Ours is one, if the method is instrumented.
            const OURS: jint = 1;
            let replaced = target.jvmti.is_obsolete(method).unwrap_or(false);
            let class = target.jvmti.declaring_class(method).ok()?;
            let may_be_disguised = !replaced && jni.redefined_count(class).is_ok_and(|count| count > OURS);
            jni.delete_local(class);
            let frame = Frame { method: target.classes.reference(*jni, method)?, replaced };
            Some(Version { frame, may_be_disguised, code: None })
        });
        version.as_mut()
    }

    /// The code of all known methods that may be disguised.
    fn current_codes(&self) -> HashMap<usize, Current> {
        let disguised = |version: &Option<Version>| version.as_ref().is_some_and(|it| it.may_be_disguised);
        let methods = self.known.iter().filter(|(_, version)| disguised(version)).map(|(method, _)| *method);
        methods.filter_map(|method| Some((method, self.code(method)?))).collect()
    }

    fn code(&self, method: usize) -> Option<Current> {
        let method = method as jmethodID;
        let class = self.target.jvmti.declaring_class(method).ok()?;
        let code = Current::of(self.target.jvmti, class, method);
        self.jni.delete_local(class);
        code
    }

    /// The codes are known that are still what they were.
    fn keep_codes(&mut self, before: HashMap<usize, Current>) {
        for (method, code) in before {
            if self.code(method).as_ref() == Some(&code)
                && let Some(version) = self.known.get_mut(&method).and_then(Option::as_mut)
            {
                version.code = Some(code);
            }
        }
    }

    /// A call, with what it has called.
    fn frame(&mut self, call: &Call, callee: Option<&Call>) -> Option<Frame> {
        let callee = callee.and_then(|callee| self.of(callee.method)).map(|callee| callee.frame.method.name.clone());
        let version = self.of(call.method)?;
        let runs_other = |code: &Current| call.at.is_some_and(|at| !code.may_be_at(at, callee.as_deref()));
        let replaced = version.frame.replaced || version.code.as_ref().is_some_and(runs_other);
        Some(Frame { replaced, ..version.frame.clone() })
    }
}

impl OpenCalls {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stacks of all threads inside the replaced code of one of these methods, from the outermost such call on.
    pub fn list(
        &self,
        jni: Jni,
        target: &Target,
        roots: &[MethodRef],
    ) -> Result<Vec<ThreadStack>, crate::jvmti::Error> {
        let roots: HashSet<&MethodRef> = roots.iter().collect();
        let mut versions = Versions { jni, target, known: HashMap::new() };
        let mut stacks = Vec::new();
        self.forget(jni);
        let mut calls = target.jvmti.all_calls(USUAL_DEPTH)?;
        let mut is_doubtful = false;
        for call in calls.iter().flat_map(|(_, calls)| calls) {
            let version = versions.of(call.method);
            is_doubtful |= version.is_some_and(|it| it.may_be_disguised && roots.contains(&it.frame.method));
        }
        if is_doubtful {
            // Code that was the same before and after these calls were looked at is what was current then.
            let before = versions.current_codes();
            calls.into_iter().for_each(|(thread, _)| jni.delete_local(thread));
            calls = target.jvmti.all_calls(USUAL_DEPTH)?;
            versions.keep_codes(before);
        }
        for (thread, mut stack) in calls {
            if stack.len() == USUAL_DEPTH {
                // A thread that has ended meanwhile is in no root any more.
                stack = whole(target.jvmti.calls(thread, DEEPEST).unwrap_or_default()).unwrap_or_default();
            }
            let callees = stack.iter().skip(1).map(Some).chain([None]);
            let frames: Vec<Option<Frame>> =
                stack.iter().zip(callees).map(|(call, callee)| versions.frame(call, callee)).collect();
            let is_open_root =
                |frame: &Option<Frame>| frame.as_ref().is_some_and(|it| it.replaced && roots.contains(&it.method));
            if let Some(first) = frames.iter().position(is_open_root)
                && let Ok(id) = jni.thread_id(thread)
            {
                let id = ThreadId(id as u64);
                let thread_name = target.jvmti.thread_name(jni, thread).unwrap_or_default();
                let mut state = self.lock();
                let replaced =
                    frames.iter().zip(&stack).filter(|(frame, _)| frame.as_ref().is_some_and(|it| it.replaced));
                state.disguised.extend(replaced.map(|(_, call)| call.method as usize));
                let thread = Reference(jni.new_global(thread));
                state.threads.insert(id, Followed { thread, calls: Vec::new(), open: 0, is_told: false });
                let frames = frames.into_iter().skip(first).flatten().collect();
                stacks.push(ThreadStack { thread: id, name: thread_name, frames });
            }
            jni.delete_local(thread);
        }
        Ok(stacks)
    }

    /// Has the runtime record what these threads, of those listed last, call from now on.
    pub fn follow(
        &self,
        jni: Jni,
        target: &Target,
        methods: Vec<(MethodId, MethodRef)>,
        threads: Vec<(ThreadId, Vec<MethodId>)>,
    ) -> Result<(), Thrown> {
        let mut begun = Vec::new();
        {
            let mut state = self.lock();
            state.versions.clear();
            state.methods = methods.into_iter().map(|(id, method)| (method, id)).collect();
            state.last_look = Some(Instant::now());
            for (thread, calls) in threads {
                if let Some(followed) = state.threads.get_mut(&thread) {
                    followed.open = calls.len();
                    followed.calls = calls.clone();
                    begun.push((thread, calls));
                }
            }
            let (followed, others) = std::mem::take(&mut state.threads).into_iter().partition(|(_, it)| it.open > 0);
            state.threads = followed;
            release(jni, others);
        }
        // Not under the lock: the runtime has its own, and its threads come here while they hold none of ours.
        begun.into_iter().try_for_each(|(thread, calls)| target.runtime.open(jni, thread, &calls))
    }

    /// How many of the current thread's calls are still open.
    pub fn of_current(&self, jni: Jni, target: &Target, thread: ThreadId) -> usize {
        self.tell_number(target, thread);
        let Some(mut stack) = whole_stack(target.jvmti, std::ptr::null_mut()) else {
            return self.lock().threads.get(&thread).map_or(0, |followed| followed.open);
        };
        // The innermost that is not our own is the one that is being entered.
        while let Some(version) = stack.pop()
            && is_own(target.jvmti, jni, version)
        {}
        self.lock().still_open(jni, target, thread, &stack)
    }

    /// Tells the operating system's number of the current thread, which only it knows, the first time.
    fn tell_number(&self, target: &Target, thread: ThreadId) {
        let told = self.lock().threads.get_mut(&thread).is_none_or(|it| std::mem::replace(&mut it.is_told, true));
        if !told {
            let name = String::new();
            target.connection.notice(Notice::ThreadStarted { thread, name, os_thread: Some(os_thread()) });
        }
    }

    /// When the agent's thread is to look next; `None` while there is nothing to be seen.
    pub fn next_look(&self) -> Option<Instant> {
        let state = self.lock();
        let last = state.last_look.filter(|_| !state.threads.is_empty())?;
        Some(last + INTERVAL.max(state.took * PART))
    }

    /// Looks at the threads' stacks, if it is time, and tells of calls that have returned. On the agent's own thread.
    pub fn look_if_due(&self, jni: Jni, target: &Target) {
        let now = Instant::now();
        if self.next_look().is_none_or(|due| now < due) {
            return;
        }
        let before = self.lock().last_look.replace(now).unwrap_or(now);
        // References are given back by this thread only.
        let threads: Vec<(ThreadId, Reference, usize)> =
            self.lock().threads.iter().map(|(id, followed)| (*id, followed.thread, followed.open)).collect();
        let start = Instant::now();
        let references: Vec<jobject> = threads.iter().map(|(_, reference, _)| reference.0).collect();
        let stacks = target.jvmti.stacks_of(&references, USUAL_DEPTH);
        self.lock().took = start.elapsed();
        for ((thread, reference, known), mut stack) in threads.into_iter().zip(stacks) {
            // A thread that has ended has left everything.
            if stack.len() == USUAL_DEPTH {
                let Some(all) = whole(target.jvmti.stack(reference.0, DEEPEST).unwrap_or_default()) else { continue };
                stack = all;
            }
            let open = self.lock().still_open(jni, target, thread, &stack);
            if open < known {
                let half = now.duration_since(before) / 2;
                let error_ns = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
                let time_ns = monotonic_ns().saturating_sub_unsigned(error_ns);
                target.connection.notice(Notice::FramesLeft { thread, open: open as u32, time_ns, error_ns });
            }
            if open == 0 {
                target.runtime.returned(jni, thread);
                if let Some(followed) = self.lock().threads.remove(&thread) {
                    jni.delete_global(followed.thread.0);
                }
            }
        }
    }

    /// Looks at nothing any more.
    pub fn forget(&self, jni: Jni) {
        let mut state = self.lock();
        state.disguised.clear();
        let threads = std::mem::take(&mut state.threads);
        drop(state);
        release(jni, threads);
    }
}

fn release(jni: Jni, threads: HashMap<ThreadId, Followed>) {
    threads.into_values().for_each(|followed| jni.delete_global(followed.thread.0));
}

/// A thread's whole stack, of which nothing is left when it has ended; `None` while it is too deep.
fn whole_stack(jvmti: Jvmti, thread: jobject) -> Option<Vec<jmethodID>> {
    let stack = jvmti.stack(thread, USUAL_DEPTH).unwrap_or_default();
    if stack.len() < USUAL_DEPTH { Some(stack) } else { whole(jvmti.stack(thread, DEEPEST).unwrap_or_default()) }
}

/// What has been asked for to that depth, unless there may be more.
fn whole<T>(stack: Vec<T>) -> Option<Vec<T>> {
    (stack.len() < DEEPEST).then_some(stack)
}
