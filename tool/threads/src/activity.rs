//! What a thread does, in one word: to add up how long it does it.

use headwater_terms::native;
use headwater_terms::pattern::JDK_PACKAGES;

use super::doing::is_idle;
use super::{Dump, Frame, State, Thread, WaitKind};

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
pub fn activity(dump: &Dump, thread: &Thread) -> Activity {
    use Activity::{Asleep, Blocked, Idle, Parked, Running, Waiting};
    let is_jdks = |frame: &Frame| JDK_PACKAGES.iter().any(|package| frame.method.starts_with(package));
    match of(thread) {
        busy @ (Running | Blocked) => busy,
        Waiting | Parked | Asleep if thread.stack.iter().all(is_jdks) => Idle,
        _ if is_idle(dump, thread) => Idle,
        waits => waits,
    }
}

fn of(thread: &Thread) -> Activity {
    let Some(top) = thread.stack.first() else { return Activity::Idle };
    if let Some(said) = native::doing(&top.method) {
        return match said {
            said if said.contains("file or pipe") => Activity::File,
            said if ["socket", "connect", "datagram"].iter().any(|word| said.contains(word)) => Activity::Socket,
            _ => Activity::Outside,
        };
    }
    if top.method.starts_with("java.lang.Thread.sleep") || thread.doing == "sleeping" {
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
        let lines = stack.iter().map(|line| format!("\t{line}\n")).collect::<String>();
        let text = format!(
            "\"a\" #20 prio=5 os_prio=0 cpu=1.00ms elapsed=9.00s tid=0x0000000000000001 nid=7 {doing}  [0x0000000000000009]\n   \
             java.lang.Thread.State: {state}\n{lines}\n"
        );
        let dump = read::read(&text);
        activity(&dump, &dump.threads[0])
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
    }
}
