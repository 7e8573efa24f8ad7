//! Lambdas that somebody else made: of those that the graph makes, the bodies are callees of who makes them.
//!
//! The object of a lambda (or of a method reference) is of a hidden class that the JVM makes up, whose name begins with that of the class in
//! whose code the lambda stands, its *host*. A hidden class cannot be changed and its code not be read, but it only passes the call on. So a call
//! that may run a method of such a class is taken to run all lambdas of its host that implement the same interface.
//!
//! JDK code that is not looked through may call any object that it was ever handed. Of lambdas that only it calls, those count whose host is in the
//! graph, or is mentioned by code of the graph that calls out, or passes objects on: a comparator that is a constant of some class. The others are withheld until
//! that is so. Otherwise every `Runnable` of the program would be in the graph as soon as one of its methods mentions that type.

use super::CallGraph;
use super::Scheme;
use super::ahead::Callee;
use super::hidden::Due;
use super::mirror::{ClassKey, Signature};

impl CallGraph {
    /// The class that a lambda's class was made for.
    fn lambda_host(&self, lambda: ClassKey) -> Option<ClassKey> {
        let mirror = self.mirrors.get(lambda);
        let hosts = self.mirrors.visible(mirror.lambda_host()?, mirror.loader);
        hosts.into_iter().find(|key| self.mirrors.get(*key).loader == mirror.loader)
    }

    /// The class whose code says what a hidden method calls.
    pub(super) fn home(&self, key: ClassKey) -> Option<ClassKey> {
        if self.mirrors.get(key).lambda_host().is_some() { self.lambda_host(key) } else { Some(key) }
    }

    /// A lambda's method may be called.
    pub(super) fn reach_lambda(&mut self, lambda: ClassKey, signature: Signature) {
        let Some(host) = self.lambda_host(lambda) else { return };
        // In total, the filters decide what is instrumented, not the calls.
        if self.options.scheme == Scheme::Total {
            return;
        }
        let is_known = self.by_class.contains_key(&host) || self.reachable.mentioned.contains(&host);
        if is_known || !self.hidden.is_exposing() {
            self.hidden.push(lambda, signature);
        } else {
            self.hidden.withhold(host, lambda, signature);
        }
    }

    /// Selects the lambdas of a class that one of its lambda classes may stand for.
    pub(super) fn select_lambdas(&mut self, due: &Due, host: ClassKey) -> Vec<Callee> {
        let interfaces = &self.mirrors.get(due.key).interfaces;
        let interfaces: Vec<_> = interfaces.iter().map(|key| self.mirrors.get(*key).name.clone()).collect();
        let name = self.mirrors.signature(due.signature).0.clone();
        let loader = self.mirrors.get(host).loader;
        let caller = self.options.caller(loader);
        let mut callees = Vec::new();
        self.hidden.begin(due.by, due.probability);
        self.hidden.set_probability(1.0);
        for lambda in self.code.lambdas(host) {
            if *lambda.name == *name && interfaces.iter().any(|interface| **interface == *lambda.interface) {
                self.reach_call(&lambda.body, loader, caller, &mut callees);
            }
        }
        self.hidden.end();
        callees
    }
}
