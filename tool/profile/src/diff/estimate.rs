//! What the runs of a side say of a quantity, and how uncertain that is.
//!
//! A run states a value and its standard deviation. Of several runs the mean counts. Its variance is the larger of two:
//!
//! - what the runs state: the sum of their variances, divided by the square of their number, because runs err independently of one
//!   another. What the runs of one program have in common in their errors is the same on both sides where its code is;
//! - how far they differ: the square of the standard error of their mean. So an error that a profile does not know of is found.
//!
//! An uncertainty is half the width of an interval with 95 per cent of its distribution. Where the variance is what few runs differed by, it is
//! itself uncertain: Student's t takes the place of the normal distribution. Of a difference, variances add up, and the degrees of
//! freedom are Welch's (*The generalization of Student's problem when several different population variances are involved*, 1947).

/// What a run states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stated {
    pub(super) value: f64,
    /// One standard deviation.
    pub(super) deviation: f64,
}

/// What all runs of a side say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    pub(super) mean: f64,
    /// Of the mean.
    variance: f64,
    /// Degrees of freedom, as their reciprocal: nothing where the variance is as stated.
    by_freedom: f64,
}

impl Estimate {
    /// Of at least one run.
    pub(super) fn of(runs: impl Iterator<Item = Stated> + Clone) -> Estimate {
        let n = runs.clone().count() as f64;
        let mean = runs.clone().map(|run| run.value).sum::<f64>() / n;
        let stated = runs.clone().map(|run| run.deviation * run.deviation).sum::<f64>() / (n * n);
        let squares: f64 = runs.map(|run| (run.value - mean) * (run.value - mean)).sum();
        let spread = if n > 1.0 { squares / (n * (n - 1.0)) } else { 0.0 };
        match spread > stated {
            true => Estimate { mean, variance: spread, by_freedom: 1.0 / (n - 1.0) },
            false => Estimate { mean, variance: stated, by_freedom: 0.0 },
        }
    }

    /// Uncertainty of the mean.
    pub(super) fn error(&self) -> f64 {
        student(self.by_freedom) * self.variance.sqrt()
    }

    /// Uncertainty of the difference to another.
    pub(super) fn error_to(&self, other: &Estimate) -> f64 {
        let variance = self.variance + other.variance;
        if variance == 0.0 || variance.is_infinite() {
            return variance;
        }
        let part = |of: &Estimate| (of.variance / variance).powi(2) * of.by_freedom;
        student(part(self) + part(other)) * variance.sqrt()
    }
}

/// So many standard deviations have 95 per cent of a normal distribution between them and their opposites.
pub(crate) const NORMAL: f64 = 1.96;

/// The same of Student's t, with the reciprocal of its degrees of freedom: between the table's rows a line is drawn, which errs to the larger.
fn student(by_freedom: f64) -> f64 {
    /// Degrees of freedom, and the two-sided quantile.
    const TABLE: [(f64, f64); 13] = [
        (1.0, 12.706),
        (2.0, 4.303),
        (3.0, 3.182),
        (4.0, 2.776),
        (5.0, 2.571),
        (6.0, 2.447),
        (7.0, 2.365),
        (8.0, 2.306),
        (10.0, 2.228),
        (15.0, 2.131),
        (30.0, 2.042),
        (60.0, 2.0),
        (f64::INFINITY, NORMAL),
    ];
    let row = |pair: &[(f64, f64)]| (1.0 / pair[1].0 <= by_freedom).then(|| (pair[0], pair[1]));
    match TABLE.windows(2).find_map(row) {
        Some(((few, high), (many, low))) => {
            let part = (by_freedom - 1.0 / many) / (1.0 / few - 1.0 / many);
            low + part * (high - low)
        }
        // No reciprocal is negative.
        None => NORMAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(runs: &[(f64, f64)]) -> Estimate {
        Estimate::of(runs.iter().map(|&(value, deviation)| Stated { value, deviation }))
    }

    #[test]
    fn a_single_run_is_as_uncertain_as_it_says() {
        let (one, other) = (estimate(&[(100.0, 3.0)]), estimate(&[(90.0, 4.0)]));
        assert_eq!((one.mean, one.error()), (100.0, NORMAL * 3.0));
        assert_eq!(one.error_to(&other), NORMAL * 5.0);
    }

    #[test]
    fn several_runs_that_agree_are_as_uncertain_as_they_say_together() {
        let agreeing = estimate(&[(100.0, 4.0), (101.0, 4.0), (99.0, 4.0), (100.0, 4.0)]);
        assert_eq!((agreeing.mean, agreeing.error()), (100.0, NORMAL * 2.0));
    }

    #[test]
    fn several_runs_that_do_not_agree_are_as_uncertain_as_they_differ() {
        let apart = estimate(&[(90.0, 1.0), (110.0, 1.0)]);
        assert_eq!((apart.mean, apart.error()), (100.0, 12.706 * 10.0));
        // Beside a side that is well known, there is still one degree of freedom; beside another such side, two.
        assert!((apart.error_to(&estimate(&[(50.0, 0.0)])) - 127.06).abs() < 1e-9);
        assert!((apart.error_to(&apart) - 4.303 * 200_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_known_once_is_not_known() {
        let unknown = estimate(&[(90.0, 1.0), (110.0, f64::INFINITY)]);
        assert_eq!((unknown.mean, unknown.error()), (100.0, f64::INFINITY));
        assert_eq!(unknown.error_to(&estimate(&[(50.0, 0.0)])), f64::INFINITY);
        assert_eq!(estimate(&[(0.0, 0.0)]).error_to(&estimate(&[(7.0, 0.0)])), 0.0, "counts are exact");
    }

    #[test]
    fn between_rows_the_quantile_errs_to_the_larger() {
        for (freedom, quantile) in [(1.0, 12.706), (1.5, 6.1), (4.0, 2.776), (9.0, 2.262), (20.0, 2.086), (1e9, 1.96)] {
            let found = student(1.0 / freedom);
            assert!((quantile - 1e-9..1.2 * quantile).contains(&found), "{freedom}: {found}");
        }
    }
}
