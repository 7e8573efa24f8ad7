//! How often methods that were seen are entered, and how long their calls take.

use rustc_hash::FxHashMap;

use super::names::is_generic;
use super::seen::Seen;
use crate::profile::Profile;

/// What is called less often within the time is not "again and again".
pub(super) const LEAST_CALLS: u64 = 2;
/// What holds this part of the largest share holds much.
const ENOUGH: f64 = 0.4;

/// How often a method was entered, and how long its calls took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// Which.
    pub method: usize,
    /// Calls that ended, recursive ones counted once.
    pub calls: u64,
    /// The same.
    pub per_second: f64,
    /// Their mean duration.
    pub mean_ns: f64,
    /// 99 of 100 were not longer.
    pub p99_ns: u64,
}

impl Timed {
    /// Adds those of another method, of the same name.
    pub(super) fn add(&mut self, other: &Timed) {
        let calls = self.calls + other.calls;
        let sum = self.mean_ns * self.calls as f64 + other.mean_ns * other.calls as f64;
        self.mean_ns = sum / calls.max(1) as f64;
        self.calls = calls;
        self.per_second += other.per_second;
        self.p99_ns = self.p99_ns.max(other.p99_ns);
    }
}

/// Whether something that holds much, and has a name that says something, was entered again and again, and no other such method is about to be.
pub(super) fn is_enough(seen: &Seen, chosen: &[usize], profile: &Profile) -> bool {
    let share = |method: usize| seen.methods[method].share;
    let largest = chosen.iter().map(|method| share(*method)).fold(0.0, f64::max);
    let is_large =
        |it: &&Timed| share(it.method) >= ENOUGH * largest && !is_generic(&seen.methods[it.method].name.machine);
    let timed = timed(seen, chosen, profile);
    let mut large = timed.iter().filter(is_large).map(|it| it.calls).peekable();
    large.peek().is_some() && large.all(|calls| calls >= LEAST_CALLS)
}

/// What the timing says of the methods that were chosen. Of one that was only seen waiting, a dump has no parameters: it is all of its name.
pub(super) fn timed(seen: &Seen, chosen: &[usize], profile: &Profile) -> Vec<Timed> {
    let by_name: FxHashMap<&str, usize> =
        chosen.iter().map(|method| (seen.methods[*method].name.machine.as_str(), *method)).collect();
    let seconds = profile.duration.as_secs_f64().max(1e-3);
    let mut timed: Vec<Timed> = Vec::new();
    for known in &profile.statistics {
        let machine = profile.methods[known.method.0].machine.as_str();
        let name = machine.split('(').next().unwrap_or(machine);
        let Some(method) = by_name.get(machine).or_else(|| by_name.get(name)).copied() else { continue };
        let (calls, per_second) = (known.count, known.count as f64 / seconds);
        let new = Timed { method, calls, per_second, mean_ns: known.mean_ns, p99_ns: known.p99_ns };
        match timed.iter_mut().find(|it| it.method == method) {
            Some(it) => it.add(&new),
            None => timed.push(new),
        }
    }
    timed
}
