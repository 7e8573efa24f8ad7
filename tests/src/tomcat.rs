//! A real server as a target: Debian's Tomcat 10, with one servlet behind one filter.

use std::path::PathBuf;

use crate::{Jdk, Process, Scratch, compile_with, java_with};

/// Debian's Tomcat 10, each library once: without the links with version numbers.
fn libraries() -> Vec<PathBuf> {
    let all = std::fs::read_dir("/usr/share/java").expect("libtomcat10-java is installed (cargo xtask test does it)");
    let jars: Vec<PathBuf> = all
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("tomcat10-") && name.ends_with(".jar") && !name.contains("-10.") && !name.contains("i18n")
        })
        .collect();
    assert!(!jars.is_empty(), "libtomcat10-java is installed (cargo xtask test does it)");
    jars
}

/// Starts it, on a port that it says; its classes have to outlive it.
pub fn start(jdk: &Jdk, base: &Scratch) -> (Scratch, Process, u16) {
    let libraries = libraries();
    let classes = compile_with(jdk, &["tomcat/Server.java"], &libraries);
    let base = base.path().to_string_lossy().into_owned();
    let mut server = java_with(jdk, &classes, &libraries, &[], &["Server", &base]);
    let port = server.await_line("PORT ")["PORT ".len()..].parse().expect("a port");
    (classes, server, port)
}
