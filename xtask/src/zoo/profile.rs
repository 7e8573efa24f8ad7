//! What a profile's JSON report says: the methods' shares of the root, and what the profile did to the program.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;

/// Of small shares, so many per cent more or less are the same.
pub(crate) const POINTS: f64 = 5.0;

/// Of the JSON report, what is looked at here.
#[derive(Debug, Deserialize)]
pub(crate) struct Report {
    roots: Vec<Root>,
    pub(crate) methods: Methods,
    pub(crate) hotswap: Hotswap,
    waits: Vec<Wait>,
    /// Parents come before their children.
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Root {
    calls: u64,
}

/// How many methods there are.
#[derive(Debug, Deserialize)]
pub(crate) struct Methods {
    pub(crate) instrumented: u64,
    pub(crate) called: u64,
    /// Absent in reports of earlier versions.
    #[serde(default)]
    pub(crate) late: u64,
}

/// What changing code took.
#[derive(Debug, Deserialize)]
pub(crate) struct Hotswap {
    pub(crate) batches: u64,
    pub(crate) classes: u64,
    pub(crate) pause_ns_total: f64,
    pub(crate) pause_ns_max: f64,
}

#[derive(Debug, Deserialize)]
struct Wait {
    count: u64,
    duration_ns: f64,
}

/// What times are good for.
#[derive(Debug, Deserialize)]
struct Times {
    shares_good_to: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: u64,
    parent: Option<u64>,
    link: Option<String>,
    method: String,
    calls: u64,
    self_ns: Option<u64>,
    total_ns: Option<f64>,
}

/// Of the JSON report of methods, what is looked at here.
#[derive(Debug, Deserialize)]
pub(crate) struct Methodwise {
    /// Absent in reports of earlier versions.
    times: Option<Times>,
    flat: Vec<Row>,
}

/// What is shown of a method, in whatever places.
#[derive(Debug, Deserialize)]
struct Row {
    method: String,
    total_ns: Option<f64>,
    #[serde(default)]
    total_error_ns: f64,
    share_range: Option<(f64, f64)>,
}

/// A method's part of the root.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Share {
    /// Per cent of the root's time, recursion counted once.
    Known(f64),
    /// It is smaller than its own uncertainty: at most this.
    AtMost(f64),
    /// It is said to lie between these.
    Between(f64, f64),
    /// The profile has the method, and no number for it.
    NotKnown,
}

impl Report {
    /// Calls and own time of each place in the tree, over all threads. Places are told apart by the methods on the way there.
    pub(crate) fn places(&self) -> HashMap<u64, (u64, u64)> {
        let mut ways: HashMap<u64, u64> = HashMap::new();
        let mut places = HashMap::new();
        for node in &self.nodes {
            let above = node.parent.and_then(|parent| ways.get(&parent));
            let mut hasher = DefaultHasher::new();
            (above, &node.method, &node.link).hash(&mut hasher);
            let way = hasher.finish();
            ways.insert(node.id, way);
            let (calls, self_ns) = places.entry(way).or_insert((0, 0));
            *calls += node.calls;
            *self_ns += node.self_ns.unwrap_or(0);
        }
        places
    }

    /// The time of a root's call by the profile, in ns.
    pub(crate) fn root_mean_ns(&self) -> Option<f64> {
        let calls: u64 = self.outermost().map(|node| node.calls).sum();
        (calls > 0).then(|| self.root_ns() / calls as f64)
    }

    /// What the roots took altogether, in ns.
    pub(crate) fn root_ns(&self) -> f64 {
        self.outermost().filter_map(|node| node.total_ns).sum()
    }

    /// Calls of the roots from outside.
    pub(crate) fn root_calls(&self) -> u64 {
        self.roots.iter().map(|root| root.calls).sum()
    }

    /// How often, and how many ns altogether, threads inside the roots waited on the profile's account.
    pub(crate) fn waits(&self) -> (u64, f64) {
        self.waits.iter().fold((0, 0.0), |(count, ns), wait| (count + wait.count, ns + wait.duration_ns))
    }

    /// The methods that were called.
    pub(crate) fn called(&self) -> HashSet<String> {
        self.nodes.iter().filter(|node| node.calls > 0).map(|node| node.method.clone()).collect()
    }

    /// The roots' nodes.
    fn outermost(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.parent.is_none() && node.link.is_none())
    }
}

impl Methodwise {
    /// Of each method, by its machine name, of a root that took so long altogether.
    pub(crate) fn shares(&self, whole_ns: f64) -> HashMap<&str, Share> {
        self.flat.iter().map(|row| (row.method.as_str(), self.share(row, whole_ns))).collect()
    }

    fn share(&self, row: &Row, whole_ns: f64) -> Share {
        let Some(total_ns) = row.total_ns else { return Share::NotKnown };
        let percent = |ns: f64| 100.0 * ns / whole_ns;
        match row.share_range {
            // The report's first line says so.
            _ if self.times.as_ref().is_some_and(|times| times.shares_good_to.is_none()) => Share::NotKnown,
            _ if row.total_error_ns >= total_ns && total_ns > 0.0 => {
                Share::AtMost(percent(total_ns + row.total_error_ns))
            }
            Some((from, to)) => Share::Between(100.0 * from, 100.0 * to),
            None => match (percent(total_ns), self.range_of_all(percent(total_ns))) {
                (percent, 0.0) => Share::Known(percent),
                (percent, range) => Share::Between((percent - range).max(0.0), (percent + range).min(100.0)),
            },
        }
    }

    /// What the first line says of all shares, as half of the range that a share of so many per cent has then; nothing, if that allows a number.
    fn range_of_all(&self, percent: f64) -> f64 {
        const DEVIATIONS: f64 = 2.0;
        let good_to = 100.0 * self.times.as_ref().and_then(|times| times.shares_good_to).unwrap_or_default();
        if good_to > tolerance(percent) { DEVIATIONS * good_to } else { 0.0 }
    }
}

/// What somebody sees of a text report without scrolling.
pub(crate) struct FirstScreen<'t> {
    /// The methods of the tree's first rows, without their signatures, which are shortened there.
    rows: HashSet<&'t str>,
    /// What is named above them, `Class.method`.
    named: HashSet<&'t str>,
}

impl<'t> FirstScreen<'t> {
    pub(crate) fn of(text: &'t str) -> FirstScreen<'t> {
        const ROWS: usize = 25;
        let is_heading = |line: &&str| line.trim_start().starts_with("share ");
        let rows = text.lines().skip_while(|line| !is_heading(line)).skip(1).take(ROWS);
        let named = text
            .lines()
            .skip_while(|line| !line.starts_with("with about a tenth or more"))
            .take_while(|line| !line.is_empty());
        FirstScreen {
            rows: rows.filter_map(|row| without_signature(row).split(' ').next_back()).collect(),
            named: named.flat_map(|line| line.split(' ')).collect(),
        }
    }

    pub(crate) fn has(&self, method: &str) -> bool {
        let method = without_signature(method);
        let class = method.rfind('.').map_or("", |at| &method[..at]);
        self.rows.contains(method) || self.named.contains(&method[class.rfind('.').map_or(0, |at| at + 1)..])
    }
}

/// What comes before the parameters.
fn without_signature(method: &str) -> &str {
    method.split('(').next().unwrap_or(method)
}

/// So far a share may be from so many per cent.
pub(crate) fn tolerance(percent: f64) -> f64 {
    const PART: f64 = 0.2;
    POINTS.max(PART * percent)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_shown_of_a_method_is_what_its_row_says() {
        let report = json!({"times": {"shares_good_to": 0.01}, "flat": [
            {"method": "A.root()V", "total_ns": 1000, "total_error_ns": 1},
            {"method": "A.f()V", "total_ns": 600, "total_error_ns": 1},
            {"method": "A.h()V", "total_ns": 50, "total_error_ns": 80},
            {"method": "A.i()V", "total_ns": null},
            {"method": "A.j()V", "total_ns": 50, "share_range": [0.0, 0.2]},
        ]});
        let report: Methodwise = serde_json::from_value(report).expect("a report");
        let shares = report.shares(1000.0);
        assert_eq!(shares["A.f()V"], Share::Known(60.0));
        assert_eq!(shares["A.h()V"], Share::AtMost(13.0));
        assert_eq!(shares["A.i()V"], Share::NotKnown);
        assert_eq!(shares["A.j()V"], Share::Between(0.0, 20.0));
        let rough = Methodwise { times: Some(Times { shares_good_to: Some(0.06) }), ..report };
        let shares = rough.shares(1000.0);
        assert_eq!(
            (shares["A.f()V"], shares["A.h()V"]),
            (Share::Known(60.0), Share::AtMost(13.0)),
            "six points are known of 60"
        );
        assert_eq!(shares["A.root()V"], Share::Known(100.0));
    }

    #[test]
    fn the_roots_time_is_that_of_calls_from_outside() {
        let report = json!({
            "roots": [{"calls": 2}], "waits": [], "methods": {"instrumented": 9, "called": 4},
            "hotswap": {"batches": 1, "classes": 2, "pause_ns_total": 5, "pause_ns_max": 5}, "nodes": [
            {"id": 0, "parent": null, "method": "A.root()V", "calls": 2, "total_ns": 1000},
            {"id": 1, "parent": 0, "method": "A.f()V", "calls": 2, "total_ns": 600},
        ]});
        let report: Report = serde_json::from_value(report).expect("a report");
        assert_eq!((report.root_ns(), report.root_mean_ns()), (1000.0, Some(500.0)));
    }

    #[test]
    fn rows_are_methods_without_signatures() {
        let text = "A (pid 1)\n\n  share  total  self  calls  method\n 100.0%  1 s  1 s  3  a.B.root(int)\n  50.0%  <1 s  1 s  3    a.B.m(String, ...)\n";
        let screen = FirstScreen::of(text);
        assert!(screen.has("a.B.root(I)V") && screen.has("a.B.m(Ljava/lang/String;)V") && !screen.has("a.C.m()V"));
    }

    #[test]
    fn what_is_named_above_the_rows_is_seen() {
        let text = "A (pid 1)\n\nwith about a tenth or more, further down: C.far 47.0%,\n  D.farther 10-30%\n\n  share  total  self  calls  method\n";
        let screen = FirstScreen::of(text);
        assert!(screen.has("a.b.C.far()V") && screen.has("D.farther(I)V") && !screen.has("a.b.C.share()V"));
    }
}
