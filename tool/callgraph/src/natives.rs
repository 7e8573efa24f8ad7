//! Native methods as nodes of the tree.
//!
//! They have no code that could be instrumented, but calls of them have: where the user wants that, a call in an instrumented method gets
//! probes around it if it can run nothing but a native method. Which calls do is decided by class hierarchy analysis, as
//! everything here, whenever a method is selected; and again when a class comes that changes the answer.
//!
//! A call that may run a native method or another one, by the receiver's class, is left alone: the other one has probes of its
//! own. So are calls of signature-polymorphic methods, which are native in name only.
//!
//! Why so, and at what cost: docs/decisions/native-methods.md.

use std::sync::Arc;

use headwater_protocol::MethodId;
use headwater_rewriter::{CallKind, CallSite, call_sites};
use headwater_terms::reach::Way;
use rustc_hash::{FxHashMap, FxHashSet};

use super::cause::Cause;
use super::filter::Caller;
use super::known::{Known, Rewritten};
use super::methods::Methods;
use super::mirror::{ClassKey, Signature};

/// The classes whose native methods the JVM does not call, but replaces by what the call says.
const POLYMORPHIC: [&str; 2] = ["java/lang/invoke/MethodHandle", "java/lang/invoke/VarHandle"];

/// A method, by its class.
type Member = (ClassKey, Signature);

/// What a call instruction says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Call {
    kind: CallKind,
    owner: Arc<str>,
    signature: Signature,
}

/// A call instruction that is to be probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NativeCall {
    /// The method that it is in, in the class file's order.
    pub method_index: usize,
    /// Where it is in that method's code.
    pub offset: u32,
    /// The native method.
    pub id: MethodId,
}

/// What is known of calls of native methods.
#[derive(Debug, Default)]
pub(super) struct Natives {
    /// Instrumented methods whose calls are to be looked at.
    due: Vec<Member>,
    /// The calls that run native methods, by the method that they are in.
    calls: FxHashMap<Member, Vec<(Call, MethodId)>>,
    /// Classes with such methods.
    classes: FxHashSet<ClassKey>,
    /// Methods with calls of which a class that comes later may change what they run: by the class and the method that they name.
    watched: FxHashMap<Arc<str>, FxHashMap<Signature, FxHashSet<Member>>>,
}

impl Natives {
    /// Classes whose methods have probed calls.
    pub(super) fn probed(&self) -> impl Iterator<Item = ClassKey> {
        self.classes.iter().copied()
    }

    fn watch(&mut self, call: &Call, within: Member) {
        let by_method = self.watched.entry(call.owner.clone()).or_default();
        by_method.entry(call.signature).or_default().insert(within);
    }

    /// A method's calls of native methods are wanted, if any are.
    pub(super) fn want(&mut self, known: &Known, key: ClassKey, signature: Signature) {
        if known.options.natives && !known.roots_only {
            self.due.push((key, signature));
        }
    }

    /// Looks at the calls of methods that were selected. What cannot be decided yet stays due: classes' methods or code are asked for
    /// first.
    pub(super) fn find(&mut self, known: &Known, methods: &mut Methods, to_hotswap: &mut FxHashSet<ClassKey>) {
        for method @ (key, signature) in std::mem::take(&mut self.due) {
            if known.code.is_missing(key) {
                continue;
            }
            let needs_before = known.needs();
            let found = if known.has_code(key) { self.calls_in(known, methods, key, signature) } else { None };
            match found.filter(|_| known.needs() == needs_before) {
                Some(found) => self.set(methods, to_hotswap, method, found),
                None => self.due.push(method),
            }
        }
    }

    /// The same for a class that is being loaded: nothing can be asked for. Its methods stay due until it has been linked.
    pub(super) fn find_while_loading(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        to_hotswap: &mut FxHashSet<ClassKey>,
        class: ClassKey,
    ) {
        let due: Vec<Member> = self.due.iter().copied().filter(|(key, _)| *key == class).collect();
        for (key, signature) in due {
            if let Some(found) = self.calls_in(known, methods, key, signature) {
                self.set(methods, to_hotswap, (key, signature), found);
            }
        }
        known.ask_later();
    }

    fn set(
        &mut self,
        methods: &mut Methods,
        to_hotswap: &mut FxHashSet<ClassKey>,
        within: Member,
        found: Vec<(Call, MethodId)>,
    ) {
        let before = self.calls.get(&within).map_or(&[][..], Vec::as_slice);
        if *before != *found {
            self.mark_late(methods, within, &found);
            self.calls.insert(within, found);
            self.classes.insert(within.0);
            to_hotswap.insert(within.0);
        }
    }

    fn calls_in(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        key: ClassKey,
        signature: Signature,
    ) -> Option<Vec<(Call, MethodId)>> {
        let (name, descriptor) = known.mirrors.signature(signature);
        let sites = known.code.sites(key, name, descriptor)?;
        let caller = known.options.caller(known.mirrors.get(key).loader);
        let mut found: Vec<(Call, MethodId)> = Vec::new();
        let mut seen: Vec<Call> = Vec::new();
        for site in &sites.calls {
            let Some(call) = known.as_call(site) else { continue };
            if seen.contains(&call) {
                continue;
            }
            let cause = Cause { by: methods.of(key, signature), way: Way::Native, through: None };
            if let Some(native) = self.target(known, (key, signature), &call, caller)
                && let Some(id) = methods.native_record(known, native, cause)
            {
                found.push((call.clone(), id));
            }
            seen.push(call);
        }
        Some(found)
    }

    /// The native method that a call runs, if it can run no other.
    fn target(&mut self, known: &Known, within: Member, call: &Call, caller: Caller) -> Option<Member> {
        let owners = known.mirrors.visible(&call.owner, known.mirrors.get(within.0).loader);
        if owners.iter().all(|key| !known.mirrors.get(*key).linked) {
            self.watch(call, within);
            return None;
        }
        let targets: Vec<Option<Member>> =
            owners.into_iter().map(|owner| self.target_on(known, owner, within, call, caller)).collect();
        // Classes of one name may differ: they have to agree.
        targets.iter().all(Option::is_some).then(|| targets.first().copied().flatten()).flatten()
    }

    fn target_on(
        &mut self,
        known: &Known,
        owner: ClassKey,
        within: Member,
        call: &Call,
        caller: Caller,
    ) -> Option<Member> {
        let signature = call.signature;
        let mut declared = None;
        for key in known.mirrors.supertypes(owner) {
            let mirror = known.mirrors.get(key);
            if !known.options.admits_native_of(&mirror.name, mirror.loader, caller) {
                continue;
            }
            if known.mirrors.methods(key).is_none() {
                known.need(key);
                return None;
            }
            declared = known.mirrors.method(key, signature).map(|method| (key, method));
            if declared.is_some() {
                break;
            }
        }
        let (key, method) = declared?;
        let name = &known.mirrors.signature(signature).0;
        let mirror = known.mirrors.get(key);
        if !method.is_native() || !known.options.shows(&mirror.name, mirror.loader, name, caller) {
            return None;
        }
        let by_receiver = call.kind.is_virtual();
        let is_final = method.is_final() || known.mirrors.get(key).is_final() || known.mirrors.get(owner).is_final();
        if by_receiver && method.is_virtual() && !is_final {
            // Every class is below `Object`, and most have these methods.
            if &*known.mirrors.get(owner).name == "java/lang/Object" {
                return None;
            }
            self.watch(call, within);
            for subtype in known.mirrors.subtypes(owner) {
                if known.mirrors.methods(subtype).is_none() {
                    known.need(subtype);
                    return None;
                }
                let overriding = known.mirrors.method(subtype, signature);
                if overriding.is_some_and(|method| method.is_virtual() && method.has_code()) {
                    return None;
                }
            }
        }
        Some((key, signature))
    }

    /// Calls that are found when the method they are in has been entered already are not seen until it is entered again.
    fn mark_late(&self, methods: &mut Methods, within: Member, found: &[(Call, MethodId)]) {
        let caller = methods.of(within.0, within.1).and_then(|id| methods.record(id));
        let Some(caller) = caller.filter(|caller| caller.entered).map(|caller| caller.java_name()) else { return };
        let known = self.calls.get(&within).cloned().unwrap_or_default();
        for (_, id) in found.iter().filter(|(call, _)| known.iter().all(|(before, _)| before != call)) {
            let Some(native) = methods.record(*id).map(|native| native.java_name()) else { continue };
            let reason = format!(
                "its calls in {caller} are counted from the next entry of that on: its class was loaded within"
            );
            methods.skip(native, reason);
        }
    }

    /// A class has been linked: calls that it may change are looked at again.
    pub(super) fn look_again(&mut self, known: &Known, class: ClassKey) {
        if self.watched.is_empty() {
            return;
        }
        for supertype in known.mirrors.supertypes(class) {
            let Some(calls) = self.watched.get(&known.mirrors.get(supertype).name) else { continue };
            let is_declared = |signature: &Signature| known.mirrors.method(class, *signature).is_some();
            let changed = calls.iter().filter(|(signature, _)| supertype == class || is_declared(signature));
            self.due.extend(changed.flat_map(|(_, within)| within.iter().copied()));
        }
        self.due.sort_unstable();
        self.due.dedup();
    }

    /// The calls to be probed in a class file.
    pub(super) fn in_file(&self, known: &Known, rewritten: Rewritten<'_>) -> Vec<NativeCall> {
        let key = known.class_of(rewritten);
        let Some(key) = key.filter(|key| !known.roots_only && self.classes.contains(key)) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for method in rewritten.file.methods() {
            let signature = known.mirrors.known_signature(&method.name(), &method.descriptor());
            let calls = signature.and_then(|signature| self.calls.get(&(key, signature)));
            let Some(calls) = calls.filter(|calls| !calls.is_empty()) else { continue };
            // Of these bytes, which another agent may have changed since they were looked at.
            for site in call_sites(rewritten.file, method.index).unwrap_or_default().calls {
                let signature = known.mirrors.known_signature(&site.name, &site.descriptor);
                let is_it = |call: &Call| {
                    call.kind == site.kind && call.owner == site.owner && Some(call.signature) == signature
                };
                if let Some((_, id)) = calls.iter().find(|(call, _)| is_it(call)) {
                    found.push(NativeCall { method_index: method.index, offset: site.offset, id: *id });
                }
            }
        }
        found
    }
}

impl Known {
    /// A call instruction, if it may call a native method.
    fn as_call(&self, site: &CallSite) -> Option<Call> {
        let is_instruction =
            matches!(site.kind, CallKind::Static | CallKind::Special | CallKind::Virtual | CallKind::Interface);
        if !is_instruction || POLYMORPHIC.contains(&&*site.owner) || &*site.name == "<init>" {
            return None;
        }
        let signature = self.mirrors.intern_signature(&site.name, &site.descriptor);
        Some(Call { kind: site.kind, owner: site.owner.clone(), signature })
    }
}

impl Methods {
    /// A native method's number.
    fn native_record(&mut self, known: &Known, (key, signature): Member, cause: Cause) -> Option<MethodId> {
        if let Some(id) = self.of(key, signature) {
            return Some(id);
        }
        if self.are_full() {
            return None;
        }
        let id = self.new_record(known, key, signature, None, cause);
        let record = self.record_mut(id)?;
        record.is_native = true;
        // It has no callees that could be found, and no code to be replaced.
        record.expanded = true;
        (record.submitted, record.in_place) = (true, true);
        Some(id)
    }

    /// A call of one cannot be probed.
    pub(super) fn native_call_refused(&mut self, native: MethodId, reason: &str) {
        let Some(name) = self.record(native).map(|native| native.java_name()) else { return };
        self.skip_unless_told(name, format!("some calls of it are not seen: {reason}"));
    }
}
