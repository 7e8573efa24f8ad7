//! The live view without a terminal: pictures of a small profile, compared with golden files, and what keys do.
//! `HEADWATER_GOLDEN=write cargo test` writes the files again.

use std::sync::Arc;
use std::time::Duration;

use headwater::profile::{AtLeast, MethodIndex, MethodName, Profile, Tree};
use headwater::report::{Trees, View as Shape};
use headwater::top::view::{Glyphs, Look, Palette, Phase, Request, View};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

#[path = "live_view/metrics.rs"]
mod metrics;
#[path = "../profile/tests/support/mod.rs"]
mod support;

use metrics::with_cpu;
use support::{check, node, profile, recursive};

/// Where the golden files are.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

const LOOK: Look = Look {
    shape: Shape::Tree,
    trees: Trees::Merged,
    sort: None,
    glyphs: Glyphs::Unicode,
    palette: Palette::Monochrome,
};

/// A view on a screen.
struct Screen {
    view: View,
    terminal: Terminal<TestBackend>,
}

impl Screen {
    fn new(look: Look, (width, height): (u16, u16)) -> Screen {
        let view = View::new(look, "headwater-4711.hw".to_owned());
        let mut screen = Screen { view, terminal: Terminal::new(TestBackend::new(width, height)).expect("memory") };
        screen.draw();
        screen
    }

    fn showing(profile: Profile, size: (u16, u16)) -> Screen {
        let mut screen = Screen::new(LOOK, size);
        screen.update(profile);
        screen
    }

    fn update(&mut self, profile: Profile) {
        self.view.update(Arc::new(profile), Some(987_654.0));
        self.draw();
    }

    fn draw(&mut self) {
        let draw = |frame: &mut ratatui::Frame<'_>| {
            let area = frame.area();
            if let Some(cursor) = self.view.draw(area, frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        };
        self.terminal.draw(draw).expect("memory");
    }

    fn resize(&mut self, width: u16, height: u16) {
        self.terminal.backend_mut().resize(width, height);
        self.draw();
    }

    fn buffer(&self) -> &Buffer {
        self.terminal.backend().buffer()
    }

    fn press_key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Option<Request> {
        let request = self.view.press(KeyEvent::new(code, modifiers));
        self.draw();
        request
    }

    /// Presses characters, or keys by these names: `<down>`.
    fn press(&mut self, keys: &str) -> Option<Request> {
        let mut request = None;
        let mut rest = keys;
        while let Some(first) = rest.chars().next() {
            let named = [
                ("<up>", KeyCode::Up),
                ("<down>", KeyCode::Down),
                ("<left>", KeyCode::Left),
                ("<right>", KeyCode::Right),
                ("<end>", KeyCode::End),
                ("<home>", KeyCode::Home),
                ("<page>", KeyCode::PageDown),
                ("<enter>", KeyCode::Enter),
                ("<tab>", KeyCode::Tab),
                ("<esc>", KeyCode::Esc),
                ("<back>", KeyCode::Backspace),
            ];
            let (length, code) = named
                .iter()
                .find(|(name, _)| rest.starts_with(name))
                .map_or((first.len_utf8(), KeyCode::Char(first)), |(name, code)| (name.len(), *code));
            rest = &rest[length..];
            request = self.press_key(code, KeyModifiers::NONE);
        }
        request
    }

    /// Line by line; the selected row begins with `>`.
    fn text(&self) -> String {
        let buffer = self.buffer();
        let mut text = String::new();
        for y in 0..buffer.area.height {
            let mut line = String::new();
            let mut x = 0;
            while x < buffer.area.width {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                x += (symbol.width() as u16).max(1);
            }
            let mark = if buffer[(0, y)].modifier.contains(Modifier::REVERSED) { '>' } else { ' ' };
            text.push_str(format!("{mark}{line}").trim_end());
            text.push('\n');
        }
        text
    }

    fn selected(&self) -> String {
        let text = self.text();
        let line = text.lines().find(|line| line.starts_with('>')).unwrap_or_default();
        // All are of this company.
        line.find("com.").map_or(line, |name| &line[name..]).to_owned()
    }

    fn rows(&self) -> Vec<String> {
        let text = self.text();
        let rows = text.lines().skip_while(|line| !line.contains("method")).skip(1);
        rows.filter(|line| line.contains('(')).map(|line| line[1..].to_owned()).collect()
    }

    #[track_caller]
    fn assert_has(&self, part: &str) {
        assert!(self.text().contains(part), "{part:?} is not in\n{}", self.text());
    }
}

#[test]
fn pictures_of_each_view_on_a_small_and_a_large_terminal() {
    for (size, name) in [((80, 24), "80x24"), ((200, 60), "200x60"), ((44, 14), "44x14")] {
        let mut screen = Screen::showing(with_cpu(profile()), size);
        check(&format!("top-tree-{name}.txt"), &screen.text());
        screen.press("<tab>");
        check(&format!("top-flat-{name}.txt"), &screen.text());
        screen.press("<down>c");
        check(&format!("top-callers-{name}.txt"), &screen.text());
        screen.press("?");
        check(&format!("top-help-{name}.txt"), &screen.text());
    }
}

#[test]
fn threads_apart() {
    let mut screen = Screen::showing(recursive(), (100, 30));
    screen.press("t");
    check("top-threads-tree.txt", &screen.text());
    screen.press("<tab>");
    check("top-threads-flat.txt", &screen.text());
}

#[test]
fn a_terminal_of_any_size_is_drawn_on() {
    let mut screen = Screen::showing(with_cpu(recursive()), (80, 24));
    for keys in ["", "<tab>", "c", "?", " t", "/sh", "<enter>s"] {
        screen.press(keys);
        for (width, height) in [(1, 1), (2, 3), (7, 2), (20, 5), (300, 4), (9, 100), (80, 24)] {
            screen.resize(width, height);
        }
    }
}

#[test]
fn what_is_honest_before_anything_is_recorded() {
    let mut screen = Screen::new(LOOK, (80, 24));
    screen.assert_has("The first results are on their way.");
    let mut empty = Profile { merged: Tree::default(), threads: Vec::new(), warnings: Vec::new(), ..profile() };
    empty.roots.truncate(1);
    empty.roots[0].calls = 0;
    screen.update(empty.clone());
    screen.assert_has("root      com.acme.Shop::checkout: waiting for entry");
    screen.assert_has("Nothing recorded yet: no thread has entered the root in 2 s.");
    screen.view.set_phase(Phase::Paused);
    screen.draw();
    screen.assert_has("Recording is paused: p goes on.");
    empty.roots[0].methods.clear();
    screen.update(empty);
    screen.assert_has("no such method is loaded yet");
    screen.assert_has("Nothing recorded yet: no class with such a method is loaded.");
    assert!(screen.press("s").is_none(), "an empty profile may be saved all the same, once a name is given");
}

#[test]
fn selection_and_folds_stay_with_their_methods_when_the_order_changes() {
    let mut screen = Screen::showing(profile(), (100, 30));
    screen.press("<end><up>");
    assert_eq!(screen.selected(), "com.acme.Item.price(int)");
    let order = screen.rows();
    // Another order of nodes and of methods, and other times: only names are the same.
    let mut later = profile();
    later.methods.reverse();
    let method = |index: usize| 4 - index;
    later.merged.nodes = vec![
        node(None, method(0), 20, 1_000_000, 99_000_000, 500),
        node(Some(0), method(3), 1, 1_000_000, 1_000_000, 10),
        node(Some(0), method(2), 9, 90_000_000, 90_000_000, 10),
        node(Some(0), method(1), 24, 5_000_000, 7_000_000, 1_000),
        node(Some(3), method(2), 1_234_567, 2_000_000, 2_000_000, 2_500_000),
    ];
    screen.update(later);
    assert_eq!(screen.selected(), "com.acme.Item.price(int)");
    assert_ne!(screen.rows(), order);
    assert!(screen.text().contains(">"), "{}", screen.text());
    let row = screen.text().lines().find(|line| line.starts_with('>')).map(str::to_owned).unwrap_or_default();
    assert!(row.contains("90.00 ms"), "it is the one below the root: {row}");
}

#[test]
fn until_a_row_is_chosen_the_first_is_selected() {
    let mut screen = Screen::showing(profile(), (100, 30));
    screen.press("<tab>");
    assert_eq!(screen.selected(), "com.acme.Cart.total()");
    let mut later = profile();
    later.merged.nodes[0].self_ns = 50_000_000;
    screen.update(later.clone());
    assert_eq!(screen.selected(), "com.acme.Shop.checkout(Cart)");
    screen.press("<down>");
    let chosen = screen.selected();
    screen.update(profile());
    assert_eq!(screen.selected(), chosen);
}

#[test]
fn nodes_are_unfolded_and_folded_and_a_folded_node_hides_what_is_below() {
    let mut screen = Screen::showing(recursive(), (100, 30));
    let all = screen.rows().len();
    assert_eq!(all, 6, "what matters is unfolded from the start");
    screen.press("<left>");
    assert_eq!(screen.rows().len(), 1);
    screen.update(recursive());
    assert_eq!(screen.rows().len(), 1, "and stays folded");
    screen.press("<right><right>");
    assert_eq!((screen.rows().len(), screen.selected()), (all, "com.acme.Cart.total()".to_owned()));
    screen.press("<left>");
    assert_eq!(screen.rows().len(), 2);
    screen.press("<left>");
    assert_eq!(screen.selected(), "com.acme.Shop.checkout(Cart)", "a folded node's next step out is its caller");
    screen.press("z");
    assert_eq!(screen.rows().len(), 1);
    screen.press("b");
    assert_eq!(screen.selected(), "com.acme.Cart.total()", "the way that most time goes ends where it goes apart");
    screen.press("ze");
    assert_eq!(screen.rows().len(), all);
}

#[test]
fn a_search_finds_what_is_folded_away_as_it_is_typed_and_goes_back_when_dropped() {
    let mut screen = Screen::showing(recursive(), (100, 30));
    screen.press("z/pri");
    assert_eq!(screen.selected(), "com.acme.Item.price(int)");
    screen.assert_has("search: pri");
    screen.press("x");
    screen.assert_has("nothing here matches `prix`");
    assert_eq!(screen.selected(), "com.acme.Shop.checkout(Cart)", "what no longer matches is left");
    screen.press("<esc>");
    assert_eq!((screen.rows().len(), screen.selected()), (1, "com.acme.Shop.checkout(Cart)".to_owned()));
    screen.press("/total<enter>");
    let mut depths = Vec::new();
    for _ in 0..4 {
        let text = screen.text();
        let row = text.lines().find(|line| line.starts_with('>')).unwrap_or_default().to_owned();
        assert!(row.contains("Cart.total"), "{row}");
        depths.push(row.find(['▾', '▸', 'c']));
        screen.press("n");
    }
    assert_eq!(depths[0], depths[3], "three matches, and round");
    screen.press("N");
    screen.assert_has("3 matches");
    screen.press("<tab>n");
    assert_eq!(screen.selected(), "com.acme.Cart.total()", "the same search in the flat table");
}

#[test]
fn tables_are_sorted_by_any_column_in_either_direction() {
    let mut screen = Screen::showing(profile(), (100, 30));
    screen.press("<tab>");
    let first =
        |screen: &Screen| screen.rows()[0].rsplit_once(' ').map(|(_, name)| name.to_owned()).unwrap_or_default();
    assert_eq!(first(&screen), "com.acme.Cart.total()");
    screen.assert_has("self▼");
    screen.press("5");
    screen.assert_has("calls▼");
    assert_eq!(first(&screen), "com.acme.Item.price(int)");
    screen.press("5");
    screen.assert_has("calls▲");
    assert_eq!(first(&screen), "com.acme.Shop.log(String)");
    screen.press(">");
    screen.assert_has("method▲");
    screen.press("<<r");
    screen.assert_has("self/call▲");
    screen.press("9");
    screen.assert_has("self/call▲");
}

#[test]
fn callers_lead_to_callers_and_back() {
    let mut screen = Screen::showing(recursive(), (100, 30));
    screen.press("<down>c");
    screen.assert_has("callers and callees");
    assert_eq!(screen.selected(), "com.acme.Cart.total()");
    assert!(screen.press("<up><enter>").is_none());
    screen.press("<down>");
    let text = screen.text();
    screen.update(recursive());
    assert_eq!(screen.text(), text, "it is the same with the next results");
    screen.press("<back>");
    screen.assert_has("callers and callees");
    screen.press("<back>");
    screen.assert_has("tree, all threads in one");
    assert_eq!(screen.selected(), "com.acme.Cart.total()");
}

#[test]
fn frozen_results_stay_and_the_newest_follow() {
    let mut screen = Screen::showing(profile(), (100, 30));
    screen.press("f");
    screen.assert_has("FROZEN, recording 2.5 s");
    let rows = screen.rows();
    screen.update(Profile { duration: Duration::from_secs(7), ..recursive() });
    assert_eq!(screen.rows(), rows);
    let saved = screen.press("s<enter>");
    let Some(Request::Save { file, profile: saved }) = saved else { panic!("{saved:?}") };
    assert_eq!((file.to_str(), &*saved), (Some("headwater-4711.hw"), &profile()), "what is on the screen");
    screen.press("f");
    screen.assert_has("recording 7.0 s");
    assert_ne!(screen.rows(), rows);
}

#[test]
fn recording_is_paused_cleared_and_left() {
    let mut screen = Screen::showing(profile(), (100, 30));
    assert!(matches!(screen.press("p"), Some(Request::Pause)));
    screen.view.set_phase(Phase::Paused);
    screen.draw();
    screen.assert_has("PAUSED at 2.5 s");
    assert!(matches!(screen.press("p"), Some(Request::Resume)));
    assert!(matches!(screen.press("C"), Some(Request::Clear)));
    screen.view.set_phase(Phase::Ended("The target has ended.".to_owned()));
    screen.draw();
    screen.assert_has("ENDED after 2.5 s");
    screen.assert_has("The target has ended.");
    for key in ["p", "C"] {
        assert!(screen.press(key).is_none());
        screen.assert_has("the profile has ended");
    }
    assert!(matches!(screen.press("q"), Some(Request::Quit)));
    for keys in ["", "?", "/"] {
        screen.press(keys);
        let quits = screen.press_key(KeyCode::Char('c'), KeyModifiers::CONTROL).is_some();
        assert_eq!(quits, keys != "/", "Ctrl-C drops what is being typed, and else leaves");
    }
}

#[test]
fn a_files_name_is_typed_and_may_be_dropped() {
    let mut screen = Screen::showing(profile(), (60, 20));
    screen.press("s<back><back>json");
    screen.assert_has("save to: headwater-4711.json");
    assert!(screen.press("<esc>").is_none());
    screen.press("s");
    screen.press_key(KeyCode::Char('u'), KeyModifiers::CONTROL);
    assert!(screen.press("<enter>").is_none(), "no name, no file");
    screen.press("s");
    screen.press_key(KeyCode::Char('w'), KeyModifiers::CONTROL);
    screen.assert_has("save to: headwater-4711.");
    let name = "ü".repeat(100);
    screen.press(&name);
    let saved = screen.press("<enter>");
    let Some(Request::Save { file, .. }) = saved else { panic!("{saved:?}") };
    assert_eq!(file.to_str(), Some(format!("headwater-4711.{name}").as_str()));
}

#[test]
fn a_name_that_is_typed_takes_the_place_of_what_is_suggested() {
    let mut screen = Screen::showing(profile(), (60, 20));
    let saved = screen.press("smine.hw<enter>");
    let Some(Request::Save { file, .. }) = saved else { panic!("{saved:?}") };
    assert_eq!(file.to_str(), Some("mine.hw"));
    // What has been changed is not suggested any more.
    screen.press("s<back>x");
    screen.assert_has("save to: headwater-4711.hx");
}

#[test]
fn calls_that_may_be_missing_are_marked() {
    let mut incomplete = profile();
    let second = Duration::from_secs(1);
    incomplete.at_least =
        vec![AtLeast { method: MethodIndex(1), since: second / 4, until: second, callers: Vec::new() }];
    for keys in ["", "<tab>", "c"] {
        let mut screen = Screen::showing(incomplete.clone(), (100, 30));
        screen.press(keys);
        assert!(screen.rows().iter().any(|row| row.contains(">=")), "{keys}: {:#?}", screen.rows());
    }
    let screen = Screen::showing(profile(), (100, 30));
    assert!(!screen.rows().iter().any(|row| row.contains(">=")));
}

#[test]
fn names_that_take_two_columns_a_character_do_not_push_the_picture_apart() {
    let mut wide = profile();
    wide.methods[1] = MethodName {
        machine: "店.買い物.計算()J".into(),
        display: "店.買い物かご.合計を計算する()".into(),
    };
    wide.methods[2].display = "com.acme.Item.\u{1b}[31mprice(int)".into();
    let mut screen = Screen::showing(wide, (70, 20));
    screen.press("/計算");
    check("top-wide-names.txt", &screen.text());
    assert!(!screen.text().contains('\u{1b}'), "nothing in a name reaches the terminal as a command");
}

#[test]
fn without_unicode_and_without_colour_everything_is_said_all_the_same() {
    let ascii = Look { glyphs: Glyphs::Ascii, ..LOOK };
    let mut screen = Screen::new(ascii, (80, 24));
    screen.update(recursive());
    screen.press("<down><left>/price<enter>");
    let text = screen.text();
    assert!(text.replace('…', "").is_ascii(), "{text}");
    check("top-ascii.txt", &text);
    assert!(screen.buffer().content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    let mut colored = Screen::new(Look { palette: Palette::Color, ..ascii }, (80, 24));
    colored.update(recursive());
    colored.press("<down><left>/price<enter>");
    assert_eq!(colored.text(), text, "colours add nothing that words do not say");
    assert!(colored.buffer().content.iter().any(|cell| cell.fg != Color::Reset));
}

#[test]
fn methods_of_the_same_name_by_different_loaders_are_rows_of_their_own() {
    let mut profile = profile();
    profile.methods[2] = profile.methods[3].clone();
    let mut screen = Screen::showing(profile, (100, 30));
    let mut seen = Vec::new();
    for _ in 0..screen.rows().len() {
        let text = screen.text();
        seen.push(text.lines().position(|line| line.starts_with('>')));
        screen.press("<down>");
    }
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "each step selects the next row: {seen:?}");
}

#[test]
fn of_a_large_tree_only_what_is_on_the_screen_is_put_into_words() {
    const NODES: usize = 200_000;
    let mut large = profile();
    large.methods = (0..2_000)
        .map(|index| MethodName {
            machine: format!("com.acme.C{index}.m()V"),
            display: format!("com.acme.C{index}.m()"),
        })
        .collect();
    large.roots.clear();
    large.merged.nodes = (0..NODES)
        .map(|index| node(index.checked_sub(1).map(|last| last / 3), index % 2_000, 1, 1, (NODES - index) as u64, 0))
        .collect();
    large.merged.nodes[0].method = MethodIndex(1_999);
    let mut screen = Screen::showing(large, (80, 24));
    screen.press("e");
    assert_eq!(screen.view.row_count(), NODES);
    for keys in ["<end>", "<page>", "<home>", "/C1234<enter>", "n"] {
        screen.press(keys);
        assert!((1..24).contains(&screen.view.worded_rows()), "{keys}: {}", screen.view.worded_rows());
    }
}

#[test]
fn why_a_method_is_there_has_a_page() {
    let mut screen = Screen::showing(profile(), (80, 24));
    screen.press("w");
    assert!(screen.text().contains("how it was reached is not known"), "{}", screen.text());
}
