//! What the live view shows, and what keys change about it. Pure: profiles and keys go in, requests and a picture come out.
//!
//! Each view is a list of rows, made anew of every profile that comes in. Only those on the screen are put into words
//! (see [`draw`](super::draw)). The selection and what is folded belong to the chain of names that leads to a row, not to its place.
//!
//! Why so, and at what cost: docs/decisions/live-results.md.

use std::path::PathBuf;
use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::column::{Column, Columns, Sort};
use super::forest::{Forest, Key};
use super::keys::Action;
use super::rows::{Folds, Line, Role, Row, Shown, What, callers_lines, flat_lines, keyed, tree_rows};
use super::search::{Direction, Query};
use crate::profile::{Amounts, Metric, Profile};
use crate::report::{Trees, View as Shape};

mod counting;
pub(super) mod explaining;
mod folding;
mod look;
mod naming;
mod searching;
mod selecting;
pub(crate) mod typing;

pub use look::{Glyphs, Look, Palette, Phase, Request};

use explaining::Page;
use typing::{Typed, edit};

/// What a key is for at the moment.
#[derive(Clone, Debug)]
pub(super) enum Mode {
    Rows,
    /// A search is being typed; what was there before it.
    Search {
        before: Query,
        anchor: Cursor,
        folds: Folds,
    },
    /// A file's name is being typed.
    File {
        text: String,
        /// It is what was suggested: what is typed takes its place.
        is_suggested: bool,
    },
    /// What is to be counted is being typed.
    Count {
        text: String,
    },
    Help,
    /// Why a method is there.
    Why(Page),
}

/// A place in a list of rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    pub(super) key: Option<Key>,
    pub(super) row: usize,
    /// The first row on the screen.
    pub(super) top: usize,
    /// The user has chosen it; else it stays the first.
    is_chosen: bool,
}

/// Whether a profile has a metric of this id that adds up.
fn can_lead(profile: &Profile, id: &str) -> bool {
    profile.metric(id).is_some_and(|metric| metric.is_additive)
}

/// The live view.
pub struct View {
    pub(super) look: Look,
    pub(super) shape: Shape,
    /// Where the callers view was entered from.
    before_callers: Shape,
    pub(super) trees: Trees,
    sorts: [Sort; 3],
    cursors: [Cursor; 3],
    folds: Folds,
    pub(super) shown: Option<Shown>,
    /// Came in while frozen.
    newest: Option<(Arc<Profile>, Option<f64>)>,
    pub(super) is_frozen: bool,
    pub(super) rate: Option<f64>,
    pub(super) phase: Phase,
    pub(super) rows: Vec<Row>,
    pub(super) lines: Vec<Line>,
    /// The methods whose callers were asked for, by machine name: the last one is in question.
    pub(super) asked: Vec<String>,
    pub(super) query: Query,
    pub(super) mode: Mode,
    pub(super) message: Option<String>,
    /// Rows that fit on the screen, and columns of it: as of the last picture.
    pub(super) height: usize,
    pub(super) width: u16,
    /// How many rows were put into words for the last picture.
    pub(super) worded: usize,
    /// The metric that stands in the place of time, if it is another.
    metric: Option<String>,
    default_file: String,
}

impl View {
    /// Nothing has been recorded yet. `default_file` is what is suggested to save to.
    pub fn new(look: Look, default_file: String) -> View {
        let usual = [Shape::Tree, Shape::Callers, Shape::Flat].map(Sort::usual);
        let mut view = View {
            look,
            shape: look.shape,
            before_callers: Shape::Tree,
            trees: look.trees,
            sorts: usual,
            cursors: [Cursor::default(); 3],
            folds: Folds::default(),
            shown: None,
            newest: None,
            is_frozen: false,
            rate: None,
            phase: Phase::Recording,
            rows: Vec::new(),
            lines: Vec::new(),
            asked: Vec::new(),
            query: Query::default(),
            mode: Mode::Rows,
            message: None,
            height: 1,
            width: 80,
            worded: 0,
            metric: None,
            default_file,
        };
        if let Some(sort) = look.sort {
            view.sorts[look.shape as usize] = sort;
        }
        view
    }

    /// Newer results, and how many calls a second were made since the ones before.
    pub fn update(&mut self, profile: Arc<Profile>, rate: Option<f64>) {
        if self.is_frozen {
            self.newest = Some((profile, rate));
            return;
        }
        if let Some(id) = self.metric.take_if(|id| !can_lead(&profile, id)) {
            let metrics = profile.metrics().into_iter().filter(|metric| metric.is_additive);
            let ids: Vec<String> = metrics.map(|metric| metric.id.into_owned()).collect();
            self.say(format!("{id} cannot stand in the place of time: there are {}", ids.join(", ")));
        }
        let forest = self.forest(&profile);
        self.rate = rate;
        self.shown = Some(Shown { profile, forest });
        self.rebuild();
    }

    /// Shows a metric in the place of time, by its id.
    pub fn lead_by(&mut self, id: &str) {
        self.metric = Some(id.to_owned());
        self.replant();
    }

    fn lead_by_next(&mut self) {
        let Some(shown) = &self.shown else { return };
        let metrics: Vec<Metric> = shown.profile.metrics().into_iter().filter(|metric| metric.is_additive).collect();
        let at = metrics.iter().position(|metric| metric.id == shown.forest.metric().id).unwrap_or(0);
        let next = &metrics[(at + 1) % metrics.len()];
        self.say(format!("{}: {}", next.title, next.about));
        self.lead_by(&next.id);
    }

    /// The trees as they are walked.
    fn forest(&self, profile: &Profile) -> Forest {
        let asked_for = self.metric.as_ref().and_then(|id| profile.metric(id));
        let metric = asked_for.unwrap_or_else(|| profile.time_metric());
        Forest::of(profile, self.trees, metric)
    }

    fn replant(&mut self) {
        if let Some(shown) = self.shown.take() {
            let forest = self.forest(&shown.profile);
            self.shown = Some(Shown { forest, ..shown });
        }
        self.rebuild();
    }

    /// What the profile is doing now.
    pub fn set_phase(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Says something, until the next key.
    pub fn say(&mut self, message: String) {
        self.message = Some(message);
    }

    /// How many rows were put into words for the last picture.
    pub fn worded_rows(&self) -> usize {
        self.worded
    }

    /// How many rows there are to scroll through.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn sort(&self) -> Sort {
        self.sorts[self.shape as usize]
    }

    pub(super) fn cursor(&self) -> Cursor {
        self.cursors[self.shape as usize]
    }

    fn cursor_mut(&mut self) -> &mut Cursor {
        &mut self.cursors[self.shape as usize]
    }

    pub(super) fn columns(&self, width: u16) -> Columns {
        let profile = self.shown.as_ref().map(|shown| &shown.profile);
        let has_cpu = profile.is_some_and(|profile| profile.merged.has_cpu_samples());
        let has_calls = profile.is_none_or(|profile| profile.imported.is_none());
        let is_known = |column| match column {
            Column::Cpu => has_cpu,
            Column::Calls | Column::PerCall => has_calls,
            _ => true,
        };
        Columns::fitting(self.shape, self.sort().column, is_known, width)
    }

    /// What a key means; what is asked for by it.
    pub fn press(&mut self, key: KeyEvent) -> Option<Request> {
        let message = self.message.take();
        match &mut self.mode {
            Mode::Help | Mode::Why(_) => {
                if let Mode::Why(page) = &mut self.mode
                    && page.scroll(key)
                {
                    return None;
                }
                self.mode = Mode::Rows;
                let leaves = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
                leaves.then_some(Request::Quit)
            }
            Mode::File { text, is_suggested } => {
                let types = matches!(key.code, KeyCode::Char(_)) && !key.modifiers.contains(KeyModifiers::CONTROL);
                if std::mem::take(is_suggested) && types {
                    text.clear();
                }
                let done = edit(text, key)?;
                let file = PathBuf::from(std::mem::take(text).trim());
                self.mode = Mode::Rows;
                let profile = Arc::clone(&self.shown.as_ref()?.profile);
                (done == Typed::Accepted && !file.as_os_str().is_empty()).then_some(Request::Save { file, profile })
            }
            Mode::Count { text } => {
                let done = edit(text, key)?;
                let text = std::mem::take(text);
                self.mode = Mode::Rows;
                if done == Typed::Accepted { self.count(&text) } else { None }
            }
            Mode::Search { .. } => {
                self.type_search(key);
                if matches!(self.mode, Mode::Rows) && !self.query.is_empty() {
                    // How many matches there are.
                    self.message = message;
                }
                None
            }
            Mode::Rows => Action::of(key).and_then(|action| self.act(action)),
        }
    }

    fn act(&mut self, action: Action) -> Option<Request> {
        let page = self.height.saturating_sub(1).max(1);
        let row = self.cursor().row;
        match action {
            Action::Up => self.choose(row.saturating_sub(1)),
            Action::Down => self.choose(row + 1),
            Action::PageUp => self.scroll(row.saturating_sub(page), -(page as isize)),
            Action::PageDown => self.scroll(row + page, page as isize),
            Action::First => self.choose(0),
            Action::Last => self.choose(usize::MAX),
            Action::In => self.step_in(),
            Action::Out => self.step_out(),
            Action::Enter if self.shape != Shape::Tree => self.ask_for_callers(),
            Action::Enter | Action::Toggle => {
                if let Some(node) = self.selected_node() {
                    self.fold(node, self.is_open(node));
                }
            }
            Action::UnfoldAll => self.unfold_all(),
            Action::FoldAll => self.fold_all(),
            Action::HotPath => self.unfold_hot_path(),
            Action::NextView => {
                let next = if self.shape == Shape::Tree { Shape::Flat } else { Shape::Tree };
                self.show(next);
            }
            Action::Callers => self.ask_for_callers(),
            Action::Back => self.back(),
            Action::Threads => {
                self.trees = if self.trees == Trees::Merged { Trees::PerThread } else { Trees::Merged };
                self.replant();
            }
            Action::Metric => self.lead_by_next(),
            Action::SortLeft => self.sort_beside(-1),
            Action::SortRight => self.sort_beside(1),
            Action::SortBy(place) => self.sort_by(place),
            Action::Reverse => {
                let sort = self.sort();
                self.set_sort(Sort { reversed: !sort.reversed, ..sort });
            }
            Action::Search => {
                let (before, anchor, folds) = (self.query.clone(), self.cursor(), self.folds.clone());
                self.query = Query::default();
                self.mode = Mode::Search { before, anchor, folds };
            }
            Action::NextMatch => self.find(Direction::Next),
            Action::PreviousMatch => self.find(Direction::Previous),
            Action::Freeze => {
                self.is_frozen = !self.is_frozen;
                if let Some((profile, rate)) = self.newest.take() {
                    self.update(profile, rate);
                }
            }
            Action::Pause => match self.phase {
                Phase::Recording => return Some(Request::Pause),
                Phase::Paused => return Some(Request::Resume),
                _ => self.say("the profile has ended".to_owned()),
            },
            Action::Clear => match self.phase {
                Phase::Recording | Phase::Paused => return Some(Request::Clear),
                _ => self.say("the profile has ended".to_owned()),
            },
            Action::Count => self.ask_what_to_count(),
            Action::Save if self.shown.is_some() => {
                self.mode = Mode::File { text: self.default_file.clone(), is_suggested: true };
            }
            Action::Save => self.say("there is nothing to be saved yet".to_owned()),
            Action::Exact => match self.exact() {
                Ok(pattern) => return Some(Request::Exact(pattern)),
                Err(why) => self.say(why.to_owned()),
            },
            Action::Why => self.explain_selected(),
            Action::Help => self.mode = Mode::Help,
            Action::Redraw => return Some(Request::Redraw),
            Action::Quit => return Some(Request::Quit),
        }
        None
    }

    fn show(&mut self, shape: Shape) {
        self.shape = shape;
        self.rebuild();
    }

    fn ask_for_callers(&mut self) {
        let Some(method) = self.selected_method() else {
            return self.say("select a method first".to_owned());
        };
        if self.shape == Shape::Callers {
            if self.asked.last() == Some(&method) {
                return;
            }
        } else {
            self.before_callers = self.shape;
            self.asked.clear();
        }
        self.ask(method);
    }

    fn ask(&mut self, method: String) {
        self.asked.push(method);
        self.cursors[Shape::Callers as usize] =
            Cursor { key: Some(Key::of(None, (Role::Own, ""))), is_chosen: true, ..Cursor::default() };
        self.show(Shape::Callers);
    }

    fn back(&mut self) {
        if self.shape == Shape::Callers {
            self.asked.pop();
            match self.asked.pop() {
                Some(method) => self.ask(method),
                None => self.show(self.before_callers),
            }
        } else {
            self.query = Query::default();
        }
    }

    fn set_sort(&mut self, sort: Sort) {
        self.sorts[self.shape as usize] = sort;
        self.rebuild();
    }

    fn sort_beside(&mut self, by: isize) {
        let columns = self.columns(self.width).columns;
        let at = columns.iter().position(|(column, _)| *column == self.sort().column).unwrap_or(0);
        let next = at.saturating_add_signed(by).min(columns.len() - 1);
        self.set_sort(Sort::by(columns[next].0));
    }

    fn sort_by(&mut self, place: usize) {
        let Some(&(column, _)) = self.columns(self.width).columns.get(place) else { return };
        let sort = self.sort();
        let reversed = sort.column == column && !sort.reversed;
        self.set_sort(Sort { column, reversed });
    }

    /// Its numbers.
    pub(super) fn amounts_of(&self, row: &Row) -> Amounts {
        match (row.what, &self.shown) {
            (What::Line(line), _) => self.lines[line].amounts.clone(),
            (What::Node(node), Some(shown)) => shown.forest.amounts(&shown.profile, node),
            (What::Node(_), None) => Amounts::default(),
        }
    }

    /// Makes the rows of the current view, and finds the selected one among them.
    fn rebuild(&mut self) {
        let Some(shown) = &self.shown else { return };
        let sort = self.sort().in_view(self.shape);
        self.lines.clear();
        self.rows = match self.shape {
            Shape::Tree | Shape::Locks | Shape::Tracks => tree_rows(shown, sort, &mut self.folds),
            Shape::Flat => {
                self.lines = flat_lines(shown, self.trees, sort);
                keyed(&self.lines, &shown.profile, self.shape)
            }
            Shape::Callers => {
                self.lines = callers_lines(shown, self.asked.last(), sort);
                keyed(&self.lines, &shown.profile, self.shape)
            }
        };
        let cursor = self.cursor();
        let found = cursor.key.and_then(|key| self.rows.iter().position(|row| row.key == key));
        let row = match found {
            _ if !cursor.is_chosen => 0,
            Some(row) => row,
            None => cursor.row.min(self.rows.len().saturating_sub(1)),
        };
        let key = self.rows.get(row).map(|row| row.key).or(cursor.key);
        // It stays at its place on the screen.
        let top = (cursor.top + row).saturating_sub(cursor.row);
        *self.cursor_mut() = Cursor { key, row, top, ..cursor };
    }
}
