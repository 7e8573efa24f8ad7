//! `cargo xtask corpus`: every class of every installed JDK and of the installed jars. Taken apart and put together, it must be
//! the same; instrumented, a JVM must accept it; and programs made of it must do what they did.

use std::path::Path;
use std::time::Instant;

use headwater_tests::Jdk;

use crate::class_tree;
use crate::libraries::Libraries;
use crate::machine::{jdk, root};
use crate::probed_jdk::{Modules, ProbedJdk, file_name};
use crate::rewriting::{Figures, Pass};
use crate::rewritten::{Rewriting, check};
use crate::semantics::{self, Programs};
use crate::verification::{Subject, Verified, check_that_it_happens, differences, verify};

/// Of all methods: from this part on, in percent, too many are refused.
const REFUSED_LIMIT_PERCENT: f64 = 0.02;

/// How much of it is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Every n-th class is linked.
    pub(crate) every: usize,
    pub(crate) programs: Programs,
    /// [`Pass::Instrument`] or [`Pass::Count`].
    pub(crate) pass: Pass,
}

pub(crate) fn run(home: Option<&Path>, extent: Extent) -> Result<(), String> {
    let started = Instant::now();
    let jdks = match home {
        Some(home) => {
            vec![Jdk::at(home).ok_or_else(|| format!("{}: give the home of a JDK (with bin/javac)", home.display()))?]
        }
        None => {
            jdk()?;
            headwater_tests::jdks()
        }
    };
    let work = root().canonicalize().map_err(|error| error.to_string())?.join("target/corpus");
    println!("rewriting");
    let (libraries, rewritings) = Libraries::prepare(&work.join("jars"), extent.pass)?;
    let mut corpus = Corpus { extent, wrong: Vec::new(), all: Figures::default() };
    for rewriting in rewritings {
        corpus.take_in(rewriting);
    }
    for jdk in jdks {
        let name = format!("JDK {}", jdk.version);
        let jdk = ProbedJdk::new(jdk, work.join(name.replace(' ', "-").to_lowercase()))?;
        corpus.take_in(rewrite_image(&name, &jdk, extent.pass)?);
        corpus.link(&name, &jdk, &libraries)?;
        println!("programs on {name}");
        corpus.wrong.extend(semantics::run(&jdk, &libraries, extent.programs)?);
    }
    println!(
        "all: {} methods, refused {}; {:.0} s",
        corpus.all.methods,
        corpus.all.refusals(),
        started.elapsed().as_secs_f64()
    );
    if corpus.all.refused_percent() >= REFUSED_LIMIT_PERCENT {
        corpus.wrong.push(format!("{REFUSED_LIMIT_PERCENT} % of the methods or more are refused"));
    }
    if corpus.wrong.is_empty() {
        return class_tree::empty(&work);
    }
    let list: String = corpus.wrong.iter().map(|wrong| format!("\n  {wrong}")).collect();
    Err(format!("{} things are wrong (the files are in {}):{list}", corpus.wrong.len(), work.display()))
}

/// What comes together in a run.
#[derive(Debug)]
struct Corpus {
    extent: Extent,
    wrong: Vec<String>,
    all: Figures,
}

impl Corpus {
    fn take_in(&mut self, rewriting: Rewriting) {
        rewriting.print();
        self.wrong.extend(rewriting.wrong());
        self.all.add(rewriting.instrumented);
    }

    /// The JDK's own classes, and the libraries', as this JDK sees them.
    fn link(&mut self, name: &str, jdk: &ProbedJdk, libraries: &Libraries) -> Result<(), String> {
        check_that_it_happens(jdk)?;
        println!("linked by {name}, one class of {}", self.extent.every);
        let nothing = Modules::Only(&[]);
        let (originals, copies) = (libraries.originals(), libraries.instrumented());
        let jars = |jars| Subject::Jars { jars, libraries: &originals };
        let image = Subject::Image;
        self.compare("own classes", jdk, (nothing, image), (Modules::All, image))?;
        self.compare("jars", jdk, (nothing, jars(&originals)), (nothing, jars(&copies)))
    }

    fn compare(
        &mut self,
        name: &str,
        jdk: &ProbedJdk,
        original: (Modules<'_>, Subject<'_>),
        instrumented: (Modules<'_>, Subject<'_>),
    ) -> Result<(), String> {
        let every = self.extent.every;
        let file = name.replace(' ', "-");
        let (original, instrumented) = std::thread::scope(|scope| {
            let thread = scope.spawn(|| verify(jdk, original.0, original.1, every, &format!("{file}-original")));
            let instrumented = verify(jdk, instrumented.0, instrumented.1, every, &file);
            (thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), instrumented)
        });
        let (original, instrumented) = (original?, instrumented?);
        let Verified { classes, failed, rejected, .. } = &original;
        println!(
            "  {name:12} {classes:>7} classes, failed {failed} original, {} instrumented; rejected {rejected} original, {} \
             instrumented",
            instrumented.failed, instrumented.rejected
        );
        let differences = differences(&original, &instrumented);
        self.wrong.extend(differences.iter().map(|difference| format!("JDK {}: {difference}", jdk.jdk.version)));
        Ok(())
    }
}

/// Instruments the modules of a JDK.
fn rewrite_image(name: &str, jdk: &ProbedJdk, pass: Pass) -> Result<Rewriting, String> {
    let extracted = jdk.work.join("extracted");
    let mut rewriting = Rewriting::new(name, pass);
    let modules = class_tree::extract_image(&jdk.jdk.home, &extracted)?;
    for module in &modules {
        rewriting.natives.add(&class_tree::read(module)?);
    }
    for module in modules {
        let instrumented = check(class_tree::read(&module)?, &mut rewriting);
        class_tree::write(&jdk.modules().join(file_name(&module)), &instrumented)?;
    }
    std::fs::remove_dir_all(&extracted).map_err(|error| format!("{}: {error}", extracted.display()))?;
    Ok(rewriting)
}
