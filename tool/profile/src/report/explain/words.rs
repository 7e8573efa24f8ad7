//! Ways and occasions in words.

use super::Step;
use headwater_terms::reach::{Trigger, Way};

/// How a method follows from the one before it on the way.
pub(super) fn how(step: &Step) -> String {
    let by_type = |with: &str, without: &str| match &step.through {
        Some(name) if !is_own(step, name) => with.replace("{}", name),
        _ => without.to_owned(),
    };
    match step.way {
        Way::Root => "named by the root".to_owned(),
        Way::Direct => "called directly".to_owned(),
        Way::Virtual => by_type("virtual call of a method of {}, which may run it", "virtual call"),
        Way::Received => {
            by_type("virtual call, made on an object of {}", "virtual call, made on an object of its class")
        }
        Way::Handle => "a lambda or method reference is made of it".to_owned(),
        Way::Lambda => {
            by_type("virtual call of a method of {}; this lambda's object may be there", "lambda, made elsewhere")
        }
        Way::Bootstrap => "called by the JVM to link an invokedynamic call site".to_owned(),
        Way::Initializer => "initialises a class that may be used first".to_owned(),
        Way::Loader => "called by the JVM to find a class".to_owned(),
        Way::Callback => by_type(
            "may be called back by code without probes, which gets a {}",
            "may be called back by code without probes",
        ),
        Way::Unnamed => "may be called back by code without probes, on an object that no method here names".to_owned(),
        Way::Mentioned => "may be called back since a class of the JDK's that names it was loaded".to_owned(),
        Way::Hidden => by_type("called by way of {}, which has no probes", "called by way of code without probes"),
        Way::Reflected => by_type(
            "a method of {}, which may run it, was called by reflection, a proxy or a method handle",
            "called by reflection, a proxy or a method handle",
        ),
        Way::Open => "was on the stack of a thread".to_owned(),
        Way::Override => "overrides a method, in a class loaded for what runs below the root".to_owned(),
        Way::Native => "native; the calls of it have probes".to_owned(),
        Way::Total => "everything is instrumented (--scheme total)".to_owned(),
        Way::Unknown => "in a way that a later Headwater knows".to_owned(),
    }
}

/// Whether a type is the method's own class.
fn is_own(step: &Step, name: &str) -> bool {
    let head = step.machine.split('(').next().unwrap_or_default();
    head.rsplit_once('.').is_some_and(|(class, _)| class == name)
}

/// What a method was found upon; `by` leads to it. `None` is before it was known that it does.
pub(super) fn when(trigger: Option<Trigger>, by: Option<&str>) -> String {
    let by = by.unwrap_or("a method below the root");
    let Some(trigger) = trigger else {
        return "with all that code without probes may call back on objects that no method here names; this way became known later"
            .to_owned();
    };
    match trigger {
        Trigger::Start => "with the roots".to_owned(),
        Trigger::Entered => format!("when {by} was entered for the first time"),
        Trigger::Passed => format!("when {by} came to an unlikely call for the first time"),
        Trigger::Used => "when it was about to be called".to_owned(),
        Trigger::Seen => "when it was seen to run".to_owned(),
        Trigger::Open => format!("because a thread was in {by} when the profile began"),
        Trigger::Loaded => "when a class was loaded".to_owned(),
        Trigger::Ahead => format!("ahead: a hotswap was due, and {by} was likely to be entered"),
        Trigger::Foreseen => format!("with its class, which was rewritten anyway: {by} is in it"),
        Trigger::Later => format!("once the code of {by}, or what it calls, was known"),
    }
}
