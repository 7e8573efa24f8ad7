//! The end of a session: the target is left as it was.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use headwater_protocol::ClassId;
use headwater_protocol::message::{HotswapResult, Reply, RequestId, ToTool};
use jni::sys::jclass;

use super::{CURRENT, PROFILE_EVENTS, Session};
use crate::hotswap;
use crate::jni_env::Jni;
use crate::ranges;

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

impl Session {
    /// Has threads that leave a root wait, until no thread is in one, if that is soon. A call that goes on would go on with lambdas that are gone,
    /// and leave them in the profiles that HotSpot begins anew.
    fn hold(&self, jni: Jni) {
        const NAP: Duration = Duration::from_micros(100);
        let start = Instant::now();
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(start + LONGEST_HOLD);
        // What cannot be known is not waited for.
        while self.target.runtime.hold(jni).is_ok_and(|inside| inside > 0) && start.elapsed() < LONGEST_QUIET {
            std::thread::sleep(NAP);
        }
    }

    /// Lets threads go that wait outside roots.
    fn let_go(&self, jni: Jni) {
        // An exception here was cleared: then they find out by themselves that nobody holds them.
        let _ = self.target.runtime.let_go(jni);
        self.nobody_stays();
    }

    pub(super) fn nobody_stays(&self) {
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

    /// Cuts the event buffer off from the tool; the runtime may go on to write into it.
    pub(super) fn abandon_segment(&self) {
        if let Some(segment) = self.segment.lock().unwrap_or_else(PoisonError::into_inner).take() {
            ranges::give_up(segment);
        }
    }

    /// Gives all classes their own code back, and has the lambdas forgotten that it had.
    fn restore(&self, jni: Jni) -> HotswapResult {
        const NAP: Duration = Duration::from_millis(2);
        let restore =
            |batch: &[_], same: &[_]| hotswap::restore(self.target.jvmti, jni, &self.target.classes, batch, same);
        let mut remembering = self.remembering(jni);
        let deadline = Instant::now() + DEFINING_DEADLINE;
        let mut restored = HotswapResult::default();
        let mut was_held = false;
        loop {
            match self.target.classes.take_instrumented(jni) {
                Ok(classes) => {
                    let is_last = |class: &jclass| self.target.classes.is_among(jni, *class, &remembering.with_them);
                    let same = std::mem::take(&mut remembering.classes);
                    let is_one_batch = classes.len() + same.len() <= hotswap::RESTORE_BATCH;
                    let is_any = !classes.is_empty() || !same.is_empty();
                    let (mut last, mut others): (Vec<_>, Vec<_>) = classes.into_iter().partition(is_last);
                    if is_one_batch && !last.is_empty() {
                        // By roots among them threads are held.
                        last.append(&mut others);
                    }
                    restored.add(restore(&others, &[]));
                    if !last.is_empty() && !self.omitted().holding && !std::mem::replace(&mut was_held, true) {
                        self.hold(jni);
                    }
                    // In one go: what the compilers made of the program in between would stay so.
                    restored.add(restore(&last, &same));
                    if is_any {
                        self.has_discarded_code();
                    }
                }
                Err(error) => restored.refused.push((ClassId(0), error.to_string())),
            }
            self.let_go(jni);
            // A callback that is under way may still hand instrumented bytes out.
            let pending = self.target.classes.is_defining() || self.inside.load(Ordering::Acquire) != 0;
            if !pending || Instant::now() > deadline {
                return restored;
            }
            std::thread::sleep(NAP);
        }
    }

    /// Gives everything back, on the agent's own thread, and answers `detach` if there is somebody to be answered.
    pub fn leave(&self, jni: Jni, detach: Option<RequestId>) {
        // Each step is tried whatever became of the one before.
        let _ = self.target.runtime.stop(jni);
        self.open_calls.forget(jni);
        self.open_gate();
        self.restoring.store(true, Ordering::SeqCst);
        self.target.connection.answer_nobody();
        let restored = self.restore(jni);
        for event in PROFILE_EVENTS {
            let _ = self.target.jvmti.disable(event);
        }
        self.counting.stop(self.target.jvmti);
        self.settling.settle(self.target.jvmti, jni, LAST_SETTLING, || self.vm_dead.load(Ordering::Acquire));
        *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(request) = detach {
            let reply = Ok(Reply::Detached { hotswap: restored });
            let _ = self.target.connection.send(&ToTool::Reply { request, reply });
        }
        self.target.connection.close();
        let deadline = Instant::now() + LEAVE_DEADLINE;
        while self.inside.load(Ordering::Acquire) != 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        // A thread that is still inside may use the environment: it is then left alone, with all its events off.
        if self.inside.load(Ordering::Acquire) == 0 {
            let _ = self.target.jvmti.dispose();
        }
        self.abandon_segment();
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.end_reached.notify_all();
    }
}
