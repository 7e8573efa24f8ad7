//! Whether a target writes an archive of its classes when it ends.

use super::{Check, ok, warning};
use crate::jvm;

/// No precondition of attaching.
pub(super) fn archive(options: &[String]) -> Check {
    const NAME: &str = "class archive";
    match jvm::archive_option(options) {
        None => ok(NAME, "none is written"),
        Some(option) => warning(
            NAME,
            format!("one is written when it ends ({option})"),
            "with classes that an agent has changed HotSpot may crash as it does, and write none: profile a run that writes none",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn archives_that_are_written_at_the_end_are_warned_of() {
        let verdict = |option: &str| archive(&["-Xmx1g".to_owned(), option.to_owned()]).verdict;
        for option in ["-XX:ArchiveClassesAtExit=a.jsa", "-XX:AOTCacheOutput=a.aot", "-XX:AOTMode=record"] {
            assert_eq!(verdict(option), Verdict::Warning, "{option}");
        }
        for option in ["-XX:SharedArchiveFile=a.jsa", "-XX:AOTCache=a.aot", "-Dx=-XX:AOTMode=record"] {
            assert_eq!(verdict(option), Verdict::Ok, "{option}");
        }
    }
}
