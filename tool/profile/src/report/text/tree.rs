//! The tree view: each chain of calls (arcflow's xtree).

use std::cmp::Reverse;
use std::io::{self, Write};

use super::cells::NodeRows;
use super::lines::{Emphasis, Lines, indentation};
use super::{Section, further};
use crate::profile::{Amounts, Link, NodeIndex};
use crate::report::prune::{focused, shown_nodes};
use crate::report::units::plural;

/// What is written.
enum Line {
    Node {
        node: NodeIndex,
        level: usize,
    },
    /// Nodes under the same caller that are not shown.
    Hidden {
        nodes: usize,
        sum: Amounts,
        level: usize,
    },
}

/// Depth first, the most expensive callee first.
pub(super) fn write(section: &Section<'_>, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
    let shown = shown_nodes(section.profile, section.tree, &focused(section.profile, section.options), section.options);
    let rows = NodeRows::of(section.profile, section.tree);
    let listed = listed(section, &shown, &rows);
    let node = |line: &Line| match line {
        Line::Node { node, .. } => Some(*node),
        Line::Hidden { .. } => None,
    };
    further::write(section, &listed.iter().map(node).collect::<Vec<_>>(), lines)?;
    lines.line(&section.cells.heading(), "method", Emphasis::None)?;
    for line in listed {
        match line {
            Line::Node { node: index, level } => {
                let (node, row) = (&section.tree.nodes[index.0], rows.at(index));
                let numbers = section.cells.row(&row) + &indentation(level);
                let emphasis = section.emphasis(section.chosen.weight().of(&row).total);
                let name = section.label(node.method, section.profile.recorded_until(node.method));
                match node.link {
                    None => lines.line(&numbers, &name, emphasis)?,
                    Some(Link::Thread) => lines.line(&numbers, &format!("[started] {name}"), emphasis)?,
                }
            }
            Line::Hidden { nodes, sum, level } => {
                let numbers = section.cells.sum(&sum) + &indentation(level);
                let (one, many) =
                    if level == 1 { ("more root", "more roots") } else { ("more callee", "more callees") };
                let what = plural(nodes as u64, one, many);
                lines.line(&numbers, &format!("... {what}"), Emphasis::Faint)?;
            }
        }
    }
    Ok(())
}

/// All lines, without recursion: a tree may be as deep as a stack.
fn listed(section: &Section<'_>, shown: &[bool], rows: &NodeRows<'_>) -> Vec<Line> {
    let mut listed = Vec::new();
    let mut pending = Vec::new();
    push(section, None, 1, (shown, rows), &mut pending);
    while let Some(line) = pending.pop() {
        if let Line::Node { node, level } = line {
            push(section, Some(node), level + 1, (shown, rows), &mut pending);
        }
        listed.push(line);
    }
    listed
}

/// Queues siblings, so that the first is popped first and the sum of the hidden ones last.
fn push(
    section: &Section<'_>,
    parent: Option<NodeIndex>,
    level: usize,
    (shown, rows): (&[bool], &NodeRows<'_>),
    pending: &mut Vec<Line>,
) {
    let siblings = section.children.below(parent);
    let (mut large, small): (Vec<NodeIndex>, Vec<NodeIndex>) = siblings.iter().partition(|node| shown[node.0]);
    let name = |node: &NodeIndex| &section.profile.method_of(&section.tree.nodes[node.0]).machine;
    large.sort_by_cached_key(|node| (Reverse(section.rank(&rows.at(*node))), name(node)));
    if !small.is_empty() {
        pending.push(Line::Hidden { nodes: small.len(), sum: rows.sum(&small), level });
    }
    pending.extend(large.into_iter().rev().map(|node| Line::Node { node, level }));
}
