//! What a program of the zoo is: `tests/zoo/NAME/zoo.json`, beside the sources of its driver.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::class_tree;
use crate::machine::root;

/// Below it every directory with a description is a program; the others hold what they share.
const DIRECTORY: &str = "tests/zoo";
const DESCRIPTION: &str = "zoo.json";

/// A program, and its folder.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) directory: PathBuf,
    pub(crate) description: Description,
}

/// The description's fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// What it does, in a line.
    pub(crate) about: String,
    /// What Maven fetches; with what these depend on.
    #[serde(default)]
    pub(crate) dependencies: Vec<Dependency>,
    /// The class whose `main` is started.
    pub(crate) main: String,
    /// What `main` gets.
    #[serde(default)]
    pub(crate) arguments: Vec<String>,
    /// Options of its JVM.
    #[serde(default)]
    pub(crate) jvm: Vec<String>,
    /// For a server: the class whose `main` is its client, in a JVM of its own. It gets the server's port.
    pub(crate) client: Option<String>,
    /// Commands for the client once the profile is over, each a thing that nobody has asked the server for before.
    #[serde(default)]
    pub(crate) late: Vec<String>,
    /// Each is profiled in a JVM of its own.
    pub(crate) roots: Vec<Root>,
    /// Classes that must be the same to reflection before and after.
    pub(crate) reflect: Vec<String>,
    /// Feature versions of the JDKs that it runs on.
    #[serde(default = "all_jdks")]
    pub(crate) jdks: Vec<u32>,
    /// How it is started; in one way after another, if there are several.
    #[serde(default = "class_path")]
    pub(crate) packaging: Vec<Packaging>,
    /// For a program that can do the same each time, and end.
    pub(crate) gate: Option<Gate>,
}

/// What such a program's `main` gets.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gate {
    /// To do the same each time.
    pub(crate) same: Vec<String>,
    /// To do a little more, in methods of the roots' class.
    pub(crate) more: Vec<String>,
}

/// Something that is fetched.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dependency {
    /// `group:artifact:version`, or `group:artifact:version:classifier`.
    pub(crate) coordinates: String,
    /// As SPDX names it.
    pub(crate) licence: String,
    /// Needed to build the program only.
    #[serde(default)]
    pub(crate) tool: bool,
}

/// A root that a user would choose.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Root {
    /// `a.b.C::m`.
    pub(crate) method: String,
    /// The program's own meter of it; or `client`, if each of the client's questions calls it once.
    pub(crate) meter: String,
    /// How many calls of the root each of the meter's stands for.
    #[serde(default = "one")]
    pub(crate) calls: u64,
}

/// How a program is put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Packaging {
    /// Classes and jars on the class path.
    ClassPath,
    /// Spring Boot's executable jar, with all others in it.
    FatJar,
    /// The same, unpacked.
    Exploded,
}

impl Packaging {
    /// As it is called beside a program's name; nothing for the usual one.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Packaging::ClassPath => "",
            Packaging::FatJar => "-jar",
            Packaging::Exploded => "-exploded",
        }
    }
}

fn class_path() -> Vec<Packaging> {
    vec![Packaging::ClassPath]
}

fn one() -> u64 {
    1
}

fn all_jdks() -> Vec<u32> {
    vec![17, 25]
}

/// The programs with these names, in this order; all, where none is named. They are the zoo's, or those in another directory.
pub(crate) fn named(names: &[String], others: Option<&Path>) -> Result<Vec<Program>, String> {
    let directory = others.map_or_else(|| root().join(DIRECTORY), Path::to_owned);
    if !names.is_empty() {
        return names.iter().map(|name| load(directory.join(name))).collect();
    }
    let programs = class_tree::children(&directory)?;
    programs.into_iter().filter(|program| program.join(DESCRIPTION).exists()).map(load).collect()
}

/// Sources that all programs share.
pub(crate) fn shared_sources() -> PathBuf {
    root().join(DIRECTORY).join("common")
}

fn load(directory: PathBuf) -> Result<Program, String> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let file = directory.join(DESCRIPTION);
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let description = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(Program { name, directory, description })
}
