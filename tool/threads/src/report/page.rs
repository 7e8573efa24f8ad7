//! All threads of a JVM as a page for a browser.

use std::io::{self, Write};

use headwater_profile::page::write_other;

use super::json::report;
use crate::Taken;

/// Writes it: what the JSON has.
///
/// # Errors
///
/// Those of the writer.
pub fn write_page(taken: &Taken, out: &mut impl Write) -> io::Result<()> {
    write_other("threads", &format!("{} (pid {}): threads", taken.main, taken.pid), &report(taken), out)
}
