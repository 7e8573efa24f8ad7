//! What the call graph goes by where nothing is certain: its constants, each with its reason, and what developers may have it do without.
//!
//! None of this decides whether a call is seen: too low, and more is instrumented in vain; too high, and the JVM stops more often.
//!
//! What each mechanism is worth: docs/decisions/mechanisms.md.

use std::str::FromStr;
use std::time::Duration;

use headwater_protocol::MethodId;

/// From 0 to 1.
pub(super) type Probability = f32;

// What a call's place in the code says: see `headwater_rewriter::Likelihood`.

/// No branch leads around it; the call may still throw before.
pub(super) const CERTAIN: Probability = 0.97;
/// A branch leads around it.
pub(super) const POSSIBLE: Probability = 0.5;
/// An exception is on the way to it or behind it.
pub(super) const RARE: Probability = 0.05;

// What kind of call it is.

/// A virtual call with many targets runs each of them with at least this probability, however few classes inherit it.
pub(super) const LEAST_SHARE: Probability = 0.25;
/// A method that some code outside the filter may call back.
pub(super) const CALLED_BACK: Probability = 0.2;
/// A task: what is given to an executor or a thread runs there, outside the call graph, and that it has run before is no sign that it
/// runs inside.
pub(super) const HANDED_OVER: Probability = 0.002;
/// That code outside the filter calls a method of an object that the graph says nothing of: most belong to other parts of the program.
pub(super) const UNNAMED: Probability = 0.002;
/// A static initialiser that has not run.
pub(super) const INITIALIZER: Probability = 0.6;
/// A method of a class that came after its callers had been entered.
pub(super) const LOADED_LATER: Probability = 0.5;
/// That a class is initialised by reflection, serialisation or a service loader which is loaded already.
pub(super) const BY_NAME: Probability = 0.01;
/// A constructor in a class that is loaded on behalf of the graph, or a method there, or in a class that is hotswapped again, that
/// overrides another.
pub(super) const LOADED_FOR_USE: Probability = 0.3;

// What is known of the callee: by this the odds are multiplied.

/// It has been called before. In a javac that had compiled for 15 s, all but one of 4,450 methods that were entered had.
pub(super) const IF_CALLED: f32 = 100.0;
/// It never has, but its caller has: the caller does not come to it.
pub(super) const IF_ONLY_CALLER_CALLED: f32 = 0.02;
/// All that is known is that it is compiled: it is called often by somebody.
pub(super) const IF_COMPILED: f32 = 15.0;
/// All that is known is that it is not compiled, but its caller is: the caller seldom comes to it.
pub(super) const IF_ONLY_CALLER_COMPILED: f32 = 0.15;
/// Its class was loaded, but not initialised, when we came.
pub(super) const IF_DORMANT: f32 = 0.1;
/// Nothing is known of it, but that there are objects of its class.
pub(super) const IF_ALIVE: f32 = 4.0;

// What a guess may cost.

/// A method is as good as entered from these odds on, divided by a batch's cost in milliseconds. On a warmed-up javac, 2 and 6
/// made no difference to precision (1.74 and 1.73 methods instrumented for each called), but took 94 and 228 batches.
pub(super) const ODDS_FOR_A_MILLISECOND: f32 = 3.0;
/// The same while a program starts: it comes to most of its code sooner or later, if not by the call that was guessed at, and waits for
/// each batch. 200 files of a cold javac on JDK 17: with this, no bound to guesses, and what is foreseen of classes that are hotswapped
/// again, 212 batches and 2.95 s of waiting became 183 and 2.1 s, for 5 % more methods.
pub(super) const STARTING_ODDS_FOR_A_MILLISECOND: f32 = 0.5;
/// Where there is not room for all that is likely, these are selected first, and then these.
pub(super) const SURER: [Probability; 4] = [0.95, 0.8, 0.6, 0.4];
/// However dear a batch is: a machine that is busy with other things makes everything dear.
pub(super) const LEAST_ODDS: f32 = 0.5;
/// The same while a program starts.
pub(super) const STARTING_LEAST_ODDS: f32 = 0.1;
/// However cheap a batch is.
pub(super) const MOST_ODDS: f32 = 20.0;
/// A part of the threshold is enough where no batch is needed.
pub(super) const WITHIN: f32 = 0.33;
/// What has this probability is remembered for classes that are still to come: if one does come, it is likelier than that.
pub(super) const REMEMBERED: Probability = 0.1;
/// From this probability of a call on, its class is linked ahead.
pub(super) const LINKED_AHEAD: Probability = 0.1;
/// A batch in a JVM with some thousands of classes, on a machine that is not busy with other things, takes less: then one more may be risked
/// for a few methods less.
pub(super) const CHEAP_BATCH: Duration = Duration::from_millis(4);

// What becomes of guesses.

/// So much of what was selected ahead of time is expected to be of use.
pub(super) const USEFUL: f32 = 0.8;
/// That expectation counts like so many methods that were seen.
pub(super) const EXPECTED_METHODS: f32 = 40.0;
/// Where nothing is known of a method, guesses are by the shape of the code alone, and may all be wrong for the same reason: so many are made
/// before the first has turned out right.
pub(super) const BLIND_GUESSES: u32 = 64;
/// So many more for each that has.
pub(super) const BLIND_FOR_RIGHT: u32 = 16;

// When having run before, or not, says something.

/// That something has never run is no longer taken for a sign when so many such methods are called after all ...
pub(super) const FEW_NEW: usize = 32;
/// ... and at least one in so many of those that are: the program does something new.
pub(super) const PART_NEW: usize = 8;
/// What has run less than once in so many calls of a root has run seldom.
pub(super) const SELDOM: u32 = 200;
/// A root that has been called so often returns soon,
pub(super) const OFTEN: u32 = 100;
/// and one that has been called so often will be called again.
pub(super) const AGAIN: u32 = 8;
/// HotSpot counts a method's calls until it is compiled for good, some ten thousand of them: that a root had more says nothing of what it calls.
pub(super) const COUNTED: u32 = 20_000;
/// Fewer calls than this are counted each: no sooner is a method compiled as a whole (`Tier3MinInvocationThreshold`), whatever loops it has.
pub(super) const ALL_COUNTED: u32 = 100;
/// So many classes are listed at the beginning for the sake of evidence. HotSpot keeps some 16 bytes for each method that was ever listed.
pub(super) const MOST_LISTED: usize = 30_000;

// When a program has just started.

/// It loads so many classes on behalf of the graph (one that loads fewer has few batches anyway) ...
pub(super) const MANY_LOADED: usize = 30;
/// ... and so many batches were due because classes were linked: otherwise there is nothing to be saved.
pub(super) const MANY_LINKED: usize = 4;
/// So often a class is hotswapped before it is taken for one that will be again.
pub(super) const HOTSWAPPED_AGAIN: u32 = 2;

// How many.

/// A guard is told what the call is made on if there are so many methods behind it that never have run.
pub(super) const MANY_BEHIND: usize = 4;
/// HotSpot compiles no method that is longer (`HugeMethodLimit`, 8,000 bytes); other probes take room as well.
pub(super) const HUGE: u32 = 7_000;
/// A call that is told what it is made on is so much longer, if it has two or three arguments.
pub(super) const RECEIVER_BYTES: u32 = 16;
/// Of so many numbers, some have to be left for methods.
pub(super) const MOST_GUARDS: usize = MethodId::MAX.0 as usize / 2;
/// After so many pairs of a call and a class no further call gets a number: the target remembers them, in its heap.
pub(super) const MOST_SEEN: usize = 2000;
/// What more classes have than these is left alone on objects that nobody names: most of so many belong to something else, and all would be
/// instrumented at once.
pub(super) const MOST_CLASSES: usize = 256;
/// So many methods that have never run, and only code outside the filter can call, are instrumented all the same: that much costs next to nothing,
/// and a program that has no more of them has all its calls counted from the first on.
pub(super) const MOST_IDLE: usize = 128;

/// Something that the profile could do without, at a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Virtual calls that are told what they are made on: docs/decisions/receivers.md.
    Receivers,
    /// Probes before unlikely calls: docs/decisions/guards.md.
    Guards,
    /// Callbacks that no loaded class of the JDK names are not selected: docs/decisions/callbacks.md.
    Withheld,
    /// Objects that nobody names may be called back: docs/decisions/callbacks.md.
    Opaque,
    /// What mentioned types say of callbacks: docs/decisions/callbacks.md.
    Expected,
    /// Idle callbacks are watched: docs/decisions/watched-methods.md.
    Watched,
    /// What has run, but not lately, is not expected: docs/decisions/watched-methods.md.
    Stale,
    /// The JVM's counters: docs/decisions/look-ahead.md.
    Counters,
    /// What will be called joins a batch: docs/decisions/look-ahead.md.
    LookAhead,
    /// What a class probably calls in itself is selected with it.
    Foresee,
    /// So is what a class that the graph loads overrides.
    Loaded,
    /// Lower odds while a program starts.
    Starting,
    /// Classes are linked ahead: docs/decisions/unlinked-classes.md.
    Unlinked,
    /// The agent requests safepoints: docs/decisions/safepoints-after-hotswaps.md.
    Settling,
    /// The agent resets type profiles: docs/decisions/stale-type-profiles.md.
    Profiles,
    /// The agent holds threads at detach: docs/decisions/detach.md.
    Holding,
}

impl Mechanism {
    /// With their names.
    const ALL: [(&str, Mechanism); 16] = [
        ("receivers", Mechanism::Receivers),
        ("guards", Mechanism::Guards),
        ("withheld", Mechanism::Withheld),
        ("opaque", Mechanism::Opaque),
        ("expected", Mechanism::Expected),
        ("watched", Mechanism::Watched),
        ("stale", Mechanism::Stale),
        ("counters", Mechanism::Counters),
        ("look-ahead", Mechanism::LookAhead),
        ("foresee", Mechanism::Foresee),
        ("loaded", Mechanism::Loaded),
        ("starting", Mechanism::Starting),
        ("unlinked", Mechanism::Unlinked),
        ("settling", Mechanism::Settling),
        ("profiles", Mechanism::Profiles),
        ("holding", Mechanism::Holding),
    ];
}

/// The mechanisms that are left out, to measure what they are worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without(u32);

/// A name that no mechanism has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("HEADWATER_WITHOUT: there is no mechanism `{0}`")]
pub struct NoMechanism(String);

impl Without {
    /// Whether it is left out.
    pub fn has(self, mechanism: Mechanism) -> bool {
        self.0 & 1 << mechanism as u32 != 0
    }

    /// Nothing is left out.
    pub fn is_nothing(self) -> bool {
        self == Without::default()
    }
}

impl FromStr for Without {
    type Err = NoMechanism;

    fn from_str(names: &str) -> Result<Without, NoMechanism> {
        let mut without = Without::default();
        for name in names.split(',').filter(|name| !name.is_empty()) {
            let found = Mechanism::ALL.iter().find(|(known, _)| *known == name);
            let (_, mechanism) = found.ok_or_else(|| NoMechanism(name.to_owned()))?;
            without.0 |= 1 << *mechanism as u32;
        }
        Ok(without)
    }
}

impl std::fmt::Display for Without {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = Mechanism::ALL.iter().filter(|(_, mechanism)| self.has(*mechanism)).map(|(name, _)| *name);
        f.write_str(&names.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_named() {
        let without: Without = "guards,look-ahead".parse().expect("two mechanisms");
        assert!(
            without.has(Mechanism::Guards) && without.has(Mechanism::LookAhead) && !without.has(Mechanism::Receivers)
        );
        assert_eq!(without.to_string(), "guards,look-ahead");
        assert!("".parse::<Without>().is_ok_and(Without::is_nothing));
        assert_eq!("guard".parse::<Without>(), Err(NoMechanism("guard".to_owned())));
    }
}
