//! Every message of the tool and of the agent has its heading in docs/TROUBLESHOOTING.md, which is searched by message.
//!
//! Messages are read from the sources: what `#[error("...")]` says, and the texts that failures, warnings and mistakes in a line are
//! made with. A heading stands for the messages that begin with it, where `N` is whatever differs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What is only ever a part of another message, which has the heading.
const PARTS: [&str; 15] = [
    "column N: N",
    "N N",
    "at offset N: expected N",
    "there is no probe for allocations",
    // The JVM's own words.
    "Dynamic agent loading is not enabled",
    "Java stack information for the threads listed above:",
    "waiting on the Class initialization monitor for ",
    // Why virtual threads are not known.
    "the JVM said `N`",
    // The ends of messages.
    ". --clock tick costs less",
    ". Name the methods that call it",
    ". Say --jdk edge or --jdk all: then another clock is read",
    // The agent's words, which are replaced.
    "the callees of method ",
    // Of threads in a report.
    "virtual threads that are not told apart",
    // Of threads in samples.
    "threads that have ended",
    // A blank line, before suggestions.
    "",
];

/// Where texts are help, findings with their remedies, or parts of other messages.
const ELSEWHERE: [&str; 9] = [
    "tool/src/top/draw.rs",
    "tool/src/cli/arguments.rs",
    "tool/src/doctor.rs",
    "tool/attach/src/jvm/perfdata.rs",
    "tool/attach/src/jvm/process.rs",
    "tool/attach/src/attach/transport.rs",
    "tool/profile/src/snapshot/columns.rs",
    // What metrics mean.
    "tool/src/profiling/counters.rs",
    "tool/src/sampling/metrics.rs",
];

/// Where messages are made.
const SOURCES: [&str; 11] = [
    "tool/src",
    "tool/terms/src",
    "tool/profile/src",
    "tool/jfr/src",
    "tool/threads/src",
    "tool/attach/src",
    "tool/callgraph/src",
    "tool/analysis/src",
    "backend/src",
    "protocol/src",
    "rewriter/src",
];

/// Headings of this section are for what others say, and for lines of reports.
const NOT_OURS: &str = "What the JVM prints, and what reports say";

/// What a text stands behind that is a message.
const MADE_BY: [&str; 9] =
    ["#[error(", "Failure::new(", "fail(", "LineError::new(", "warnings.push(", "remark(", "bad(", "Err(", "Some("];

/// What a text stands behind that is for the log.
const LOGGED: [&str; 3] = ["log::trace!(", "log::debug!(", "log::info!("];

/// Where all sentences are messages.
const MESSAGES_ONLY: [&str; 2] = ["tool/src/profiling", "backend/src/lib.rs"];

#[derive(Debug)]
struct Literal<'a> {
    /// The source up to it.
    before: &'a str,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("its entries").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        if name.starts_with("test") {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

/// String literals of Rust source, without those of comments and of the tests at its end.
fn literals(source: &str) -> Vec<Literal<'_>> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or(source);
    let (bytes, mut at, mut found) = (source.as_bytes(), 0, Vec::new());
    while at < bytes.len() {
        match bytes[at] {
            b'/' if source[at..].starts_with("//") => at += source[at..].find('\n').unwrap_or(source.len() - at),
            b'\'' => {
                // A character, or a lifetime.
                let rest = &bytes[at + 1..];
                at += match rest {
                    [b'\\', _, b'\'', ..] => 4,
                    [_, b'\'', ..] => 3,
                    _ => 1,
                };
            }
            b'"' => {
                let mut end = at + 1;
                while bytes[end] != b'"' {
                    end += if bytes[end] == b'\\' { 2 } else { 1 };
                }
                found.push(Literal { before: &source[..at], text: unescaped(&source[at + 1..end]) });
                at = end + 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// Without the escapes that these texts have.
fn unescaped(text: &str) -> String {
    let mut lines = text.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    let joined = lines.fold(first, |text, line| text + line.trim_start());
    joined.replace("\\n", "\n").replace("\\\"", "\"")
}

/// With `N` for whatever differs, up to the line's end.
fn normal(text: &str) -> String {
    let (mut result, mut depth) = (String::new(), 0);
    for character in text.lines().next().unwrap_or_default().chars() {
        match character {
            '{' => {
                depth += 1;
                if depth == 1 {
                    result.push('N');
                }
            }
            '}' => depth -= 1,
            _ if depth == 0 => result.push(character),
            _ => {}
        }
    }
    result
}

/// How many plain words a text has: one is a name, a format, or a word of a command.
fn words(text: &str) -> usize {
    let is_word = |word: &&str| word.len() > 1 && word.chars().all(|character| character.is_ascii_lowercase());
    text.split(' ').map(|word| word.trim_end_matches([',', ';', ':', '.'])).filter(is_word).count()
}

fn is_message(file: &str, literal: &Literal<'_>) -> bool {
    let before = literal.before.trim_end();
    let before = before.strip_suffix("format!(").unwrap_or(before).trim_end_matches(['&', ' ', '\n']);
    if before.ends_with("#[error(") {
        // `{}` says that another function has the text.
        return normal(&literal.text) != "N";
    }
    // The log is not for users.
    if LOGGED.iter().any(|call| before.ends_with(call)) {
        return false;
    }
    // Of the other parts the errors are all that is shown.
    if words(&literal.text) < 2 || file.starts_with("rewriter/") || file.starts_with("protocol/") {
        return false;
    }
    let line = before.rsplit('\n').next().unwrap_or_default();
    let is_named = line.contains("const ")
        && line.ends_with('=')
        && !["/cli/", "/request/"].iter().any(|part| file.contains(part));
    let is_called = MADE_BY.iter().any(|call| {
        before.ends_with(call)
            // Behind an exit code, or a column.
            || before.rfind(call).is_some_and(|start| {
                let arguments = &before[start + call.len()..];
                arguments.len() < 60 && arguments.ends_with(',') && !arguments.contains([';', '"', '{'])
            })
    });
    is_called || (words(&literal.text) > 2 && (is_named || MESSAGES_ONLY.iter().any(|part| file.starts_with(part))))
}

/// The messages, each with the file that has it.
fn messages() -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    for part in SOURCES {
        let mut files = Vec::new();
        sources(&root.join(part), &mut files);
        for path in files {
            let source = std::fs::read_to_string(&path).expect("a source");
            let file = path.strip_prefix(&root).expect("below the root").display().to_string();
            if ELSEWHERE.contains(&file.as_str()) {
                continue;
            }
            let texts = literals(&source).into_iter().filter(|literal| is_message(&file, literal));
            found.extend(texts.map(|literal| (normal(&literal.text), file.clone())));
        }
    }
    found.retain(|(text, _)| !PARTS.contains(&text.as_str()));
    found
}

/// The headings, and whether they stand for messages of ours.
fn headings() -> Vec<(String, bool)> {
    let text = std::fs::read_to_string(root().join("docs/TROUBLESHOOTING.md")).expect("the page");
    let mut ours = true;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(section) = line.strip_prefix("## ") {
            ours = section != NOT_OURS;
        }
        if let Some(heading) = line.strip_prefix("### ") {
            found.push((heading.to_owned(), ours));
        }
    }
    found
}

/// Whether a message begins as the heading says.
fn stands_for(heading: &str, message: &str) -> bool {
    message.starts_with(heading) || heading.strip_prefix("N ").is_some_and(|rest| message.starts_with(rest))
}

#[test]
fn every_message_has_a_heading() {
    let headings = headings();
    let missing: BTreeSet<String> = messages()
        .into_iter()
        .filter(|(message, _)| !headings.iter().any(|(heading, _)| stands_for(heading, message)))
        .map(|(message, file)| format!("{message}    ({file})"))
        .collect();
    let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
    assert!(missing.is_empty(), "docs/TROUBLESHOOTING.md has no heading (###) for:\n{}", missing.join("\n"));
}

#[test]
fn every_heading_has_a_message() {
    let messages = messages();
    assert!(messages.len() > 150, "the sources were not understood: {} messages", messages.len());
    let stale: Vec<String> = headings()
        .into_iter()
        .filter(|(heading, ours)| *ours && !messages.iter().any(|(message, _)| stands_for(heading, message)))
        .map(|(heading, _)| heading)
        .collect();
    assert!(
        stale.is_empty(),
        "docs/TROUBLESHOOTING.md has headings for what nobody says any more:\n{}",
        stale.join("\n")
    );
}

#[test]
fn messages_are_found_where_they_are_made() {
    let source = r#"
        /// "A comment."
        #[error("process {pid} is not {}, and cannot be", a("}"))]
        fn f<'a>(x: &'a str) -> char { let _ = fail(4, &format!("nothing that matches {x} was \
            found")); '"' }
        const NONE: &str = "there is none of these";
        let shown = "this is only shown to people";
    "#;
    let found: Vec<String> =
        literals(source).iter().filter(|it| is_message("tool/src/x.rs", it)).map(|it| normal(&it.text)).collect();
    assert_eq!(
        found,
        ["process N is not N, and cannot be", "nothing that matches N was found", "there is none of these"]
    );
    assert!(stands_for("nothing that matches N was found", &found[1]) && !stands_for("nothing", "something"));
}
