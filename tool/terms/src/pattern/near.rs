//! "Did you mean ...?"

/// The candidates that come nearest to a name nobody has, best first: for "did you mean".
///
/// Names are compared without parameters, whole and by their last part; the last part counts more, because packages
/// make everything in them look alike.
pub fn near_misses<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>, limit: usize) -> Vec<&'a str> {
    const NEAR: f64 = 0.6;
    let wanted = comparable(wanted);
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut scored: Vec<(f64, &str)> = candidates
        .map(|candidate| (similarity(&wanted, &comparable(candidate)), candidate))
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
    scored.dedup_by(|(_, x), (_, y)| x == y);
    scored.truncate(limit);
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

/// A name without parameters and wildcards, with dots for all separators.
fn comparable(name: &str) -> String {
    let head = name.split('(').next().unwrap_or(name);
    head.replace("::", ".").replace(['#', '/', '$'], ".").replace('*', "").trim_matches('.').to_owned()
}

fn similarity(wanted: &str, candidate: &str) -> f64 {
    const SIMPLE_WEIGHT: f64 = 0.6;
    const SHORTEST_PART: usize = 3;
    let simple = |name: &'_ str| name.rsplit('.').next().map(str::to_lowercase).unwrap_or_default();
    let (wanted_simple, candidate_simple) = (simple(wanted), simple(candidate));
    let last_part = if wanted_simple == candidate_simple {
        1.0
    } else if wanted_simple.len() >= SHORTEST_PART && candidate_simple.contains(&wanted_simple) {
        0.85
    } else {
        strsim::normalized_damerau_levenshtein(&wanted_simple, &candidate_simple)
    };
    // The expensive comparison only where it can still change the outcome.
    if last_part < 0.3 {
        return 0.0;
    }
    // A simple name was asked for: the package of the candidate says nothing.
    let whole = if wanted.contains('.') { strsim::jaro_winkler(wanted, candidate) } else { last_part };
    SIMPLE_WEIGHT * last_part + (1.0 - SIMPLE_WEIGHT) * whole
}
