//! What a thread does, in a few words, behind its name and "which".

use headwater_terms::native;

use super::{Dump, Frame, Kind, State, Thread, WaitKind};

/// Methods near the top of a stack that say why a thread waits.
const WAITS: &[(&str, &str)] = &[
    ("java.util.concurrent.ThreadPoolExecutor.getTask", "waits for work"),
    ("java.util.concurrent.ForkJoinPool.awaitWork", "waits for work"),
    ("org.apache.tomcat.util.threads.ThreadPoolExecutor.getTask", "waits for work"),
    ("org.eclipse.jetty.util.thread.QueuedThreadPool.idleJobPoll", "waits for work"),
    ("org.eclipse.jetty.util.thread.ReservedThreadExecutor$ReservedThread.reservedWait", "waits for work"),
    ("java.util.concurrent.FutureTask.awaitDone", "waits for a result"),
    ("java.util.concurrent.CompletableFuture.waitingGet", "waits for a result"),
    ("java.util.concurrent.CompletableFuture.timedGet", "waits for a result"),
    ("java.util.concurrent.CountDownLatch.await", "waits for a latch"),
    ("java.util.concurrent.Semaphore.acquire", "waits for a semaphore"),
    ("java.util.concurrent.CyclicBarrier.dowait", "waits for a barrier"),
    ("java.util.concurrent.Phaser.awaitAdvance", "waits for a phaser"),
    ("java.lang.Thread.join", "waits for a thread to end"),
    ("java.lang.VirtualThread.joinNanos", "waits for a thread to end"),
    ("java.lang.ref.ReferenceQueue.remove", "waits for references"),
];

/// How far below the top of a stack the reason of a wait is looked for.
const NEAR: usize = 12;

/// What a thread does.
pub fn doing(dump: &Dump, thread: &Thread) -> String {
    doing_at(thread, thread.wait.and_then(|wait| wait.lock).map(|lock| dump.locks[lock].to_string()))
}

/// Whether a thread waits until there is something for it to do, or is the JVM's own.
pub fn is_idle(dump: &Dump, thread: &Thread) -> bool {
    const WAITS_FOR_WORK: [&str; 4] =
        ["waits for work", "waits for references", "waits for a connection", "waits for sockets to be ready"];
    thread.stack.is_empty() || WAITS_FOR_WORK.contains(&doing(dump, thread).as_str())
}

/// What each of several threads does, that wait for different locks of a class.
pub fn doing_each(dump: &Dump, thread: &Thread) -> String {
    let lock = thread.wait.and_then(|wait| wait.lock).map(|lock| &dump.locks[lock]);
    doing_at(thread, lock.map(|lock| format!("{} each", lock.class)))
}

fn doing_at(thread: &Thread, lock: Option<String>) -> String {
    let top = thread.stack.first();
    let near = |table: &[(&str, &'static str)]| {
        let frames = thread.stack.iter().take(NEAR);
        let said = |frame: &Frame| table.iter().find(|(method, _)| frame.method == *method).map(|(_, said)| *said);
        frames.filter_map(said).next()
    };
    let is_accepting = || thread.stack.iter().take(NEAR).any(|frame| frame.method.ends_with(".accept"));
    if let Some((top, said)) = top.and_then(|top| Some((top, native::doing(&top.method)?))) {
        let connection = top.method == "sun.nio.ch.Net.poll" && is_accepting();
        return if connection { "waits for a connection".to_owned() } else { said.to_owned() };
    }
    if top.is_some_and(|top| top.method.starts_with("java.lang.Thread.sleep")) || thread.doing == "sleeping" {
        return "sleeps".to_owned();
    }
    match thread.wait.map(|wait| (wait.kind, lock)) {
        Some((WaitKind::Enter | WaitKind::Reenter, lock)) => {
            format!("wants the monitor {}", lock.as_deref().unwrap_or("of an object"))
        }
        Some((WaitKind::Initialisation, Some(lock))) => format!("waits for {lock}"),
        Some((WaitKind::Initialisation, None)) => "waits for the initialisation of a class".to_owned(),
        Some((kind, lock)) => match (near(WAITS), kind, lock) {
            (Some(said), ..) => said.to_owned(),
            (None, WaitKind::Notification, Some(lock)) => format!("waits to be notified of {lock}"),
            (None, WaitKind::Notification, None) => "waits to be notified".to_owned(),
            (None, _, Some(lock)) => format!("waits for {lock}"),
            (None, _, None) => "is parked".to_owned(),
        },
        None => idle(thread, near(WAITS)),
    }
}

fn idle(thread: &Thread, said: Option<&'static str>) -> String {
    let top = thread.stack.first();
    if let (Some(carried), Kind::Java) = (thread.mount, thread.kind) {
        return format!("carries virtual thread #{carried}");
    }
    match (thread.kind, thread.state, said, top) {
        (Kind::Vm, ..) => "is the JVM's own".to_owned(),
        (Kind::Native, ..) => "is not the JVM's".to_owned(),
        (_, _, Some(said), _) => said.to_owned(),
        (_, State::New, ..) => "has not begun".to_owned(),
        (_, State::Terminated, ..) => "has ended".to_owned(),
        (_, State::Waiting | State::TimedWaiting, ..) => "is parked".to_owned(),
        (_, State::Blocked, ..) => "wants a monitor".to_owned(),
        (Kind::Virtual, ..) if thread.is_parked() || thread.is_pinned() => "is parked".to_owned(),
        (_, _, _, Some(top)) if top.source == "Native Method" => format!("is in the native method {}", top.method),
        (_, _, _, Some(top)) => format!("runs {}", top.method),
        (_, _, _, None) => "is the JVM's own".to_owned(),
    }
}
