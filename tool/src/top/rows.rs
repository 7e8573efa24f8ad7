//! The rows of each view, in their order: of trees, of the flat table, of a method's callers and callees.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::column::{Measured, Sort};
use super::forest::{Forest, Key};
use crate::profile::Amounts;
use crate::profile::{MethodIndex, NodeIndex, Profile, Tree};
use crate::report::flat;
use crate::report::names::Names;
use crate::report::{Trees, View as Shape, arcs, share};

/// What takes at least this part of the whole is unfolded from the start,
pub(super) const UNFOLDED: f64 = 0.1;
/// down to this level.
const UNFOLDED_LEVELS: u32 = 8;

/// What is folded and what is not.
#[derive(Clone, Debug, Default)]
pub(super) struct Folds {
    pub(super) known: FxHashMap<Key, bool>,
    /// Nothing unfolds by itself any more.
    pub(super) is_settled: bool,
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) key: Key,
    /// Roots are at 0.
    pub(super) depth: u32,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Node(NodeIndex),
    /// An index into the lines.
    Line(usize),
}

/// A row of a table.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) role: Role,
    /// `None`: from outside the roots.
    pub(super) method: Option<MethodIndex>,
    /// Of this thread alone: an index into the profile's.
    pub(super) thread: Option<usize>,
    pub(super) amounts: Amounts,
}

/// What a row of the callers view is to the method in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Caller,
    Own,
    Callee,
}

/// A profile, and its trees as they are walked.
pub(super) struct Shown {
    pub(super) profile: Arc<Profile>,
    pub(super) forest: Forest,
}

pub(super) fn tree_rows(shown: &Shown, sort: Sort, folds: &mut Folds) -> Vec<Row> {
    let Shown { profile, forest } = shown;
    let mut rows = Vec::new();
    let mut pending: Vec<(NodeIndex, u32)> = forest.below(profile, None, sort).into_iter().map(|it| (it, 0)).collect();
    pending.reverse();
    while let Some((node, depth)) = pending.pop() {
        let key = forest.key(node);
        rows.push(Row { key, depth, what: What::Node(node) });
        if !forest.has_children(node) {
            continue;
        }
        let is_open = folds.known.get(&key).copied().unwrap_or_else(|| {
            let part = forest.amounts(profile, node).total_ns;
            let opens = !folds.is_settled && depth < UNFOLDED_LEVELS && share(part, forest.lead().whole) >= UNFOLDED;
            if opens {
                // And stays so, when its share sinks.
                folds.known.insert(key, true);
            }
            opens
        });
        if is_open {
            pending.extend(forest.below(profile, Some(node), sort).into_iter().rev().map(|it| (it, depth + 1)));
        }
    }
    rows
}

pub fn flat_lines(shown: &Shown, trees: Trees, sort: Sort) -> Vec<Line> {
    let Shown { profile, forest } = shown;
    let names = Names::of(profile);
    let of_tree = |thread: Option<usize>, tree: &Tree| {
        let rows = flat::rows(profile, &names, tree).into_iter();
        rows.map(move |row| {
            let amounts = row.amounts.led_by(forest.metric());
            Line { role: Role::Own, method: Some(row.method), thread, amounts }
        })
        .collect::<Vec<_>>()
    };
    let mut lines = match trees {
        Trees::Merged => of_tree(None, &profile.merged),
        Trees::PerThread => {
            let threads = profile.threads.iter().enumerate();
            threads.flat_map(|(index, thread)| of_tree(Some(index), &thread.tree)).collect()
        }
    };
    sort_lines(&mut lines, profile, sort);
    lines
}

pub fn callers_lines(shown: &Shown, machine: Option<&String>, sort: Sort) -> Vec<Line> {
    let Shown { profile, forest } = shown;
    let led = |amounts: &Amounts| amounts.clone().led_by(forest.metric());
    let stanzas = arcs::stanzas(profile, &profile.merged);
    let stanza = stanzas.into_iter().find(|stanza| Some(&profile.methods[stanza.method.0].machine) == machine);
    let Some(stanza) = stanza else { return Vec::new() };
    let line = |role, arc: &arcs::Arc| Line { role, method: arc.method, thread: None, amounts: led(&arc.amounts) };
    let mut callers: Vec<Line> = stanza.parents.iter().map(|arc| line(Role::Caller, arc)).collect();
    let mut callees: Vec<Line> = stanza.children.iter().map(|arc| line(Role::Callee, arc)).collect();
    sort_lines(&mut callers, profile, sort);
    sort_lines(&mut callees, profile, sort);
    callers.push(Line { role: Role::Own, method: Some(stanza.method), thread: None, amounts: led(&stanza.own) });
    callers.extend(callees);
    callers
}

fn sort_lines(lines: &mut [Line], profile: &Profile, sort: Sort) {
    let name = |line: &Line| line.method.map_or("", |method| profile.methods[method.0].display.as_str());
    lines.sort_by(|a, b| {
        let (left, right) = (name(a), name(b));
        let order =
            sort.compare(&Measured { amounts: &a.amounts, name: left }, &Measured { amounts: &b.amounts, name: right });
        order.then(a.method.cmp(&b.method)).then(a.thread.cmp(&b.thread))
    });
}

pub(super) fn keyed(lines: &[Line], profile: &Profile, shape: Shape) -> Vec<Row> {
    let key = |line: &Line| match line {
        // Whichever method is in question.
        Line { role: Role::Own, .. } if shape == Shape::Callers => Key::of(None, (Role::Own, "")),
        _ => {
            let thread = line.thread.map(|thread| Key::of(None, profile.threads[thread].id.0));
            let method = line.method.map_or("", |method| profile.methods[method.0].machine.as_str());
            Key::of(thread, (line.role, method))
        }
    };
    lines.iter().enumerate().map(|(at, line)| Row { key: key(line), depth: 0, what: What::Line(at) }).collect()
}
