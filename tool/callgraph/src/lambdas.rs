//! Lambdas that somebody else made: of those that the graph makes, the bodies are callees of who makes them.
//!
//! The object of a lambda (or of a method reference) is of a hidden class that the JVM makes up, whose name begins with that of the class in
//! whose code the lambda stands, its *host*. A hidden class cannot be changed and its code not be read, but it only passes the call on. So a call
//! that may run a method of such a class is taken to run all lambdas of its host that implement the same interface; but for those that have
//! never run, if each of the classes is accounted for by one that has.
//!
//! JDK code that is not looked through may call any object that it was ever handed. Of lambdas that only it calls, those are likely whose host is in the
//! graph, or is mentioned by code of the graph that calls out, or passes objects on: a comparator that is a constant of some class. The others are
//! objects like any [that nobody names](super::opaque).
//!
//! Why so, and at what cost: docs/decisions/lambdas.md.

use headwater_rewriter::Lambda;
use headwater_terms::Scheme;
use headwater_terms::reach::Way;
use rustc_hash::FxHashSet;

use super::cause::Cause;
use super::hidden::Due;
use super::known::Known;
use super::methods::Methods;
use super::mirror::{ClassKey, Signature};
use super::outward::Leaving;
use super::receivers::Spare;
use super::record::Callee;
use super::source::Source;
use super::{CallGraph, likely};

impl Known {
    /// The class that a lambda's class was made for.
    pub(super) fn lambda_host(&self, lambda: ClassKey) -> Option<ClassKey> {
        let mirror = self.mirrors.get(lambda);
        let hosts = self.mirrors.visible(mirror.lambda_host()?, mirror.loader);
        hosts.into_iter().find(|key| self.mirrors.get(*key).loader == mirror.loader)
    }

    /// The class whose code says what a hidden method calls.
    pub(super) fn home(&self, key: ClassKey) -> Option<ClassKey> {
        if self.mirrors.get(key).lambda_host().is_some() { self.lambda_host(key) } else { Some(key) }
    }
}

impl Methods {
    /// Whether each loaded class of these lambdas is accounted for by one that has run: as many bodies have run as there are classes, and a
    /// body runs by its own class. What a method reference stands for, anybody may have called.
    pub(super) fn are_accounted_for(
        &self,
        known: &Known,
        lambdas: &[Lambda],
        host: ClassKey,
        interfaces: &[ClassKey],
    ) -> bool {
        let (host_name, loader) = (&known.mirrors.get(host).name, known.mirrors.get(host).loader);
        let is_body = |lambda: &Lambda| lambda.body.owner == *host_name && lambda.body.name.starts_with("lambda$");
        if !lambdas.iter().all(is_body) {
            return false;
        }
        let classes = known.mirrors.lambda_classes(host_name, loader).filter(|class| {
            let mut declared = known.mirrors.get(*class).interfaces.iter();
            declared.any(|key| interfaces.contains(key)) && known.lambda_host(*class) == Some(host)
        });
        let run: FxHashSet<_> =
            lambdas.iter().filter(|it| self.body_has_run(known, it, host)).map(|it| &it.body.name).collect();
        run.len() >= classes.count()
    }

    pub(super) fn body_has_run(&self, known: &Known, lambda: &Lambda, host: ClassKey) -> bool {
        let signature = known.mirrors.known_signature(&lambda.body.name, &lambda.body.descriptor);
        signature.is_some_and(|signature| {
            let calls = known.mirrors.method(host, signature).and_then(|method| method.calls);
            let record = self.of(host, signature).and_then(|method| self.record(method));
            calls.is_some_and(|calls| calls > 0) || record.is_some_and(|record| record.entered)
        })
    }
}

impl CallGraph {
    /// A lambda's method may be called.
    pub(super) fn reach_lambda(&mut self, lambda: ClassKey, signature: Signature, cause: Cause) {
        let Some(host) = self.known.lambda_host(lambda) else { return };
        // In total, the filters decide what is instrumented, not the calls.
        if self.known.options.scheme == Scheme::Total {
            return;
        }
        let is_known = !self.methods.in_class(host).is_empty() || self.escape.mentioned.contains(&host);
        if is_known || !self.reachable.hidden.is_exposing() {
            self.reachable.hidden.push(lambda, signature, cause);
        }
    }

    /// Selects the lambdas of a class that one of its lambda classes may stand for.
    pub(super) fn select_lambdas(&mut self, due: &Due, host: ClassKey) -> Vec<Callee> {
        let keys = &self.known.mirrors.get(due.key).interfaces;
        let interfaces: Vec<_> = keys.iter().map(|key| self.known.mirrors.get(*key).name.clone()).collect();
        let name = self.known.mirrors.signature(due.signature).0.clone();
        let loader = self.known.mirrors.get(host).loader;
        let caller = self.known.options.caller(loader);
        let mut lambdas = self.known.code.lambdas(host);
        lambdas.retain(|it| *it.name == *name && interfaces.iter().any(|interface| **interface == *it.interface));
        if self.methods.are_accounted_for(&self.known, &lambdas, host, &self.known.mirrors.get(due.key).interfaces) {
            lambdas.retain(|lambda| self.methods.body_has_run(&self.known, lambda, host));
        }
        // What a reference stands for may be a method outside the filter.
        let leaves = |it: &Lambda| {
            self.escape.leaving_by(&mut self.known, &self.reachable, &it.body, false, loader, caller)
                != Leaving::Nothing
        };
        if lambdas.iter().any(leaves) {
            self.open_up(Source { caller, cause: due.cause }.via(Way::Unnamed));
        }
        // The class stands for one of them.
        let share = likely::of_target(1, lambdas.len());
        let mut callees: Vec<Callee> = Vec::new();
        self.reachable.hidden.begin(due.by, due.probability);
        self.reachable.hidden.set_probability(share);
        // By whom the lambda is called says more than that it is one.
        let is_called_back = matches!(due.cause.way, Way::Callback | Way::Unnamed | Way::Mentioned);
        let cause = if is_called_back { due.cause } else { Cause { way: Way::Lambda, ..due.cause } };
        for lambda in &lambdas {
            self.reach_call(&lambda.body, loader, Source { caller, cause }, Spare::Watched, &mut callees);
        }
        self.reachable.hidden.end();
        callees.iter_mut().for_each(|callee| callee.probability *= share);
        callees
    }
}
