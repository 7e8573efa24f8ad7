//! What is counted beside calls.

use serde::{Deserialize, Serialize};

use super::PAYLOAD_BITS;

/// Id of the `PAUSE` word with which a [`ProbedWait`] begins, less its number; the payload is the time in ns since the chunk's base.
pub const WAIT_BEGINS: u32 = 64;
/// The same when it ends.
pub const WAIT_ENDS: u32 = 80;

/// What a thread waits in, as far as probes tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbedWait {
    /// It is parked.
    Parked,
    /// It sleeps.
    Asleep,
    /// It reads from a socket, writes to it, accepts, connects, or waits for that to be possible.
    Socket,
    /// It reads or writes a file, or a pipe.
    File,
    /// It is in a class loader's code: no wait, but told of in the same way, and apart from those.
    Loading,
}

impl ProbedWait {
    /// All of them, at the index of their number.
    pub const ALL: [ProbedWait; 5] =
        [ProbedWait::Parked, ProbedWait::Asleep, ProbedWait::Socket, ProbedWait::File, ProbedWait::Loading];

    /// What its probes are called with.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// What counts how long.
    pub const fn time(self) -> Counter {
        match self {
            ProbedWait::Parked => Counter::ParkedNs,
            ProbedWait::Asleep => Counter::SleptNs,
            ProbedWait::Socket => Counter::SocketNs,
            ProbedWait::File => Counter::FileNs,
            ProbedWait::Loading => Counter::LoadingNs,
        }
    }

    /// What counts how often, if that is counted.
    pub const fn times(self) -> Option<Counter> {
        match self {
            ProbedWait::Parked => Some(Counter::Parked),
            ProbedWait::Asleep => Some(Counter::Slept),
            ProbedWait::Socket => Some(Counter::Socket),
            ProbedWait::File => Some(Counter::File),
            ProbedWait::Loading => None,
        }
    }

    /// The wait that a `PAUSE` word's id tells of, and whether it begins.
    pub(super) fn of(id: u32) -> Option<(ProbedWait, bool)> {
        let of = |first| id.checked_sub(first).and_then(|number| ProbedWait::ALL.get(number as usize).copied());
        of(WAIT_BEGINS).map(|wait| (wait, true)).or_else(|| of(WAIT_ENDS).map(|wait| (wait, false)))
    }
}

/// What is counted beside calls, at the method on top (id of a `PAUSE` word; nothing of it is taken off a clock).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Counter {
    /// A class that the thread has linked. The word names it, as [`Counter::names`] says.
    Classes,
    /// How long it waited to enter monitors, in ns.
    BlockedNs,
    /// How often.
    Blocked,
    /// How long it waited in `Object.wait`, in ns.
    WaitedNs,
    /// How often.
    Waited,
    /// Instructions that the method's call has executed. Its exit follows, perhaps with a `PAUSE` between, and tells whose they are.
    Bytecodes,
    /// How long collections had the JVM stopped meanwhile, in ns. In no word: the tool finds it out by the collections' times.
    CollectedNs,
    /// How often. Likewise.
    Collected,
    /// Bytes that the thread has allocated.
    Allocated,
    /// How long the thread was parked, in ns. This and what follows is in no word: the tool finds it out by those of [`ProbedWait`].
    ParkedNs,
    /// How often.
    Parked,
    /// How long it slept, in ns.
    SleptNs,
    /// How often.
    Slept,
    /// How long it was in the JDK's methods for sockets, in ns.
    SocketNs,
    /// How often.
    Socket,
    /// How long it was in the JDK's methods that read and write files, in ns.
    FileNs,
    /// How often.
    File,
    /// An exception that was made, or thrown though it was made elsewhere. The word names its class.
    Exceptions,
    /// A class that the thread has loaded. The word names it.
    Loaded,
    /// How long it was in class loaders' code, in ns. In no word, as those of waits.
    LoadingNs,
    /// An object or array that was made. The word has the number of its site and its size, as [`Counter::made`] says.
    Objects,
    /// Bytes of such. In a word of its own, only what the object's has no room for.
    ObjectBytes,
    /// Instructions that the processor has executed in user mode. This and what follows is by the kernel's counters.
    Instructions,
    /// Its cycles in user mode.
    Cycles,
    /// Page faults in user mode.
    PageFaults,
    /// Context switches.
    ContextSwitches,
    /// What of [`Counter::CollectedNs`] is in none of [`Counter::WAITS`], as far as [`ProbedWait`] tells of them. In no word.
    StoppedNs,
}

/// Bits of the site's number in a word of [`Counter::Objects`] or [`Counter::ObjectBytes`]. Above it is the size.
pub const SITE_BITS: u32 = 20;
/// Sizes are in units of so many bytes: JVMs align objects to that, or to more.
pub const SIZE_UNIT: u64 = 8;
/// Bits of a size. In a word of [`Counter::ObjectBytes`] there are those above.
pub const SIZE_BITS: u32 = PAYLOAD_BITS - SITE_BITS;

impl Counter {
    /// All of them.
    pub const ALL: [Counter; 27] = [
        Counter::Classes,
        Counter::BlockedNs,
        Counter::Blocked,
        Counter::WaitedNs,
        Counter::Waited,
        Counter::Bytecodes,
        Counter::CollectedNs,
        Counter::Collected,
        Counter::Allocated,
        Counter::ParkedNs,
        Counter::Parked,
        Counter::SleptNs,
        Counter::Slept,
        Counter::SocketNs,
        Counter::Socket,
        Counter::FileNs,
        Counter::File,
        Counter::Exceptions,
        Counter::Loaded,
        Counter::LoadingNs,
        Counter::Objects,
        Counter::ObjectBytes,
        Counter::Instructions,
        Counter::Cycles,
        Counter::PageFaults,
        Counter::ContextSwitches,
        Counter::StoppedNs,
    ];

    /// Those that the kernel counts, as its bit in [`Counting::by_kernel`] has it.
    pub const BY_KERNEL: [Counter; 4] =
        [Counter::Instructions, Counter::Cycles, Counter::PageFaults, Counter::ContextSwitches];

    /// Those of times that are parts of methods' own: in no two of them at once.
    pub const WAITS: [Counter; 6] = [
        Counter::BlockedNs,
        Counter::WaitedNs,
        Counter::ParkedNs,
        Counter::SleptNs,
        Counter::SocketNs,
        Counter::FileNs,
    ];

    /// The number that stands in the word: none that a pause or a handover has.
    pub const fn number(self) -> u32 {
        match self {
            Counter::Classes => 32,
            Counter::BlockedNs => 33,
            Counter::Blocked => 34,
            Counter::WaitedNs => 35,
            Counter::Waited => 36,
            Counter::Bytecodes => 48,
            Counter::CollectedNs => 37,
            Counter::Collected => 38,
            Counter::Allocated => 39,
            Counter::ParkedNs => 40,
            Counter::Parked => 41,
            Counter::SleptNs => 42,
            Counter::Slept => 43,
            Counter::SocketNs => 44,
            Counter::Socket => 45,
            Counter::FileNs => 46,
            Counter::File => 47,
            Counter::Exceptions => 49,
            Counter::Loaded => 50,
            Counter::LoadingNs => 51,
            Counter::Objects => 52,
            Counter::ObjectBytes => 53,
            Counter::Instructions => 54,
            Counter::Cycles => 55,
            Counter::PageFaults => 56,
            Counter::ContextSwitches => 57,
            Counter::StoppedNs => 58,
        }
    }

    const FIRST: u32 = 32;
    const BY_NUMBER: [Option<Counter>; Counter::ALL.len()] = {
        let mut by_number = [None; Counter::ALL.len()];
        let mut at = 0;
        while at < Counter::ALL.len() {
            let counter = Counter::ALL[at];
            by_number[(counter.number() - Counter::FIRST) as usize] = Some(counter);
            at += 1;
        }
        by_number
    };

    /// Whether a word tells of one class, and of which: its payload is the class's number, 0 for one that is not known.
    #[inline]
    pub const fn names_classes(self) -> bool {
        matches!(self, Counter::Classes | Counter::Loaded | Counter::Exceptions)
    }

    /// What a word tells of that is about an object that was made, by its payload.
    #[inline]
    pub const fn made(self, payload: u64) -> Option<Made> {
        let site = payload & ((1 << SITE_BITS) - 1);
        let size = payload >> SITE_BITS;
        match self {
            Counter::Objects => Some(Made { site, objects: 1, bytes: SIZE_UNIT * size }),
            Counter::ObjectBytes => Some(Made { site, objects: 0, bytes: SIZE_UNIT * (size << SIZE_BITS) }),
            _ => None,
        }
    }

    /// The counter of a number.
    #[inline]
    pub fn of(number: u32) -> Option<Counter> {
        Counter::BY_NUMBER.get(number.wrapping_sub(Counter::FIRST) as usize).copied().flatten()
    }
}

/// Of an object that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// Where: the number of the place in the code.
    pub site: u64,
    /// How many; none, if the word only has more of its size.
    pub objects: u64,
    /// Its size; 0 if that is not known.
    pub bytes: u64,
}

/// What is counted beside calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counting {
    /// Classes that are loaded and linked, and what class loaders take for that.
    pub classes: bool,
    /// Exceptions.
    pub exceptions: bool,
    /// Waiting to enter monitors.
    pub locks: bool,
    /// Waiting in `Object.wait`, and to enter monitors.
    pub waits: bool,
    /// Waiting in what probes tell of ([`ProbedWait`]).
    pub probed_waits: bool,
    /// Executed instructions.
    pub bytecodes: bool,
    /// Garbage collections.
    pub gc: bool,
    /// Bytes that are allocated.
    pub alloc: bool,
    /// Objects that are made, by the places that make them.
    pub objects: bool,
    /// Instructions, by the kernel's counters.
    pub instructions: bool,
    /// Cycles, likewise.
    pub cycles: bool,
    /// Page faults, likewise.
    pub page_faults: bool,
    /// Context switches, likewise.
    pub context_switches: bool,
}

impl Counting {
    /// Whether a counter belongs to it.
    pub fn has(self, counter: Counter) -> bool {
        match counter {
            Counter::Classes | Counter::Loaded | Counter::LoadingNs => self.classes,
            Counter::Exceptions => self.exceptions,
            Counter::BlockedNs | Counter::Blocked => self.locks || self.waits,
            Counter::WaitedNs | Counter::Waited => self.waits,
            Counter::Bytecodes => self.bytecodes,
            Counter::CollectedNs | Counter::Collected => self.gc,
            Counter::StoppedNs => self.gc && self.probed_waits,
            Counter::Allocated => self.alloc,
            Counter::Objects | Counter::ObjectBytes => self.objects,
            Counter::Instructions => self.instructions,
            Counter::Cycles => self.cycles,
            Counter::PageFaults => self.page_faults,
            Counter::ContextSwitches => self.context_switches,
            Counter::ParkedNs
            | Counter::Parked
            | Counter::SleptNs
            | Counter::Slept
            | Counter::SocketNs
            | Counter::Socket
            | Counter::FileNs
            | Counter::File => self.probed_waits,
        }
    }

    /// These, and others.
    pub fn and(self, others: Counting) -> Counting {
        self.with(others, |this, other| this || other)
    }

    /// Those of these that are among others, too.
    pub fn among(self, others: Counting) -> Counting {
        self.with(others, |this, other| this && other)
    }

    /// These without others.
    pub fn without(self, others: Counting) -> Counting {
        self.with(others, |this, other| this && !other)
    }

    fn with(self, others: Counting, is_on: impl Fn(bool, bool) -> bool) -> Counting {
        Counting {
            classes: is_on(self.classes, others.classes),
            exceptions: is_on(self.exceptions, others.exceptions),
            locks: is_on(self.locks, others.locks),
            waits: is_on(self.waits, others.waits),
            probed_waits: is_on(self.probed_waits, others.probed_waits),
            bytecodes: is_on(self.bytecodes, others.bytecodes),
            gc: is_on(self.gc, others.gc),
            alloc: is_on(self.alloc, others.alloc),
            objects: is_on(self.objects, others.objects),
            instructions: is_on(self.instructions, others.instructions),
            cycles: is_on(self.cycles, others.cycles),
            page_faults: is_on(self.page_faults, others.page_faults),
            context_switches: is_on(self.context_switches, others.context_switches),
        }
    }

    /// A bit for each of [`Counter::BY_KERNEL`], at its place there.
    pub fn by_kernel(self) -> u32 {
        (0..).zip(Counter::BY_KERNEL).fold(0, |bits, (at, counter)| bits | u32::from(self.has(counter)) << at)
    }

    /// What threads tell of at each event, so that a pair of probes is dearer.
    pub fn at_events(self) -> Counting {
        Counting {
            alloc: self.alloc,
            instructions: self.instructions,
            cycles: self.cycles,
            page_faults: self.page_faults,
            context_switches: self.context_switches,
            ..Counting::default()
        }
    }

    /// A bit for each kind of wait that is told of, at the place of its number; behind those of [`ProbedWait`] one for monitors.
    pub fn waits_told(self) -> u32 {
        let is_told = |wait: ProbedWait| if wait == ProbedWait::Loading { self.classes } else { self.probed_waits };
        let probed = ProbedWait::ALL.into_iter().filter(|wait| is_told(*wait)).map(|wait| 1 << wait.number());
        let monitors = u32::from(self.locks || self.waits) << ProbedWait::ALL.len();
        probed.fold(monitors, |bits, bit| bits | bit)
    }

    /// Whether something is that has classes' names.
    pub fn names_classes(self) -> bool {
        Counter::ALL.into_iter().any(|counter| counter.names_classes() && self.has(counter))
    }

    /// Whether nothing is.
    pub fn is_nothing(self) -> bool {
        self == Counting::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_object_is_told_of_in_two_words() {
        let units: u64 = (3 << SIZE_BITS) + 5;
        let site = (1 << SITE_BITS) - 1;
        let [low, high] = [units & ((1 << SIZE_BITS) - 1), units >> SIZE_BITS].map(|part| part << SITE_BITS | site);
        let first = Counter::Objects.made(low).expect("an object");
        let second = Counter::ObjectBytes.made(high).expect("more of it");
        assert_eq!((first.site, first.objects, second.site, second.objects), (site, 1, site, 0));
        assert_eq!(first.bytes + second.bytes, SIZE_UNIT * units);
        assert_eq!(Counter::Allocated.made(low), None);
    }
}
