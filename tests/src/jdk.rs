//! The JVMs of this machine that tests run on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Scratch;

/// Names JVMs to be tested on instead of those that are installed: homes, with colons between them. JREs will do.
pub const INSTEAD: &str = "HEADWATER_TEST_JVMS";

/// A JVM of this machine, and what compiles for it.
#[derive(Clone, Debug)]
pub struct Jdk {
    /// Its home.
    pub home: PathBuf,
    /// Its feature version (17, 25, ...).
    pub version: u32,
    /// Home of the JDK whose tools are used, where this is a JRE.
    tools: Option<PathBuf>,
}

impl Jdk {
    /// The one with this home, if it can compile.
    pub fn at(home: &Path) -> Option<Jdk> {
        let home = home.canonicalize().ok()?;
        let version = feature_version(&home).filter(|_| home.join("bin/javac").exists())?;
        Some(Jdk { home, version, tools: None })
    }

    /// The one with this home, which may lack the tools that a JDK has.
    fn with_tools_of(home: &Path, tools: &Jdk) -> Option<Jdk> {
        let jre = || {
            let home = home.canonicalize().ok()?;
            let version = feature_version(&home).filter(|_| home.join("bin/java").exists())?;
            Some(Jdk { home, version, tools: Some(tools.home.clone()) })
        };
        Jdk::at(home).or_else(jre)
    }

    /// One of its programs, or of its tools.
    pub fn program(&self, name: &str) -> PathBuf {
        let own = self.home.join("bin").join(name);
        match &self.tools {
            Some(tools) if !own.exists() => tools.join("bin").join(name),
            _ => own,
        }
    }

    /// Where C finds `jni.h`.
    pub fn include(&self) -> PathBuf {
        self.tools().join("include")
    }

    /// A compiler whose classes it understands.
    pub fn javac(&self) -> Command {
        let mut javac = Command::new(self.program("javac"));
        javac.args(self.javac_options());
        javac
    }

    /// What makes the compiler write classes that it understands.
    pub(crate) fn javac_options(&self) -> Vec<String> {
        let version = self.version.to_string();
        // Not `--release`, which lets nobody see or patch the inside of java.base.
        let options = ["-Xlint:-options", "--source", &version, "--target", &version].map(str::to_owned);
        if self.tools.is_some() { options.to_vec() } else { Vec::new() }
    }

    /// The home of the JDK that compiles for it.
    pub(crate) fn tools(&self) -> &Path {
        self.tools.as_ref().unwrap_or(&self.home)
    }
}

/// Every JDK under JAVA_HOME and /usr/lib/jvm that can compile, each once; or those that [`INSTEAD`] names.
pub fn jdks() -> Vec<Jdk> {
    let installed = installed_jdks();
    let Some(homes) = std::env::var_os(INSTEAD) else { return installed };
    let newest = installed.iter().max_by_key(|jdk| jdk.version).expect("there is one");
    let named = |home: PathBuf| {
        Jdk::with_tools_of(&home, newest).unwrap_or_else(|| panic!("{INSTEAD}: {} is no JVM's home", home.display()))
    };
    std::env::split_paths(&homes).map(named).collect()
}

fn installed_jdks() -> Vec<Jdk> {
    let homes = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter();
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: BTreeMap<PathBuf, Jdk> = BTreeMap::new();
    for home in homes.chain(installed) {
        if let Some(jdk) = Jdk::at(&home) {
            found.insert(jdk.home.clone(), jdk);
        }
    }
    assert!(!found.is_empty(), "no JDK under JAVA_HOME or /usr/lib/jvm: apt-get install openjdk-17-jdk-headless");
    found.into_values().collect()
}

/// The classes of a JDK's image, a directory a module; of one module only, if it is named.
pub fn modules(jdk: &Jdk, module: Option<&str>) -> Scratch {
    let modules = Scratch::new("modules");
    let include = module.map(|module| format!("regex:/{module}/.*"));
    let status = Command::new(jdk.program("jimage"))
        .args(["extract", "--dir"])
        .arg(modules.path())
        .args(include.iter().flat_map(|include| ["--include", include]))
        .arg(jdk.home.join("lib/modules"))
        .status();
    assert!(status.expect("jimage starts").success());
    modules
}

/// From the JDK's `release` file.
fn feature_version(home: &Path) -> Option<u32> {
    let release = std::fs::read_to_string(home.join("release")).ok()?;
    let line = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
    line.split(['.', '"', '-', '+']).next()?.parse().ok()
}
