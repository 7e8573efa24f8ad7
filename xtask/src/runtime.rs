//! `cargo xtask runtime`: the committed class files of the Java runtime, compiled again.

use std::process::Command;

use headwater_runtime_java::{CLASSES, javac_arguments};

use crate::machine::{call, jdk, root};

pub(crate) fn run() -> Result<(), String> {
    let sources = root().join("runtime-java/java");
    let output = root().join("target/runtime-java");
    let arguments = javac_arguments(&sources.to_string_lossy(), &output.to_string_lossy());
    call(Command::new(jdk()?.join("bin/javac")).args(arguments))?;
    for class in CLASSES {
        let compiled = output.join(format!("{}.class", class.name));
        let simple_name = class.name.rsplit('/').next().unwrap_or(class.name);
        let committed = root().join(format!("runtime-java/classes/{simple_name}.class"));
        std::fs::copy(&compiled, &committed).map_err(|error| format!("{}: {error}", committed.display()))?;
    }
    Ok(())
}
