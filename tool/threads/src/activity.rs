//! What a thread does, in one word: to add up how long it does it.

use headwater_terms::pattern::JDK_PACKAGES;
use headwater_terms::waiting::{What, native};

use super::doing::{place, sleeps};
use super::{Frame, State, Thread, WaitKind};

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activity {
    /// It runs, could, or is in native code of which nothing is known.
    Running,
    /// It wants a monitor that another thread has, or a class that another one initialises.
    Blocked,
    /// It is in `Object.wait`.
    Waiting,
    /// It is parked: for a `java.util.concurrent` lock, a queue, a result.
    Parked,
    /// It sleeps.
    Asleep,
    /// It reads from a socket, writes to it, or waits for a connection.
    Socket,
    /// It reads or writes a file or pipe.
    File,
    /// It waits for something else outside the JVM.
    Outside,
    /// It waits for work.
    Idle,
}

impl Activity {
    /// All that are waits for something that is part of the work.
    pub const WAITS: [Activity; 7] = [
        Activity::Blocked,
        Activity::Waiting,
        Activity::Parked,
        Activity::Asleep,
        Activity::Socket,
        Activity::File,
        Activity::Outside,
    ];
}

/// What a thread of the program's does; nothing of it may be on its stack but the JDK's, then it waits for work.
pub fn activity(thread: &Thread) -> Activity {
    use Activity::{Asleep, Blocked, Idle, Outside, Parked, Running, Waiting};
    let is_jdks = |frame: &Frame| JDK_PACKAGES.iter().any(|package| frame.method.starts_with(package));
    match of(thread) {
        busy @ (Running | Blocked) => busy,
        Waiting | Parked | Asleep | Outside if thread.stack.iter().all(is_jdks) => Idle,
        _ if place(thread).is_some_and(|place| place.what == What::Work) => Idle,
        waits => waits,
    }
}

/// Whether a thread waits until there is something for it to do, or is the JVM's own. Who takes of a queue may be waiting for an answer; it is not
/// stuck for that.
pub fn is_idle(thread: &Thread) -> bool {
    match activity(thread) {
        Activity::Idle => true,
        Activity::Running | Activity::Blocked => false,
        _ => place(thread).is_some_and(|place| place.what == What::Next),
    }
}

fn of(thread: &Thread) -> Activity {
    let Some(top) = thread.stack.first() else { return Activity::Idle };
    if let Some(place) = native(&top.method) {
        return match place.said {
            said if said.contains("file or pipe") => Activity::File,
            said if ["socket", "connect", "datagram"].iter().any(|word| said.contains(word)) => Activity::Socket,
            _ => Activity::Outside,
        };
    }
    if sleeps(thread) {
        return Activity::Asleep;
    }
    match (thread.wait.map(|wait| wait.kind), thread.state) {
        (Some(WaitKind::Enter | WaitKind::Reenter | WaitKind::Initialisation), _) | (None, State::Blocked) => {
            Activity::Blocked
        }
        (Some(WaitKind::Notification), _) => Activity::Waiting,
        (Some(WaitKind::Park), _) => Activity::Parked,
        (None, State::Waiting | State::TimedWaiting) if top.method.starts_with("java.lang.Object.wait") => {
            Activity::Waiting
        }
        (None, State::Waiting | State::TimedWaiting) => Activity::Parked,
        (None, _) => Activity::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    /// What a thread does that has such a state and stack, the innermost first; lines of a dump.
    fn seen(doing: &str, state: &str, stack: &[&str]) -> Activity {
        activity(&thread(doing, state, stack))
    }

    fn thread(doing: &str, state: &str, stack: &[&str]) -> Thread {
        let lines = stack.iter().map(|line| format!("\t{line}\n")).collect::<String>();
        let text = format!(
            "\"a\" #20 prio=5 os_prio=0 cpu=1.00ms elapsed=9.00s tid=0x0000000000000001 nid=7 {doing}  [0x0000000000000009]\n   \
             java.lang.Thread.State: {state}\n{lines}\n"
        );
        read::read(&text).threads.remove(0)
    }

    #[test]
    fn each_kind_of_wait_has_its_name() {
        let work = "at a.b.C.work(C.java:3)";
        let of = |doing, state, top: &[&str]| seen(doing, state, &[top, &[work]].concat());
        for (doing, state, top, expected) in [
            ("runnable", "RUNNABLE", &["at a.b.C.compute(C.java:1)"][..], Activity::Running),
            (
                "waiting for monitor entry",
                "BLOCKED (on object monitor)",
                &["at a.b.C.enter(C.java:1)", "- waiting to lock <0x0000000000000100> (a a.b.Guard)"],
                Activity::Blocked,
            ),
            (
                "in Object.wait()",
                "WAITING (on object monitor)",
                &[
                    "at java.lang.Object.wait(java.base@17/Native Method)",
                    "- waiting on <0x0000000000000100> (a a.b.Q)",
                ],
                Activity::Waiting,
            ),
            (
                "waiting on condition",
                "WAITING (parking)",
                &[
                    "at jdk.internal.misc.Unsafe.park(java.base@17/Native Method)",
                    "- parking to wait for  <0x0000000000000100> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)",
                ],
                Activity::Parked,
            ),
            (
                "sleeping",
                "TIMED_WAITING (sleeping)",
                &["at java.lang.Thread.sleep(java.base@17/Native Method)"],
                Activity::Asleep,
            ),
            ("runnable", "RUNNABLE", &["at sun.nio.ch.Net.poll(java.base@17/Native Method)"], Activity::Socket),
            (
                "runnable",
                "RUNNABLE",
                &["at java.io.FileInputStream.readBytes(java.base@17/Native Method)"],
                Activity::File,
            ),
            (
                "runnable",
                "RUNNABLE",
                &["at java.lang.ProcessHandleImpl.waitForProcessExit0(java.base@17/Native Method)"],
                Activity::Outside,
            ),
            ("runnable", "RUNNABLE", &["at sun.nio.ch.EPoll.wait(java.base@17/Native Method)"], Activity::Idle),
            (
                "waiting on condition",
                "RUNNABLE",
                &["at java.lang.ref.Reference.waitForReferencePendingList(java.base@17/Native Method)"],
                Activity::Idle,
            ),
        ] {
            assert_eq!(of(doing, state, top), expected, "{top:?}");
        }
    }

    #[test]
    fn who_has_nothing_of_the_programs_on_its_stack_and_waits_has_no_work() {
        let parked = "at jdk.internal.misc.Unsafe.park(java.base@17/Native Method)";
        let queue = "at java.util.concurrent.LinkedBlockingQueue.take(java.base@17/LinkedBlockingQueue.java:435)";
        let run = "at java.lang.Thread.run(java.base@17/Thread.java:840)";
        let state = "WAITING (parking)";
        assert_eq!(seen("waiting on condition", state, &[parked, queue, run]), Activity::Idle);
        let own = "at a.b.C.next(C.java:9)";
        assert_eq!(seen("waiting on condition", state, &[parked, queue, own, run]), Activity::Parked);
        let task = "at java.util.concurrent.ThreadPoolExecutor.getTask(java.base@17/ThreadPoolExecutor.java:1062)";
        assert_eq!(seen("waiting on condition", state, &[parked, task, own]), Activity::Idle);
        // Who runs does so wherever it is.
        assert_eq!(seen("runnable", "RUNNABLE", &[run]), Activity::Running);
        let native = |method| seen("runnable", "RUNNABLE", &[&format!("at {method}(java.base@25/Native Method)"), run]);
        assert_eq!(native("java.lang.VirtualThread.takeVirtualThreadListToUnblock"), Activity::Idle);
        assert_eq!(native("sun.nio.fs.LinuxWatchService.poll"), Activity::Idle);
        assert_eq!(native("java.lang.ProcessHandleImpl.waitForProcessExit0"), Activity::Idle);
    }

    #[test]
    fn who_waits_for_what_comes_next_is_not_stuck() {
        let parked = "at jdk.internal.misc.Unsafe.park(java.base@17/Native Method)";
        let waits = "at java.lang.Object.wait(java.base@17/Native Method)";
        let own = "at a.b.C.next(C.java:9)";
        let timer = "at java.util.TimerThread.mainLoop(java.base@17/Timer.java:537)";
        let at = |top, method: &str| {
            thread("waiting on condition", "WAITING (parking)", &[top, &format!("at {method}(X.java:1)"), own])
        };
        for taking in
            ["LinkedBlockingQueue.take", "SynchronousQueue.poll", "LinkedBlockingDeque.takeFirst", "DelayQueue.take"]
        {
            let taker = at(parked, &format!("java.util.concurrent.{taking}"));
            // It may be an answer, and so a part of the work.
            assert_eq!((is_idle(&taker), activity(&taker)), (true, Activity::Parked), "{taking}");
        }
        for idle in
            [at(parked, "sun.nio.fs.AbstractWatchService.take"), thread("in Object.wait()", "WAITING", &[waits, timer])]
        {
            assert!(is_idle(&idle), "{idle:?}");
        }
        let in_task = thread("in Object.wait()", "WAITING (on object monitor)", &[waits, own, timer]);
        for stuck in [in_task, at(parked, "java.util.concurrent.ArrayBlockingQueue.put"), at(parked, "a.b.C.get")] {
            assert!(!is_idle(&stuck), "{stuck:?}");
        }
    }
}
