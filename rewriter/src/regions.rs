//! Regions of a method's code that are probed: the whole method, lines, single calls.
//!
//! Regions lie in one another or apart, so the regions around an instruction are a chain, from the outermost in. Going from
//! one instruction to another leaves what is not common to their chains, innermost first, and enters the rest.

use std::collections::{BTreeSet, HashMap};

use crate::layout::Piece;

/// A region, and the probes around it.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// In order, apart from each other.
    pub(crate) ranges: Vec<(u32, u32)>,
    pub(crate) enter: Piece,
    pub(crate) exit: Piece,
    pub(crate) thrown: Piece,
}

impl Region {
    fn contains(&self, range: (u32, u32)) -> bool {
        self.ranges.iter().any(|own| own.0 <= range.0 && range.1 <= own.1)
    }

    fn size(&self) -> u32 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    /// Whether this region lies in the other, or apart from it.
    pub(crate) fn nests_in(&self, other: &Region) -> bool {
        let apart = |range: &(u32, u32)| other.ranges.iter().all(|own| range.1 <= own.0 || own.1 <= range.0);
        self.ranges.iter().all(|range| other.contains(*range)) || self.ranges.iter().all(apart)
    }
}

/// Puts regions in order: each before what lies in it. Among equals the order stays.
pub(crate) fn nest(regions: &mut [Region]) {
    regions.sort_by_key(|region| std::cmp::Reverse(region.size()));
}

/// A chain's number; the empty one is 0.
pub(crate) type Chain = usize;

/// The chain at every offset.
#[derive(Debug)]
pub(crate) struct Chains<'r> {
    regions: &'r [Region],
    /// From an offset on, up to the next one; the first at 0.
    from: Vec<(u32, Chain)>,
    chains: Vec<Vec<usize>>,
}

impl<'r> Chains<'r> {
    /// Of regions in the order of [`nest`].
    pub(crate) fn new(regions: &'r [Region]) -> Chains<'r> {
        let mut edges = Vec::new();
        for (index, region) in regions.iter().enumerate() {
            for &(start, end) in &region.ranges {
                edges.push((start, true, index));
                edges.push((end, false, index));
            }
        }
        // Ends come before beginnings, so a range that goes on where another of its region ends stays in it.
        edges.sort_unstable();
        let mut chains = vec![Vec::new()];
        let mut numbers = HashMap::from([(Vec::new(), 0)]);
        let mut from = vec![(0, 0)];
        let mut active = BTreeSet::new();
        let mut edges = edges.into_iter().peekable();
        while let Some(&(at, ..)) = edges.peek() {
            while let Some((_, begins, index)) = edges.next_if(|edge| edge.0 == at) {
                if begins {
                    active.insert(index)
                } else {
                    active.remove(&index)
                };
            }
            let chain: Vec<usize> = active.iter().copied().collect();
            let number = *numbers.entry(chain).or_insert_with_key(|chain| {
                chains.push(chain.clone());
                chains.len() - 1
            });
            from.push((at, number));
        }
        from.dedup_by(|next, first| {
            if next.0 == first.0 {
                first.1 = next.1;
            }
            next.1 == first.1
        });
        Chains { regions, from, chains }
    }

    /// Whether it is the same all over the code.
    pub(crate) fn is_uniform(&self, length: u32) -> bool {
        self.changes(0, length).next().is_none()
    }

    pub(crate) fn at(&self, offset: u32) -> Chain {
        let behind = self.from.partition_point(|(from, _)| *from <= offset);
        self.from[behind - 1].1
    }

    /// Where the chain changes, strictly within a range.
    pub(crate) fn changes(&self, start: u32, end: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.from.partition_point(|(from, _)| *from <= start);
        self.from[first..].iter().map(|(from, _)| *from).take_while(move |from| *from < end)
    }

    /// The probes on the way from one chain to another.
    pub(crate) fn probes(&self, from: Chain, to: Chain, thrown: bool) -> impl Iterator<Item = &'r Piece> + '_ {
        let (from, to) = (&self.chains[from], &self.chains[to]);
        let common = from.iter().zip(to).take_while(|(one, other)| one == other).count();
        let left = from[common..].iter().rev().map(move |index| {
            let region = &self.regions[*index];
            if thrown { &region.thrown } else { &region.exit }
        });
        left.chain(to[common..].iter().map(|index| &self.regions[*index].enter))
    }
}
