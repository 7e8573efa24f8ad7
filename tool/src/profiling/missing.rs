//! Which calls may be missing, and what else was lost.

use std::collections::BTreeMap;

use headwater_protocol::MethodId;
use headwater_protocol::message::Reveal;
use rustc_hash::FxHashMap;

use super::{counters, facts::Facts};
use crate::callgraph::{self, Missed};
use crate::decode::Decoder;
use crate::profile::{AtLeast, MethodIndex, MethodName, Profile, Tree, Unseen, are_open_calls_in_part};
use crate::report::units::{count, plural, times};

/// How many methods were called.
pub(super) fn called(methods: usize, tree: &Tree) -> usize {
    which_called(methods, tree).into_iter().filter(|called| *called).count()
}

/// For each method whether it was called.
fn which_called(methods: usize, tree: &Tree) -> Vec<bool> {
    let mut called = vec![false; methods];
    tree.nodes.iter().filter(|node| node.calls > 0).for_each(|node| called[node.method.0] = true);
    called
}

/// The methods that may have been called before they were instrumented.
pub(super) fn at_least(facts: &Facts, tree: &Tree) -> Vec<AtLeast> {
    let called = which_called(facts.methods.len(), tree);
    let late = facts.unseen.iter().filter(|unseen| unseen.is_instrumented);
    let callers: FxHashMap<MethodId, &callgraph::Unseen> = late.map(|unseen| (unseen.method, unseen)).collect();
    let of = |(method, missed): &(MethodIndex, Missed)| {
        let unseen = callers.get(&MethodId(method.0 as u32 + 1)).filter(|_| !called[method.0]);
        let callers = unseen.map_or(Vec::new(), |unseen| indexed(&unseen.callers));
        Some(AtLeast { method: *method, since: missed.since, until: missed.until?, callers })
    };
    facts.missed.iter().filter_map(of).collect()
}

fn index(method: MethodId) -> MethodIndex {
    MethodIndex(method.0 as usize - 1)
}

fn indexed(callers: &[(MethodId, f64)]) -> Vec<(MethodIndex, f64)> {
    callers.iter().map(|(caller, calls)| (index(*caller), *calls)).collect()
}

/// The methods that may have been called and never were instrumented. Where the JVM has counted their calls, their callers are expected to have
/// made no more: a call that can run each of a thousand classes runs one of them.
pub(super) fn unseen(unseen: &[callgraph::Unseen], tree: &Tree) -> Vec<Unseen> {
    let mut seen: FxHashMap<MethodIndex, u64> = FxHashMap::default();
    tree.nodes.iter().for_each(|node| *seen.entry(node.method).or_default() += node.calls);
    let of = |unseen: &callgraph::Unseen| {
        let mut callers = indexed(&unseen.callers);
        if let Some(most) = unseen.most {
            let calls = |caller: &MethodIndex| seen.get(caller).map_or(0.0, |calls| *calls as f64);
            let expected: f64 = callers.iter().map(|(caller, each)| calls(caller) * each).sum();
            let part = (f64::from(most) / expected.max(1.0)).min(1.0);
            callers.iter_mut().for_each(|(_, each)| *each *= part);
        }
        Unseen { method: index(unseen.method), callers }
    };
    unseen.iter().filter(|unseen| !unseen.is_instrumented).map(of).collect()
}

/// What a thread waited for; the agent knows methods by their numbers.
fn named(waited_for: &str, methods: &[MethodName]) -> String {
    let number = waited_for.strip_prefix("the callees of method ").and_then(|number| number.parse::<usize>().ok());
    let name = number.and_then(|number| methods.get(number.checked_sub(1)?));
    name.map_or_else(|| waited_for.to_owned(), |name| format!("what {} calls", name.display))
}

/// What threads did not wait for to the end: a few by their names, since a machine that is too slow has hundreds.
fn waited_in_vain(deadlines_passed: &[String], methods: &[MethodName]) -> Option<String> {
    const NAMED: usize = 2;
    let mut missed: BTreeMap<String, u64> = BTreeMap::new();
    for waited_for in deadlines_passed {
        *missed.entry(named(waited_for, methods)).or_default() += 1;
    }
    let others = missed.len().saturating_sub(NAMED) as u64;
    let mut waits: Vec<String> = missed.into_keys().take(NAMED).collect();
    if others > 0 {
        waits.push(plural(others, "other", "others"));
    }
    let last = waits.pop()?;
    let waits = if waits.is_empty() { last } else { format!("{} and {last}", waits.join(", ")) };
    Some(format!(
        "threads of the target went on without waiting any longer, {}, for {waits}: calls may be missing. The tool, or the \
         JVM, had too little of the processors",
        times(deadlines_passed.len() as u64)
    ))
}

/// Why so few classes were changed at once.
fn held_back(classes: usize, facts: &Facts) -> String {
    let classes = plural(classes as u64, "class", "classes");
    if let [class, others @ ..] = &facts.too_much[..] {
        let others = if others.is_empty() { "" } else { ", or others" };
        return format!(
            "the JVM discards compiled code for each class that is changed, so {classes} were at once, for the program not to be slow; for {class}{others} alone \
             it would be slow for too long, so that only --gentle off counts it"
        );
    }
    if facts.remembered.has_includes() {
        return format!(
            "the JVM discards compiled code for each class that is changed, so {classes} were at once, for the program not to be slow. Record for longer"
        );
    }
    format!(
        "the JVM discards compiled code for each class that is changed, so {classes} were at once, for the program not to be slow. Name what is to be counted \
         (--include 'com.acme.**'), or record for longer"
    )
}

/// What is to be said of what was missed or lost.
pub(super) fn warnings(facts: &Facts, decoder: &Decoder, meaningless: u64) -> Vec<String> {
    let mut warnings = Vec::new();
    let late = facts.discovery.late;
    if late > 0 {
        let (methods, never) = (plural(late as u64, "method", "methods"), facts.never_instrumented().count());
        warnings.push(match facts.discovery.reveal {
            Reveal::Background => format!(
                "the program did not wait for instrumentation (--reveal background): the first calls of up to {methods} may be \
                 missing"
            ),
            Reveal::Blocking if never == 0 => format!(
                "the program did not wait until all methods were instrumented: calls of up to {methods} may be missing, from \
                 before that. Record for longer, or, where the program may be held up, with --gentle off"
            ),
            Reveal::Blocking => match facts.held_back_to {
                Some(classes) => format!(
                    "the program did not wait until all methods were instrumented: calls of up to {methods} may be missing, and {} of them never \
                     were: {}",
                    count(never as u64),
                    held_back(classes, facts)
                ),
                None => format!(
                    "the program did not wait until all methods were instrumented: calls of up to {methods} may be missing, and {} of them never \
                     were. Record for longer, or, where the program may be held up, with --gentle off",
                    count(never as u64)
                ),
            },
        });
    }
    if are_open_calls_in_part(&counters::waits(decoder)) {
        warnings.push(
            "a call that had begun before the profile makes so many others that they were recorded in part: its thread looks at its stack before each, and does \
             so for a twentieth of the time only. Counts below it are too low, and callers may be missing. Profile whole calls, with --calls"
                .to_owned(),
        );
    }
    warnings.extend(waited_in_vain(&facts.deadlines_passed, &facts.methods));
    warnings.extend_from_slice(&facts.remarks);
    if let Some(reason) = facts.uncounted.first() {
        let threads = plural(facts.uncounted.len() as u64, "thread", "threads");
        warnings.push(format!("what the kernel counts is not known of {threads}: {reason}"));
    }
    if facts.lost > 0 {
        warnings.push(format!(
            "events were lost ({}): calls and times are too low. A larger --buffer, or a root with fewer calls below it, helps",
            count(facts.lost)
        ));
    }
    if decoder.lost_handovers() > 0 {
        warnings.push(format!(
            "of {} tasks it is not known which call handed them over: they are left out",
            decoder.lost_handovers()
        ));
    }
    warnings.extend(uncounted(facts, decoder));
    if meaningless > 0 {
        warnings.push(format!("event words had no meaning ({})", count(meaningless)));
    }
    warnings
}

/// Calls that had not ended with the recording have handed over no bytecodes; where there are few of them, or none, nothing.
fn uncounted(facts: &Facts, decoder: &Decoder) -> Option<String> {
    /// A hundredth of the root calls.
    const FEW: u64 = 100;
    let [threads, frames] = decoder.open_frames();
    let is_told = facts.history.now().bytecodes && threads * FEW > decoder.roots_entered();
    let (calls, of_threads) = (plural(frames, "call", "calls"), plural(threads, "thread", "threads"));
    is_told.then(|| {
        format!(
            "bytecodes of {calls} of {of_threads} are missing, which had not ended with the recording. Record whole calls (--calls N), and of a \
             program that ends by System.exit a root that returns before"
        )
    })
}

/// What is said when recording ended before so many calls were there.
pub(crate) fn too_few(wanted: Option<u64>, profile: &Profile) -> Option<String> {
    let calls = profile.roots.iter().map(|root| root.calls).sum();
    let wanted = wanted.filter(|wanted| *wanted > calls)?;
    let wanted = plural(wanted, "call", "calls");
    Some(format!("--calls asks for {wanted}, and only {} came before recording ended", count(calls)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Node;

    #[test]
    fn a_method_that_was_waited_for_has_its_name() {
        let methods = [MethodName { machine: "a.B.c()V".to_owned(), display: "a.B.c()".to_owned() }];
        assert_eq!(named("the callees of method 1", &methods), "what a.B.c() calls");
        for other in ["the callees of method 2", "the callees of method 0", "class a/B"] {
            assert_eq!(named(other, &methods), other);
        }
    }

    #[test]
    fn what_never_was_instrumented_was_called_as_often_as_the_jvm_has_counted_at_most() {
        let node = |method, calls| Node { calls, ..Node::empty(MethodIndex(method)) };
        let tree = Tree::of(vec![node(0, 60), node(0, 30), node(1, 10)]);
        let expected = |most| {
            let callers = vec![(MethodId(1), 1.0), (MethodId(2), 0.5)];
            let of = callgraph::Unseen { method: MethodId(3), is_instrumented: false, callers, most };
            unseen(&[of], &tree)[0].callers.iter().map(|(_, calls)| *calls).collect::<Vec<f64>>()
        };
        assert_eq!(expected(None), [1.0, 0.5]);
        assert_eq!(expected(Some(95)), [1.0, 0.5]);
        assert_eq!(expected(Some(19)), [0.2, 0.1]);
    }

    #[test]
    fn of_many_waits_in_vain_a_few_are_named() {
        let waits = |classes: u32| {
            let deadlines_passed: Vec<String> = (0..classes).flat_map(|i| vec![format!("class C{i:02}"); 2]).collect();
            waited_in_vain(&deadlines_passed, &[])
        };
        assert_eq!(waits(0), None);
        for (classes, told) in [
            (1, "2 times, for class C00"),
            (2, "4 times, for class C00 and class C01"),
            (1_205, "2,410 times, for class C00, class C01 and 1,203 others"),
        ] {
            let warning = waits(classes).unwrap();
            assert!(warning.contains(&format!("any longer, {told}: calls may be missing")), "{warning}");
        }
    }
}
