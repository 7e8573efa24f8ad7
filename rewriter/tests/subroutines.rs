//! Subroutines (jsr and ret) as a compiler emits them: that of Eclipse, for Java 1.4 and before.

use std::path::Path;
use std::process::Command;

use headwater_tests::{Scratch, jdks};

#[path = "support/comparison.rs"]
mod comparison;

use comparison::{Program, check};

/// Where Debian's `ecj` has it.
const COMPILER: &str = "/usr/share/java/eclipse-jdt-core.jar";

#[test]
fn finally_blocks_of_old_compilers() {
    if !Path::new(COMPILER).exists() {
        println!("skipped: there is no {COMPILER} (apt-get install ecj)");
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut programs = Vec::new();
    // Class file versions 45.3, 46 and 48, and without subroutines.
    let targets: [(&str, &[&str]); 4] = [
        ("java-1.3", &["-1.3"]),
        ("java-1.4", &["-1.4", "-preserveAllLocals"]),
        ("java-1.4-target-1.4", &["-source", "1.4", "-target", "1.4", "-g"]),
        ("java-1.4-inlined", &["-source", "1.4", "-target", "1.4", "-inlineJSR"]),
    ];
    for (name, options) in targets {
        let classes = Scratch::new("ecj");
        let output = Command::new(jdks()[0].program("java"))
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"])
            .args(["-cp", COMPILER, "org.eclipse.jdt.internal.compiler.batch.Main", "-nowarn", "-d"])
            .arg(classes.path())
            .args(options)
            .args(["Say.java", "Base.java"].map(|source| tests.join("runner").join(source)))
            .arg(tests.join("subroutines/Finally.java"))
            .output()
            .expect("java starts");
        assert!(output.status.success(), "ecj: {}", String::from_utf8_lossy(&output.stderr));
        let bytes = std::fs::read(classes.file("Finally.class")).expect("it was compiled");
        programs.push(Program::new(name, vec![("Finally".to_owned(), bytes)]));
    }
    check(&jdks(), &programs);
}
