//! The callers view: each method between its callers and its callees (arcflow's xarc).

use std::cmp::Reverse;
use std::io::{self, Write};

use super::Section;
use super::lines::{Emphasis, Lines};
use crate::profile::Amounts;
use crate::report::arcs::{Arc, Stanza, stanzas};
use crate::report::prune::ShownMethods;
use crate::report::units::plural;

pub(super) fn write(section: &Section<'_>, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
    let methods = ShownMethods::of(section.profile, section.tree, section.options, section.chosen);
    let is_shown = |stanza: &Stanza| methods.has(stanza.method, &stanza.own);
    let (mut shown, hidden): (Vec<Stanza>, Vec<Stanza>) =
        stanzas(section.profile, section.tree).into_iter().partition(is_shown);
    shown.sort_by_cached_key(|stanza| {
        (Reverse(section.rank(&stanza.own)), section.profile.methods[stanza.method.0].machine.clone())
    });
    lines.line(&format!("{:<6} {}", "", section.cells.heading()), "method", Emphasis::None)?;
    for stanza in &mut shown {
        lines.rule()?;
        let Stanza { method, own, parents, children } = stanza;
        arcs(section, "parent", parents, own, lines)?;
        let name = section.label_of_all(*method);
        line(section, "self", own, &name, Emphasis::Bold, lines)?;
        arcs(section, "child", children, own, lines)?;
    }
    if !shown.is_empty() {
        lines.rule()?;
    }
    if !hidden.is_empty() {
        let what = plural(hidden.len() as u64, "more method", "more methods");
        lines.line("", &format!("... {what}"), Emphasis::Faint)?;
    }
    Ok(())
}

/// One side of a stanza. What is small beside the stanza's own time is summed up, so that sums can be followed.
fn arcs(
    section: &Section<'_>,
    side: &str,
    arcs: &mut [Arc],
    own: &Amounts,
    lines: &mut Lines<'_, impl Write>,
) -> io::Result<()> {
    let name = |arc: &Arc| arc.method.map_or("(from outside the roots)", |method| section.name(method));
    arcs.sort_by_key(|arc| (Reverse(section.rank(&arc.amounts)), name(arc)));
    let floor = section.chosen.floor();
    let is_small = |arc: &&Arc| {
        let amount = floor.amount(&arc.amounts);
        arc.method.is_some() && !floor.is_reached(amount.total.max(amount.own), floor.amount(own).total)
    };
    for arc in arcs.iter().filter(|arc| !is_small(arc)) {
        line(section, side, &arc.amounts, &format!("  {}", name(arc)), Emphasis::None, lines)?;
    }
    let small: Vec<&Arc> = arcs.iter().filter(is_small).collect();
    if !small.is_empty() {
        let mut sum = Amounts::default();
        small.iter().for_each(|arc| sum.add(&arc.amounts));
        let what = match (side, small.len()) {
            ("parent", 1) => "caller",
            ("parent", _) => "callers",
            (_, 1) => "callee",
            _ => "callees",
        };
        line(section, side, &sum, &format!("  ... {} more {what}", small.len()), Emphasis::Faint, lines)?;
    }
    Ok(())
}

fn line(
    section: &Section<'_>,
    side: &str,
    amounts: &Amounts,
    name: &str,
    emphasis: Emphasis,
    lines: &mut Lines<'_, impl Write>,
) -> io::Result<()> {
    lines.line(&format!("{side:<6} {}", section.cells.row(amounts)), name, emphasis)
}
