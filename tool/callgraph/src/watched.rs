//! Methods that are watched instead of being instrumented: code outside the filter may call them, and they have never run.
//!
//! Whatever the JDK or a framework's lambdas may call back is reachable, and in a large program most of it is never called: of a Spring service's
//! methods that were instrumented below one endpoint, half were of this kind, none of which ran. No probe can tell when one is called, since the
//! caller's code is not instrumented. But the JVM counts its calls anyway: so beyond a number that does no harm ([`MOST_IDLE`]) they are left
//! alone, and the agent looks at their counters. What has run after all is instrumented then, and its counts are at least what they say.
//!
//! In a program that does much for the first time, in one that has hardly run yet, and where the JVM does not tell, nothing is watched.
//!
//! Why so, and at what cost: docs/decisions/watched-methods.md.

use headwater_protocol::message::MethodRef;
use rustc_hash::{FxHashMap, FxHashSet};

use super::known::Known;
use super::likely::Reading;
use super::mirror::{ClassKey, Signature};
use super::policy::MOST_IDLE;
use super::source::Source;

/// What is watched.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// By whom each may be called.
    callers: FxHashMap<(ClassKey, Signature), Source>,
    /// Those that the agent has not been told yet.
    new: Vec<(ClassKey, Signature)>,
    /// Methods of this kind that are instrumented.
    idle: FxHashSet<(ClassKey, Signature)>,
}

impl Watched {
    /// All that are, with who may call them.
    pub(super) fn all(&self) -> impl Iterator<Item = (&(ClassKey, Signature), &Source)> {
        self.callers.iter()
    }

    /// Whether a method that code outside the filter may call is watched, and not to be selected.
    pub(super) fn is_watched(
        &mut self,
        Reading { known, methods, likely }: Reading<'_>,
        class: ClassKey,
        signature: Signature,
        from: Source,
    ) -> bool {
        let method = (class, signature);
        if methods.of(class, signature).is_some()
            || !likely.watches(known)
            || !methods.has_never_run_here(known, class, signature)
        {
            return false;
        }
        let mirror = known.mirrors.get(class);
        if mirror.id.is_none() || !mirror.modifiable {
            return false;
        }
        if self.callers.contains_key(&method) {
            return true;
        }
        if self.idle.contains(&method) || self.idle.len() < MOST_IDLE {
            self.idle.insert(method);
            return false;
        }
        self.callers.insert(method, from);
        self.new.push(method);
        true
    }

    /// What is to be watched and was not before.
    pub(super) fn take_new(&mut self, known: &Known) -> Vec<MethodRef> {
        let reference = |(class, signature): (ClassKey, Signature)| {
            let (name, descriptor) = known.mirrors.signature(signature);
            let class = known.mirrors.get(class).id?;
            Some(MethodRef { class, name: name.to_string(), descriptor: descriptor.to_string() })
        };
        std::mem::take(&mut self.new).into_iter().filter_map(reference).collect()
    }

    /// Some have run: those that were watched, with who may have called them.
    pub(super) fn have_run(&mut self, known: &mut Known, methods: &[MethodRef]) -> Vec<(ClassKey, Signature, Source)> {
        let mut run = Vec::new();
        for method in methods {
            let Some(key) = known.mirrors.by_id(method.class) else { continue };
            let signature = known.mirrors.intern_signature(&method.name, &method.descriptor);
            if let Some(from) = self.callers.remove(&(key, signature)) {
                known.mirrors.has_run(key, signature);
                run.push((key, signature, from));
            }
        }
        run
    }
}
