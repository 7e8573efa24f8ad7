//! Collapsed stacks: `root;callee;callee self_ns`, the format of FlameGraph's scripts.
//!
//! Every node has a line, those without self time too: so the tree is in it whole.

use std::io::{self, Write};

use super::functions::Functions;
use super::{ExportedTree, one_line, walk};
use crate::profile::{Metric, Profile};

pub(super) fn write(
    profile: &Profile,
    metric: &Metric,
    parts: &[ExportedTree<'_>],
    out: &mut impl Write,
) -> io::Result<()> {
    let functions = Functions::of(profile, parts);
    let frames = frames(&functions);
    // Written at once: these lines are long.
    let mut line = String::new();
    for part in parts {
        let thread = part.thread_frame().map(|name| frame(&name));
        walk::stacks(part.tree, |stack, index| {
            line.clear();
            for frame in thread.iter().chain(stack.iter().map(|index| {
                let method = part.tree.nodes[index.0].method;
                &frames[functions.index_of(method).0]
            })) {
                line.push_str(frame);
                line.push(';');
            }
            // A stack has a node at least, so there is a last semicolon.
            line.pop();
            writeln!(out, "{line} {}", part.amount(metric, index).own)
        })?;
    }
    Ok(())
}

/// Every function's frame.
pub(super) fn frames(functions: &Functions) -> Vec<String> {
    functions.all.iter().map(|function| frame(&function.label)).collect()
}

/// A name that can stand in a line: without a semicolon, for which FlameGraph's own scripts write a colon, too, and not ending in a
/// number of its own, which would be taken for a first value.
pub(super) fn frame(name: &str) -> String {
    let mut frame = one_line(name).replace(';', ":").trim().to_owned();
    let digits = frame.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    if frame[..digits].ends_with(char::is_whitespace) {
        let (place, space) = frame[..digits].char_indices().next_back().expect("it ends in a space");
        frame.replace_range(place..place + space.len_utf8(), "_");
    }
    if frame.is_empty() { "?".to_owned() } else { frame }
}

#[cfg(test)]
mod tests {
    use super::frame;

    #[test]
    fn names_do_not_break_lines() {
        for (name, expected) in [
            ("a.b.C.m(int, String)", "a.b.C.m(int, String)"),
            ("[pool;1\n\ttid=3]", "[pool:1\\u000a\\u0009tid=3]"),
            ("thread 12", "thread_12"),
            ("thread 1.5", "thread_1.5"),
            ("a ", "a"),
            ("12", "12"),
            ("", "?"),
        ] {
            assert_eq!(frame(name), expected, "{name:?}");
        }
    }
}
