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
//! What was compiled before may have inlined what a handle runs, and HotSpot does not always notice that it is to be discarded ([`Reflection::discard_inlined`]).
//!
//! Why so, and at what cost: docs/decisions/reflection.md.

use headwater_protocol::{LoaderId, MethodId};
use headwater_rewriter::CallSite;
use headwater_runtime_java::{OF_CONSTRUCTOR, OF_HANDLE, OF_JDK_TOO};
use rustc_hash::FxHashSet;

use super::filter::JdkMethods;
use super::known::{Known, Rewritten};
use super::methods::Methods;
use super::mirror::ClassKey;
use super::record::MethodRecord;

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

/// By this reflection uses handles, since JDK 18.
pub(super) const ACCESSOR_BY_HANDLE: &str = "jdk/internal/reflect/DirectMethodHandleAccessor";

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
    /// The classes whose invokers are probed.
    probed: FxHashSet<ClassKey>,
    /// What was compiled before and has inlined what handles run is discarded by the next hotswap.
    discards: bool,
    /// Methods that had their probes when that was done the last time.
    discarded: FxHashSet<MethodId>,
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

    /// Methods are called by handles, reflection's perhaps. Code that C1 has compiled, and that has inlined them by a constant handle, is not known to depend on them
    /// (`GraphBuilder::try_method_handle_inline` notes no dependency); where they leave no other trace in it, it would be used on, and run them without probes. But it has inlined
    /// methods of [`DIRECT_HANDLE`] as well, on which it is known to depend: to hotswap that class discards it.
    pub(super) fn discard_inlined(
        &mut self,
        known: &Known,
        called: &[&MethodRecord],
        to_hotswap: &mut FxHashSet<ClassKey>,
    ) {
        if !self.are_handles_inlined(known) {
            return;
        }
        let may_be_stale = |it: &&MethodRecord| {
            it.refused.is_none()
                && !self.discarded.contains(&it.id)
                && known.code.may_be_inlined(it.key, &it.name, &it.descriptor)
        };
        if called.iter().any(may_be_stale) {
            let handles = known.mirrors.visible(DIRECT_HANDLE, LoaderId::BOOT);
            let handles: Vec<ClassKey> = handles.into_iter().filter(|key| !known.mirrors.get(*key).refused).collect();
            self.discards |= !handles.is_empty();
            to_hotswap.extend(handles);
        }
    }

    /// The same of roots, which anybody may call so.
    pub(super) fn discard_inlined_roots(
        &mut self,
        known: &Known,
        methods: &Methods,
        to_hotswap: &mut FxHashSet<ClassKey>,
    ) {
        /// The code of more is not asked for: some are small.
        const MOST: usize = 16;
        if !self.are_handles_inlined(known) {
            return;
        }
        let roots = methods.all().iter().filter(|it| !it.root_of.is_empty() && known.mirrors.get(it.key).linked);
        let roots: Vec<&MethodRecord> = roots.collect();
        // All that is missing is asked for at once.
        let is_asked_for = |it: &&&MethodRecord| !(known.has_code(it.key) || known.code.is_missing(it.key));
        if roots.len() > MOST || roots.iter().filter(is_asked_for).count() == 0 {
            self.discard_inlined(known, &roots, to_hotswap);
        }
    }

    /// Whether handles run what the program calls.
    fn are_handles_inlined(&self, known: &Known) -> bool {
        self.handles_used || !known.mirrors.named(ACCESSOR_BY_HANDLE).is_empty()
    }

    /// These methods have had their probes from the beginning: no code is without them.
    pub(super) fn born_with_probes(&mut self, methods: &[MethodId]) {
        self.discarded.extend(methods);
    }

    /// Methods lose their probes: what is compiled from now on may have inlined them.
    pub(super) fn forget_discarded(&mut self) {
        self.discarded.clear();
        self.discards = false;
    }

    /// A hotswap is over.
    pub(super) fn hotswapped(&mut self, methods: &Methods) {
        if std::mem::take(&mut self.discards) {
            self.discarded.extend(methods.all().iter().filter(|it| it.in_place).map(|it| it.id));
        }
    }

    /// A call in the graph: if it leads to reflection or handles, these are probed from now on.
    pub(super) fn watch(&mut self, known: &Known, to_hotswap: &mut FxHashSet<ClassKey>, call: &CallSite) {
        for (way, class, method) in ENTRANCES {
            if is_of(call, class, method) {
                self.use_way(known, to_hotswap, way);
            }
        }
    }

    /// The classes that were probed so.
    pub(super) fn probed(&self) -> impl Iterator<Item = ClassKey> {
        self.probed.iter().copied()
    }

    /// The invokers in a class file that are to be probed.
    pub(super) fn in_file(&self, known: &Known, rewritten: Rewritten<'_>) -> Vec<Invoker> {
        let key = rewritten.class.and_then(|class| known.mirrors.by_id(class));
        let Some(key) = key.filter(|key| !known.roots_only && self.probed.contains(key)) else {
            return Vec::new();
        };
        let name = &known.mirrors.get(key).name;
        let scope = if known.options.jdk == JdkMethods::All { OF_JDK_TOO } else { 0 };
        let mut invokers = Vec::new();
        for gate in GATES.iter().filter(|gate| *gate.class == **name) {
            let is_gate = |method: &str, descriptor: &str| {
                gate.methods.iter().any(|(name, wanted)| *name == method && wanted.is_none_or(|it| it == descriptor))
            };
            let kind = if gate.way == Way::Handles { gate.kind + scope } else { gate.kind };
            let methods = rewritten.file.methods().iter();
            let gates = methods.filter(|it| it.has_code() && is_gate(&it.name(), &it.descriptor()));
            invokers.extend(gates.map(|method| Invoker { method_index: method.index, kind }));
        }
        invokers
    }
}

impl Methods {
    /// An invoker cannot be probed.
    pub(super) fn invoker_refused(&mut self, invoker: Invoker, reason: &str) {
        let gate = GATES.iter().find(|gate| gate.kind == invoker.kind & !OF_JDK_TOO);
        let method = gate.map_or(String::new(), |it| format!("{}.{}", it.class.replace('/', "."), it.methods[0].0));
        self.skip(method, format!("what it calls is not found: {reason}"));
    }
}

/// Whether a call may run initialisers of classes that no code names.
pub(super) fn initializes_any(call: &CallSite) -> bool {
    INITIALIZE.iter().any(|(class, method)| is_of(call, class, method))
}

/// Whether it is of a method of a class.
fn is_of(call: &CallSite, class: &str, method: &str) -> bool {
    *call.owner == *class && names(method, &call.name)
}

fn names(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |beginning| name.starts_with(beginning))
}
