//! Methods that are called by reflection.
//!
//! No code says which ones these are; the objects of `java.lang.reflect` do, when they are used. So as soon as code of the graph
//! calls them, `Method.invoke` and `Constructor.newInstance` themselves get a probe that is handed their receiver, and whatever
//! a thread in the graph uses for the first time is told here, before it runs. JFluid 6.1 does so for `Method.invoke`.

use headwater_protocol::message::MethodRef;
use headwater_protocol::{ClassId, LoaderId};
use headwater_rewriter::ClassFile;
use rustc_hash::FxHashSet;

use super::filter::Caller;
use super::mirror::{ClassKey, Signature};
use super::{CallGraph, Step, Work};

/// The classes whose objects stand for methods, at the index of their kind, and the methods that run those.
const EXECUTABLES: [(&str, &[&str]); 2] = [
    ("java/lang/reflect/Method", &["invoke"]),
    ("java/lang/reflect/Constructor", &["newInstance", "newInstanceWithCaller"]),
];

/// Methods of the JDK that come to those in a way that is not looked through.
const SHORTCUTS: [(&str, &str); 2] = [("java/lang/Class", "newInstance"), ("java/util/ServiceLoader", "")];

/// Runs the initialiser of a class that only its argument names.
const FOR_NAME: (&str, &str) = ("java/lang/Class", "forName");

/// A method that runs what its receiver stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invoker {
    /// In the class file's order.
    pub method_index: usize,
    /// What kind of object its receiver is, as the probe wants it: 0 for a method, 1 for a constructor.
    pub kind: u32,
}

/// What is known of reflection in the graph.
#[derive(Debug, Default)]
pub(super) struct Reflection {
    used: bool,
    /// The graph may initialise classes that its code does not name.
    pub(super) initializes: bool,
    /// The classes whose invokers are probed.
    pub(super) probed: FxHashSet<ClassKey>,
}

impl CallGraph {
    /// A call in the graph: if it leads to reflection, that is probed from now on.
    pub(super) fn watch_reflection(&mut self, owner: &str, name: &str) {
        let is_invoker = EXECUTABLES.iter().any(|(class, methods)| *class == owner && methods.contains(&name));
        let is_shortcut = SHORTCUTS.iter().any(|(class, method)| *class == owner && name.starts_with(method));
        self.reflection.initializes |= is_shortcut || (owner, name) == FOR_NAME;
        if is_invoker || is_shortcut {
            self.reflection.used = true;
            self.probe_invokers();
        }
    }

    /// Has the invokers probed whose classes are linked, if reflection is used in the graph.
    pub(super) fn probe_invokers(&mut self) {
        if !self.reflection.used || self.reflection.probed.len() == EXECUTABLES.len() {
            return;
        }
        for (class, _) in EXECUTABLES {
            for key in self.mirrors.visible(class, LoaderId::BOOT) {
                if self.mirrors.get(key).linked && self.reflection.probed.insert(key) {
                    self.to_hotswap.insert(key);
                }
            }
        }
    }

    /// The invokers in a class file that are to be probed.
    pub fn invokers(&self, class: Option<ClassId>, bytes: &[u8]) -> Vec<Invoker> {
        let key = class.and_then(|class| self.mirrors.by_id(class));
        let Some(key) = key.filter(|key| !self.roots_only && self.reflection.probed.contains(key)) else {
            return Vec::new();
        };
        let name = &self.mirrors.get(key).name;
        let Some(kind) = EXECUTABLES.iter().position(|(class, _)| **class == **name) else { return Vec::new() };
        let Ok(file) = ClassFile::parse(bytes) else { return Vec::new() };
        let invokers = file.methods().iter().filter(|it| it.has_code() && EXECUTABLES[kind].1.contains(&&*it.name()));
        invokers.map(|method| Invoker { method_index: method.index, kind: kind as u32 }).collect()
    }

    /// An invoker cannot be probed.
    pub fn invoker_refused(&mut self, invoker: Invoker, reason: &str) {
        let (class, methods) = EXECUTABLES[invoker.kind as usize];
        let method = format!("{}.{}", class.replace('/', "."), methods[0]);
        self.skipped.push((method, format!("what it calls is not found: {reason}")));
    }

    /// A thread in the graph is about to call a method, or one that overrides it, by reflection.
    pub fn reflected(&mut self, method: &MethodRef) -> Step {
        let Some(key) = self.mirrors.by_id(method.class) else { return self.begin(Work::Rest) };
        let signature = self.mirrors.intern_signature(&method.name, &method.descriptor);
        self.begin(Work::Reflected(key, signature))
    }

    /// Selects what the call may run.
    pub(super) fn reach_reflected(&mut self, key: ClassKey, signature: Signature) {
        if self.mirrors.methods(key).is_none() {
            self.need(key);
            return;
        }
        let Some(method) = self.mirrors.method(key, signature) else { return };
        let is_constructor = &*self.mirrors.signature(signature).0 == "<init>";
        let (class, loader) = (self.mirrors.get(key).name.clone(), self.mirrors.get(key).loader);
        let mut callees = Vec::new();
        if method.is_virtual() && !is_constructor {
            self.reach_virtual(&class, loader, signature, Caller::Application, &mut callees);
        } else {
            self.reach_direct(&class, loader, signature, Caller::Application, &mut callees);
        }
        self.reach_initializer(&class, loader, Caller::Application, &mut callees);
        callees.into_iter().for_each(|callee| self.raise(callee.method, callee.probability));
    }
}
