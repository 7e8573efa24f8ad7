//! What tests need of package registries: installed once in the build's directory, as files of the repository pin it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::class_tree;
use crate::machine::call;

/// Installs what these files pin in a directory, which gets copies of them, unless it has the very same already.
///
/// # Errors
/// With the command's failure. What it has done by then is begun anew the next time.
pub(crate) fn ensure(pins: &[PathBuf], installed: &Path, install: impl FnOnce(&Path) -> Command) -> Result<(), String> {
    let name = |pin: &PathBuf| pin.file_name().unwrap_or_default().to_owned();
    let is_same = |pin: &PathBuf| matches!((std::fs::read(pin), std::fs::read(installed.join(name(pin)))), (Ok(wanted), Ok(had)) if wanted == had);
    if pins.iter().all(is_same) {
        return Ok(());
    }
    // What is there in part must not be taken for whole.
    let part = installed.with_extension("part");
    class_tree::empty(&part)?;
    for pin in pins {
        std::fs::copy(pin, part.join(name(pin))).map_err(|error| format!("{}: {error}", pin.display()))?;
    }
    call(&mut install(&part))?;
    class_tree::empty(installed)?;
    std::fs::rename(&part, installed).map_err(|error| format!("{}: {error}", installed.display()))
}

/// The build's directory: that of this program, and of the tests.
pub(crate) fn target() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| format!("our own path: {error}"))?;
    own.ancestors().nth(2).map(Path::to_owned).ok_or_else(|| format!("{}: not in target/<profile>", own.display()))
}

/// Installs what a directory's `package-lock.json` pins.
pub(crate) fn npm(pinned: &Path, installed: &Path) -> Result<(), String> {
    let pins = ["package.json", "package-lock.json"].map(|name| pinned.join(name));
    ensure(&pins, installed, |directory| {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(directory);
        npm
    })
}
