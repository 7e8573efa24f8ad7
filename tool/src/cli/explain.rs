//! `headwater explain`: why a method has probes, or none.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::fail;
use crate::doctor;
use crate::import::{self, ImportError};
use crate::jvm::{self, Jvm};
use crate::request::explain::Explaining;

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater explain run.hw com.acme.Cart::total
  headwater explain run.hw 'com.acme.Cart::total(int)'
  headwater explain run.hw com.acme.Cart --limit 100
  headwater explain run.hw java.util.ArrayList::add -o why.json

At the prompt and in scripts of a profile that is being recorded: explain com.acme.Cart::total

Exit codes: 0 done, 1 the file cannot be read, or has no such method, 2 usage.";

/// Of which profile, and which methods.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// A snapshot (.hw); - is standard input
    file: PathBuf,
    #[command(flatten)]
    explaining: Explaining,
}

pub(super) fn run(arguments: &ExplainArgs) -> ExitCode {
    let ExplainArgs { file, explaining } = arguments;
    if let Err(error) = explaining.check() {
        return fail(2, &error);
    }
    let profile = match import::load(file) {
        Ok(profile) => profile,
        Err(error) => return fail(1, &unread(file, &error)),
    };
    let explained = match explaining.explain(&profile) {
        Ok(explained) => explained,
        Err(unexplained) => return fail(1, &unexplained.to_string()),
    };
    match explaining.write(&explained) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("the result could not be written: {error}")),
    }
}

/// Why a file could not be read; where there is none of the name, a JVM may be meant.
fn unread(file: &Path, error: &ImportError) -> String {
    let jvm = file.to_str().filter(|_| !file.exists()).and_then(|name| jvm::resolve(name).ok());
    let Some(jvm) = jvm else { return error.to_string() };
    let is_profiled = doctor::is_profiled(&jvm);
    let Jvm { main, pid, .. } = jvm;
    if is_profiled { IsJvm::Profiled { main, pid } } else { IsJvm::Alone { main, pid } }.to_string()
}

/// A JVM was named, and not a file: it knows nothing of how a profile finds methods.
#[derive(Debug, thiserror::Error)]
enum IsJvm {
    #[error(
        "a headwater is attached to {main} (pid {pid}), and only that one knows how it found methods: type `explain METHOD` at its \
         prompt, `w` in its top, or read its snapshot when there is one: headwater explain run.hw METHOD"
    )]
    Profiled { main: String, pid: u32 },
    #[error(
        "{main} (pid {pid}) is a JVM in which nothing is being recorded: which methods a profile finds is known when there is one: \
         headwater profile {pid} --root CLASS::METHOD -o run.hw"
    )]
    Alone { main: String, pid: u32 },
}
