//! Marks the agent's library as one that is never unloaded: the target's compiled code calls into it (`tsc`).

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
