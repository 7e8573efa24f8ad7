//! Which methods may be instrumented at all.

use headwater_protocol::LoaderId;

use crate::pattern::{ClassPattern, MethodPattern};

/// What of the JDK's core (the classes of the bootstrap and platform loaders) is instrumented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JdkMethods {
    /// Nothing: its time counts into its callers.
    #[default]
    None,
    /// Methods that are called directly by the application.
    Edge,
    /// Everything.
    All,
}

/// What the user wants.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The roots.
    pub roots: Vec<MethodPattern>,
    /// Only these; everything, when empty.
    pub include: Vec<ClassPattern>,
    /// Not these.
    pub exclude: Vec<ClassPattern>,
    /// What of the JDK.
    pub jdk: JdkMethods,
    /// So many levels of likely callees, below those of a method that is entered, are instrumented along with them. More
    /// save redefinitions, and instrument more methods that never run.
    pub levels_ahead: u8,
}

/// Who reaches a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Caller {
    /// The user names it.
    Root,
    /// Code of the application.
    Application,
    /// Code of the JDK.
    Jdk,
}

/// Classes that the probes themselves run, and which must therefore not contain probes, also when the user names them.
const NEVER: [&str; 6] = [
    // Their methods are Java methods until the JIT compiler replaces them.
    "jdk/internal/misc/Unsafe",
    "java/lang/System",
    "java/lang/Thread",
    "java/lang/Object",
    "java/lang/Class",
    "java/lang/Math",
];

/// By the names' beginnings, classes that a read of the time stamp counter runs in the interpreter. It is read only when no more of the
/// JDK is instrumented than what the user names (see [`clock_source`](crate::clock_source)): then these must not contain probes.
const COUNTER_READERS: [&str; 4] =
    ["java/lang/foreign/", "java/lang/invoke/", "java/util/Objects", "jdk/internal/foreign/"];

impl Options {
    /// Who a caller of this loader's is.
    pub(super) fn caller(&self, loader: LoaderId) -> Caller {
        if loader.is_jdk() { Caller::Jdk } else { Caller::Application }
    }

    /// Whether a class's methods may be instrumented when they are reached so.
    pub(super) fn admits_class(&self, class: &str, loader: LoaderId, caller: Caller) -> bool {
        if NEVER.contains(&class) || class.starts_with("java/lang/HeadwaterV1") {
            return false;
        }
        match (self.jdk, caller) {
            (JdkMethods::None, Caller::Root) => !COUNTER_READERS.iter().any(|beginning| class.starts_with(beginning)),
            (_, Caller::Root) | (JdkMethods::All, _) | (JdkMethods::Edge, Caller::Application) => true,
            (JdkMethods::None, _) | (JdkMethods::Edge, Caller::Jdk) => !loader.is_jdk(),
        }
    }

    /// Whether a method may be instrumented when it is reached so. The roots always may.
    pub(super) fn admits(&self, class: &str, loader: LoaderId, method: &str, caller: Caller) -> bool {
        if !self.admits_class(class, loader, caller) {
            return false;
        }
        caller == Caller::Root
            || (self.include.is_empty() || self.include.iter().any(|pattern| pattern.matches(class, method)))
                && !self.exclude.iter().any(|pattern| pattern.matches(class, method))
    }
}
