//! Why a method has probes, or none: the way on which it was found from a root on, when that was, and what keeps it from having some.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::select::MethodSelector;
use super::suggested;
use crate::profile::reach::{Cause, Moment, Reach, Reached};
use crate::profile::{MethodIndex, MethodName, Profile};
use headwater_terms::pattern::{JDK_PACKAGES, display_name, near_misses};
use headwater_terms::printable::printable;
use headwater_terms::reach::{Obstacle, Trigger, Way};
use obstacles::Said;

pub mod json;
mod obstacles;
pub mod text;
mod words;

/// So many names are suggested.
const SUGGESTIONS: usize = 3;
/// So many classes are named that a method would be in.
const MOST_CLASSES: usize = 5;

/// A method, and why it has probes or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Its machine name; of one that was not reached, what was asked for.
    pub machine: String,
    /// Its name for people.
    pub display: String,
    /// How it stands.
    pub standing: Standing,
    /// The root patterns that it is below; those that name it, if any do. None where it is not known which.
    pub roots: Vec<String>,
    /// Who called it; who did most comes first.
    pub callers: Vec<Caller>,
    /// How it was reached: from a root, or the first method that is known, up to itself. Empty where that is not known.
    pub way: Vec<Step>,
    /// When it was found, and upon what; `None` where that was before this way was known: as something that may be called on objects that
    /// nobody names.
    pub found: Option<(Option<Trigger>, Moment)>,
    /// When it had its probes.
    pub probed: Option<Moment>,
    /// What else is to be said of it.
    pub remarks: Vec<String>,
    /// What can be done about it.
    pub advice: Option<String>,
}

/// A method that called another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its machine name and its name for people; `None` is code outside the call graph.
    pub method: Option<(String, String)>,
    /// How often.
    pub calls: u64,
}

/// How a method stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has had probes to the end, and has been called so often.
    Probed(u64),
    /// It has none, or lost them, and why; and how often it was called before.
    Unprobed(Obstacle, u64),
    /// It was not reached.
    Unreached,
}

/// A method on the way to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its machine name.
    pub machine: String,
    /// Its name for people.
    pub display: String,
    /// How the one before leads to it.
    pub way: Way,
    /// Name of the type that a call names there, or as which an object is given away.
    pub through: Option<String>,
}

/// Why nothing can be said of a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unexplained {
    /// Nothing was instrumented.
    #[error("only profiles of Headwater's own say why methods have probes; this was made of {0}")]
    Imported(String),
    /// The profile does not say it.
    #[error(
        "no method of this profile matches {0}, and what else was reached it does not say: an older Headwater recorded it"
    )]
    Unrecorded(String),
    /// There is no such method.
    #[error(
        "nothing that matches {pattern} was reached, and no class of that name was loaded while this was recorded{}",
        suggested(near)
    )]
    Unknown {
        /// What was asked for.
        pattern: String,
        /// Names that are like it.
        near: Vec<String>,
    },
}

/// What is known of methods that match: at least one.
pub fn explain(profile: &Profile, wanted: &MethodSelector) -> Result<Vec<Explained>, Unexplained> {
    if let Some(format) = &profile.imported {
        return Err(Unexplained::Imported(format.clone()));
    }
    let known = Known::of(profile);
    let mut explained = known.matching(wanted);
    if explained.is_empty() {
        explained.push(known.unreached(wanted)?);
    }
    // Who is meant by name comes before those who are meant with others, and who was called before who was not.
    explained.sort_by_cached_key(|it| {
        let (rank, calls) = match it.standing {
            Standing::Probed(calls) => (0, calls),
            Standing::Unprobed(_, calls) => (1, calls),
            Standing::Unreached => (2, 0),
        };
        (!wanted.names(&it.machine), Reverse(calls), rank, it.machine.clone())
    });
    known.add_callers(&mut explained);
    Ok(explained)
}

/// What is known of one method of a profile; nothing, if it is none.
pub fn explain_one(profile: &Profile, method: MethodIndex) -> Option<Explained> {
    let is_method = |name: &MethodName| Known::is_method(&name.machine);
    profile.methods.get(method.0).filter(|name| profile.imported.is_none() && is_method(name))?;
    let known = Known::of(profile);
    let mut explained = known.of_graph(method.0);
    known.add_callers(std::slice::from_mut(&mut explained));
    Some(explained)
}

/// A machine name, and the name for people.
type Names<'a> = (&'a str, &'a str);

/// What a profile knows.
struct Known<'a> {
    profile: &'a Profile,
    reach: Option<&'a Reach>,
    /// How often methods were called, by their machine names: classes of one name are one to the reader.
    calls: FxHashMap<&'a str, u64>,
}

impl<'a> Known<'a> {
    fn of(profile: &'a Profile) -> Known<'a> {
        let mut by_index = vec![0_u64; profile.methods.len()];
        for node in &profile.merged.nodes {
            by_index[node.method.0] = by_index[node.method.0].saturating_add(node.calls);
        }
        let mut calls: FxHashMap<&str, u64> = FxHashMap::default();
        for (name, of_method) in profile.methods.iter().zip(by_index) {
            let calls = calls.entry(&name.machine).or_default();
            *calls = calls.saturating_add(of_method);
        }
        Known { profile, reach: profile.reach.as_ref(), calls }
    }

    /// Who called them.
    fn add_callers(&self, explained: &mut [Explained]) {
        let called = explained.iter().filter(|it| self.calls(&it.machine) > 0);
        let mut callers: FxHashMap<String, FxHashMap<Option<Names<'_>>, u64>> =
            called.map(|it| (it.machine.clone(), FxHashMap::default())).collect();
        let nodes = &self.profile.merged.nodes;
        for node in nodes.iter().filter(|node| node.calls > 0) {
            if let Some(of_method) = callers.get_mut(&self.profile.methods[node.method.0].machine) {
                let caller = node.parent.map(|parent| &self.profile.methods[nodes[parent.0].method.0]);
                let calls = of_method.entry(caller.map(|name| (&*name.machine, &*name.display))).or_default();
                *calls = calls.saturating_add(node.calls);
            }
        }
        for it in explained {
            let callers = callers.remove(&it.machine).into_iter().flatten().map(|(caller, calls)| Caller {
                method: caller.map(|(machine, display)| (machine.to_owned(), display.to_owned())),
                calls,
            });
            it.callers = callers.collect();
            it.callers.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.method.cmp(&b.method)));
        }
    }

    fn calls(&self, machine: &str) -> u64 {
        self.calls.get(machine).copied().unwrap_or(0)
    }

    /// Names of classes and threads stand among methods, too.
    fn is_method(machine: &str) -> bool {
        machine.contains('(')
    }

    fn matching(&self, wanted: &MethodSelector) -> Vec<Explained> {
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        let mut explained = Vec::new();
        let methods = self.profile.methods.iter().enumerate();
        let mut selected: Vec<(usize, &str)> = methods
            .map(|(at, name)| (at, name.machine.as_str()))
            .filter(|(_, machine)| Known::is_method(machine) && wanted.matches(machine))
            .collect();
        // Of several classes of one name the one with probes tells more.
        selected.sort_by_key(|(at, machine)| (self.calls(machine) == 0, self.lacks(*at).is_some(), *at));
        for (at, machine) in selected {
            if seen.insert(machine) {
                explained.push(self.of_graph(at));
            }
        }
        for other in self.reach.into_iter().flat_map(|reach| &reach.others) {
            if wanted.matches(&other.machine) && seen.insert(&other.machine) {
                explained.push(self.of_others(&other.machine, other.why, other.cause));
            }
        }
        for skipped in &self.profile.skipped {
            if Known::is_method(&skipped.method) && wanted.matches(&skipped.method) && seen.insert(&skipped.method) {
                explained.push(self.of_others(&skipped.method, Obstacle::Refused, Cause::default()));
            }
        }
        explained
    }

    fn reached(&self, at: usize) -> Option<&'a Reached> {
        self.reach.and_then(|reach| reach.methods.get(at))
    }

    fn lacks(&self, at: usize) -> Option<Obstacle> {
        let machine = &self.profile.methods[at].machine;
        let is_skipped = || self.profile.skipped.iter().any(|skipped| skipped.method == *machine);
        match self.reached(at) {
            Some(reached) => reached.lacks,
            None => is_skipped().then_some(Obstacle::Refused),
        }
    }

    /// A method of the call graph.
    fn of_graph(&self, at: usize) -> Explained {
        let name = &self.profile.methods[at];
        let (calls, reached) = (self.calls(&name.machine), self.reached(at));
        let lacks = self.lacks(at);
        let cause = reached.map(|reached| reached.cause).unwrap_or_default();
        let mut remarks = self.remarks_of_graph(MethodIndex(at), cause, calls, lacks);
        let mut advice = None;
        if let Some(why) = lacks {
            let obstacle = match why {
                Obstacle::Dropped => self.dropped(MethodIndex(at)),
                _ => self.obstacle(&name.machine, why, cause),
            };
            remarks.insert(0, obstacle.says);
            advice = obstacle.advice;
        }
        Explained {
            machine: name.machine.clone(),
            display: name.display.clone(),
            standing: lacks.map_or(Standing::Probed(calls), |why| Standing::Unprobed(why, calls)),
            roots: self.roots(at),
            callers: Vec::new(),
            way: reached.map_or(Vec::new(), |_| self.way(MethodIndex(at))),
            found: reached.map(|it| (Some(it.trigger).filter(|_| !it.was_unnamed), it.found)),
            probed: reached.and_then(|reached| reached.probed),
            remarks,
            advice,
        }
    }

    /// What is to be said of a method of the call graph beside why it has no probes.
    fn remarks_of_graph(&self, at: MethodIndex, cause: Cause, calls: u64, lacks: Option<Obstacle>) -> Vec<String> {
        let mut remarks = Vec::new();
        if let Some(from) = self.profile.complete_from(at) {
            remarks.push(format!(
                "calls in the first {:.1} s may be missing: the program did not wait",
                from.as_secs_f64()
            ));
        }
        if self.profile.unseen.iter().any(|unseen| unseen.method == at) {
            remarks.push("it may have been called, and nobody saw it: its time is in those that call it".to_owned());
        }
        let by = cause.by.map(|by| &self.profile.methods[by.0]).filter(|by| self.calls(&by.machine) == 0);
        if let Some(by) = by.filter(|_| calls == 0 && lacks.is_none()) {
            remarks.push(format!("{}, which leads to it, was not called either", by.display));
        }
        if self.reach.is_none() {
            remarks.push("how it was reached is not known: an older Headwater recorded this".to_owned());
        }
        remarks
    }

    /// A method that is not in the call graph.
    fn of_others(&self, machine: &str, why: Obstacle, cause: Cause) -> Explained {
        let obstacle = self.obstacle(machine, why, cause);
        let display = shown(machine);
        let mut way = cause.by.map_or(Vec::new(), |by| self.way(by));
        if self.reach.is_some() && (cause.by.is_some() || cause.way != Way::Unknown) {
            way.push(self.step(machine.to_owned(), display.clone(), cause));
        }
        Explained {
            machine: machine.to_owned(),
            display,
            standing: Standing::Unprobed(why, 0),
            roots: cause.by.map_or(Vec::new(), |by| self.roots(by.0)),
            callers: Vec::new(),
            way,
            found: None,
            probed: None,
            remarks: vec![obstacle.says],
            advice: obstacle.advice,
        }
    }

    fn step(&self, machine: String, display: String, cause: Cause) -> Step {
        let through = cause.through.and_then(|at| self.reach?.types.get(at)).cloned();
        Step { machine, display, way: cause.way, through }
    }

    /// How a method of the call graph was reached, itself last.
    fn way(&self, method: MethodIndex) -> Vec<Step> {
        let mut way = Vec::new();
        let mut next = Some(method);
        while let Some(at) = next {
            let Some(reached) = self.reached(at.0) else { break };
            let name = &self.profile.methods[at.0];
            way.push(self.step(name.machine.clone(), name.display.clone(), reached.cause));
            next = reached.cause.by.filter(|_| !self.is_root(at));
        }
        way.reverse();
        way
    }

    fn is_root(&self, method: MethodIndex) -> bool {
        self.profile.roots.iter().any(|root| root.methods.contains(&method))
    }

    /// The root patterns that a method of the call graph is below.
    fn roots(&self, at: usize) -> Vec<String> {
        let mut first = MethodIndex(at);
        while let Some(by) = self.reached(first.0).and_then(|it| it.cause.by).filter(|_| !self.is_root(first)) {
            first = by;
        }
        let naming = self.profile.roots.iter().filter(|root| root.methods.contains(&first));
        let mut patterns: Vec<String> = naming.map(|root| root.pattern.clone()).collect();
        if let ([only], true) = (&self.profile.roots[..], patterns.is_empty()) {
            patterns.push(only.pattern.clone());
        }
        patterns
    }

    /// What can be said of a method that was not reached.
    fn unreached(&self, wanted: &MethodSelector) -> Result<Explained, Unexplained> {
        let pattern = wanted.to_string();
        let Some(reach) = self.reach else { return Err(Unexplained::Unrecorded(pattern)) };
        let is_jdks = JDK_PACKAGES.iter().any(|package| pattern.starts_with(package));
        let loaded: Vec<&str> =
            reach.classes.iter().map(String::as_str).filter(|class| wanted.means_class(class)).collect();
        let mut like: Vec<&str> = Vec::new();
        let Said { says, advice } = if reach.wanted.only_roots {
            Said::new(
                "nothing but what was named is instrumented here",
                "headwater profile instruments what it calls, too",
            )
        } else if is_jdks {
            let says = "it is the JDK's, and nothing that ran below a root calls it by this name";
            like =
                reach.others.iter().map(|other| other.machine.as_str()).filter(|it| wanted.means_method(it)).collect();
            Said { says: says.to_owned(), advice: obstacles::of_jdk(&reach.wanted) }
        } else if loaded.is_empty() {
            return Err(Unexplained::Unknown { near: self.near(wanted), pattern });
        } else {
            like = self.like(&pattern, &loaded);
            Said::new(
                "nothing that ran below a root leads to a method of that name, be it by a call in its code or by reflection",
                "is the name right, and is what calls it below the root? headwater report --view callers has what was called",
            )
        };
        let mut remarks = vec![says];
        if !like.is_empty() {
            let names: Vec<String> = like.iter().map(|machine| shown(machine)).collect();
            remarks.push(format!("found below the root: {}", listed(&names, SUGGESTIONS)));
        }
        if !loaded.is_empty() {
            remarks.push(format!("loaded: {}", listed(&loaded, MOST_CLASSES)));
        }
        Ok(Explained {
            machine: pattern.clone(),
            display: printable(&pattern).into_owned(),
            standing: Standing::Unreached,
            roots: Vec::new(),
            callers: Vec::new(),
            way: Vec::new(),
            found: None,
            probed: None,
            remarks,
            advice,
        })
    }

    /// Methods of these classes whose names are like one that none of them has, by their machine names.
    fn like(&self, pattern: &str, classes: &[&str]) -> Vec<&str> {
        let others = self.reach.into_iter().flat_map(|reach| &reach.others).map(|other| other.machine.as_str());
        let all = self.profile.methods.iter().map(|name| name.machine.as_str()).chain(others);
        let is_of_them = |machine: &&str| {
            let class = machine.split('(').next().and_then(|name| name.rsplit_once('.')).map(|(class, _)| class);
            class.is_some_and(|class| classes.contains(&class))
        };
        near_misses(pattern, all.filter(is_of_them), SUGGESTIONS)
    }

    /// Names that are like what nobody has.
    fn near(&self, wanted: &MethodSelector) -> Vec<String> {
        let Some(reach) = self.reach else { return Vec::new() };
        let pattern = wanted.to_string();
        let mut names: Vec<String> = self.profile.methods.iter().map(|name| name.display.clone()).collect();
        names.extend(reach.others.iter().map(|other| shown(&other.machine)));
        let head = pattern.split('(').next().unwrap_or(&pattern);
        // Of other packages a name that is the same.
        let (package, last) = (first_part(head), last_part(head));
        let may_be = |name: &&str| first_part(name) == package || last_part(name).eq_ignore_ascii_case(last);
        let methods = || near_misses(&pattern, names.iter().map(String::as_str).filter(may_be), SUGGESTIONS);
        let classes = |class: &str| {
            let may_be = |name: &&str| may_be(name) || last_part(name).eq_ignore_ascii_case(last_part(class));
            near_misses(class, reach.classes.iter().map(String::as_str).filter(may_be), SUGGESTIONS)
        };
        let near = match head.split_once("::").or_else(|| head.split_once('#')) {
            Some((class, _)) => Some(methods()).filter(|near| !near.is_empty()).unwrap_or_else(|| classes(class)),
            // A class, a package or a method.
            None => Some(classes(head)).filter(|near| !near.is_empty()).unwrap_or_else(methods),
        };
        near.into_iter().map(|name| printable(name).into_owned()).collect()
    }
}

/// Of `a.b.C::m` and `a.b.C.m(int)`, `a`.
fn first_part(name: &str) -> &str {
    name.split(['.', ':', '#', '(']).next().unwrap_or(name)
}

/// Of them, `m`.
fn last_part(name: &str) -> &str {
    let head = name.split('(').next().unwrap_or(name);
    head.rsplit(['.', ':', '#']).next().unwrap_or(head)
}

/// The first names, and how many there are more.
fn listed(names: &[impl AsRef<str>], most: usize) -> String {
    let first: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    let more = names.len() - first.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    first.join(", ") + &more
}

/// A method's name for people.
fn shown(machine: &str) -> String {
    let (name, descriptor) = machine.split_at(machine.find('(').unwrap_or(machine.len()));
    let display = name.rsplit_once('.').map(|(class, method)| display_name(class, method, descriptor));
    printable(&display.unwrap_or_else(|| machine.to_owned())).into_owned()
}

#[cfg(test)]
mod tests;
