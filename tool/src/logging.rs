//! `HEADWATER_LOG`: what the tool does, and when, for who looks for a fault of it or for where its time goes.
//!
//! `debug` has commands to the agent and hotswaps with what they took, `trace` each question of the target's threads; `headwater::session=trace` is one module. Lines
//! go to standard error.

use std::io::Write;
use std::time::Instant;

/// Which modules log what; in the notation of the crate `env_logger`.
pub(crate) const LOG: &str = "HEADWATER_LOG";

/// Begins to log, if that is wanted.
pub(crate) fn begin() {
    let Ok(wanted) = std::env::var(LOG) else { return };
    let begun = Instant::now();
    env_logger::Builder::new()
        .parse_filters(&wanted)
        .format(move |line, record| {
            let module = record.target().trim_start_matches("headwater::");
            writeln!(line, "{:10.4} {:5} {module}: {}", begun.elapsed().as_secs_f64(), record.level(), record.args())
        })
        .init();
}
