//! Completion of a command line: commands, options, their values, class and method names, targets, threads, files.
//!
//! What is complete is followed by a blank, what may go on is not.

use std::path::Path;

use super::Console;
use super::command::{Value, names, options, value};
use crate::jvm;
use crate::pattern::JDK_PACKAGES;
use crate::printable::printable;
use crate::request::count::Word;

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

/// What is wanted at a place of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum CompletionKind {
    /// One of these.
    OneOf(Vec<String>),
    Target,
    Method,
    /// A class, or methods of one.
    Class,
    Thread,
    File,
    Nothing,
}

impl Console {
    /// What may stand at the end of `line`.
    pub async fn complete(&mut self, line: &str) -> Completion {
        let (start, wanted) = wanted(line);
        let word = &line[start..];
        let whole = |words: Vec<String>| -> Vec<String> {
            let fitting = words.into_iter().filter(|candidate| candidate.starts_with(word));
            fitting.map(|candidate| candidate + " ").collect()
        };
        let candidates = match wanted {
            CompletionKind::OneOf(words) => whole(words),
            CompletionKind::Target => {
                whole(jvm::list().into_iter().map(|jvm| jvm.main).filter(|main| can_be_typed(main)).collect())
            }
            CompletionKind::Method | CompletionKind::Class if word.contains("::") => {
                self.methods_beginning_with(word).await
            }
            CompletionKind::Method => {
                let parts = by_parts(&self.classes, word);
                match &parts[..] {
                    // The class is clear, and a method is what is wanted.
                    [Part::Class(class)] => {
                        let methods = self.methods_beginning_with(&format!("{class}::")).await;
                        if methods.is_empty() { vec![format!("{class}::")] } else { methods }
                    }
                    _ => parts.iter().map(|part| part.before("::")).collect(),
                }
            }
            CompletionKind::Class => by_parts(&self.classes, word).iter().map(|part| part.before(" ")).collect(),
            CompletionKind::Thread => {
                let profile = self.profile_so_far().await;
                let threads = profile.map(|profile| profile.threads).unwrap_or_default();
                let quoted = |name: String| if name.contains(' ') { format!("'{name}'") } else { name };
                whole(
                    threads
                        .into_iter()
                        .map(|thread| thread.name)
                        .filter(|name| can_be_typed(name))
                        .map(quoted)
                        .collect(),
                )
            }
            CompletionKind::File => files(word),
            CompletionKind::Nothing => Vec::new(),
        };
        Completion { start, candidates }
    }

    /// The methods that `CLASS::BEGINNING` may mean, the class by its full or its simple name.
    async fn methods_beginning_with(&mut self, word: &str) -> Vec<String> {
        let Some((class, beginning)) = word.split_once("::") else { return Vec::new() };
        let classes = named(&self.classes, class);
        let is_class = |internal: &str| classes.iter().any(|class| class.replace('.', "/") == internal);
        let is_method = |_: &str, method: &str| method.starts_with(beginning);
        let found = self.loaded_methods(&is_class, &is_method).await.unwrap_or_default();
        let written = |name: &String| {
            let (class, method) = name.split('(').next()?.rsplit_once('.')?;
            can_be_typed(method).then(|| format!("{class}::{method} "))
        };
        let mut methods: Vec<String> = found.iter().filter_map(written).collect();
        methods.dedup();
        methods
    }
}

/// What is wanted at the end of a line, and where the word begins that is there already.
fn wanted(line: &str) -> (usize, CompletionKind) {
    let start = line.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let word = &line[start..];
    let before: Vec<&str> = line[..start].split_whitespace().collect();
    let words = |words: &[&str]| CompletionKind::OneOf(words.iter().map(|word| (*word).to_owned()).collect());
    let (Some(command), Some(last)) = (before.first(), before.last()) else {
        return (start, CompletionKind::OneOf(names()));
    };
    if let Some((option, beginning)) = word.split_once('=').filter(|(option, _)| option.starts_with("--")) {
        return (line.len() - beginning.len(), of_option(command, option).unwrap_or(CompletionKind::Nothing));
    }
    let wanted = match *command {
        "help" => CompletionKind::OneOf(names()),
        _ if *last == ">" => CompletionKind::File,
        _ if word.starts_with('-') => CompletionKind::OneOf(options(command)),
        _ if last.starts_with('-')
            && let Some(wanted) = of_option(command, last) =>
        {
            wanted
        }
        "attach" => CompletionKind::Target,
        "count" => CompletionKind::OneOf(Word::all().iter().map(|word| word.name()).collect()),
        "events" => words(&["gc", "classes", "threads", "monitors", "compile", "on", "off"]),
        "profile" | "region" | "callers" | "explain" => CompletionKind::Method,
        "expect" if word.starts_with("sample.") => words(&["sample.cpu", "sample.wall", "sample.alloc"]),
        "methods" => CompletionKind::Class,
        "filter" if before.len() > 1 => CompletionKind::Class,
        "filter" => words(&["include", "exclude", "clear"]),
        "wait" if before.len() == 1 => words(&["calls", "root-entered", "done"]),
        "expect" if before.len() == 1 => words(&super::condition::QUANTITIES),
        "snapshot" => CompletionKind::File,
        _ => CompletionKind::Nothing,
    };
    (start, wanted)
}

/// What an option's value is; `None` if it has none.
fn of_option(command: &str, option: &str) -> Option<CompletionKind> {
    Some(match value(command, option)? {
        Value::OneOf(values) => CompletionKind::OneOf(values),
        Value::Of(option) => match option.as_str() {
            "focus" => CompletionKind::Method,
            "include" | "exclude" => CompletionKind::Class,
            "thread" => CompletionKind::Thread,
            "output" => CompletionKind::File,
            _ => CompletionKind::Nothing,
        },
    })
}

/// What follows the beginning of a class's name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A package, with its dot.
    Package(String),
    /// A whole class.
    Class(String),
}

impl Part {
    /// As it is written where `next` follows a class.
    fn before(&self, next: &str) -> String {
        match self {
            Part::Package(package) => package.clone(),
            Part::Class(class) => format!("{class}{next}"),
        }
    }
}

/// Whether a name can be written on a command line as it is.
fn can_be_typed(name: &str) -> bool {
    printable(name) == name && !name.contains(['\'', '"', '\\'])
}

/// Among sorted names, what follows a beginning up to the next dot; or classes by their simple name, the application's first.
fn by_parts(classes: &[String], word: &str) -> Vec<Part> {
    let from = classes.partition_point(|name| name.as_str() < word);
    let mut parts: Vec<Part> = Vec::new();
    let beginning = classes[from..].iter().take_while(|name| name.starts_with(word));
    for name in beginning.filter(|name| can_be_typed(name)) {
        let part = match name[word.len()..].find('.') {
            Some(dot) => Part::Package(name[..=word.len() + dot].to_owned()),
            None => Part::Class(name.clone()),
        };
        if parts.last() != Some(&part) {
            parts.push(part);
        }
    }
    if parts.is_empty() && !word.is_empty() && !word.contains('.') {
        let found = of_application(classes.iter().filter(|name| simple_name(name).starts_with(word)));
        parts = found.into_iter().filter(|name| can_be_typed(name)).take(FEW).cloned().map(Part::Class).collect();
    }
    parts
}

/// The classes that a full or simple name means.
fn named(classes: &[String], name: &str) -> Vec<String> {
    if classes.binary_search_by(|class| class.as_str().cmp(name)).is_ok() {
        return vec![name.to_owned()];
    }
    of_application(classes.iter().filter(|class| simple_name(class) == name)).into_iter().take(FEW).cloned().collect()
}

fn simple_name(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

/// The application's classes among some; all of them, if none is.
fn of_application<'a>(classes: impl Iterator<Item = &'a String>) -> Vec<&'a String> {
    let (jdk, application): (Vec<&String>, Vec<&String>) =
        classes.partition(|class| JDK_PACKAGES.iter().any(|packages| class.starts_with(packages)));
    if application.is_empty() { jdk } else { application }
}

/// Files whose paths begin so; directories go on.
fn files(word: &str) -> Vec<String> {
    let (directory, beginning) = word.rsplit_once('/').map_or(("", word), |(directory, name)| (directory, name));
    let place = match (directory, word.starts_with('/')) {
        ("", true) => Path::new("/"),
        ("", false) => Path::new("."),
        (directory, _) => Path::new(directory),
    };
    let mut found: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_hidden = name.starts_with('.') && !beginning.starts_with('.');
        if name.starts_with(beginning) && !is_hidden && can_be_typed(&name) && !name.contains(' ') {
            let end = if entry.path().is_dir() { "/" } else { " " };
            found.push(format!("{}{name}{end}", &word[..word.len() - beginning.len()]));
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes() -> Vec<String> {
        [
            "com.acme.Cart",
            "com.acme.Shop",
            "com.acme.shop.Item",
            "com.other.Tool",
            "java.lang.Short",
            "java.lang.String",
        ]
        .map(str::to_owned)
        .to_vec()
    }

    #[test]
    fn class_names_are_completed_part_by_part() {
        for (word, expected) in [
            ("", &["com.", "java."][..]),
            ("com.", &["com.acme.", "com.other."]),
            ("com.acme.", &["com.acme.Cart::", "com.acme.Shop::", "com.acme.shop."]),
            ("com.acme.S", &["com.acme.Shop::"]),
            // The JDK's own come last.
            ("Sho", &["com.acme.Shop::"]),
            ("Str", &["java.lang.String::"]),
            ("nothing", &[]),
        ] {
            let parts: Vec<String> = by_parts(&classes(), word).iter().map(|part| part.before("::")).collect();
            assert_eq!(parts, expected, "{word}");
        }
    }

    #[test]
    fn a_class_is_meant_by_its_full_or_its_simple_name() {
        assert_eq!(named(&classes(), "com.acme.Shop"), ["com.acme.Shop"]);
        assert_eq!(named(&classes(), "Shop"), ["com.acme.Shop"]);
        assert_eq!(named(&classes(), "String"), ["java.lang.String"]);
        assert_eq!(named(&classes(), "Sho"), [""; 0]);
    }

    #[test]
    fn what_is_wanted_depends_on_the_place() {
        let words = |words: &[&str]| CompletionKind::OneOf(words.iter().map(|word| (*word).to_owned()).collect());
        for (line, start, expected) in [
            ("profile Sho", 8, CompletionKind::Method),
            (
                "count alloc-",
                6,
                words(&[
                    "locks",
                    "waits",
                    "classes",
                    "exceptions",
                    "bytecodes",
                    "alloc",
                    "alloc-sites",
                    "gc",
                    "instructions",
                    "cycles",
                    "page-faults",
                    "context-switches",
                    "on",
                    "off",
                ]),
            ),
            ("profile com.acme.Shop::checkout --include com.", 42, CompletionKind::Class),
            ("profile com.acme.Shop::checkout --clock ", 40, words(&["exact", "tick", "cpu"])),
            ("profile com.acme.Shop::checkout --clock=t", 40, words(&["exact", "tick", "cpu"])),
            ("profile com.acme.Shop::checkout --stats ", 40, CompletionKind::Method),
            ("profile com.acme.Shop::checkout -d ", 35, CompletionKind::Nothing),
            ("tree --sort ", 12, words(&["self", "total", "calls"])),
            ("tree --focus ", 13, CompletionKind::Method),
            ("tree --thread ma", 14, CompletionKind::Thread),
            ("tree -o ", 8, CompletionKind::File),
            ("tree > out", 7, CompletionKind::File),
            ("callers Sho", 8, CompletionKind::Method),
            ("methods Sho", 8, CompletionKind::Class),
            ("filter ", 7, words(&["include", "exclude", "clear"])),
            ("filter include com.", 15, CompletionKind::Class),
            ("wait ", 5, words(&["calls", "root-entered", "done"])),
            ("wait calls ", 11, CompletionKind::Nothing),
            ("attach ", 7, CompletionKind::Target),
            ("snapshot ", 9, CompletionKind::File),
        ] {
            assert_eq!(wanted(line), (start, expected), "{line}");
        }
        let (_, commands) = wanted("pro");
        assert_eq!(commands, CompletionKind::OneOf(names()));
        let (_, given) = wanted("tree --mi");
        assert!(matches!(given, CompletionKind::OneOf(options) if options.contains(&"--min".to_owned())));
    }
}
