//! Makes a program ready to start, below `target/zoo/NAME`: Maven fetches what it depends on, javac compiles its driver.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use headwater_tests::Jdk;

use super::program::{Dependency, Description, Packaging, Program, shared_sources};
use super::spring_boot::{self, Application};
use crate::class_tree;
use crate::libraries::jars;
use crate::machine::{call, ensure};
use crate::pinned;

/// Maven's plugin that copies jars, of a version that does not change under us.
const COPY: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
/// Endings of what programs read when they run.
const SCRIPTS: [&str; 2] = ["clj", "groovy"];
/// Drivers are compiled for the oldest JDK that they run on.
const RELEASE: &str = "17";

/// A program that can be started.
#[derive(Debug)]
pub(crate) struct Built {
    /// Where its files are, and its runs may write theirs.
    pub(crate) work: PathBuf,
    pub(super) classes: PathBuf,
    pub(super) libraries: PathBuf,
    /// What is needed to build it only.
    pub(super) tools: PathBuf,
    /// What is in its executable jar, and that, if it has one.
    pub(super) unpacked: PathBuf,
    pub(super) jar: PathBuf,
}

impl Built {
    /// Fetches and compiles it.
    pub(crate) fn prepare(program: &Program, compiler: &Jdk) -> Result<Built, String> {
        let work = pinned::target()?.join("zoo").join(&program.name);
        let built = Built {
            classes: work.join("classes"),
            libraries: work.join("lib"),
            tools: work.join("tools"),
            unpacked: work.join("unpacked"),
            jar: work.join("program.jar"),
            work,
        };
        let (tools, dependencies): (Vec<_>, Vec<_>) = program.description.dependencies.iter().partition(|one| one.tool);
        for (dependencies, directory) in [(&dependencies, &built.libraries), (&tools, &built.tools)] {
            if !dependencies.is_empty() {
                fetch(dependencies, directory)?;
            }
        }
        class_tree::empty(&built.classes)?;
        let mut javac = Command::new(compiler.program("javac"));
        javac.args(["--release", RELEASE, "-g", "-parameters", "-nowarn", "-proc:none", "-d"]).arg(&built.classes);
        javac.arg("-cp").arg(built.libraries.join("*"));
        javac.args(sources(&shared_sources(), "java")?).args(sources(&program.directory, "java")?);
        call(&mut javac)?;
        built.compile_kotlin(compiler, &sources(&program.directory, "kt")?)?;
        copy_scripts(&program.directory, &built.classes)?;
        if program.description.packaging.iter().any(|packaging| *packaging != Packaging::ClassPath) {
            let application = Application {
                classes: &built.classes,
                libraries: &built.libraries,
                tools: &built.tools,
                unpacked: &built.unpacked,
                jar: &built.jar,
            };
            spring_boot::package(&application, compiler, &program.description.main)?;
        }
        Ok(built)
    }

    /// A JVM that runs the program.
    pub(crate) fn program(&self, jdk: &Jdk, description: &Description, packaging: Packaging) -> Command {
        let mut java = Command::new(jdk.program("java"));
        java.args(&description.jvm).current_dir(&self.work);
        match packaging {
            Packaging::ClassPath => java.arg("-cp").arg(self.class_path()).arg(&description.main),
            Packaging::FatJar => java.arg("-jar").arg(&self.jar),
            Packaging::Exploded => java.arg("-cp").arg(&self.unpacked).arg(spring_boot::LAUNCHER),
        };
        java.args(&description.arguments);
        java
    }

    /// A JVM that runs another of its classes.
    pub(crate) fn java(&self, jdk: &Jdk, main: &str) -> Command {
        let mut java = Command::new(jdk.program("java"));
        java.current_dir(&self.work).arg("-cp").arg(self.class_path()).arg(main);
        java
    }

    /// By the compiler among its tools.
    fn compile_kotlin(&self, jdk: &Jdk, sources: &[PathBuf]) -> Result<(), String> {
        if sources.is_empty() {
            return Ok(());
        }
        let mut kotlinc = Command::new(jdk.program("java"));
        kotlinc.arg("-cp").arg(self.tools.join("*")).args([
            "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler",
            "-no-stdlib",
            "-no-reflect",
        ]);
        kotlinc.args(["-nowarn", "-java-parameters", "-jvm-target", RELEASE, "-d"]).arg(&self.classes);
        kotlinc.arg("-cp").arg(self.all_jars()?).args(sources);
        call(&mut kotlinc)
    }

    /// The class path for whom a `*` says nothing.
    fn all_jars(&self) -> Result<OsString, String> {
        let jars = jars(&self.libraries)?;
        std::env::join_paths(std::iter::once(&self.classes).chain(&jars)).map_err(|error| error.to_string())
    }

    fn class_path(&self) -> String {
        format!("{}:{}", self.classes.display(), self.libraries.join("*").display())
    }
}

/// Fetches these and what they depend on, unless the very same are there.
pub(crate) fn fetch(dependencies: &[&Dependency], libraries: &Path) -> Result<(), String> {
    ensure("/usr/bin/mvn", "maven")?;
    let pom = libraries.with_extension("xml");
    let project = project(dependencies)?;
    std::fs::create_dir_all(pom.parent().unwrap_or(libraries))
        .and_then(|()| std::fs::write(&pom, project))
        .map_err(|error| format!("{}: {error}", pom.display()))?;
    pinned::ensure(std::slice::from_ref(&pom), libraries, |directory| {
        let mut mvn = Command::new("mvn");
        mvn.args(["--batch-mode", "--quiet", "-f"]).arg(&pom).args([COPY, "-DincludeScope=runtime"]);
        mvn.arg(format!("-DoutputDirectory={}", directory.display()));
        mvn
    })
}

/// Maven's description of a project with these dependencies.
fn project(dependencies: &[&Dependency]) -> Result<String, String> {
    let mut project = "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n  \
         <groupId>zoo</groupId>\n  <artifactId>zoo</artifactId>\n  <version>1</version>\n  <dependencies>\n"
        .to_owned();
    for dependency in dependencies {
        let parts: Vec<&str> = dependency.coordinates.split(':').collect();
        let [group, artifact, version, ref classifier @ ..] = parts[..] else {
            return Err(format!("{}: not group:artifact:version", dependency.coordinates));
        };
        project += &format!(
            "    <dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        );
        for classifier in classifier {
            project += &format!("<classifier>{classifier}</classifier>");
        }
        project += "</dependency>\n";
    }
    Ok(project + "  </dependencies>\n</project>\n")
}

/// Copies what is not compiled to where the program finds it: beside its classes.
fn copy_scripts(directory: &Path, classes: &Path) -> Result<(), String> {
    for script in
        SCRIPTS.iter().map(|extension| sources(directory, extension)).collect::<Result<Vec<_>, String>>()?.concat()
    {
        let copy = classes.join(script.file_name().unwrap_or_default());
        std::fs::copy(&script, &copy).map_err(|error| format!("{}: {error}", script.display()))?;
    }
    Ok(())
}

/// The files below a directory whose names end so.
fn sources(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for path in class_tree::children(directory)? {
        if path.is_dir() {
            found.extend(sources(&path, extension)?);
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    Ok(found)
}
