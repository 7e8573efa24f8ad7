//! What one run does: drawn from the seed and the run's number, and from nothing else.

use std::fmt;
use std::time::Duration;

use super::draw::Draw;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    Nothing,
    Killed,
    StoppedAndContinued(Duration),
    StoppedAndKilled(Duration),
    Interrupted,
    InterruptedTwice(Duration),
    Terminated,
    NoDescriptors,
    NoMemory,
    FileLimit,
    FullDisk,
    OutputClosed,
    TwoTools,
    /// Garbage for the control socket, which is held for so long.
    Garbled(Duration),
    /// A message between tool and agent is not as it was sent: so many messages from the begin.
    Message(Wrong, u64),
    Target(Ending),
    /// The target has no more of something, for some seconds.
    Scarce(Scarce),
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wrong {
    Garbled,
    Truncated,
    Repeated,
    Delayed(Duration),
    /// The greeting is another version's.
    OtherVersion,
}

/// What a target has no more of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scarce {
    Heap,
    Metaspace,
    Threads,
    Descriptors,
}

/// Where the target runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// Beside us.
    Here,
    /// In pid and mount namespaces of its own.
    Namespaces,
    /// Below another root.
    Root,
    /// As another user.
    User,
    /// Its `/tmp` has no room.
    Full,
    /// Nothing can be written to its `/tmp`.
    ReadOnly,
    /// Nothing can be executed from its `/tmp`.
    NoExec,
}

impl Place {
    /// Whether nobody else has its `/tmp`.
    pub(super) fn has_own_tmp(self) -> bool {
        matches!(self, Place::Root | Place::Full | Place::ReadOnly | Place::NoExec)
    }

    /// Whether the tool may say that nothing can be done there.
    pub(super) fn may_refuse(self) -> bool {
        matches!(self, Place::Full | Place::ReadOnly | Place::NoExec)
    }
}

/// How the target ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Ending {
    ExitInRoot,
    Halt,
    Exception,
    Terminated,
    Killed,
}

/// When it goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Moment {
    Attach,
    Revelation,
    Recording,
    After,
    Detach,
}

/// What the tool writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Text,
    Snapshot,
    Json,
}

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) fault: Fault,
    pub(super) moment: Moment,
    /// From the moment's begin to the fault.
    pub(super) delay: Duration,
    pub(super) output: Output,
    pub(super) place: Place,
    /// Of the target's JVM.
    pub(super) java: Vec<&'static str>,
    /// Of `headwater profile`.
    pub(super) tool: Vec<String>,
    /// Whether another profile has to succeed afterwards.
    pub(super) again: bool,
    pub(super) garbage: Vec<u8>,
    /// Whether the target has very many threads.
    pub(super) crowd: bool,
}

const MOMENTS: [Moment; 5] = [Moment::Attach, Moment::Revelation, Moment::Recording, Moment::After, Moment::Detach];
const ENDINGS: [Ending; 5] = [Ending::ExitInRoot, Ending::Halt, Ending::Exception, Ending::Terminated, Ending::Killed];
/// Not every JVM has all of them.
pub(super) const COLLECTORS: [&str; 5] =
    ["-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseG1GC", "-XX:+UseZGC", "-XX:+UseShenandoahGC"];
/// How many kinds of faults there are; [`fault`] knows them by number.
const FAULTS: u64 = 26;
const PLACES: [Place; 6] = [Place::Namespaces, Place::Root, Place::User, Place::Full, Place::ReadOnly, Place::NoExec];
/// What a profile does besides, of which half of them do one.
const WAYS: [&[&str]; 15] = [
    &["--count", "waits,exceptions,classes"],
    &["--count", "alloc,gc,bytecodes"],
    LOCKS,
    &["--clock", "cpu"],
    &["--clock", "tick"],
    &["--follow", "threads"],
    &["--jdk", "edge"],
    WHOLE_JDK,
    &["--natives"],
    &["--stats"],
    &["--budget", "5%"],
    &["--reveal", "background"],
    &["--buffer", "1", "--on-overflow", "drop"],
    &["--scheme", "a"],
    &["--control", "2"],
];
/// Without limits it would hold calls up for as long as it takes.
const WHOLE_JDK: &[&str] = &["--jdk", "all"];
/// Has the flight recorder at work.
const LOCKS: &[&str] = &["--count", "locks"];
/// What stands for the AOT cache that this JDK can make of the target, and for a policy by which all may do all.
pub(super) const AOT_CACHE: &str = "-XX:AOTCache=";
pub(super) const POLICY: &str = "-Djava.security.policy==";

impl Plan {
    /// Whether threads of a target that had no heap or metaspace say that they have ended.
    pub(super) fn is_starved(&self, said: &str) -> bool {
        let is_of_thread = |line: &str| line.contains("in thread \"") && !line.contains("headwater");
        let has_ended = said.contains("java.lang.OutOfMemoryError") && said.lines().any(is_of_thread);
        matches!(self.fault, Fault::Scarce(Scarce::Heap | Scarce::Metaspace)) && has_ended
    }

    /// The plan of a run.
    pub(super) fn draw(seed: u64, run: u64) -> Plan {
        let mut draw = Draw::new(seed, run);
        // All kinds come equally often, each of them at all moments: only the order depends on the seed.
        let fault = fault((seed + run) % FAULTS, &mut draw);
        let moment = match fault {
            // A JVM that cannot start another thread dies when it is attached to: it is looked for before.
            Fault::Garbled(_) | Fault::Message(..) | Fault::Scarce(Scarce::Threads) => Moment::Attach,
            _ => draw.one_of(&MOMENTS),
        };
        let delay = match moment {
            Moment::Attach => draw.between(0, 700),
            Moment::Revelation => draw.between(0, 500),
            Moment::Recording => draw.between(500, 1500),
            Moment::After => draw.between(0, 1500),
            Moment::Detach => draw.between(0, 150),
        };
        let place = match fault {
            // The number of threads is limited for a user.
            Fault::Scarce(Scarce::Threads) => Place::User,
            // What is done to the socket is done here.
            Fault::Garbled(_) => Place::Here,
            _ if draw.once_in(3) => draw.one_of(&PLACES),
            _ => Place::Here,
        };
        let mut tool = vec!["-d".to_owned(), format!("{}ms", draw.between(2000, 3000).as_millis())];
        // Nothing is timed after what an interruption ends at once.
        let bare = match (place, moment) {
            // The flight recorder needs room.
            (Place::Full | Place::ReadOnly, _) => "off",
            (_, Moment::After) => "auto",
            _ => draw.one_of(&["off", "auto"]),
        };
        tool.extend(["--bare", bare, "--gentle", draw.one_of(&["on", "on", "off"])].map(str::to_owned));
        if draw.once_in(3) {
            tool.extend(["--root", "Web::handle"].map(str::to_owned));
        }
        let mut java = java(&mut draw);
        match fault {
            Fault::Scarce(Scarce::Metaspace) => java.push("-XX:MaxMetaspaceSize=48m"),
            // It is to be short of it by what is taken, not by what is compiled with ten thousand frames.
            Fault::Scarce(Scarce::Heap) => java.retain(|option| *option != "-Xcomp"),
            _ => {}
        }
        let output = draw.one_of(&[Output::Text, Output::Snapshot, Output::Snapshot, Output::Json]);
        let (again, garbage) = (draw.once_in(4), draw.bytes(4096));
        if draw.once_in(2) {
            let way = draw.one_of(&WAYS);
            let has_room = !matches!(place, Place::Full | Place::ReadOnly);
            tool.extend(way.iter().filter(|_| has_room || way != LOCKS).map(|word| (*word).to_owned()));
            if way == WHOLE_JDK {
                tool.iter_mut()
                    .skip_while(|word| *word != "--gentle")
                    .skip(1)
                    .take(1)
                    .for_each(|how| *how = "on".into());
            }
        }
        Plan {
            fault,
            moment,
            delay,
            output: if fault == Fault::FullDisk { Output::Snapshot } else { output },
            place,
            java,
            tool,
            again,
            garbage,
            crowd: draw.once_in(6),
        }
    }

    /// Whether the tool may have the flight recorder sample the target.
    pub(super) fn is_sampled(&self) -> bool {
        self.tool.iter().any(|word| word == "auto" || word == LOCKS[1])
    }

    /// Whether the target is to live on.
    pub(super) fn spares_the_target(&self) -> bool {
        !matches!(self.fault, Fault::Target(_))
    }
}

fn fault(kind: u64, draw: &mut Draw) -> Fault {
    match kind {
        0 => Fault::Nothing,
        1 | 2 => Fault::Killed,
        3 => Fault::StoppedAndContinued(draw.between(1000, 4000)),
        4 => Fault::StoppedAndContinued(draw.between(5000, 60_000)),
        5 => Fault::StoppedAndKilled(draw.between(1000, 60_000)),
        6 => Fault::Interrupted,
        7 => Fault::InterruptedTwice(draw.between(0, 500)),
        8 => Fault::Terminated,
        9 => Fault::NoDescriptors,
        10 => Fault::NoMemory,
        11 => Fault::FileLimit,
        12 => Fault::FullDisk,
        13 => Fault::OutputClosed,
        14 => Fault::TwoTools,
        15 => Fault::Garbled(draw.between(0, 3000)),
        16..=17 => Fault::Target(draw.one_of(&ENDINGS)),
        18 => Fault::Scarce(Scarce::Heap),
        19 => Fault::Scarce(Scarce::Metaspace),
        20 => Fault::Scarce(Scarce::Threads),
        21 => Fault::Scarce(Scarce::Descriptors),
        _ => {
            let delay = Wrong::Delayed(draw.between(100, 8000));
            let wrong = [Wrong::Garbled, Wrong::Truncated, draw.one_of(&[delay, Wrong::OtherVersion]), Wrong::Repeated];
            Fault::Message(wrong[usize::try_from(kind).unwrap_or(0) % wrong.len()], 1 + draw.below(60))
        }
    }
}

/// Options of the target's JVM.
fn java(draw: &mut Draw) -> Vec<&'static str> {
    let mut options = vec![draw.one_of(&COLLECTORS)];
    match draw.below(20) {
        0..=2 => options.push("-Xint"),
        3..=5 => options.push("-XX:TieredStopAtLevel=1"),
        6 => options.push("-Xcomp"),
        7..=8 => options.push("-XX:-TieredCompilation"),
        _ => {}
    }
    let others =
        ["-Xss300k", "-XX:-UseCompressedOops", "-Xshare:off", "-XX:ReservedCodeCacheSize=8m", AOT_CACHE, POLICY];
    for option in others {
        if draw.once_in(5) {
            options.push(option);
        }
    }
    options
}

impl Fault {
    /// As it is called in the table.
    pub(super) fn name(self) -> String {
        let name = match self {
            Fault::Nothing => "nothing",
            Fault::Killed => "tool: SIGKILL",
            Fault::StoppedAndContinued(_) => "tool: stopped, continued",
            Fault::StoppedAndKilled(_) => "tool: stopped, killed",
            Fault::Interrupted => "tool: SIGINT",
            Fault::InterruptedTwice(_) => "tool: SIGINT twice",
            Fault::Terminated => "tool: SIGTERM",
            Fault::NoDescriptors => "tool: no descriptors",
            Fault::NoMemory => "tool: no memory",
            Fault::FileLimit => "tool: file size limit",
            Fault::FullDisk => "tool: full disk",
            Fault::OutputClosed => "tool: output closed",
            Fault::TwoTools => "two tools",
            Fault::Garbled(_) => "garbage to the control socket",
            Fault::Message(Wrong::Garbled, _) => "message: garbled",
            Fault::Message(Wrong::Truncated, _) => "message: truncated",
            Fault::Message(Wrong::Repeated, _) => "message: repeated",
            Fault::Message(Wrong::Delayed(_), _) => "message: delayed",
            Fault::Message(Wrong::OtherVersion, _) => "message: of another version",
            Fault::Target(Ending::ExitInRoot) => "target: System.exit in the root",
            Fault::Target(Ending::Halt) => "target: halt",
            Fault::Target(Ending::Exception) => "target: exception",
            Fault::Target(Ending::Terminated) => "target: SIGTERM",
            Fault::Target(Ending::Killed) => "target: SIGKILL",
            Fault::Scarce(Scarce::Heap) => "target: out of heap",
            Fault::Scarce(Scarce::Metaspace) => "target: out of metaspace",
            Fault::Scarce(Scarce::Threads) => "target: no more threads",
            Fault::Scarce(Scarce::Descriptors) => "target: no more descriptors",
        };
        name.to_owned()
    }

    /// Whether the tool may end without a chance to clear up.
    pub(super) fn is_fatal(self) -> bool {
        matches!(self, Fault::Killed | Fault::StoppedAndKilled(_) | Fault::NoMemory)
    }

    /// Exit codes that the user guide promises for it; 128 and more are signals.
    pub(super) fn exit_codes(self) -> &'static [i32] {
        /// As a shell has them.
        const KILLED: i32 = 137;
        const ABORTED: i32 = 134;
        /// A stack that may not grow.
        const SEGMENT: i32 = 139;
        match self {
            Fault::Nothing | Fault::Garbled(_) => &[0],
            Fault::Killed | Fault::StoppedAndKilled(_) => &[0, KILLED],
            Fault::Interrupted | Fault::InterruptedTwice(_) | Fault::Terminated => &[0, 130],
            // Without memory it may not even be possible to say so.
            Fault::NoMemory => &[0, 1, 3, ABORTED, SEGMENT],
            Fault::StoppedAndContinued(_)
            | Fault::NoDescriptors
            | Fault::FileLimit
            | Fault::FullDisk
            | Fault::OutputClosed
            | Fault::TwoTools
            | Fault::Message(..)
            | Fault::Scarce(_) => &[0, 1, 3],
            Fault::Target(_) => &[0, 3, 5],
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{:?} at {:?} + {:?}; {:?}{}; {:?}; tool {}; java {}",
            self.fault,
            self.moment,
            self.delay,
            self.place,
            if self.crowd { ", a crowd" } else { "" },
            self.output,
            self.tool.join(" "),
            self.java.join(" ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_starved_where_its_own_threads_have_ended_for_want_of_memory() {
        const ENDED: &str = "Exception: java.lang.OutOfMemoryError thrown from the UncaughtExceptionHandler in thread \"HTTP-Dispatcher\"";
        let plan = |is_meant: fn(&Fault) -> bool| {
            (0..1_000).map(|run| Plan::draw(1, run)).find(|plan| is_meant(&plan.fault)).expect("it is drawn sometimes")
        };
        let scarce = plan(|fault| *fault == Fault::Scarce(Scarce::Heap));
        assert!(scarce.is_starved(ENDED));
        assert!(!scarce.is_starved("java.lang.OutOfMemoryError: Java heap space"), "a call may fail");
        assert!(
            !scarce.is_starved(&ENDED.replace("HTTP-Dispatcher", "headwater")),
            "ours is no thread of the target's"
        );
        assert!(!plan(|fault| *fault == Fault::Killed).is_starved(ENDED));
    }
}
