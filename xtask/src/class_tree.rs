//! Class files in directories, and the classes of a JDK's modules, extracted to directories.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::call;
use crate::rewriting::ClassBytes;

/// The class files below a directory, in the order of their names.
pub(crate) fn read(root: &Path) -> Result<Vec<ClassBytes>, String> {
    let mut classes = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for path in children(&directory)? {
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "class") {
                let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
                classes.push(ClassBytes { name, bytes });
            }
        }
    }
    classes.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(classes)
}

/// Writes class files below a directory.
pub(crate) fn write(root: &Path, classes: &[ClassBytes]) -> Result<(), String> {
    for class in classes {
        let path = root.join(&class.name);
        let directory = path.parent().unwrap_or(root);
        std::fs::create_dir_all(directory)
            .and_then(|()| std::fs::write(&path, &class.bytes))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// What is directly in a directory, in the order of the names.
pub(crate) fn children(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// An empty directory, also where there was a full one.
pub(crate) fn empty(directory: &Path) -> Result<(), String> {
    if directory.exists() {
        std::fs::remove_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

/// The modules of a JDK, a directory each, named by the module.
pub(crate) fn extract_image(home: &Path, to: &Path) -> Result<Vec<PathBuf>, String> {
    let jimage = home.join("bin/jimage");
    let image = home.join("lib/modules");
    if !jimage.exists() || !image.exists() {
        return Err(format!(
            "{} has no bin/jimage and lib/modules; give the home of a JDK of version 9 or later",
            home.display()
        ));
    }
    empty(to)?;
    call(Command::new(jimage).arg("extract").arg("--dir").arg(to).arg(image))?;
    Ok(children(to)?.into_iter().filter(|path| path.is_dir()).collect())
}

/// Keeps a text in a file.
pub(crate) fn write_text(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
