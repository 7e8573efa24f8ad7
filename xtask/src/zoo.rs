//! `cargo xtask zoo`: real applications under load, each profiled as its users would, and what that did to them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use headwater_tests::{Jdk, jdks};

use crate::class_tree;
use crate::machine::{call, cargo, jdk, root};
use crate::pinned;

mod async_profiler;
pub(crate) mod build;
mod flight;
mod gate;
mod load;
mod mechanisms;
mod meter;
mod names;
mod pairs;
mod profile;
pub(crate) mod program;
mod result;
mod run;
mod sampled;
mod setting;
mod spring_boot;
mod stacks;
mod table;
mod talker;
mod tool;
mod truth;
mod which;

use build::Built;
pub(crate) use mechanisms::run as mechanisms;
use program::{Program, Root};
use result::Record;
use setting::{Pace, Setting};
use truth::Truth;
use which::Costs;

/// What `--short` runs, unless programs are named: quick ones, with a client and without.
const SHORT: [&str; 2] = ["hsqldb", "jetty"];

/// What is run, and how.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only these programs; see tests/zoo
    names: Vec<String>,
    /// The programs are in this directory instead of tests/zoo
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Only on JDKs of this feature version
    #[arg(long, value_name = "VERSION")]
    jdk: Option<u32>,
    /// Only roots whose name has this in it
    #[arg(long, value_name = "TEXT")]
    root: Option<String>,
    /// Beside so many processes that keep processors busy
    #[arg(long, value_name = "N", default_value_t = 0)]
    load: usize,
    /// Compare the shares of the largest methods with samples of the undisturbed program
    #[arg(long)]
    truth: bool,
    /// Ask `headwater roots` of each program which method to name, and compare with those that it is known for; with --truth, profile the
    /// first, and compare what that costs with what it said
    #[arg(long)]
    which: bool,
    /// Profile each root so many times, each in a JVM of its own, and compare every two of them
    #[arg(long, value_name = "N", conflicts_with = "truth", value_parser = clap::value_parser!(u16).range(2..))]
    pairs: Option<u16>,
    /// Profile no time: count the bytecodes of each root's first calls, so many times, each in a JVM of its own, and compare
    #[arg(long, value_name = "N", conflicts_with_all = ["truth", "which", "pairs"], value_parser = clap::value_parser!(u16).range(2..))]
    gate: Option<u16>,
    /// Profile nothing: count calls while `headwater sample` and others sample the whole JVM, in so many rounds
    #[arg(long, value_name = "N", conflicts_with_all = ["truth", "which", "pairs", "gate"], value_parser = clap::value_parser!(u16).range(1..))]
    sampled: Option<u16>,
    /// Give each program so many more threads that hardly run
    #[arg(long, value_name = "N")]
    threads: Option<u16>,
    /// Two quick programs and short times, for CI
    #[arg(long)]
    short: bool,
    /// How long each profile records
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Options of `headwater profile` that are not its defaults
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let compiler = Jdk::at(&jdk()?).ok_or("no JDK that compiles")?;
    let binary = binary()?;
    let named: Vec<String> = match &arguments.names[..] {
        [] if arguments.short && arguments.programs.is_none() => SHORT.map(str::to_owned).to_vec(),
        names => names.to_vec(),
    };
    if arguments.which {
        return arguments.ask(&program::named(&named, arguments.programs.as_deref())?, &compiler, &binary);
    }
    if let Some(rounds) = arguments.sampled {
        let programs = program::named(&named, arguments.programs.as_deref())?;
        return arguments.sample(rounds.into(), &programs, &compiler, &binary);
    }
    if let Some(runs) = arguments.gate {
        return arguments.gate(
            runs.into(),
            &program::named(&named, arguments.programs.as_deref())?,
            &compiler,
            &binary,
        );
    }
    let mut record = Record::new(arguments.load, arguments.pace().recording, &arguments.options);
    for program in program::named(&named, arguments.programs.as_deref())? {
        record.introduce(&program);
        // One that fails does not keep us from the others.
        if let Err(failure) = arguments.visit(&program, &compiler, &binary, &mut record) {
            record.fail(&program.name, &failure);
        }
    }
    let text = record.render();
    println!("{text}");
    let file = pinned::target()?.join("zoo/RESULT.md");
    class_tree::write_text(&file, &text)?;
    eprintln!("zoo: the same is in {}", file.display());
    record.verdict()
}

impl Arguments {
    fn pace(&self) -> Pace {
        let pace = if self.short { Pace::SHORT } else { Pace::LONG };
        Pace { recording: self.seconds.map_or(pace.recording, Duration::from_secs), ..pace }
    }

    /// Asks which method to name, of every program on every JDK.
    fn ask(&self, programs: &[Program], compiler: &Jdk, binary: &Path) -> Result<(), String> {
        let costs = if self.truth { Costs::Compared } else { Costs::Believed };
        let mut all = Vec::new();
        let asked = self.each(programs, compiler, "which", |setting, directory| {
            let of = format!("{}, {}", setting.program.name, setting.jdk.version);
            all.push(which::ask(setting, binary, directory, of, costs)?);
            Ok(())
        });
        println!("{}", which::table(&all));
        asked
    }

    /// Has every program sampled, on every JDK, by its first root's calls.
    fn sample(&self, rounds: usize, programs: &[Program], compiler: &Jdk, binary: &Path) -> Result<(), String> {
        let mut all = Vec::new();
        let sampled = self.each(programs, compiler, "sampled", |setting, directory| {
            let root = self.roots(setting.program).next().ok_or("the program has no such root")?;
            all.push(sampled::run(setting, binary, root, rounds, directory)?);
            Ok(())
        });
        println!("{}", sampled::table(&all));
        sampled
    }

    /// Counts the bytecodes of every program that can do the same each time, on every JDK.
    fn gate(&self, runs: usize, programs: &[Program], compiler: &Jdk, binary: &Path) -> Result<(), String> {
        let mut all = Vec::new();
        let can = |program: &&Program| program.description.gate.is_some();
        let counted = self.each(programs.iter().filter(can), compiler, "gate", |setting, directory| {
            for root in self.roots(setting.program) {
                eprintln!("zoo: {} on {}: {}", setting.program.name, setting.jdk.version, root.method);
                let directory = directory.join(root.method.replace("::", "."));
                class_tree::empty(&directory)?;
                all.push(gate::run(setting, binary, root, runs, &directory)?);
            }
            Ok(())
        });
        let (table, hold) = gate::table(&all);
        println!("{table}");
        counted?;
        if hold { Ok(()) } else { Err("the same work has other numbers, or other work the same".to_owned()) }
    }

    /// Does something with every program on every JDK, in its first packaging, in a directory of its own.
    fn each<'p>(
        &self,
        programs: impl IntoIterator<Item = &'p Program>,
        compiler: &Jdk,
        what: &str,
        mut one: impl FnMut(&Setting<'_>, &Path) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut failed = 0;
        for program in programs {
            let built = Built::prepare(program, compiler)?;
            let Some(&packaging) = program.description.packaging.first() else { continue };
            for jdk in jdks().iter().filter(|jdk| self.is_meant(jdk, program)) {
                let setting = Setting {
                    program,
                    built: &built,
                    packaging,
                    jdk,
                    pace: self.pace(),
                    threads: self.threads.unwrap_or(0),
                };
                let of = format!("{}-{}-{what}", program.name, jdk.version);
                eprintln!("zoo: {of}");
                let directory = built.work.join(&of);
                class_tree::empty(&directory)?;
                let _busy = load::start(self.load)?;
                if let Err(failure) = one(&setting, &directory) {
                    eprintln!("zoo: {of}: {failure}");
                    failed += 1;
                }
            }
        }
        if failed > 0 { Err(format!("of {failed} runs nothing is known")) } else { Ok(()) }
    }

    fn is_meant(&self, jdk: &Jdk, program: &Program) -> bool {
        self.jdk.is_none_or(|version| version == jdk.version) && program.description.jdks.contains(&jdk.version)
    }

    /// Those of a program that are wanted.
    fn roots<'p>(&self, program: &'p Program) -> impl Iterator<Item = &'p Root> {
        program.description.roots.iter().filter(|one| self.root.as_ref().is_none_or(|text| one.method.contains(text)))
    }

    /// A program on every JDK, in every packaging.
    fn visit(&self, program: &Program, compiler: &Jdk, binary: &Path, record: &mut Record) -> Result<(), String> {
        let built = Built::prepare(program, compiler)?;
        for jdk in jdks().iter().filter(|jdk| self.is_meant(jdk, program)) {
            for &packaging in &program.description.packaging {
                let setting = Setting {
                    program,
                    built: &built,
                    packaging,
                    jdk,
                    pace: self.pace(),
                    threads: self.threads.unwrap_or(0),
                };
                self.profile(&setting, binary, record)?;
            }
        }
        Ok(())
    }

    /// All roots of a program on one JDK.
    fn profile(&self, setting: &Setting<'_>, binary: &Path, record: &mut Record) -> Result<(), String> {
        let name = format!("{}{}", setting.program.name, setting.packaging.suffix());
        let run = format!("{name}-{}-load{}", setting.jdk.version, self.load);
        let _busy = load::start(self.load)?;
        let truth = self.truth.then(|| {
            eprintln!("zoo: {name} on {}: sampling the undisturbed program", setting.jdk.version);
            let directory = setting.built.work.join(format!("{run}-truth"));
            class_tree::empty(&directory)?;
            Truth::record(setting, &directory)
        });
        let truth = truth.transpose()?;
        if let Some(failure) = truth.as_ref().and_then(Truth::failure) {
            eprintln!("zoo: {name}: async-profiler says nothing: {failure}");
        }
        for root in self.roots(setting.program) {
            eprintln!("zoo: {name} on {}: {}, load {}", setting.jdk.version, root.method, self.load);
            let directory = setting.built.work.join(format!("{run}-{}", root.method.replace("::", ".")));
            class_tree::empty(&directory)?;
            if let Some(profiles) = self.pairs {
                let pairs = pairs::run(setting, binary, root, &self.options, profiles.into(), &directory);
                record.add_pairs(&name, setting.jdk.version, root, pairs);
                continue;
            }
            let outcome = setting.run(binary, root, &self.options, &directory, truth.is_some());
            record.add(&name, setting.jdk.version, root, outcome, truth.as_ref());
        }
        Ok(())
    }
}

/// The tool: another one, if the environment names it, or that of this checkout.
pub(crate) fn binary() -> Result<PathBuf, String> {
    if let Some(binary) = std::env::var_os(tool::BINARY) {
        return Ok(binary.into());
    }
    call(cargo().args(["build", "--release", "--package", "headwater"]))?;
    Ok(root().join("target/release/headwater"))
}
