//! Control calls: a root's calls that were timed as wholes.

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use super::Decoder;

/// Calls of a root that were timed as a whole, without a probe's recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Controls {
    /// How many.
    pub count: u64,
    sum_ns: f64,
    sum_of_squares: f64,
}

impl Controls {
    #[cfg(test)]
    pub(crate) fn of(durations: &[u64]) -> Controls {
        let mut controls = Controls::default();
        durations.iter().for_each(|duration| controls.add(*duration));
        controls
    }

    /// One more.
    pub fn add(&mut self, duration_ns: u64) {
        let duration = duration_ns as f64;
        self.count += 1;
        self.sum_ns += duration;
        self.sum_of_squares += duration * duration;
    }

    /// How long one took.
    pub fn mean_ns(&self) -> f64 {
        self.sum_ns / self.count as f64
    }

    /// The mean of their squares, in ns².
    pub fn mean_square(&self) -> f64 {
        self.sum_of_squares / self.count as f64
    }

    /// How long all of them took.
    pub fn total_ns(&self) -> u64 {
        self.sum_ns as u64
    }

    /// Those that are not among earlier ones.
    pub fn since(&self, earlier: &Controls) -> Controls {
        Controls {
            count: self.count - earlier.count,
            sum_ns: self.sum_ns - earlier.sum_ns,
            sum_of_squares: self.sum_of_squares - earlier.sum_of_squares,
        }
    }

    /// These and others.
    pub fn and(&self, others: &Controls) -> Controls {
        Controls {
            count: self.count + others.count,
            sum_ns: self.sum_ns + others.sum_ns,
            sum_of_squares: self.sum_of_squares + others.sum_of_squares,
        }
    }

    /// Standard error of the mean. One says nothing of others.
    pub fn error_ns(&self) -> f64 {
        if self.count == 1 {
            return self.mean_ns();
        }
        let variance = (self.sum_of_squares / self.count as f64 - self.mean_ns() * self.mean_ns()).max(0.0);
        (variance / self.count as f64).sqrt()
    }
}

impl Decoder {
    pub(super) fn control(&mut self, method: MethodId, duration_ns: u64) {
        self.controls.entry(method).or_default().add(duration_ns);
    }

    /// The control invocations of each root.
    pub fn controls(&self) -> &FxHashMap<MethodId, Controls> {
        &self.controls
    }
}
