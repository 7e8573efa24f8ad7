//! A report in a few lines.

use std::io::{self, Write};

use super::super::belief;
use super::super::units::plural;
use super::{Style, advice, state, warnings};
use crate::profile::{Node, Profile};
use headwater_terms::printable::{Printable, printable};

/// From this part of all calls on it is said at the top that they may be missing.
const MUCH_IS_MISSING: f64 = 0.01;

/// What somebody should know whose report is in a file: what the times are good for, what became of the roots, what is missing, warnings.
pub fn write(profile: &Profile, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let out = &mut Printable(out);
    if let Some(line) = belief::line(profile) {
        writeln!(out, "{line}")?;
    }
    for root in profile.roots.iter().filter(|root| advice(profile, root).is_none()) {
        writeln!(out, "root {}: {}", printable(&root.pattern), state(profile, root))?;
    }
    missing_calls(profile, out)?;
    warnings(&profile.warnings, style, out)
}

/// That calls are missing, if many are.
pub(super) fn missing_calls(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let missing = profile.missing_share();
    if missing > MUCH_IS_MISSING {
        let is_sampled = |node: &Node| node.calls == 0 && node.total_ns > 0;
        let sampled = match profile.basis.samples > 0 && profile.merged.nodes.iter().any(is_sampled) {
            true => " (>=0: only seen in samples)",
            false => "",
        };
        let unseen = match profile.unseen.len() {
            0 => String::new(),
            unseen => format!(
                ", {} got no probes: (... not seen) marks their callers",
                plural(unseen as u64, "method", "methods")
            ),
        };
        writeln!(
            out,
            "about {:.0}% of the calls are missing, because the program did not wait until all methods were instrumented: >= marks \
             counts that are too low{sampled}{unseen}\n  - record for longer",
            100.0 * missing
        )?;
        if profile.reach.as_ref().is_none_or(|reach| reach.wanted.include.is_empty()) {
            writeln!(out, "  - name what is to be counted: --include '{}.**'", package(profile))?;
        }
        writeln!(out, "  - where the program may be held up: --gentle off")?;
    }
    Ok(())
}

/// The package of the first root, or one as an example.
fn package(profile: &Profile) -> &str {
    let class = profile.roots.first().and_then(|root| root.pattern.split_once("::")).map(|(class, _)| class);
    let package = class.and_then(|class| class.rsplit_once('.')).map(|(package, _)| package);
    package.filter(|package| !package.contains('*')).unwrap_or("com.acme")
}
