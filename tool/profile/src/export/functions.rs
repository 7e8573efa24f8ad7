//! The methods of a profile as other tools see them: functions with a name, each name once.

use rustc_hash::FxHashMap;

use super::{ExportedTree, one_line};
use crate::profile::walk::{Children, Step};
use crate::profile::{MethodIndex, Profile, Tree};

/// An index into [`Functions::all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct FunctionIndex(pub(super) usize);

/// A method that is in a tree. Its names have no control characters.
#[derive(Clone, Debug)]
pub(super) struct Function {
    /// The method's machine name: of no other function.
    pub(super) machine: String,
    /// Its name for people, if it has that alone: two overloads may differ only in the packages of their parameters' types.
    /// Otherwise its machine name.
    pub(super) label: String,
    /// Its package; empty for the unnamed one.
    pub(super) package: String,
}

/// All methods of some trees. Methods of one name, of different class loaders, are one function.
#[derive(Debug)]
pub(super) struct Functions {
    /// In the order in which the trees name them.
    pub(super) all: Vec<Function>,
    of_method: FxHashMap<MethodIndex, FunctionIndex>,
}

impl Functions {
    pub(super) fn of(profile: &Profile, parts: &[ExportedTree<'_>]) -> Functions {
        let mut all: Vec<Function> = Vec::new();
        let mut of_method = FxHashMap::default();
        let mut by_machine: FxHashMap<&str, FunctionIndex> = FxHashMap::default();
        let mut labels: FxHashMap<String, u32> = FxHashMap::default();
        for node in parts.iter().flat_map(|part| &part.tree.nodes) {
            of_method.entry(node.method).or_insert_with(|| {
                let name = &profile.methods[node.method.0];
                *by_machine.entry(&name.machine).or_insert_with(|| {
                    let (machine, label) = (one_line(&name.machine), one_line(&name.display));
                    *labels.entry(label.clone()).or_default() += 1;
                    let package = package(&machine).to_owned();
                    all.push(Function { machine, label, package });
                    FunctionIndex(all.len() - 1)
                })
            });
        }
        // The first method of a name stands for the others, also where only those are in the trees.
        for (index, name) in profile.methods.iter().enumerate() {
            if let Some(function) = by_machine.get(name.machine.as_str()) {
                of_method.entry(MethodIndex(index)).or_insert(*function);
            }
        }
        for function in &mut all {
            if labels[&function.label] > 1 {
                function.label.clone_from(&function.machine);
            }
        }
        Functions { all, of_method }
    }

    pub(super) fn index_of(&self, method: MethodIndex) -> FunctionIndex {
        // The table was made from the trees whose methods are asked for.
        self.of_method[&method]
    }

    /// Of every node, how often its function is among its callers, itself included.
    pub(super) fn recursion_levels(&self, tree: &Tree) -> Vec<usize> {
        let mut levels = vec![0; tree.nodes.len()];
        let mut running = vec![0; self.all.len()];
        for step in Children::called(tree).depth_first() {
            match step {
                Step::Enter(node) => {
                    let running = &mut running[self.index_of(tree.nodes[node.0].method).0];
                    *running += 1;
                    levels[node.0] = *running;
                }
                Step::Leave(node) => running[self.index_of(tree.nodes[node.0].method).0] -= 1,
            }
        }
        levels
    }

    /// The packages, each once, and each function's.
    pub(super) fn packages(&self) -> (Vec<&str>, Vec<usize>) {
        let mut packages = Vec::new();
        let mut known: FxHashMap<&str, usize> = FxHashMap::default();
        let of_functions = self.all.iter().map(|function| {
            *known.entry(&function.package).or_insert_with(|| {
                packages.push(function.package.as_str());
                packages.len() - 1
            })
        });
        let of_functions = of_functions.collect();
        (packages, of_functions)
    }
}

/// Where a method's name begins in `a.b.C.m(I)V`: behind the class's name and its dot.
pub(super) fn method_start(name: &str) -> Option<usize> {
    let before_parameters = name.split('(').next()?;
    before_parameters.rfind('.').map(|dot| dot + 1)
}

/// The package in a method's machine name.
fn package(machine: &str) -> &str {
    let class = method_start(machine).map_or("", |start| &machine[..start - 1]);
    match class.rsplit_once('.') {
        // Of a hidden class, the name of its source class comes before an address: `a.b.C$$Lambda.0x00007f12`.
        Some((source, address)) if address.starts_with("0x") => {
            source.rsplit_once('.').map_or("", |(package, _)| package)
        }
        Some((package, _)) => package,
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_found_in_names() {
        for (machine, expected) in [
            ("a.b.C.m(ILa/b/D;)V", "a.b"),
            ("a.b.C.<init>()V", "a.b"),
            ("C.m()V", ""),
            ("m()V", ""),
            ("a.b.C$$Lambda.0x00007f12.run()V", "a.b"),
            ("C$$Lambda.0x00007f12.run()V", ""),
            ("", ""),
        ] {
            assert_eq!(package(machine), expected, "{machine}");
        }
    }
}
