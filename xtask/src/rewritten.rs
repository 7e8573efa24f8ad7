//! Both of the rewriter's passes over a part of the corpus.

use crate::rewrite::changed;
use crate::rewriting::{ClassBytes, Figures, Natives, Pass, rewrite};

/// What the rewriter did with a part of the corpus.
#[derive(Debug)]
pub(crate) struct Rewriting {
    pub(crate) name: String,
    /// Of the two that instrument.
    pass: Pass,
    pub(crate) natives: Natives,
    pub(crate) instrumented: Figures,
    pub(crate) identity: Figures,
    /// The identity pass over what the other pass wrote.
    again: Figures,
}

impl Rewriting {
    pub(crate) fn new(name: &str, pass: Pass) -> Rewriting {
        Rewriting {
            name: name.to_owned(),
            pass,
            natives: Natives::default(),
            instrumented: Figures::default(),
            identity: Figures::default(),
            again: Figures::default(),
        }
    }

    /// Classes that could not be read, or came out different.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (pass, figures) in [("original", &self.identity), ("instrumented", &self.again)] {
            let unreadable = figures.unreadable.iter();
            wrong.extend(unreadable.map(|(class, error)| format!("{}: {class}, {pass}: {error}", self.name)));
            let different = figures.different.iter();
            wrong.extend(different.map(|class| format!("{}: {class}, {pass}: not the same bytes", self.name)));
        }
        wrong
    }

    pub(crate) fn print(&self) {
        let Rewriting { name, instrumented, identity, .. } = self;
        println!(
            "  {name:12} {:>7} classes {:>7} methods {:>5} native calls, identity {:5.1} MB/s, instrumented {:5.1} MB/s, \
             refused {}",
            instrumented.classes,
            instrumented.methods,
            instrumented.calls,
            identity.megabytes_per_second(),
            instrumented.megabytes_per_second(),
            instrumented.refusals()
        );
    }
}

/// Both passes over these classes; returns them instrumented.
pub(crate) fn check(classes: Vec<ClassBytes>, rewriting: &mut Rewriting) -> Vec<ClassBytes> {
    rewriting.identity.add(rewrite(&classes, Pass::Identity, &rewriting.natives).1);
    let (rewritten, figures) = rewrite(&classes, rewriting.pass, &rewriting.natives);
    rewriting.instrumented.add(figures);
    let changed = changed(classes, rewritten);
    rewriting.again.add(rewrite(&changed, Pass::Identity, &rewriting.natives).1);
    changed
}
