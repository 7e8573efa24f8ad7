//! Handing out: which methods of a class file are to be instrumented, and what became of them.

use headwater_protocol::{ClassId, LoaderId, MethodId};
use headwater_rewriter::ClassFile;

use super::mirror::ClassKey;
use super::{CallGraph, Lines};
use headwater_terms::Scheme;

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
pub struct Selected {
    /// In the class file's order.
    pub method_index: usize,
    /// The id that its probes carry.
    pub id: MethodId,
    /// Only these lines of it.
    pub lines: Option<Lines>,
}

impl CallGraph {
    /// The methods to be instrumented in a class file.
    pub fn class_bytes(&mut self, occasion: Occasion, loader: LoaderId, name: &str, bytes: &[u8]) -> Vec<Selected> {
        // A class that we cannot read is the JVM's to refuse, or to accept; either way we leave it alone.
        let Ok(file) = ClassFile::parse(bytes) else { return Vec::new() };
        let id = match occasion {
            Occasion::Loading { by_graph } => return self.loaded_bytes(by_graph, loader, name, bytes, &file),
            Occasion::Retransforming(id) => id,
        };
        let Some(key) = self.mirrors.by_id(id) else { return Vec::new() };
        self.code.add(key, Some(bytes.to_vec()));
        let is_due = self.to_hotswap.contains(&key);
        self.foresee_overrides(key);
        self.foresee_in(key);
        if !is_due {
            // What was foreseen is instrumented right here.
            self.to_hotswap.remove(&key);
        }
        let selected = self.selected_in(key, &file);
        self.handed_out.extend(selected.iter().map(|method| method.id));
        self.hand_out_dropped(key);
        selected
    }

    fn loaded_bytes(
        &mut self,
        by_graph: bool,
        loader: LoaderId,
        name: &str,
        bytes: &[u8],
        file: &ClassFile<'_>,
    ) -> Vec<Selected> {
        let key = self.mirrors.loading(loader, name, file);
        if loader.is_jdk() {
            self.jdk_class_comes(file);
        }
        self.code.add(key, Some(bytes.to_vec()));
        self.apply_while_loading(key, name);
        if self.options.scheme == Scheme::Total {
            self.select_all_in(key);
        }
        if by_graph {
            self.foresee_instances(key);
        }
        self.foresee_in(key);
        self.find_native_calls_while_loading(key);
        // Whatever was selected by now is instrumented right here.
        self.to_hotswap.remove(&key);
        self.selected_in(key, file)
    }

    fn selected_in(&mut self, key: ClassKey, file: &ClassFile<'_>) -> Vec<Selected> {
        let ids = self.by_class.get(&key).cloned().unwrap_or_default();
        if ids.is_empty() {
            return Vec::new();
        }
        let roots_only = self.roots_only;
        let mut selected = Vec::new();
        for method in file.methods() {
            let signature = self.mirrors.intern_signature(&method.name(), &method.descriptor());
            let whole = self.by_signature.get(&(key, signature)).into_iter();
            let ids = whole.chain(self.by_lines.get(&(key, signature)).into_iter().flatten());
            for record in ids.filter_map(|id| self.record(*id)) {
                let is_wanted = !record.is_dropped() && (!roots_only || !record.root_of.is_empty());
                if record.refused.is_some() || !method.has_code() || !is_wanted {
                    continue;
                }
                selected.push(Selected { method_index: method.index, id: record.id, lines: record.lines });
            }
        }
        for method in &selected {
            if let Some(record) = self.record_mut(method.id) {
                record.handed_out = true;
            }
        }
        selected
    }

    /// The rewriter refuses a method.
    pub fn refused(&mut self, method: MethodId, reason: String) {
        let Some(record) = self.record_mut(method) else { return };
        if record.refused.is_none() {
            record.refused = Some(reason.clone());
            let name = record.java_name();
            self.skipped.push((name, reason));
        }
    }

    /// HotSpot refuses a class.
    pub fn class_refused(&mut self, class: ClassId, reason: String) {
        let Some(key) = self.mirrors.by_id(class) else { return };
        self.mirrors.get_mut(key).refused = true;
        self.drop_refused(key);
        let (refused, others): (Vec<MethodId>, Vec<MethodId>) =
            std::mem::take(&mut self.handed_out).into_iter().partition(|id| self.key_of(*id) == Some(key));
        self.handed_out = others;
        // Those that were instrumented before stay so: a refused retransformation changes nothing.
        for id in refused {
            if self.record_mut(id).is_some_and(|record| !record.in_place) {
                self.refused(id, reason.clone());
            }
        }
    }

    /// A class has its original code again, because nobody said in time what else.
    pub fn hotswap_again(&mut self, class: ClassId) {
        let Some(key) = self.mirrors.by_id(class) else { return };
        let mut handed_out = std::mem::take(&mut self.handed_out);
        handed_out.retain(|id| self.key_of(*id) != Some(key));
        self.handed_out = handed_out;
        self.drop_again(key);
        self.to_hotswap.insert(key);
    }
}
