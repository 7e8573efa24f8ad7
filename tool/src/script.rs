//! Session scripts: the prompt's commands, one a line, read from a file.
//!
//! A script is read and checked as a whole before anything is done ([`Script::parse`]): with a target, and by `--dry-run`
//! without one. It ends with its first failure, whose exit code is the script's.

use std::collections::BTreeMap;
use std::fmt;

use crate::console::command::{Command, Reader, Statement};
use crate::console::line::LineError;
use crate::console::{Console, Failure, Flow};

/// A script that has been read.
#[derive(Debug)]
pub(crate) struct Script {
    name: String,
    steps: Vec<Step>,
}

/// A line that does something.
#[derive(Debug)]
struct Step {
    /// From 1.
    line: usize,
    /// Where its first word begins.
    column: usize,
    statement: Statement,
}

/// A mistake, or a failure, and where in the script it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptError {
    script: String,
    line: usize,
    column: usize,
    /// The exit code of the contract.
    pub(crate) code: u8,
    message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.script, self.line, self.column, self.message)
    }
}

/// `--set NAME=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    name: String,
    value: String,
}

impl std::str::FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Setting { name: name.to_owned(), value: value.to_owned() }),
            _ => Err("give NAME=VALUE".to_owned()),
        }
    }
}

/// Whether a script is begun with a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// On the command line.
    Given,
    /// By the script's own `attach`.
    Awaited,
}

/// What is known of a session before a line is executed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Detached,
    Attached,
    /// A profile is being recorded, or has been.
    Profiled,
}

/// Who has made so many mistakes has given something else for a script: each takes much more memory than its line.
const MOST_MISTAKES: usize = 100;

impl Script {
    /// Reads a script; its mistakes, if there are any. Variables are `settings`, then the environment's.
    pub(crate) fn parse(
        name: &str,
        text: &str,
        settings: &[Setting],
        target: Target,
    ) -> Result<Script, Vec<ScriptError>> {
        let settings: BTreeMap<&str, &str> =
            settings.iter().map(|set| (set.name.as_str(), set.value.as_str())).collect();
        let variables =
            |name: &str| settings.get(name).map(|value| (*value).to_owned()).or_else(|| std::env::var(name).ok());
        let mut script = Script { name: name.to_owned(), steps: Vec::new() };
        let mut errors = Vec::new();
        let mut expected = if target == Target::Given { Expected::Attached } else { Expected::Detached };
        let mut reader = Reader::default();
        for (index, text) in text.lines().enumerate() {
            if errors.len() == MOST_MISTAKES {
                let message = format!("no script, after {MOST_MISTAKES} mistakes: the rest was not read");
                errors.push(ScriptError { script: name.to_owned(), line: index + 1, column: 1, code: 2, message });
                break;
            }
            let column = text.chars().take_while(|character| character.is_whitespace()).count() + 1;
            let checked = reader.read(text, &variables).and_then(|statement| {
                expected = check(&statement, expected).map_err(|message| LineError::new(column, message))?;
                Ok(statement)
            });
            match checked {
                Ok(Statement::Nothing) => {}
                Ok(statement) => script.steps.push(Step { line: index + 1, column, statement }),
                Err(LineError { column, message }) => {
                    // What the line would have done is not known: what follows is not blamed for it.
                    expected = Expected::Profiled;
                    errors.push(ScriptError { script: name.to_owned(), line: index + 1, column, code: 2, message });
                }
            }
        }
        if errors.is_empty() { Ok(script) } else { Err(errors) }
    }

    /// How many lines do something.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Executes it; `interrupt` ends it like a failure. The target is left in any case.
    pub(crate) async fn run(
        self,
        console: &mut Console,
        interrupt: impl Future<Output = ()>,
    ) -> Result<(), ScriptError> {
        let mut interrupt = std::pin::pin!(interrupt);
        let mut result = Ok(());
        let mut last = (0, 1);
        for Step { line, column, statement } in self.steps {
            last = (line, column);
            let mut is_interrupted = false;
            let interruption = async {
                interrupt.as_mut().await;
                is_interrupted = true;
            };
            match console.execute(statement, interruption).await {
                // Whoever ends a command at the prompt may go on; nobody is there to do so.
                Ok(_) if is_interrupted => {
                    result = Err(Failure::interrupted());
                    break;
                }
                Ok(Flow::Continue) => {}
                Ok(Flow::Quit) => break,
                Err(failure) => {
                    result = Err(failure);
                    break;
                }
            }
        }
        let detached = console.detach().await;
        let (line, column) = last;
        result.and(detached).map_err(|Failure { code, message }| ScriptError {
            script: self.name,
            line,
            column,
            code,
            message,
        })
    }
}

/// What can be said of a statement without a target: whether there is something that it could act on.
fn check(statement: &Statement, before: Expected) -> Result<Expected, String> {
    const NO_TARGET: &str = "there is no target yet; begin with `attach TARGET`, or name one on the command line";
    const NO_PROFILE: &str = "there is no profile yet; `profile METHOD` begins one";
    let attached = if before == Expected::Detached { Err(NO_TARGET.to_owned()) } else { Ok(()) };
    let profiled = || match before {
        Expected::Detached => Err(NO_TARGET.to_owned()),
        Expected::Attached => Err(NO_PROFILE.to_owned()),
        Expected::Profiled => Ok(before),
    };
    match statement {
        Statement::Nothing | Statement::Help(_) => Ok(before),
        Statement::Expect(expectation)
            if expectation.is_of_threads()
                || expectation.is_of_samples()
                || expectation.is_of_locks()
                || expectation.is_of_events() =>
        {
            attached.map(|()| before)
        }
        Statement::Expect(_) => profiled(),
        Statement::Wait(wait) => {
            let is_time = matches!(wait.what, crate::console::condition::Wait::For(_));
            if is_time { Ok(before) } else { profiled() }
        }
        Statement::Command(command) => match &**command {
            Command::Attach { .. } => Ok(Expected::Attached),
            Command::Detach => attached.map(|()| Expected::Detached),
            Command::Profile { .. } => attached.map(|()| Expected::Profiled),
            // Nobody is there to end it.
            Command::Region(timing) if !timing.ends() => {
                Err("a region in a script needs an end: add -d TIME or --calls N".to_owned())
            }
            Command::Region(_) => attached.map(|()| before),
            Command::Watch { watching, .. } if !watching.ends() => {
                Err("a watch in a script needs an end: add -d TIME".to_owned())
            }
            Command::Watch { targets, all, .. } if *all || !targets.is_empty() => Ok(before),
            Command::ThreadDump(_)
            | Command::Sample(_)
            | Command::Candidates(_)
            | Command::Locks(_)
            | Command::Watch { .. }
            | Command::Events(_)
            | Command::Methods { pattern: Some(_), .. } => attached.map(|()| before),
            Command::Filter { .. }
            | Command::Echo { .. }
            | Command::Quit
            | Command::Status
            | Command::Wait { .. }
            | Command::Expect { .. } => Ok(before),
            // After `detach` the last results are still there.
            Command::Tree(_)
            | Command::Flat(_)
            | Command::Callers { .. }
            | Command::Explain(_)
            | Command::Threads
            | Command::Roots
            | Command::Snapshot { .. }
            | Command::Methods { .. } => {
                if before == Expected::Detached {
                    Ok(before)
                } else {
                    profiled()
                }
            }
            Command::Count(_) | Command::Clear | Command::Pause | Command::Resume | Command::Stop => profiled(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str, target: Target) -> Vec<String> {
        let settings = ["ROOT=a.B::c".parse().unwrap()];
        let errors = Script::parse("s.hw", text, &settings, target).err().unwrap_or_default();
        errors.iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = errors(text, Target::Given);
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}\n{expected}");
        }
    }

    #[test]
    fn a_script_without_mistakes_has_none() {
        check(
            "# measures\n\nfilter include com.acme.**\nprofile ${ROOT} --calls 10   # ten\nwait done 60s\n\
             expect lost == 0\ntree --min 1\nquit\n",
            &[],
        );
    }

    #[test]
    fn every_mistake_is_named_with_file_line_and_column() {
        check(
            "profile ${MISSING}\n  tre\nprofile a.B::c --cals 3\nwait root-entered soon\nexpect lost ~ 0\ntree > a.xyz\n\
             echo \"x\n",
            &[
                "s.hw:1:9: there is no variable MISSING; set it by --set MISSING=VALUE",
                "s.hw:2:3: there is no command 'tre'; tip: ",
                "s.hw:3:16: unexpected argument '--cals' found",
                "s.hw:4:19: `soon` is no time",
                "s.hw:5:8: give a quantity, a comparison and a value",
                "s.hw:6:8: a.xyz: its extension names no format",
                "s.hw:7:6: this quote is never closed",
            ],
        );
    }

    #[test]
    fn what_is_no_script_is_not_read_to_its_end() {
        let found = errors(&"tre\n".repeat(5_000), Target::Given);
        assert_eq!(found.len(), MOST_MISTAKES + 1);
        assert_eq!(found[MOST_MISTAKES], "s.hw:101:1: no script, after 100 mistakes: the rest was not read");
    }

    #[test]
    fn what_needs_a_target_or_a_profile_is_known_beforehand() {
        let found = errors("profile a.B::c\n", Target::Awaited);
        assert_eq!(
            found,
            ["s.hw:1:1: there is no target yet; begin with `attach TARGET`, or name one on the command line"]
        );
        assert_eq!(errors("attach x\nprofile a.B::c\ndetach\ntree\n", Target::Awaited), Vec::<String>::new());
        check("tree\n", &["s.hw:1:1: there is no profile yet"]);
        check("wait 3s\nstop\n", &["s.hw:2:1: there is no profile yet"]);
        check("sample -d 3s\nexpect sample.cpu < 3s\ncount alloc on\n", &["s.hw:3:1: there is no profile yet"]);
        check("profile a.B::c\ncount alloc\n", &["s.hw:2:7: name what is to be counted"]);
    }

    #[test]
    fn a_region_needs_a_target_and_an_end_but_no_profile() {
        check("region a.B::c a.B:7-9 -d 3s > times.json\n", &[]);
        check("region a.B::c\n", &["s.hw:1:1: a region in a script needs an end: add -d TIME or --calls N"]);
        check("region a.B:7-9 --calls 3\ntree\n", &["s.hw:2:1: there is no profile yet"]);
        assert_eq!(errors("region a.B::c -d 3s\n", Target::Awaited).len(), 1);
    }

    #[test]
    fn settings_have_a_name_and_a_value() {
        assert_eq!("A=b=c".parse(), Ok(Setting { name: "A".into(), value: "b=c".into() }));
        assert!("A".parse::<Setting>().is_err() && "=b".parse::<Setting>().is_err());
    }
}
