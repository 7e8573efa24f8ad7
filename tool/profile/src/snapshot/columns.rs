//! The nodes of a tree as bytes. A block has, for each of its nodes, one column after the other as LEB128; which, the layout names.
//!
//! | | |
//! |---|---|
//! | `parent` | how far before the node its parent lies; 0: it has none |
//! | `method` | |
//! | `calls`, `thrown` | entries, and exceptional exits |
//! | `self`, `self-error`, `total-error` | time, and uncertainties |
//! | `samples`, `running` | of the thread's state |
//! | `rest` | zigzag, by how much the total exceeds the sum of the node's self time and its children's totals, which is nothing but zeros |
//! | `counted:ID`, `counted-error:ID` | of another metric, what the node has itself, and the uncertainty of that |

use std::ops::Range;

use crate::profile::{Column, MethodIndex, Metric, Node, NodeIndex, Tree};

/// The columns that every profile has.
pub(crate) const USUAL: [&str; 10] =
    ["parent", "method", "calls", "thrown", "self", "self-error", "total-error", "samples", "running", "rest"];
const COUNTED: &str = "counted:";
const COUNTED_ERROR: &str = "counted-error:";
/// No file has more.
pub(super) const MOST_COLUMNS: usize = 64;
const MAX_VARINT_BYTES: usize = 10;
/// What a node takes at most.
pub(super) const MAX_NODE_BYTES: usize = MOST_COLUMNS * MAX_VARINT_BYTES;

/// The columns of trees with these other metrics, in their order.
pub(crate) fn names(counted: &[Metric]) -> Vec<String> {
    let of_metric = |metric: &Metric| {
        let error = metric.is_uncertain.then(|| format!("{COUNTED_ERROR}{}", metric.id));
        [format!("{COUNTED}{}", metric.id)].into_iter().chain(error)
    };
    USUAL.into_iter().map(str::to_owned).chain(counted.iter().flat_map(of_metric)).collect()
}

/// What each node's total has more than its self time and its children's totals, modulo 2^64.
pub(crate) fn rests(tree: &Tree) -> Vec<u64> {
    let mut rests: Vec<u64> = tree.nodes.iter().map(|node| node.total_ns.wrapping_sub(node.self_ns)).collect();
    for node in &tree.nodes {
        if let Some(parent) = node.parent {
            rests[parent.0] = rests[parent.0].wrapping_sub(node.total_ns);
        }
    }
    rests
}

/// Another metric's column, if the tree has it, and whether its values are uncertain.
pub(crate) type Other<'a> = (Option<&'a Column>, bool);

/// Appends a block of a tree.
pub(crate) fn encode(tree: &Tree, rests: &[u64], others: &[Other<'_>], block: Range<usize>, out: &mut Vec<u8>) {
    let nodes = || block.clone().zip(&tree.nodes[block.clone()]);
    let distance = |(index, node): (usize, &Node)| node.parent.map_or(0, |NodeIndex(parent)| (index - parent) as u64);
    nodes().map(distance).for_each(|value| put(value, out));
    let columns: [fn(&Node) -> u64; 8] = [
        |node| node.method.0 as u64,
        |node| node.calls,
        |node| node.thrown,
        |node| node.self_ns,
        |node| node.error_ns,
        |node| node.total_error_ns,
        |node| node.cpu.samples.into(),
        |node| node.cpu.running.into(),
    ];
    for column in columns {
        nodes().for_each(|(_, node)| put(column(node), out));
    }
    rests[block.clone()].iter().for_each(|&rest| put(zigzag(rest as i64), out));
    for (column, is_uncertain) in others {
        let amount = |index: usize| column.map(|column| column.at(NodeIndex(index))).unwrap_or_default();
        block.clone().for_each(|index| put(amount(index).own, out));
        if *is_uncertain {
            block.clone().for_each(|index| put(amount(index).own_error, out));
        }
    }
}

/// What each node of a tree has itself of a metric, and the uncertainty of that.
pub(super) type OwnValues = Vec<(u64, u64)>;

/// A tree that is being read.
#[derive(Default)]
pub(super) struct Reading {
    /// Its totals are still rests.
    pub(super) nodes: Vec<Node>,
    /// Of each other metric.
    counted: Vec<OwnValues>,
}

impl Reading {
    /// Appends a block of nodes. An error is a clause of a sentence.
    pub(super) fn append(
        &mut self,
        bytes: &[u8],
        length: usize,
        methods: usize,
        columns: &[Kind],
    ) -> Result<(), &'static str> {
        const SHORT: &str = "a column is too short";
        let first = self.nodes.len();
        let mut input = Input { bytes, at: 0 };
        self.nodes.resize(first + length, Node::empty(MethodIndex(0)));
        let nodes = &mut self.nodes[first..];
        for kind in columns {
            match *kind {
                Kind::Parent => {
                    for (place, node) in nodes.iter_mut().enumerate() {
                        node.parent = match input.get().ok_or(SHORT)? {
                            0 => None,
                            distance => {
                                let distance = usize::try_from(distance).ok();
                                let parent = distance.and_then(|distance| (first + place).checked_sub(distance));
                                Some(NodeIndex(parent.ok_or("a node's parent is none of those before it")?))
                            }
                        };
                    }
                }
                Kind::Method => {
                    for node in &mut *nodes {
                        let method = usize::try_from(input.get().ok_or(SHORT)?).ok().filter(|method| *method < methods);
                        node.method = MethodIndex(method.ok_or("a node's method has no name")?);
                    }
                }
                Kind::Field(set) => {
                    for node in &mut *nodes {
                        set(node, input.get().ok_or(SHORT)?);
                    }
                }
                Kind::Counted { metric, is_error } => {
                    if self.counted.len() <= metric {
                        self.counted.resize(metric + 1, Vec::new());
                    }
                    let counted = &mut self.counted[metric];
                    counted.resize(first + length, (0, 0));
                    for (own, error) in &mut counted[first..] {
                        *(if is_error { error } else { own }) = input.get().ok_or(SHORT)?;
                    }
                }
                Kind::Unknown => {
                    for _ in 0..length {
                        input.get().ok_or(SHORT)?;
                    }
                }
            }
        }
        if input.at == bytes.len() { Ok(()) } else { Err("a column is too long") }
    }

    /// Takes what was read of other metrics: it makes columns once it is known which nodes were handed over.
    pub(super) fn take_counted(&mut self) -> Vec<OwnValues> {
        std::mem::take(&mut self.counted)
    }
}

/// What a column is.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Parent,
    Method,
    Field(fn(&mut Node, u64)),
    Counted {
        metric: usize,
        is_error: bool,
    },
    /// A later version's: it is passed over.
    Unknown,
}

impl Kind {
    pub(super) fn of(name: &str, counted: &[Metric]) -> Kind {
        let metric = |id: &str, is_error| match counted.iter().position(|metric| metric.id == id) {
            Some(metric) => Kind::Counted { metric, is_error },
            None => Kind::Unknown,
        };
        match name {
            "parent" => Kind::Parent,
            "method" => Kind::Method,
            "calls" => Kind::Field(|node, value| node.calls = value),
            "thrown" => Kind::Field(|node, value| node.thrown = value),
            "self" => Kind::Field(|node, value| node.self_ns = value),
            "self-error" => Kind::Field(|node, value| node.error_ns = value),
            "total-error" => Kind::Field(|node, value| node.total_error_ns = value),
            "samples" => Kind::Field(|node, value| node.cpu.samples = count(value)),
            "running" => Kind::Field(|node, value| node.cpu.running = count(value)),
            "rest" => Kind::Field(|node, value| node.total_ns = unzigzag(value) as u64),
            _ => match (name.strip_prefix(COUNTED), name.strip_prefix(COUNTED_ERROR)) {
                (Some(id), _) => metric(id, false),
                (_, Some(id)) => metric(id, true),
                (None, None) => Kind::Unknown,
            },
        }
    }
}

/// Of samples: a profile of so many takes a year.
fn count(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// Turns rests into totals.
pub(super) fn add_rests(tree: &mut Tree) {
    for index in (0..tree.nodes.len()).rev() {
        let node = &mut tree.nodes[index];
        node.total_ns = node.total_ns.wrapping_add(node.self_ns);
        let (parent, total_ns) = (node.parent, node.total_ns);
        if let Some(parent) = parent {
            // Modulo 2^64, as it was written: totals need not be sums.
            tree.nodes[parent.0].total_ns = tree.nodes[parent.0].total_ns.wrapping_add(total_ns);
        }
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    #[inline]
    fn get(&mut self) -> Option<u64> {
        let first = *self.bytes.get(self.at)?;
        self.at += 1;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut value = u64::from(first & 0x7F);
        for place in 1..MAX_VARINT_BYTES {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            let bits = u64::from(byte & 0x7F);
            // The tenth byte has room for one bit.
            if place == MAX_VARINT_BYTES - 1 && bits > 1 {
                return None;
            }
            value |= bits << (7 * place);
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_back() {
        let powers = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, !(1 << bit)]);
        for value in powers.chain([0, u64::MAX]) {
            let mut bytes = Vec::new();
            put(value, &mut bytes);
            assert_eq!(Input { bytes: &bytes, at: 0 }.get(), Some(value));
            assert_eq!(unzigzag(zigzag(value as i64)), value as i64);
            for cut in 0..bytes.len() {
                assert_eq!(Input { bytes: &bytes[..cut], at: 0 }.get(), None);
            }
        }
        assert_eq!(Input { bytes: &[0xFF; 11], at: 0 }.get(), None, "more than 64 bits");
    }
}
