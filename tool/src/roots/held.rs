//! What methods hold: CPU time, waits, allocated bytes; and how much of all that is.

use crate::profile::{ALLOCATED, NodeIndex, Profile, Tree};
use crate::sampling;

/// In a thread that waits at one place alone, and ran for less than this part of that time, nothing is done.
const STILL: f64 = 0.002;
/// What counts for how much, where all three do. Waits as far as threads waited rather than ran.
const ALL: [f64; 3] = [0.6, 0.25, 0.15];

/// What is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// All three; CPU time counts most
    #[default]
    All,
    /// CPU time
    Cpu,
    /// Waits for anything but work
    Wait,
    /// Allocated bytes
    Alloc,
}

impl By {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            By::All => "all",
            By::Cpu => "cpu",
            By::Wait => "wait",
            By::Alloc => "alloc",
        }
    }
}

/// What something holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// CPU time.
    pub cpu_ns: u64,
    /// Time in which threads waited for something that was part of their work.
    pub wait_ns: u64,
    /// Time in which they waited for work.
    pub idle_ns: u64,
    /// Allocated bytes.
    pub allocated: u64,
    /// How often it was seen executing.
    pub samples: u64,
}

impl Held {
    pub(super) fn add(&mut self, other: &Held) {
        let Held { cpu_ns, wait_ns, idle_ns, allocated, samples } = other;
        let pairs: [(&mut u64, &u64); 5] = [
            (&mut self.cpu_ns, cpu_ns),
            (&mut self.wait_ns, wait_ns),
            (&mut self.idle_ns, idle_ns),
            (&mut self.allocated, allocated),
            (&mut self.samples, samples),
        ];
        pairs.into_iter().for_each(|(own, more)| *own = own.saturating_add(*more));
    }

    /// Whether threads in it mostly wait for work: it is no work itself.
    pub(super) fn is_idle(&self) -> bool {
        self.idle_ns > self.cpu_ns.saturating_add(self.wait_ns)
    }
}

/// Where a profile has them.
pub(super) struct Columns {
    cpu: Option<usize>,
    waits: Vec<usize>,
    idle: Option<usize>,
    allocated: Option<usize>,
    samples: Option<usize>,
}

/// What a thread's nodes hold themselves.
pub(super) struct OfThread {
    /// In their order.
    pub(super) own: Vec<Held>,
    /// It waits at one place, and does nothing else.
    pub(super) is_still: bool,
}

impl Columns {
    pub(super) fn of(profile: &Profile) -> Columns {
        let at = |id: &str| profile.counted.iter().position(|metric| metric.id == id);
        Columns {
            cpu: at("cpu"),
            waits: sampling::ids_of_waits().filter_map(at).collect(),
            idle: at("idle"),
            allocated: at(ALLOCATED),
            samples: at("samples"),
        }
    }

    /// Whether anything is known of allocations.
    pub(super) fn has_allocations(&self) -> bool {
        self.allocated.is_some()
    }

    pub(super) fn of_thread(&self, tree: &Tree) -> OfThread {
        let own_of =
            |column: usize, at: usize| tree.counted.get(column).map_or(0, |column| column.at(NodeIndex(at)).own);
        let of = |column: Option<usize>, at: usize| column.map_or(0, |column| own_of(column, at));
        let mut own: Vec<Held> = (0..tree.nodes.len())
            .map(|at| Held {
                cpu_ns: of(self.cpu, at),
                wait_ns: self.waits.iter().map(|column| own_of(*column, at)).sum(),
                idle_ns: of(self.idle, at),
                allocated: of(self.allocated, at),
                samples: of(self.samples, at),
            })
            .collect();
        let mut whole = Held::default();
        own.iter().for_each(|held| whole.add(held));
        let waited_ns = whole.wait_ns.saturating_add(whole.idle_ns);
        let places = own.iter().filter(|held| held.wait_ns + held.idle_ns > 0).count();
        let is_still = places == 1 && (whole.cpu_ns as f64) < STILL * waited_ns as f64;
        if is_still {
            // A `main` that waits for its end, a thread that is stuck: no part of the work.
            own.iter_mut().for_each(|held| (held.idle_ns, held.wait_ns) = (held.idle_ns + held.wait_ns, 0));
        }
        OfThread { own, is_still }
    }
}

/// What a unit of each counts, so that all that was seen is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    cpu: f64,
    wait: f64,
    allocated: f64,
}

impl Weights {
    pub(super) fn of(by: By, whole: &Held) -> Weights {
        let [cpu, wait, alloc] = ALL;
        let waits = whole.wait_ns as f64 / (whole.wait_ns as f64 + whole.cpu_ns as f64).max(1.0);
        let parts = match by {
            By::All => [cpu, wait * waits, alloc],
            By::Cpu => [1.0, 0.0, 0.0],
            By::Wait => [0.0, 1.0, 0.0],
            By::Alloc => [0.0, 0.0, 1.0],
        };
        let wholes = [whole.cpu_ns, whole.wait_ns, whole.allocated];
        let known = |(part, whole): (&f64, &u64)| if *whole > 0 { *part } else { 0.0 };
        let sum: f64 = parts.iter().zip(&wholes).map(known).sum();
        let of = |at: usize| if wholes[at] > 0 && sum > 0.0 { parts[at] / sum / wholes[at] as f64 } else { 0.0 };
        Weights { cpu: of(0), wait: of(1), allocated: of(2) }
    }

    /// The part of all that it is; waits count as far as `credit` says.
    pub(super) fn share(&self, held: &Held, credit: f64) -> f64 {
        self.cpu * held.cpu_ns as f64
            + self.wait * credit * held.wait_ns as f64
            + self.allocated * held.allocated as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile_of;
    use crate::profile::{Column, Extent, MethodIndex, Metric, Node, Unit};

    fn held(cpu_ns: u64, wait_ns: u64, allocated: u64) -> Held {
        Held { cpu_ns, wait_ns, allocated, ..Held::default() }
    }

    #[test]
    fn all_that_was_seen_is_one_whatever_is_known() {
        for whole in [held(100, 900, 7), held(100, 0, 7), held(100, 900, 0), held(100, 0, 0), held(0, 900, 0)] {
            let share = Weights::of(By::All, &whole).share(&whole, 1.0);
            assert!((share - 1.0).abs() < 1e-9, "{whole:?}: {share}");
        }
        let weights = Weights::of(By::Wait, &held(100, 900, 7));
        assert_eq!((weights.share(&held(50, 450, 7), 1.0), weights.share(&held(50, 450, 7), 0.0)), (0.5, 0.0));
    }

    #[test]
    fn where_threads_hardly_wait_waits_hardly_count() {
        let waits = held(0, 10, 0);
        let few = Weights::of(By::All, &held(990, 10, 0)).share(&waits, 1.0);
        let many = Weights::of(By::All, &held(10, 10, 0)).share(&waits, 1.0);
        assert!(few < 0.01 && many > 0.1, "{few} {many}");
    }

    #[test]
    fn a_thread_that_waits_at_one_place_does_no_work() {
        let node =
            |parent: Option<usize>, method| Node { parent: parent.map(NodeIndex), ..Node::empty(MethodIndex(method)) };
        let metric = |id, unit| Metric::counted(id, id, unit, Extent::OwnAndTotal, "");
        let counted = vec![metric("cpu", Unit::Nanoseconds), metric("parked", Unit::Nanoseconds)];
        let of = |cpu: [u64; 3], parked: [u64; 3]| {
            let mut tree = Tree::of(vec![node(None, 0), node(Some(0), 1), node(Some(0), 2)]);
            let column = |values: [u64; 3]| Column::of(&tree.nodes, values.map(|value| (value, 0)));
            tree.counted = vec![column(cpu), column(parked)];
            let profile = Profile { counted: counted.clone(), ..profile_of(tree, Vec::new(), 3) };
            let OfThread { own, is_still } = Columns::of(&profile).of_thread(&profile.merged);
            (is_still, own[1].wait_ns, own[1].idle_ns)
        };
        assert_eq!(of([0, 1_000, 0], [0, 1_000_000, 0]), (true, 0, 1_000_000));
        // It works now and then; it waits in two places.
        assert_eq!(of([0, 10_000, 0], [0, 1_000_000, 0]), (false, 1_000_000, 0));
        assert_eq!(of([0, 0, 0], [0, 1_000_000, 5]), (false, 1_000_000, 0));
    }
}
