//! Spring Boot's executable jar, as its documentation describes it ("The Executable Jar Format"): the application's classes and
//! libraries in a jar whose launcher loads them from there. And the same unpacked, which the launcher runs as well.

use std::path::Path;
use std::process::Command;

use headwater_tests::Jdk;

use crate::class_tree;
use crate::libraries::jars;
use crate::machine::call;

/// The class that a JVM starts.
pub(super) const LAUNCHER: &str = "org.springframework.boot.loader.launch.JarLauncher";

/// What an application is made of, and where it is put.
pub(super) struct Application<'p> {
    pub(super) classes: &'p Path,
    pub(super) libraries: &'p Path,
    /// The loader is among them.
    pub(super) tools: &'p Path,
    pub(super) unpacked: &'p Path,
    pub(super) jar: &'p Path,
}

/// Puts it together.
pub(super) fn package(of: &Application<'_>, jdk: &Jdk, main: &str) -> Result<(), String> {
    let unpacked = of.unpacked;
    class_tree::empty(unpacked)?;
    for jar in jars(of.tools)? {
        call(Command::new(jdk.program("jar")).arg("--extract").arg("--file").arg(jar).current_dir(unpacked))?;
    }
    copy(of.classes, &unpacked.join("BOOT-INF/classes"))?;
    copy(of.libraries, &unpacked.join("BOOT-INF/lib"))?;
    let manifest = unpacked.join("META-INF/MANIFEST.MF");
    let text = format!(
        "Manifest-Version: 1.0\nMain-Class: {LAUNCHER}\nStart-Class: {main}\nSpring-Boot-Classes: BOOT-INF/classes/\n\
         Spring-Boot-Lib: BOOT-INF/lib/\n"
    );
    std::fs::write(&manifest, text).map_err(|error| format!("{}: {error}", manifest.display()))?;
    // Jars in the jar have to be stored, not compressed.
    let mut jar = Command::new(jdk.program("jar"));
    jar.args(["--create", "--no-compress", "--file"]).arg(of.jar).arg("--manifest").arg(&manifest);
    call(jar.arg("-C").arg(unpacked).arg("."))
}

/// Copies what is in a directory, but what Maven was told.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::create_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
    for path in class_tree::children(from)? {
        let copied = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &copied)?;
        } else if path.extension().is_none_or(|extension| extension != "xml") {
            std::fs::copy(&path, &copied).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}
