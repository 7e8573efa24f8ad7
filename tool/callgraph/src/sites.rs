//! Where instrumented methods make objects (`--count alloc-sites`), by number: a place has the same one whenever its class is instrumented.
//!
//! Why so, and at what cost: docs/decisions/allocation-sites.md.

use std::sync::Arc;

use headwater_protocol::word::SITE_BITS;
use headwater_rewriter::{AllocationSite, allocation_sites};
use headwater_terms::pattern::class_name;
use rustc_hash::{FxHashMap, FxHashSet};

use super::known::{Known, Rewritten};
use super::lines::Lines;
use super::methods::Methods;
use super::mirror::{ClassKey, Signature};
use super::requests::Selected;

/// A place in a class file where objects are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectSite {
    /// Of the method, in the class file's order.
    pub method_index: usize,
    /// Of the instruction, in its code.
    pub offset: u32,
    /// What its probe is called with. Arrays in an array have the numbers behind that of the array that they are in.
    pub number: u32,
}

/// An allocation in a method.
type Position = (ClassKey, Signature, AllocationSite);

/// Those that were ever probed.
#[derive(Debug, Default)]
pub(super) struct Sites {
    numbers: FxHashMap<Position, u32>,
    /// By number, what is made where.
    names: Vec<Arc<str>>,
    /// The classes that have some.
    probed: FxHashSet<ClassKey>,
}

impl Sites {
    /// There are no more numbers.
    const MOST: usize = 1 << SITE_BITS;

    /// The classes in whose methods there are probes at such places.
    pub(super) fn probed(&self) -> impl Iterator<Item = ClassKey> {
        self.probed.iter().copied()
    }

    /// A place's number, if there are numbers left; `class` is the internal name of the one whose method it is.
    fn number(&mut self, position: Position, class: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(&position) {
            return Some(*number);
        }
        let site = &position.2;
        let dimensions = usize::from(site.dimensions.max(1));
        if self.names.len() + dimensions > Sites::MOST {
            return None;
        }
        let number = self.names.len() as u32;
        self.names.extend((0..dimensions).map(|inner| name(&site.class[inner..], class, site.line).into()));
        self.probed.insert(position.0);
        self.numbers.insert(position, number);
        Some(number)
    }

    /// Where selected methods of a class file make objects, if these are counted. Of a method that is selected by its lines, what those make.
    pub(super) fn in_file(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        rewritten: Rewritten<'_>,
        selected: &[Selected],
    ) -> Vec<ObjectSite> {
        let Rewritten { name, file, .. } = rewritten;
        if !known.options.objects || known.roots_only || selected.is_empty() {
            return Vec::new();
        }
        let Some(key) = known.class_of(rewritten) else { return Vec::new() };
        let mut indices: Vec<usize> = selected.iter().map(|method| method.method_index).collect();
        indices.dedup();
        let (mut sites, mut are_enough) = (Vec::new(), true);
        for method_index in indices {
            let method = &file.methods()[method_index];
            let Some(signature) = known.mirrors.known_signature(&method.name(), &method.descriptor()) else {
                continue;
            };
            let is_selected = |line: Option<u16>| {
                let in_lines = |lines: Lines| line.is_some_and(|line| (lines.first..=lines.last).contains(&line));
                selected.iter().any(|it| it.method_index == method_index && it.lines.is_none_or(in_lines))
            };
            let all = allocation_sites(file, method_index).unwrap_or_default();
            for site in all.into_iter().filter(|site| is_selected(site.line)) {
                let offset = site.offset;
                match self.number((key, signature, site), name) {
                    Some(number) => sites.push(ObjectSite { method_index, offset, number }),
                    None => are_enough = false,
                }
            }
        }
        if !are_enough {
            methods.objects_refused(name, "there are more places that make objects than can be told apart");
        }
        sites
    }

    /// What objects are called, by the numbers of the sites that make them.
    pub(super) fn names(&self) -> &[Arc<str>] {
        &self.names
    }
}

impl Methods {
    /// Objects that methods of a class make cannot be told of.
    pub(super) fn objects_refused(&mut self, class: &str, reason: &str) {
        let reason = format!("some objects that its methods make are not counted: {reason}");
        self.skip_unless_told(class.replace('/', "."), reason);
    }
}

/// `a.b.Item@Shop:120`: what is made, as the JVM calls it, and in which class and line; of a nested class, in which outermost one.
fn name(made: &str, class: &str, line: Option<u16>) -> String {
    let simple = class.rsplit('/').next().unwrap_or(class);
    let outermost = simple.split('$').next().filter(|outermost| !outermost.is_empty()).unwrap_or(simple);
    let made = class_name(made);
    match line {
        Some(line) => format!("{made}@{outermost}:{line}"),
        None => format!("{made}@{outermost}"),
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn an_object_is_called_by_its_class_and_where_it_is_made() {
        assert_eq!(name("com/acme/Item", "com/acme/Shop", Some(120)), "com.acme.Item@Shop:120");
        assert_eq!(name("[[I", "com/acme/Shop$Cart$1", Some(7)), "int[][]@Shop:7");
        assert_eq!(name("com/acme/Item$Part", "$Proxy", None), "com.acme.Item$Part@$Proxy");
    }
}
