//! A call graph as Graphviz text.

use std::io::{self, Write};

use super::graph::{Graph, color, lines, percent};
use super::{one_line, title};
use crate::profile::{Metric, Profile};
use crate::report::units::plural;

pub(super) fn write(profile: &Profile, metric: &Metric, min_share: f64, out: &mut impl Write) -> io::Result<()> {
    let graph = Graph::of(profile, metric, min_share);
    let left_out = match graph.left_out {
        0 => String::new(),
        methods => format!("; {} below what is shown", plural(methods as u64, "method", "methods")),
    };
    let label = format!("{}: {}{left_out}", title(profile), one_line(&metric.title));
    writeln!(out, "digraph calls {{")?;
    writeln!(out, "  graph [label={}, labelloc=t, fontname=\"sans-serif\", ranksep=0.4];", quoted(&[&label]))?;
    writeln!(out, "  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\", fontsize=11];")?;
    writeln!(out, "  edge [fontname=\"sans-serif\", fontsize=9, color=\"#555555\"];")?;
    for (at, node) in graph.nodes.iter().enumerate() {
        let numbers = format!("{} ({} self)", percent(node.total), percent(node.own));
        let mut text = lines(&node.name);
        text.push(&numbers);
        let (hue, saturation, value) = color(node.total);
        let tooltip = format!("{}: {}", node.name, node.amount);
        writeln!(
            out,
            "  n{at} [label={}, tooltip={}, fillcolor=\"{hue:.3} {saturation:.3} {value:.3}\"];",
            quoted(&text),
            quoted(&[&tooltip])
        )?;
    }
    for edge in &graph.edges {
        writeln!(
            out,
            "  n{} -> n{} [label={}, penwidth={:.2}, weight={}];",
            edge.from,
            edge.to,
            quoted(&[&percent(edge.share)]),
            0.5 + 5.0 * edge.share,
            (edge.share * 100.0).round().max(1.0)
        )?;
    }
    writeln!(out, "}}")
}

/// A string of Graphviz, of several lines.
fn quoted(lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| line.replace('\\', "\\\\").replace('"', "\\\"")).collect();
    format!("\"{}\"", lines.join("\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_do_not_end_a_string() {
        assert_eq!(quoted(&["a \"b\"", "c\\n"]), r#""a \"b\"\nc\\n""#);
    }
}
