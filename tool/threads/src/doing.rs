//! What a thread does, in a few words, behind its name and "which".

use headwater_terms::waiting::{self, WaitSite};

use super::{Dump, Kind, State, Thread, WaitKind};

/// How far below the top of a stack it is looked whether a connection is waited for.
const NEAR: usize = 12;

/// What a thread does.
pub fn doing(dump: &Dump, thread: &Thread) -> String {
    doing_at(thread, thread.wait.and_then(|wait| wait.lock).map(|lock| dump.locks[lock].to_string()))
}

/// Why a thread waits, if it does and that is known from where it is.
pub(super) fn place(thread: &Thread) -> Option<WaitSite> {
    let methods = || thread.stack.iter().map(|frame| frame.method.as_str());
    let top = thread.stack.first()?;
    if let Some(native) = waiting::native(&top.method) {
        let is_accepting =
            top.method == "sun.nio.ch.Net.poll" && methods().take(NEAR).any(|it| it.ends_with(".accept"));
        return if is_accepting { waiting::native("sun.nio.ch.Net.accept") } else { Some(native) };
    }
    let is_elsewhere = matches!(
        thread.wait.map(|wait| wait.kind),
        Some(WaitKind::Enter | WaitKind::Reenter | WaitKind::Initialisation)
    );
    if is_elsewhere || sleeps(thread) { None } else { waiting::near(methods()) }
}

pub(super) fn sleeps(thread: &Thread) -> bool {
    thread.stack.first().is_some_and(|top| top.method.starts_with("java.lang.Thread.sleep"))
        || thread.doing == "sleeping"
}

/// What each of several threads does, that wait for different locks of a class.
pub fn doing_each(dump: &Dump, thread: &Thread) -> String {
    let lock = thread.wait.and_then(|wait| wait.lock).map(|lock| &dump.locks[lock]);
    doing_at(thread, lock.map(|lock| format!("{} each", lock.class)))
}

fn doing_at(thread: &Thread, lock: Option<String>) -> String {
    let place = place(thread).map(|place| place.said);
    if thread.stack.first().is_some_and(|top| waiting::native(&top.method).is_some()) {
        return place.unwrap_or_default().to_owned();
    }
    if sleeps(thread) {
        return "sleeps".to_owned();
    }
    match thread.wait.map(|wait| (wait.kind, lock)) {
        Some((WaitKind::Enter | WaitKind::Reenter, lock)) => {
            format!("wants the monitor {}", lock.as_deref().unwrap_or("of an object"))
        }
        Some((WaitKind::Initialisation, Some(lock))) => format!("waits for {lock}"),
        Some((WaitKind::Initialisation, None)) => "waits for the initialisation of a class".to_owned(),
        Some((kind, lock)) => match (place, kind, lock) {
            (Some(said), ..) => said.to_owned(),
            (None, WaitKind::Notification, Some(lock)) => format!("waits to be notified of {lock}"),
            (None, WaitKind::Notification, None) => "waits to be notified".to_owned(),
            (None, _, Some(lock)) => format!("waits for {lock}"),
            (None, _, None) => "is parked".to_owned(),
        },
        None => idle(thread, place),
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
