//! Calls that began before recording: a root that a thread was in already when its code was replaced, and what it had called.
//!
//! All methods from the root on up the stack are in the call graph and have been entered, whether the class hierarchy explains
//! how one came to the next or not (by reflection, by code outside the filter). And before anything is instrumented, and again whenever there is a choice,
//! stacks are looked at: what was seen there below a root will be entered again, and is selected with the roots.

use headwater_protocol::message::{MethodRef, Seen, ThreadStack};
use headwater_protocol::{MethodId, ThreadId};
use headwater_terms::reach::{Trigger, Way};
use rustc_hash::{FxHashMap, FxHashSet};

use super::filter::Caller;
use super::known::Known;
use super::mirror::{ClassKey, Signature};
use super::source::Source;
use super::{CallGraph, Step, Work};

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
    fn add(&mut self, known: &mut Known, method: &MethodRef, by: Option<usize>) -> Option<usize> {
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
}

impl CallGraph {
    /// The methods that are instrumented as roots. Of a root that is some lines, no stack says whether a thread is in them.
    pub fn instrumented_roots(&self) -> Vec<MethodRef> {
        let roots = self.methods.all().iter().filter(|method| !method.root_of.is_empty() && method.lines.is_none());
        roots.filter_map(|method| self.reference(method.id)).collect()
    }

    /// Names an instrumented method as the target does.
    pub fn reference(&self, method: MethodId) -> Option<MethodRef> {
        let record = self.methods.record(method).filter(|record| record.refused.is_none() && !record.is_native)?;
        let class = self.known.mirrors.get(record.key).id?;
        Some(MethodRef { class, name: record.name.to_string(), descriptor: record.descriptor.to_string() })
    }

    /// These threads are inside roots already.
    pub fn open_calls(&mut self, stacks: &[ThreadStack]) -> Step {
        let mut methods = OnStacks::default();
        for stack in stacks {
            // The outermost is a root.
            let mut by = None;
            for frame in &stack.frames {
                by = methods.add(&mut self.known, &frame.method, by).or(by);
            }
        }
        self.begin(Work::Open(methods))
    }

    /// Threads were seen below roots in these calls.
    pub fn ran_below_roots(&mut self, seen: &Seen) {
        for (class, stacks) in &seen.classes {
            if let Some(key) = self.known.mirrors.by_id(*class) {
                *self.plan.ran.entry(key).or_default() += stacks;
            }
        }
        let mut places: Vec<Option<usize>> = Vec::with_capacity(seen.calls.len());
        for call in &seen.calls {
            let by = call.by.and_then(|by| *places.get(by as usize)?);
            let method = seen.methods.get(call.method as usize);
            places.push(method.and_then(|method| self.plan.seen.add(&mut self.known, method, by)).or(by));
        }
    }

    /// The same by samples, which name methods (`a.b.C.m(I)V`): each stack's are these, the outermost first.
    pub fn ran_in_samples(&mut self, names: &[String], stacks: impl Iterator<Item: Iterator<Item = usize>>) {
        let roots = self.methods.all().iter().filter(|method| !method.root_of.is_empty());
        let roots: FxHashSet<String> = roots.map(|method| method.java_name()).collect();
        let methods: Vec<Option<(ClassKey, Signature)>> = names.iter().map(|name| self.only_named(name)).collect();
        let is_root: Vec<bool> = names.iter().map(|name| roots.contains(name)).collect();
        for stack in stacks {
            let below = stack.skip_while(|method| !is_root.get(*method).is_some_and(|is_root| *is_root));
            let mut by = None;
            let mut on_it: FxHashSet<(ClassKey, Signature)> = FxHashSet::default();
            for method in below.filter_map(|method| *methods.get(method)?) {
                by = Some(self.plan.seen.add_of(&self.known, method, by));
                on_it.insert(method);
            }
            on_it.iter().for_each(|method| *self.plan.sampled.entry(*method).or_default() += 1);
            let classes: FxHashSet<ClassKey> = on_it.into_iter().map(|(class, _)| class).collect();
            classes.into_iter().for_each(|class| *self.plan.ran.entry(class).or_default() += 1);
        }
    }

    /// Methods that were in one sample alone, and would not have probes without it, or not with the first: their code does not lead to them, or nobody else was
    /// seen in their class.
    pub fn chosen_by_chance(&self) -> impl Iterator<Item = MethodId> {
        let once = self.plan.sampled.iter().filter(|(_, samples)| **samples == 1);
        once.filter_map(|((key, signature), _)| {
            let id = self.methods.of(*key, *signature)?;
            let is_found_so = self.methods.record(id)?.history.trigger == Trigger::Seen;
            (is_found_so || self.plan.ran.get(key) == Some(&1)).then_some(id)
        })
    }

    /// The method of a name, where one class has it. Samples do not tell namesakes from one another.
    fn only_named(&mut self, name: &str) -> Option<(ClassKey, Signature)> {
        let (path, descriptor) = name.split_at(name.find('(')?);
        let (class, method) = path.rsplit_once('.')?;
        let &[class] = self.known.mirrors.named(&class.replace('.', "/")) else { return None };
        Some((class, self.known.mirrors.intern_signature(method, descriptor)))
    }

    /// Selects what was seen, if it is not selected yet.
    pub fn select_seen(&mut self) -> Step {
        self.begin(Work::Seen)
    }

    /// Selects methods that are being executed, and takes them for entered.
    pub(super) fn enter_open(&mut self, methods: &OnStacks) {
        for at in 0..methods.all.len() {
            if let Some(id) = self.select_on_stack(methods, at) {
                self.methods.set_trigger(Trigger::Open);
                self.enter(id);
                // The code that is being executed has none.
                self.plan.guards.unguard(&mut self.reachable.due, id);
            }
        }
    }

    /// Selects methods that were seen to run: they will be entered.
    pub(super) fn expect_seen(&mut self) {
        let seen = std::mem::take(&mut self.plan.seen);
        for at in 0..seen.all.len() {
            if let Some(id) = self.select_on_stack(&seen, at) {
                self.methods.raise(id, 1.0);
                self.methods.expect(id);
            }
        }
        self.plan.seen = seen;
    }

    fn select_on_stack(&mut self, methods: &OnStacks, at: usize) -> Option<MethodId> {
        let OnStack { class: key, signature, caller, below } = methods.all[at];
        let mirror = self.known.mirrors.get(key);
        if !self.known.options.admits_class(&mirror.name, mirror.loader, caller) {
            return None;
        }
        match self.known.mirrors.method(key, signature) {
            None if self.known.mirrors.methods(key).is_none() => {
                self.known.need(key);
                None
            }
            Some(method) if method.has_code() => {
                // What is between them is not in the graph: the JDK's, or hidden.
                let mut below = std::iter::successors(below, |at| methods.all[*at].below).map(|at| methods.all[at]);
                let by = below.find_map(|it| self.methods.of(it.class, it.signature));
                self.methods.set_trigger(Trigger::Seen);
                self.select(key, signature, Source::new(caller, by, Way::Open))
            }
            _ => None,
        }
    }

    /// The calls on these stacks that began before their methods were instrumented.
    pub fn open_threads(&self, stacks: &[ThreadStack]) -> Vec<OpenThread> {
        let open = |stack: &ThreadStack| {
            let replaced = stack.frames.iter().filter(|frame| frame.replaced);
            let calls = replaced.filter_map(|frame| {
                let key = self.known.mirrors.by_id(frame.method.class)?;
                let signature = self.known.mirrors.known_signature(&frame.method.name, &frame.method.descriptor)?;
                let id = self.methods.of(key, signature)?;
                self.methods.record(id).filter(|record| record.refused.is_none() && !record.is_native)?;
                Some(id)
            });
            OpenThread { thread: stack.thread, name: stack.name.clone(), calls: calls.collect() }
        };
        stacks.iter().map(open).filter(|thread| !thread.calls.is_empty()).collect()
    }
}
