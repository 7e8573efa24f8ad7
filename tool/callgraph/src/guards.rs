//! Calls that are not expected to be made.
//!
//! A method's callees are instrumented when it is entered, and those of a place that it never comes to, an error message's say, in
//! vain. So such a call is *guarded*: the caller's code gets one more probe, before the call, that tells when it is about to be made
//! for the first time; what it can run is selected then, and the thread waits for it as for any first call. Nothing is missed, and nothing
//! is instrumented that lies behind a place where nobody goes.
//!
//! A guard that is passed takes a question and perhaps a redefinition of its own, so only calls that are unlikely are guarded: where
//! an exception is thrown or caught, and, in a method that has run before, where there are ways around a call of something that never has.
//! Where it is only known what the JIT compiler has compiled, that is the evidence, as long as redefinitions are cheap here. One guard stands
//! for all calls of a target in a method.
//!
//! Of a virtual call that is made, but on objects of a few of the classes that it could be made on, what runs on the others is guarded by
//! what it is made on: see [`receivers`](super::receivers).
//!
//! Why so, and at what cost: docs/decisions/guards.md.

use std::sync::Arc;

use headwater_protocol::MethodId;
use headwater_rewriter::{CallSite, CallSites, ProbeSite, Request, call_sites};
use headwater_terms::Scheme;
use headwater_terms::reach::Way;
use rustc_hash::FxHashMap;

use super::filter::Caller;
use super::known::{Known, Rewritten};
use super::likely::Reading;
use super::mirror::ClassKey;
use super::policy::{HUGE, MANY_BEHIND, MOST_GUARDS, Mechanism, RECEIVER_BYTES};
use super::reachable::Reachable;
use super::receivers::Receivers;
use super::source::{Named, Source};

/// A probe before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarded {
    /// The caller, in the class file's order.
    pub method_index: usize,
    /// Of the call, in its code.
    pub offset: u32,
    /// What the probe tells.
    pub(super) told: Told,
    /// The caller.
    method: MethodId,
}

impl Guarded {
    /// What is asked of the rewriter for it.
    pub fn request(&self) -> Request {
        let &Guarded { method_index, offset, told, .. } = self;
        match told {
            Told::Passed(guard) => Request { method_index, id: guard.0, place: ProbeSite::Before { offset } },
            Told::Receiver(call) => Request { method_index, id: call, place: ProbeSite::Receiver { offset } },
        }
    }
}

/// What a guard tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// That it is passed, by its number; methods have others.
    Passed(MethodId),
    /// What the call is made on, and which call.
    Receiver(u32),
}

/// The calls of a target in a method.
#[derive(Clone, Debug)]
pub(super) struct Called {
    pub(super) owner: Arc<str>,
    pub(super) name: Arc<str>,
    pub(super) descriptor: Arc<str>,
}

impl Called {
    fn by(call: &CallSite) -> Called {
        Called { owner: call.owner.clone(), name: call.name.clone(), descriptor: call.descriptor.clone() }
    }

    pub(super) fn is_of(&self, call: &CallSite) -> bool {
        !call.kind.is_handle()
            && self.name == call.name
            && self.descriptor == call.descriptor
            && self.owner == call.owner
    }
}

/// What a guard stands for.
#[derive(Clone, Debug)]
struct Guard {
    id: MethodId,
    called: Called,
    state: State,
}

/// What is behind a guard that is to be selected.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    /// The method that it is in.
    pub(super) method: MethodId,
    pub(super) called: Called,
    /// A thread has come to it.
    pub(super) is_certain: bool,
}

/// The guards in a method's code.
#[derive(Clone, Debug, Default)]
struct InMethod {
    guards: Vec<Guard>,
    /// Those that are told what the call is made on, with their numbers.
    receivers: Vec<(u32, Called)>,
    /// They are in the code that is executed.
    in_code: bool,
}

impl InMethod {
    fn receiver(&self, call: &CallSite) -> Option<u32> {
        let is_virtual = call.kind.is_virtual() && !call.kind.is_handle();
        let found = self.receivers.iter().find(|(_, called)| is_virtual && called.is_of(call))?;
        Some(found.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// What is called is not selected.
    Up,
    /// A thread has come to it: what is called is to be selected, and will be entered.
    Passed,
    /// None can be told from now on: what is called is to be selected.
    Void,
    /// It is.
    Selected,
}

/// All guards.
#[derive(Debug, Default)]
pub(super) struct Guards {
    /// By the methods that have been looked at.
    of: FxHashMap<MethodId, InMethod>,
    /// The method of each, but for those that tell receivers.
    methods: FxHashMap<MethodId, MethodId>,
    pub(super) receivers: Receivers,
}

impl Guards {
    pub(super) fn is_guard(&self, id: MethodId) -> bool {
        self.methods.contains_key(&id)
    }

    fn get_mut(&mut self, id: MethodId) -> Option<&mut Guard> {
        let method = self.methods.get(&id)?;
        self.of.get_mut(method)?.guards.iter_mut().find(|guard| guard.id == id)
    }

    /// What is behind guards that nobody has come to, and the methods that they are in.
    pub(super) fn up(&self) -> impl Iterator<Item = (MethodId, &Called)> {
        let in_methods = self.of.iter().flat_map(|(method, here)| here.guards.iter().map(|guard| (*method, guard)));
        in_methods.filter(|(_, guard)| guard.state == State::Up).map(|(method, guard)| (method, &guard.called))
    }

    fn is_full(&self) -> bool {
        self.methods.len() >= MOST_GUARDS
    }

    /// The number of a method's guard.
    fn number_in(&mut self, method: MethodId) -> MethodId {
        // Of those that no method has.
        let id = MethodId(MethodId::MAX.0 - self.methods.len() as u32);
        self.methods.insert(id, method);
        id
    }

    /// Whether a call in a method's own code is told what it is made on.
    pub(super) fn has_receiver_guard(&self, method: MethodId, call: &CallSite) -> bool {
        self.of.get(&method).is_some_and(|it| it.receiver(call).is_some())
    }

    /// A thread has come to a call that was guarded.
    pub(super) fn come_to(&mut self, due: &mut Vec<MethodId>, guard: MethodId) {
        self.give_up(due, guard, State::Passed);
    }

    /// What is behind a guard is to be selected.
    fn give_up(&mut self, due: &mut Vec<MethodId>, guard: MethodId, state: State) {
        if let Some(guard) = self.get_mut(guard).filter(|guard| guard.state == State::Up) {
            guard.state = state;
            due.push(guard.id);
        }
    }

    /// What is behind a method's guards, as far as it is selected, is so once more.
    pub(super) fn expand_guards_again(&mut self, due: &mut Vec<MethodId>, method: MethodId) {
        let guards = self.of.get_mut(&method).map_or(&mut [][..], |here| &mut here.guards);
        for guard in guards.iter_mut().filter(|guard| guard.state == State::Selected) {
            guard.state = State::Void;
            due.push(guard.id);
        }
    }

    /// A method's guards are not in its code, or not in that which is being executed.
    pub(super) fn unguard(&mut self, due: &mut Vec<MethodId>, method: MethodId) {
        let mut here = self.of.remove(&method).unwrap_or_default();
        here.in_code = false;
        for (_, called) in std::mem::take(&mut here.receivers) {
            // All that it can run is to be selected, like what is behind any other.
            let id = self.number_in(method);
            here.guards.push(Guard { id, called, state: State::Up });
        }
        let ids: Vec<MethodId> = here.guards.iter().map(|guard| guard.id).collect();
        self.of.insert(method, here);
        ids.into_iter().for_each(|guard| self.give_up(due, guard, State::Void));
    }

    /// What is behind a guard, if it is to be selected.
    pub(super) fn behind(&self, id: MethodId) -> Option<Behind> {
        let method = *self.methods.get(&id)?;
        let guard = self.of.get(&method)?.guards.iter().find(|guard| guard.id == id)?;
        let is_due = matches!(guard.state, State::Passed | State::Void);
        let is_certain = guard.state == State::Passed;
        is_due.then(|| Behind { method, called: guard.called.clone(), is_certain })
    }

    /// It is.
    pub(super) fn is_selected(&mut self, guard: MethodId) {
        if let Some(guard) = self.get_mut(guard) {
            guard.state = State::Selected;
        }
    }

    /// A method's calls without those that are guarded. Which ones are is decided now, if it was not before.
    pub(super) fn unguarded(
        &mut self,
        reading: Reading<'_>,
        reachable: &Reachable,
        method: MethodId,
        mut sites: CallSites,
    ) -> CallSites {
        self.guard(reading, reachable, method, &sites);
        if let Some(InMethod { guards, .. }) = self.of.get(&method) {
            let is_up = |guard: &Guard, call: &CallSite| guard.state == State::Up && guard.called.is_of(call);
            sites.calls.retain(|call| !guards.iter().any(|guard| is_up(guard, call)));
        }
        sites
    }

    fn guard(&mut self, reading: Reading<'_>, reachable: &Reachable, method: MethodId, sites: &CallSites) {
        let Reading { known, methods, likely } = reading;
        let Some(record) = methods.record(method).filter(|_| !self.of.contains_key(&method)) else { return };
        let (key, signature) = (record.key, record.signature);
        let is_whole = record.lines.is_none();
        let wanted = known.options.look_ahead && known.options.scheme == Scheme::Lazy && !known.nobody_waits;
        let mut here = InMethod { in_code: true, ..InMethod::default() };
        if wanted && is_whole {
            let has_run = likely.has_run(known, key, signature) == Some(true);
            let loader = known.mirrors.get(key).loader;
            let caller = known.options.caller(loader);
            let mut length = sites.calls.iter().map(|call| call.offset).max().unwrap_or(0);
            for call in &sites.calls {
                if self.is_full() {
                    break;
                }
                if here.guards.iter().any(|guard| guard.called.is_of(call)) || here.receiver(call).is_some() {
                    continue;
                }
                let same = sites.calls.iter().filter(|other| {
                    other.owner == call.owner && other.name == call.name && other.descriptor == call.descriptor
                });
                let is_wanted = !known.options.without.has(Mechanism::Guards);
                let unlikely = is_wanted
                    && same.clone().all(|call| !call.kind.is_handle() && likely.is_unlikely(known, call, key, has_run));
                let is_guarded = unlikely && reachable.is_inside_and_new(known, call, key, caller);
                // If a guard is passed, all is selected that the call can run; but what has run is selected before, if it is told the receiver.
                let least = match is_guarded {
                    true if likely.can_run_what_has(known, call, key) => usize::MAX,
                    true => MANY_BEHIND,
                    false => 1,
                };
                let longer = length + same.count() as u32 * RECEIVER_BYTES;
                // Without these it may still be compiled.
                let fits = longer <= HUGE;
                let is_virtual = call.kind.is_virtual() && !call.kind.is_handle();
                let number = Some(call).filter(|_| fits && is_virtual).and_then(|call| {
                    let signature = known.mirrors.known_signature(&call.name, &call.descriptor)?;
                    let owner = Named { name: &call.owner, loader };
                    let from = Source::new(caller, Some(method), Way::Received);
                    self.receivers.number_of(reading, reachable, owner, (signature, from), least)
                });
                if let Some(number) = number {
                    length = longer;
                    here.receivers.push((number, Called::by(call)));
                } else if is_guarded {
                    let id = self.number_in(method);
                    here.guards.push(Guard { id, called: Called::by(call), state: State::Up });
                }
            }
        }
        self.of.insert(method, here);
    }

    /// The guards in a class file. A method that was dropped keeps its own: they are all that tells of what it calls.
    pub(super) fn in_file(
        &mut self,
        reading: Reading<'_>,
        reachable: &Reachable,
        rewritten: Rewritten<'_>,
    ) -> Vec<Guarded> {
        let Reading { known, methods, .. } = reading;
        let Some(key) = known.class_of(rewritten).filter(|_| !known.roots_only) else { return Vec::new() };
        let file = rewritten.file;
        let mut guarded = Vec::new();
        for method in file.methods() {
            let Some(signature) = known.mirrors.known_signature(&method.name(), &method.descriptor()) else {
                continue;
            };
            let Some(id) = methods.of(key, signature) else { continue };
            if methods.record(id).is_none_or(|record| record.refused.is_some()) {
                continue;
            }
            let has_none = |it: &InMethod| it.guards.is_empty() && it.receivers.is_empty() || !it.in_code;
            if self.of.get(&id).is_some_and(has_none) {
                continue;
            }
            let Ok(sites) = call_sites(file, method.index) else { continue };
            self.guard(reading, reachable, id, &sites);
            let Some(here) = self.of.get(&id).filter(|it| it.in_code) else { continue };
            for call in &sites.calls {
                let before = here.guards.iter().find(|guard| guard.called.is_of(call));
                let told = before.map(|guard| Told::Passed(guard.id));
                if let Some(told) = told.or_else(|| here.receiver(call).map(Told::Receiver)) {
                    guarded.push(Guarded { method_index: method.index, offset: call.offset, told, method: id });
                }
            }
        }
        guarded
    }

    /// The rewriter has no room for these: what is behind them is selected with the rest.
    pub(super) fn refuse(&mut self, due: &mut Vec<MethodId>, guarded: &[Guarded]) {
        let mut methods: Vec<MethodId> = guarded.iter().map(|guard| guard.method).collect();
        methods.dedup();
        methods.into_iter().for_each(|method| self.unguard(due, method));
    }
}

impl Reachable {
    /// Whether a call stays among what may be instrumented, and what it runs is not selected already.
    pub(super) fn is_inside_and_new(&self, known: &Known, call: &CallSite, by: ClassKey, caller: Caller) -> bool {
        let owners = known.mirrors.visible(&call.owner, known.mirrors.get(by).loader);
        let inside = !owners.is_empty()
            && owners.iter().all(|owner| {
                let mirror = known.mirrors.get(*owner);
                mirror.linked && known.options.admits_class(&mirror.name, mirror.loader, caller)
            });
        inside
            && known.mirrors.known_signature(&call.name, &call.descriptor).is_none_or(|signature| {
                owners.iter().all(|owner| {
                    let target = (signature, caller);
                    let on = self.virtual_on.get(owner);
                    !on.is_some_and(|on| on.contains_key(&target))
                        && !self.direct_done.contains_key(&(*owner, signature, caller))
                })
            })
    }
}
