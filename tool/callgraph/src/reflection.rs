//! Methods that are called by reflection and by method handles.
//!
//! No code says which ones these are; the objects that stand for them do, when they are used. So as soon as code of the graph
//! calls any that may use reflection, and that is nearly all of the JDK (an enumeration's `values`, what a stream writes, a bundle's resources),
//! `Method.invoke` and `Constructor.newInstance` themselves get a probe that is handed their receiver, and whatever
//! a thread in the graph uses for the first time is told here, before it runs. JFluid 6.1 does so for `Method.invoke`.
//!
//! `MethodHandle.invokeExact` has no code, but what it comes to in the end has: however a handle was made and whatever it was combined
//! with, the JVM runs a method by a direct handle, whose form gets the method out of it by one of a few static methods. These
//! are probed as soon as code of the graph invokes handles, or has call sites that its own bootstrap methods link.
//!
//! Why so, and at what cost: docs/decisions/reflection.md.

use headwater_protocol::message::MethodRef;
use headwater_protocol::{ClassId, LoaderId};
use headwater_rewriter::ClassFile;
use headwater_runtime_java::{OF_CONSTRUCTOR, OF_HANDLE, OF_JDK_TOO};
use headwater_terms::reach;
use rustc_hash::FxHashSet;

use super::filter::{Caller, JdkMethods};
use super::known::Known;
use super::mirror::{ClassKey, Signature};
use super::policy::BY_NAME;
use super::receivers::Spare;
use super::source::Source;
use super::{CallGraph, Step, Work};

/// A way of running what an object stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Reflection,
    Handles,
}

/// Methods of the JDK through which all calls of a way come.
#[derive(Debug)]
struct Gate {
    way: Way,
    class: &'static str,
    /// Its methods; with a descriptor, where there are others of the name.
    methods: &'static [(&'static str, Option<&'static str>)],
    /// What their first argument is, as the probe wants it.
    kind: u32,
}

const OF_OBJECT: Option<&str> = Some("(Ljava/lang/Object;)Ljava/lang/Object;");
const DIRECT_HANDLE: &str = "java/lang/invoke/DirectMethodHandle";

const GATES: [Gate; 4] = [
    Gate { way: Way::Reflection, class: "java/lang/reflect/Method", methods: &[("invoke", None)], kind: 0 },
    Gate {
        way: Way::Reflection,
        class: "java/lang/reflect/Constructor",
        methods: &[("newInstance", None), ("newInstanceWithCaller", None)],
        kind: OF_CONSTRUCTOR,
    },
    Gate {
        way: Way::Handles,
        class: DIRECT_HANDLE,
        methods: &[
            ("internalMemberName", OF_OBJECT),
            ("internalMemberNameEnsureInit", OF_OBJECT),
            // By this the implementation of a lambda is learnt that is made at run time.
            ("internalMemberName", Some("()Ljava/lang/invoke/MemberName;")),
        ],
        kind: OF_HANDLE,
    },
    Gate {
        way: Way::Handles,
        class: DIRECT_HANDLE,
        methods: &[("allocateInstance", OF_OBJECT)],
        kind: OF_HANDLE + OF_CONSTRUCTOR,
    },
];

/// What code of the graph calls when it goes these ways, besides [what leaves the filter](Reflection::expect). Those that come to the
/// gates by code of the JDK, which is not looked through, are named too. A name that ends in `*` is any that begins so.
const ENTRANCES: [(Way, &str, &str); 7] = [
    (Way::Reflection, "java/lang/Class", "*"),
    (Way::Reflection, "java/lang/reflect/Method", "invoke"),
    (Way::Reflection, "java/lang/reflect/Constructor", "newInstance*"),
    (Way::Handles, "java/lang/invoke/MethodHandle", "invoke*"),
    (Way::Handles, "java/lang/invoke/MethodHandleProxies", "*"),
    (Way::Handles, "java/lang/invoke/LambdaMetafactory", "*"),
    // A record's constructor.
    (Way::Handles, "java/io/ObjectInputStream", "read*"),
];

/// Make, or are, objects that run a handle when they are used, which no code shows. Who does not use them has not loaded them.
const HANDLES_WITHIN: [&str; 2] = ["java/lang/invoke/MethodHandleProxies", "java/lang/invoke/IndirectVarHandle"];

/// Methods of the JDK that run the initialiser of a class that only their argument names.
const INITIALIZE: [(&str, &str); 9] = [
    ("java/lang/Class", "forName"),
    ("java/lang/Class", "newInstance"),
    ("java/util/ServiceLoader", "*"),
    ("java/util/ResourceBundle", "getBundle"),
    ("java/lang/invoke/MethodHandles$Lookup", "*"),
    ("java/lang/reflect/Field", "*"),
    ("java/lang/reflect/Proxy", "newProxyInstance"),
    ("java/io/ObjectInputStream", "read*"),
    ("sun/misc/Unsafe", "*"),
];

/// A method that runs what its first argument stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invoker {
    /// In the class file's order.
    pub method_index: usize,
    /// What kind of object its receiver is, as the probe wants it.
    pub kind: u32,
}

/// What is known of reflection in the graph.
#[derive(Debug, Default)]
pub(super) struct Reflection {
    reflection_used: bool,
    handles_used: bool,
    /// The graph may initialise classes that its code does not name.
    pub(super) initializes: Option<Source>,
    /// The classes whose invokers are probed.
    pub(super) probed: FxHashSet<ClassKey>,
}

impl Reflection {
    fn is_used(&self, way: Way) -> bool {
        match way {
            Way::Reflection => self.reflection_used,
            Way::Handles => self.handles_used,
        }
    }

    /// A thread in the graph leaves the filter: there, anything may be called by reflection.
    pub(super) fn expect(&mut self, known: &Known, to_hotswap: &mut FxHashSet<ClassKey>) {
        self.use_way(known, to_hotswap, Way::Reflection);
    }

    /// Code of the graph has call sites of which a method that is not the JDK's says what they run.
    pub(super) fn watch_bootstraps(&mut self, known: &Known, to_hotswap: &mut FxHashSet<ClassKey>) {
        self.use_way(known, to_hotswap, Way::Handles);
    }

    fn use_way(&mut self, known: &Known, to_hotswap: &mut FxHashSet<ClassKey>, way: Way) {
        match way {
            Way::Reflection => self.reflection_used = true,
            Way::Handles => self.handles_used = true,
        }
        self.probe_invokers(known, to_hotswap);
    }

    /// Has the invokers probed whose classes are linked, of the ways that are used in the graph.
    pub(super) fn probe_invokers(&mut self, known: &Known, to_hotswap: &mut FxHashSet<ClassKey>) {
        self.handles_used |= HANDLES_WITHIN.iter().any(|class| !known.mirrors.named(class).is_empty());
        for gate in &GATES {
            if !self.is_used(gate.way) {
                continue;
            }
            for key in known.mirrors.visible(gate.class, LoaderId::BOOT) {
                if known.mirrors.get(key).linked && self.probed.insert(key) {
                    to_hotswap.insert(key);
                }
            }
        }
    }
}

fn names(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |beginning| name.starts_with(beginning))
}

impl CallGraph {
    /// A call in the graph: if it leads to reflection or handles, these are probed from now on.
    pub(super) fn watch_reflection(&mut self, owner: &str, name: &str, from: Source) {
        let is_it = |class: &str, method: &str| class == owner && names(method, name);
        if INITIALIZE.iter().any(|(class, method)| is_it(class, method)) {
            self.initialize_any(from);
        }
        for (way, class, method) in ENTRANCES {
            if is_it(class, method) {
                self.plan.reflection.use_way(&self.known, &mut self.plan.to_hotswap, way);
            }
        }
    }

    /// Code of the graph may initialise classes that it does not name: those that are loaded already, and those that come.
    fn initialize_any(&mut self, from: Source) {
        if self.plan.reflection.initializes.is_some() {
            return;
        }
        let needs_before = self.known.needs;
        let mut callees = Vec::new();
        self.known.mirrors.keys().for_each(|key| self.select_initializers(key, from, &mut callees));
        callees.into_iter().for_each(|callee| self.methods.raise(callee.method, BY_NAME));
        let of_later = from.from(Caller::Application);
        self.plan.reflection.initializes = (self.known.needs == needs_before).then_some(of_later);
    }

    /// The invokers in a class file that are to be probed.
    pub(super) fn invokers(&self, class: Option<ClassId>, file: &ClassFile<'_>) -> Vec<Invoker> {
        let key = class.and_then(|class| self.known.mirrors.by_id(class));
        let Some(key) = key.filter(|key| !self.known.roots_only && self.plan.reflection.probed.contains(key)) else {
            return Vec::new();
        };
        let name = &self.known.mirrors.get(key).name;
        let scope = if self.known.options.jdk == JdkMethods::All { OF_JDK_TOO } else { 0 };
        let mut invokers = Vec::new();
        for gate in GATES.iter().filter(|gate| *gate.class == **name) {
            let is_gate = |method: &str, descriptor: &str| {
                gate.methods.iter().any(|(name, wanted)| *name == method && wanted.is_none_or(|it| it == descriptor))
            };
            let kind = if gate.way == Way::Handles { gate.kind + scope } else { gate.kind };
            let methods = file.methods().iter().filter(|it| it.has_code() && is_gate(&it.name(), &it.descriptor()));
            invokers.extend(methods.map(|method| Invoker { method_index: method.index, kind }));
        }
        invokers
    }

    /// An invoker cannot be probed.
    pub fn invoker_refused(&mut self, invoker: Invoker, reason: &str) {
        let gate = GATES.iter().find(|gate| gate.kind == invoker.kind & !OF_JDK_TOO);
        let method = gate.map_or(String::new(), |it| format!("{}.{}", it.class.replace('/', "."), it.methods[0].0));
        self.methods.skip(method, format!("what it calls is not found: {reason}"));
    }

    /// A thread in the graph is about to call a method, or one that overrides it, by reflection or a handle.
    pub fn reflected(&mut self, method: &MethodRef) -> Step {
        let Some(key) = self.known.mirrors.by_id(method.class) else { return self.begin(Work::Rest) };
        let signature = self.known.mirrors.intern_signature(&method.name, &method.descriptor);
        self.begin(Work::Reflected(key, signature))
    }

    /// Selects what the call may run.
    pub(super) fn reach_reflected(&mut self, key: ClassKey, signature: Signature) {
        if self.known.mirrors.methods(key).is_none() {
            self.known.need(key);
            return;
        }
        // The JVM may name a class that only inherits the method, from an interface.
        let is_virtual = self.known.mirrors.method(key, signature).is_none_or(|method| method.is_virtual());
        let is_constructor = &*self.known.mirrors.signature(signature).0 == "<init>";
        let (class, loader) = (self.known.mirrors.get(key).name.clone(), self.known.mirrors.get(key).loader);
        let from = Source::new(Caller::Application, None, reach::Way::Reflected);
        let mut callees = Vec::new();
        if is_virtual && !is_constructor {
            self.reach_virtual(&class, loader, (signature, from), Spare::Nothing, &mut callees);
        }
        // A handle of an overridden method calls just that, if a lookup by `findSpecial` made it.
        self.reach_direct(&class, loader, (signature, from), Spare::Nothing, &mut callees);
        self.reach_initializer(&class, loader, from, &mut callees);
        callees.into_iter().for_each(|callee| self.methods.raise(callee.method, callee.probability));
    }
}
