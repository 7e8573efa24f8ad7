//! How many samples in a row say together what one by itself would say.
//!
//! The standard deviation of a share takes it that each sample is of another moment, by chance. But the next one may be of the same call, or of the same place of the
//! next call, where calls take as long as the sampling period: hundreds of samples say no more then than a few dozen. So samples are divided into stretches of time,
//! one after the other. What a node has of each differs, by chance alone, as much as binomials do; if it differs by so many times as much (the variance), so many
//! samples count as one. That is one number for all of a profile, of the nodes that have much: of each by itself it is not known well enough.
//!
//! Samples from before a profile and from after it are of two phases: what these differ by is each node's own, by how far its halves are apart.

use rustc_hash::FxHashMap;

use crate::cct::{Cct, NodeId};

/// So many stretches.
const STRETCHES: usize = 10;
/// Of each outermost root's samples; of fewer nothing is known.
const LEAST: u32 = 10 * STRETCHES as u32;

/// Of each phase's samples, by when they were taken and by the nodes that were on top; at least one.
pub(super) fn alike(cct: &Cct, phases: impl IntoIterator<Item = Vec<(i64, NodeId)>>) -> f64 {
    let apart = phases.into_iter().map(|on_top| apart(cct, on_top));
    let (seen, by_chance) = apart.fold((0.0, 0.0), |(seen, by_chance), of| (seen + of.0, by_chance + of.1));
    if by_chance > 0.0 { f64::max(seen / by_chance, 1.0) } else { 1.0 }
}

/// How far stretches of a phase are apart, and how far by chance alone, of all nodes together.
fn apart(cct: &Cct, mut on_top: Vec<(i64, NodeId)>) -> (f64, f64) {
    on_top.sort_unstable();
    let all = on_top.len();
    // Of each node with what is below it; and of its outermost.
    let mut nodes: FxHashMap<NodeId, ([u32; STRETCHES], NodeId)> = FxHashMap::default();
    let mut way = Vec::new();
    for (index, (_, top)) in on_top.into_iter().enumerate() {
        let callers =
            std::iter::successors(Some(top), |node| cct.parent(*node).filter(|_| !cct.node(*node).is_handed()));
        way.clear();
        way.extend(callers.take_while(|node| *node != NodeId::TOP));
        let Some(outermost) = way.last().copied() else { continue };
        for node in &way {
            nodes.entry(*node).or_insert(([0; STRETCHES], outermost)).0[index * STRETCHES / all] += 1;
        }
    }
    let (mut seen, mut by_chance) = (0.0, 0.0);
    for (node, (samples, outermost)) in &nodes {
        let of_all = nodes[outermost].0;
        let sum: u32 = of_all.iter().sum();
        if node == outermost || sum < LEAST {
            continue;
        }
        let share = f64::from(samples.iter().sum::<u32>()) / f64::from(sum);
        let stretches = samples.iter().zip(of_all).filter(|(_, all)| *all > 0);
        let apart = stretches.map(|(of, all)| (f64::from(*of) - share * f64::from(all)).powi(2) / f64::from(all));
        seen += apart.sum::<f64>();
        by_chance += share * (1.0 - share) * (of_all.iter().filter(|all| **all > 0).count() - 1) as f64;
    }
    (seen, by_chance)
}

#[cfg(test)]
mod tests {
    use headwater_protocol::MethodId;

    use super::*;

    /// Samples at a period of a program whose calls take 4 ms, a fraction `jitter` more or less: its first 40 % in one method, what is left in another.
    fn sampled(period_ms: impl Fn(usize) -> f64, jitter: f64) -> f64 {
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        let [first, rest] = [2, 3].map(|method| cct.call(root, MethodId(method), 0));
        let mut random = 1_u64;
        let mut next = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (mut at, mut begin, mut end) = (0.0, 0.0, 4.0);
        let on_top = (0..400).map(|index| {
            at += period_ms(index);
            while at >= end {
                begin = end;
                end += 4.0 * (1.0 + jitter * (2.0 * next() - 1.0));
            }
            ((at * 1e6) as i64, if at < begin + 0.4 * (end - begin) { first } else { rest })
        });
        alike(&cct, [on_top.collect()])
    }

    #[test]
    fn samples_of_the_same_place_of_call_after_call_are_alike() {
        let steady = sampled(|_| 4.0, 0.1);
        assert!(steady > 4.0, "{steady}");
        // At a period that changes they are not, nor where calls differ.
        let dithered = sampled(|index| [6.0, 5.0, 6.0, 3.0, 6.0, 4.0][index / 15 % 6], 0.1);
        assert!(dithered < steady / 2.0, "{dithered}, {steady}");
        let different = sampled(|_| 4.0, 1.0);
        assert!(different < 2.0, "{different}");
    }

    #[test]
    fn few_samples_and_those_of_one_place_say_nothing_of_it() {
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        let callee = cct.call(root, MethodId(2), 0);
        assert_eq!(alike(&cct, []), 1.0);
        assert_eq!(alike(&cct, [vec![(1, root); 500]]), 1.0);
        let halves = |samples: i64| (0..samples).map(|at| (at, if at < samples / 2 { root } else { callee })).collect();
        assert_eq!(alike(&cct, [halves(99)]), 1.0);
        assert!(alike(&cct, [halves(100)]) > 5.0);
        // Two phases are two programs.
        assert_eq!(alike(&cct, [vec![(1, root); 100], vec![(2, callee); 100]]), 1.0);
    }
}
