//! Builds the agent, so that the binary can carry it inside itself.
//!
//! The agent is a library of its own target directory (`target/agent`), always optimised: it lives in other people's
//! JVMs. A nested cargo is the stable way to have one package's shared library inside another's binary.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for input in ["backend", "rewriter/modified-utf8", "protocol", "runtime-java", "Cargo.toml", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(input).display());
    }
    let out: PathBuf = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR").into();
    // OUT_DIR is <target>/<profile>/build/<package>/out: one agent for all profiles.
    let target = out.ancestors().nth(4).unwrap_or(&out).join("agent");

    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build
        .current_dir(&root)
        .args(["build", "--release", "--package", "headwater-backend", "--target-dir"])
        .arg(&target);
    // What the outer cargo sets for its own compiler runs (clippy's wrapper among it) is not meant for this one.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let foreign = [
            "CARGO_PRIMARY_PACKAGE",
            "CARGO_CFG_",
            "CARGO_FEATURE_",
            "CARGO_PKG_",
            "CARGO_MANIFEST_",
            "CARGO_ENCODED_RUSTFLAGS",
            "RUSTC_WORKSPACE_WRAPPER",
            "CLIPPY_ARGS",
            "TARGET",
            "PROFILE",
            "OPT_LEVEL",
            "DEBUG",
            "OUT_DIR",
        ];
        if foreign.iter().any(|prefix| text.starts_with(prefix)) {
            build.env_remove(&name);
        }
    }
    let status = build.status().expect("cargo can be started");
    assert!(status.success(), "the agent could not be built");

    let agent = target.join("release/libheadwater_backend.so");
    std::fs::copy(&agent, out.join("agent.so")).expect("the agent was built");
}
