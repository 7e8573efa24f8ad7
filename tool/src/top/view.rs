//! What the live view shows, and what keys change about it. Pure: profiles and keys go in, requests and a picture come out.
//!
//! Each view is a list of rows, made anew of every profile that comes in. Only those on the screen are put into words
//! (see [`draw`](super::draw)). The selection and what is folded belong to the chain of names that leads to a row, not to its place.

use std::path::PathBuf;
use std::sync::Arc;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rustc_hash::FxHashMap;

use super::column::{Columns, Measured, Sort};
use super::forest::{Forest, Key, Subject, name};
use super::keys::Action;
use super::search::{Direction, Matches, Query};
use crate::profile::{MethodIndex, NodeIndex, Profile, Tree};
use crate::report::flat::{self, Amounts};
use crate::report::names::Names;
use crate::report::walk::Children;
use crate::report::{Trees, View as Shape, arcs, share};

/// What takes at least this part of the whole is unfolded from the start,
const UNFOLDED: f64 = 0.1;
/// down to this level.
const UNFOLDED_LEVELS: u32 = 8;

/// How the view looks to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Which view comes first: the tree or the flat table.
    pub shape: Shape,
    /// Whether threads are apart.
    pub trees: Trees,
    /// What the first view is sorted by.
    pub sort: Option<Sort>,
    /// Which characters the terminal can show.
    pub glyphs: Glyphs,
    /// Whether colours are used.
    pub palette: Palette,
}

/// Which characters the terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyphs {
    /// All.
    Unicode,
    /// Those of ASCII.
    Ascii,
}

/// Whether colours are used. None means anything alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// They are.
    Color,
    /// Bold, underlined and reversed have to do.
    Monochrome,
}

/// What the profile is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is being recorded.
    Recording,
    /// Recording is interrupted.
    Paused,
    /// It has ended, and this is done about it.
    Ending(String),
    /// It has ended, because of this.
    Ended(String),
}

/// What the user asks for that is not the view's own business.
#[derive(Clone, Debug)]
pub enum Request {
    /// To leave.
    Quit,
    /// To interrupt recording.
    Pause,
    /// To go on.
    Resume,
    /// To forget what was recorded.
    Clear,
    /// To draw everything again.
    Redraw,
    /// To write what is shown to a file.
    Save {
        /// Which; its extension says the format.
        file: PathBuf,
        /// What is shown.
        profile: Arc<Profile>,
    },
}

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
    },
    Help,
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

/// What is folded and what is not.
#[derive(Clone, Debug, Default)]
pub(super) struct Folds {
    known: FxHashMap<Key, bool>,
    /// Nothing unfolds by itself any more.
    is_settled: bool,
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) key: Key,
    /// Roots are at 0.
    pub(super) depth: u32,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Node(NodeIndex),
    /// An index into the lines.
    Line(usize),
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) role: Role,
    /// `None`: from outside the roots.
    pub(super) method: Option<MethodIndex>,
    /// Of this thread alone: an index into the profile's.
    pub(super) thread: Option<usize>,
    pub(super) amounts: Amounts,
}

/// What a row of the callers view is to the method in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Caller,
    Own,
    Callee,
}

/// A profile, and its trees as they are walked.
pub(super) struct Shown {
    pub(super) profile: Arc<Profile>,
    pub(super) forest: Forest,
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
        let forest = Forest::of(&profile, self.trees);
        self.rate = rate;
        self.shown = Some(Shown { profile, forest });
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
        let has_cpu = self.shown.as_ref().is_some_and(|shown| shown.profile.merged.has_cpu_samples());
        Columns::fitting(self.shape, self.sort().column, has_cpu, width)
    }

    /// What a key means; what is asked for by it.
    pub fn press(&mut self, key: KeyEvent) -> Option<Request> {
        let message = self.message.take();
        match &mut self.mode {
            Mode::Help => {
                self.mode = Mode::Rows;
                let leaves = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
                leaves.then_some(Request::Quit)
            }
            Mode::File { text } => {
                let done = edit(text, key)?;
                let file = PathBuf::from(std::mem::take(text).trim());
                self.mode = Mode::Rows;
                let profile = Arc::clone(&self.shown.as_ref()?.profile);
                (done == Typed::Accepted && !file.as_os_str().is_empty()).then_some(Request::Save { file, profile })
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
                if let Some(shown) = self.shown.take() {
                    let forest = Forest::of(&shown.profile, self.trees);
                    self.shown = Some(Shown { forest, ..shown });
                }
                self.rebuild();
            }
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
            Action::Save if self.shown.is_some() => self.mode = Mode::File { text: self.default_file.clone() },
            Action::Save => self.say("there is nothing to be saved yet".to_owned()),
            Action::Help => self.mode = Mode::Help,
            Action::Redraw => return Some(Request::Redraw),
            Action::Quit => return Some(Request::Quit),
        }
        None
    }

    /// Selects a row, or the last one.
    fn choose(&mut self, row: usize) {
        let row = row.min(self.rows.len().saturating_sub(1));
        let key = self.rows.get(row).map(|row| row.key);
        let cursor = self.cursor_mut();
        *cursor = Cursor { key, row, is_chosen: key.is_some(), ..*cursor };
    }

    fn scroll(&mut self, row: usize, by: isize) {
        self.choose(row);
        let cursor = self.cursor_mut();
        cursor.top = cursor.top.saturating_add_signed(by);
    }

    fn choose_key(&mut self, key: Key) {
        if let Some(row) = self.rows.iter().position(|row| row.key == key) {
            self.choose(row);
        }
    }

    fn selected(&self) -> Option<&Row> {
        self.rows.get(self.cursor().row)
    }

    fn selected_node(&self) -> Option<NodeIndex> {
        match self.selected()?.what {
            What::Node(node) => Some(node),
            What::Line(_) => None,
        }
    }

    /// The method in the selected row, by its machine name.
    fn selected_method(&self) -> Option<String> {
        let shown = self.shown.as_ref()?;
        let method = match self.selected()?.what {
            What::Node(node) => match shown.forest.subject(&shown.profile, node) {
                Subject::Method(method) => Some(method),
                Subject::Thread(_) => None,
            },
            What::Line(line) => self.lines[line].method,
        };
        method.map(|method| shown.profile.methods[method.0].machine.clone())
    }

    pub(super) fn is_open(&self, node: NodeIndex) -> bool {
        let open = |shown: &Shown| self.folds.known.get(&shown.forest.key(node)).copied();
        self.shown.as_ref().and_then(open).unwrap_or(false)
    }

    fn fold(&mut self, node: NodeIndex, is_to_be_folded: bool) {
        if let Some(shown) = &self.shown
            && shown.forest.has_children(node)
        {
            self.folds.known.insert(shown.forest.key(node), !is_to_be_folded);
            self.rebuild();
        }
    }

    fn step_in(&mut self) {
        let (Some(node), Some(shown)) = (self.selected_node(), &self.shown) else { return };
        if !shown.forest.has_children(node) {
            return;
        }
        if self.is_open(node) {
            self.choose(self.cursor().row + 1);
        } else {
            self.fold(node, false);
        }
    }

    fn step_out(&mut self) {
        let (Some(node), Some(shown)) = (self.selected_node(), &self.shown) else { return };
        if self.is_open(node) && shown.forest.has_children(node) {
            self.fold(node, true);
        } else if let Some(parent) = shown.forest.parent(&shown.profile, node) {
            self.choose_key(shown.forest.key(parent));
        }
    }

    fn unfold_all(&mut self) {
        let (Some(node), Some(shown)) = (self.selected_node(), &self.shown) else { return };
        let keys = shown.forest.subtree(node).into_iter().map(|node| (shown.forest.key(node), true));
        self.folds.known.extend(keys);
        self.rebuild();
    }

    fn fold_all(&mut self) {
        self.folds = Folds { known: FxHashMap::default(), is_settled: true };
        // The root above it is what stays of a selected node.
        if let (Some(mut node), Some(shown)) = (self.selected_node(), &self.shown) {
            while let Some(parent) = shown.forest.parent(&shown.profile, node) {
                node = parent;
            }
            self.cursors[Shape::Tree as usize].key = Some(shown.forest.key(node));
        }
        self.rebuild();
    }

    fn unfold_hot_path(&mut self) {
        let (Some(mut node), Some(shown)) = (self.selected_node(), &self.shown) else { return };
        let hottest = |node| shown.forest.below(&shown.profile, Some(node), Sort::usual(Shape::Tree)).first().copied();
        while let Some(next) = hottest(node) {
            let (part, whole) = (shown.forest.amounts(&shown.profile, next), shown.forest.whole_ns());
            if share(part.total_ns, whole) < UNFOLDED {
                break;
            }
            self.folds.known.insert(shown.forest.key(node), true);
            node = next;
        }
        let key = shown.forest.key(node);
        self.rebuild();
        self.choose_key(key);
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

    fn type_search(&mut self, key: KeyEvent) {
        let mut text = self.query.text().to_owned();
        let typed = edit(&mut text, key);
        let Mode::Search { before, anchor, folds } = &self.mode else { return };
        match typed {
            Some(Typed::Accepted) => self.mode = Mode::Rows,
            Some(Typed::Dropped) => {
                (self.query, self.folds) = (before.clone(), folds.clone());
                let anchor = *anchor;
                self.mode = Mode::Rows;
                *self.cursor_mut() = anchor;
                self.rebuild();
            }
            None => {
                self.query = Query::new(&text);
                // What a shorter text led to has been left.
                self.folds = folds.clone();
                let anchor = *anchor;
                *self.cursor_mut() = anchor;
                self.rebuild();
                if !self.query.is_empty() && !self.selected().is_some_and(|row| self.query.matches(&self.name_of(row)))
                {
                    self.find(Direction::Next);
                }
            }
        }
    }

    /// Selects the next or previous row whose name matches, and unfolds what leads to it.
    fn find(&mut self, direction: Direction) {
        if self.query.is_empty() {
            return self.say("nothing is searched for; / begins".to_owned());
        }
        let Some(shown) = &self.shown else { return };
        if self.shape == Shape::Tree {
            let sort = self.sort().in_view(self.shape);
            let matches = Matches::of(&self.query, &shown.profile, &shown.forest, sort);
            if let Some(found) = matches.from(self.selected_node(), direction) {
                let total = matches.count();
                let key = shown.forest.key(found);
                let mut above = shown.forest.parent(&shown.profile, found);
                while let Some(node) = above {
                    self.folds.known.insert(shown.forest.key(node), true);
                    above = shown.forest.parent(&shown.profile, node);
                }
                self.rebuild();
                self.choose_key(key);
                return self.say(format!("{total} {}", if total == 1 { "match" } else { "matches" }));
            }
        } else {
            let (count, at) = (self.rows.len(), self.cursor().row);
            let is_match = |row: &usize| self.query.matches(&self.name_of(&self.rows[*row]));
            let found = match direction {
                Direction::Next => (1..=count).map(|step| (at + step) % count).find(is_match),
                Direction::Previous => (1..=count).map(|step| (at + count - step) % count).find(is_match),
            };
            if let Some(row) = found {
                let total = (0..count).filter(is_match).count();
                self.choose(row);
                return self.say(format!("{total} {}", if total == 1 { "match" } else { "matches" }));
            }
        }
        self.say(format!("nothing here matches `{}`", self.query.text()));
    }

    /// A row's name in full.
    pub(super) fn name_of(&self, row: &Row) -> String {
        let Some(shown) = &self.shown else { return String::new() };
        match row.what {
            What::Node(node) => {
                let subject = shown.forest.subject(&shown.profile, node);
                match subject {
                    Subject::Method(_) => name(&shown.profile, subject).to_owned(),
                    Subject::Thread(index) => thread_name(&shown.profile, index),
                }
            }
            What::Line(index) => {
                let line = &self.lines[index];
                let method = line.method.map(|method| name(&shown.profile, Subject::Method(method)));
                let method = method.unwrap_or("from outside the roots");
                match line.thread {
                    Some(thread) => format!("{method} in {}", thread_name(&shown.profile, thread)),
                    None => method.to_owned(),
                }
            }
        }
    }

    /// Its numbers.
    pub(super) fn amounts_of(&self, row: &Row) -> Amounts {
        match (row.what, &self.shown) {
            (What::Line(line), _) => self.lines[line].amounts,
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
            Shape::Tree => tree_rows(shown, sort, &mut self.folds),
            Shape::Flat => {
                self.lines = flat_lines(&shown.profile, self.trees, sort);
                keyed(&self.lines, &shown.profile, self.shape)
            }
            Shape::Callers => {
                self.lines = callers_lines(&shown.profile, self.asked.last(), sort);
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

    /// Scrolls so that the selected row is on the screen; rows that fit are shown.
    pub(super) fn settle(&mut self, height: usize) {
        let count = self.rows.len();
        self.height = height;
        let cursor = self.cursor_mut();
        let last_top = count.saturating_sub(height);
        let (lowest, highest) = ((cursor.row + 1).saturating_sub(height), cursor.row);
        cursor.top = cursor.top.clamp(lowest, highest).min(last_top.max(lowest));
    }
}

/// `thread "main" (1)`.
pub(super) fn thread_name(profile: &Profile, index: usize) -> String {
    let thread = &profile.threads[index];
    format!("thread \"{}\" ({})", thread.name, thread.id.0)
}

fn tree_rows(shown: &Shown, sort: Sort, folds: &mut Folds) -> Vec<Row> {
    let Shown { profile, forest } = shown;
    let mut rows = Vec::new();
    let mut pending: Vec<(NodeIndex, u32)> = forest.below(profile, None, sort).into_iter().map(|it| (it, 0)).collect();
    pending.reverse();
    while let Some((node, depth)) = pending.pop() {
        let key = forest.key(node);
        rows.push(Row { key, depth, what: What::Node(node) });
        if !forest.has_children(node) {
            continue;
        }
        let is_open = folds.known.get(&key).copied().unwrap_or_else(|| {
            let part = forest.amounts(profile, node).total_ns;
            let opens = !folds.is_settled && depth < UNFOLDED_LEVELS && share(part, forest.whole_ns()) >= UNFOLDED;
            if opens {
                // And stays so, when its share sinks.
                folds.known.insert(key, true);
            }
            opens
        });
        if is_open {
            pending.extend(forest.below(profile, Some(node), sort).into_iter().rev().map(|it| (it, depth + 1)));
        }
    }
    rows
}

fn flat_lines(profile: &Profile, trees: Trees, sort: Sort) -> Vec<Line> {
    let names = Names::of(profile);
    let of_tree = |thread: Option<usize>, tree: &Tree| {
        let rows = flat::rows(&names, tree, &Children::called(tree)).into_iter();
        rows.map(move |row| Line { role: Role::Own, method: Some(row.method), thread, amounts: row.amounts })
            .collect::<Vec<_>>()
    };
    let mut lines = match trees {
        Trees::Merged => of_tree(None, &profile.merged),
        Trees::PerThread => {
            let threads = profile.threads.iter().enumerate();
            threads.flat_map(|(index, thread)| of_tree(Some(index), &thread.tree)).collect()
        }
    };
    sort_lines(&mut lines, profile, sort);
    lines
}

fn callers_lines(profile: &Profile, machine: Option<&String>, sort: Sort) -> Vec<Line> {
    let stanzas = arcs::stanzas(profile, &profile.merged);
    let stanza = stanzas.into_iter().find(|stanza| Some(&profile.methods[stanza.method.0].machine) == machine);
    let Some(stanza) = stanza else { return Vec::new() };
    let line = |role, arc: &arcs::Arc| Line { role, method: arc.method, thread: None, amounts: arc.amounts };
    let mut callers: Vec<Line> = stanza.parents.iter().map(|arc| line(Role::Caller, arc)).collect();
    let mut callees: Vec<Line> = stanza.children.iter().map(|arc| line(Role::Callee, arc)).collect();
    sort_lines(&mut callers, profile, sort);
    sort_lines(&mut callees, profile, sort);
    callers.push(Line { role: Role::Own, method: Some(stanza.method), thread: None, amounts: stanza.own });
    callers.extend(callees);
    callers
}

fn sort_lines(lines: &mut [Line], profile: &Profile, sort: Sort) {
    let name = |line: &Line| line.method.map_or("", |method| profile.methods[method.0].display.as_str());
    lines.sort_by(|a, b| {
        let (left, right) = (name(a), name(b));
        let order =
            sort.compare(&Measured { amounts: &a.amounts, name: left }, &Measured { amounts: &b.amounts, name: right });
        order.then(a.method.cmp(&b.method)).then(a.thread.cmp(&b.thread))
    });
}

fn keyed(lines: &[Line], profile: &Profile, shape: Shape) -> Vec<Row> {
    let key = |line: &Line| match line {
        // Whichever method is in question.
        Line { role: Role::Own, .. } if shape == Shape::Callers => Key::of(None, (Role::Own, "")),
        _ => {
            let thread = line.thread.map(|thread| Key::of(None, profile.threads[thread].id.0));
            let method = line.method.map_or("", |method| profile.methods[method.0].machine.as_str());
            Key::of(thread, (line.role, method))
        }
    };
    lines.iter().enumerate().map(|(at, line)| Row { key: key(line), depth: 0, what: What::Line(at) }).collect()
}

/// What became of a line that is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Typed {
    Accepted,
    Dropped,
}

fn edit(text: &mut String, key: KeyEvent) -> Option<Typed> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Enter => return Some(Typed::Accepted),
        KeyCode::Esc => return Some(Typed::Dropped),
        KeyCode::Char('c' | 'g') if is_control => return Some(Typed::Dropped),
        KeyCode::Char('u') if is_control => text.clear(),
        KeyCode::Char('w') if is_control => {
            text.pop();
            text.truncate(text.rfind(['/', ' ', '.']).map_or(0, |at| at + 1));
        }
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char(character) if !is_control => text.push(character),
        _ => {}
    }
    None
}
