//! What is asked of the rewriter for a class file, and what became of the methods that are to be instrumented in it.

use headwater_protocol::{ClassId, LoaderId, MethodId};
use headwater_rewriter::{ClassFile, ProbeSite, Request};
use headwater_terms::Scheme;
use headwater_terms::reach::Trigger;

use super::CallGraph;
use super::guards::Guarded;
use super::known::{Known, Rewritten};
use super::likely::Reading;
use super::lines::Lines;
use super::methods::Methods;
use super::mirror::ClassKey;
use super::reflection::Invoker;

/// What a class file is rewritten for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A class is being loaded.
    Loading {
        /// By a thread that has been inside the call graph: it may be so now.
        by_graph: bool,
    },
    /// A loaded class is being retransformed.
    Retransforming(ClassId),
}

/// A method to be instrumented in a class file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selected {
    /// In the class file's order.
    pub method_index: usize,
    /// The id that its probes carry.
    pub id: MethodId,
    /// Only these lines of it.
    pub lines: Option<Lines>,
}

/// What is asked of the rewriter for a class file.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// What tells of calls that are not instrumented yet: it gives way where there is no room.
    pub guards: Vec<Guarded>,
    /// Everything else.
    pub others: Vec<Request>,
}

impl Methods {
    /// The rewriter, or HotSpot, refuses a method.
    fn refused(&mut self, method: MethodId, reason: String) {
        let Some(record) = self.record_mut(method) else { return };
        if record.refused.is_none() {
            record.refused = Some(reason.clone());
            let name = record.java_name();
            self.skip(name, reason);
        }
    }

    fn selected_in(&mut self, known: &Known, key: ClassKey, file: &ClassFile<'_>) -> Vec<Selected> {
        if self.in_class(key).is_empty() {
            return Vec::new();
        }
        let roots_only = known.roots_only;
        let mut selected = Vec::new();
        for method in file.methods() {
            let signature = known.mirrors.intern_signature(&method.name(), &method.descriptor());
            let whole = self.of(key, signature).into_iter();
            let ids = whole.chain(self.lines_of(key, signature).iter().copied());
            for record in ids.filter_map(|id| self.record(id)) {
                let is_wanted = !record.is_dropped() && (!roots_only || !record.root_of.is_empty());
                if record.refused.is_some() || !method.has_code() || !is_wanted {
                    continue;
                }
                selected.push(Selected { method_index: method.index, id: record.id, lines: record.lines });
            }
        }
        for method in &selected {
            if let Some(record) = self.record_mut(method.id) {
                record.submitted = true;
            }
        }
        selected
    }
}

impl CallGraph {
    /// What is asked of the rewriter for a class file: once, whatever becomes of it then.
    pub fn requests(&mut self, occasion: Occasion, loader: LoaderId, name: &str, file: &ClassFile<'_>) -> Requests {
        let class = match occasion {
            Occasion::Loading { .. } => None,
            Occasion::Retransforming(id) => Some(id),
        };
        let selected = self.selected(occasion, loader, name, file);
        let rewritten = Rewritten { class, loader, name, file };
        let CallGraph { known, methods, likely, reachable, plan, .. } = self;
        let method = |method: &Selected| Request {
            method_index: method.method_index,
            id: method.id.0,
            place: method.lines.map_or(ProbeSite::Method, Lines::place),
        };
        let mut requests: Vec<Request> = selected.iter().map(method).collect();
        requests.extend(plan.reflection.in_file(known, rewritten).into_iter().map(|invoker| Request {
            method_index: invoker.method_index,
            id: invoker.kind,
            place: ProbeSite::FirstArgument,
        }));
        requests.extend(plan.passages(known, rewritten).into_iter().map(|passage| Request {
            method_index: passage.method_index,
            id: passage.kind,
            place: passage.place,
        }));
        requests.extend(plan.natives.in_file(known, rewritten).into_iter().map(|call| Request {
            method_index: call.method_index,
            id: call.id.0,
            place: ProbeSite::Call { offset: call.offset },
        }));
        requests.extend(plan.wait_places(known, rewritten, &selected).into_iter().map(|waits| Request {
            method_index: waits.method_index,
            id: waits.wait.number(),
            place: waits.place,
        }));
        requests.extend(plan.exception_constructors(known, rewritten).into_iter().map(|method_index| Request {
            method_index,
            id: headwater_runtime_java::exception::MADE,
            place: ProbeSite::Constructed,
        }));
        requests.extend(plan.sites.in_file(known, methods, rewritten, &selected).into_iter().map(|site| Request {
            method_index: site.method_index,
            id: site.number,
            place: ProbeSite::Allocation { offset: site.offset },
        }));
        let guards = plan.guards.in_file(Reading { known, methods, likely }, reachable, rewritten);
        Requests { guards, others: requests }
    }

    /// The methods to be instrumented in a class file.
    pub(super) fn selected(
        &mut self,
        occasion: Occasion,
        loader: LoaderId,
        name: &str,
        file: &ClassFile<'_>,
    ) -> Vec<Selected> {
        let id = match occasion {
            Occasion::Loading { by_graph } => return self.selected_while_loading(by_graph, loader, name, file),
            Occasion::Retransforming(id) => id,
        };
        let Some(key) = self.known.mirrors.by_id(id) else { return Vec::new() };
        self.known.code.add(key, Some(file.bytes().to_vec()));
        let is_due = self.plan.to_hotswap.contains(&key);
        self.methods.set_trigger(Trigger::Foreseen);
        if let Some(supertypes) = self.likely.foresees_overrides(&self.known, key) {
            self.reachable.foresee_used(&self.known, &mut self.methods, key, &supertypes, false);
        }
        self.foresee_in(key);
        self.plan.take_up(&self.known, &self.methods);
        if !is_due {
            // What was foreseen is instrumented right here.
            self.plan.to_hotswap.remove(&key);
        }
        let selected = self.methods.selected_in(&self.known, key, file);
        self.plan.submitted.extend(selected.iter().map(|method| method.id));
        self.plan.submit_dropped(&mut self.methods, key);
        selected
    }

    fn selected_while_loading(
        &mut self,
        by_graph: bool,
        loader: LoaderId,
        name: &str,
        file: &ClassFile<'_>,
    ) -> Vec<Selected> {
        self.methods.set_trigger(Trigger::Loaded);
        let key = self.known.mirrors.loading(loader, name, file);
        if loader.is_jdk() {
            self.escape.mentions.jdk_class_comes(&self.known, file);
        }
        self.known.code.add(key, Some(file.bytes().to_vec()));
        self.apply_while_loading(key, name);
        if self.known.options.scheme == Scheme::Total {
            self.reachable.select_all_in(&self.known, &mut self.methods, key);
        }
        if by_graph && let Some(supertypes) = self.likely.foresees_instances(&self.known, key) {
            self.reachable.foresee_used(&self.known, &mut self.methods, key, &supertypes, true);
        }
        self.foresee_in(key);
        self.plan.take_up(&self.known, &self.methods);
        self.plan.natives.find_while_loading(&self.known, &mut self.methods, &mut self.plan.to_hotswap, key);
        // Whatever was selected by now is instrumented right here.
        self.plan.to_hotswap.remove(&key);
        let selected = self.methods.selected_in(&self.known, key, file);
        if !selected.is_empty() {
            self.plan.loading.insert(key, selected.iter().map(|method| method.id).collect());
        }
        selected
    }

    /// The rewriter refuses a method.
    pub fn refused(&mut self, method: MethodId, reason: String) {
        self.methods.refused(method, reason);
    }

    /// The rewriter finds none of a region's lines in a method: it is another method's.
    pub fn no_such_lines(&mut self, method: MethodId) {
        if let Some(record) = self.methods.record_mut(method) {
            record.refused.get_or_insert_with(|| "it has no code of these lines".to_owned());
        }
    }

    /// The rewriter has no room for guards: what is behind them is selected with the rest.
    pub fn refuse_guards(&mut self, guarded: &[Guarded]) {
        self.plan.guards.refuse(&mut self.reachable.due, guarded);
    }

    /// An invoker cannot be probed.
    pub fn invoker_refused(&mut self, invoker: Invoker, reason: &str) {
        self.methods.invoker_refused(invoker, reason);
    }

    /// A passage cannot be probed.
    pub fn passage_refused(&mut self, class: &str, reason: &str) {
        self.methods.passage_refused(class, reason);
    }

    /// A call cannot be probed.
    pub fn native_call_refused(&mut self, native: MethodId, reason: &str) {
        self.methods.native_call_refused(native, reason);
    }

    /// What a class of the JDK's would tell, or a call in another, cannot be told of.
    pub fn wait_refused(&mut self, class: &str, reason: &str) {
        self.methods.wait_refused(class, reason);
    }

    /// Objects that methods of a class make cannot be told of.
    pub fn objects_refused(&mut self, class: &str, reason: &str) {
        self.methods.objects_refused(class, reason);
    }

    /// HotSpot refuses a class.
    pub fn class_refused(&mut self, class: ClassId, reason: String) {
        let Some(key) = self.known.mirrors.by_id(class) else { return };
        self.known.mirrors.get_mut(key).refused = true;
        self.plan.drop_refused(&mut self.methods, key);
        if self.plan.passed.contains(&key) {
            let name = &self.known.mirrors.get(key).name;
            match self.known.tells(name) {
                true => self.methods.wait_refused(name, &reason),
                false => self.methods.passage_refused(name, &reason),
            }
        }
        // Those that were instrumented before stay so: a refused retransformation changes nothing.
        for id in self.plan.take_submitted(&self.methods, key) {
            if self.methods.record(id).is_some_and(|record| !record.in_place) {
                self.methods.refused(id, reason.clone());
            }
        }
    }

    /// A class has its original code again, because nobody said in time what else.
    pub fn hotswap_again(&mut self, class: ClassId) {
        let Some(key) = self.known.mirrors.by_id(class) else { return };
        self.plan.take_submitted(&self.methods, key);
        self.plan.drop_again(&mut self.methods, key);
        self.plan.to_hotswap.insert(key);
    }
}
