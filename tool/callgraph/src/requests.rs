//! What is asked of the rewriter for a class file, and what became of the methods that are to be instrumented in it.

use headwater_protocol::{ClassId, LoaderId, MethodId};
use headwater_rewriter::{ClassFile, Place, Request};
use headwater_terms::Scheme;
use headwater_terms::reach::Trigger;

use super::CallGraph;
use super::guards::Guarded;
use super::known::Known;
use super::lines::Lines;
use super::methods::Methods;
use super::mirror::ClassKey;

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
    pub(super) fn selected_in(&mut self, known: &mut Known, key: ClassKey, file: &ClassFile<'_>) -> Vec<Selected> {
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
        let method = |method: &Selected| Request {
            method_index: method.method_index,
            id: method.id.0,
            place: method.lines.map_or(Place::Method, Lines::place),
        };
        let mut requests: Vec<Request> = selected.iter().map(method).collect();
        requests.extend(self.invokers(class, file).into_iter().map(|invoker| Request {
            method_index: invoker.method_index,
            id: invoker.kind,
            place: Place::FirstArgument,
        }));
        requests.extend(self.passages(loader, class, name, file).into_iter().map(|passage| Request {
            method_index: passage.method_index,
            id: passage.kind,
            place: passage.place,
        }));
        requests.extend(self.native_calls(class, loader, name, file).into_iter().map(|call| Request {
            method_index: call.method_index,
            id: call.id.0,
            place: Place::Call { offset: call.offset },
        }));
        requests.extend(self.wait_places(class, loader, name, file, &selected).into_iter().map(|waits| Request {
            method_index: waits.method_index,
            id: waits.wait.number(),
            place: waits.place,
        }));
        let constructors = self.exception_constructors(class, loader, name, file).into_iter();
        requests.extend(constructors.map(|method_index| Request {
            method_index,
            id: headwater_runtime_java::exception::MADE,
            place: Place::Constructed,
        }));
        requests.extend(self.object_sites(class, loader, name, file, &selected).into_iter().map(|site| Request {
            method_index: site.method_index,
            id: site.number,
            place: Place::Allocation { offset: site.offset },
        }));
        Requests { guards: self.guards(class, loader, name, file), others: requests }
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
        self.foresee_overrides(key);
        self.foresee_in(key);
        if !is_due {
            // What was foreseen is instrumented right here.
            self.plan.to_hotswap.remove(&key);
        }
        let selected = self.methods.selected_in(&mut self.known, key, file);
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
            self.select_all_in(key);
        }
        if by_graph {
            self.foresee_instances(key);
        }
        self.foresee_in(key);
        self.plan.natives.find_while_loading(&mut self.known, &mut self.methods, &mut self.plan.to_hotswap, key);
        // Whatever was selected by now is instrumented right here.
        self.plan.to_hotswap.remove(&key);
        let selected = self.methods.selected_in(&mut self.known, key, file);
        if !selected.is_empty() {
            self.plan.loading.insert(key, selected.iter().map(|method| method.id).collect());
        }
        selected
    }

    /// A class has been linked, with the code that it got when it was loaded or, because its thread did not wait for that, with its own.
    pub(super) fn came(&mut self, key: ClassKey, probed: bool) {
        let submitted = self.plan.loading.remove(&key).unwrap_or_default();
        if !probed && (!submitted.is_empty() || self.plan.passed.contains(&key)) {
            self.plan.to_hotswap.insert(key);
        }
        for id in submitted {
            if probed {
                self.methods.is_in_place(id);
            } else if let Some(record) = self.methods.record_mut(id) {
                // Whoever links a class is about to call it.
                (record.submitted, record.called_next) = (false, true);
            }
        }
    }

    /// The rewriter refuses a method.
    pub fn refused(&mut self, method: MethodId, reason: String) {
        let Some(record) = self.methods.record_mut(method) else { return };
        if record.refused.is_none() {
            record.refused = Some(reason.clone());
            let name = record.java_name();
            self.methods.skip(name, reason);
        }
    }

    /// The rewriter finds none of a region's lines in a method: it is another method's.
    pub fn no_such_lines(&mut self, method: MethodId) {
        if let Some(record) = self.methods.record_mut(method) {
            record.refused.get_or_insert_with(|| "it has no code of these lines".to_owned());
        }
    }

    /// HotSpot refuses a class.
    pub fn class_refused(&mut self, class: ClassId, reason: String) {
        let Some(key) = self.known.mirrors.by_id(class) else { return };
        self.known.mirrors.get_mut(key).refused = true;
        self.plan.drop_refused(&mut self.methods, key);
        if self.plan.passed.contains(&key) {
            let name = self.known.mirrors.get(key).name.clone();
            match self.known.tells(&name) {
                true => self.wait_refused(&name, &reason),
                false => self.passage_refused(&name, &reason),
            }
        }
        let (refused, others): (Vec<MethodId>, Vec<MethodId>) =
            std::mem::take(&mut self.plan.submitted).into_iter().partition(|id| self.methods.key_of(*id) == Some(key));
        self.plan.submitted = others;
        // Those that were instrumented before stay so: a refused retransformation changes nothing.
        for id in refused {
            if self.methods.record_mut(id).is_some_and(|record| !record.in_place) {
                self.refused(id, reason.clone());
            }
        }
    }

    /// A class has its original code again, because nobody said in time what else.
    pub fn hotswap_again(&mut self, class: ClassId) {
        let Some(key) = self.known.mirrors.by_id(class) else { return };
        let mut submitted = std::mem::take(&mut self.plan.submitted);
        submitted.retain(|id| self.methods.key_of(*id) != Some(key));
        self.plan.submitted = submitted;
        self.plan.drop_again(&mut self.methods, key);
        self.plan.to_hotswap.insert(key);
    }
}
