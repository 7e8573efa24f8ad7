//! Every class of every installed JDK: identity is byte-exact, every method can be instrumented, and other readers of class
//! files see in the result what we see. What JVMs say of them is for `cargo xtask corpus`.

use std::path::{Path, PathBuf};

use headwater_rewriter::{ClassFile, Refusal, call_sites, instrument, reassemble};
use headwater_tests::{Scratch, class_files, compile, jdks, modules};

#[path = "support/oracles.rs"]
mod oracles;
mod support;

use oracles::Tally;
use support::{PROBES, all_methods};

/// What is counted of many classes.
#[derive(Clone, Copy, Debug, Default)]
struct Checked {
    methods: usize,
    cafebabe: Tally,
    classfile_parser: Tally,
}

impl std::ops::AddAssign for Checked {
    fn add_assign(&mut self, other: Checked) {
        self.methods += other.methods;
        self.cafebabe += other.cafebabe;
        self.classfile_parser += other.classfile_parser;
    }
}

fn check_all(files: &[PathBuf]) -> Checked {
    let mut all = Checked::default();
    for file in files {
        all += check(file);
    }
    all
}

fn check(file: &Path) -> Checked {
    let bytes = std::fs::read(file).expect("a class file");
    let name = file.display();
    assert!(
        reassemble(&bytes).unwrap_or_else(|error| panic!("{name}: {error}")) == bytes,
        "{name}: not the same bytes"
    );
    let class = ClassFile::parse(&bytes).expect("parsed above");
    for method in class.methods() {
        call_sites(&class, method.index).unwrap_or_else(|error| panic!("{name}, {}: {error}", method.name()));
    }
    let requests = all_methods(&class);
    let rewritten = instrument(&bytes, &PROBES, &requests).expect("parsed above");
    // An empty finalizer must stay one.
    let refused = rewritten.refused.iter().find(|refused| refused.refusal != Refusal::EmptyFinalizer);
    assert_eq!(refused, None, "{name}");
    // What was written can be read again, and taken apart and put together.
    let again = reassemble(&rewritten.bytes).unwrap_or_else(|error| panic!("{name}, instrumented: {error}"));
    assert!(again == rewritten.bytes, "{name}, instrumented: not the same bytes");
    let seen = oracles::ours(&rewritten.bytes);
    let name = name.to_string();
    Checked {
        methods: requests.len(),
        cafebabe: oracles::cafebabe(&name, &rewritten.bytes, &seen),
        classfile_parser: oracles::classfile_parser(&name, &rewritten.bytes, &seen),
    }
}

#[test]
fn every_jdk_class_survives() {
    for jdk in jdks() {
        let modules = modules(&jdk, None);
        let files = class_files(modules.path());
        let half = files.len() / 2;
        let checked = std::thread::scope(|scope| {
            let threads = [&files[..half], &files[half..]].map(|part| scope.spawn(|| check_all(part)));
            let mut all = Checked::default();
            for thread in threads {
                all += thread.join().expect("no class failed");
            }
            all
        });
        println!("JDK {}: {} classes, {checked:?}", jdk.version, files.len());
        assert!(files.len() > 20_000 && checked.methods > 150_000, "JDK {}: is this a whole JDK?", jdk.version);
        for tally in [checked.cafebabe, checked.classfile_parser] {
            assert!(tally.skipped * 100 < tally.agreed, "JDK {}: {checked:?}", jdk.version);
        }

        // javap needs a JVM's time for each: a sample.
        let instrumented = Scratch::new("instrumented");
        let sample: Vec<PathBuf> =
            files.iter().step_by(files.len() / 60).map(|file| copy(file, &instrumented)).collect();
        println!("JDK {}: javap {:?}", jdk.version, oracles::javap(&jdk, &sample));
    }
}

/// An instrumented copy.
fn copy(file: &Path, into: &Scratch) -> PathBuf {
    let bytes = std::fs::read(file).expect("a class file");
    let class = ClassFile::parse(&bytes).expect("a sound class file");
    let rewritten = instrument(&bytes, &PROBES, &all_methods(&class)).expect("a sound class file");
    let copy = into.path().join(file.file_name().expect("a file"));
    std::fs::write(&copy, rewritten.bytes).expect("a file");
    copy
}

#[test]
fn our_own_targets_survive_on_every_jdk() {
    for jdk in jdks() {
        let classes = compile(&jdk, &["Counter.java", "Counting.java", "CompileLoop.java"]);
        for file in class_files(classes.path()) {
            check(&file);
        }
    }
}
