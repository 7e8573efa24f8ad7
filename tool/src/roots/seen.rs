//! What samples say of methods: how much of the CPU time each holds, and which hold the same.

use rustc_hash::FxHashMap;

use crate::pattern::{JDK_PACKAGES, pattern_of};
use crate::profile::{MethodName, NodeIndex, Profile};

/// What holds less is no candidate.
const LEAST_SHARE: f64 = 0.05;
/// So many are looked at; a bit each.
const MOST: usize = 512;
const WORDS: usize = MOST / 64;
/// Methods that share so much of what either holds are a chain of calls.
const SAME: f64 = 0.95;
/// Of a chain of calls so many are timed, from its outermost to its innermost.
const OF_A_CHAIN: usize = 4;
/// What runs so much of its time itself is mostly called so often that its probes would cost the program more than they tell: such methods are
/// timed only where there are so few others.
const LEAF: f64 = 0.5;
const FEW: usize = 4;

/// A method that was seen running, or waiting for one that did.
#[derive(Clone, Debug)]
pub struct Method {
    /// Its names.
    pub name: MethodName,
    /// CPU time with what it calls; of a recursion the outermost call's.
    pub cpu_ns: u64,
    /// Without.
    pub own_ns: u64,
    /// How many calls are above it, in the mean of that time.
    pub depth: f64,
}

impl Method {
    fn is_leaf(&self) -> bool {
        self.own_ns as f64 >= LEAF * self.cpu_ns as f64
    }

    /// As a pattern names it: `a.b.C::m(int, String)`.
    pub fn pattern(&self) -> String {
        pattern_of(&self.name.display).unwrap_or_else(|| self.name.display.clone())
    }
}

/// All of them.
pub(super) struct Seen {
    /// Those that could be roots, the largest first.
    pub(super) methods: Vec<Method>,
    /// What was seen in Java code.
    pub(super) whole_ns: u64,
    /// What the process took.
    pub(super) process_ns: u64,
    /// Of each pair the CPU time that has both, `a * n + b`.
    pairs: Vec<u64>,
}

impl Seen {
    pub(super) fn of(profile: &Profile) -> Seen {
        let tree = &profile.merged;
        let column = profile.counted.iter().position(|metric| metric.id == "cpu").and_then(|at| tree.counted.get(at));
        let own = |at: usize| column.map_or(0, |column| column.at(NodeIndex(at)).own);
        let process_ns = (0..tree.nodes.len()).map(own).sum();
        // Classes of the same name, of different loaders, are one.
        let mut numbers: FxHashMap<&str, usize> = FxHashMap::default();
        let number: Vec<usize> = profile
            .methods
            .iter()
            .map(|name| {
                let next = numbers.len();
                *numbers.entry(&name.machine).or_insert(next)
            })
            .collect();
        let mut all: Vec<Option<Method>> = vec![None; numbers.len()];
        let mut whole_ns = 0;
        let mut path = Vec::new();
        for (at, node) in tree.nodes.iter().enumerate() {
            let own_ns = own(at);
            if own_ns == 0 {
                continue;
            }
            path.clear();
            path.extend(std::iter::successors(Some(at), |at| tree.nodes[*at].caller().map(|above| above.0)));
            let names = path.iter().rev().map(|at| tree.nodes[*at].method.0).enumerate();
            let is_java = !profile.methods[node.method.0].machine.starts_with('[');
            whole_ns += if is_java { own_ns } else { 0 };
            let mut met: Vec<usize> = Vec::with_capacity(path.len());
            for (depth, method) in names {
                if met.contains(&number[method]) {
                    continue;
                }
                met.push(number[method]);
                let new = || Method { name: profile.methods[method].clone(), cpu_ns: 0, own_ns: 0, depth: 0.0 };
                let known = all[number[method]].get_or_insert_with(new);
                known.cpu_ns += own_ns;
                known.depth += depth as f64 * own_ns as f64;
            }
            if let Some(known) = &mut all[number[node.method.0]] {
                known.own_ns += own_ns;
            }
        }
        let is_large = |method: &Method| method.cpu_ns as f64 >= LEAST_SHARE * whole_ns as f64;
        let mut methods: Vec<Method> = all
            .into_iter()
            .flatten()
            .filter(|method| is_large(method) && could_be_named(&method.name.machine))
            .collect();
        methods.iter_mut().for_each(|method| method.depth /= method.cpu_ns.max(1) as f64);
        methods.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then(a.depth.total_cmp(&b.depth)));
        methods.truncate(MOST);
        let places: FxHashMap<&str, usize> =
            methods.iter().enumerate().map(|(at, method)| (method.name.machine.as_str(), at)).collect();
        let mut pairs = vec![0; methods.len() * methods.len()];
        let mut on_path: Vec<[u64; WORDS]> = Vec::with_capacity(tree.nodes.len());
        for (at, node) in tree.nodes.iter().enumerate() {
            let mut bits = node.caller().map_or([0; WORDS], |above| on_path[above.0]);
            if let Some(place) = places.get(profile.methods[node.method.0].machine.as_str()) {
                bits[place / 64] |= 1 << (place % 64);
            }
            on_path.push(bits);
            let own_ns = own(at);
            if own_ns > 0 {
                let set: Vec<usize> = (0..methods.len()).filter(|bit| bits[bit / 64] >> (bit % 64) & 1 == 1).collect();
                for a in &set {
                    set.iter().for_each(|b| pairs[a * methods.len() + b] += own_ns);
                }
            }
        }
        Seen { methods, whole_ns, process_ns, pairs }
    }

    /// The CPU time that two methods hold both.
    pub(super) fn together(&self, a: usize, b: usize) -> u64 {
        self.pairs[a * self.methods.len() + b]
    }

    /// The methods that are worth timing, at most so many: some of each chain of calls, the largest chains first.
    pub(super) fn to_time(&self, most: usize) -> Vec<usize> {
        let mut chains: Vec<Vec<usize>> = Vec::new();
        for method in 0..self.methods.len() {
            let is_same = |chain: &&mut Vec<usize>| {
                let larger = self.methods[chain[0]].cpu_ns.max(self.methods[method].cpu_ns);
                self.together(chain[0], method) as f64 >= SAME * larger as f64
            };
            match chains.iter_mut().find(is_same) {
                Some(chain) => chain.push(method),
                None => chains.push(vec![method]),
            }
        }
        let mut chosen = Vec::new();
        for chain in &mut chains {
            chain.sort_by(|a, b| self.methods[*a].depth.total_cmp(&self.methods[*b].depth));
            let (own, others): (Vec<usize>, Vec<usize>) = chain
                .iter()
                .filter(|method| !self.methods[**method].is_leaf())
                .partition(|method| !super::choice::is_library(&self.methods[**method].name.machine));
            // The program's own first: who reads the list knows them.
            chosen.extend(spread(&own, OF_A_CHAIN));
            chosen.extend(spread(&others, OF_A_CHAIN.saturating_sub(own.len()).max(1)));
        }
        if chosen.len() < FEW {
            let leaves = (0..self.methods.len()).filter(|method| self.methods[*method].is_leaf());
            chosen.extend(leaves.take(FEW));
        }
        chosen.truncate(most);
        chosen
    }
}

/// So many of them, from the first to the last.
fn spread(all: &[usize], most: usize) -> Vec<usize> {
    if all.len() <= most {
        return all.to_vec();
    }
    (0..most).map(|at| all[at * (all.len() - 1) / (most - 1).max(1)]).collect()
}

/// Whether a method can be a root that people would name: not the JDK's, nor of a class that is made up while the program runs.
fn could_be_named(machine: &str) -> bool {
    const MADE_UP: [&str; 7] =
        ["$$Lambda", "$Proxy", "LambdaForm", "$$SpringCGLIB", "$$EnhancerBy", "$ByteBuddy", "GeneratedMethodAccessor"];
    let name = machine.split('(').next().unwrap_or(machine);
    !name.starts_with('[')
        && !JDK_PACKAGES.iter().any(|package| name.starts_with(package))
        && !MADE_UP.iter().any(|part| name.contains(part))
        && !name.contains('/')
        && !name.ends_with("<clinit>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_up_at_run_time_is_no_root() {
        for name in ["com.acme.Shop.main([Ljava/lang/String;)V", "a.B$C.lambda$x$0()V", "org.x.Y.<init>()V"] {
            assert!(could_be_named(name), "{name}");
        }
        for name in [
            "java.lang.Thread.run()V",
            "a.B$$Lambda.0x0000/123.run()V",
            "jdk.proxy2.$Proxy7.m()V",
            "[JVM: GC Thread]",
            "a.B.<clinit>()V",
        ] {
            assert!(!could_be_named(name), "{name}");
        }
    }

    #[test]
    fn a_long_chain_is_looked_at_from_end_to_end() {
        assert_eq!(spread(&[1, 2, 3], 8), [1, 2, 3]);
        assert_eq!(spread(&(0..100).collect::<Vec<_>>(), 4), [0, 33, 66, 99]);
        assert_eq!(spread(&[1, 2], 1), [1]);
    }
}
