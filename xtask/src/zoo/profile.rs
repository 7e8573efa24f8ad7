//! What a profile's JSON report says: the methods' shares of the root, and what the profile did to the program.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

/// A method's part of the root.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Share {
    /// Per cent of the root's time, recursion counted once.
    Known(f64),
    /// The same, smaller than its own uncertainty: marked by `~`.
    Doubtful(f64),
    /// The profile has the method, and no number for it.
    NotKnown,
}

/// Of each method below the root, by its machine name.
pub(crate) fn shares(report: &Value) -> HashMap<String, Share> {
    let nodes = report["nodes"].as_array().map_or(&[][..], Vec::as_slice);
    // The methods on each node's way from the root, itself included.
    let mut paths: HashMap<u64, BTreeSet<&str>> = HashMap::new();
    let mut sums: BTreeMap<&str, Option<(f64, f64)>> = BTreeMap::new();
    let mut whole = 0.0;
    for node in nodes {
        let (Some(id), Some(method)) = (node["id"].as_u64(), node["method"].as_str()) else { continue };
        let above = node["parent"].as_u64().and_then(|parent| paths.get(&parent));
        let mut path = above.cloned().unwrap_or_default();
        let time = node["total_ns"].as_f64().map(|total| (total, node["total_error_ns"].as_f64().unwrap_or(0.0)));
        if node["parent"].is_null() && node["link"].is_null() {
            whole += time.map_or(0.0, |(total, _)| total);
        }
        if path.insert(method) {
            let sum = sums.entry(method).or_insert(Some((0.0, 0.0)));
            *sum = sum.zip(time).map(|((sum, errors), (total, error))| (sum + total, errors + error));
        }
        paths.insert(id, path);
    }
    let share = |time: Option<(f64, f64)>| match time {
        None => Share::NotKnown,
        Some((total, error)) if error >= total && total > 0.0 => Share::Doubtful(100.0 * total / whole),
        Some((total, _)) => Share::Known(100.0 * total / whole),
    };
    sums.into_iter().map(|(method, time)| (method.to_owned(), share(time))).collect()
}

/// The time of a root's call by the profile, in ns.
pub(crate) fn root_mean_ns(report: &Value) -> Option<f64> {
    let nodes = report["nodes"].as_array()?;
    let roots = nodes.iter().filter(|node| node["parent"].is_null() && node["link"].is_null());
    let (calls, total) = roots.fold((0.0, 0.0), |(calls, total), node| {
        (calls + node["calls"].as_f64().unwrap_or(0.0), total + node["total_ns"].as_f64().unwrap_or(0.0))
    });
    (calls > 0.0).then(|| total / calls)
}

/// Calls of the roots from outside.
pub(crate) fn root_calls(report: &Value) -> u64 {
    report["roots"].as_array().map_or(0, |roots| roots.iter().filter_map(|root| root["calls"].as_u64()).sum())
}

/// How often, and how long altogether, threads inside the roots waited on the profile's account.
pub(crate) fn waits(report: &Value) -> (u64, f64) {
    let waits = report["waits"].as_array().map_or(&[][..], Vec::as_slice);
    let count = waits.iter().filter_map(|wait| wait["count"].as_u64()).sum();
    (count, waits.iter().filter_map(|wait| wait["duration_ns"].as_f64()).sum())
}

/// Whether a method has one of the first rows of the text report's tree, in whatever signature.
pub(crate) fn is_on_first_screen(text: &str, method: &str) -> bool {
    const ROWS: usize = 25;
    let name = method.split('(').next().unwrap_or(method);
    let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("share ")).skip(1);
    rows.take(ROWS).any(|row| row.split('(').next().is_some_and(|row| row.split(' ').next_back() == Some(name)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn recursion_counts_once_and_what_has_no_number_is_not_known() {
        let report = json!({"nodes": [
            {"id": 0, "parent": null, "method": "A.root()V", "calls": 2, "total_ns": 1000, "total_error_ns": 1},
            {"id": 1, "parent": 0, "method": "A.f()V", "calls": 2, "total_ns": 600, "total_error_ns": 1},
            {"id": 2, "parent": 1, "method": "A.g()V", "calls": 2, "total_ns": 500, "total_error_ns": 1},
            {"id": 3, "parent": 2, "method": "A.f()V", "calls": 2, "total_ns": 400, "total_error_ns": 1},
            {"id": 4, "parent": 0, "method": "A.g()V", "calls": 2, "total_ns": 100, "total_error_ns": 1},
            {"id": 5, "parent": 0, "method": "A.h()V", "calls": 2, "total_ns": 50, "total_error_ns": 80},
            {"id": 6, "parent": 0, "method": "A.i()V", "calls": 2, "total_ns": null},
        ]});
        let shares = shares(&report);
        assert_eq!(shares["A.f()V"], Share::Known(60.0));
        assert_eq!(shares["A.g()V"], Share::Known(60.0));
        assert_eq!(shares["A.h()V"], Share::Doubtful(5.0));
        assert_eq!(shares["A.i()V"], Share::NotKnown);
        assert_eq!(root_mean_ns(&report), Some(500.0));
    }

    #[test]
    fn a_row_is_found_by_class_and_method() {
        let text = "A (pid 1)\n\n  share  total  self  calls  method\n 100.0%  1 s  1 s  3  a.B.root(int)\n  50.0%  1 s~  1 s  3    a.B.m(String, ...)\n";
        assert!(is_on_first_screen(text, "a.B.m(Ljava/lang/String;I)V"));
        assert!(!is_on_first_screen(text, "a.B.n()V"));
    }
}
