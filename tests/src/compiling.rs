//! Java sources are compiled by one process for each JDK, which stays as long as the tests' process does: a compiler that has just started takes
//! twenty times as long.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::{Jdk, Process, Scratch, class_files};

/// Compiles Java sources from `tests/targets` into a scratch directory.
pub fn compile(jdk: &Jdk, sources: &[&str]) -> Scratch {
    compile_with(jdk, sources, &[])
}

/// The same, for sources that need libraries.
pub fn compile_with(jdk: &Jdk, sources: &[&str], libraries: &[PathBuf]) -> Scratch {
    let sources: Vec<PathBuf> = sources.iter().map(|source| targets().join(source)).collect();
    compile_files(jdk, &sources, libraries, &[])
}

/// Compiles all Java sources of a directory of `tests/targets`, so that their classes have all that class files can have.
pub fn compile_directory(jdk: &Jdk, name: &str) -> Scratch {
    let files = std::fs::read_dir(targets().join(name)).expect("a directory of sources");
    let mut sources: Vec<PathBuf> = files.map(|file| file.expect("an entry").path()).collect();
    sources.sort();
    compile_files(jdk, &sources, &[], &["-parameters"])
}

/// Compiles the text of one source file.
pub fn compile_text(jdk: &Jdk, text: &str) -> Scratch {
    let sources = Scratch::new("source");
    let file = sources.file("Text.java");
    std::fs::write(&file, text).expect("a source file");
    compile_files(jdk, &[file], &[], &[])
}

fn compile_files(jdk: &Jdk, sources: &[PathBuf], libraries: &[PathBuf], options: &[&str]) -> Scratch {
    let classes = Scratch::new("classes");
    let sources: Vec<&Path> = sources.iter().map(PathBuf::as_path).collect();
    let libraries = std::env::join_paths(libraries).expect("no colons in these paths");
    let libraries = libraries.into_string().expect("a path in UTF-8");
    // What is nowhere, for none: an empty class path is the working directory.
    let libraries = if libraries.is_empty() { "/nowhere" } else { &libraries };
    javac(jdk, &[&["-g", "-nowarn", "-proc:none", "-cp", libraries], options].concat(), &sources, classes.path());
    classes
}

/// Compiles source files with these options.
///
/// # Panics
/// If the compiler refuses them, with what it says.
pub fn javac(jdk: &Jdk, options: &[&str], sources: &[&Path], into: &Path) {
    let compiler = Compiler::of(jdk);
    // Who could not compile has left it as it was.
    let mut compiler = compiler.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(refusal) = compiler.compile(jdk, options, sources, into) {
        drop(compiler);
        panic!("javac: {refusal}");
    }
}

/// A compiler that runs, and what it has compiled.
#[derive(Debug)]
struct Compiler {
    process: Process,
    compiled: HashMap<Input, Classes>,
}

/// Options, and the texts of the sources.
type Input = (Vec<String>, Vec<(OsString, String)>);
/// Names below the directory of classes, and contents.
type Classes = Vec<(PathBuf, Vec<u8>)>;

impl Compiler {
    /// The one of a JDK.
    fn of(jdk: &Jdk) -> Arc<Mutex<Compiler>> {
        static ALL: LazyLock<Mutex<HashMap<PathBuf, Arc<Mutex<Compiler>>>>> = LazyLock::new(Mutex::default);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let home = jdk.tools();
        Arc::clone(all.entry(home.to_owned()).or_insert_with(|| Arc::new(Mutex::new(Compiler::start(home)))))
    }

    /// It ends when its input does, however the tests' process ends.
    fn start(home: &Path) -> Compiler {
        let mut command = Command::new(home.join("bin/java"));
        // Without the file by which tools find JVMs: it is no target.
        command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData"]);
        let mut process = Process::spawn(command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/src/Compiler.java")));
        process.await_line("READY");
        Compiler { process, compiled: HashMap::new() }
    }

    fn compile(&mut self, jdk: &Jdk, options: &[&str], sources: &[&Path], into: &Path) -> Result<(), String> {
        let options = [&jdk.javac_options(), &options.iter().map(|option| (*option).to_owned()).collect()]
            .map(Vec::as_slice)
            .concat();
        let texts = sources.iter().map(|source| {
            let text = std::fs::read_to_string(source).unwrap_or_else(|error| panic!("{}: {error}", source.display()));
            (source.file_name().expect("a file").to_owned(), text)
        });
        let input = (options, texts.collect());
        if let Some(classes) = self.compiled.get(&input) {
            return write(classes, into).map_err(|error| format!("{}: {error}", into.display()));
        }
        let paths = [Path::new("-d"), into].into_iter().chain(sources.iter().copied());
        let paths = paths.map(|path| path.to_str().expect("a path in UTF-8").to_owned());
        let line: Vec<String> = input.0.iter().cloned().chain(paths).collect();
        self.process.say(&line.join("\0"));
        let (said, status) = self.process.await_line_and_those_before("STATUS ");
        if status != "STATUS 0" {
            return Err(said.join("\n"));
        }
        let class = |path: PathBuf| {
            let bytes = std::fs::read(&path).expect("a class file");
            (path.strip_prefix(into).expect("a file below it").to_owned(), bytes)
        };
        self.compiled.insert(input, class_files(into).into_iter().map(class).collect());
        Ok(())
    }
}

fn write(classes: &Classes, into: &Path) -> std::io::Result<()> {
    for (name, bytes) in classes {
        let path = into.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(into))?;
        std::fs::write(path, bytes)?;
    }
    Ok(())
}

/// Compiles a C source from `tests/targets` into a library of native methods, by the compiler that links Rust programs.
pub fn compile_library(jdk: &Jdk, source: &str, library: &Path) {
    let include = jdk.include();
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-I"])
        .arg(&include)
        .arg("-I")
        .arg(include.join("linux"))
        .arg("-o")
        .arg(library)
        .arg(targets().join(source))
        .output()
        .expect("cc starts");
    assert!(output.status.success(), "cc: {}", String::from_utf8_lossy(&output.stderr));
}

fn targets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("targets")
}
