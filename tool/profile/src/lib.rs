//! Profiles of running programs: one model, and all that is made of it, without a JVM or a terminal.
//!
//! [`profile`] is the model: methods, trees of calling contexts with a column for each metric, and what is known of how they were
//! recorded. [`snapshot`] keeps it in a file, [`import`] reads those of other tools, [`report`] shows it as text or JSON, [`diff`]
//! compares some, [`export`] hands it to other tools, [`page`] to a browser.
//!
//! ```no_run
//! use headwater_profile::import;
//! use headwater_profile::report::{self, Options};
//!
//! let mut file = std::fs::File::open("profile.hw")?;
//! let profile = import::read("profile.hw", &mut file)?;
//! report::json::write(&profile, &Options::default(), &mut std::io::stdout())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod diff;
pub mod export;
pub mod import;
pub mod page;
mod pprof;
pub mod profile;
pub mod report;
pub mod snapshot;
pub mod whole_file;
