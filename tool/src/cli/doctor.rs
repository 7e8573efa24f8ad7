//! `headwater doctor`: whether a JVM can be attached to.

use std::io;
use std::process::ExitCode;

use super::arguments::ListFormat;
use super::fail;
use crate::doctor;
use crate::printable::Printable;

pub(super) fn run(target: &str, format: ListFormat) -> ExitCode {
    let diagnosis = doctor::examine(target);
    let mut out = io::stdout().lock();
    let written = match format {
        ListFormat::Text => diagnosis.write_text(&mut Printable(&mut out)),
        ListFormat::Json => diagnosis.write_json(&mut out),
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => fail(1, &format!("cannot write: {error}")),
        _ if diagnosis.is_hopeless() => ExitCode::from(3),
        _ => ExitCode::SUCCESS,
    }
}
