//! Options that `profile` and `run` begin with, from the environment.

use std::ffi::OsString;

use crate::console::line::split;

/// The name of the variable with options that `profile` and `run` begin with.
pub(super) const OPTIONS: &str = "HEADWATER_OPTIONS";

/// The arguments, with the options of the environment behind `profile` or `run`: what is given on the command line comes
/// later and overrides them.
pub(super) fn with_defaults(given: Vec<OsString>, options: Option<&str>) -> Result<Vec<OsString>, String> {
    let takes_them = given.get(1).is_some_and(|command| command == "profile" || command == "run");
    let Some(options) = options.filter(|_| takes_them) else { return Ok(given) };
    let words = split(options, &|name| std::env::var(name).ok())
        .map_err(|error| format!("{OPTIONS}, column {}: {error}", error.column))?;
    let (program, rest) = given.split_at(2);
    Ok(program
        .iter()
        .cloned()
        .chain(words.into_iter().map(|word| word.text.into()))
        .chain(rest.iter().cloned())
        .collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::arguments::{Cli, Command};
    use super::*;
    use crate::profile::ClockMode;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn options_of_the_environment_come_first_and_are_overridden() {
        let given = || words("headwater profile 4711 --root a.B::c --clock exact --exclude x.Y");
        let all = with_defaults(given(), Some("--clock tick --min 3 --exclude 'a.B'")).unwrap();
        assert_eq!(all[2..7], words("--clock tick --min 3 --exclude"));
        let Command::Profile { profile, .. } = Cli::try_parse_from(all).unwrap().command else { panic!("profile") };
        let settings = profile.settings(false);
        assert_eq!(settings.clock, ClockMode::Exact);
        assert_eq!(settings.subgraph.exclude.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a.B", "x.Y"]);
        assert_eq!(with_defaults(given(), None), Ok(given()));
        assert_eq!(with_defaults(words("headwater list"), Some("--clock tick")), Ok(words("headwater list")));
        let error = with_defaults(given(), Some("--root 'x")).unwrap_err();
        assert_eq!(error, "HEADWATER_OPTIONS, column 8: this quote is never closed");
    }
}
