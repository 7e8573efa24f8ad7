//! `cargo xtask demo` has javac compile the targets, whatever the JDK.

use std::path::Path;

use headwater_tests::{compile, jdks};

#[test]
fn every_jdk_compiles_what_the_demo_compiles() {
    const RECORDS_AND_SWITCHES: u32 = 17;
    let targets = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("targets")).expect("a directory");
    let names = targets.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    let sources: Vec<String> = names.filter(|name| name.ends_with(".java")).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    for jdk in jdks().iter().filter(|jdk| jdk.version >= RECORDS_AND_SWITCHES) {
        compile(jdk, &sources);
    }
}
