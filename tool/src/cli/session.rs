//! `headwater attach` and `headwater session`: the same commands, from a prompt and from a file.

use std::io::{self, Write};
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;

use super::fail;
use crate::console::Console;
use crate::console::prompt::{self, Signals};
use crate::report::units::plural;
use crate::request::interrupted;
use crate::request::progress::{Progress, Shown};
use crate::script::{self, Script, Setting};

pub(super) async fn at_prompt(target: &str) -> ExitCode {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => return fail(1, &format!("signals cannot be received: {error}")),
    };
    let mut console = Console::new(Progress::at_prompt());
    if let Err(failure) = console.attach(target, signals.any()).await {
        return fail(failure.code, &failure.message);
    }
    ExitCode::from(prompt::run(console, signals).await)
}

/// Whether a script is only checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    Dry,
    Real,
}

pub(super) async fn script(path: &Path, target: Option<&str>, settings: &[Setting], run: Run) -> ExitCode {
    let name = path.display().to_string();
    let text = if name == "-" { io::read_to_string(io::stdin()) } else { std::fs::read_to_string(path) };
    let text = match text {
        Ok(text) => text,
        Err(error) => return fail(2, &format!("the script {name} cannot be read: {error}")),
    };
    // The same script may be checked without the target that it will be given.
    let given = if target.is_some() || run == Run::Dry { script::Target::Given } else { script::Target::Awaited };
    let script = match Script::parse(&name, &text, settings, given) {
        Ok(script) => script,
        Err(errors) => {
            for error in errors {
                fail(2, &error.to_string());
            }
            return ExitCode::from(2);
        }
    };
    if run == Run::Dry {
        let commands = plural(script.len() as u64, "command", "commands");
        let _ = writeln!(io::stderr(), "headwater: {name}: {commands}, no mistake found");
        return ExitCode::SUCCESS;
    }
    let mut console = Console::new(Progress::new(Shown::Milestones));
    let mut interrupt = pin!(interrupted());
    if let Some(target) = target
        && let Err(failure) = console.attach(target, interrupt.as_mut()).await
    {
        return fail(failure.code, &failure.message);
    }
    match script.run(&mut console, interrupt).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.code, &error.to_string()),
    }
}
