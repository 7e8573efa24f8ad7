//! What the machine must have, beyond Rust: found, installed, or named exactly.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Runs a command; its failure is an error.
pub(crate) fn call(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} ended with {status}")) }
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// The home of a JDK (one with javac); installs Debian's when there is none.
pub(crate) fn jdk() -> Result<PathBuf, String> {
    if let Some(home) = find_jdk() {
        return Ok(home);
    }
    install(&["openjdk-17-jdk-headless"])?;
    find_jdk().ok_or_else(|| "no JDK under JAVA_HOME or /usr/lib/jvm, although its package is installed".to_owned())
}

fn find_jdk() -> Option<PathBuf> {
    let homes = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter();
    let mut installed: Vec<PathBuf> =
        std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    installed.sort();
    homes.chain(installed).find(|home| home.join("bin/javac").exists())
}

/// Makes sure that a file of a Debian package is there.
pub(crate) fn ensure(file: &str, package: &str) -> Result<(), String> {
    if Path::new(file).exists() { Ok(()) } else { install(&[package]) }
}

/// Makes sure that Tomcat's classes are there.
pub(crate) fn ensure_tomcat() -> Result<(), String> {
    ensure("/usr/share/java/tomcat10-catalina.jar", "libtomcat10-java")
}

/// Whether the shell would find a program.
pub(crate) fn has_program(name: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|place| place.join(name).is_file()))
}

/// Installs Debian packages as root; otherwise says which are missing, and how to get them.
pub(crate) fn install(packages: &[&str]) -> Result<(), String> {
    let by_hand = format!("sudo apt-get update && sudo apt-get install --no-install-recommends {}", packages.join(" "));
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/apt-get").exists() {
        return Err(format!("this machine lacks {}. Install it, on Debian by:\n  {by_hand}", packages.join(", ")));
    }
    eprintln!("xtask: installing {}", packages.join(", "));
    call(Command::new("apt-get").args(["update", "-qq"]))?;
    call(
        Command::new("apt-get")
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(packages),
    )
    .map_err(|error| format!("{error}. By hand:\n  {by_hand}"))
}
