//! Short exact profiles of candidates: what they cost, rather than an estimate.

use std::time::Duration;

use super::choice::Candidate;
use super::cost::{Basis, Cost};
use crate::jvm::Jvm;
use crate::profile::Profile;
use crate::profiling::{self, BareTiming, Observer, ProfileError, Settings};
use crate::request::ProfileArgs;

/// For so long a profile records,
const RECORDED: Duration = Duration::from_secs(1);
/// and its root is timed without probes, to compare.
const UNDISTURBED: Duration = Duration::from_secs(2);
/// What more than that is missing of was not seen.
const MOST_MISSING: f64 = 0.9;

/// Profiles a candidate with the default options; nothing, where too little was seen in that time.
pub(super) async fn cost(
    jvm: &Jvm,
    candidate: &Candidate,
    interrupt: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> Result<Option<Cost>, ProfileError> {
    let Ok(root) = candidate.pattern.parse() else { return Ok(None) };
    let settings = Settings {
        duration: Some(RECORDED),
        bare: BareTiming::For(UNDISTURBED),
        ..ProfileArgs::defaults().settings(vec![root])
    };
    let profile = profiling::attach(jvm, &settings, interrupt, observer).await?.profile;
    Ok(of(&profile, candidate.timed.per_second))
}

/// What a profile of a method cost that is entered so often a second without it.
fn of(profile: &Profile, per_second: f64) -> Option<Cost> {
    let (calls, root_calls) = (profile.merged.calls(), profile.root_calls());
    let missing = profile.missing_share();
    if root_calls == 0 || missing > MOST_MISSING {
        return None;
    }
    let below = calls.saturating_sub(root_calls) as f64 / root_calls as f64 * per_second;
    let times = 1.0 + profile.lengthened.first()?.part();
    let all = below / (1.0 - missing);
    Some(Cost {
        calls_a_second: [below, all, all],
        pair_ns: profile.clock.inner_ns + profile.clock.outer_ns,
        times_as_long: [times; 2],
        basis: Basis::Tried,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile_of;
    use crate::profile::{Clock, Lengthened, MethodIndex, Node, NodeIndex, Tree};

    #[test]
    fn what_was_counted_is_for_each_call_of_the_root() {
        let node = |parent: Option<usize>, method, calls| Node {
            parent: parent.map(NodeIndex),
            calls,
            ..Node::empty(MethodIndex(method))
        };
        let tree = Tree::of(vec![node(None, 0, 4), node(Some(0), 1, 40), node(Some(1), 2, 360)]);
        let lengthened = Lengthened { root: MethodIndex(0), recorded_ns: 3e6, bare_ns: 1e6, error_ns: 0.0, calls: 9 };
        let clock = Clock { inner_ns: 15.0, outer_ns: 25.0, ..Clock::default() };
        let whole = Profile { at_least: Vec::new(), unseen: Vec::new(), ..profile_of(tree, Vec::new(), 3) };
        let profile = Profile { clock, lengthened: vec![lengthened], ..whole };
        let cost = of(&profile, 50.0).expect("a cost");
        assert_eq!((cost.calls_a_second, cost.pair_ns, cost.times_as_long), ([5_000.0; 3], 40.0, [3.0; 2]));
        // Nothing to compare with.
        assert_eq!(of(&Profile { lengthened: Vec::new(), ..profile }, 50.0), None);
    }
}
