//! The programs that exports are made for: tests have these read them.

use std::path::Path;

use crate::machine::{has_program, install, root};
use crate::{pinned, web};

/// Programs, and the packages that have them.
const PROGRAMS: [(&str, &str); 6] = [
    ("callgrind_annotate", "valgrind"),
    ("chromium", "chromium"),
    ("dot", "graphviz"),
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

/// Installs what `tool/profile/tests/consumers/package-lock.json` pins.
fn ensure_npm_packages() -> Result<(), String> {
    pinned::npm(&root().join("tool/profile/tests/consumers"), &pinned::target()?.join("consumers"))
}
