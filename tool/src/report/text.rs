//! The profile as a tree to be read: share, total time, self time, calls, method.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::Trees;
use crate::profile::{Control, ControlKind, Node, NodeIndex, Profile, Tree};

pub(crate) mod units;

use units::{count, time};

/// Levels that are indented; what is deeper says its level instead, so that deep recursion stays readable.
const INDENTED_LEVELS: usize = 24;
/// Reasons for which methods were skipped are shown with so many examples.
const EXAMPLES: usize = 3;
/// From this share of the whole on, a line is emphasised on a terminal.
const HOT: f64 = 0.1;

/// How the report looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextOptions {
    /// Columns of the terminal: longer lines are cut. `None` leaves them whole.
    pub width: Option<usize>,
    /// Emphasis by ANSI escape sequences.
    pub color: bool,
    /// Nodes below this share of the roots' total time (0 to 1) are summed up instead of shown.
    pub min_share: f64,
    /// The deepest level that is shown; roots are level 1.
    pub max_depth: Option<usize>,
    /// Which trees.
    pub trees: Trees,
}

/// Writes the report.
pub fn write(profile: &Profile, options: &TextOptions, out: &mut impl Write) -> io::Result<()> {
    header(profile, out)?;
    match options.trees {
        Trees::Merged => TreeWriter { profile, tree: &profile.merged, options }.write(out)?,
        Trees::PerThread => {
            for thread in &profile.threads {
                writeln!(out, "\nthread {} \"{}\"", thread.id.0, thread.name)?;
                TreeWriter { profile, tree: &thread.tree, options }.write(out)?;
            }
        }
    }
    footer(profile, out)
}

fn header(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let target = &profile.target;
    let (seconds, clock) = (profile.duration.as_secs_f64(), profile.clock.source.name());
    writeln!(out, "{} (pid {}, JDK {}), {seconds:.1} s, clock {clock}", target.main, target.pid, target.jdk)?;
    for root in &profile.roots {
        let state = match (profile.root_names(root).len(), root.calls) {
            (0, _) => "no such method was loaded".to_owned(),
            (1, 0) => "instrumented, but never entered: waiting for entry".to_owned(),
            (n, 0) => format!("{n} methods instrumented, but none ever entered: waiting for entry"),
            (1, calls) => format!("entered {}", times(calls)),
            (n, calls) => format!("{n} methods, entered {}", times(calls)),
        };
        writeln!(out, "root {}: {state}", root.pattern)?;
    }
    Ok(())
}

/// Writes one tree. Depth first, the most expensive callee first, without recursion: a tree may be as deep as a stack.
struct TreeWriter<'a> {
    profile: &'a Profile,
    tree: &'a Tree,
    options: &'a TextOptions,
}

/// What is to be written next.
enum Line {
    Node {
        node: NodeIndex,
        level: usize,
    },
    /// Nodes under the same caller that are too small, or too deep, to be shown.
    Hidden {
        nodes: usize,
        total_ns: u64,
        calls: u64,
        level: usize,
    },
}

impl TreeWriter<'_> {
    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let tree = self.tree;
        if tree.nodes.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{:>7} {:>11} {:>11} {:>13}  method", "share", "total", "self", "calls")?;
        let mut roots = Vec::new();
        let mut children: Vec<Vec<NodeIndex>> = vec![Vec::new(); tree.nodes.len()];
        for (index, node) in tree.nodes.iter().enumerate() {
            match node.parent {
                Some(parent) => children[parent.0].push(NodeIndex(index)),
                None => roots.push(NodeIndex(index)),
            }
        }
        let whole_ns = tree.total_ns();
        let mut pending = Vec::new();
        self.push(roots, 1, whole_ns, &mut pending);
        while let Some(line) = pending.pop() {
            match line {
                Line::Node { node, level } => {
                    self.node(&tree.nodes[node.0], level, whole_ns, out)?;
                    self.push(std::mem::take(&mut children[node.0]), level + 1, whole_ns, &mut pending);
                }
                Line::Hidden { nodes, total_ns, calls, level } => {
                    let what = format!("... {nodes} more {}", if nodes == 1 { "callee" } else { "callees" });
                    let text = format!(
                        "{:>6.1}% {:>10}  {:>11} {:>13}  {}{what}",
                        100.0 * share(total_ns, whole_ns),
                        time(total_ns),
                        "",
                        count(calls),
                        indentation(level)
                    );
                    self.line(&text, if self.options.color { "\x1b[2m" } else { "" }, out)?;
                }
            }
        }
        Ok(())
    }

    /// Queues siblings, so that the most expensive is popped first and the sum of the hidden ones last.
    fn push(&self, mut siblings: Vec<NodeIndex>, level: usize, whole_ns: u64, pending: &mut Vec<Line>) {
        let nodes = &self.tree.nodes;
        let too_deep = self.options.max_depth.is_some_and(|deepest| level > deepest);
        let shown = |node: &Node| !too_deep && (level == 1 || share(node.total_ns, whole_ns) >= self.options.min_share);
        siblings.sort_by(|a, b| {
            let (a, b) = (&nodes[a.0], &nodes[b.0]);
            b.total_ns
                .cmp(&a.total_ns)
                .then_with(|| self.profile.method_of(a).machine.cmp(&self.profile.method_of(b).machine))
        });
        let (large, small): (Vec<NodeIndex>, Vec<NodeIndex>) =
            siblings.into_iter().partition(|node| shown(&nodes[node.0]));
        if !small.is_empty() {
            pending.push(Line::Hidden {
                nodes: small.len(),
                total_ns: small.iter().map(|node| nodes[node.0].total_ns).sum(),
                calls: small.iter().map(|node| nodes[node.0].calls).sum(),
                level,
            });
        }
        pending.extend(large.into_iter().rev().map(|node| Line::Node { node, level }));
    }

    fn node(&self, node: &Node, level: usize, whole_ns: u64, out: &mut impl Write) -> io::Result<()> {
        let share = share(node.total_ns, whole_ns);
        let text = format!(
            "{:>6.1}% {:>10}{} {:>10}{} {:>13}  {}{}",
            100.0 * share,
            time(node.total_ns),
            doubt(node.total_ns, node.total_error_ns),
            time(node.self_ns),
            doubt(node.self_ns, node.error_ns),
            count(node.calls),
            indentation(level),
            self.profile.method_of(node).display
        );
        self.line(&text, if self.options.color && share >= HOT { "\x1b[1m" } else { "" }, out)
    }

    fn line(&self, text: &str, emphasis: &str, out: &mut impl Write) -> io::Result<()> {
        let cut = match self.options.width {
            Some(width) if text.chars().count() > width => {
                text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
            }
            _ => text.to_owned(),
        };
        let end = if emphasis.is_empty() { "" } else { "\x1b[0m" };
        writeln!(out, "{emphasis}{cut}{end}")
    }
}

fn share(part_ns: u64, whole_ns: u64) -> f64 {
    if whole_ns == 0 { 0.0 } else { part_ns as f64 / whole_ns as f64 }
}

fn indentation(level: usize) -> String {
    if level <= INDENTED_LEVELS {
        "  ".repeat(level - 1)
    } else {
        format!("{}[{level}] ", "  ".repeat(INDENTED_LEVELS))
    }
}

/// Marks what is smaller than its own uncertainty.
fn doubt(value_ns: u64, error_ns: u64) -> char {
    if value_ns < error_ns { '~' } else { ' ' }
}

fn times(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        n => format!("{} times", count(n)),
    }
}

fn footer(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let events = &profile.events;
    let healed = match events.healed {
        0 => String::new(),
        1 => ", 1 frame healed".to_owned(),
        n => format!(", {} frames healed", count(n)),
    };
    writeln!(out, "\nevents    {} recorded, {} lost{healed}", count(events.recorded), count(events.lost))?;
    writeln!(
        out,
        "methods   {} instrumented, {} called, {} skipped",
        count(profile.instrumented as u64),
        count(profile.called as u64),
        count(profile.skipped.len() as u64)
    )?;
    skipped(profile, out)?;
    writeln!(out, "taken out of all times:")?;
    let clock = &profile.clock;
    writeln!(
        out,
        "probes    {:.1} ns (±{:.1}) in the method and {:.1} ns (±{:.1}) in its caller, for each call",
        clock.inner_ns, clock.inner_spread_ns, clock.outer_ns, clock.outer_spread_ns
    )?;
    for control in &profile.controls {
        let Control { kind, charged_ns, control_ns, error_ns, calls, .. } = *control;
        let kind = match kind {
            ControlKind::During => "control",
            ControlKind::After => "bare",
        };
        writeln!(
            out,
            "accuracy  {}: charged {} a call, {} {kind} calls {} (±{})",
            profile.methods[control.root.0].display,
            time(charged_ns as u64),
            count(calls),
            time(control_ns as u64),
            time(error_ns as u64)
        )?;
    }
    if let Some(period) = clock.mode.period() {
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        writeln!(out, "times     by a clock that moves once in {}: sampled; counts are exact", time(period))?;
    }
    let hotswap = &profile.hotswap;
    writeln!(
        out,
        "hotswaps  {} batches, {} classes; paused {} altogether, {} at most",
        count(hotswap.batches),
        count(hotswap.classes),
        time(hotswap.pause_ns_total),
        time(hotswap.pause_ns_max)
    )?;
    for wait in &profile.waits {
        writeln!(out, "waits     {} for {}: {}", times(wait.count), wait.reason, time(wait.duration_ns))?;
    }
    if profile.merged.nodes.iter().any(|node| node.self_ns < node.error_ns || node.total_ns < node.total_error_ns) {
        writeln!(out, "~ marks times that are smaller than their own uncertainty")?;
    }
    for warning in &profile.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    Ok(())
}

fn skipped(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for skipped in &profile.skipped {
        by_reason.entry(&skipped.reason).or_default().push(&skipped.method);
    }
    for (reason, methods) in by_reason {
        let more = if methods.len() > EXAMPLES { ", ..." } else { "" };
        let examples = methods.iter().take(EXAMPLES).copied().collect::<Vec<_>>().join(", ");
        writeln!(out, "          {} because {reason}: {examples}{more}", methods.len())?;
    }
    Ok(())
}
