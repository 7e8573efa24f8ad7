//! The jars that Debian's packages have installed, and their instrumented copies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::class_tree;
use crate::jar::{Jar, Packing};
use crate::machine::ensure;
use crate::probed_jdk::file_name;
use crate::rewriting::Pass;
use crate::rewritten::{Rewriting, check};

/// Where packages put them.
const DIRECTORIES: [&str; 5] = [
    "/usr/share/java",
    "/usr/share/jruby/lib",
    "/usr/share/groovy/lib",
    "/usr/share/scala-2.11/lib",
    "/usr/share/maven/lib",
];

/// A file of each package without which this is no corpus, and the package.
const WANTED: [(&str, &str); 4] = [
    ("/usr/share/jruby/lib/jruby.jar", "jruby"),
    ("/usr/share/scala-2.11/lib/scala-compiler.jar", "scala"),
    ("/usr/share/groovy/lib", "groovy"),
    ("/usr/share/java/eclipse-jdt-core.jar", "ecj"),
];

#[derive(Debug)]
pub(crate) struct Libraries {
    /// Instrumented copies, by the original's canonical path.
    copies: BTreeMap<PathBuf, PathBuf>,
    /// How they are instrumented.
    pub(crate) pass: Pass,
}

impl Libraries {
    /// Finds them all, and instruments them.
    pub(crate) fn prepare(work: &Path, pass: Pass) -> Result<(Libraries, Vec<Rewriting>), String> {
        ensure_installed()?;
        class_tree::empty(work)?;
        let mut copies = BTreeMap::new();
        let mut groups: BTreeMap<&str, Rewriting> = BTreeMap::new();
        for directory in DIRECTORIES.map(Path::new).into_iter().filter(|directory| directory.is_dir()) {
            for original in jars(directory)? {
                if copies.contains_key(&original) {
                    continue;
                }
                let name = file_name(&original);
                // Two directories may have jars of one name.
                let copy = work.join(copies.len().to_string());
                class_tree::empty(&copy)?;
                let copy = copy.join(&name);
                let mut jar = Jar::open(&original)?;
                let rewriting = groups.entry(group(&name)).or_insert_with(|| Rewriting::new(group(&name), pass));
                let changed = check(jar.classes()?, rewriting);
                jar.write(&copy, &changed, Packing::Stored)?;
                copies.insert(original, copy);
            }
        }
        Ok((Libraries { copies, pass }, groups.into_values().collect()))
    }

    pub(crate) fn originals(&self) -> Vec<PathBuf> {
        self.copies.keys().cloned().collect()
    }

    pub(crate) fn instrumented(&self) -> Vec<PathBuf> {
        self.copies.values().cloned().collect()
    }

    /// The instrumented copy of a jar.
    pub(crate) fn copy(&self, original: &Path) -> Result<&Path, String> {
        let copy = self.copies.get(original).map(PathBuf::as_path);
        copy.ok_or_else(|| format!("{}: not in {}", original.display(), DIRECTORIES.join(", ")))
    }
}

/// Sees to it that the packages are there that the corpus is made of.
pub(crate) fn ensure_installed() -> Result<(), String> {
    WANTED.iter().try_for_each(|(file, package)| ensure(file, package))
}

/// The jars in a directory, by their canonical paths, each once.
pub(crate) fn jars(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let mut jars = Vec::new();
    for path in class_tree::children(directory)? {
        // A link may lead nowhere: to a package that is only suggested.
        let Ok(original) = path.canonicalize() else { continue };
        if original.extension().is_some_and(|extension| extension == "jar") && !jars.contains(&original) {
            jars.push(original);
        }
    }
    Ok(jars)
}

/// The line of the table that a jar belongs to.
fn group(name: &str) -> &'static str {
    ["groovy", "jruby", "scala"].into_iter().find(|group| name.starts_with(group)).unwrap_or("other jars")
}
