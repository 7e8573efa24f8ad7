//! What happened to the whole JVM, and when.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::lines::{Emphasis, Lines};
use crate::profile::{Slice, Track};
use crate::report::units::{count, plural, time, value};

/// So many slices of a track are shown, the longest, unless all are wanted.
const SHOWN: usize = 20;
/// So many different things that are said of them.
const LABELS: usize = 4;
/// Columns of a number.
const WIDTH: usize = 12;

pub(super) fn write<W: Write>(tracks: &[Track], lines: &mut Lines<'_, W>) -> io::Result<()> {
    for track in tracks {
        writeln!(lines.out)?;
        lines.line("", &format!("{}: {}", track.title, summary(track)), Emphasis::Bold)?;
        lines.line("", &track.about, Emphasis::Faint)?;
        let shown = longest(&track.slices, if lines.style.verbose { usize::MAX } else { SHOWN });
        if !shown.is_empty() {
            let titles = track.amounts.iter().map(|amount| amount.title.clone().into_owned());
            lines.line(&row(["at".to_owned(), "for".to_owned()].into_iter().chain(titles)), "", Emphasis::Faint)?;
        }
        for slice in &shown {
            let amounts = track.amounts.iter().enumerate().map(|(place, amount)| {
                let known = slice.amounts.get(place).copied().flatten();
                known.map_or(String::new(), |known| value(amount.unit, known))
            });
            let times = [moment(slice.start_ns), time(slice.duration_ns)];
            lines.line(&row(times.into_iter().chain(amounts)), &slice.said(), Emphasis::None)?;
        }
        let hidden = track.slices.len() - shown.len();
        if hidden > 0 {
            let others = plural(hidden as u64, "other", "others");
            lines.line("", &format!("... {others}, none of them longer: --verbose shows all"), Emphasis::Faint)?;
        }
    }
    Ok(())
}

/// How many slices there are, how long they took, and what is said of them.
pub(super) fn summary(track: &Track) -> String {
    let [one, several] = &track.nouns;
    let mut labels = track.labels();
    if labels.len() > LABELS {
        // Where each is another, as of classes, none says anything of all.
        labels.retain(|(_, times)| *times > 1);
    }
    let mut said: Vec<String> =
        labels.iter().take(LABELS).map(|(label, times)| format!("{} {label}", count(*times))).collect();
    let named: u64 = labels.iter().take(LABELS).map(|(_, times)| times).sum();
    let others = track.slices.iter().filter(|slice| !slice.said().is_empty()).count() as u64 - named;
    if others > 0 && !said.is_empty() {
        said.push(plural(others, "other", "others"));
    }
    if track.lost > 0 {
        said.push(format!("{} more were not seen", count(track.lost)));
    }
    let sums: String =
        track.sums().map(|(amount, sum)| format!(", {} {}", amount.title, value(amount.unit, sum))).collect();
    let times = match track.longest_ns() {
        0 => String::new(),
        longest_ns => format!(", {} altogether, {} at most", time(track.total_ns()), time(longest_ns)),
    };
    format!(
        "{}{times}{sums}{}{}",
        plural(track.slices.len() as u64, one, several),
        if said.is_empty() { "" } else { ": " },
        said.join(", ")
    )
}

/// The longest, in the order of time.
fn longest(slices: &[Slice], most: usize) -> Vec<&Slice> {
    let mut longest: Vec<&Slice> = slices.iter().collect();
    longest.sort_by_key(|slice| Reverse(slice.duration_ns));
    longest.truncate(most);
    longest.sort_by_key(|slice| slice.start_ns);
    longest
}

/// Since recording began.
fn moment(ns: i64) -> String {
    format!("{}{:.3} s", if ns < 0 { "-" } else { "" }, ns.unsigned_abs() as f64 / 1e9)
}

fn row(numbers: impl Iterator<Item = String>) -> String {
    numbers.map(|number| format!("{number:>WIDTH$}")).collect::<String>() + "  "
}
