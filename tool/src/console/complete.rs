//! Completion of a command line: commands, options, class and method names, targets.

use super::Console;
use super::command::{names, options};
use crate::jvm;

/// Names of classes that fit by their simple name are offered only as long as they are so few.
const FEW: usize = 50;

/// What may stand at the end of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Where the word begins that is completed: a byte of the line.
    pub start: usize,
    /// The words.
    pub candidates: Vec<String>,
}

impl Console {
    /// What may stand at the end of `line`.
    pub async fn complete(&mut self, line: &str) -> Completion {
        let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let word = &line[start..];
        let mut before = line[..start].split_whitespace();
        let command = before.next();
        let mut candidates = match command {
            None | Some("help") => names(),
            Some(_) if word.starts_with('-') => command.map(options).unwrap_or_default(),
            Some("attach") => jvm::list().into_iter().map(|jvm| jvm.main).collect(),
            Some("profile" | "region" | "methods" | "callers") => self.complete_method(word).await,
            Some("filter") if before.next().is_some() => self.complete_method(word).await,
            Some("filter") => ["include", "exclude", "clear"].map(str::to_owned).to_vec(),
            Some("wait") => ["calls", "root-entered", "done"].map(str::to_owned).to_vec(),
            Some("expect") => super::condition::QUANTITIES.map(str::to_owned).to_vec(),
            Some(_) => Vec::new(),
        };
        candidates.retain(|candidate| candidate.starts_with(word) || !command_is(command, word));
        Completion { start, candidates }
    }

    /// A class's methods behind `::`; else packages and classes, one part at a time, or classes by their simple name.
    async fn complete_method(&mut self, word: &str) -> Vec<String> {
        let Some((class, beginning)) = word.split_once("::") else { return by_parts(&self.classes, word) };
        let internal = class.replace('.', "/");
        let is_class = |name: &str| name == internal;
        let is_method = |_: &str, method: &str| method.starts_with(beginning);
        let found = self.loaded_methods(&is_class, &is_method).await.unwrap_or_default();
        let names = found.iter().filter_map(|name| name.split('(').next()?.strip_prefix(class)?.strip_prefix('.'));
        let mut names: Vec<String> = names.map(|method| format!("{class}::{method}")).collect();
        names.dedup();
        names
    }
}

/// Whether candidates must begin with the word: class names may also fit by their last part.
fn command_is(command: Option<&str>, word: &str) -> bool {
    !matches!(command, Some("profile" | "region" | "methods" | "callers" | "filter")) || word.starts_with('-')
}

/// Among sorted names, what follows a beginning up to the next dot; a name that is complete gets `::`.
fn by_parts(classes: &[String], word: &str) -> Vec<String> {
    let from = classes.partition_point(|name| name.as_str() < word);
    let mut parts: Vec<String> = Vec::new();
    for name in classes[from..].iter().take_while(|name| name.starts_with(word)) {
        let part = match name[word.len()..].find('.') {
            Some(dot) => name[..=word.len() + dot].to_owned(),
            None => format!("{name}::"),
        };
        if parts.last() != Some(&part) {
            parts.push(part);
        }
    }
    if parts.is_empty() && !word.is_empty() && !word.contains('.') {
        let simple = |name: &&String| name.rsplit('.').next().is_some_and(|simple| simple.starts_with(word));
        parts = classes.iter().filter(simple).take(FEW).map(|name| format!("{name}::")).collect();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_names_are_completed_part_by_part() {
        let classes = ["com.acme.Cart", "com.acme.Shop", "com.acme.shop.Item", "com.other.Tool", "java.lang.String"];
        let classes: Vec<String> = classes.map(str::to_owned).to_vec();
        for (word, expected) in [
            ("", &["com.", "java."][..]),
            ("com.", &["com.acme.", "com.other."]),
            ("com.acme.", &["com.acme.Cart::", "com.acme.Shop::", "com.acme.shop."]),
            ("com.acme.S", &["com.acme.Shop::"]),
            ("Sho", &["com.acme.Shop::"]),
            ("nothing", &[]),
        ] {
            assert_eq!(by_parts(&classes, word), expected, "{word}");
        }
    }
}
