//! How a method comes to be among those that may run below a root, and what keeps one from having probes.

use serde::{Deserialize, Serialize};

/// A method is told of no more callees without probes than this that it may call through others without.
pub const MOST_REACHED: usize = 1_000;

/// By what a method is reached, from the one that leads to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Way {
    /// A root pattern names it.
    Root,
    /// A static or special call.
    Direct,
    /// A virtual or interface call, which runs it on objects of a class that is loaded.
    Virtual,
    /// A virtual call that was about to be made on an object of such a class.
    Received,
    /// A lambda or a method reference is made of it.
    Handle,
    /// The body of a lambda that somebody else made.
    Lambda,
    /// An `invokedynamic` call site, which it links.
    Bootstrap,
    /// The initialiser of a class that is used.
    Initializer,
    /// A class loader that has to find a class.
    Loader,
    /// A call back, on an object that is given to code which is not instrumented.
    Callback,
    /// A call back on an object that nobody names.
    Unnamed,
    /// A call back that was withheld until a class of the JDK named it.
    Mentioned,
    /// Code that the filters hide comes to it.
    Hidden,
    /// Reflection, a proxy or a method handle.
    Reflected,
    /// Another method is above it on the stack of a thread that was there when we came.
    Open,
    /// It overrides a method, in a class that is loaded for the graph.
    Override,
    /// A call of a native method, which is probed in its place.
    Native,
    /// Everything is instrumented.
    Total,
    /// One that a later version knows.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Way {
    /// Its name in reports for machines.
    pub fn name(self) -> &'static str {
        match self {
            Way::Root => "root",
            Way::Direct => "direct",
            Way::Virtual => "virtual",
            Way::Received => "received",
            Way::Handle => "handle",
            Way::Lambda => "lambda",
            Way::Bootstrap => "bootstrap",
            Way::Initializer => "initializer",
            Way::Loader => "loader",
            Way::Callback => "callback",
            Way::Unnamed => "unnamed",
            Way::Mentioned => "mentioned",
            Way::Hidden => "hidden",
            Way::Reflected => "reflected",
            Way::Open => "open",
            Way::Override => "override",
            Way::Native => "native",
            Way::Total => "total",
            Way::Unknown => "unknown",
        }
    }
}

/// What a method is found upon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Trigger {
    /// The roots are selected.
    Start,
    /// The method that leads to it is entered for the first time.
    Entered,
    /// That one comes to an unlikely call for the first time.
    Passed,
    /// It is about to be called: an object or a reflective call has told so.
    Used,
    /// It was seen to run: on a stack, or by the JVM's counter.
    Seen,
    /// The method that leads to it was on a stack when the profile began.
    Open,
    /// A class is loaded.
    Loaded,
    /// Look-ahead: a hotswap is due anyway, and the method that leads to it will probably be entered.
    Ahead,
    /// Its class is rewritten anyway, and the method that leads to it is in the same one.
    Foreseen,
    /// Something else has become known that was waited for.
    #[default]
    #[serde(other)]
    Later,
}

impl Trigger {
    /// Its name in reports for machines.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::Start => "start",
            Trigger::Entered => "entered",
            Trigger::Passed => "passed",
            Trigger::Used => "used",
            Trigger::Seen => "seen",
            Trigger::Open => "open",
            Trigger::Loaded => "loaded",
            Trigger::Ahead => "ahead",
            Trigger::Foreseen => "foreseen",
            Trigger::Later => "later",
        }
    }
}

/// Why a method that is reached has no probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Obstacle {
    /// It is the JDK's, of which no such methods are wanted.
    Jdk,
    /// The filters leave it out.
    Filtered,
    /// It only hands a value on, and such are left out.
    Trivial,
    /// It is native.
    Native,
    /// It is abstract.
    Abstract,
    /// The JVM does not let its class be changed.
    Unmodifiable,
    /// The JVM, or the rewriter, has refused it.
    Refused,
    /// There are no more method numbers.
    Numbers,
    /// It has never run, only code that is not instrumented may call it, and its counter is looked at.
    Watched,
    /// No class of the JDK's that is loaded can call it.
    Withheld,
    /// It is behind an unlikely call that nobody has come to.
    Guarded,
    /// It has never run, and a virtual call tells when it is about to be made on such an object.
    Spared,
    /// A thread was in its class's code all the time, and only objects that nobody names lead to it.
    Running,
    /// No class of the name is loaded.
    NotLoaded,
    /// Its class is loaded, and not linked.
    NotLinked,
    /// Recording ended before its turn came: the limits let the JVM be stopped for so long only.
    Limits,
    /// Its probes cost more than the budget allowed.
    Dropped,
    /// One that a later version knows.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Obstacle {
    /// Its name in reports for machines.
    pub fn name(self) -> &'static str {
        match self {
            Obstacle::Jdk => "jdk",
            Obstacle::Filtered => "filtered",
            Obstacle::Trivial => "trivial",
            Obstacle::Native => "native",
            Obstacle::Abstract => "abstract",
            Obstacle::Unmodifiable => "unmodifiable",
            Obstacle::Refused => "refused",
            Obstacle::Numbers => "numbers",
            Obstacle::Watched => "watched",
            Obstacle::Withheld => "withheld",
            Obstacle::Guarded => "guarded",
            Obstacle::Spared => "spared",
            Obstacle::Running => "running",
            Obstacle::NotLoaded => "not-loaded",
            Obstacle::NotLinked => "not-linked",
            Obstacle::Limits => "limits",
            Obstacle::Dropped => "dropped",
            Obstacle::Unknown => "unknown",
        }
    }
}
