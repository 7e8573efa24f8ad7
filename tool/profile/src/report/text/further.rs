//! Large methods that are far down in a tree are named above it: a deep tree's second branch is not on the first screen.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::Section;
use super::lines::{Emphasis, Lines};
use crate::profile::NodeIndex;
use crate::report::flat::{FlatRow, rows};
use crate::report::names::Names;
use crate::report::share;

/// Lines of a tree that a reader sees without scrolling.
const FIRST_SCREEN: usize = 25;
/// What may well have so much of the whole, and has half of it, is large.
const LARGE: f64 = 0.1;
/// Where lines end if nobody says.
const WIDTH: usize = 120;
/// More would be longer than what they stand above. A service that goes through frameworks has seventy methods with a tenth, in twenty lines.
const MOST_LINES: usize = 24;

/// Writes the names of those that the first lines, each of which is a node or none, do not show, the largest first; nothing where there are none, or not all
/// methods are meant.
pub(super) fn write(
    section: &Section<'_>,
    listed: &[Option<NodeIndex>],
    lines: &mut Lines<'_, impl Write>,
) -> io::Result<()> {
    if listed.len() <= FIRST_SCREEN || section.options.focus.is_some() {
        return Ok(());
    }
    let names = Names::of(section.profile);
    let method = |node: &NodeIndex| names.first(section.tree.nodes[node.0].method).0;
    let seen: HashSet<usize> = listed[..FIRST_SCREEN].iter().flatten().map(method).collect();
    let total = |row: &FlatRow| section.chosen.weight().of(&row.amounts).total;
    let is_large = |row: &FlatRow| {
        section.cells.may_have(&row.amounts) >= LARGE && 2.0 * share(total(row), section.cells.whole()) >= LARGE
    };
    let is_meant = |row: &FlatRow| is_large(row) && !seen.contains(&row.method.0);
    let mut large = rows(section.profile, &names, section.tree);
    large.retain(is_meant);
    if large.is_empty() {
        return Ok(());
    }
    large.sort_by_cached_key(|row| (Reverse(total(row)), &section.profile.methods[row.method.0].machine));
    // Overloads have one name here.
    let mut named = HashSet::new();
    large.retain(|row| named.insert(section.name(row.method).split('(').next()));
    let width = lines.style.width.unwrap_or(WIDTH);
    let mut text = vec!["with about a tenth or more, further down:".to_owned()];
    let count = large.len();
    let shares: Vec<String> = large.iter().map(|row| section.cells.share(&row.amounts, true)).collect();
    for (at, row) in large.iter().enumerate() {
        let share = &shares[at];
        let name = class_and_method(section.name(row.method));
        let item = match shares.get(at + 1) {
            // Mostly one calls the other.
            Some(next) if next == share => format!(" {name} /"),
            Some(_) => format!(" {name} {share},"),
            None => format!(" {name} {share}"),
        };
        let is_full = text.len() == MOST_LINES;
        match text.last_mut().filter(|line| line.width() + item.width() <= width) {
            Some(line) => line.push_str(&item),
            None if is_full => {
                text.push(format!("  and {} more: --view flat", count - at));
                break;
            }
            None => text.push(format!(" {item}")),
        }
    }
    text.iter().try_for_each(|line| lines.line("", line, Emphasis::None))?;
    writeln!(lines.out)
}

/// A name without its packages and parameters.
fn class_and_method(name: &str) -> &str {
    let head = name.split('(').next().unwrap_or(name);
    let method = head.rfind('.').unwrap_or(0);
    let class = head[..method].rfind('.').map_or(0, |at| at + 1);
    &head[class..]
}

#[cfg(test)]
mod tests {
    use super::class_and_method;
    use crate::profile::testing::profile_of;
    use crate::profile::{Clock, ClockMode, CpuSamples, MethodIndex, Node, NodeIndex, Tree};
    use crate::report::Options;
    use crate::report::text::{Style, write};

    /// A root that calls a deep chain, and something else that takes a third.
    fn deep(levels: usize) -> Tree {
        let node = |parent: Option<usize>, method: usize, self_ns: u64, total_ns: u64| Node {
            parent: parent.map(NodeIndex),
            method: MethodIndex(method),
            link: None,
            calls: 1,
            thrown: 0,
            self_ns,
            total_ns,
            error_ns: 0,
            total_error_ns: 0,
            cpu: CpuSamples::default(),
        };
        let mut nodes = vec![node(None, 0, 0, 3_000_000)];
        nodes.extend((1..levels).map(|level| {
            let self_ns = if level + 1 == levels { 2_000_000 } else { 0 };
            node(Some(level - 1), level, self_ns, 2_000_000)
        }));
        nodes.push(node(Some(0), levels, 1_000_000, 1_000_000));
        Tree { nodes, ..Tree::default() }
    }

    fn text(tree: Tree, style: &Style) -> String {
        let methods = tree.nodes.len();
        let mut profile = profile_of(tree, Vec::new(), methods);
        profile.clock = Clock { mode: ClockMode::Exact, ..profile.clock };
        let mut out = Vec::new();
        write(&profile, &Options { min_share: 0.005, ..Options::default() }, style, &mut out).expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_second_branch_is_named_above_a_deep_first_one() {
        let text = text(deep(30), &Style::default());
        let above = text.split("  share ").next().expect("a heading");
        let said = above.lines().skip_while(|line| !line.starts_with("with about a tenth or more"));
        let said = said.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("m25 / Shop.m26 /") && said.contains("m29 66.7%, Shop.m30 33.3%"),
            "those alike have one share: {said}"
        );
        assert!(!said.contains("m24 "), "{said}");
    }

    #[test]
    fn what_fits_on_the_first_screen_is_named_there_alone() {
        assert!(!text(deep(20), &Style::default()).contains("further down"));
    }

    #[test]
    fn it_is_never_longer_than_a_screen() {
        let text = text(deep(200), &Style { width: Some(60), ..Style::default() });
        let above = text.split("  share ").next().expect("a heading");
        let lines: Vec<&str> = above.lines().skip_while(|line| !line.starts_with("with about a tenth")).collect();
        assert!(lines.len() <= 26 && lines.iter().all(|line| line.len() <= 60), "{above}");
        assert!(above.contains(" more: --view flat"), "{above}");
    }

    #[test]
    fn packages_and_parameters_are_left_out() {
        assert_eq!(class_and_method("com.acme.Shop$Cart.add(int, java.util.List)"), "Shop$Cart.add");
        assert_eq!(class_and_method("Shop.add()"), "Shop.add");
        assert_eq!(class_and_method("[native]"), "[native]");
    }
}
