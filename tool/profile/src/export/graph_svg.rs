//! A call graph as a picture, without Graphviz.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::graph::{Graph, color, lines, percent};
use super::layout::{Layout, Point, layout};
use super::{one_line, title};
use crate::profile::{Metric, Profile};
use crate::report::units::{fitting_name, plural};

/// Of a name's line, in characters.
const LONGEST: usize = 44;
/// Of a character, about, in the font that is used.
const CHARACTER: f64 = 6.4;
const LINE: f64 = 13.0;
/// Around the text of a box.
const PADDING: f64 = 7.0;
/// A box has three lines at most.
const BOX: f64 = 3.0 * LINE + 2.0 * PADDING;
/// Between two layers.
const RISE: f64 = 42.0;
const MARGIN: f64 = 20.0;
/// Above the picture, for its title.
const HEAD: f64 = 44.0;

pub(super) fn write(profile: &Profile, metric: &Metric, min_share: f64, out: &mut impl Write) -> io::Result<()> {
    let graph = Graph::of(profile, metric, min_share);
    let texts: Vec<Vec<String>> = graph
        .nodes
        .iter()
        .map(|node| {
            let mut text: Vec<String> = lines(&node.name).into_iter().map(|line| fitting_name(line, LONGEST)).collect();
            text.push(format!("{} ({} self)", percent(node.total), percent(node.own)));
            text
        })
        .collect();
    let width =
        |text: &Vec<String>| text.iter().map(|line| line.width()).max().unwrap_or(0) as f64 * CHARACTER + 2.0 * PADDING;
    let widths: Vec<f64> = texts.iter().map(width).collect();
    let edges: Vec<(usize, usize)> = graph.edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let layout = layout(&widths, &edges, &graph.closes_circle());
    let label = format!("{}: {}", title(profile), one_line(&metric.title));
    let wide = (layout.width + 2.0 * MARGIN).max(label.width() as f64 * 8.0 + 2.0 * MARGIN);
    let high = HEAD + layout.layers as f64 * (BOX + RISE) + MARGIN;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide:.0}\" height=\"{high:.0}\" viewBox=\"0 0 {wide:.0} {high:.0}\" \
         font-family=\"sans-serif\" font-size=\"11\">"
    )?;
    writeln!(
        out,
        "<defs><marker id=\"end\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" \
         markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#555\"/></marker></defs>"
    )?;
    writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>")?;
    writeln!(out, "<text x=\"{MARGIN}\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{}</text>", escaped(&label))?;
    if graph.left_out > 0 {
        let left_out = plural(graph.left_out as u64, "method", "methods");
        writeln!(out, "<text x=\"{MARGIN}\" y=\"36\" fill=\"#555\">{left_out} below what is shown</text>")?;
    }
    for (edge, way) in graph.edges.iter().zip(&layout.edges) {
        let tells =
            format!("{} calls {}: {}", graph.nodes[edge.from].name, graph.nodes[edge.to].name, percent(edge.share));
        let path = if edge.from == edge.to { loop_at(way, widths[edge.from]) } else { curve(way) };
        writeln!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"#555\" stroke-opacity=\"0.7\" stroke-width=\"{:.2}\" \
             marker-end=\"url(#end)\"><title>{}</title></path>",
            0.6 + 5.0 * edge.share,
            escaped(&tells)
        )?;
    }
    boxes(&graph, &texts, &widths, &layout, out)?;
    writeln!(out, "</svg>")
}

fn boxes(
    graph: &Graph,
    texts: &[Vec<String>],
    widths: &[f64],
    layout: &Layout,
    out: &mut impl Write,
) -> io::Result<()> {
    for (at, node) in graph.nodes.iter().enumerate() {
        let (text, point) = (&texts[at], layout.nodes[at]);
        let (x, y) = (point.x + MARGIN, top(point.layer));
        writeln!(
            out,
            "<g><title>{}: {}, {}</title><rect x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BOX}\" rx=\"5\" \
             fill=\"{}\" stroke=\"#666\"/>",
            escaped(&node.name),
            escaped(&node.amount),
            percent(node.total),
            x - widths[at] / 2.0,
            widths[at],
            rgb(color(node.total))
        )?;
        let above = (BOX - text.len() as f64 * LINE) / 2.0;
        for (line, number) in text.iter().zip(1..) {
            let y = y + above + f64::from(number) * LINE - 3.0;
            writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>", escaped(line))?;
        }
        writeln!(out, "</g>")?;
    }
    Ok(())
}

fn top(layer: usize) -> f64 {
    HEAD + layer as f64 * (BOX + RISE)
}

/// From a box's edge through the gaps that the edge has in the layers between to the other one's edge.
fn curve(way: &[Point]) -> String {
    let is_down = way.first().zip(way.last()).is_some_and(|(first, last)| first.layer <= last.layer);
    // Where it leaves a layer, and where it comes to one.
    let (leaves, comes) = if is_down { (BOX, 0.0) } else { (0.0, BOX) };
    let mut path = String::new();
    for (at, pair) in way.windows(2).enumerate() {
        let (from, to) = (pair[0], pair[1]);
        let (x1, y1) = (from.x + MARGIN, top(from.layer) + leaves);
        let (x2, y2) = (to.x + MARGIN, top(to.layer) + comes);
        let middle = (y1 + y2) / 2.0;
        let begin = if at == 0 { format!("M{x1:.1} {y1:.1}") } else { format!("L{x1:.1} {y1:.1}") };
        path += &format!("{begin}C{x1:.1} {middle:.1} {x2:.1} {middle:.1} {x2:.1} {y2:.1}");
    }
    path
}

/// Of a method that calls itself: at the right of its box.
fn loop_at(way: &[Point], width: f64) -> String {
    let Some(point) = way.first() else { return String::new() };
    let (x, y) = (point.x + MARGIN + width / 2.0, top(point.layer));
    let (upper, lower) = (y + BOX * 0.35, y + BOX * 0.65);
    format!("M{x:.1} {upper:.1}C{:.1} {upper:.1} {:.1} {lower:.1} {x:.1} {lower:.1}", x + 14.0, x + 14.0)
}

/// `#rrggbb`, of hue, saturation and value.
fn rgb((hue, saturation, value): (f64, f64, f64)) -> String {
    let channel = |offset: f64| {
        let k = (offset + hue * 6.0) % 6.0;
        let part = value - value * saturation * k.min(4.0 - k).clamp(0.0, 1.0);
        (part * 255.0).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", channel(5.0), channel(3.0), channel(1.0))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_those_of_their_hues() {
        let cases = [((0.0, 1.0, 1.0), "#ff0000"), ((1.0 / 6.0, 1.0, 1.0), "#ffff00"), ((0.5, 0.0, 1.0), "#ffffff")];
        for (hsv, expected) in cases {
            assert_eq!(rgb(hsv), expected);
        }
    }
}
