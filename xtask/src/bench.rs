//! `cargo xtask bench`: the benchmarks, in a release build, one after the other.

use crate::machine::{call, cargo, ensure_tomcat, jdk};

const BENCHES: [&str; 12] = [
    "rewriter",
    "decode",
    "snapshot",
    "top",
    "pairs",
    "cost",
    "stability",
    "soak",
    "budget",
    "subgraph",
    "scale",
    "load",
];

/// One of them, with these arguments; or all.
pub(crate) fn run(name: Option<&str>, arguments: &[String]) -> Result<(), String> {
    jdk()?;
    if let Some(name) = name.filter(|name| !BENCHES.contains(name)) {
        return Err(format!("{name} is no benchmark: give one of {}", BENCHES.join(", ")));
    }
    if name.is_none_or(|name| name == "subgraph") {
        ensure_tomcat()?;
    }
    call(cargo().args(["build", "--release", "--package", "headwater", "--package", "headwater-benches"]))?;
    for bench in BENCHES.into_iter().filter(|bench| name.is_none_or(|name| name == *bench)) {
        println!("\n{bench}\n");
        call(
            cargo()
                .args(["run", "--quiet", "--release", "--package", "headwater-benches", "--bin", bench, "--"])
                .args(arguments),
        )?;
    }
    Ok(())
}
