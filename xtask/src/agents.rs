//! `cargo xtask agents`: a program with other agents in its JVM, profiled while these come and go. What they do there, and what the program
//! does, is compared with the same without a profile.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use headwater_tests::{Jdk, Scratch, compile_library, compile_with, jdks};

use crate::machine::call;
use crate::pinned;
use crate::zoo::{self, build, program::Dependency};

mod course;
mod other;

use course::{Course, Seen};
use other::{OTHERS, Other};

/// What is run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    /// Only on JDKs of this feature version
    #[arg(long, value_name = "VERSION")]
    jdk: Option<u32>,
    /// Only with these
    #[arg(value_enum)]
    others: Vec<Other>,
}

/// Who comes first, and who leaves first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The other is there before, and when we have left.
    BeforeAndStays,
    /// It comes while we are there, and stays.
    DuringAndStays,
    /// It is there before, and leaves first.
    BeforeAndLeaves,
    /// It comes and leaves while we are there.
    DuringAndLeaves,
}

pub(crate) const ORDERS: [Order; 4] =
    [Order::BeforeAndStays, Order::DuringAndStays, Order::BeforeAndLeaves, Order::DuringAndLeaves];

impl Order {
    pub(crate) fn is_there_before(self) -> bool {
        matches!(self, Order::BeforeAndStays | Order::BeforeAndLeaves)
    }

    pub(crate) fn stays(self) -> bool {
        matches!(self, Order::BeforeAndStays | Order::DuringAndStays)
    }

    fn name(self) -> &'static str {
        match self {
            Order::BeforeAndStays => "before us, we leave first",
            Order::DuringAndStays => "after us, we leave first",
            Order::BeforeAndLeaves => "before us, it leaves first",
            Order::DuringAndLeaves => "after us, it leaves first",
        }
    }
}

/// What all courses need.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) jdk: Jdk,
    pub(crate) binary: PathBuf,
    pub(crate) classes: Scratch,
    pub(crate) library: PathBuf,
    /// The program's own agent, by which Byte Buddy is let in.
    pub(crate) agent: PathBuf,
    /// The jars of all others.
    pub(crate) jars: Vec<PathBuf>,
}

impl Place {
    fn new(jdk: Jdk, binary: PathBuf, jars: Vec<PathBuf>) -> Result<Place, String> {
        let sources = ["beside/Beside.java", "beside/Buddy.java", "chaos/Bytecodes.java"];
        let classes = compile_with(&jdk, &sources, &jars);
        let (library, agent, manifest) =
            (classes.file("libbytecodes.so"), classes.file("agent.jar"), classes.file("manifest"));
        compile_library(&jdk, "bytecodes.c", &library);
        std::fs::write(&manifest, "Premain-Class: Beside\nCan-Redefine-Classes: true\nCan-Retransform-Classes: true\n")
            .map_err(|error| format!("{}: {error}", manifest.display()))?;
        let mut jar = Command::new(jdk.program("jar"));
        call(jar.args(["--create", "--file"]).arg(&agent).arg("--manifest").arg(&manifest))?;
        Ok(Place { jdk, binary, classes, library, agent, jars })
    }

    /// The jar whose name begins so.
    pub(crate) fn jar(&self, beginning: &str) -> Result<&PathBuf, String> {
        let has = |jar: &&PathBuf| jar.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning));
        self.jars.iter().find(has).ok_or_else(|| format!("there is no {beginning}"))
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let binary = zoo::binary()?;
    let libraries = pinned::target()?.join("agents/lib");
    let dependencies: Vec<Dependency> = other::DEPENDENCIES
        .iter()
        .map(|(coordinates, licence)| Dependency {
            coordinates: (*coordinates).to_owned(),
            licence: (*licence).to_owned(),
            tool: true,
        })
        .collect();
    build::fetch(&dependencies.iter().collect::<Vec<_>>(), &libraries)?;
    let jars = crate::libraries::jars(&libraries)?;
    let mut failures = Vec::new();
    println!(
        "| JDK | agent | order | calls of the root, its callees | the program's results | the other's | code of all classes |"
    );
    println!("|--:|---|---|---|---|---|---|");
    for jdk in jdks().into_iter().filter(|jdk| arguments.jdk.is_none_or(|version| version == jdk.version)) {
        let place = Place::new(jdk, binary.clone(), jars.clone())?;
        for other in OTHERS.into_iter().filter(|it| arguments.others.is_empty() || arguments.others.contains(it)) {
            for order in ORDERS.into_iter().filter(|order| other.can(*order)) {
                let row = |with_us| Course { place: &place, other, order, with_us }.run();
                let without = row(false)?;
                let with = row(true)?;
                let cells = compared(&with, &without);
                println!("| {} | {other} | {} | {} |", place.jdk.version, order.name(), cells.join(" | "));
                if cells.iter().any(|cell| cell.starts_with("WRONG")) {
                    failures.push(format!(
                        "JDK {}, {other}, {}: {with:?}\n  without: {without:?}",
                        place.jdk.version,
                        order.name()
                    ));
                }
            }
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// What was seen with a profile, beside what was seen without.
fn compared(with: &Seen, without: &Seen) -> [String; 4] {
    let same = |is_same: bool| if is_same { "same".to_owned() } else { "WRONG".to_owned() };
    let calls = match (&with.calls, &with.skipped[..]) {
        (calls, _) if *calls == course::EXPECTED => "exact".to_owned(),
        (calls, []) => format!("WRONG: {calls:?}"),
        (_, reasons) => format!("not profiled: {}", reasons.join("; ")),
    };
    [
        calls,
        same(with.results == without.results),
        same(with.witness == without.witness),
        same(with.changed == without.changed),
    ]
}
