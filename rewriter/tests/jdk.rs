//! Every class of every installed JDK: identity is byte-exact, every method can be instrumented, and javac, instrumented
//! from its first method to its last, verifies and does what it did before.

use std::path::{Path, PathBuf};
use std::process::Command;

use headwater_rewriter::{ClassFile, call_sites, instrument, reassemble};
use headwater_tests::{Jdk, Scratch, class_files, compile, jdks};

#[path = "support/oracles.rs"]
mod oracles;
mod support;

use oracles::Tally;
use support::{PROBES, all_methods};

/// The classes of a JDK's modules, a directory a module.
fn modules(jdk: &Jdk) -> Scratch {
    let modules = Scratch::new("modules");
    let status = Command::new(jdk.program("jimage"))
        .arg("extract")
        .arg("--dir")
        .arg(modules.path())
        .arg(jdk.home.join("lib/modules"))
        .status();
    assert!(status.expect("jimage starts").success());
    modules
}

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
    assert_eq!(rewritten.refused, [], "{name}");
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

fn instrument_module(from: &Path, to: &Path) {
    for file in class_files(from) {
        let bytes = std::fs::read(&file).expect("a class file");
        let class = ClassFile::parse(&bytes).expect("a sound class file");
        let rewritten = instrument(&bytes, &PROBES, &all_methods(&class)).expect("a sound class file");
        let target = to.join(file.strip_prefix(from).expect("it is below"));
        std::fs::create_dir_all(target.parent().expect("it has one")).expect("a directory");
        std::fs::write(target, rewritten.bytes).expect("a file");
    }
}

/// What javac makes of this repository's targets, run with these additional options; and what it says.
fn javac(jdk: &Jdk, options: &[String]) -> (Vec<(String, Vec<u8>)>, String) {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/targets");
    let output = Scratch::new("output");
    let result = Command::new(jdk.program("java"))
        .arg("-Xverify:all")
        .args(options)
        .args(["-m", "jdk.compiler/com.sun.tools.javac.Main", "-g", "-nowarn", "-proc:none", "-d"])
        .arg(output.path())
        .args(["Counter.java", "Counting.java", "CompileLoop.java"].map(|source| targets.join(source)))
        .output()
        .expect("java starts");
    let errors = String::from_utf8_lossy(&result.stderr).into_owned();
    assert!(result.status.success(), "{errors}");
    let classes = class_files(output.path()).into_iter().map(|file| {
        (file.file_name().expect("a file").to_string_lossy().into_owned(), std::fs::read(file).expect("a file"))
    });
    (classes.collect(), errors)
}

#[test]
fn every_jdk_class_survives() {
    for jdk in jdks() {
        let modules = modules(&jdk);
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

        let instrumented = Scratch::new("instrumented");
        instrument_module(&modules.path().join("jdk.compiler"), &instrumented.file("jdk.compiler"));
        let sample: Vec<PathBuf> = class_files(&instrumented.file("jdk.compiler")).into_iter().step_by(30).collect();
        println!("JDK {}: javap {:?}", jdk.version, oracles::javap(&jdk, &sample));
        let probe = instrumented.file("probe");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java");
        let compiled = Command::new(jdk.program("javac"))
            .arg(format!("--patch-module=java.base={}", source.display()))
            .arg("-d")
            .arg(&probe)
            .arg(source.join("java/lang/HwProbe.java"))
            .status();
        assert!(compiled.expect("javac starts").success());
        let patches = [
            format!("--patch-module=java.base={}", probe.display()),
            format!("--patch-module=jdk.compiler={}", instrumented.file("jdk.compiler").display()),
        ];
        let (expected, _) = javac(&jdk, &[]);
        let (classes, errors) = javac(&jdk, &patches);
        assert!(classes == expected, "JDK {}: the instrumented javac's output differs", jdk.version);
        let counts = errors.lines().find_map(|line| line.strip_prefix("PROBES ")).expect("the probes were called");
        let counts: Vec<u64> = counts.split(' ').map(|count| count.parse().expect("a number")).collect();
        let [entered, left, thrown] = counts[..] else { panic!("{counts:?}") };
        // Main.main has not returned: it ends by System.exit.
        assert!(entered > 1_000_000 && entered == left + thrown + 1, "JDK {}: {counts:?}", jdk.version);
    }
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
