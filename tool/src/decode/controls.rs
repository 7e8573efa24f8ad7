//! Control calls: a root's calls that were timed as wholes.

/// Calls of a root that were timed as a whole, without a probe's recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Controls {
    /// How many.
    pub count: u64,
    sum_ns: f64,
    sum_of_squares: f64,
    /// How far the mean was still moving.
    moving_ns: f64,
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

    /// Those that are not among earlier ones.
    pub fn since(&self, earlier: &Controls) -> Controls {
        Controls {
            count: self.count - earlier.count,
            sum_ns: self.sum_ns - earlier.sum_ns,
            sum_of_squares: self.sum_of_squares - earlier.sum_of_squares,
            moving_ns: 0.0,
        }
    }

    /// They went on changing since earlier ones, so many periods before: their mean is uncertain by what that was in each,
    /// or was since others, if that is more.
    pub fn still_moving(self, earlier: &Controls, periods: f64) -> Controls {
        if earlier.count == 0 {
            return self;
        }
        let moved_ns = (self.mean_ns() - earlier.mean_ns()).abs() / periods;
        Controls { moving_ns: self.moving_ns.max(moved_ns), ..self }
    }

    /// Standard error of the mean, and how far that was still moving. One says nothing of others.
    pub fn error_ns(&self) -> f64 {
        if self.count == 1 {
            return self.mean_ns();
        }
        let variance = (self.sum_of_squares / self.count as f64 - self.mean_ns() * self.mean_ns()).max(0.0);
        (variance / self.count as f64).sqrt().hypot(self.moving_ns)
    }
}
