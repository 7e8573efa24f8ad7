//! Which methods may be instrumented at all.

use headwater_protocol::LoaderId;
use headwater_terms::Scheme;
use headwater_terms::pattern::{ClassPattern, MethodPattern};

use super::lines::Lines;
use super::policy::Without;
use super::record::PatternIndex;

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
    /// At a root's index: it stands for these lines of its class, not for the methods.
    pub lines: Vec<Option<Lines>>,
    /// Nothing but the roots is instrumented.
    pub only_roots: bool,
    /// Only these; everything, when empty.
    pub include: Vec<ClassPattern>,
    /// Not these.
    pub exclude: Vec<ClassPattern>,
    /// What of the JDK.
    pub jdk: JdkMethods,
    /// When a method's callees are instrumented.
    pub scheme: Scheme,
    /// Under scheme B: what is likely to be entered next goes into the same batch.
    pub look_ahead: bool,
    /// What is left out, to measure what it is worth.
    pub without: Without,
    /// Most of what may be called back and has never run is not instrumented before it has.
    pub watch_idle: bool,
    /// Getters, setters and methods that do nothing are not instrumented.
    pub skip_trivial: bool,
    /// Calls of native methods are instrumented, since these themselves cannot be.
    pub natives: bool,
    /// What is handed to other threads in the graph belongs to it.
    pub follow_threads: bool,
    /// Where threads wait is probed.
    pub waits: bool,
    /// Class loaders tell when they begin and when they are done.
    pub loading: bool,
    /// Exceptions tell that they are made.
    pub exceptions: bool,
    /// Methods tell of the objects that they make.
    pub objects: bool,
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

/// Classes and packages that must not contain probes, also when the user names them, beside the probes' own. Each has its reason; a
/// test runs with all others instrumented.
const NEVER: [&str; 5] = [
    // The probes run it: Java methods, until the JIT compiler replaces them.
    "jdk/internal/misc/Unsafe",
    // Once it has been redefined, HotSpot adjusts every class's method tables at each later redefinition.
    "java/lang/Object",
    // What makes a thread virtual: some of its methods are entered by one thread and left by another, and what a probe waits for
    // may need the very thread that changes.
    "java/lang/VirtualThread",
    // Whoever retransforms an event of the JDK's has the flight recorder write its code, for good.
    "jdk/internal/event/",
    "jdk/jfr/events/",
];

/// Whether a class is one of these, or in one of these packages.
fn is_listed(class: &str, list: &[&str]) -> bool {
    list.iter().any(|listed| class == *listed || listed.ends_with('/') && class.starts_with(listed))
}

/// Whether a class must not contain probes, whoever asks for them.
pub(super) fn is_never(class: &str) -> bool {
    is_listed(class, &NEVER)
}

/// What the names of the classes begin with that the JDK, up to 21, generates for reflection, in loaders of the application's.
const ACCESSORS: &str = "jdk/internal/reflect/Generated";

/// What the names of the probes' own classes begin with.
const PROBES: &str = "java/lang/HeadwaterV1";

/// Packages and classes that a read of the time stamp counter runs in the interpreter. It is read only when no more of the
/// JDK is instrumented than what the user names (see docs/decisions/clocks.md): then these must not contain probes.
const COUNTER_READERS: [&str; 8] = [
    "java/lang/foreign/",
    "java/lang/invoke/",
    "java/util/Objects",
    "jdk/internal/foreign/",
    "java/lang/Class",
    "java/lang/Math",
    "java/lang/System",
    "java/lang/Thread",
];

impl Options {
    /// Who a caller of this loader's is.
    pub(super) fn caller(&self, loader: LoaderId) -> Caller {
        if loader.is_jdk() { Caller::Jdk } else { Caller::Application }
    }

    /// The lines that a root stands for, if it is no method.
    pub fn lines_of(&self, root: PatternIndex) -> Option<Lines> {
        self.lines.get(root.0).copied().flatten()
    }

    /// Whether a class's methods may be instrumented when they are reached so.
    pub(super) fn admits_class(&self, class: &str, loader: LoaderId, caller: Caller) -> bool {
        if loader.is_jdk() {
            !is_never(class) && self.admits_native_of(class, loader, caller)
        } else {
            !class.starts_with(ACCESSORS)
        }
    }

    /// The same for its native methods: calls of these are instrumented, not the class.
    pub(super) fn admits_native_of(&self, class: &str, loader: LoaderId, caller: Caller) -> bool {
        !loader.is_jdk()
            || match (self.jdk, caller) {
                _ if class.starts_with(PROBES) => false,
                (JdkMethods::None, Caller::Root) => !is_listed(class, &COUNTER_READERS),
                _ => self.admits_jdk(caller),
            }
    }

    /// Whether any class of the JDK may be instrumented when it is reached so.
    pub(super) fn admits_jdk(&self, caller: Caller) -> bool {
        match (self.jdk, caller) {
            (_, Caller::Root) | (JdkMethods::All, _) | (JdkMethods::Edge, Caller::Application) => true,
            (JdkMethods::None, _) | (JdkMethods::Edge, Caller::Jdk) => false,
        }
    }

    /// Whether the user's patterns show a method that is reached so. The roots always are shown. What of the JDK is shown is said by `jdk` where
    /// no pattern of `include` can mean it: those of the application are no reason to leave out what is asked for.
    pub(super) fn shows(&self, class: &str, loader: LoaderId, method: &str, caller: Caller) -> bool {
        let is_included = || {
            let governs = |pattern: &&ClassPattern| !loader.is_jdk() || pattern.may_mean_jdk();
            let mut governing = self.include.iter().filter(governs).peekable();
            governing.peek().is_none() || governing.any(|pattern| pattern.matches(class, method))
        };
        caller == Caller::Root || is_included() && !self.exclude.iter().any(|pattern| pattern.matches(class, method))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(include: &[&str], class: &str, loader: LoaderId, is_shown: bool) {
        let include = include.iter().map(|pattern| pattern.parse().expect("a pattern")).collect();
        let options = Options { include, ..Options::default() };
        assert_eq!(options.shows(class, loader, "m", Caller::Application), is_shown, "{class}");
    }

    #[test]
    fn patterns_of_the_application_leave_the_jdk_to_its_own_option() {
        let application = LoaderId(7);
        let jdk = LoaderId::BOOT;
        assert!(jdk.is_jdk() && !application.is_jdk());
        check(&["shop.**"], "shop/Cart", application, true);
        check(&["shop.**"], "other/Tool", application, false);
        check(&["shop.**"], "java/lang/System", jdk, true);
        check(&["shop.**", "java.util.**"], "java/util/ArrayList", jdk, true);
        check(&["shop.**", "java.util.**"], "java/lang/System", jdk, false);
        check(&["**::get*"], "java/lang/System", jdk, false);
        check(&["java.util.ArrayList"], "other/Tool", application, false);
        check(&[], "java/lang/System", jdk, true);
    }

    #[test]
    fn what_the_jdk_generates_for_reflection_is_not_the_applications() {
        let is_admitted = |class| Options::default().admits_class(class, LoaderId(7), Caller::Application);
        assert!(!is_admitted("jdk/internal/reflect/GeneratedMethodAccessor12"));
        assert!(!is_admitted("jdk/internal/reflect/GeneratedSerializationConstructorAccessor1"));
        assert!(is_admitted("shop/GeneratedMethodAccessor12"));
    }

    #[test]
    fn events_of_the_flight_recorder_are_left_to_it_whatever_is_asked_for() {
        let options = Options { jdk: JdkMethods::All, ..Options::default() };
        let is_admitted = |class| options.admits_class(class, LoaderId::BOOT, Caller::Root);
        assert!(
            !is_admitted("jdk/internal/event/ExceptionThrownEvent") && !is_admitted("jdk/jfr/events/FileReadEvent")
        );
        assert!(is_admitted("jdk/internal/util/Preconditions") && is_admitted("java/lang/Object$1"));
    }
}
