//! Why methods have probes, or none: for whoever asks.

use std::sync::Arc;

use headwater_protocol::MethodId;
use headwater_terms::reach::{Obstacle, Trigger, Way};
use rustc_hash::FxHashSet;

use super::cause::{Cause, History, Moment};
use super::filter::is_never;
use super::guards::Called;
use super::known::Known;
use super::methods::Methods;
use super::mirror::{ClassKey, Signature, VERY_MANY};
use super::plan::Plan;
use super::reachable::Reachable;
use super::record::{Drop, MethodRecord};
use super::source;

/// Where a method comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The method that led to it, if it is known which. Followed from one to the next, this ends.
    pub by: Option<MethodId>,
    /// In which way.
    pub way: Way,
    /// Internal name of the type that the call names, or as which an object is given away.
    pub through: Option<Arc<str>>,
}

/// What became of a method that was selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// Where it comes from.
    pub origin: Origin,
    /// What it was found upon.
    pub trigger: Trigger,
    /// When that was.
    pub found: Moment,
    /// It was found before this origin was known: as something that code without probes may call on an object that nobody names.
    pub was_unnamed: bool,
    /// When it had its probes.
    pub probed: Option<Moment>,
    /// Why it has none, or has no longer.
    pub lacks: Option<Obstacle>,
}

/// A method that was reached and not selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unselected {
    /// Internal name of its class; where it is not loaded, or the call is not resolved, as the call names it.
    pub class: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its descriptor.
    pub descriptor: Arc<str>,
    /// Why it was not.
    pub why: Obstacle,
    /// How it was reached.
    pub origin: Origin,
}

impl Known {
    fn origin(&self, cause: Cause) -> Origin {
        let through = cause.through.map(|class| self.mirrors.get(class).name.clone());
        Origin { by: cause.by, way: cause.way, through }
    }

    fn unselected(&self, class: &Arc<str>, signature: Signature, why: Obstacle, cause: Cause) -> Unselected {
        let (name, descriptor) = self.mirrors.signature(signature).clone();
        Unselected { class: class.clone(), name, descriptor, why, origin: self.origin(cause) }
    }

    /// What became of a method that was selected.
    pub(super) fn fate(&self, method: &MethodRecord) -> Fate {
        let History { cause, trigger, found, probed, was_unnamed } = method.history;
        let lacks = match method.drop {
            _ if method.refused.is_some() => Some(Obstacle::Refused),
            Drop::Done => Some(Obstacle::Dropped),
            _ if method.in_place => None,
            _ if !self.mirrors.get(method.key).linked => Some(Obstacle::NotLinked),
            _ => Some(Obstacle::Limits),
        };
        Fate { origin: self.origin(cause), trigger, found, was_unnamed, probed, lacks }
    }

    /// Names of the classes that are loaded, but for the JDK's, and for those that the JVM makes for code.
    pub(super) fn application_classes(&self) -> impl Iterator<Item = &Arc<str>> {
        let is_meant = |key: &ClassKey| {
            let mirror = self.mirrors.get(*key);
            mirror.linked && !mirror.loader.is_jdk() && mirror.lambda_host().is_none() && !mirror.is_made_for_code()
        };
        self.mirrors.names().filter(move |(_, classes)| classes.iter().any(is_meant)).map(|(name, _)| name)
    }
}

impl Methods {
    /// A call names a class outside the filter, or a method that has no code.
    pub(super) fn pass_over_named(&mut self, known: &Known, owner: ClassKey, (signature, from): source::Called) {
        let cause = from.through(owner).cause;
        let why = if !known.is_inside(owner, from.caller) {
            if is_never(&known.mirrors.get(owner).name) { Obstacle::Unmodifiable } else { Obstacle::Jdk }
        } else if known.mirrors.method(owner, signature).is_some_and(|method| method.is_abstract()) {
            Obstacle::Abstract
        } else {
            return;
        };
        self.passed_over.add(owner, signature, why, cause);
    }
}

impl Plan {
    /// The methods that were reached and not selected, as far as they are known. One may be there more than once: what is surest comes first.
    pub(super) fn passed_over(&self, known: &Known, methods: &Methods, reachable: &Reachable) -> Vec<Unselected> {
        let mut found = Vec::new();
        // Of classes of one name one speaks for all: they are one to the reader.
        let mut seen = FxHashSet::default();
        let is_selected = |class: ClassKey, signature| methods.of(class, signature).is_some();
        let watched = reachable.watched.all();
        let watched = watched.map(|(&(class, signature), from)| (class, signature, Obstacle::Watched, from.cause));
        for (class, signature, why, cause) in methods.passed_over.all().chain(watched) {
            let name = &known.mirrors.get(class).name;
            if !is_selected(class, signature) && seen.insert((name, signature)) {
                found.push(known.unselected(name, signature, why, cause));
            }
        }
        for (by, Called { owner, name, descriptor }) in self.guards.up() {
            let signature = known.mirrors.known_signature(name, descriptor);
            let namesakes = known.mirrors.named(owner).iter().take(VERY_MANY);
            let is_known = |signature| namesakes.clone().any(|it| is_selected(*it, signature));
            if !signature.is_some_and(is_known) {
                let origin = Origin { by: Some(by), way: Way::Direct, through: None };
                let (class, name, descriptor) = (owner.clone(), name.clone(), descriptor.clone());
                found.push(Unselected { class, name, descriptor, why: Obstacle::Guarded, origin });
            }
        }
        for (class, targets) in reachable.direct_pending.iter().chain(&reachable.virtual_pending) {
            if known.mirrors.named(class).iter().any(|class| known.mirrors.get(*class).linked) {
                continue;
            }
            for ((signature, _), cause) in targets {
                found.push(known.unselected(class, *signature, Obstacle::NotLoaded, *cause));
            }
        }
        found
    }
}
