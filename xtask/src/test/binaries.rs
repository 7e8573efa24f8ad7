//! Test binaries: built by cargo, and run without it, so that they can be run beside each other.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::steps::{Output, Step};
use crate::machine::cargo;

/// A binary of tests.
#[derive(Debug)]
pub(crate) struct Binary {
    name: String,
    path: PathBuf,
    /// The directory of its package.
    package: PathBuf,
}

/// Has cargo build everything that `cargo test` would.
pub(crate) fn build() -> Result<Vec<Binary>, String> {
    let mut cargo = cargo();
    cargo.args(["test", "--no-run", "--message-format=json-render-diagnostics"]);
    let output = cargo.stderr(Stdio::inherit()).output().map_err(|error| format!("cannot start {cargo:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{cargo:?} ended with {}", output.status));
    }
    let binaries: Vec<Binary> = String::from_utf8_lossy(&output.stdout).lines().filter_map(binary).collect();
    // None would pass for all of them.
    if binaries.is_empty() { Err("cargo names no test binaries".to_owned()) } else { Ok(binaries) }
}

/// The binary that one of cargo's messages is about, if it is one of tests.
fn binary(message: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let path = PathBuf::from(message["executable"].as_str()?);
    let package = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let directory = package.file_name()?.to_string_lossy();
    let target = &message["target"];
    let name = match target["kind"][0].as_str()? {
        "test" => target["name"].as_str()?.to_owned(),
        "bin" => format!("{directory} (bin)"),
        _ => directory.into_owned(),
    };
    Some(Binary { name, path, package })
}

impl Binary {
    /// Its tests. Those that take long say what they have come to as they go.
    pub(crate) fn step(self) -> Step {
        let mut command = Command::new(&self.path);
        command.current_dir(&self.package);
        let output = if self.name == "e2e" { Output::AsItComes } else { Output::AtTheEnd };
        Step { name: self.name, command, output }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_those_that_cargo_says_are_tests() {
        let message = |kind: &str, is_test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/p/tool/jfr/Cargo.toml","target":{{"kind":["{kind}"],"name":"n"}},
                "profile":{{"test":{is_test}}},"executable":{executable}}}"#
            )
        };
        let name = |message: &str| binary(message).map(|binary| (binary.name, binary.package));
        let package = || PathBuf::from("/p/tool/jfr");
        assert_eq!(name(&message("test", true, r#""/t/n-1""#)), Some(("n".to_owned(), package())));
        assert_eq!(name(&message("lib", true, r#""/t/n-2""#)), Some(("jfr".to_owned(), package())));
        assert_eq!(name(&message("bin", true, r#""/t/n-3""#)), Some(("jfr (bin)".to_owned(), package())));
        assert_eq!(name(&message("bin", false, r#""/t/n""#)), None);
        assert_eq!(name(&message("lib", false, "null")), None);
        assert_eq!(name(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(name("no JSON"), None);
    }
}
