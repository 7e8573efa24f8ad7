//! The documents say what is there: the code map of docs/ARCHITECTURE.md names every module, references lead somewhere, and pages that are
//! to be short are. And modules import each other in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Words that a page may have, as `wc -w` counts them.
const MOST_WORDS: [(&str, usize); 5] = [
    ("docs/ARCHITECTURE.md", 3500),
    ("docs/GUIDE.md", 11_000),
    ("docs/MEASUREMENTS.md", 3000),
    ("docs/REFERENCE.md", 5000),
    ("CONTRIBUTING.md", 900),
];
const MOST_WORDS_OF_A_DECISION: usize = 600;

const DECISIONS: &str = "docs/decisions";
const CRATES: [&str; 17] = [
    "protocol",
    "modified-utf8",
    "rewriter",
    "runtime-java",
    "backend",
    "terms",
    "profile",
    "jfr",
    "threads",
    "attach",
    "callgraph",
    "analysis",
    "tool",
    "tests",
    "benches",
    "fuzz",
    "xtask",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Files of the repository with one of these endings, by their paths from its root; what is built or fetched is left out.
fn files(endings: &[&str]) -> Vec<String> {
    let (root, mut found, mut directories) = (root(), Vec::new(), vec![root()]);
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory of the repository") {
            let path = entry.expect("its entries").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            if name.starts_with('.') || name == "target" || name == "node_modules" {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(path.strip_prefix(&root).expect("below the root").display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// What a module's source names, by paths from the crate's root: behind `crate::`, `self::`, or `super::`.
fn imports(module: &[&str], text: &str) -> Vec<Vec<String>> {
    let tests = ["#[cfg(test)]\nmod tests {", "#[cfg(test)]\npub mod tests {"].map(|tests| text.find(tests));
    let text = &text[..tests.into_iter().flatten().min().unwrap_or(text.len())];
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.flat_map(|line| [line, " "]).collect();
    let is_of_name = |it: char| it.is_alphanumeric() || it == '_';
    let mut found = Vec::new();
    for (at, _) in code.match_indices("::") {
        let first = code[..at].rsplit(|it: char| !is_of_name(it)).next().unwrap_or_default();
        let is_first = !code[..at - first.len()].ends_with("::");
        let above = match first {
            "crate" => 0,
            "self" => module.len(),
            "super" => module.len().saturating_sub(1),
            _ => continue,
        };
        let path = module[..above].iter().map(|part| (*part).to_owned()).collect();
        if is_first {
            named(&code[at + 2..], path, &mut found);
        }
    }
    found
}

/// Adds all paths of a tree as behind `use`; what is behind it.
fn named<'a>(text: &'a str, mut above: Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        while let Some(next) = rest.strip_prefix(',').or(Some(rest)).filter(|next| !next.is_empty()) {
            match next.trim_start().strip_prefix('}') {
                Some(behind) => return behind,
                None => rest = named(next, above.clone(), found),
            }
            // Of `X as Y` the latter is nobody's.
            rest = &rest[rest.find([',', '}']).unwrap_or(rest.len())..];
        }
        return rest;
    }
    let end = text.find(|it: char| !(it.is_alphanumeric() || it == '_')).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    match name {
        "super" => drop(above.pop()),
        "self" | "" => {}
        _ => above.push(name.to_owned()),
    }
    match rest.strip_prefix("::") {
        Some(below) => named(below, above, found),
        None => {
            found.push(above);
            rest
        }
    }
}

/// What a module's source names of its own children, as its own: by that name, the path from the crate's root.
fn reexports(module: &[&str], text: &str) -> BTreeMap<String, Vec<String>> {
    let code: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, " "]).collect();
    let own = || module.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let is_own = !["crate::", "super::", "std::"].iter().any(|other| code[at + 4..].starts_with(other));
        if is_own && (at == 0 || code[..at].ends_with([' ', ')'])) {
            named(&code[at + 4..], own(), &mut found);
        }
    }
    found.into_iter().filter_map(|path| Some((path.last()?.clone(), path))).collect()
}

/// Of modules with what they import those that do so in circles, and what lies between.
fn circles(mut modules: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    loop {
        let names: BTreeSet<String> = modules.keys().cloned().collect();
        let imported: BTreeSet<String> =
            modules.iter().flat_map(|(name, of)| of.iter().filter(move |it| *it != name)).cloned().collect();
        modules.retain(|name, of| {
            of.retain(|it| it != name && names.contains(it));
            !of.is_empty() && imported.contains(name)
        });
        if modules.len() == names.len() {
            return modules;
        }
    }
}

/// What is between `open` and the next `close`, everywhere in a text.
fn between<'a>(text: &'a str, open: &'a str, close: char) -> impl Iterator<Item = &'a str> {
    text.split(open).skip(1).filter_map(move |rest| rest.split_once(close).map(|(inside, _)| inside))
}

/// What stands between backticks in a page.
fn code(page: &str) -> impl Iterator<Item = &str> {
    page.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// A crate's module, `crate::module::submodule`, by the path of its file; the crates' own roots and tests are none.
fn module(path: &str) -> Option<String> {
    let (name, path) = path.split_once("/src/")?;
    // The tool's crates lie below it.
    let name = name.strip_prefix("tool/").unwrap_or(name);
    let path = path.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let is_none = ["lib", "main"].contains(&path) || path.split('/').any(|part| part == "tests");
    (CRATES.contains(&name) && !is_none).then(|| format!("{name}::{}", path.replace('/', "::")))
}

/// All modules, those included that are directories of binaries.
fn modules() -> BTreeSet<String> {
    let mut modules: BTreeSet<String> = files(&[".rs"]).iter().filter_map(|path| module(path)).collect();
    let bins: Vec<String> =
        modules.iter().filter_map(|it| it.split_once("::bin::")).map(|(it, _)| format!("{it}::bin")).collect();
    modules.extend(bins);
    modules
}

/// The modules that a code map names: below each crate's heading a line for one, or for some that belong together; submodules are indented.
fn mapped(text: &str) -> Vec<String> {
    let map = text.split("\n## ").find(|section| section.starts_with("Code map\n")).expect("a section \"Code map\"");
    let (mut found, mut name, mut above) = (Vec::new(), "", Vec::new());
    for line in map.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            name = heading;
        }
        let Some((indent, item)) = line.split_once("- `") else { continue };
        if indent.trim().is_empty() {
            let names =
                item.split_once("`:").unwrap_or_else(|| panic!("a line of the code map says nothing: {line}")).0;
            above.truncate(indent.len() / 2);
            found.extend(names.split("`, `").map(|it| [&[name], &above[..], &[it]].concat().join("::")));
            above.push(names.split('`').next().unwrap_or(names));
        }
    }
    found
}

/// The words of a heading as links have them.
fn anchor(heading: &str) -> String {
    let kept = |character: &char| character.is_alphanumeric() || " -_".contains(*character);
    heading.trim().to_lowercase().chars().filter(kept).map(|it| if it == ' ' { '-' } else { it }).collect()
}

/// The headings of a page, as links have them.
fn anchors(page: &str) -> BTreeSet<String> {
    let is_heading = |line: &&str| line.trim_start_matches('#').starts_with(' ') && line.starts_with('#');
    page.lines().filter(is_heading).map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// What a file of the repository refers to, as paths from the root, with anchors: links of pages, names of documents and of sources.
fn references(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    if path.ends_with(".md") {
        let links = between(text, "](", ')').filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
        let directory = Path::new(path).parent().unwrap_or(Path::new(""));
        found.extend(links.map(|link| match link.strip_prefix('#') {
            Some(anchor) => format!("{path}#{anchor}"),
            None => directory.join(link).display().to_string(),
        }));
        // `tool/src/x.rs` in a page.
        let is_path =
            |it: &&str| CRATES.iter().any(|name| it.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')));
        let is_file =
            |it: &&str| [".rs", ".java", ".toml"].iter().any(|ending| it.ends_with(ending)) && !it.contains(['*', ' ']);
        found.extend(code(text).filter(is_path).filter(is_file).map(str::to_owned));
    }
    let is_end = |character: char| !(character.is_alphanumeric() || "-_/.#".contains(character));
    let names = text.split("docs/").skip(1).map(|rest| rest.split(is_end).next().unwrap_or(rest).trim_end_matches('.'));
    // Of a web address `docs/` is another's.
    let is_ours = |name: &&str| name.contains(".md") && !name.starts_with('.');
    found.extend(names.filter(is_ours).map(|name| format!("docs/{name}")));
    found
}

/// Whether a reference leads somewhere.
fn leads(reference: &str) -> bool {
    let (path, anchor) = reference.split_once('#').map_or((reference, None), |(path, anchor)| (path, Some(anchor)));
    let path = root().join(path);
    path.exists()
        && anchor.is_none_or(|anchor| std::fs::read_to_string(path).is_ok_and(|page| anchors(&page).contains(anchor)))
}

/// Names of modules and of tests in a page: `callgraph::ahead`, with their crate's or without.
fn named_modules(page: &str) -> impl Iterator<Item = &str> {
    let is_word = |part: &str| !part.is_empty() && part.chars().all(|it| it.is_ascii_lowercase() || "_-".contains(it));
    code(page).filter(move |name| name.contains("::") && name.split("::").all(is_word))
}

#[test]
fn the_code_map_names_every_module_once_and_no_other() {
    let (modules, mapped) = (modules(), mapped(&read("docs/ARCHITECTURE.md")));
    assert!(modules.len() > 200, "the modules were not found: {modules:?}");
    let names: BTreeSet<String> = mapped.iter().cloned().collect();
    let missing: Vec<&String> = modules.difference(&names).collect();
    assert!(missing.is_empty(), "the code map of docs/ARCHITECTURE.md has no line for {missing:?}");
    let gone: Vec<&String> = names.difference(&modules).collect();
    assert!(gone.is_empty(), "the code map of docs/ARCHITECTURE.md names modules that are not there: {gone:?}");
    assert_eq!(mapped.len(), names.len(), "the code map of docs/ARCHITECTURE.md names a module twice");
}

/// Of modules that have the same one above them, which import which, themselves or what is below them: by crates, and the one above.
fn siblings(modules: &BTreeMap<String, Vec<Vec<String>>>) -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut siblings: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (module, imported) in modules {
        let (name, own) = module.split_once("::").expect("a crate and a module");
        let own: Vec<&str> = own.split("::").collect();
        for path in imported {
            let common = own.iter().zip(path).take_while(|(own, other)| *own == other).count();
            let other = path.get(common).map(|last| [&own[..common], &[last.as_str()]].concat().join("::"));
            let is_module = |it: &String| modules.contains_key(&format!("{name}::{it}"));
            if let (Some(below), Some(other)) = (own.get(common), other.filter(is_module)) {
                let above = format!("{name}::{}", own[..common].join("::"));
                let all = siblings.entry(above).or_default();
                all.entry((*below).to_owned())
                    .or_default()
                    .insert(other.rsplit("::").next().unwrap_or(&other).to_owned());
            }
        }
    }
    siblings
}

#[test]
fn modules_import_each_other_in_no_circle() {
    let mut modules: BTreeMap<String, Vec<Vec<String>>> = BTreeMap::new();
    let mut reexported = BTreeMap::new();
    for path in files(&[".rs"]) {
        let text = read(&path);
        if let Some(of_crate) = path.strip_suffix("/src/lib.rs") {
            reexported.insert(of_crate.trim_start_matches("tool/").to_owned(), reexports(&[], &text));
        }
        let Some(module) = module(&path) else { continue };
        let own: Vec<&str> = module.split("::").skip(1).collect();
        modules.insert(module.clone(), imports(&own, &text));
        reexported.insert(module.clone(), reexports(&own, &text));
    }
    // What is imported from the module above is another child's, where that has it from there.
    for (module, imported) in &mut modules {
        let name = module.split("::").next().unwrap_or_default();
        for path in imported {
            let above = |path: &[String]| [&[name.to_owned()][..], &path[..path.len() - 1]].concat().join("::");
            while let Some(last) = path.last()
                && let Some(of) = reexported.get(&above(path)).and_then(|all| all.get(last))
                && of.len() > path.len()
            {
                *path = of.clone();
            }
        }
    }
    let siblings = siblings(&modules);
    assert!(siblings["backend::"]["session"].contains("target"), "imports were not understood: {siblings:?}");
    assert!(
        siblings["tool::profiling"]["assemble"].contains("bare"),
        "what is imported from above was not: {siblings:?}"
    );
    for (above, modules) in siblings {
        assert_eq!(circles(modules), BTreeMap::new(), "modules of {above} import each other in a circle");
    }
}

#[test]
fn circles_are_found() {
    let imported = |text| imports(&["a", "b"], text).into_iter().map(|path| path.join("::")).collect::<Vec<_>>();
    assert_eq!(
        imported(
            "use crate::{c, d::{self, E as F, g::*}};\n// crate::x\nuse super::super::e::F;\nuse super::g;\nself::h()"
        ),
        ["c", "d", "d::E", "d::g", "e::F", "a::g", "a::b::h"]
    );
    let paths = |of: &[&str]| of.iter().map(|path| path.split("::").map(str::to_owned).collect()).collect();
    let module = |name: &str, of: &[&str]| (name.to_owned(), paths(of));
    let found = siblings(&BTreeMap::from([
        module("x::a", &["a::b", "c"]),
        module("x::a::b", &["a::d::Item", "a::Item", "c::e"]),
        module("x::a::d", &["a::b"]),
        module("x::c", &[]),
        module("x::c::e", &["c"]),
    ]));
    let below: Vec<(&str, &str)> =
        found.iter().flat_map(|(above, of)| of.keys().map(move |it| (&**above, &**it))).collect();
    assert_eq!(below, [("x::", "a"), ("x::a", "b"), ("x::a", "d")]);
    assert_eq!(circles(found["x::a"].clone()).into_keys().collect::<Vec<_>>(), ["b", "d"]);
    let modules = [("a", "b"), ("b", "c"), ("c", "b"), ("d", "d"), ("e", "a")];
    let modules = modules.map(|(name, of)| (name.to_owned(), BTreeSet::from([of.to_owned()])));
    assert_eq!(circles(modules.into()).into_keys().collect::<Vec<_>>(), ["b", "c"]);
}

#[test]
fn references_lead_somewhere() {
    let (mut lost, mut seen) = (Vec::new(), 0);
    for path in files(&[".md", ".rs", ".java", ".ts", ".mjs"]) {
        // What is written here is about others' references.
        if path == "tool/tests/documents.rs" {
            continue;
        }
        let references = references(&path, &read(&path));
        seen += references.len();
        lost.extend(references.into_iter().filter(|it| !leads(it)).map(|it| format!("{path}: {it}")));
    }
    // `console/x.rs` in a page, without its crate.
    let sources = files(&[".rs"]);
    let is_file = |it: &&str| it.ends_with(".rs") && !it.contains(['*', ' ', '>']);
    let is_there = |it: &str| {
        sources.iter().any(|path| path.strip_suffix(it).is_some_and(|above| above.is_empty() || above.ends_with('/')))
    };
    for path in files(&[".md"]) {
        let page = read(&path);
        lost.extend(code(&page).filter(is_file).filter(|it| !is_there(it)).map(|it| format!("{path}: {it}")));
    }
    assert!(seen > 100, "the references were not understood: {seen}");
    assert!(lost.is_empty(), "these lead nowhere:\n{}", lost.join("\n"));
}

#[test]
fn modules_and_tests_that_pages_name_are_there() {
    let mut modules = modules();
    modules.extend(CRATES.map(str::to_owned));
    let mut functions = BTreeSet::new();
    for path in files(&[".rs"]) {
        let tests = path.split_once("/src/").filter(|_| path.contains("/tests"));
        modules
            .extend(tests.map(|(name, path)| format!("{name}::{}", path.trim_end_matches(".rs").replace('/', "::"))));
        functions.extend(between(&read(&path), "fn ", '(').map(str::to_owned));
    }
    let is_module = |name: &str| {
        modules.iter().any(|it| it.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with("::")))
    };
    // A module, its tests in the same file, or one of them.
    let is_there = |name: &str| {
        is_module(name)
            || name.rsplit_once("::").is_some_and(|(above, last)| {
                let is_test = above.split("::").any(|part| part == "tests");
                last == "tests" && is_module(above) || is_test && functions.contains(last)
            })
    };
    let mut lost = Vec::new();
    for path in files(&[".md"]) {
        let page = read(&path);
        lost.extend(named_modules(&page).filter(|it| !is_there(it)).map(|it| format!("{path}: {it}")));
    }
    assert!(lost.is_empty(), "these modules, or tests, are not there:\n{}", lost.join("\n"));
}

#[test]
fn every_decision_is_in_the_index() {
    let index = read(&format!("{DECISIONS}/README.md"));
    let linked: BTreeSet<String> =
        between(&index, "- [", '\n').filter_map(|line| between(line, "](", ')').next()).map(str::to_owned).collect();
    let there = files(&[".md"])
        .into_iter()
        .filter_map(|path| path.strip_prefix(DECISIONS)?.strip_prefix('/').map(str::to_owned));
    assert_eq!(there.filter(|name| name != "README.md").collect::<BTreeSet<_>>(), linked);
}

#[test]
fn pages_that_are_to_be_short_are() {
    let decisions = files(&[".md"]).into_iter().filter(|path| path.starts_with(DECISIONS));
    let limits = MOST_WORDS.iter().map(|(path, most)| ((*path).to_owned(), *most));
    let long: Vec<String> = limits
        .chain(decisions.map(|path| (path, MOST_WORDS_OF_A_DECISION)))
        .map(|(path, most)| (read(&path).split_whitespace().count(), path, most))
        .filter(|(words, _, most)| words > most)
        .map(|(words, path, most)| format!("{path} has {words} words of {most}"))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// What the binary says of itself, or of a command.
fn help(command: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_headwater")).args(command).arg("--help").output().expect("the binary");
    String::from_utf8(output.stdout).expect("text")
}

/// The options of a command, by the words that the guide may have for each: `-d` and `--duration`.
fn options(help: &str) -> Vec<Vec<&str>> {
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '-';
    let names = |line| str::split(line, ", ").map(move |name| name.split(|it| !is_name(it)).next().unwrap_or(name));
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-') && !line.starts_with("- "));
    lines.map(|line| names(line).filter(|name| name.starts_with('-')).collect()).collect()
}

#[test]
fn the_guide_has_every_option_of_every_command() {
    let guide = read("docs/GUIDE.md");
    let words: BTreeSet<&str> = guide.split(|it: char| !(it.is_ascii_alphanumeric() || it == '-')).collect();
    let overview = help(&[]);
    let commands = overview.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let commands: Vec<&str> =
        commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).filter(|it| !it.is_empty()).collect();
    assert!(commands.contains(&"profile") && commands.contains(&"diff"), "the commands were not found: {commands:?}");
    let mut missing = Vec::new();
    for command in commands.iter().filter(|command| **command != "help") {
        let help = help(&[command]);
        let unknown = options(&help)
            .into_iter()
            .filter(|names| !names.contains(&"--help") && !names.iter().any(|it| words.contains(it)));
        missing.extend(unknown.map(|names| format!("{command} {}", names.join(", "))));
    }
    assert!(missing.is_empty(), "docs/GUIDE.md has nothing of\n{}", missing.join("\n"));
}

#[test]
fn what_is_written_is_understood() {
    let map = "# A\n\n## Code map\n\n- `no` crate\n\n### tool\n\n- `a`, `b`: `c` and\n  - `d`: x\n    - `e`: x\n- `f`: x\n\n## Other\n\n- `g`: x\n";
    let map = map.replace("- `no` crate\n\n", "");
    assert_eq!(mapped(&map), ["tool::a", "tool::b", "tool::a::d", "tool::a::d::e", "tool::f"]);
    assert_eq!(module("tool/src/top/mod.rs").as_deref(), Some("tool::top"));
    assert_eq!(module("tool/profile/src/report/text.rs").as_deref(), Some("profile::report::text"));
    assert_eq!(
        module("tool/callgraph/src/tests/ahead.rs").or(module("tool/src/lib.rs")).or(module("x/src/a.rs")),
        None
    );
    assert_eq!(anchor(" A debugger's agent (jdwp) is `loaded`"), "a-debuggers-agent-jdwp-is-loaded");
    let page = "[a](b.md#c), [d](#e), [f](https://g/docs/h), see docs/I.md. In `tool/src/j.rs` and `tool/k`.";
    assert_eq!(references("docs/X.md", page), ["docs/b.md#c", "docs/X.md#e", "tool/src/j.rs", "docs/I.md"]);
    assert_eq!(references("tool/src/l.rs", "// docs/M.md#n, \"docs/tutorial\""), ["docs/M.md#n"]);
    assert!(leads("README.md#install") && !leads("README.md#no-such") && !leads("docs/NO.md"));
    assert_eq!(
        options("  -d, --duration <TIME>\n      --live[=<T>]\n  - x: y\n"),
        [vec!["-d", "--duration"], vec!["--live"]]
    );
    let names = named_modules("`tool::a::b`, `a::c`, `a::C::d`, `e` and f::g");
    assert_eq!(names.collect::<Vec<_>>(), ["tool::a::b", "a::c"]);
}
