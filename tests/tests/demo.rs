//! `cargo xtask demo` has javac compile the targets, whatever the JDK.

use std::path::Path;

use headwater_tests::{Jdk, compile};

headwater_tests::trials! {
    since(17) {
        every_jdk_compiles_what_the_demo_compiles,
    }
}

fn every_jdk_compiles_what_the_demo_compiles(jdk: &Jdk) {
    let targets = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("targets")).expect("a directory");
    let names = targets.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    let sources: Vec<String> = names.filter(|name| name.ends_with(".java")).collect();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    compile(jdk, &sources);
}
