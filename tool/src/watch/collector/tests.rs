use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};

use tokio::sync::mpsc;

use headwater_tests::PATIENCE;

use super::*;
use crate::threads::{Kind, Thread};

/// A JVM that answers as it is told to: `None` is an answer that never comes, before it is given up.
struct PlayedJvm {
    answers: Mutex<VecDeque<Option<Result<Dump, Unasked>>>>,
    given_up: (Mutex<std::sync::mpsc::Sender<()>>, Mutex<Receiver<()>>),
}

impl PlayedJvm {
    fn answering(answers: impl IntoIterator<Item = Option<Result<Dump, Unasked>>>) -> Arc<PlayedJvm> {
        let (sender, receiver) = channel();
        let answers = Mutex::new(answers.into_iter().collect());
        Arc::new(PlayedJvm { answers, given_up: (Mutex::new(sender), Mutex::new(receiver)) })
    }
}

impl JvmHandle for PlayedJvm {
    fn dump(&self) -> Result<Dump, Unasked> {
        let answer = self.answers.lock().expect("nobody panics").pop_front();
        match answer {
            Some(Some(answer)) => answer,
            Some(None) => {
                let _ = self.given_up.1.lock().expect("nobody panics").recv();
                Err(Unasked::Failed("it was given up".to_owned()))
            }
            None => Err(Unasked::Gone),
        }
    }

    fn set_given_up(&self, is_given_up: bool) {
        if is_given_up {
            let _ = self.given_up.0.lock().expect("nobody panics").send(());
        }
    }
}

/// The JVMs that have a number, one after the other, or why they are none.
type OfNumber = Mutex<VecDeque<Result<Arc<PlayedJvm>, Unasked>>>;

/// A machine on which these JVMs are seen, one look after the other; the last look is what is seen from then on.
#[derive(Default)]
struct PlayedMachine {
    looks: Mutex<VecDeque<Vec<u32>>>,
    jvms: BTreeMap<u32, OfNumber>,
}

impl PlayedMachine {
    fn has(mut self, pid: u32, jvms: impl IntoIterator<Item = Result<Arc<PlayedJvm>, Unasked>>) -> PlayedMachine {
        self.jvms.insert(pid, Mutex::new(jvms.into_iter().collect()));
        self
    }
}

impl Source for PlayedMachine {
    fn jvms(&self) -> Vec<Jvm> {
        let mut looks = self.looks.lock().expect("nobody panics");
        let pids = if looks.len() > 1 { looks.pop_front() } else { looks.front().cloned() };
        pids.unwrap_or_default().into_iter().map(jvm).collect()
    }

    fn hold(&self, jvm: &Jvm) -> Result<Arc<dyn JvmHandle>, Unasked> {
        let held = self.jvms.get(&jvm.pid).and_then(|jvms| jvms.lock().expect("nobody panics").pop_front());
        held.unwrap_or(Err(Unasked::Gone)).map(|jvm| jvm as Arc<dyn JvmHandle>)
    }
}

fn jvm(pid: u32) -> Jvm {
    let (main, arguments) = (format!("com.acme.Shop{pid}"), String::new());
    Jvm { pid, main, arguments, java_version: None, uid: 0, vm_pid: pid }
}

fn dump() -> Option<Result<Dump, Unasked>> {
    Some(Ok(Dump { threads: vec![Thread::named("main", Kind::Java)], is_whole: true, ..Dump::default() }))
}

/// What is heard, up to what is waited for, in a few words each. Who is to answer does so in time, however busy the machine is.
async fn heard(
    (machine, deadline): (PlayedMachine, Duration),
    wanted: JvmSelector,
    is_last: impl Fn(&[String]) -> bool,
) -> Vec<String> {
    let (news, mut received) = mpsc::channel(16);
    let ms = Duration::from_millis;
    let pace = Pace { every: ms(1), deadline, look: ms(1) };
    let collector = Collector { source: Arc::new(machine), wanted, pace, host: "here".to_owned(), news };
    let collecting = tokio::spawn(collector.run());
    let mut heard = Vec::new();
    while !is_last(&heard) {
        heard.push(match received.recv().await.expect("something is heard") {
            News::TraceEvent(TraceEvent::Connected(event)) => format!("connected {}", event.main),
            News::TraceEvent(TraceEvent::Trace(event)) => format!("trace {} of {}", event.number, event.pid),
            News::TraceEvent(TraceEvent::Disconnected(event)) => {
                format!("disconnected {} {:?}", event.pid, event.reason)
            }
            News::TraceEvent(other) => format!("{other:?}"),
            News::Skipped { process, why, .. } => format!("skipped {}: {why}", process.pid),
            News::Remark(remark) => remark,
            News::Over => "over".to_owned(),
        });
    }
    drop(received);
    collecting.await.expect("it ends when nobody listens");
    heard
}

/// Of one JVM, without remarks: on a busy machine each of them may be late.
fn of<'a>(heard: &'a [String], pid: &str) -> Vec<&'a str> {
    heard.iter().map(String::as_str).filter(|it| it.contains(pid) && !it.starts_with("the JVM")).collect()
}

#[tokio::test]
async fn jvms_that_were_named_are_watched_until_all_have_ended() {
    let machine = PlayedMachine::default()
        .has(11, [Ok(PlayedJvm::answering([dump(), dump()]))])
        .has(12, [Ok(PlayedJvm::answering([dump()]))]);
    let wanted = JvmSelector { jvms: vec![jvm(11), jvm(12)], ..JvmSelector::default() };
    let heard = heard((machine, PATIENCE), wanted, |heard| heard.last().is_some_and(|last| last == "over")).await;
    assert_eq!(
        of(&heard, "11"),
        ["connected com.acme.Shop11", "trace 1 of 11", "trace 2 of 11", "disconnected 11 Ended"]
    );
    assert_eq!(of(&heard, "12"), ["connected com.acme.Shop12", "trace 1 of 12", "disconnected 12 Ended"]);
}

#[tokio::test]
async fn one_that_never_answers_holds_up_no_other_and_is_asked_again() {
    let silent = PlayedJvm::answering([None, dump()]);
    let machine =
        PlayedMachine::default().has(21, [Ok(silent)]).has(22, [Ok(PlayedJvm::answering((0..3).map(|_| dump())))]);
    let wanted = JvmSelector { jvms: vec![jvm(21), jvm(22)], ..JvmSelector::default() };
    let heard =
        heard((machine, Duration::from_millis(500)), wanted, |heard| heard.last().is_some_and(|last| last == "over"))
            .await;
    assert_eq!(of(&heard, "22").len(), 5, "{heard:#?}");
    assert_eq!(of(&heard, "21"), ["connected com.acme.Shop21", "trace 1 of 21", "disconnected 21 Ended"]);
    for remark in [
        "the JVM 21 (com.acme.Shop21) has not answered for 0.5 s; the others go on without it",
        "the JVM 21 (com.acme.Shop21) does not answer, and is asked again: it was given up",
    ] {
        assert!(heard.iter().any(|it| it == remark), "{heard:#?}");
    }
}

#[tokio::test]
async fn jvms_come_and_go_and_one_that_refuses_is_named_once() {
    let machine = PlayedMachine {
        looks: Mutex::new(VecDeque::from([vec![31, 32], vec![31, 32], vec![31, 32, 33]])),
        ..PlayedMachine::default()
    };
    let refused = || Err(Unasked::Refused("it is another user's".to_owned()));
    let machine = machine
        .has(31, [refused(), refused(), refused()])
        // It ends, and another one has its number.
        .has(32, [Ok(PlayedJvm::answering([dump()])), Ok(PlayedJvm::answering([dump(), dump()]))])
        .has(33, [Ok(PlayedJvm::answering([dump()]))]);
    let wanted = JvmSelector { names: vec!["SHOP3".to_owned()], ..JvmSelector::default() };
    let is_last = |heard: &[String]| heard.iter().filter(|it| it.starts_with("disconnected")).count() == 3;
    let heard = heard((machine, PATIENCE), wanted, is_last).await;
    assert_eq!(of(&heard, "31"), ["skipped 31: it is another user's"]);
    assert_eq!(of(&heard, "32").len(), 7, "{heard:#?}");
    assert_eq!(of(&heard, "33"), ["connected com.acme.Shop33", "trace 1 of 33", "disconnected 33 Ended"]);
}

#[test]
fn all_are_asked_at_multiples_of_the_interval_and_the_slow_less_often() {
    let ms = Duration::from_millis;
    for (asked, took, failures, expected) in [
        (0, 10, 0, 1_000),
        (1_002, 10, 0, 2_000),
        (1_000, 499, 0, 2_000),
        // It took more than half of the interval.
        (1_000, 700, 0, 3_000),
        (1_000, 4_500, 0, 10_000),
        (1_000, 10, 1, 3_000),
        (1_000, 10, 3, 9_000),
        (1_000, 10, 40, 33_000),
    ] {
        assert_eq!(due(ms(1_000), ms(asked), ms(took), failures), ms(expected), "{asked} {took} {failures}");
    }
}
