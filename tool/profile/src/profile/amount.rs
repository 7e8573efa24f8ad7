//! A value of a metric.

/// A value of a metric, of one method or node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The method's own.
    pub own: u64,
    /// With what it calls.
    pub total: u64,
    /// Uncertainty of `own`: a standard deviation.
    pub own_error: u64,
    /// Uncertainty of `total`, at most.
    pub total_error: u64,
}

impl Amount {
    /// Adds another's.
    pub fn add(&mut self, other: Amount) {
        self.add_own(other);
        self.add_total(other);
    }

    /// Adds what another has itself.
    pub(crate) fn add_own(&mut self, other: Amount) {
        add_up!(self += other: own, own_error);
    }

    /// Adds what another has with what it calls.
    pub(crate) fn add_total(&mut self, other: Amount) {
        add_up!(self += other: total, total_error);
    }
}
