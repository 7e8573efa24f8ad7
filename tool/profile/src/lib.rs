//! Profiles of running programs: one model, and all that is made of it, without a JVM or a terminal.
//!
//! [`profile`] is the model: methods, trees of calling contexts with a column for each metric, and what is known of how they were
//! recorded. [`snapshot`] keeps it in a file, [`import`] reads those of other tools, [`report`] shows it as text or JSON, [`diff`]
//! compares some, [`export`] hands it to other tools, [`page`] to a browser.
//!
//! ```
//! use headwater_profile::import;
//! use headwater_profile::report::{Options, View, text};
//!
//! // Or a file: a profile of ours, pprof, speedscope, a flight recording.
//! let stacks = "main;handle;parse 3\nmain;handle 1\n";
//! let profile = import::read("stacks", &mut stacks.as_bytes())?;
//!
//! let mut report = Vec::new();
//! text::write(&profile, &Options { view: View::Flat, ..Options::default() }, &text::Style::default(), &mut report)?;
//! assert!(String::from_utf8(report)?.contains("parse"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod build;
pub mod diff;
pub mod export;
pub mod import;
pub mod page;
mod pprof;
pub mod profile;
pub mod report;
pub mod snapshot;
pub mod traces;
pub mod whole_file;
