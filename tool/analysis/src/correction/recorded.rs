//! What the recording with all probes says of each node.

use headwater_profile::profile::{Clock, ClockMode};
use headwater_protocol::word::Counter;

use crate::cct::{Cct, NodeId};

/// Of what was measured, at least this part was no probe's.
const LEAST: f64 = 0.2;

/// What the recording with all probes says of a node, or of a subtree, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Without the probes, as far as they are known, and without what waited.
    pub(super) run: f64,
    pub(super) wait: f64,
    /// The probes' calibrated cost: so much may be wrong.
    pub(super) doubt: f64,
    /// The variance of what chance gave to one node and not to another, in ns².
    pub(super) chance: f64,
}

impl Measured {
    pub(super) fn add(&mut self, other: Measured) {
        self.run += other.run;
        self.wait += other.wait;
        self.doubt += other.doubt;
        self.chance += other.chance;
    }

    /// What is left of it without a part of it.
    pub(super) fn without(&self, part: &Measured) -> Measured {
        Measured {
            run: self.run - part.run,
            wait: self.wait - part.wait,
            doubt: (self.doubt - part.doubt).max(0.0),
            chance: (self.chance - part.chance).max(0.0),
        }
    }

    fn times(&self, part: f64) -> Measured {
        let Measured { run, wait, doubt, chance } = self;
        Measured { run: part * run, wait: part * wait, doubt: part * doubt, chance: part * chance }
    }

    pub(super) fn sum(&self) -> f64 {
        self.run + self.wait
    }

    pub(super) fn error(&self) -> f64 {
        self.doubt.hypot(self.chance.sqrt())
    }
}

/// What was measured in one place, and is another's: such a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moved {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) part: f64,
}

/// A tree's shape and what was measured of it.
pub(crate) struct Recorded {
    /// Of each node, the one whose time its own is part of; the top's index for roots and what was handed over.
    pub(super) callers: Vec<usize>,
    pub(super) own: Vec<Measured>,
    pub(super) below: Vec<Measured>,
}

impl Recorded {
    pub(crate) fn of(cct: &Cct, clock: &Clock) -> Recorded {
        let (calls_made, objects) = (calls_made(cct), cct.objects());
        let (step_ns, queue_ns) = (clock.step_or_period_ns(), clock.queue_ns());
        let own = |(id, node): (NodeId, &crate::cct::Node)| {
            let measured = node.self_measured_ns as f64;
            let pairs = node.calls as f64 * clock.inner_ns + calls_made[id.index()] as f64 * clock.outer_ns;
            let probes = pairs + objects[id.index()] as f64 * clock.object_ns;
            let without = (measured - probes).max(LEAST * measured);
            let cpu = cct.cpu(id);
            let waiting = f64::from(cpu.samples - cpu.running) / f64::from(cpu.samples + 1);
            let wait = (measured * waiting).max(told_to_wait(cct, id, clock)).min(without);
            let run = without - wait;
            Measured { run, wait, doubt: probes.min(measured), chance: measured * step_ns + run * queue_ns }
        };
        let own: Vec<Measured> = cct.nodes().map(own).collect();
        let callers = callers(cct);
        let mut below = own.clone();
        below[0] = Measured::default();
        add_up(&callers, &mut below, Measured::add);
        Recorded { callers, own, below }
    }

    /// With what was measured elsewhere in its place.
    pub(super) fn with(mut self, moved: impl Iterator<Item = Moved>) -> Recorded {
        let mut has_moved = false;
        for Moved { from, to, part } in moved {
            let measured = self.own[from.index()].times(part);
            self.own[from.index()] = self.own[from.index()].without(&measured);
            self.own[to.index()].add(measured);
            has_moved = true;
        }
        if has_moved {
            self.below = self.own.clone();
            self.below[0] = Measured::default();
            add_up(&self.callers, &mut self.below, Measured::add);
        }
        self
    }

    pub(super) fn is_outermost(&self, index: usize) -> bool {
        self.callers[index] == NodeId::TOP.index()
    }
}

/// Of each node, the one whose time its own is part of.
pub(super) fn callers(cct: &Cct) -> Vec<usize> {
    // Above what was handed over nobody takes part in its time.
    let caller = |(id, node): (NodeId, &crate::cct::Node)| cct.parent(id).filter(|_| !node.is_handed());
    cct.nodes().map(|node| caller(node).map_or(0, NodeId::index)).collect()
}

/// How long a node's method is known to have waited, whoever was seen doing that. Reading and writing takes a processor as well, so that is left to
/// samples. CPU time does not wait.
fn told_to_wait(cct: &Cct, id: NodeId, clock: &Clock) -> f64 {
    const WAITS: [Counter; 4] = [Counter::BlockedNs, Counter::WaitedNs, Counter::ParkedNs, Counter::SleptNs];
    if clock.mode == ClockMode::Cpu {
        return 0.0;
    }
    WAITS.into_iter().map(|counter| cct.count(id, counter) as f64).sum()
}

/// Adds what each node has to its caller's, so that all have that of what they call: callees come after their callers.
pub(super) fn add_up<T: Copy>(callers: &[usize], of: &mut [T], add: impl Fn(&mut T, T)) {
    for index in (1..of.len()).rev() {
        let callee = of[index];
        add(&mut of[callers[index]], callee);
    }
}

/// How many calls each node makes.
fn calls_made(cct: &Cct) -> Vec<u64> {
    let mut made = vec![0; cct.len()];
    for (id, node) in cct.nodes() {
        // What was handed over is entered beside everybody's clock.
        if let Some(parent) = cct.parent(id).filter(|_| !node.is_handed()) {
            made[parent.index()] += node.calls;
        }
    }
    made
}
