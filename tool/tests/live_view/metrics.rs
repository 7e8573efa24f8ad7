//! Other metrics than time.

use headwater::profile::{Column, CpuSamples, Extent, Metric, Profile, Unit};

use super::support::recursive;
use super::{LOOK, Screen};

/// With threads that were seen running and waiting.
pub(super) fn with_cpu(mut profile: Profile) -> Profile {
    profile.merged.nodes[0].cpu = CpuSamples { samples: 40, running: 10 };
    profile.merged.nodes[1].cpu = CpuSamples { samples: 30, running: 30 };
    profile
}

/// A metric that the tool cannot know of.
fn with_made_up() -> Profile {
    let mut profile = recursive();
    let about = "What a test says.";
    profile.counted = vec![Metric::counted("made-up", "made-up bytes", Unit::Bytes, Extent::OwnAndTotal, about)];
    let tree = &mut profile.merged;
    tree.counted = vec![Column::of(&tree.nodes, (1..=6).map(|node| (node << 20, 0)))];
    profile.threads.clear();
    profile
}

#[test]
fn any_metric_stands_in_the_place_of_time_if_it_is_asked_for_before_there_are_results() {
    let mut screen = Screen::new(LOOK, (100, 24));
    screen.view.lead_by("made-up");
    screen.update(with_made_up());
    screen.assert_has("made-up");
    screen.assert_has("21.00 MiB");
}

#[test]
fn of_one_that_is_not_there_it_is_said_which_are() {
    let mut screen = Screen::new(LOOK, (100, 24));
    screen.view.lead_by("unheard-of");
    screen.update(with_made_up());
    screen.assert_has("unheard-of cannot stand in the place of time: there are wall, calls, thrown, made-up");
    screen.press("m");
    screen.update(with_made_up());
    assert!(!screen.text().contains("unheard-of"), "it is said once");
}
