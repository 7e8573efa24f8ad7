//! How long the live view takes for new results with a large tree, for a key, and for a picture of it: what of it grows with the
//! tree, and what with the screen.

use std::sync::Arc;
use std::time::Duration;

use headwater::profile::{CpuSamples, MethodIndex, Node, NodeIndex, Profile, Tree};
use headwater::report::{Trees, View as Shape};
use headwater::top::view::{Glyphs, Look, Palette, View};
use headwater_benches::{Random, processor_time, profile_of};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;

const METHODS: usize = 5_000;
const SIZES: [usize; 3] = [2_000, 200_000, 2_000_000];
const SCREEN: Rect = Rect { x: 0, y: 0, width: 200, height: 60 };

fn main() {
    println!("milliseconds of a processor, the least of five; everything unfolded, 200 by 60 characters\n");
    println!(
        "| nodes | new results | of them flat | of them callers | picture | next row | search, a letter | last row |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for size in SIZES {
        let profile = Arc::new(profile(size));
        let mut view = View::new(
            Look {
                shape: Shape::Tree,
                trees: Trees::Merged,
                sort: None,
                glyphs: Glyphs::Unicode,
                palette: Palette::Color,
            },
            String::new(),
        );
        view.update(Arc::clone(&profile), None);
        press(&mut view, "e");
        assert!(view.row_count() > size / 2, "everything is unfolded");
        let mut buffer = Buffer::empty(SCREEN);
        let update = least(|| view.update(Arc::clone(&profile), None));
        let picture = least(|| {
            view.draw(SCREEN, &mut buffer);
        });
        let next = least(|| press(&mut view, "j"));
        press(&mut view, "/");
        let search = least(|| press(&mut view, "m")).max(least(|| press(&mut view, "\u{7f}")));
        press(&mut view, "\u{1b}");
        let last = least(|| press(&mut view, "Gg"));
        press(&mut view, "c");
        let callers = least(|| view.update(Arc::clone(&profile), None));
        press(&mut view, "\t\t");
        let flat = least(|| view.update(Arc::clone(&profile), None));
        let times = [update, flat, callers, picture, next, search, last];
        let cells: Vec<String> = times.iter().map(|time| format!("{:.2}", time.as_secs_f64() * 1e3)).collect();
        println!("| {size} | {} |", cells.join(" | "));
    }
}

/// Time of a processor: others may use the machine too.
fn least(mut run: impl FnMut()) -> Duration {
    let timed = |_| {
        let start = processor_time();
        run();
        processor_time() - start
    };
    (0..5).map(timed).min().unwrap_or_default()
}

fn press(view: &mut View, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\r' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{7f}' => KeyCode::Backspace,
            '\u{1b}' => KeyCode::Esc,
            other => KeyCode::Char(other),
        };
        view.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

fn profile(nodes: usize) -> Profile {
    let mut random = Random::default();
    let mut merged = Tree::default();
    for index in 0..nodes {
        // Some chains get long, and some nodes have many children.
        let parent = (index > 0).then(|| match random.below(4) {
            0 => random.below(index as u64) as usize,
            _ => index - 1 - random.below(index.min(20) as u64) as usize,
        });
        let self_ns = 1 + random.below(10_000);
        merged.nodes.push(Node {
            parent: parent.map(NodeIndex),
            link: None,
            method: MethodIndex(random.below(METHODS as u64) as usize),
            calls: 1 + random.below(1_000),
            thrown: 0,
            self_ns,
            total_ns: self_ns,
            error_ns: 1,
            total_error_ns: 1,
            cpu: CpuSamples::default(),
        });
    }
    for index in (1..nodes).rev() {
        let Node { parent, total_ns, .. } = merged.nodes[index];
        if let Some(parent) = parent {
            merged.nodes[parent.0].total_ns += total_ns;
        }
    }
    profile_of(METHODS, merged, Vec::new())
}
