//! Calls that began before recording: a root that a thread was in already when its code was replaced, and what it had called.
//!
//! All methods from the root on up the stack are in the call graph and have been entered, whether the class hierarchy explains
//! how one came to the next or not (by reflection, by code outside the filter).

use headwater_protocol::message::{MethodRef, ThreadStack};
use headwater_protocol::{MethodId, ThreadId};
use headwater_terms::reach::{Trigger, Way};
use rustc_hash::FxHashMap;

use super::filter::Caller;
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

/// A method that is being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnStack {
    class: ClassKey,
    signature: Signature,
    caller: Caller,
    /// The one below it on the first such stack: its place among them, before this one's.
    below: Option<usize>,
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
        // As they lie on the stacks: what leads to a method is selected before it.
        let mut methods: Vec<OnStack> = Vec::new();
        let mut known = FxHashMap::default();
        for stack in stacks {
            // The outermost is a root.
            let (mut caller, mut below) = (Caller::Root, None);
            for frame in &stack.frames {
                let Some(class) = self.known.mirrors.by_id(frame.method.class) else { continue };
                let signature = self.known.mirrors.intern_signature(&frame.method.name, &frame.method.descriptor);
                let place = *known.entry((class, signature, caller)).or_insert_with(|| {
                    methods.push(OnStack { class, signature, caller, below });
                    methods.len() - 1
                });
                caller = self.known.options.caller(self.known.mirrors.get(class).loader);
                below = Some(place);
            }
        }
        self.begin(Work::Open(methods))
    }

    /// Selects methods that are being executed, and takes them for entered.
    pub(super) fn enter_open(&mut self, methods: &[OnStack]) {
        for &OnStack { class: key, signature, caller, below } in methods {
            let mirror = self.known.mirrors.get(key);
            if !self.known.options.admits_class(&mirror.name, mirror.loader, caller) {
                continue;
            }
            match self.known.mirrors.method(key, signature) {
                None if self.known.mirrors.methods(key).is_none() => self.known.need(key),
                Some(method) if method.has_code() => {
                    // What is between them is not in the graph: the JDK's, or hidden.
                    let mut below = std::iter::successors(below, |at| methods[*at].below).map(|at| methods[at]);
                    let by = below.find_map(|it| self.methods.of(it.class, it.signature));
                    self.methods.set_trigger(Trigger::Seen);
                    let selected = self.select(key, signature, Source::new(caller, by, Way::Open));
                    self.methods.set_trigger(Trigger::Open);
                    if let Some(id) = selected {
                        self.enter(id);
                        // The code that is being executed has none.
                        self.plan.guards.unguard(&mut self.reachable.due, id);
                    }
                }
                _ => {}
            }
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
