//! This repository's own targets, compiled by every installed JDK: identity is byte-exact, and every method can be
//! instrumented. The classes of the JDKs themselves are for `cargo xtask corpus`.

use std::path::Path;

use headwater_rewriter::{ClassFile, call_sites, instrument, reassemble};
use headwater_tests::{compile, jdks};

mod support;

use support::{PROBES, all_methods, class_files};

fn check_identity_and_instrument(file: &Path) {
    let bytes = std::fs::read(file).expect("a class file");
    let name = file.display();
    assert!(
        reassemble(&bytes).unwrap_or_else(|error| panic!("{name}: {error}")) == bytes,
        "{name}: not the same bytes"
    );
    let class = ClassFile::parse(&bytes).expect("parsed above");
    for method in class.methods() {
        call_sites(&class, method.index).unwrap_or_else(|error| panic!("{name}, {}: {error}", method.name));
    }
    let requests = all_methods(&class);
    let rewritten = instrument(&bytes, &PROBES, &requests).expect("parsed above");
    assert_eq!(rewritten.refused, [], "{name}");
    // What was written can be read again, and taken apart and put together.
    let again = reassemble(&rewritten.bytes).unwrap_or_else(|error| panic!("{name}, instrumented: {error}"));
    assert!(again == rewritten.bytes, "{name}, instrumented: not the same bytes");
}

#[test]
fn our_own_targets_survive_on_every_jdk() {
    for jdk in jdks() {
        let classes = compile(&jdk, &["Counter.java", "Counting.java", "CompileLoop.java"]);
        for file in class_files(classes.path()) {
            check_identity_and_instrument(&file);
        }
    }
}
