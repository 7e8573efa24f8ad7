//! `headwater report`: a saved profile, looked at again.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::fail;
use crate::import;
use crate::request::output::{Origin, Output};

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater report run.hw
  headwater report run.hw --view flat --sort calls
  headwater report run.hw --view callers --focus com.acme.Cart.total
  headwater report run.hw --thread 'http-*' --min 1% --depth 6
  headwater report run.hw --view callers -o callers.json
  headwater report run.hw -o run.html
  headwater report cpu.pb.gz --view flat
  headwater report night.hwr --metric cpu -o calls.graph.svg

Exit codes: 0 done, 1 the file cannot be read or has no such thread or method, 2 usage.";

/// Which snapshot, and what of it.
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// A snapshot (.hw), what `headwater watch` has recorded (.hwr), or collapsed stacks, pprof, speedscope's JSON or a flight recording (.jfr); - is standard input
    file: PathBuf,
    #[command(flatten)]
    output: Output,
}

pub(super) fn run(arguments: &ReportArgs) -> ExitCode {
    let ReportArgs { file, output } = arguments;
    if let Err(error) = output.check() {
        return fail(2, &error);
    }
    let profile = match import::load(file) {
        Ok(profile) => profile,
        Err(error) => return fail(1, &error.to_string()),
    };
    if let Err(nothing) = output.check_selection(&profile) {
        return fail(1, &nothing.to_string());
    }
    match output.write(&profile, Origin::File) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("the report could not be written: {error}")),
    }
}
