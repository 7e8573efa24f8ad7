//! `headwater completions` and `headwater man`: what the shell and the manual have of the command line.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::arguments::Cli;
use super::fail;

pub(super) fn completions(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "headwater", &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => fail(1, &format!("cannot write: {error}")),
        _ => ExitCode::SUCCESS,
    }
}

pub(super) fn manual(directory: &Path) -> ExitCode {
    match clap_mangen::generate_to(Cli::command(), directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("cannot write the manual pages to {}: {error}", directory.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_and_manual_pages_name_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "headwater", &mut script);
            let script = String::from_utf8_lossy(&script).into_owned();
            assert!(["profile", "attach", "session", "doctor"].iter().all(|name| script.contains(name)), "{shell}");
        }
        let scratch = headwater_tests::Scratch::new("man");
        clap_mangen::generate_to(Cli::command(), scratch.path()).unwrap();
        for page in ["headwater.1", "headwater-profile.1", "headwater-session.1"] {
            assert!(scratch.file(page).exists(), "{page}");
        }
    }
}
