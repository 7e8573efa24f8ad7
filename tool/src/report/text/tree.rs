//! The tree view: each chain of calls (arcflow's xtree).

use std::cmp::Reverse;
use std::io::{self, Write};

use super::lines::{Emphasis, Lines, indentation};
use super::{Section, calls};
use crate::profile::{CpuSamples, Link, NodeIndex};
use crate::report::flat::Amounts;
use crate::report::prune::{focused, shown_nodes};
use crate::report::share;
use crate::report::units::plural;

/// What is to be written next.
enum Line {
    Node {
        node: NodeIndex,
        level: usize,
    },
    /// Nodes under the same caller that are not shown.
    Hidden {
        nodes: usize,
        total_ns: u64,
        calls: u64,
        at_least: bool,
        level: usize,
    },
}

/// Depth first, the most expensive callee first, without recursion: a tree may be as deep as a stack.
pub(super) fn write(section: &Section<'_>, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
    let shown = shown_nodes(section.profile, section.tree, &focused(section.profile, section.options), section.options);
    lines.line(
        &format!("{:>7} {:>11} {}{:>11} {:>13}  ", "share", "total", lines.cpu_heading(), "self", "calls"),
        "method",
        Emphasis::None,
    )?;
    let cpu = section.tree.total_cpu();
    let incomplete = section.profile.incomplete_nodes(section.tree);
    let mut pending = Vec::new();
    push(section, None, 1, (&shown, &incomplete), &mut pending);
    while let Some(line) = pending.pop() {
        match line {
            Line::Node { node: index, level } => {
                let node = &section.tree.nodes[index.0];
                let numbers = format!(
                    "{} {} {}{} {:>13}  {}",
                    lines.share(node.total_ns),
                    lines.time(node.total_ns, node.total_error_ns),
                    lines.cpu(cpu[index.0]),
                    lines.time(node.self_ns, node.error_ns),
                    calls(node.calls, incomplete[index.0]),
                    indentation(level)
                );
                let emphasis = Emphasis::of_share(share(node.total_ns, section.whole_ns));
                let name = section.label(node.method, section.profile.recorded_until(node.method));
                match node.link {
                    None => lines.line(&numbers, &name, emphasis)?,
                    Some(Link::Thread) => lines.line(&numbers, &format!("[started] {name}"), emphasis)?,
                }
                push(section, Some(index), level + 1, (&shown, &incomplete), &mut pending);
            }
            Line::Hidden { nodes, total_ns, calls, at_least, level } => {
                let numbers = format!(
                    "{} {} {}{:>11} {:>13}  {}",
                    lines.share(total_ns),
                    lines.time(total_ns, 0),
                    lines.cpu(CpuSamples::default()),
                    "",
                    self::calls(calls, at_least),
                    indentation(level)
                );
                let (one, many) =
                    if level == 1 { ("more root", "more roots") } else { ("more callee", "more callees") };
                let what = plural(nodes as u64, one, many);
                lines.line(&numbers, &format!("... {what}"), Emphasis::Faint)?;
            }
        }
    }
    Ok(())
}

/// Queues siblings, so that the first is popped first and the sum of the hidden ones last.
fn push(
    section: &Section<'_>,
    parent: Option<NodeIndex>,
    level: usize,
    (shown, incomplete): (&[bool], &[bool]),
    pending: &mut Vec<Line>,
) {
    let nodes = &section.tree.nodes;
    let siblings = section.children.below(parent);
    let (mut large, small): (Vec<NodeIndex>, Vec<NodeIndex>) = siblings.iter().partition(|node| shown[node.0]);
    let order = |index: &NodeIndex| {
        let node = &nodes[index.0];
        (Reverse(section.options.rank(&Amounts::of(node, false))), &section.profile.method_of(node).machine)
    };
    large.sort_by(|a, b| order(a).cmp(&order(b)));
    if !small.is_empty() {
        pending.push(Line::Hidden {
            nodes: small.len(),
            at_least: small.iter().any(|node| incomplete[node.0]),
            total_ns: small.iter().map(|node| nodes[node.0].total_ns).sum(),
            calls: small.iter().map(|node| nodes[node.0].calls).sum(),
            level,
        });
    }
    pending.extend(large.into_iter().rev().map(|node| Line::Node { node, level }));
}
