//! A flame graph, drawn by inferno.

use std::io::{self, Write};

use inferno::flamegraph::{self, Options};

use super::functions::Functions;
use super::{ExportedTree, collapsed, one_line, shortcomings, title, walk};
use crate::profile::{Metric, NodeIndex, Profile, Unit};
use crate::report::units::fitting_name;

/// Frames narrower than this share of the picture are not drawn.
const NARROWEST: f64 = 0.0001;

pub(super) fn write(
    profile: &Profile,
    metric: &Metric,
    parts: &[ExportedTree<'_>],
    out: &mut impl Write,
) -> io::Result<()> {
    let functions = Functions::of(profile, parts);
    let frames = collapsed::frames(&functions);
    let whole: u64 = parts.iter().map(|part| part.whole(metric)).sum();
    let narrowest = (whole as f64 * NARROWEST) as u64;
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let own = fold(part, metric, narrowest);
        let thread = part.thread_frame().map(|name| collapsed::frame(&name));
        walk::stacks(part.tree, |stack, _| {
            let own = stack.last().map_or(0, |node| own[node.0]);
            if own > 0 {
                let stack = stack.iter().map(|node| {
                    let method = part.tree.nodes[node.0].method;
                    frames[functions.index_of(method).0].as_str()
                });
                let stack: Vec<&str> = thread.as_deref().into_iter().chain(stack).collect();
                lines.push(format!("{} {own}", stack.join(";")));
            }
            Ok(())
        })?;
    }
    // As inferno demands.
    lines.sort_unstable();
    let mut options = Options::default();
    options.title = match metric.is_time() {
        true => title(profile),
        false => format!("{}: {}", title(profile), metric.title),
    };
    options.subtitle = shortcomings(profile).first().map(|what| one_line(what));
    options.count_name = match metric.unit {
        Unit::Nanoseconds => "ns".to_owned(),
        Unit::Count => metric.title.clone().into_owned(),
        unit => unit.name().to_owned(),
    };
    options.name_type = "Method:".to_owned();
    options.min_width = NARROWEST * 100.0;
    // Colours by the whole name: the same method looks the same in every picture, and those of one package do not look all alike.
    options.deterministic = true;
    let mut drawn = Vec::new();
    match flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut drawn) {
        // Without any time the picture says that there is none.
        Err(error) if whole == 0 && error.kind() == io::ErrorKind::InvalidData => {}
        other => other?,
    }
    let drawn = String::from_utf8(drawn).map_err(io::Error::other)?;
    out.write_all(with_method_names(&drawn).as_bytes())
}

/// The picture with names in its frames that keep the method to the end, where inferno's keep what they begin or end with.
fn with_method_names(drawn: &str) -> String {
    /// What inferno takes for the width of a picture that fills its window, in characters of its font.
    const CHARACTERS: f64 = 1200.0 / (12.0 * 0.59);
    let mut named = String::with_capacity(drawn.len() + SCRIPT.len());
    let mut rest = drawn;
    if let Some((before, behind)) = rest.split_once("</script>") {
        named.extend([before, "<![CDATA[", SCRIPT, "]]></script>"]);
        rest = behind;
    }
    // A frame has its name and time as title, then a rectangle, then a text: `<title>a.B.c() (12 ns, 3%)</title><rect ...`.
    while let Some((before, behind)) = rest.split_once("<title>") {
        named.extend([before, "<title>"]);
        rest = behind;
        let frame = || {
            let (title, behind) = rest.split_once("</title>")?;
            let (name, _) = title.rsplit_once(" (")?;
            let (_, width) = behind.split_once("width=\"")?;
            let percent: f64 = width.split_once('%')?.0.parse().ok()?;
            let text = behind.find("<text ")?;
            let start = text + behind[text..].find('>')? + 1;
            let end = start + behind[start..].find("</text>")?;
            let room = (percent / 100.0 * CHARACTERS) as usize;
            let offset = rest.len() - behind.len();
            Some((offset + start, offset + end, escaped(&fitted(&unescaped(name), room))))
        };
        if let Some((start, end, text)) = frame() {
            named.extend([&rest[..start], &text]);
            rest = &rest[end..];
        }
    }
    named + rest
}

/// The same in the browser, whenever the picture is zoomed.
const SCRIPT: &str = include_str!("svg.js");

/// As much of a name as says anything.
fn fitted(name: &str, room: usize) -> String {
    if room < 3 { String::new() } else { fitting_name(name, room) }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

/// What nodes have themselves, to which that of nodes was added that are too narrow or too deep to be drawn: the picture is the same, from fewer
/// lines.
fn fold(part: &ExportedTree<'_>, metric: &Metric, narrowest: u64) -> Vec<u64> {
    let tree = part.tree;
    let mut own: Vec<u64> = (0..tree.nodes.len()).map(|index| part.amount(metric, NodeIndex(index)).own).collect();
    let mut levels: Vec<usize> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        levels.push(node.parent.map_or(1, |parent| levels[parent.0] + 1));
    }
    let mut total = own.clone();
    for (index, node) in tree.nodes.iter().enumerate().rev() {
        let Some(parent) = node.parent else { continue };
        total[parent.0] += total[index];
        if total[index] < narrowest || levels[index] > walk::DEEPEST {
            own[parent.0] += std::mem::take(&mut own[index]);
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_named_by_their_methods() {
        let name = "com.acme.shop.with.a.very.long.path.Cart.&lt;init&gt;(Item)";
        let frame = |width: &str, text: &str| {
            format!(
                "<g><title>{name} (12 ns, 3.00%)</title><rect x=\"0%\" y=\"1\" width=\"{width}%\" height=\"15\"/>\
                 <text x=\"1%\" y=\"2\">{text}</text></g>"
            )
        };
        let picture = |texts: [&str; 2]| {
            format!("<svg><script><![CDATA[x]]></script>{}{}</svg>", frame("8.0", texts[0]), frame("1.0", texts[1]))
        };
        let named = with_method_names(&picture(["com.acme.s..", ""]));
        assert_eq!(
            named.replace(&format!("<![CDATA[{SCRIPT}]]>"), ""),
            picture(["Cart.&lt;init&gt;(…", ""]),
            "{named}"
        );
        assert!(named.contains(SCRIPT));
    }
}
