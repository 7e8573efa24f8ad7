//! Two profiles compared: what changed, by calling context and by method, and by more than is uncertain.
//!
//! Runs are seldom of the same length, so quantities are compared per root call where both profiles have root calls. Times carry
//! their uncertainties, which add up; a change that is not larger than both together is none. Calls are exact.
//!
//! What is not known is how much the program itself differs from run to run: that only more runs can tell.

use rustc_hash::FxHashMap;

use crate::profile::{Link, MethodName, NodeIndex, Profile};
use crate::report::flat::{Amounts, flat};

pub mod condition;
pub mod json;
pub mod text;

#[cfg(test)]
mod tests;

/// To what quantities refer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// One root call, on average.
    RootCall,
    /// All that was recorded.
    Run,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Self time.
    SelfTime,
    /// Total time.
    Total,
    /// Calls.
    Calls,
}

/// A quantity in both profiles: calls, or nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// In the first.
    pub before: f64,
    /// In the second.
    pub after: f64,
    /// Uncertainty of the difference.
    pub error: f64,
}

impl Change {
    /// The difference.
    pub fn change(&self) -> f64 {
        self.after - self.before
    }

    /// The difference as a part of what it was before; infinite where it was nothing.
    pub fn relative(&self) -> f64 {
        if self.change() == 0.0 { 0.0 } else { self.change() / self.before }
    }

    /// Whether the difference is larger than its uncertainty.
    pub fn is_real(&self) -> bool {
        self.change().abs() > self.error
    }

    fn of(before: u64, after: u64, errors: [u64; 2], per: [f64; 2]) -> Change {
        let [n, m] = per;
        Change {
            before: before as f64 / n,
            after: after as f64 / m,
            error: errors[0] as f64 / n + errors[1] as f64 / m,
        }
    }
}

/// A method, in all or in one calling context, in both profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pair {
    /// In the first; `None` if it was not called there.
    pub before: Option<Amounts>,
    /// In the second.
    pub after: Option<Amounts>,
}

/// A method in one calling context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffNode {
    /// The caller, or where it was handed over: an index into [`Comparison::nodes`]; callers come before their callees.
    pub parent: Option<usize>,
    /// Of a node that its parent did not call.
    pub link: Option<Link>,
    /// The method: an index into [`Comparison::names`].
    pub name: usize,
    /// What it took.
    pub pair: Pair,
}

/// A comparison.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The first profile.
    pub before: &'a Profile,
    /// The second.
    pub after: &'a Profile,
    /// To what quantities refer.
    pub per: Per,
    /// The methods of both, each name once.
    pub names: Vec<&'a MethodName>,
    /// What each method took, in the order of `names`; those that were called in neither have nothing.
    pub methods: Vec<Pair>,
    /// The trees of all threads, one laid upon the other.
    pub nodes: Vec<DiffNode>,
    /// All roots together.
    pub whole: Pair,
    /// How much of what quantities refer to each profile has.
    divisors: [f64; 2],
}

/// Compares two profiles; `per` root call unless one of them has none, or as told.
pub fn compare<'a>(before: &'a Profile, after: &'a Profile, per: Option<Per>) -> Comparison<'a> {
    let has_roots = before.root_calls() > 0 && after.root_calls() > 0;
    let per = match per {
        Some(Per::RootCall) | None if has_roots => Per::RootCall,
        _ => Per::Run,
    };
    let mut comparison = Comparison {
        before,
        after,
        per,
        names: Vec::new(),
        methods: Vec::new(),
        nodes: Vec::new(),
        whole: Pair::default(),
        divisors: match per {
            Per::RootCall => [before, after].map(|profile| profile.root_calls() as f64),
            Per::Run => [1.0, 1.0],
        },
    };
    let mut names: FxHashMap<&str, usize> = FxHashMap::default();
    let mut places: FxHashMap<(Option<usize>, Option<Link>, usize), usize> = FxHashMap::default();
    for (profile, side) in [(before, Pair::before_mut as Side), (after, Pair::after_mut)] {
        let mut name_of = Vec::with_capacity(profile.methods.len());
        for name in &profile.methods {
            name_of.push(*names.entry(&name.machine).or_insert_with(|| {
                comparison.names.push(name);
                comparison.methods.push(Pair::default());
                comparison.names.len() - 1
            }));
        }
        for row in flat(profile, &profile.merged) {
            *side(&mut comparison.methods[name_of[row.method.0]]) = Some(row.amounts);
        }
        let mut place_of: Vec<usize> = Vec::with_capacity(profile.merged.nodes.len());
        for node in &profile.merged.nodes {
            let parent = node.parent.map(|NodeIndex(parent)| place_of[parent]);
            let name = name_of[node.method.0];
            let place = *places.entry((parent, node.link, name)).or_insert_with(|| {
                comparison.nodes.push(DiffNode { parent, link: node.link, name, pair: Pair::default() });
                comparison.nodes.len() - 1
            });
            place_of.push(place);
            let amounts = Amounts::of(node);
            side(&mut comparison.nodes[place].pair).get_or_insert_default().add(&amounts);
            if node.caller().is_none() {
                side(&mut comparison.whole).get_or_insert_default().add(&amounts);
            }
        }
    }
    comparison
}

type Side = fn(&mut Pair) -> &mut Option<Amounts>;

impl Pair {
    fn before_mut(&mut self) -> &mut Option<Amounts> {
        &mut self.before
    }

    fn after_mut(&mut self) -> &mut Option<Amounts> {
        &mut self.after
    }

    fn add(&mut self, other: &Pair) {
        for (sum, part) in [(&mut self.before, other.before), (&mut self.after, other.after)] {
            if let Some(part) = part {
                sum.get_or_insert_default().add(&part);
            }
        }
    }

    /// Whether it was called in one profile only.
    pub fn is_one_sided(&self) -> bool {
        self.before.is_some() != self.after.is_some()
    }

    /// Whether it was called at all.
    pub fn is_known(&self) -> bool {
        self.before.is_some() || self.after.is_some()
    }
}

impl Comparison<'_> {
    /// How much of what quantities refer to each profile has.
    pub(crate) fn divisors(&self) -> [f64; 2] {
        self.divisors
    }

    /// A quantity of a pair.
    pub fn change(&self, pair: &Pair, quantity: Quantity) -> Change {
        let (a, b) = (pair.before.unwrap_or_default(), pair.after.unwrap_or_default());
        match quantity {
            Quantity::SelfTime => Change::of(a.self_ns, b.self_ns, [a.error_ns, b.error_ns], self.divisors),
            Quantity::Total => Change::of(a.total_ns, b.total_ns, [a.total_error_ns, b.total_error_ns], self.divisors),
            Quantity::Calls => Change::of(a.calls, b.calls, [0, 0], self.divisors),
        }
    }

    /// What the reader should know of the two before comparing them.
    pub fn notes(&self) -> Vec<String> {
        let (before, after) = (self.before, self.after);
        let mut notes = Vec::new();
        let mut differ = |what: &str, before: String, after: String| {
            if before != after {
                notes.push(format!("{what} differ: {before} before, {after} after"));
            }
        };
        let roots = |profile: &Profile| {
            let mut patterns: Vec<&str> = profile.roots.iter().map(|root| root.pattern.as_str()).collect();
            patterns.sort_unstable();
            patterns.join(", ")
        };
        differ("roots", roots(before), roots(after));
        differ("JDKs", before.target.jdk.clone(), after.target.jdk.clone());
        differ("hosts", before.environment.host.clone(), after.environment.host.clone());
        let clock = |profile: &Profile| match profile.clock.mode.period() {
            Some(period) => format!("{} of {period:?}", profile.clock.source.name()),
            None => profile.clock.source.name().to_owned(),
        };
        differ("clocks", clock(before), clock(after));
        for (profile, which) in [(before, "before"), (after, "after")] {
            if profile.events.lost > 0 {
                notes.push(format!(
                    "events were lost {which} ({}): its calls and times are too low",
                    profile.events.lost
                ));
            }
        }
        for (profile, which) in [(before, "before"), (after, "after")] {
            let dropped = profile.budget.as_ref().map_or(0, |budget| budget.dropped.len());
            if dropped > 0 {
                notes.push(format!(
                    "{dropped} methods were dropped {which} to keep to --budget: their calls are too few, and their time is their callers'"
                ));
            }
        }
        if self.per == Per::Run && (before.root_calls() == 0 || after.root_calls() == 0) {
            notes.push("one has no root calls: whole runs are compared".to_owned());
        } else if self.per == Per::RootCall && self.nodes.iter().filter(|node| node.parent.is_none()).count() > 1 {
            notes.push(
                "several roots were entered: a change in how often each is shows as a change per root call".to_owned(),
            );
        }
        notes
    }
}
