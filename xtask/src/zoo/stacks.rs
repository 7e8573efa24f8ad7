//! Sampled stacks, and what part of a root's time they say is in each method below it.

use std::collections::{BTreeSet, HashMap};

/// A method in sampled stacks, by its place in [`Stacks::methods`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MethodIndex(pub(crate) usize);

/// A method as stacks name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Method {
    /// `a.b.C.m(I)V`, as in Headwater's reports.
    pub(crate) name: String,
    /// The application's own, in a class that has a name and with code of its own: what a profile shows unless told otherwise.
    pub(crate) is_shown: bool,
}

/// Samples of a program, in the order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stacks {
    pub(crate) methods: Vec<Method>,
    /// Each from the thread's first method to the one that it was in.
    pub(crate) stacks: Vec<Vec<MethodIndex>>,
}

/// Parts of a root's samples.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares {
    /// Samples inside the root.
    pub(crate) samples: usize,
    /// Per cent of them in each method below the root, and in what it calls.
    pub(crate) percent: HashMap<String, f64>,
}

impl Stacks {
    /// The shares of what is below the outermost call of a root, `a.b.C::m`. A method counts once in each stack.
    pub(crate) fn shares(&self, root: &str) -> Shares {
        shares(&self.methods, &self.stacks, root)
    }

    /// The same of the first and the second half of the samples.
    pub(crate) fn halves(&self, root: &str) -> [Shares; 2] {
        // By samples inside the root: these may be few at the beginning.
        let is_root = roots(&self.methods, root);
        let inside: Vec<Vec<MethodIndex>> =
            self.stacks.iter().filter(|stack| stack.iter().any(|method| is_root[method.0])).cloned().collect();
        let (first, second) = inside.split_at(inside.len() / 2);
        [first, second].map(|half| shares(&self.methods, half, root))
    }
}

impl Shares {
    /// The largest methods, the largest first.
    pub(crate) fn largest(&self, count: usize) -> Vec<(&str, f64)> {
        let mut largest: Vec<(&str, f64)> =
            self.percent.iter().map(|(name, percent)| (name.as_str(), *percent)).collect();
        largest.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
        largest.truncate(count);
        largest
    }
}

/// Of each method whether it is the root, in any signature.
fn roots(methods: &[Method], root: &str) -> Vec<bool> {
    let name = root.replace("::", ".");
    methods.iter().map(|method| method.name.split('(').next() == Some(&name)).collect()
}

fn shares(methods: &[Method], stacks: &[Vec<MethodIndex>], root: &str) -> Shares {
    let is_root = roots(methods, root);
    let mut counts: HashMap<MethodIndex, usize> = HashMap::new();
    let mut samples = 0;
    for stack in stacks {
        let Some(outermost) = stack.iter().position(|method| is_root[method.0]) else { continue };
        samples += 1;
        let below: BTreeSet<MethodIndex> = stack[outermost + 1..].iter().copied().collect();
        for method in below.into_iter().filter(|method| methods[method.0].is_shown && !is_root[method.0]) {
            *counts.entry(method).or_default() += 1;
        }
    }
    let percent = |count: usize| 100.0 * count as f64 / samples as f64;
    Shares {
        samples,
        percent: counts.into_iter().map(|(method, count)| (methods[method.0].name.clone(), percent(count))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(texts: &[&str]) -> Stacks {
        let mut stacks = Stacks::default();
        for text in texts {
            let stack = text.split(' ').map(|name| {
                let method = Method { name: format!("{name}()V"), is_shown: !name.starts_with("java.") };
                let known = stacks.methods.iter().position(|known| *known == method);
                MethodIndex(known.unwrap_or_else(|| {
                    stacks.methods.push(method);
                    stacks.methods.len() - 1
                }))
            });
            let stack = stack.collect();
            stacks.stacks.push(stack);
        }
        stacks
    }

    #[test]
    fn a_method_counts_once_in_each_stack_that_has_the_root() {
        let stacks = stacks(&["m A.r A.f A.f java.L A.g", "m A.r A.f", "m A.g", "m A.r A.f A.r A.g"]);
        let shares = stacks.shares("A::r");
        assert_eq!(shares.samples, 3);
        assert_eq!(shares.largest(9), [("A.f()V", 100.0), ("A.g()V", 100.0 * 2.0 / 3.0)]);
    }

    #[test]
    fn halves_are_of_the_samples_inside_the_root() {
        let stacks = stacks(&["m A.g", "m A.g", "A.r A.f", "A.r A.g"]);
        let [first, second] = stacks.halves("A::r");
        assert_eq!((first.largest(9), second.largest(9)), (vec![("A.f()V", 100.0)], vec![("A.g()V", 100.0)]));
    }
}
