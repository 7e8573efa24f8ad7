//! Programs that run as they are and instrumented, under full verification, and must do the same.

use std::collections::BTreeMap;
use std::path::Path;

use headwater_rewriter::{ClassFile, Instructions, ProbeSite, Probes, Request, Rewritten, instrument, reassemble};
use headwater_tests::{Jdk, Process, Scratch, javac};

/// Of `java/java/lang/HwStack.java`.
const PROBES: Probes<'static> = Probes::of_methods("java/lang/HwStack");

/// Every instruction tells that it is executed, and every call how many it has executed.
const COUNTING: Probes<'static> = Probes { before: Some("before"), instructions: Instructions::Counted, ..PROBES };

/// Names and class files.
pub type Classes = Vec<(String, Vec<u8>)>;

/// Classes that belong together; `runner/Runner.java` says what of them is run.
pub struct Program {
    /// A directory's name.
    pub name: String,
    /// What it consists of.
    pub classes: Classes,
    /// How many calls may end by an exception without a probe: where a call of `super(...)` throws.
    pub lost: u64,
    /// Methods that must be refused, with the refusal's code.
    pub refused: Vec<(String, String)>,
}

impl Program {
    /// One of whose calls none is lost, and no method refused.
    pub fn new(name: &str, classes: Classes) -> Program {
        Program { name: name.to_owned(), classes, lost: 0, refused: Vec::new() }
    }
}

/// Methods left as they are, by index, with the refusal's code.
fn refusals(rewritten: &Rewritten) -> Vec<(usize, String)> {
    let refused = rewritten.refused.iter();
    refused.map(|refused| (refused.request.method_index, refused.refusal.code().to_owned())).collect()
}

/// All methods with code, with ids of every size.
fn requests(class: &ClassFile<'_>) -> Vec<Request> {
    const SPREAD: u32 = 700;
    let with_code = class.methods().iter().filter(|method| method.has_code());
    with_code.map(|method| Request::method(method.index, method.index as u32 * SPREAD)).collect()
}

/// The same, and all instructions.
fn requests_of_instructions(class: &ClassFile<'_>) -> Vec<Request> {
    let mut requests = requests(class);
    for method in requests.clone() {
        let Ok(Some(code)) = class.code(&class.methods()[method.method_index]) else { continue };
        let handlers: Vec<u32> = code.exceptions().map(|range| range.handler).collect();
        requests.extend(code.instructions().map(|instruction| {
            let offset = instruction.offset;
            let id = method.id << 1 | u32::from(handlers.contains(&offset));
            Request { id, place: ProbeSite::Before { offset }, ..method }
        }));
    }
    requests
}

/// The program's classes with all methods instrumented, and which of these were refused. What is wrong with the class
/// files is added to `wrong`.
fn instrumented(program: &Program, probes: &Probes<'_>, wrong: &mut Vec<String>) -> (Classes, Vec<(String, String)>) {
    let mut refused = Vec::new();
    let mut classes = Vec::new();
    for (name, bytes) in &program.classes {
        let class = ClassFile::parse(bytes).unwrap_or_else(|error| panic!("{}, {name}: {error}", program.name));
        let requests = match probes.instructions {
            Instructions::Ignored => requests(&class),
            Instructions::Counted => requests_of_instructions(&class),
        };
        let rewritten = instrument(bytes, probes, &requests).expect("parsed above");
        let uncounted = rewritten.uncounted.iter().map(|it| (it.request.method_index, it.refusal.code().to_owned()));
        let refusals = refusals(&rewritten).into_iter().chain(uncounted);
        for (bytes, kind) in [(bytes, "original"), (&rewritten.bytes, "instrumented")] {
            match reassemble(bytes) {
                Ok(again) if again == *bytes => {}
                Ok(_) => wrong.push(format!("{}: {name}, {kind}, is not the same put together again", program.name)),
                Err(error) => wrong.push(format!("{}: {name}, {kind}, cannot be read: {error}", program.name)),
            }
        }
        for (index, code) in refusals {
            let method = &class.methods()[index];
            refused.push((format!("{name}.{}{}", method.name(), method.descriptor()), code));
        }
        classes.push((name.clone(), rewritten.bytes));
    }
    (classes, refused)
}

/// What a program said, and the numbers of its probes.
struct Said {
    lines: Vec<String>,
    probes: Vec<u64>,
}

fn run(jdk: &Jdk, support: &Scratch, programs: &Scratch, probes: Option<&Path>) -> BTreeMap<String, Said> {
    let mut command = jdk.verifying();
    command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]);
    if let Some(probes) = probes {
        command.arg(format!("--patch-module=java.base={}", probes.display()));
    }
    let process = Process::spawn(command.arg("-cp").arg(support.path()).arg("Runner").arg(programs.path()));
    let finished = process.finish();
    let tail = &finished.stdout[finished.stdout.len().saturating_sub(20)..];
    assert!(finished.status.success(), "{:?}: {tail:#?} {:#?}", finished.status, finished.stderr);
    assert_eq!(finished.stdout.last().map(String::as_str), Some("END"), "{:#?}", finished.stderr);
    let mut said = BTreeMap::new();
    let mut lines = finished.stdout.into_iter();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("PROGRAM ") else { continue };
        let mut program = Said { lines: Vec::new(), probes: Vec::new() };
        for line in lines.by_ref() {
            if let Some(counts) = line.strip_prefix("PROBES ") {
                program.probes = counts.split_whitespace().map(|count| count.parse().expect("a count")).collect();
                break;
            }
            program.lines.push(line);
        }
        said.insert(name.to_owned(), program);
    }
    said
}

fn write<'p>(programs: impl Iterator<Item = (&'p str, &'p [(String, Vec<u8>)])>) -> Scratch {
    let scratch = Scratch::new("programs");
    for (program, classes) in programs {
        std::fs::create_dir(scratch.file(program)).expect("a directory");
        for (name, bytes) in classes {
            std::fs::write(scratch.file(program).join(format!("{name}.class")), bytes).expect("a file");
        }
    }
    scratch
}

/// Runs the programs on these JDKs, as they are and instrumented.
pub fn check(jdks: &[Jdk], programs: &[Program]) {
    let mut found = Vec::new();
    for jdk in jdks {
        let (differences, calls) = differences(jdk, programs);
        println!("JDK {}: {} programs, {calls} calls, {} differences", jdk.version, programs.len(), differences.len());
        found.extend(differences.into_iter().map(|difference| format!("JDK {}: {difference}", jdk.version)));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// What differs on one JDK, a line each; how many calls were counted.
fn differences(jdk: &Jdk, programs: &[Program]) -> (Vec<String>, u64) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let (support, probes) = (Scratch::new("support"), Scratch::new("probes"));
    let sources = ["Runner.java", "Say.java", "Base.java"].map(|source| tests.join("runner").join(source));
    javac(jdk, &["-g"], &sources.each_ref().map(|source| source.as_path()), support.path());
    let patch = format!("--patch-module=java.base={}", tests.join("java").display());
    javac(jdk, &[&patch], &[&tests.join("java/java/lang/HwStack.java")], probes.path());

    let mut differences = Vec::new();
    let rewritten: Vec<_> = programs.iter().map(|program| instrumented(program, &PROBES, &mut differences)).collect();
    let mut is_instrumented = BTreeMap::new();
    for (program, (_, refused)) in programs.iter().zip(&rewritten) {
        is_instrumented.insert(&program.name, refused.is_empty());
        for (method, code) in refused.iter().filter(|refusal| !program.refused.contains(refusal)) {
            differences.push(format!("{}: {method} was refused: {code}", program.name));
        }
        for (method, code) in program.refused.iter().filter(|refusal| !refused.contains(refusal)) {
            differences.push(format!("{}: {method} was not refused ({code})", program.name));
        }
    }
    let original = write(programs.iter().map(|program| (program.name.as_str(), &program.classes[..])));
    let counting = programs.iter().map(|program| {
        let (classes, refused) = instrumented(program, &COUNTING, &mut differences);
        // A probe for each instruction takes room that large methods do not have.
        for (method, code) in refused.iter().filter(|(_, code)| code != "code-too-large" && code != "stack-map-full") {
            differences.push(format!("{}: {method} was refused when counting: {code}", program.name));
        }
        refused.is_empty().then(|| (counted(&program.name), classes))
    });
    let counting: Vec<(String, Classes)> = counting.collect::<Vec<_>>().into_iter().flatten().collect();
    let names = programs.iter().map(|program| program.name.as_str());
    let changed = names.zip(rewritten.iter().map(|(classes, _)| &classes[..]));
    let changed = write(changed.chain(counting.iter().map(|(name, classes)| (name.as_str(), &classes[..]))));
    let expected = run(jdk, &support, &original, None);
    let got = run(jdk, &support, &changed, Some(probes.path()));
    let mut calls = 0;
    let is_counting = |program: &&Program| counting.iter().any(|(name, _)| *name == counted(&program.name));
    let counting_programs = programs.iter().filter(is_counting).map(|program| (counted(&program.name), program));
    for (name, program) in programs.iter().map(|program| (program.name.clone(), program)).chain(counting_programs) {
        let (Some(expected), Some(got)) = (expected.get(&program.name), got.get(&name)) else {
            differences.push(format!("{name}: it did not run"));
            continue;
        };
        if let Some(line) = expected.lines.iter().find(|line| is_rejection(line)) {
            differences.push(format!("{name}: the program itself is not valid: {line}"));
            continue;
        }
        if expected.lines.len() < 2 {
            differences.push(format!("{name}: it has nothing that runs"));
        }
        let pairs = expected.lines.iter().map(Some).chain(std::iter::repeat(None));
        let first = pairs
            .zip(got.lines.iter().map(Some).chain(std::iter::repeat(None)))
            .take(expected.lines.len().max(got.lines.len()))
            .find(|(expected, got)| expected != got);
        if let Some((expected, line)) = first {
            let reason = got.lines.iter().find(|line| line.contains("Reason:"));
            let detail = got.lines.iter().skip_while(|line| !line.contains("Reason:")).nth(1);
            differences.push(format!("{name}: expected {expected:?}, got {line:?} {reason:?} {detail:?}"));
        }
        let [entered, left, thrown, lost, unmatched, miscounted] = got.probes[..] else {
            panic!("{name}: {:?}", got.probes)
        };
        calls += entered;
        let calls_expected = is_instrumented[&program.name];
        let is_wrong = entered != left + thrown + lost || lost > program.lost || unmatched != 0 || miscounted != 0;
        if (entered == 0 && calls_expected) || is_wrong {
            differences.push(format!(
                "{name}: {entered} calls, {left} left, {thrown} thrown, {lost} lost (at most {}), {unmatched} unmatched, \
                 {miscounted} miscounted",
                program.lost
            ));
        }
    }
    (differences, calls)
}

/// The name of a program whose instructions are counted.
fn counted(name: &str) -> String {
    format!("{name}-counted")
}

fn is_rejection(line: &str) -> bool {
    ["VerifyError", "ClassFormatError", "IncompatibleClassChange", "NoSuchMethodError", "NoSuchFieldError"]
        .iter()
        .any(|error| line.contains(error))
}
