//! What the view is told from outside, and what it asks for.

use std::path::PathBuf;
use std::sync::Arc;

use crate::profile::Profile;
use crate::report::{Trees, View as Shape};
use crate::request::count::Switch;
use crate::top::column::Sort;

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
    /// To count more beside calls, or less.
    Count(Switch),
    /// To draw everything again.
    Redraw,
    /// To have the exact profile of a method that was sampled, as a pattern.
    Exact(String),
    /// To write what is shown to a file.
    Save {
        /// Which; its extension says the format.
        file: PathBuf,
        /// What is shown.
        profile: Arc<Profile>,
    },
}
