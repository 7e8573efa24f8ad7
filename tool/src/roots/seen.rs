//! What samples say of methods: how much each holds, and which hold the same.

use rustc_hash::FxHashMap;

use super::held::{By, Columns, Held, OfThread, Weights};
use super::names::{Names, Whose, could_be_named, gets_probes, is_generic, worth};
use crate::pattern::pattern_of;
use crate::profile::{MethodName, Profile, Tree};

/// What holds less is no candidate.
const LEAST_SHARE: f64 = 0.05;
/// So many are looked at; a bit each.
const MOST: usize = 512;
const WORDS: usize = MOST / 64;
/// What holds less of the CPU time than this part does less than work while threads wait in it: its waits count as much less.
const WORKS: f64 = 0.02;
/// Methods that share so much of what either holds are a chain of calls.
const SAME: f64 = 0.95;
/// Of a chain of calls so many are timed, from its outermost to its innermost, each worth less than the one before.
const OF_A_CHAIN: usize = 4;
const NEXT: f64 = 0.75;
/// What runs so much of its time itself is mostly called so often that its probes would cost the program more than they tell: such methods are
/// timed only where there are so few others.
const LEAF: f64 = 0.5;
const FEW: usize = 4;

/// A method that was seen running or waiting, or having called one that did.
#[derive(Clone, Debug)]
pub struct Method {
    /// Its names.
    pub name: MethodName,
    /// What it holds with what it calls; of a recursion the outermost call.
    pub held: Held,
    /// CPU time without what it calls.
    pub own_ns: u64,
    /// The part of its CPU time in code that an exact profile has probes in.
    pub probed_ns: u64,
    /// How much it is of all that is looked for.
    pub share: f64,
    /// How many calls are above it, in the mean of that.
    pub depth: f64,
}

impl Method {
    fn is_leaf(&self) -> bool {
        self.held.cpu_ns > 0 && self.own_ns as f64 >= LEAF * self.held.cpu_ns as f64
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
    pub(super) whole: Held,
    /// CPU time of the process, and of the JVM's own threads.
    pub(super) process_ns: u64,
    pub(super) jvms_ns: u64,
    /// Threads that only waited.
    pub(super) still: usize,
    /// Whether anything is known of allocations.
    pub(super) has_allocations: bool,
    /// Of each pair what both hold, as a part of all, `a * n + b`.
    pairs: Vec<f64>,
}

/// A thread's tree, and what its nodes hold themselves.
type Course<'p> = (&'p Tree, OfThread);

impl Seen {
    pub(super) fn of(profile: &Profile, by: By) -> Seen {
        let columns = Columns::of(profile);
        let has_threads = !profile.threads.is_empty();
        let trees = profile.threads.iter().map(|thread| &thread.tree);
        let courses: Vec<Course<'_>> = trees
            .chain((!has_threads).then_some(&profile.merged))
            .map(|tree| (tree, columns.of_thread(tree)))
            .collect();
        let (mut whole, mut process_ns, mut jvms_ns) = (Held::default(), 0, 0);
        for (node, held) in courses.iter().flat_map(|(tree, course)| tree.nodes.iter().zip(&course.own)) {
            let machine = &profile.methods[node.method.0].machine;
            process_ns += held.cpu_ns;
            jvms_ns += if machine.starts_with("[JVM:") { held.cpu_ns } else { 0 };
            if !machine.starts_with('[') {
                whole.add(held);
            }
        }
        let weights = Weights::of(by, &whole);
        let mut methods: Vec<Method> = sums(profile, &courses, &weights)
            .into_iter()
            .filter(|method| could_be_named(&method.name.machine))
            .filter_map(|mut method| {
                method.depth /= weights.share(&method.held, 1.0).max(f64::MIN_POSITIVE);
                let works = method.held.cpu_ns as f64 / whole.cpu_ns.max(1) as f64 / WORKS;
                method.share = weights.share(&method.held, if whole.cpu_ns > 0 { works.min(1.0) } else { 1.0 });
                (method.share >= LEAST_SHARE).then_some(method)
            })
            .collect();
        methods.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.depth.total_cmp(&b.depth)));
        methods.truncate(MOST);
        let pairs = pairs(profile, &courses, &weights, &methods);
        let still = courses.iter().filter(|(_, course)| course.is_still).count();
        let has_allocations = columns.has_allocations();
        Seen { methods, whole, process_ns, jvms_ns, still, has_allocations, pairs }
    }

    /// What two methods hold both, as a part of all; of one and the same, what it holds.
    pub(super) fn together(&self, a: usize, b: usize) -> f64 {
        self.pairs[a * self.methods.len() + b]
    }

    /// The methods that are worth timing, at most so many: some of each chain of calls, what is most likely to be chosen first.
    pub(super) fn to_time(&self, names: &Names, most: usize) -> Vec<usize> {
        let mut chains: Vec<Vec<usize>> = Vec::new();
        for method in 0..self.methods.len() {
            let is_same = |chain: &&mut Vec<usize>| {
                let larger = self.together(chain[0], chain[0]).max(self.together(method, method));
                self.together(chain[0], method) >= SAME * larger
            };
            match chains.iter_mut().find(is_same) {
                Some(chain) => chain.push(method),
                None => chains.push(vec![method]),
            }
        }
        let mut ranked: Vec<(f64, usize)> = Vec::new();
        for chain in &mut chains {
            chain.sort_by(|a, b| self.methods[*a].depth.total_cmp(&self.methods[*b].depth));
            let machine = |method: &usize| self.methods[*method].name.machine.as_str();
            let (generic, named): (Vec<usize>, Vec<usize>) = chain
                .iter()
                .filter(|method| !self.methods[**method].is_leaf())
                .partition(|method| is_generic(machine(method)));
            // The program's own first: who reads the list knows them.
            let (libraries, own): (Vec<usize>, Vec<usize>) =
                named.iter().partition(|method| names.whose(machine(method)) == Whose::Library);
            let mut of_chain = spread(&own, OF_A_CHAIN);
            of_chain.extend(spread(&libraries, OF_A_CHAIN.saturating_sub(own.len()).max(1)));
            if of_chain.is_empty() {
                of_chain = spread(&generic, OF_A_CHAIN / 2);
            }
            let ranks = std::iter::successors(Some(1.0), |worth| Some(worth * NEXT));
            ranked.extend(of_chain.into_iter().zip(ranks).map(|(method, rank)| {
                let it = &self.methods[method];
                (rank * it.share * worth(names, &it.name.machine, &it.held), method)
            }));
        }
        ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let mut chosen: Vec<usize> = ranked.into_iter().map(|(_, method)| method).collect();
        if chosen.len() < FEW {
            let leaves = (0..self.methods.len()).filter(|method| self.methods[*method].is_leaf());
            chosen.extend(leaves.take(FEW));
        }
        chosen.truncate(most);
        chosen
    }
}

/// What each method holds. Classes of the same name, of different loaders, are one.
fn sums(profile: &Profile, courses: &[Course<'_>], weights: &Weights) -> Vec<Method> {
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
    let mut path = Vec::new();
    for (tree, course) in courses {
        for (at, held) in course.own.iter().enumerate().filter(|(_, held)| **held != Held::default()) {
            path.clear();
            path.extend(std::iter::successors(Some(at), |at| tree.nodes[*at].caller().map(|above| above.0)));
            let innermost = tree.nodes[at].method.0;
            let is_probed = gets_probes(&profile.methods[innermost].machine);
            let share = weights.share(held, 1.0);
            let mut met: Vec<usize> = Vec::with_capacity(path.len());
            for (depth, method) in path.iter().rev().map(|at| tree.nodes[*at].method.0).enumerate() {
                if met.contains(&number[method]) {
                    continue;
                }
                met.push(number[method]);
                let new = || Method {
                    name: profile.methods[method].clone(),
                    held: Held::default(),
                    own_ns: 0,
                    probed_ns: 0,
                    share: 0.0,
                    depth: 0.0,
                };
                let known = all[number[method]].get_or_insert_with(new);
                known.held.add(held);
                known.probed_ns += if is_probed { held.cpu_ns } else { 0 };
                known.depth += depth as f64 * share;
            }
            if let Some(known) = &mut all[number[innermost]] {
                known.own_ns += held.cpu_ns;
            }
        }
    }
    all.into_iter().flatten().collect()
}

fn pairs(profile: &Profile, courses: &[Course<'_>], weights: &Weights, methods: &[Method]) -> Vec<f64> {
    let places: FxHashMap<&str, usize> =
        methods.iter().enumerate().map(|(at, method)| (method.name.machine.as_str(), at)).collect();
    let place: Vec<Option<usize>> =
        profile.methods.iter().map(|name| places.get(name.machine.as_str()).copied()).collect();
    let mut pairs = vec![0.0; methods.len() * methods.len()];
    for (tree, course) in courses {
        let mut on_path: Vec<[u64; WORDS]> = Vec::with_capacity(tree.nodes.len());
        for (node, held) in tree.nodes.iter().zip(&course.own) {
            let mut bits = node.caller().map_or([0; WORDS], |above| on_path[above.0]);
            if let Some(place) = place[node.method.0] {
                bits[place / 64] |= 1 << (place % 64);
            }
            on_path.push(bits);
            let share = weights.share(held, 1.0);
            if share > 0.0 {
                let set: Vec<usize> = (0..methods.len()).filter(|bit| bits[bit / 64] >> (bit % 64) & 1 == 1).collect();
                for a in &set {
                    set.iter().for_each(|b| pairs[a * methods.len() + b] += share);
                }
            }
        }
    }
    pairs
}

/// So many of them, from the first to the last.
fn spread(all: &[usize], most: usize) -> Vec<usize> {
    if all.len() <= most {
        return all.to_vec();
    }
    (0..most).map(|at| all[at * (all.len() - 1) / (most - 1).max(1)]).collect()
}

/// What was seen of made-up programs.
#[cfg(test)]
pub(super) mod testing {
    use headwater_profile::build::Builder;

    use super::*;
    use crate::profile::{ALLOCATED, Extent, Metric, Unit};

    /// A stack of methods, the outermost first, and what its innermost holds: CPU time, waits, waits for work, bytes.
    pub(in crate::roots) type Stack<'s> = (&'s [&'s str], [u64; 4]);

    pub(in crate::roots) fn seen(by: By, stacks: &[Stack<'_>]) -> Seen {
        let mut builder = Builder::default();
        let metric = |id, unit| Metric::counted(id, id, unit, Extent::OwnAndTotal, "");
        let times = ["cpu", "parked", "idle"].map(|id| builder.described(metric(id, Unit::Nanoseconds)));
        let allocated = builder.described(metric(ALLOCATED, Unit::Bytes));
        let thread = builder.thread(Some("worker"));
        for (stack, values) in stacks {
            let methods: Vec<_> = stack
                .iter()
                .map(|name| match name.starts_with('[') {
                    true => builder.method(name, name),
                    false => builder.method(&format!("{name}()V"), &format!("{name}()")),
                })
                .collect();
            let values = times.into_iter().chain([allocated]).zip(*values).filter(|(_, value)| *value > 0);
            builder.add_stack(thread, methods, values);
        }
        Seen::of(&builder.finish("com.acme.Main", ""), by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_chain_is_looked_at_from_end_to_end() {
        assert_eq!(spread(&[1, 2, 3], 8), [1, 2, 3]);
        assert_eq!(spread(&(0..100).collect::<Vec<_>>(), 4), [0, 33, 66, 99]);
        assert_eq!(spread(&[1, 2], 1), [1]);
    }

    #[test]
    fn of_each_chain_some_are_timed_the_programs_own_first_and_no_leaves() {
        let (pool, run, dispatch) =
            ("org.apache.Pool.process", "com.acme.Worker.run", "org.springframework.Mvc.doDispatch");
        let (handle, row) = ("com.acme.Api.handle", "com.acme.Row.value");
        let seen = testing::seen(
            By::Cpu,
            &[
                (&[pool, run, dispatch, handle], [25, 0, 0, 0]),
                (&[pool, run, dispatch, handle, row], [35, 0, 0, 0]),
                (&[pool, run, dispatch], [40, 0, 0, 0]),
            ],
        );
        let timed = |most| -> Vec<String> {
            let chosen = seen.to_time(&Names::of("com.acme.Main"), most);
            chosen.into_iter().map(|method| seen.methods[method].name.display.clone()).collect()
        };
        let all = timed(16);
        assert!(!all.contains(&format!("{run}()")), "its name says nothing: {all:?}");
        assert_eq!(all[..2], [format!("{pool}()"), format!("{handle}()")], "{all:?}");
        assert_eq!(timed(1).len(), 1);
    }
}
