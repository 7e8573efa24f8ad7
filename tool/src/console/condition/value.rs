//! What something is compared with: numbers, times, sizes, shares.

use crate::profile::Unit;

/// A value and its unit; of what is in a certain unit, only such a one.
pub(super) fn value(text: &str, unit: Option<Unit>) -> Option<(f64, Unit)> {
    let number = || text.replace(['_', ','], "").parse().ok().map(|number| (number, Unit::Count));
    let time = || crate::request::duration(text).ok().map(|time| (time.as_nanos() as f64, Unit::Nanoseconds));
    let size = || {
        let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("B", 0)];
        let (digits, power) =
            units.iter().find_map(|(unit, power)| text.strip_suffix(unit).map(|digits| (digits, *power)))?;
        let number: f64 = digits.trim().replace(['_', ','], "").parse().ok()?;
        Some((number * f64::from(1_u32 << power), Unit::Bytes))
    };
    let share = || {
        let number: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
        Some((number / 100.0 * Unit::Share.one(), Unit::Share))
    };
    match unit {
        Some(Unit::Share) => share(),
        Some(Unit::Nanoseconds) => time(),
        Some(Unit::Bytes) => size(),
        Some(Unit::Count | Unit::Bytecodes) => number(),
        None => number().or_else(size).or_else(time).or_else(share),
    }
}
