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
use rustc_hash::FxHashSet;

use super::cause::Cause;
use super::hidden::Due;
use super::known::Known;
use super::methods::Methods;
use super::mirror::{ClassKey, Signature};
use super::reachable::Reachable;

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
    fn are_accounted_for(&self, known: &Known, lambdas: &[Lambda], host: ClassKey, interfaces: &[ClassKey]) -> bool {
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

    fn body_has_run(&self, known: &Known, lambda: &Lambda, host: ClassKey) -> bool {
        let signature = known.mirrors.known_signature(&lambda.body.name, &lambda.body.descriptor);
        signature.is_some_and(|signature| {
            let calls = known.mirrors.method(host, signature).and_then(|method| method.calls);
            let record = self.of(host, signature).and_then(|method| self.record(method));
            calls.is_some_and(|calls| calls > 0) || record.is_some_and(|record| record.entered)
        })
    }

    /// The lambdas of a class that one of its lambda classes may stand for.
    pub(super) fn lambdas_of(&self, known: &Known, due: &Due, host: ClassKey) -> Vec<Lambda> {
        let keys = &known.mirrors.get(due.key).interfaces;
        let interfaces: Vec<_> = keys.iter().map(|key| &known.mirrors.get(*key).name).collect();
        let name = &known.mirrors.signature(due.signature).0;
        let mut lambdas = known.code.lambdas(host);
        lambdas.retain(|it| *it.name == **name && interfaces.iter().any(|interface| ***interface == *it.interface));
        if self.are_accounted_for(known, &lambdas, host, keys) {
            lambdas.retain(|lambda| self.body_has_run(known, lambda, host));
        }
        lambdas
    }
}

impl Reachable {
    /// A lambda's method may be called.
    pub(super) fn reach_lambda(
        &mut self,
        known: &Known,
        methods: &Methods,
        lambda: ClassKey,
        signature: Signature,
        cause: Cause,
    ) {
        let Some(host) = known.lambda_host(lambda) else { return };
        // In total, the filters decide what is instrumented, not the calls.
        if known.options.scheme == Scheme::Total {
            return;
        }
        let is_known = !methods.in_class(host).is_empty() || self.mentioned.contains(&host);
        if is_known || !self.hidden.is_exposing() {
            self.hidden.push(lambda, signature, cause);
        }
    }
}
