//! A flame graph, drawn by inferno.

use std::io::{self, Write};

use inferno::flamegraph::{self, Options};

use super::functions::Functions;
use super::{Part, collapsed, one_line, title, walk};
use crate::profile::{Profile, Tree};

/// Frames narrower than this share of the picture are not drawn.
const NARROWEST: f64 = 0.0001;

pub(super) fn write(profile: &Profile, parts: &[Part<'_>], out: &mut impl Write) -> io::Result<()> {
    let functions = Functions::of(profile, parts);
    let frames = collapsed::frames(&functions);
    let whole_ns: u64 = parts.iter().flat_map(|part| &part.tree.nodes).map(|node| node.self_ns).sum();
    let narrowest_ns = (whole_ns as f64 * NARROWEST) as u64;
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        let own_ns = fold(part.tree, narrowest_ns);
        let thread = part.thread_frame().map(|name| collapsed::frame(&name));
        walk::stacks(part.tree, |stack, _| {
            let own_ns = stack.last().map_or(0, |node| own_ns[node.0]);
            if own_ns > 0 {
                let stack = stack.iter().map(|node| {
                    let method = part.tree.nodes[node.0].method;
                    frames[functions.index_of(method).0].as_str()
                });
                let stack: Vec<&str> = thread.as_deref().into_iter().chain(stack).collect();
                lines.push(format!("{} {own_ns}", stack.join(";")));
            }
            Ok(())
        })?;
    }
    // As inferno demands.
    lines.sort_unstable();
    let mut options = Options::default();
    options.title = one_line(&title(profile));
    options.count_name = "ns".to_owned();
    options.name_type = "Method:".to_owned();
    options.min_width = NARROWEST * 100.0;
    // Colours by the whole name: the same method looks the same in every picture, and those of one package do not look all alike.
    options.deterministic = true;
    let drawn = flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut *out);
    match drawn {
        // Without any time the picture says that there is none.
        Err(error) if whole_ns == 0 && error.kind() == io::ErrorKind::InvalidData => Ok(()),
        other => other,
    }
}

/// Self times, to which those of nodes were added that are too narrow or too deep to be drawn: the picture is the same, from fewer
/// lines.
fn fold(tree: &Tree, narrowest_ns: u64) -> Vec<u64> {
    let mut own_ns: Vec<u64> = tree.nodes.iter().map(|node| node.self_ns).collect();
    let mut levels: Vec<usize> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        levels.push(node.parent.map_or(1, |parent| levels[parent.0] + 1));
    }
    let mut total_ns = own_ns.clone();
    for (index, node) in tree.nodes.iter().enumerate().rev() {
        let Some(parent) = node.parent else { continue };
        total_ns[parent.0] += total_ns[index];
        if total_ns[index] < narrowest_ns || levels[index] > walk::DEEPEST {
            own_ns[parent.0] += std::mem::take(&mut own_ns[index]);
        }
    }
    own_ns
}
