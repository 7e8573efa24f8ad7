//! `cargo xtask bench`: the benchmarks, in a release build, one after the other.

use crate::machine::{call, cargo, ensure_tomcat, jdk};
use crate::zoo;

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

/// Takes an hour, and is run only by its name.
const MECHANISMS: &str = "mechanisms";

/// One of them, with these arguments; or all.
pub(crate) fn run(name: Option<&str>, arguments: &[String]) -> Result<(), String> {
    jdk()?;
    if let Some(name) = name.filter(|name| *name != MECHANISMS && !BENCHES.contains(name)) {
        return Err(format!("{name} is no benchmark: give one of {}, {MECHANISMS}", BENCHES.join(", ")));
    }
    if name.is_none_or(|name| name == "subgraph") {
        ensure_tomcat()?;
    }
    if name == Some(MECHANISMS) {
        return zoo::mechanisms(arguments);
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
