//! Which calls may be missing.

use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::{Basis, MethodIndex, Profile, Tree, Wait};

/// So many samples of the undisturbed code tell what part of it was not seen.
const ENOUGH_SAMPLES: u64 = 300;
/// Of so many methods of one name, in classes of as many loaders, each is called as often as the others: such classes are made anew for each use.
const ALIKE: u64 = 8;

/// A method some of whose calls were not seen, because the program did not wait until it was instrumented: its counts are at least what they say. It
/// may have none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtLeast {
    /// The method.
    pub method: MethodIndex,
    /// Since when it may have been called, in time of recording.
    pub since: Duration,
    /// From when its counts are complete.
    pub until: Duration,
    /// If it has none: recorded methods that call it, as far as that is known, with how often one of their calls is expected to.
    #[serde(default)]
    pub callers: Vec<(MethodIndex, f64)>,
}

/// A method that may have been called and never was instrumented: it is in a tree only where undisturbed code was sampled in it, without calls, and so
/// is what only it calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unseen {
    /// The method.
    pub method: MethodIndex,
    /// Recorded methods that call it, as far as that is known, with how often one of their calls is expected to.
    pub callers: Vec<(MethodIndex, f64)>,
}

/// What threads are held up for that look at their stacks, in calls that had begun before recording.
pub const OPEN_CALLS: &str = "open calls";
/// Who has looked for so long does it for a twentieth of the time only (`HeadwaterV1Open`), in ns.
const LOOKED_AT_ONCE_NS: u64 = 300_000_000;

/// Whether calls that had begun before recording may have made some that were not recorded.
pub fn are_open_calls_in_part(waits: &[Wait]) -> bool {
    waits.iter().any(|wait| wait.reason == OPEN_CALLS && wait.duration_ns > LOOKED_AT_ONCE_NS)
}

impl Profile {
    /// Whether every call that a thread made in a root was counted, as far as that is known.
    pub fn are_counts_exact(&self) -> bool {
        self.events.lost == 0 && self.discovery.late == 0 && !are_open_calls_in_part(&self.waits)
    }

    /// How many of the methods that it calls never were instrumented, by the machine name of each recorded method of which that is known.
    pub fn unseen_callees(&self) -> FxHashMap<&str, usize> {
        let mut callees: FxHashMap<&str, usize> = FxHashMap::default();
        for (caller, _) in self.unseen.iter().flat_map(|unseen| &unseen.callers) {
            *callees.entry(&self.methods[caller.0].machine).or_default() += 1;
        }
        callees
    }

    /// Whether calls of a method may be missing; if so, from when its counts are complete.
    pub fn complete_from(&self, method: MethodIndex) -> Option<Duration> {
        let found = self.at_least.binary_search_by_key(&method, |at_least| at_least.method).ok()?;
        Some(self.at_least[found].until)
    }

    /// For each node of a tree of this profile: whether calls of it may be missing there, its own or its callers'.
    pub fn incomplete_nodes(&self, tree: &Tree) -> Vec<bool> {
        if self.at_least.is_empty() && self.unseen.is_empty() {
            return vec![false; tree.nodes.len()];
        }
        let late = self.at_least.iter().map(|late| late.method);
        let missed = late.chain(self.unseen.iter().map(|unseen| unseen.method));
        let missed: FxHashSet<&str> = missed.map(|method| &*self.methods[method.0].machine).collect();
        let mut incomplete: Vec<bool> = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let below = node.parent.is_some_and(|parent| incomplete[parent.0]);
            incomplete.push(below || missed.contains(&*self.methods[node.method.0].machine));
        }
        incomplete
    }

    /// What part of all calls may be missing, from 0 to 1: as if methods had been called as often before they were instrumented as after. Those that were
    /// not called then: as often as many of their name are, or, with those that never were instrumented, as their callers' code suggests. That code says
    /// what can be called, of hundreds of targets each as if it were the only one; so it is no more than if a call took them as long as the others, where
    /// samples tell what they took.
    pub fn missing_share(&self) -> f64 {
        if self.at_least.is_empty() && self.unseen.is_empty() {
            return 0.0;
        }
        let mut seen = vec![0; self.methods.len()];
        for node in &self.merged.nodes {
            let seen: &mut u64 = &mut seen[node.method.0];
            *seen = seen.saturating_add(node.calls);
        }
        let expected = |callers: &[(MethodIndex, f64)]| -> f64 {
            callers.iter().map(|(caller, calls)| seen[caller.0] as f64 * *calls).sum()
        };
        let alike = self.calls_alike(&seen);
        let (mut by_calls, mut by_code) = (0.0, 0.0);
        for it in &self.at_least {
            let calls = seen[it.method.0] as f64;
            let after = self.duration.saturating_sub(it.until).as_secs_f64();
            let before = it.until.saturating_sub(it.since).as_secs_f64();
            match alike.get(&*self.methods[it.method.0].machine) {
                _ if calls > 0.0 => by_calls += if after > 0.0 { calls * before / after } else { 0.0 },
                Some(each) => by_calls += each,
                None if before > 0.0 => by_code += expected(&it.callers) * before / self.duration.as_secs_f64(),
                None => {}
            }
        }
        by_code += self.unseen.iter().map(|unseen| expected(&unseen.callers)).sum::<f64>();
        let recorded = self.merged.calls() as f64;
        let sampled = self.sampled_part().map_or(f64::INFINITY, |part| recorded * part / (1.0 - part));
        let missing = by_calls + by_code.min(sampled);
        let all = missing + recorded;
        if all > 0.0 { missing / all } else { 0.0 }
    }

    /// How often methods of one name are called each, where there are many: by their names, of those that have none of their own.
    fn calls_alike(&self, seen: &[u64]) -> FxHashMap<&str, f64> {
        let uncalled = self.at_least.iter().filter(|late| seen[late.method.0] == 0);
        let mut sums: FxHashMap<&str, (f64, u64)> =
            uncalled.map(|late| (&*self.methods[late.method.0].machine, (0.0, 0))).collect();
        if sums.is_empty() {
            return FxHashMap::default();
        }
        for (method, calls) in self.methods.iter().zip(seen).filter(|(_, calls)| **calls > 0) {
            if let Some((sum, methods)) = sums.get_mut(&*method.machine) {
                (*sum, *methods) = (*sum + *calls as f64, *methods + 1);
            }
        }
        let many = sums.into_iter().filter(|(_, (_, methods))| *methods >= ALIKE);
        many.map(|(name, (sum, methods))| (name, sum / methods as f64)).collect()
    }

    /// What part of the time was in methods that have no calls anywhere, by samples; a few make none. Where a method was sampled below others than
    /// its calls are, they are not missing. What samples have chosen has no such methods among them, so it is as much as was chosen by one alone.
    fn sampled_part(&self) -> Option<f64> {
        let Basis { samples, absent, by_chance, .. } = self.basis;
        (samples >= ENOUGH_SAMPLES && absent < samples).then(|| absent.max(by_chance) as f64 / samples as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{MethodName, Node, NodeIndex};

    /// The root, 10 times; `late` below it, 90 times since 1 s of 10, and `leaf` below that.
    fn profile() -> Profile {
        let name = |name: &str| MethodName { machine: format!("C.{name}()V"), display: format!("C.{name}()") };
        let node = |method, parent: Option<usize>, calls| Node {
            parent: parent.map(NodeIndex),
            calls,
            ..Node::empty(MethodIndex(method))
        };
        Profile {
            methods: ["root", "late", "leaf"].map(name).to_vec(),
            duration: Duration::from_secs(10),
            merged: Tree::of(vec![node(0, None, 10), node(1, Some(0), 90), node(2, Some(1), 0)]),
            at_least: vec![AtLeast {
                method: MethodIndex(1),
                since: Duration::ZERO,
                until: Duration::from_secs(1),
                callers: Vec::new(),
            }],
            ..Profile::default()
        }
    }

    #[test]
    fn what_is_called_by_a_method_that_was_not_seen_is_incomplete_there_too() {
        let profile = profile();
        assert_eq!(profile.incomplete_nodes(&profile.merged), [false, true, true]);
        let never = Unseen { method: MethodIndex(2), callers: Vec::new() };
        let sampled = Profile { at_least: Vec::new(), unseen: vec![never], ..profile.clone() };
        assert_eq!(sampled.incomplete_nodes(&sampled.merged), [false, false, true], "it was only sampled");
        assert_eq!(profile.complete_from(MethodIndex(2)), None, "elsewhere its calls are all there");
    }

    #[test]
    fn of_a_class_that_each_loader_has_for_itself_all_are_incomplete_if_one_is() {
        let mut profile = profile();
        // Nine more of that name: each is called once, but the last not any more.
        let others = (0..9).map(|_| profile.methods[1].clone()).collect::<Vec<_>>();
        profile.methods.extend(others);
        let mut nodes = profile.merged.nodes.clone();
        nodes[1].calls = 1;
        nodes.extend((3..11).map(|method| Node {
            parent: Some(NodeIndex(0)),
            calls: 1,
            ..Node::empty(MethodIndex(method))
        }));
        profile.merged = Tree::of(nodes);
        profile.at_least[0].method = MethodIndex(11);
        let incomplete = profile.incomplete_nodes(&profile.merged);
        assert_eq!(incomplete, [[false].as_slice(), &[true; 10]].concat());
        let missing = profile.missing_share();
        assert!((missing - 1.0 / 20.0).abs() < 1e-9, "one call beside nine of its name and ten of the root: {missing}");
        profile.at_least.clear();
        let never = Unseen { method: MethodIndex(11), callers: Vec::new() };
        let unseen = Profile { unseen: vec![never], ..profile };
        assert_eq!(unseen.incomplete_nodes(&unseen.merged), incomplete);
        assert!(unseen.missing_share().is_sign_positive());
    }

    #[test]
    fn missing_calls_are_estimated_by_how_often_a_method_is_called_later() {
        assert!((profile().missing_share() - 10.0 / 110.0).abs() < 1e-9);
        assert_eq!(Profile { at_least: Vec::new(), ..profile() }.missing_share(), 0.0);
    }

    #[test]
    fn what_was_not_called_any_more_is_missing_as_often_as_its_callers_called_it_until_then() {
        let mut profile = profile();
        profile.methods.push(profile.methods[0].clone());
        profile.methods[3].machine = "C.once()V".to_owned();
        let callers = vec![(MethodIndex(0), 0.5), (MethodIndex(1), 1.0)];
        profile.at_least = vec![AtLeast {
            method: MethodIndex(3),
            since: Duration::from_secs(1),
            until: Duration::from_secs(3),
            callers,
        }];
        let missing = profile.missing_share();
        assert!((missing - 19.0 / 119.0).abs() < 1e-9, "a fifth of 5 and 90 calls: {missing}");
        profile.basis = Basis { samples: 300, absent: 15, ..Basis::default() };
        assert!((profile.missing_share() - 0.05).abs() < 1e-9, "samples say that it is less");
    }

    #[test]
    fn what_never_was_instrumented_is_missing_as_often_as_its_callers_call_it() {
        let unseen = |method, callers: &[(usize, f64)]| Unseen {
            method: MethodIndex(method),
            callers: callers.iter().map(|(caller, calls)| (MethodIndex(*caller), *calls)).collect(),
        };
        let unseen = vec![unseen(2, &[(1, 0.5), (0, 1.0)]), unseen(2, &[(1, 0.5)]), unseen(2, &[])];
        let profile = Profile { at_least: Vec::new(), unseen, ..profile() };
        assert!((profile.missing_share() - 100.0 / 200.0).abs() < 1e-9, "{}", profile.missing_share());
        let mut sampled = Profile { basis: Basis { samples: 300, absent: 15, ..Basis::default() }, ..profile.clone() };
        let missing = sampled.missing_share();
        assert!((missing - 0.05).abs() < 1e-9, "a twentieth of the time was in what has no calls: {missing}");
        sampled.basis.by_chance = 30;
        assert!((sampled.missing_share() - 0.1).abs() < 1e-9, "one in ten samples has chosen what it was in");
        sampled.basis.samples = 299;
        assert!((sampled.missing_share() - 0.5).abs() < 1e-9, "{}", sampled.missing_share());
        assert_eq!(profile.unseen_callees(), FxHashMap::from_iter([("C.root()V", 1), ("C.late()V", 2)]));
    }
}
