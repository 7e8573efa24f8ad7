//! Nodes as columns of numbers: small ones, because they are differences wherever that helps, and alike ones side by side,
//! because that compresses.
//!
//! A block holds, for each of its nodes, one column after the other as LEB128: how far before the node its parent lies (0: it has
//! none); the method; calls; exceptional exits; self time and its uncertainty; the total's uncertainty; samples, and how many of them running;
//! and, zigzag, by how much the total exceeds the sum of the node's self time and its children's totals, which is nothing but zeros.

use crate::profile::{MethodIndex, Node, NodeIndex, Tree};

const COLUMNS: usize = 10;
const MAX_VARINT_BYTES: usize = 10;
/// What a node takes at most.
pub(super) const MAX_NODE_BYTES: usize = COLUMNS * MAX_VARINT_BYTES;

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

/// Appends a block: the nodes from number `first` on.
pub(crate) fn encode(nodes: &[Node], rests: &[u64], first: usize, out: &mut Vec<u8>) {
    let distance = |(index, node): (usize, &Node)| node.parent.map_or(0, |parent| (first + index - parent.0) as u64);
    nodes.iter().enumerate().map(distance).for_each(|value| put(value, out));
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
        nodes.iter().map(column).for_each(|value| put(value, out));
    }
    rests.iter().for_each(|&rest| put(zigzag(rest as i64), out));
}

/// Appends a block's nodes; their totals are still rests. An error is a clause of a sentence.
pub(super) fn decode(bytes: &[u8], length: usize, methods: usize, nodes: &mut Vec<Node>) -> Result<(), &'static str> {
    const SHORT: &str = "a column is too short";
    let first = nodes.len();
    let mut input = Input { bytes, at: 0 };
    for index in first..first + length {
        let parent = match input.get().ok_or(SHORT)? {
            0 => None,
            distance => {
                let parent = usize::try_from(distance).ok().and_then(|distance| index.checked_sub(distance));
                Some(NodeIndex(parent.ok_or("a node's parent is none of those before it")?))
            }
        };
        nodes.push(Node { parent, ..Node::empty(MethodIndex(0)) });
    }
    let nodes = &mut nodes[first..];
    for node in &mut *nodes {
        let method = usize::try_from(input.get().ok_or(SHORT)?).ok().filter(|method| *method < methods);
        node.method = MethodIndex(method.ok_or("a node's method has no name")?);
    }
    let columns: [fn(&mut Node, u64); 8] = [
        |node, value| node.calls = value,
        |node, value| node.thrown = value,
        |node, value| node.self_ns = value,
        |node, value| node.error_ns = value,
        |node, value| node.total_error_ns = value,
        |node, value| node.cpu.samples = count(value),
        |node, value| node.cpu.running = count(value),
        |node, value| node.total_ns = unzigzag(value) as u64,
    ];
    for column in columns {
        for node in &mut *nodes {
            column(node, input.get().ok_or(SHORT)?);
        }
    }
    if input.at == bytes.len() { Ok(()) } else { Err("a column is too long") }
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
