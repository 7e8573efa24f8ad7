//! The columns of the live view: what they are called, how wide they are, which of them fit, and how rows are sorted by them.

use std::cmp::Ordering;

use crate::profile::{Amounts, CpuSamples, Unit};
use crate::report::units::{self, count};
use crate::report::{View, bounded, share};

/// The narrowest method column that other columns are left out for.
const MIN_NAME: u16 = 26;
/// From this width on there is room for long numbers.
const WIDE: u16 = 120;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Part of the time of all roots: of the self time in the flat view, of the total time elsewhere.
    Share,
    /// Time in the method and below it.
    Total,
    /// Part of the time in which the thread was running.
    Cpu,
    /// Time in the method itself.
    SelfTime,
    /// That, a call.
    PerCall,
    /// Number of calls.
    Calls,
    /// The method, or the thread.
    Name,
}

impl Column {
    pub(super) fn heading(self) -> &'static str {
        match self {
            Column::Share => "share",
            Column::Total => "total",
            Column::Cpu => "cpu",
            Column::SelfTime => "self",
            Column::PerCall => "self/call",
            Column::Calls => "calls",
            Column::Name => "method",
        }
    }

    fn width(self, is_wide: bool) -> u16 {
        match self {
            Column::Share | Column::Cpu => 6,
            Column::Total | Column::SelfTime => 9,
            Column::PerCall => 10,
            Column::Calls if is_wide => 15,
            Column::Calls => 11,
            Column::Name => 0,
        }
    }

    /// What stands in it, for a row of a view.
    pub(super) fn text(self, view: View, amounts: &Amounts, lead: Lead, width: usize) -> String {
        let text = |value| units::value(lead.unit, value);
        let Amounts { calls, self_ns, total_ns, error_ns, total_error_ns, cpu, at_least, .. } = *amounts;
        match self {
            Column::Share => {
                let part = if view == View::Flat { self_ns } else { total_ns };
                format!("{:.1}%", 100.0 * share(part, lead.whole))
            }
            Column::Total => bounded(total_ns, total_error_ns, text),
            Column::Cpu => match cpu.share() {
                Some(share) if cpu.samples >= CpuSamples::ENOUGH => format!("{:.0}%", 100.0 * share),
                _ => String::new(),
            },
            Column::SelfTime => bounded(self_ns, error_ns, text),
            Column::PerCall => match self_ns.checked_div(calls) {
                Some(each) => bounded(each, error_ns / calls, text),
                None => String::new(),
            },
            Column::Calls if at_least => format!(">={}", fitting_count(calls, width.saturating_sub(2))),
            Column::Calls => fitting_count(calls, width),
            Column::Name => String::new(),
        }
    }
}

/// The metric that stands in the place of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    pub(super) unit: Unit,
    /// Of all roots.
    pub(super) whole: u64,
}

/// A number in at most so many characters.
fn fitting_count(n: u64, width: usize) -> String {
    let exact = count(n);
    if exact.len() <= width {
        return exact;
    }
    let (value, unit) = if n >= 1_000_000_000_000 { (n as f64 / 1e12, "T") } else { (n as f64 / 1e9, "G") };
    format!("{value:.3} {unit}")
}

/// What rows are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// The column.
    pub column: Column,
    /// The other way round than usual: the smallest first, or names from the end.
    pub reversed: bool,
}

/// What a row is compared by.
pub(super) struct Measured<'a> {
    pub(super) amounts: &'a Amounts,
    pub(super) name: &'a str,
}

impl Sort {
    /// As usual: the largest first, names from the beginning.
    pub fn by(column: Column) -> Sort {
        Sort { column, reversed: false }
    }

    /// What comes first unless the user says.
    pub fn usual(view: View) -> Sort {
        Sort::by(if view == View::Flat { Column::SelfTime } else { Column::Total })
    }

    /// What it comes to in a view.
    pub(super) fn in_view(self, view: View) -> Sort {
        let column = if self.column == Column::Share { Sort::usual(view).column } else { self.column };
        Sort { column, ..self }
    }

    pub(super) fn compare(self, a: &Measured<'_>, b: &Measured<'_>) -> Ordering {
        let by = |number: fn(&Amounts) -> u64| number(b.amounts).cmp(&number(a.amounts));
        let by_part = |part: fn(&Amounts) -> f64| part(b.amounts).total_cmp(&part(a.amounts));
        let order = match self.column {
            // In the flat view it has been replaced.
            Column::Share | Column::Total => by(|amounts| amounts.total_ns),
            Column::SelfTime => by(|amounts| amounts.self_ns),
            Column::Calls => by(|amounts| amounts.calls),
            Column::Cpu => by_part(|amounts| {
                let known = amounts.cpu.samples >= CpuSamples::ENOUGH;
                amounts.cpu.share().filter(|_| known).unwrap_or(-1.0)
            }),
            Column::PerCall => by_part(|amounts| share(amounts.self_ns, amounts.calls)),
            Column::Name => Ordering::Equal,
        };
        let order = order.then_with(|| a.name.cmp(b.name));
        if self.reversed { order.reverse() } else { order }
    }
}

/// The columns of a view that fit, and their widths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// All but the last are followed by a blank.
    pub(super) columns: Vec<(Column, u16)>,
}

impl Columns {
    /// Of those that are known of a profile.
    pub(super) fn fitting(view: View, sort: Column, is_known: impl Fn(Column) -> bool, width: u16) -> Columns {
        use Column::{Calls, Cpu, Name, PerCall, SelfTime, Share, Total};
        let all: &[Column] = match view {
            View::Tree | View::Locks | View::Tracks => &[Share, Total, Cpu, SelfTime, Calls, Name],
            View::Flat => &[Share, SelfTime, Cpu, Total, PerCall, Calls, Name],
            View::Callers => &[Share, Total, SelfTime, Cpu, Calls, Name],
        };
        let main = Sort::usual(view).column;
        let mut columns: Vec<(Column, u16)> = all
            .iter()
            .filter(|column| is_known(**column))
            .map(|column| (*column, column.width(width >= WIDE)))
            .collect();
        let taken = |columns: &[(Column, u16)]| {
            columns.iter().filter(|(column, _)| *column != Name).map(|(_, width)| width + 1).sum::<u16>()
        };
        // What the rows are sorted by stays longer than what they are not.
        let sacrifice = |column: &Column| *column != sort && *column != main;
        let order = [PerCall, Cpu, Share, SelfTime, Total, Calls];
        let order = order.iter().filter(|column| sacrifice(column)).chain(order.iter().filter(|it| !sacrifice(it)));
        for column in order {
            if taken(&columns) + MIN_NAME <= width {
                break;
            }
            columns.retain(|(other, _)| other != column);
        }
        let name = width.saturating_sub(taken(&columns));
        if let Some((Name, width)) = columns.last_mut() {
            *width = name;
        }
        Columns { columns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(view: View, sort: Column, width: u16) -> String {
        let columns = Columns::fitting(view, sort, |_| true, width).columns;
        columns.iter().map(|(column, _)| column.heading()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_narrow_terminal_has_fewer_columns_and_keeps_the_one_that_is_sorted_by() {
        for (width, headed) in [
            (200, "share self cpu total self/call calls method"),
            (80, "share self cpu total calls method"),
            (72, "share self cpu total calls method"),
            (71, "share self total calls method"),
            (64, "self total calls method"),
            (50, "self calls method"),
            (40, "self method"),
            (30, "method"),
            (0, "method"),
        ] {
            assert_eq!(headings(View::Flat, Column::SelfTime, width), headed, "{width}");
        }
        assert_eq!(headings(View::Flat, Column::PerCall, 50), "self self/call method");
        assert_eq!(headings(View::Tree, Column::Cpu, 45), "total cpu method");
    }

    #[test]
    fn a_number_that_does_not_fit_is_rounded_rather_than_cut() {
        assert_eq!(fitting_count(999_999_999, 11), "999,999,999");
        assert_eq!(fitting_count(1_234_567_890, 11), "1.235 G");
        assert_eq!(fitting_count(1_234_567_890, 15), "1,234,567,890");
        assert_eq!(fitting_count(u64::MAX, 15), "18446744.074 T");
    }

    #[test]
    fn rows_are_sorted_by_any_column_either_way() {
        let amounts = |calls, self_ns, total_ns, running| {
            let cpu = CpuSamples { samples: 10, running };
            Amounts { calls, self_ns, total_ns, cpu, ..Amounts::default() }
        };
        let rows = [("b", amounts(1, 50, 90, 1)), ("a", amounts(9, 60, 70, 5)), ("c", amounts(4, 40, 95, 9))];
        let sorted = |column, reversed| {
            let mut rows = rows.clone();
            rows.sort_by(|a, b| {
                let (a, b) = (Measured { amounts: &a.1, name: a.0 }, Measured { amounts: &b.1, name: b.0 });
                Sort { column, reversed }.compare(&a, &b)
            });
            rows.map(|(name, _)| name).concat()
        };
        for (column, order) in [
            (Column::Total, "cba"),
            (Column::Share, "cba"),
            (Column::SelfTime, "abc"),
            (Column::Calls, "acb"),
            (Column::PerCall, "bca"),
            (Column::Cpu, "cab"),
            (Column::Name, "abc"),
        ] {
            assert_eq!(sorted(column, false), order, "{column:?}");
            assert_eq!(sorted(column, true), order.chars().rev().collect::<String>(), "{column:?}");
        }
    }
}
