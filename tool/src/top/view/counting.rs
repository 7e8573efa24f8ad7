//! What is counted beside calls, switched by a line that is typed.

use super::{Mode, Phase, Request, View};
use crate::request::count::Switch;

impl View {
    /// Asks what is to be counted.
    pub(super) fn ask_what_to_count(&mut self) {
        match self.phase {
            Phase::Recording | Phase::Paused => self.mode = Mode::Count { text: String::new() },
            _ => self.say("the profile has ended".to_owned()),
        }
    }

    /// What was typed.
    pub(super) fn count(&mut self, text: &str) -> Option<Request> {
        match Switch::of_text(text) {
            Ok(switch) => switch.map(Request::Count),
            Err(why) => {
                self.say(why);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;
    use crate::report::Trees;
    use crate::request::count::Count;
    use crate::top::view::{Glyphs, Look, Palette, Shape};

    fn view() -> View {
        let (glyphs, palette) = (Glyphs::Ascii, Palette::Monochrome);
        View::new(Look { shape: Shape::Tree, trees: Trees::Merged, sort: None, glyphs, palette }, String::new())
    }

    fn typed(view: &mut View, text: &str) -> Option<Request> {
        let press = |view: &mut View, code| view.press(KeyEvent::new(code, KeyModifiers::NONE));
        text.chars().for_each(|character| drop(press(view, KeyCode::Char(character))));
        press(view, KeyCode::Enter)
    }

    #[test]
    fn what_is_to_be_counted_is_typed_behind_a_key() {
        let mut view = view();
        let Some(Request::Count(switch)) = typed(&mut view, "oalloc gc on") else { panic!("a request") };
        assert_eq!(switch, Switch::On(vec![Count::Alloc, Count::Gc]));
        assert!(typed(&mut view, "o").is_none() && view.message.is_none(), "nothing is nothing");
        for (text, said) in [("oacres on", "`acres` is nothing to count"), ("oalloc", "name what is to be counted")] {
            assert!(typed(&mut view, text).is_none());
            assert!(view.message.as_ref().is_some_and(|message| message.starts_with(said)), "{:?}", view.message);
        }
        view.set_phase(Phase::Ended(String::new()));
        assert!(typed(&mut view, "oalloc on").is_none());
    }
}
