//! JVMs that verify every class, and start as fast as others.
//!
//! HotSpot shares no classes with others under `-Xverify:all`, as those of the archive that a JDK comes with have not been verified: each start takes
//! 0.9 s of a processor. So an archive is written that has been verified as it was dumped; with it a start takes 0.35 s (JDK 17 and 25, a program that
//! says a word).

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::{Jdk, run};

/// Verifies all classes, the JDK's too.
const VERIFY: &str = "-Xverify:all";

impl Jdk {
    /// Its `java`, which verifies all classes.
    pub fn verifying(&self) -> Command {
        let mut java = Command::new(self.program("java"));
        java.arg(VERIFY);
        if let Some(archive) = archive(self) {
            java.arg(option(&archive));
        }
        java
    }
}

fn option(archive: &Path) -> String {
    format!("-XX:SharedArchiveFile={}", archive.display())
}

/// The verified archive of a JVM; `None` where there can be none.
fn archive(jdk: &Jdk) -> Option<PathBuf> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Option<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(jdk.home.clone()).or_insert_with(|| ensure(jdk)).clone()
}

/// Dumps it, unless the build's directory has it.
fn ensure(jdk: &Jdk) -> Option<PathBuf> {
    let directory = std::env::current_exe().ok()?.ancestors().nth(2)?.join("verified");
    let mut hasher = DefaultHasher::new();
    (&jdk.home, std::fs::read(jdk.home.join("release")).ok()?).hash(&mut hasher);
    let archive = directory.join(format!("{}-{:016x}.jsa", jdk.version, hasher.finish()));
    if !archive.exists() {
        std::fs::create_dir_all(&directory).ok()?;
        // Other processes may be at it.
        let part = archive.with_extension(format!("{}.part", std::process::id()));
        let mut dump = Command::new(jdk.program("java"));
        let dumped = run(dump.args([VERIFY, "-Xshare:dump", &option(&part)]));
        if !dumped.status.success() || !part.exists() {
            eprintln!("JDK {}: no archive of verified classes; its JVMs start slowly", jdk.version);
            return None;
        }
        std::fs::rename(&part, &archive).ok()?;
    }
    Some(archive)
}
