//! What the tests share: class files, and the probes they are given.

use std::path::{Path, PathBuf};

use headwater_rewriter::{ClassFile, Probes, Request};

/// Of `java/java/lang/HwProbe.java`.
pub const PROBES: Probes<'static> =
    Probes { class: "java/lang/HwProbe", enter: "enter", exit: "exit", throw: "thrown", allocate: Some("allocated") };

/// Every class file below a directory.
pub fn class_files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "class") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// All methods with code, with ids of every size.
pub fn all_methods(class: &ClassFile<'_>) -> Vec<Request> {
    const SPREAD: u32 = 700;
    let with_code = class.methods().iter().filter(|method| method.has_code());
    with_code.map(|method| Request::method(method.index, method.index as u32 * SPREAD)).collect()
}
