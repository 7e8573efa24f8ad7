//! How a time divides among parts that are known less well than it is: a subtree's among its root's own time and its callees.
//!
//! Each part was found to take a time, give or take a deviation; none takes less than nothing; and together they take the whole. Where a
//! deviation is much smaller than the time, that is what the part gets. Where it is much larger, what was found says
//! nothing, and cutting off at nothing what is below it would leave the rest to chance: one profile would give all of the time to one method,
//! the next one to another. So times are expected to be about the usual one (distributed with the density `t * exp(-t / usual)`, which is highest
//! there), and the parts are the likeliest ones that add up to the whole. Usual is what each gets, in proportion to its probes, of the time that
//! is not known to be somebody's; but of a part that was found to take more than that, and not by chance, it is more.

/// A part.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// As it was found, in ns; may be below zero.
    pub found: f64,
    /// Its standard deviation, in ns.
    pub deviation: f64,
    /// Halves of probe pairs in it.
    pub halves: f64,
}

/// Deviations that chance explains.
const CHANCE: f64 = 2.0;

impl Part {
    /// What it would be, in ns, if nothing were known of it but what is `common` for half a probe pair.
    fn usual(self, common: f64) -> f64 {
        (common * self.halves).max(self.found - CHANCE * self.deviation)
    }

    /// How little is known of it, from 0 to 1.
    fn doubt(self, common: f64) -> f64 {
        let (chance, time) = (CHANCE * self.deviation, self.found.max(common * self.halves));
        if chance < time { chance / time } else { 1.0 }
    }

    /// The likeliest time, and how fast it grows with `more`: what every ns² of variance is pulled towards the whole.
    fn likeliest(self, common: f64, more: f64) -> (f64, f64) {
        let (usual, variance) = (self.usual(common), self.deviation * self.deviation);
        if variance <= 0.0 || usual <= 0.0 {
            return (self.found.max(0.0), 0.0);
        }
        // Where the density's derivative is nothing: t² - centre * t - variance = 0.
        let centre = self.found + variance * (more - 1.0 / usual);
        let root = (centre * centre + 4.0 * variance).sqrt();
        let time = if centre > 0.0 { 0.5 * (centre + root) } else { 2.0 * variance / (root - centre) };
        (time, variance * time / root)
    }
}

/// What half a probe pair has, in ns, of the time that is not known to be somebody's.
fn common(whole: f64, parts: &[Part]) -> f64 {
    const STEPS: usize = 5;
    let halves: f64 = parts.iter().map(|part| part.halves).sum();
    if halves <= 0.0 {
        return 0.0;
    }
    (0..STEPS).fold(whole / halves, |common, _| {
        let (mut left, mut variance, mut among) = (whole, 0.0, 0.0);
        for part in parts {
            let doubt = part.doubt(common);
            left -= (1.0 - doubt) * part.found.max(0.0);
            variance += ((1.0 - doubt) * part.deviation).powi(2);
            among += doubt * part.halves;
        }
        // As it was found, where that is well above nothing, and else what it may be.
        let left = 0.5 * (left + (left * left + 4.0 * variance).sqrt());
        if among > 0.0 { left / among } else { common }
    })
}

/// The parts' likeliest times, which add up to the whole.
pub fn divide(whole: f64, parts: &[Part], times: &mut Vec<f64>) {
    /// Where parts have no room to move.
    const MOST_STEPS: usize = 50;
    const NEAR: f64 = 1e-6;
    times.clear();
    if parts.len() == 1 {
        times.push(whole);
        return;
    }
    let common = common(whole, parts);
    let mut more = 0.0;
    for _ in 0..MOST_STEPS {
        times.clear();
        let (mut sum, mut slope) = (0.0, 0.0);
        for (time, growth) in parts.iter().map(|part| part.likeliest(common, more)) {
            times.push(time);
            sum += time;
            slope += growth;
        }
        // The sum is a convex function that grows: from the second step on, each comes nearer.
        if (sum - whole).abs() <= NEAR * whole || slope <= 0.0 {
            break;
        }
        more -= (sum - whole) / slope;
    }
    let sum: f64 = times.iter().sum();
    let share = if sum > 0.0 { whole / sum } else { 0.0 };
    times.iter_mut().for_each(|time| *time *= share);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(whole: f64, parts: &[(f64, f64, f64)]) -> Vec<f64> {
        let part = |(found, deviation, halves)| Part { found, deviation, halves };
        let parts: Vec<Part> = parts.iter().copied().map(part).collect();
        let mut times = Vec::new();
        divide(whole, &parts, &mut times);
        times
    }

    fn are_near(times: &[f64], expected: &[f64]) {
        let near = times.iter().zip(expected).all(|(time, expected)| (time - expected).abs() < 0.01);
        assert!(near && times.len() == expected.len(), "{times:?}, not {expected:?}");
    }

    #[test]
    fn what_is_known_well_is_what_was_found() {
        are_near(&divided(100.0, &[(90.0, 0.1, 50.0), (10.0, 0.1, 50.0)]), &[90.0, 10.0]);
        are_near(&divided(100.0, &[(90.0, 0.0, 50.0), (10.0, 0.0, 50.0)]), &[90.0, 10.0]);
    }

    #[test]
    fn what_is_not_known_is_as_usual() {
        are_near(&divided(100.0, &[(-4_000.0, 1e6, 80.0), (4_100.0, 1e6, 20.0)]), &[80.0, 20.0]);
    }

    #[test]
    fn what_is_known_well_does_not_give_for_what_is_not() {
        let times = divided(100.0, &[(90.0, 0.5, 30.0), (30.0, 20.0, 30.0), (-20.0, 20.0, 30.0)]);
        assert!((times[0] - 90.0).abs() < 1.0, "{times:?}");
        assert!(times[1] > times[2] && times[2] > 0.0, "{times:?}");
        assert!((times.iter().sum::<f64>() - 100.0).abs() < 1e-6, "{times:?}");
    }

    #[test]
    fn what_is_known_to_be_more_than_usual_is_what_was_found() {
        let times = divided(100.0, &[(99.0, 0.5, 1.0), (4.0, 3.0, 1e4), (-3.0, 3.0, 1e4)]);
        assert!((times[0] - 99.0).abs() < 0.5 && times[1] > times[2], "{times:?}");
        let times = divided(100.0, &[(60.0, 5.0, 1.0), (40.0, 5.0, 1e4)]);
        assert!((times[0] - 60.0).abs() < 2.0, "{times:?}");
    }

    #[test]
    fn what_is_left_to_chance_is_divided_without_what_is_not() {
        let times = divided(100.0, &[(99.0, 0.5, 1.0), (30.0, 1e3, 2.0), (-29.0, 1e3, 6.0)]);
        assert!((times[0] - 99.0).abs() < 0.5 && (1.5..3.5).contains(&(times[2] / times[1])), "{times:?}");
    }

    #[test]
    fn parts_without_room_give_in_proportion() {
        are_near(&divided(100.0, &[(150.0, 0.0, 50.0), (50.0, 0.0, 50.0), (-5.0, 0.0, 0.0)]), &[75.0, 25.0, 0.0]);
        are_near(&divided(100.0, &[(150.0, 0.0, 50.0), (50.0, 1.0, 50.0)]), &[100.0, 0.0]);
        are_near(&divided(0.0, &[(5.0, 1.0, 0.0), (0.0, 0.0, 0.0)]), &[0.0, 0.0]);
        assert!(divided(1.0, &[]).is_empty());
    }

    #[test]
    fn it_is_found_however_far_it_is() {
        for scale in [1e-6, 1.0, 1e12] {
            let times = divided(scale, &[(1e3 * scale, 5.0 * scale, scale), (-2e3 * scale, 9.0 * scale, 1e-3 * scale)]);
            assert!((times.iter().sum::<f64>() / scale - 1.0).abs() < 1e-9 && times[0] > times[1], "{times:?}");
        }
    }
}
