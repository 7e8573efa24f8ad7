//! Classes linked by a JVM, original and instrumented: the same must fail, for the same reasons.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::class_tree;
use crate::probed_jdk::{Modules, ProbedJdk};
use crate::process;

const LIMIT: Duration = Duration::from_secs(300);

/// What is linked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Subject<'s> {
    /// The JDK's own modules.
    Image,
    /// Jars (or directories of classes), and where they find other classes.
    Jars { jars: &'s [PathBuf], libraries: &'s [PathBuf] },
}

/// How it went.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verified {
    pub(crate) classes: usize,
    /// Classes that could not be linked, mostly because others are missing.
    pub(crate) failed: usize,
    /// Those with a VerifyError or a ClassFormatError.
    pub(crate) rejected: usize,
    /// `unit class error`
    failures: BTreeSet<String>,
}

/// Has every n-th class linked. Name tells the run's files apart.
pub(crate) fn verify(
    jdk: &ProbedJdk,
    instrumented: Modules<'_>,
    subject: Subject<'_>,
    every: usize,
    name: &str,
) -> Result<Verified, String> {
    let file = |kind: &str| jdk.work.join(format!("{name}.{kind}"));
    let (report, log) = (file("failures"), file("log"));
    let mut java = jdk.java(instrumented)?;
    // Classes are verified by the JVM's own code; what runs beside that is not worth being compiled twice.
    java.arg("-XX:TieredStopAtLevel=1");
    java.arg(format!("-Xlog:class+init=info:file={}:none:filecount=0,filesize=0", log.display()));
    java.arg("-cp").arg(jdk.harness()).arg("VerifyAll");
    java.arg(&report).arg(every.to_string());
    match subject {
        Subject::Image => java.arg("image"),
        Subject::Jars { jars, libraries } => {
            write_list(&file("jars"), jars)?;
            write_list(&file("libraries"), libraries)?;
            java.arg("jars").arg(file("jars")).arg(file("libraries"))
        }
    };
    let said = process::run(&mut java, LIMIT)?;
    let stdout = String::from_utf8_lossy(&said.stdout);
    let counts = stdout.lines().find_map(|line| line.strip_prefix("VERIFIED ")).map(numbers);
    let Some([classes, failed, rejected]) = counts.as_deref() else {
        return Err(format!("VerifyAll has not said what it verified: {stdout}{}", said.stderr));
    };
    let mut failures: BTreeSet<String> = read(&report)?.lines().filter_map(class_and_error).collect();
    failures.extend(read(&log)?.lines().filter_map(failed_over));
    Ok(Verified { classes: *classes, failed: *failed, rejected: *rejected, failures })
}

/// Sees to it that verification is on: a class that is wrong must be rejected.
pub(crate) fn check_that_it_happens(jdk: &ProbedJdk) -> Result<(), String> {
    const SOURCE: &str = "class Wrong { static int number() { return 12345; } }";
    const SIPUSH_IRETURN: [u8; 4] = [0x11, 0x30, 0x39, 0xac];
    const ARETURN: u8 = 0xb0;
    let compiled = headwater_tests::compile_text(&jdk.jdk, SOURCE);
    let mut classes = class_tree::read(compiled.path())?;
    for class in &mut classes {
        let place = class.bytes.windows(SIPUSH_IRETURN.len()).position(|window| window == SIPUSH_IRETURN);
        class.bytes[place.ok_or("javac compiles a constant differently now")? + SIPUSH_IRETURN.len() - 1] = ARETURN;
    }
    let directory = jdk.work.join("wrong");
    class_tree::write(&directory, &classes)?;
    let subject = Subject::Jars { jars: &[directory], libraries: &[] };
    match verify(jdk, Modules::Only(&[]), subject, 1, "wrong")?.rejected {
        1 => Ok(()),
        _ => Err(format!("{}: a wrong class passes, so classes are not verified", jdk.jdk.home.display())),
    }
}

/// What fails in one of the two only.
pub(crate) fn differences(original: &Verified, instrumented: &Verified) -> Vec<String> {
    let only = |one: &Verified, other: &Verified, which: &str| -> Vec<String> {
        one.failures.difference(&other.failures).map(|failure| format!("only {which}: {failure}")).collect()
    };
    let mut differences = only(instrumented, original, "instrumented");
    differences.extend(only(original, instrumented, "original"));
    if original.classes != instrumented.classes {
        differences.push(format!("{} classes, instrumented {}", original.classes, instrumented.classes));
    }
    differences
}

fn numbers(text: &str) -> Vec<usize> {
    text.split(' ').filter_map(|number| number.parse().ok()).collect()
}

fn class_and_error(line: &str) -> Option<String> {
    line.split_once(": ").map(|(class_and_error, _)| class_and_error.to_owned())
}

/// A class of version 50 whose stack maps are wrong is verified without them: no error, but a difference.
fn failed_over(line: &str) -> Option<String> {
    line.contains("Fail over class verification").then(|| line.to_owned())
}

fn write_list(to: &Path, paths: &[PathBuf]) -> Result<(), String> {
    let lines: String = paths.iter().map(|path| format!("{}\n", path.display())).collect();
    std::fs::write(to, lines).map_err(|error| format!("{}: {error}", to.display()))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
