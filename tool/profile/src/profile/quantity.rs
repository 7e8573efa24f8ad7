//! A metric of methods themselves, or with what they call.

use std::borrow::Cow;

use super::{Extent, Metric};

/// Of what a metric is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A method itself.
    Own,
    /// It with what it calls.
    Total,
}

/// A metric of methods themselves, or with what they call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The metric's id.
    pub id: Cow<'static, str>,
    /// Of what.
    pub part: Part,
}

impl Quantity {
    /// Stands for whatever metric time is.
    const TIME: &'static str = "time";
    /// Time in methods themselves.
    pub const SELF_TIME: Quantity = Quantity { id: Cow::Borrowed(Quantity::TIME), part: Part::Own };
    /// Time in methods and what they call.
    pub const TOTAL: Quantity = Quantity { id: Cow::Borrowed(Quantity::TIME), part: Part::Total };
    /// Calls.
    pub const CALLS: Quantity = Quantity { id: Cow::Borrowed("calls"), part: Part::Own };

    /// Of a metric with this id.
    pub fn of(id: &str, part: Part) -> Quantity {
        Quantity { id: Cow::Owned(id.to_owned()), part }
    }

    /// Its place among metrics, the first of which is time; `None` if none of them has that part.
    pub fn among<'m>(&self, metrics: impl IntoIterator<Item = &'m Metric>) -> Option<usize> {
        let is_meant = |(at, metric): (usize, &Metric)| {
            let is_named = if self.id == Quantity::TIME { at == 0 } else { metric.id == self.id };
            is_named && (self.part == Part::Own || metric.extent == Extent::OwnAndTotal)
        };
        metrics.into_iter().enumerate().find(|found| is_meant(*found)).map(|(at, _)| at)
    }

    /// Whether it is of time, whatever metric that is.
    pub fn is_time(&self) -> bool {
        self.id == Quantity::TIME
    }
}

impl From<&str> for Quantity {
    /// `self`, `total` (of time), a metric's id, or that with `.total`.
    fn from(text: &str) -> Quantity {
        match text {
            "self" => Quantity::SELF_TIME,
            "total" => Quantity::TOTAL,
            id => match id.strip_suffix(".total") {
                Some(id) => Quantity::of(id, Part::Total),
                None => Quantity::of(id, Part::Own),
            },
        }
    }
}
