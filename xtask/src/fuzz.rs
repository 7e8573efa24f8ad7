//! `cargo xtask fuzz`: every reader of foreign bytes, given changed samples. What the readers are is in the crate `headwater-fuzz`; here are the
//! samples made that only a JVM makes, and processes are watched that die.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use headwater_tests::{Jdk, class_files, compile, java, jdks};

use crate::machine::{call, cargo};
use crate::pinned;

/// For CI: some seconds each, in a debug build.
const SHORT: u64 = 2_000;
/// A snapshot that an old version wrote.
const OLD_SNAPSHOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tool/profile/tests/golden/layout-1.hw");
const SOURCES: [&str; 4] = ["Counter.java", "Counting.java", "CompileLoop.java", "Linkage.java"];

/// What is run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    /// Only this one; a name that is none is answered with all of them
    name: Option<String>,
    /// How many inputs each is given
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    inputs: u64,
    /// What they are drawn from
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Only the input of this number
    #[arg(long, value_name = "INPUT")]
    only: Option<u64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    call(cargo().args(["build", "--package", "headwater-fuzz", "--profile", "fuzz"]))?;
    fuzz(arguments, &pinned::target()?.join("fuzz/headwater-fuzz"))
}

/// The short form, in a debug build.
pub(crate) fn run_short() -> Result<(), String> {
    call(cargo().args(["build", "--bin", "headwater-fuzz"]))?;
    let arguments = Arguments { name: None, inputs: SHORT, seed: 1, only: None };
    fuzz(&arguments, &pinned::target()?.join("debug/headwater-fuzz"))
}

fn fuzz(arguments: &Arguments, binary: &Path) -> Result<(), String> {
    let readers = readers(binary)?;
    let wanted: Vec<&String> =
        readers.iter().filter(|name| arguments.name.as_ref().is_none_or(|wanted| wanted == *name)).collect();
    if let (true, Some(name)) = (wanted.is_empty(), &arguments.name) {
        return Err(format!("{name} is no reader: give one of {}", readers.join(", ")));
    }
    let place = pinned::target()?.join("fuzzing");
    let samples = samples(&place.join("samples"))?;
    let mut failed = Vec::new();
    for name in wanted {
        let found = place.join("found");
        let mut fuzz = Command::new(binary);
        fuzz.args(["read", name]).args([
            "--inputs",
            &arguments.inputs.to_string(),
            "--seed",
            &arguments.seed.to_string(),
        ]);
        fuzz.arg("--samples").arg(&samples).arg("--found").arg(&found);
        fuzz.args(arguments.only.iter().flat_map(|only| ["--only".to_owned(), only.to_string()]));
        let status = fuzz.status().map_err(|error| format!("{}: {error}", binary.display()))?;
        if let Some(signal) = status.signal() {
            let at = fs::read(found.join(format!("{name}.at"))).ok().and_then(|at| at.try_into().ok());
            println!("{name}: dies of signal {signal} at --only {}", at.map_or(0, u64::from_le_bytes));
        }
        if !status.success() {
            failed.push(name.as_str());
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("not as it is to be: {}", failed.join(", "))) }
}

/// What can be fuzzed: the program knows.
fn readers(binary: &Path) -> Result<Vec<String>, String> {
    let output = Command::new(binary).arg("readers").output();
    let output = output.map_err(|error| format!("{}: {error}", binary.display()))?;
    let names: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    // None would pass for all of them found in order.
    if output.status.success() && !names.is_empty() {
        Ok(names)
    } else {
        Err("it does not name its readers".to_owned())
    }
}

/// Samples that only a JVM makes: class files, recordings, performance data; and snapshots. They are made once.
fn samples(place: &Path) -> Result<PathBuf, String> {
    let (ready, making) = (place.join("ready"), place.join("making"));
    if ready.exists() {
        return Ok(ready);
    }
    let jdks = jdks();
    let jdk = jdks.last().ok_or("there is no JDK")?;
    // What an earlier try has left.
    let _ = fs::remove_dir_all(&making);
    let directory = |name: &str| -> Result<PathBuf, String> {
        let directory = making.join(name);
        fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        Ok(directory)
    };
    let classes = compile(jdk, &SOURCES);
    let to = directory("classes")?;
    for file in class_files(classes.path()) {
        copy(&file, &to.join(file.file_name().unwrap_or_default()))?;
    }
    copy(Path::new(OLD_SNAPSHOT), &directory("snapshots")?.join("layout-1.hw"))?;
    let (recordings, data) = (directory("recordings")?, directory("perf-data")?);
    for jdk in &jdks {
        of_jvm(jdk, &recordings, &data)?;
    }
    fs::rename(&making, &ready).map_err(|error| format!("{}: {error}", ready.display()))?;
    Ok(ready)
}

/// Has a JVM write a recording and its performance data.
fn of_jvm(jdk: &Jdk, recordings: &Path, data: &Path) -> Result<(), String> {
    let classes = compile(jdk, &["Beat.java"]);
    let mut target = java(jdk, &classes, &["-XX:+UsePerfData"], &["Beat"]);
    target.await_line("READY");
    let pid = target.pid().to_string();
    let file = recordings.join(format!("jdk{}.jfr", jdk.version));
    let jcmd = |command: &str| {
        let answer =
            Command::new(jdk.program("jcmd")).args([&pid, command]).output().map_err(|error| error.to_string())?;
        let is_done = answer.status.success();
        if is_done { Ok(()) } else { Err(format!("{command}: {}", String::from_utf8_lossy(&answer.stdout))) }
    };
    jcmd("JFR.start name=fuzz settings=default")?;
    jcmd("Thread.print")?;
    jcmd(&format!("JFR.stop name=fuzz filename={}", file.display()))?;
    let user = std::env::var("USER").unwrap_or_else(|_| "root".to_owned());
    copy(&PathBuf::from(format!("/tmp/hsperfdata_{user}/{pid}")), &data.join(format!("jdk{}", jdk.version)))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}
