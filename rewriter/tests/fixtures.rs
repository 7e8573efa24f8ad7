//! Methods that verify but that javac does not emit, in Krakatau's assembly language (`fixtures/*.j`): instrumented they
//! verify and do what they did before.
//!
//! A fixture is written with stack map frames, for version 52, and run as that and without its frames as versions 50 and 49,
//! whose types HotSpot infers. Its first lines may say otherwise: `; versions 49 46`. `; lost 2` says how many of its calls
//! may end without a probe, because a call of `super(...)` throws, or where no frame can describe `this`.

use std::path::Path;

use headwater_tests::jdks;

#[path = "support/assembly.rs"]
mod assembly;
#[path = "support/comparison.rs"]
mod comparison;

use assembly::assembled;
use comparison::{Program, check};

/// The text as that version has it.
fn of_version(text: &str, version: &str) -> String {
    let major: u16 = version.parse().expect("a major version");
    let text = text.replace(".version 52 0", &format!(".version {version} 0"));
    if major > 50 {
        return text;
    }
    let mut out = String::new();
    let mut in_frame = false;
    for line in text.lines() {
        match line.trim() {
            ".stack full" => in_frame = true,
            ".end stack" => in_frame = false,
            directive if in_frame || directive.starts_with(".stack") => {}
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

fn directive<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().take_while(|line| line.starts_with(';')).find_map(|line| line.strip_prefix("; ")?.strip_prefix(name))
}

#[test]
fn fixtures_do_what_they_did_before() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut programs = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the fixtures") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "j") {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("text");
        for version in directive(&text, "versions ").unwrap_or("52 50 49").split(' ') {
            let classes = assembled(&name, &of_version(&text, version));
            let lost = directive(&text, "lost ").map_or(0, |lost| lost.parse().expect("a number"));
            programs.push(Program { lost, ..Program::new(&format!("{name}-{version}"), classes) });
        }
    }
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    check(&jdks(), &programs);
}

/// Versions 45.0 to 45.2 once had shorter fields in the Code attribute. HotSpot reads those of later versions (and says
/// `Invalid method Code length` to the others), so that is what they have.
#[test]
fn classes_of_the_oldest_versions() {
    let text = ".version 45 3
.class public super Oldest
.super java/lang/Object
.method public static oldest : (I)I
    .code stack 2 locals 1
        iload_0
        invokestatic Method Say check (I)I
        ireturn
    .end code
.end method
.end class
";
    let mut programs = Vec::new();
    for minor in 0..=3 {
        let mut classes = assembled("oldest", text);
        classes[0].1[4..6].copy_from_slice(&[0, minor]);
        programs.push(Program::new(&format!("oldest-{minor}"), classes));
    }
    check(&jdks(), &programs);
}
