//! Calls that began before recording: a root that a thread was in already when its code was replaced, and what it had called.
//!
//! All methods from the root on up the stack are in the call graph and have been entered, whether the class hierarchy explains
//! how one came to the next or not (by reflection, by code outside the filter). And before anything is instrumented, and again whenever there is a choice,
//! stacks are looked at: what was seen there below a root will be entered again, and is selected with the roots.

use headwater_protocol::message::{MethodRef, StackSamples, ThreadStack};
use headwater_protocol::{MethodId, ThreadId};
use headwater_terms::reach::{Trigger, Way};
use rustc_hash::{FxHashMap, FxHashSet};

use super::compiled::Compiled;
use super::filter::Caller;
use super::known::Known;
use super::methods::Methods;
use super::mirror::{ClassKey, Signature};
use super::reachable::Reachable;
use super::source::Source;

/// A thread that was in a root when recording began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenThread {
    /// The thread.
    pub thread: ThreadId,
    /// Its name.
    pub name: String,
    /// The instrumented methods that it was in, the outermost first.
    pub calls: Vec<MethodId>,
}

/// A method that is being executed, or was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OnStack {
    class: ClassKey,
    signature: Signature,
    caller: Caller,
    /// The one below it on the first such stack: its place among them, before this one's.
    below: Option<usize>,
}

/// Those of some stacks, as they lie there: what leads to a method is selected before it.
#[derive(Clone, Debug, Default)]
pub(super) struct OnStacks {
    all: Vec<OnStack>,
    places: FxHashMap<(ClassKey, Signature, Caller), usize>,
}

impl OnStacks {
    /// One more, which the method in a place called, or which is the outermost: its place, unless its class is not known.
    fn add(&mut self, known: &Known, method: &MethodRef, by: Option<usize>) -> Option<usize> {
        let class = known.mirrors.by_id(method.class)?;
        let signature = known.mirrors.intern_signature(&method.name, &method.descriptor);
        Some(self.add_of(known, (class, signature), by))
    }

    fn add_of(&mut self, known: &Known, (class, signature): (ClassKey, Signature), by: Option<usize>) -> usize {
        let loader = |at: usize| known.mirrors.get(self.all[at].class).loader;
        let caller = by.map_or(Caller::Root, |by| known.options.caller(loader(by)));
        *self.places.entry((class, signature, caller)).or_insert_with(|| {
            self.all.push(OnStack { class, signature, caller, below: by });
            self.all.len() - 1
        })
    }

    /// Those of threads that are inside roots already.
    pub(super) fn of(known: &Known, stacks: &[ThreadStack]) -> OnStacks {
        let mut methods = OnStacks::default();
        for stack in stacks {
            // The outermost is a root.
            let mut by = None;
            for frame in &stack.frames {
                by = methods.add(known, &frame.method, by).or(by);
            }
        }
        methods
    }

    /// By their places.
    pub(super) fn places(&self) -> std::ops::Range<usize> {
        0..self.all.len()
    }
}

/// What was seen to run below roots, on stacks that were looked at.
#[derive(Debug, Default)]
pub(super) struct Ran {
    /// On how many stacks classes were.
    classes: FxHashMap<ClassKey, u32>,
    /// In how many samples methods were.
    sampled: FxHashMap<(ClassKey, Signature), u32>,
    /// Methods that were seen there.
    seen: OnStacks,
    /// In which code it was, as far as samples tell.
    pub(super) compiled: Compiled,
}

impl Ran {
    /// On how many stacks below roots a class was seen.
    pub(super) fn stacks(&self, class: ClassKey) -> u32 {
        self.classes.get(&class).copied().unwrap_or(0)
    }

    /// Whether any looks have seen something there.
    pub(super) fn has_any(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Threads were seen below roots in these calls.
    pub(super) fn add(&mut self, known: &Known, seen: &StackSamples) {
        for (class, stacks) in &seen.classes {
            if let Some(key) = known.mirrors.by_id(*class) {
                *self.classes.entry(key).or_default() += stacks;
            }
        }
        let mut places: Vec<Option<usize>> = Vec::with_capacity(seen.calls.len());
        for call in &seen.calls {
            let by = call.by.and_then(|by| *places.get(by as usize)?);
            let method = seen.methods.get(call.method as usize);
            places.push(method.and_then(|method| self.seen.add(known, method, by)).or(by));
        }
    }

    /// The same by samples, which name methods (`a.b.C.m(I)V`): each stack's are these, the outermost first.
    pub(super) fn add_samples(
        &mut self,
        known: &Known,
        methods: &Methods,
        names: &[String],
        stacks: impl Iterator<Item: Iterator<Item = usize>>,
    ) {
        let roots = methods.all().iter().filter(|method| !method.root_of.is_empty());
        let roots: FxHashSet<String> = roots.map(|method| method.java_name()).collect();
        let methods: Vec<Option<(ClassKey, Signature)>> = names.iter().map(|name| known.only_named(name)).collect();
        let is_root: Vec<bool> = names.iter().map(|name| roots.contains(name)).collect();
        for stack in stacks {
            let below = stack.skip_while(|method| !is_root.get(*method).is_some_and(|is_root| *is_root));
            let mut by = None;
            let stack: Vec<(ClassKey, Signature)> = below.filter_map(|method| *methods.get(method)?).collect();
            for method in &stack {
                by = Some(self.seen.add_of(known, *method, by));
            }
            self.compiled.add_sample(stack.iter().rev().copied());
            let on_it: FxHashSet<(ClassKey, Signature)> = stack.into_iter().collect();
            on_it.iter().for_each(|method| *self.sampled.entry(*method).or_default() += 1);
            let classes: FxHashSet<ClassKey> = on_it.into_iter().map(|(class, _)| class).collect();
            classes.into_iter().for_each(|class| *self.classes.entry(class).or_default() += 1);
        }
    }

    /// Methods that were in one sample alone, and would not have probes without it, or not with the first: their code does not lead to them, or nobody else was
    /// seen in their class.
    pub(super) fn by_chance(&self, methods: &Methods) -> impl Iterator<Item = MethodId> {
        let once = self.sampled.iter().filter(|(_, samples)| **samples == 1);
        once.filter_map(|((key, signature), _)| {
            let id = methods.of(*key, *signature)?;
            let is_found_so = methods.record(id)?.history.trigger == Trigger::Seen;
            (is_found_so || self.classes.get(key) == Some(&1)).then_some(id)
        })
    }

    /// Selects what was seen: it will be entered.
    pub(super) fn expect_seen(&self, known: &Known, methods: &mut Methods, reachable: &mut Reachable) {
        for at in self.seen.places() {
            if let Some(id) = reachable.select_on_stack(known, methods, &self.seen, at) {
                methods.raise(id, 1.0);
                methods.expect(id);
            }
        }
    }
}

impl Known {
    /// The method of a name, where one class has it. Samples do not tell namesakes from one another.
    fn only_named(&self, name: &str) -> Option<(ClassKey, Signature)> {
        let (path, descriptor) = name.split_at(name.find('(')?);
        let (class, method) = path.rsplit_once('.')?;
        let &[class] = self.mirrors.named(&class.replace('.', "/")) else { return None };
        Some((class, self.mirrors.intern_signature(method, descriptor)))
    }
}

impl Methods {
    /// The methods that are instrumented as roots. Of a root that is some lines, no stack says whether a thread is in them.
    pub(super) fn instrumented_roots(&self, known: &Known) -> Vec<MethodRef> {
        let roots = self.all().iter().filter(|method| !method.root_of.is_empty() && method.lines.is_none());
        roots.filter_map(|method| self.reference(known, method.id)).collect()
    }

    /// Names an instrumented method as the target does.
    pub(super) fn reference(&self, known: &Known, method: MethodId) -> Option<MethodRef> {
        let record = self.record(method).filter(|record| record.refused.is_none() && !record.is_native)?;
        let class = known.mirrors.get(record.key).id?;
        Some(MethodRef { class, name: record.name.to_string(), descriptor: record.descriptor.to_string() })
    }

    /// The calls on these stacks that began before their methods were instrumented.
    pub(super) fn open_threads(&self, known: &Known, stacks: &[ThreadStack]) -> Vec<OpenThread> {
        let open = |stack: &ThreadStack| {
            let replaced = stack.frames.iter().filter(|frame| frame.replaced);
            let calls = replaced.filter_map(|frame| {
                let key = known.mirrors.by_id(frame.method.class)?;
                let signature = known.mirrors.known_signature(&frame.method.name, &frame.method.descriptor)?;
                let id = self.of(key, signature)?;
                self.record(id).filter(|record| record.refused.is_none() && !record.is_native)?;
                Some(id)
            });
            OpenThread { thread: stack.thread, name: stack.name.clone(), calls: calls.collect() }
        };
        stacks.iter().map(open).filter(|thread| !thread.calls.is_empty()).collect()
    }
}

impl Reachable {
    /// Selects a method that is, or was, in this place of a stack.
    pub(super) fn select_on_stack(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        on: &OnStacks,
        at: usize,
    ) -> Option<MethodId> {
        let OnStack { class: key, signature, caller, below } = on.all[at];
        let mirror = known.mirrors.get(key);
        if !known.options.admits_class(&mirror.name, mirror.loader, caller) {
            return None;
        }
        match known.mirrors.method(key, signature) {
            None if known.mirrors.methods(key).is_none() => {
                known.need(key);
                None
            }
            Some(method) if method.has_code() => {
                // What is between them is not in the graph: the JDK's, or hidden.
                let mut below = std::iter::successors(below, |at| on.all[*at].below).map(|at| on.all[at]);
                let by = below.find_map(|it| methods.of(it.class, it.signature));
                methods.set_trigger(Trigger::Seen);
                self.select(known, methods, key, signature, Source::new(caller, by, Way::Open))
            }
            _ => None,
        }
    }
}
