//! What is counted beside calls: from the beginning, by an option, and switched on and off while a profile is recorded.

use std::sync::LazyLock;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use headwater_protocol::word::Counting;

use crate::profile::ClockMode;
use crate::report::units::plural;

/// What is counted beside calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Count {
    /// How long and how often threads wait to enter monitors (synchronized); which locks, and who held them (--view locks)
    Locks,
    /// What self times consist of: running, ready, blocked, in Object.wait, parked, asleep, in sockets and files
    Waits,
    /// Which classes are loaded and linked, and how long that takes: in class loaders, and in static initialisers
    Classes,
    /// Which exceptions are made or thrown, also those that are caught below
    Exceptions,
    /// Instructions that the instrumented methods' class files have and that are executed: the same in every run that does the same
    Bytecodes,
    /// Bytes that are allocated, by the JVM's own account of each thread
    Alloc,
    /// Objects that instrumented methods make, and how large they are, by class and line; those too that the JIT compiler then does without
    AllocSites,
    /// How long and how often the JVM is stopped for garbage collections, and each of them by itself
    Gc,
    /// Instructions that the processor executes in user mode, by the kernel's counters: on few virtual machines
    Instructions,
    /// The processor's cycles in user mode, by the kernel's counters: on few virtual machines
    Cycles,
    /// Page faults in user mode, by the kernel's counters
    PageFaults,
    /// Context switches, by the kernel's counters
    ContextSwitches,
}

/// What these come to, by a clock: where it stands still in waits, these are not told of by probes.
pub(crate) fn counting(kinds: &[Count], clock: ClockMode) -> Counting {
    let has = |kind| kinds.contains(&kind);
    Counting {
        classes: has(Count::Classes),
        exceptions: has(Count::Exceptions),
        locks: has(Count::Locks),
        waits: has(Count::Waits),
        probed_waits: has(Count::Waits) && clock != ClockMode::Cpu,
        bytecodes: has(Count::Bytecodes),
        gc: has(Count::Gc),
        alloc: has(Count::Alloc),
        objects: has(Count::AllocSites),
        instructions: has(Count::Instructions),
        cycles: has(Count::Cycles),
        page_faults: has(Count::PageFaults),
        context_switches: has(Count::ContextSwitches),
    }
}

/// What is counted beside calls, in a line.
pub(crate) fn counting_in_words(what: Counting) -> String {
    let on = Count::value_variants().iter().filter(|kind| kind.is_in(what)).map(|kind| kind.name());
    let on: Vec<String> = on.collect();
    if on.is_empty() { "counting nothing but calls".to_owned() } else { format!("counting {}", on.join(", ")) }
}

/// What is done before that.
pub(crate) fn probing_in_words(classes: usize) -> String {
    format!("{} other probes for that", plural(classes as u64, "class gets", "classes get"))
}

impl Count {
    /// As users write it.
    pub(crate) fn name(self) -> String {
        name_of(&self)
    }

    /// Whether it is among what is counted.
    pub(crate) fn is_in(self, what: Counting) -> bool {
        // By that clock it is no more than itself.
        what.without(counting(&[self], ClockMode::Cpu)) != what
    }
}

/// A word of the command `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// What.
    Kind(Count),
    /// From now on.
    On,
    /// No longer.
    Off,
}

impl Word {
    /// All of them.
    pub(crate) fn all() -> &'static [Word] {
        static ALL: LazyLock<Vec<Word>> = LazyLock::new(|| {
            let kinds = Count::value_variants().iter().copied().map(Word::Kind);
            kinds.chain([Word::On, Word::Off]).collect()
        });
        &ALL
    }

    /// As users write it.
    pub(crate) fn name(self) -> String {
        name_of(&self)
    }
}

/// As users write it.
fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

impl ValueEnum for Word {
    fn value_variants<'a>() -> &'a [Word] {
        Word::all()
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Word::Kind(kind) => kind.to_possible_value(),
            Word::On => Some(PossibleValue::new("on").help("Count these from now on")),
            Word::Off => Some(PossibleValue::new("off").help("No longer count these, or anything")),
        }
    }
}

/// What the command `count` is to do.
#[derive(Clone, Debug, Args)]
pub struct Switching {
    /// What is counted, then `on` or `off`; `off` alone: all of it
    #[arg(value_enum, value_name = "WHAT... on|off")]
    words: Vec<Word>,
}

/// What the command is to look like.
fn shape() -> String {
    let kinds: Vec<String> = Count::value_variants().iter().map(|kind| kind.name()).collect();
    format!("name what is to be counted ({}), then `on` or `off`", kinds.join(", "))
}

/// A change of what is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    /// These too.
    On(Vec<Count>),
    /// These no longer.
    Off(Vec<Count>),
}

impl Switch {
    /// What is counted then, by a clock.
    pub(crate) fn of(&self, before: Counting, clock: ClockMode) -> Counting {
        match self {
            Switch::On(kinds) => before.and(counting(kinds, clock)),
            Switch::Off(kinds) => before.without(counting(kinds, clock)),
        }
    }

    /// Reads what follows the command, as it is typed where there is no command line.
    pub(crate) fn of_text(text: &str) -> Result<Option<Switch>, String> {
        let word = |word| Word::from_str(word, false).map_err(|_| format!("`{word}` is nothing to count; {}", shape()));
        let words: Result<Vec<Word>, String> = text.split_whitespace().map(word).collect();
        Switch::read(&words?)
    }

    /// Reads words as they follow the command.
    fn read(words: &[Word]) -> Result<Option<Switch>, String> {
        let Some((last, kinds)) = words.split_last() else { return Ok(None) };
        let kind = |word: &Word| match word {
            Word::Kind(kind) => Some(*kind),
            Word::On | Word::Off => None,
        };
        let kinds: Option<Vec<Count>> = kinds.iter().map(kind).collect();
        let kinds = kinds.ok_or_else(shape)?;
        match (last, kinds.is_empty()) {
            (Word::On, false) => Ok(Some(Switch::On(kinds))),
            (Word::Off, false) => Ok(Some(Switch::Off(kinds))),
            (Word::Off, true) => Ok(Some(Switch::Off(Count::value_variants().to_vec()))),
            _ => Err(shape()),
        }
    }
}

impl Switching {
    /// What is to change; nothing, where it is only asked what there is.
    pub(crate) fn switch(&self) -> Result<Option<Switch>, String> {
        Switch::read(&self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Switch>, String> {
        Switch::of_text(text)
    }

    #[test]
    fn metrics_are_switched_by_what_stands_behind_them() {
        assert_eq!(read(""), Ok(None));
        assert_eq!(read("alloc gc on"), Ok(Some(Switch::On(vec![Count::Alloc, Count::Gc]))));
        assert_eq!(read("waits off"), Ok(Some(Switch::Off(vec![Count::Waits]))));
        let Ok(Some(Switch::Off(all))) = read("off") else { panic!("all of it") };
        assert_eq!(all, Count::value_variants());
        for wrong in ["on", "alloc", "on alloc", "alloc on off"] {
            assert!(read(wrong).unwrap_err().contains("then `on` or `off`"), "{wrong}");
        }
        assert!(read("acres on").unwrap_err().starts_with("`acres` is nothing to count; name what"));
    }

    #[test]
    fn a_switch_leaves_what_it_does_not_name() {
        let clock = ClockMode::Exact;
        let before = counting(&[Count::Locks, Count::Gc], clock);
        let after = Switch::On(vec![Count::Waits]).of(before, clock);
        assert!(Count::Locks.is_in(after) && Count::Waits.is_in(after) && after.probed_waits);
        assert_eq!(Switch::Off(vec![Count::Waits]).of(after, clock), before);
        assert!(!Count::Waits.is_in(before));
        let by_cpu = Switch::On(vec![Count::Waits]).of(before, ClockMode::Cpu);
        assert!(Count::Waits.is_in(by_cpu) && !by_cpu.probed_waits);
    }
}
