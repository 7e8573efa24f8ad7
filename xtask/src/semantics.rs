//! Programs that must do the same with all their classes instrumented, and with all of the JDK's as well; and leave every call
//! they enter.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::class_tree;
use crate::libraries::{Libraries, jars};
use crate::machine::root;
use crate::probed_jdk::{Modules, ProbedJdk};
use crate::process;
use crate::rewriting::ClassBytes;
use crate::rewritten::{Rewriting, check};

const LIMIT: Duration = Duration::from_secs(240);

/// A program that has entered fewer methods was not instrumented.
const FEWEST_CALLS: u64 = 1000;

/// Constructors seldom end in that of their superclass; if more seem to, their exits are lost.
const CALLS_PER_ABANDONED: u64 = 100_000;

/// What of a program is instrumented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setting {
    Nothing,
    Program,
    ProgramAndJdk,
}

/// Which programs are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Programs {
    /// The quick one.
    Javac,
    All,
}

/// A program under test.
#[derive(Debug, Default)]
struct Program {
    name: &'static str,
    /// Class path, and the same instrumented.
    original: Vec<PathBuf>,
    instrumented: Vec<PathBuf>,
    /// Those of the JDK's modules that are the program.
    modules: &'static [&'static str],
    arguments: Vec<String>,
    /// What comes behind the directory for its output; `None` when it has none.
    sources: Option<Vec<PathBuf>>,
}

/// What a program did.
#[derive(Debug)]
struct Outcome {
    stdout: Vec<u8>,
    files: Vec<ClassBytes>,
    counts: Option<Counts>,
    time: Duration,
}

/// HwProbe's line.
#[derive(Clone, Copy, Debug)]
struct Counts {
    entered: u64,
    left: u64,
    thrown: u64,
    open: u64,
    abandoned: u64,
    astray: u64,
}

impl Counts {
    fn parse(stderr: &str) -> Option<Counts> {
        let line = stderr.lines().find_map(|line| line.strip_prefix("PROBES "))?;
        let numbers: Vec<u64> = line.split(' ').filter_map(|number| number.parse().ok()).collect();
        let [entered, left, thrown, open, abandoned, astray] = numbers[..] else { return None };
        Some(Counts { entered, left, thrown, open, abandoned, astray })
    }

    fn are_right(&self) -> bool {
        let Counts { entered, left, thrown, open, abandoned, astray } = *self;
        entered >= FEWEST_CALLS
            && entered == left + thrown + open + abandoned
            && abandoned <= entered / CALLS_PER_ABANDONED
            && astray == 0
    }
}

/// Runs programs on a JDK; prints a line each, and returns what is wrong.
pub(crate) fn run(jdk: &ProbedJdk, libraries: &Libraries, programs: Programs) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    let targets = ["Counter.java", "Counting.java", "CompileLoop.java", "Modern.java"];
    let javac = Program {
        name: "javac",
        modules: &["jdk.compiler", "java.compiler"],
        arguments: words("-m jdk.compiler/com.sun.tools.javac.Main -g -nowarn -proc:none -d"),
        sources: Some(targets.map(|target| root().join("tests/targets").join(target)).into()),
        ..Program::default()
    };
    compare(jdk, &javac, &mut wrong)?;
    if programs == Programs::Javac {
        return Ok(wrong);
    }

    let ruby = Path::new("/usr/share/jruby/lib");
    let mut jruby = with_jars("jruby", ruby, libraries)?;
    jruby.arguments = words("-Xss2048k -Djruby.home=/usr/share/jruby -Djruby.lib=/usr/share/jruby/lib org.jruby.Main");
    jruby.arguments.push(source("work.rb").display().to_string());
    compare(jdk, &jruby, &mut wrong)?;

    let lib = Path::new("/usr/share/groovy/lib");
    let mut groovyc = with_jars("groovyc", lib, libraries)?;
    groovyc.arguments = words("org.codehaus.groovy.tools.FileSystemCompiler -d");
    groovyc.sources = Some(vec![source("Work.groovy")]);
    let classes = compare(jdk, &groovyc, &mut wrong)?;
    compare(jdk, &compiled("groovy", lib, libraries, jdk, classes, &mut wrong)?, &mut wrong)?;

    let lib = Path::new("/usr/share/scala-2.11/lib");
    let mut scalac = with_jars("scalac", lib, libraries)?;
    scalac.arguments = words("-Dscala.usejavacp=true scala.tools.nsc.Main -d");
    scalac.sources = Some(vec![source("Work.scala")]);
    let classes = compare(jdk, &scalac, &mut wrong)?;
    compare(jdk, &compiled("scala", lib, libraries, jdk, classes, &mut wrong)?, &mut wrong)?;
    Ok(wrong)
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn source(name: &str) -> PathBuf {
    root().join("xtask/corpus").join(name)
}

/// A program that is in the jars of a directory.
fn with_jars(name: &'static str, directory: &Path, libraries: &Libraries) -> Result<Program, String> {
    let original = jars(directory)?;
    let instrumented: Result<Vec<PathBuf>, String> =
        original.iter().map(|jar| libraries.copy(jar).map(Path::to_owned)).collect();
    Ok(Program { name, original, instrumented: instrumented?, ..Program::default() })
}

/// A program that was just compiled: its main class is Work.
fn compiled(
    name: &'static str,
    directory: &Path,
    libraries: &Libraries,
    jdk: &ProbedJdk,
    classes: Vec<ClassBytes>,
    wrong: &mut Vec<String>,
) -> Result<Program, String> {
    let (original, instrumented) = (jdk.work.join(format!("{name}-original")), jdk.work.join(name));
    class_tree::write(&original, &classes)?;
    let mut rewriting = Rewriting::new(name, libraries.pass);
    class_tree::write(&instrumented, &check(classes, &mut rewriting))?;
    wrong.extend(rewriting.wrong());
    let mut program = with_jars(name, directory, libraries)?;
    program.original.push(original);
    program.instrumented.push(instrumented);
    program.arguments = words("Work");
    Ok(program)
}

/// Runs a program in every setting; returns the class files it has written.
fn compare(jdk: &ProbedJdk, program: &Program, wrong: &mut Vec<String>) -> Result<Vec<ClassBytes>, String> {
    let run = |setting| execute(jdk, program, setting);
    let (expected, others) = std::thread::scope(|scope| {
        let thread = scope.spawn(|| (run(Setting::Nothing), run(Setting::Program)));
        let everything = run(Setting::ProgramAndJdk);
        let (expected, own) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (expected, [(Setting::Program, own), (Setting::ProgramAndJdk, everything)])
    });
    let expected = expected?;
    for (setting, outcome) in others {
        let what = match setting {
            Setting::Nothing => continue,
            Setting::Program => "instrumented",
            Setting::ProgramAndJdk => "instrumented with the JDK",
        };
        let place = format!("{} on JDK {}, {what}", program.name, jdk.jdk.version);
        match outcome {
            Ok(outcome) => wrong.extend(judge(&place, &expected, &outcome)),
            Err(error) => wrong.push(format!("{place}: {error}")),
        }
    }
    Ok(expected.files)
}

/// What of an outcome is not as it should be.
fn judge(place: &str, expected: &Outcome, outcome: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    if outcome.stdout != expected.stdout {
        wrong.push(format!("{place}: other output: {}", String::from_utf8_lossy(&outcome.stdout)));
    }
    let names = |outcome: &Outcome| outcome.files.iter().map(|file| file.name.clone()).collect::<Vec<_>>();
    if names(outcome) != names(expected) {
        wrong.push(format!("{place}: other files: {:?}", names(outcome)));
    } else {
        let pairs = outcome.files.iter().zip(&expected.files);
        let different = pairs.filter(|(file, expected)| file.bytes != expected.bytes);
        wrong.extend(different.map(|(file, _)| format!("{place}: {} has another content", file.name)));
    }
    match outcome.counts {
        Some(counts) => {
            let Counts { entered, left, thrown, open, abandoned, astray } = counts;
            println!(
                "  {place:44} entered {entered:>11} left {left:>11} thrown {thrown:>7} open {open:>3} abandoned \
                 {abandoned:>3} astray {astray} in {:5.1} s",
                outcome.time.as_secs_f64()
            );
            if !counts.are_right() {
                wrong.push(format!("{place}: the calls do not add up: {counts:?}"));
            }
        }
        None => wrong.push(format!("{place}: no probe was called")),
    }
    wrong
}

fn execute(jdk: &ProbedJdk, program: &Program, setting: Setting) -> Result<Outcome, String> {
    let (modules, class_path) = match setting {
        Setting::Nothing => (Modules::Only(&[]), &program.original),
        Setting::Program => (Modules::Only(program.modules), &program.instrumented),
        Setting::ProgramAndJdk => (Modules::All, &program.instrumented),
    };
    let output = jdk.work.join(format!("output-{setting:?}"));
    class_tree::empty(&output)?;
    let mut java = jdk.java(modules)?;
    if !class_path.is_empty() {
        java.arg("-cp").arg(std::env::join_paths(class_path).map_err(|error| error.to_string())?);
    }
    java.args(&program.arguments);
    if let Some(sources) = &program.sources {
        java.arg(&output).args(sources);
    }
    let started = Instant::now();
    let said = process::run(&mut java, LIMIT)?;
    let time = started.elapsed();
    Ok(Outcome { stdout: said.stdout, files: class_tree::read(&output)?, counts: Counts::parse(&said.stderr), time })
}
