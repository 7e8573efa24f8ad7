//! What must be reached to be shown: `1%`, `alloc=1%`, `alloc-per-call=64KiB`.

use std::str::FromStr;

use super::units::unit;
use crate::profile::Unit;

/// How much of a metric a line must have.
#[derive(Clone, Debug, PartialEq)]
pub struct Least {
    /// The metric's id.
    pub metric: String,
    /// How much.
    pub limit: Limit,
}

/// So much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// A part of the whole, 0 to 1; of a metric that is a share itself, that share.
    Share(f64),
    /// In the metric's unit.
    Value(f64, Unit),
}

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Limit, String> {
        const WRONG: &str =
            "give a share, such as 1 or 0.5%, or METRIC= with a share or a value: alloc=1%, wall-per-call=2ms";
        let end = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
        let number: f64 = text[..end].parse().map_err(|_| WRONG.to_owned())?;
        match text[end..].trim() {
            "%" => Ok(Limit::Share(number / 100.0)),
            of => unit(of).map(|(factor, unit)| Limit::Value(number * factor, unit)).ok_or_else(|| WRONG.to_owned()),
        }
    }
}

impl FromStr for Least {
    type Err = String;

    fn from_str(text: &str) -> Result<Least, String> {
        let (metric, limit) = text.split_once('=').ok_or("the metric is missing")?;
        Ok(Least { metric: metric.trim().to_owned(), limit: limit.trim().parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_shares_or_values_with_their_units() {
        let least = |text: &str| text.parse::<Least>().map(|least| (least.metric, least.limit));
        let of = |metric: &str, limit| Ok((metric.to_owned(), limit));
        assert_eq!(least("alloc=1%"), of("alloc", Limit::Share(0.01)));
        assert_eq!(least("wall-per-call = 2.5 ms"), of("wall-per-call", Limit::Value(2.5e6, Unit::Nanoseconds)));
        assert_eq!(least("alloc-per-call=64KiB"), of("alloc-per-call", Limit::Value(65_536.0, Unit::Bytes)));
        assert_eq!(least("calls=1000"), of("calls", Limit::Value(1_000.0, Unit::Count)));
        for wrong in ["alloc", "alloc=", "alloc=x", "alloc=1 acre", "alloc=-1%"] {
            assert!(least(wrong).is_err(), "{wrong}");
        }
    }
}
