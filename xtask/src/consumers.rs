//! The programs that exports are made for: tests have these read them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::class_tree;
use crate::machine::{call, has_program, install, root};
use crate::web;

/// Programs, and the packages that have them.
const PROGRAMS: [(&str, &str); 5] = [
    ("callgrind_annotate", "valgrind"),
    ("chromium", "chromium"),
    ("go", "golang-go"),
    ("node", "nodejs"),
    ("npm", "npm"),
];

/// Libraries for Debian's Python, and the packages that have them.
const LIBRARIES: [(&str, &str); 2] = [
    ("/usr/lib/python3/dist-packages/prometheus_client", "python3-prometheus-client"),
    ("/usr/lib/python3/dist-packages/jsonschema", "python3-jsonschema"),
];

/// Sees to it that they are there.
pub(crate) fn ensure_installed() -> Result<(), String> {
    let programs = PROGRAMS.iter().filter(|(program, _)| !has_program(program));
    let libraries = LIBRARIES.iter().filter(|(path, _)| !Path::new(path).exists());
    let missing: Vec<&str> = programs.chain(libraries).map(|(_, package)| *package).collect();
    if !missing.is_empty() {
        install(&missing)?;
    }
    ensure_npm_packages()?;
    web::ensure_installed()
}

/// Installs what `tool/tests/consumers/package-lock.json` pins, unless that was done before.
fn ensure_npm_packages() -> Result<(), String> {
    npm_install(&root().join("tool/tests/consumers"), &target()?.join("consumers"))
}

/// Installs what a directory's `package-lock.json` pins in another one, unless that was done before.
pub(crate) fn npm_install(pinned: &Path, installed: &Path) -> Result<(), String> {
    const LOCK: &str = "package-lock.json";
    let is_installed = installed.join("node_modules").is_dir()
        && matches!((std::fs::read(pinned.join(LOCK)), std::fs::read(installed.join(LOCK))), (Ok(a), Ok(b)) if a == b);
    if is_installed {
        return Ok(());
    }
    class_tree::empty(installed)?;
    for name in ["package.json", LOCK] {
        std::fs::copy(pinned.join(name), installed.join(name)).map_err(|error| format!("{name}: {error}"))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(installed);
    call(&mut npm).inspect_err(|_| {
        // What is there in part must not be taken for whole.
        let _ = std::fs::remove_dir_all(installed);
    })
}

/// The build's directory: that of this program, and of the tests.
pub(crate) fn target() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("our own path: {error}"))?;
    own.ancestors().nth(2).map(Path::to_owned).ok_or_else(|| format!("{}: not in target/<profile>", own.display()))
}
