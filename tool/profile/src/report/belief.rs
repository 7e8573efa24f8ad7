//! What a profile's times are good for, in one line: what is known of them, from what, and if they are not known, why.

use super::flat::flat;
use super::units::plural;
use crate::profile::{ControlKind, Node, Profile, Tree};

/// Totals that may be wrong by more than this part are not known.
const UNKNOWN: f64 = 0.5;
/// What undisturbed calls take is timed when code has just been compiled anew. By programs' own clocks they take a tenth less before that, and later on.
const COMPILED_ANEW: f64 = 0.1;
/// If samples of the undisturbed code were in calls that the recording has not seen, more than this part of them, shares are not known.
const UNKNOWN_SHARE: f64 = 0.25;
/// A part of the time in which threads stand in line for a processor that is worth being said.
const CROWDED: f64 = 0.1;
/// Parts of at least so much of all roots' time are looked at.
const LARGE: f64 = 0.05;
/// A share whose standard deviation is more than this, and than this part of it, has a range instead of a number.
const ROUGH: (f64, f64) = (0.05, 0.2);
/// So many standard deviations are between a share and the ends of its range.
const RANGE: f64 = 2.0;

/// Of the shares of large methods, or of large nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct KnownShares {
    /// The largest standard deviation of one that has a number, 0 to 1.
    pub(crate) deviation: f64,
    /// Whether others have ranges.
    pub(crate) have_ranges: bool,
}

/// How far a profile's times can be believed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Belief {
    /// The roots' totals: a standard deviation, as a part of them; or how far calls that were held out took another time, if that is more.
    pub(crate) totals: f64,
    /// How many calls were held out.
    pub(crate) held_out: u64,
}

impl Belief {
    /// Of a profile's roots; `None` where they took no time.
    pub(crate) fn of(profile: &Profile) -> Option<Belief> {
        let nodes = &profile.merged.nodes;
        let roots = || nodes.iter().filter(|node| node.caller().is_none());
        let all_ns: u64 = roots().map(|root| root.total_ns).sum();
        if all_ns == 0 {
            return None;
        }
        let errors = roots().map(|root| root.total_error_ns).sum::<u64>() as f64 / all_ns as f64;
        let controls =
            || profile.controls.iter().filter(|control| control.charged_ns > 0.0 && control.control_ns > 0.0);
        let apart = controls().map(|control| {
            let apart_ns = (control.charged_ns - control.control_ns).abs();
            // What a standard error explains is no difference.
            (apart_ns - control.error_ns).max(0.0) / control.control_ns
        });
        Some(Belief {
            totals: apart.fold(errors, f64::max),
            held_out: controls()
                .filter(|control| control.kind != ControlKind::During)
                .map(|control| control.calls)
                .sum(),
        })
    }

    /// The same by a program's own clock, which knows calls of code that was not compiled anew.
    pub(crate) fn good_to(&self) -> f64 {
        if self.held_out > 0 { self.totals.hypot(COMPILED_ANEW) } else { self.totals }
    }

    /// Whether the totals are known at all.
    pub(crate) fn is_known(&self) -> bool {
        self.totals <= UNKNOWN
    }
}

/// How well the shares of a tree's times are known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares {
    whole_ns: f64,
    /// The standard deviation of the roots' totals, as a part of them, of the one that is known best: what is below a root is as wrong as that, and
    /// its share is not.
    of_roots: f64,
    /// The standard deviation of all of them together, as a part.
    of_whole: f64,
}

impl Shares {
    pub(crate) fn of(tree: &Tree) -> Shares {
        let roots = || tree.nodes.iter().filter(|node| node.caller().is_none() && node.total_ns > 0);
        let part = |root: &Node| root.total_error_ns as f64 / root.total_ns as f64;
        let whole_ns: f64 = roots().map(|root| root.total_ns as f64).sum();
        Shares {
            whole_ns,
            of_whole: roots().map(|root| (root.total_error_ns as f64).powi(2)).sum::<f64>().sqrt() / whole_ns.max(1.0),
            of_roots: roots().map(part).reduce(f64::min).unwrap_or_default(),
        }
    }

    /// By how much the share of a time may be wrong, as a standard deviation: without what all roots' time is wrong by.
    pub(crate) fn deviation(&self, ns: u64, error_ns: u64) -> f64 {
        let whole_ns = self.whole_ns.max(1.0);
        let (error, of_roots) = (error_ns as f64 / whole_ns, self.of_roots * ns as f64 / whole_ns);
        let own = (error * error - of_roots * of_roots).max(0.0);
        // What was handed over, and is known better than the root that did so, is a part of something unknown.
        let share = ns as f64 / whole_ns;
        let of_others = ((self.of_whole * share).powi(2) - error * error).max(0.0);
        (own + of_others).sqrt()
    }

    /// From where to where the share of a time lies, 0 to 1, if it is not known well enough for a number.
    pub(crate) fn range(&self, ns: u64, error_ns: u64) -> Option<(f64, f64)> {
        let (share, deviation) = (ns as f64 / self.whole_ns.max(1.0), self.deviation(ns, error_ns));
        is_rough(share, deviation).then(|| ((share - RANGE * deviation).max(0.0), (share + RANGE * deviation).min(1.0)))
    }
}

fn is_rough(share: f64, deviation: f64) -> bool {
    let (least, part) = ROUGH;
    deviation > least.max(part * share)
}

/// What is known of the shares of large methods, or, where a method's many nodes may all be wrong in one direction, of large nodes: the same method may be reached by
/// ways of which nobody knows which was taken how often. `None` where that is too little.
pub(crate) fn known_shares(profile: &Profile) -> Option<KnownShares> {
    let (tree, unseen) = (&profile.merged, profile.basis.unseen_part());
    let shares = Shares::of(tree);
    let part = |ns: u64, error_ns: u64| (ns as f64 / shares.whole_ns.max(1.0), shares.deviation(ns, error_ns));
    let of_methods = flat(profile, tree).into_iter().map(|row| part(row.amounts.total_ns, row.amounts.total_error_ns));
    // All of it is all of it.
    let of_methods = of_methods.filter(|(share, _)| *share < 1.0);
    let known = known(of_methods).or_else(|| known(share_errors(&tree.nodes, shares.whole_ns)))?;
    let deviation = known.deviation.max(unseen);
    (unseen <= UNKNOWN_SHARE).then_some(KnownShares { deviation, ..known })
}

/// What is known of shares with these standard deviations, if not most of the large ones have ranges.
fn known(shares: impl Iterator<Item = (f64, f64)>) -> Option<KnownShares> {
    let (rough, numbers): (Vec<_>, Vec<_>) =
        shares.filter(|(share, _)| *share >= LARGE).partition(|(share, deviation)| is_rough(*share, *deviation));
    let deviation = numbers.iter().map(|(_, deviation)| *deviation).fold(0.0, f64::max);
    (rough.len() <= numbers.len()).then_some(KnownShares { deviation, have_ranges: !rough.is_empty() })
}

/// The shares of nodes below roots, and their standard deviations: how wrong a root's total is, all below it are, and its parts of it are not.
fn share_errors(nodes: &[Node], all_ns: f64) -> impl Iterator<Item = (f64, f64)> {
    let mut roots: Vec<usize> = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let root = node.caller().map_or(index, |caller| roots[caller.0]);
        roots.push(root);
    }
    let part = move |ns: f64| ns / all_ns;
    nodes.iter().zip(roots).enumerate().filter(|(index, (_, root))| index != root).map(move |(_, (node, root))| {
        let root = &nodes[root];
        let of_root = root.total_error_ns as f64 * node.total_ns as f64 / (root.total_ns as f64).max(1.0);
        let own = (node.total_error_ns as f64).powi(2) - of_root.powi(2);
        (part(node.total_ns as f64), part(own.max(0.0).sqrt()))
    })
}

/// The line, without its end; `None` where nothing was called.
pub(crate) fn line(profile: &Profile) -> Option<String> {
    let belief = Belief::of(profile)?;
    let basis = &profile.basis;
    let counts = if profile.are_counts_exact() { "; counts are exact" } else { "" };
    let from = match (belief.held_out, basis.samples) {
        (0, 0) => "as measured beside the probes".to_owned(),
        (0, samples) => plural(samples, "sample", "samples") + " of the undisturbed code",
        (calls, 0) => plural(calls, "held-out call", "held-out calls"),
        (calls, samples) => format!(
            "{}, {} of the undisturbed code",
            plural(calls, "held-out call", "held-out calls"),
            plural(samples, "sample", "samples")
        ),
    };
    let were_before = || profile.controls.iter().any(|control| control.kind == ControlKind::Before);
    let unsettled = match basis.is_settled {
        Some(false) if were_before() => ": compilers were busy before the recording",
        Some(false) => ": compilers were busy to the end",
        _ => "",
    };
    let queued = profile.clock.queued.filter(|queued| *queued >= CROWDED);
    let queued = queued.map_or_else(String::new, |queued| {
        format!("; {} of the time that threads wanted a processor they stood in line for it", percent(queued))
    });
    let shares = known_shares(profile).map(|KnownShares { deviation, have_ranges }| {
        points(deviation) + if have_ranges { " where no range is shown" } else { "" }
    });
    Some(if belief.is_known() {
        let only = if unsettled.is_empty() { "" } else { " only" };
        let shares = shares.map_or_else(|| "shares not known".to_owned(), |points| format!("shares to {points}"));
        format!("times: good to {}{only}, {shares} ({from}){unsettled}{queued}", percent(belief.good_to()))
    } else {
        let (because, from) = if unsettled.is_empty() {
            (format!(" ({from})"), String::new())
        } else {
            (unsettled.to_owned(), format!(" ({from})"))
        };
        let shares = shares.map_or_else(String::new, |points| format!("; shares good to {points}{from}"));
        format!("times not known{because}{queued}{shares}{counts}")
    })
}

fn percent(part: f64) -> String {
    format!("{:.0} %", (100.0 * part).ceil())
}

fn points(share: f64) -> String {
    match (100.0 * share).ceil() {
        1.0 => "1 point".to_owned(),
        points => format!("{points:.0} points"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile_of;
    use crate::profile::{Basis, Control, Link, MethodIndex, NodeIndex};

    fn profile(total_error_ns: u64, share_error_ns: u64) -> Profile {
        let node = |parent, method, total_ns, total_error_ns| Node {
            parent,
            total_ns,
            total_error_ns,
            ..Node::empty(MethodIndex(method))
        };
        let nodes = vec![
            node(None, 0, 1_000, total_error_ns),
            node(Some(NodeIndex(0)), 1, 400, share_error_ns),
            node(Some(NodeIndex(0)), 2, 10, 900),
        ];
        let methods = profile_of(Tree::default(), Vec::new(), 3).methods;
        Profile { methods, merged: Tree::of(nodes), ..Profile::default() }
    }

    #[test]
    fn what_was_handed_over_is_a_part_of_as_little_as_is_known_of_the_whole() {
        let root = |total_ns, total_error_ns, link| Node {
            total_ns,
            total_error_ns,
            link,
            parent: link.map(|_| NodeIndex(0)),
            ..Node::empty(MethodIndex(0))
        };
        let tree = Tree::of(vec![root(700, 350, None), root(300, 6, Some(Link::Thread))]);
        let shares = Shares::of(&tree);
        assert!(shares.range(300, 6).is_some(), "{shares:?}");
        let tree = Tree::of(vec![root(700, 14, None), root(300, 6, Some(Link::Thread))]);
        assert!(Shares::of(&tree).range(300, 6).is_none());
    }

    #[test]
    fn it_says_from_what_times_are_known_and_how_well() {
        let mut known = profile(30, 20);
        assert_eq!(
            line(&known).as_deref(),
            Some("times: good to 3 %, shares to 2 points (as measured beside the probes)")
        );
        known.basis = Basis { samples: 2_213, is_settled: Some(true), ..Basis::default() };
        let control = |control_ns, kind| Control {
            root: MethodIndex(0),
            kind,
            charged_ns: 100.0,
            control_ns,
            error_ns: 2.0,
            calls: 26,
        };
        known.controls = vec![control(99.0, ControlKind::After)];
        let line = line(&known).expect("there are times");
        assert_eq!(
            line,
            "times: good to 11 %, shares to 2 points (26 held-out calls, 2,213 samples of the undisturbed code)"
        );
        known.controls = vec![control(125.0, ControlKind::After)];
        assert_eq!(
            Belief::of(&known).map(|belief| belief.totals),
            Some(23.0 / 125.0),
            "held-out calls say more than errors"
        );
    }

    #[test]
    fn a_share_that_is_known_roughly_has_a_range() {
        // A root of 1,000 ns that may be wrong by a third, and all below it as well.
        let shares = Shares::of(&profile(330, 0).merged);
        let range = |ns: u64, of_itself: f64| {
            let error_ns = of_itself.hypot(0.33 * ns as f64);
            shares.range(ns, error_ns.round() as u64).map(|(from, to)| ((100.0 * from).round(), (100.0 * to).round()))
        };
        assert_eq!(range(1_000, 0.0), None);
        assert_eq!((range(250, 45.0), range(250, 66.0)), (None, Some((12.0, 38.0))));
        assert_eq!((range(600, 110.0), range(600, 130.0)), (None, Some((34.0, 86.0))), "a fifth");
        assert_eq!((range(20, 48.0), range(20, 60.0)), (None, Some((0.0, 14.0))));
        assert_eq!(Shares::of(&Tree::default()).range(0, 0), None);
    }

    #[test]
    fn a_method_by_several_ways_is_known_though_its_ways_are_not() {
        let said = |errors: [u64; 2]| known(errors.iter().map(|error| (0.3, *error as f64 / 100.0)));
        assert_eq!(said([2, 3]), Some(KnownShares { deviation: 0.03, have_ranges: false }));
        assert_eq!(said([2, 30]), Some(KnownShares { deviation: 0.02, have_ranges: true }), "one has a range");
        assert_eq!(known([(0.3, 0.2), (0.4, 0.2), (0.5, 0.01)].into_iter()), None, "most have");
        assert_eq!(known([(0.01, 0.2), (0.02, 0.2)].into_iter()), Some(KnownShares::default()), "none is large");
        let line = line(&profile(30, 200)).expect("there are times");
        assert_eq!(line, "times: good to 3 %, shares not known (as measured beside the probes)");
    }

    #[test]
    fn what_is_not_known_has_no_number_and_a_reason() {
        let mut unknown = profile(700, 500);
        assert_eq!(
            line(&unknown).as_deref(),
            Some("times not known (as measured beside the probes); counts are exact")
        );
        unknown.basis = Basis { samples: 100, is_settled: Some(false), ..Basis::default() };
        assert_eq!(
            line(&unknown).as_deref(),
            Some("times not known: compilers were busy to the end; counts are exact")
        );
        unknown.discovery.late = 3;
        assert_eq!(line(&unknown).as_deref(), Some("times not known: compilers were busy to the end"));
        // Of the error of 282, 280 are the whole's.
        unknown = Profile { basis: unknown.basis, ..profile(700, 282) };
        let said = line(&unknown).expect("there are times");
        let expected = "times not known: compilers were busy to the end; shares good to 4 points (100 samples of the undisturbed code); counts are exact";
        assert_eq!(said, expected);
        assert_eq!(line(&Profile::default()), None);
    }
}
