//! What may have been meant by a root that matches no method.

use headwater_terms::pattern::{self, MethodPattern, display_name};

use super::known::Known;
use super::mirror::ClassKey;

const LIMIT: usize = 5;

fn simple(class: &str) -> &str {
    class.rsplit(['.', '/']).next().unwrap_or(class)
}

impl Known {
    /// What is like the root that the user asked for, best first: methods, as they would be written for `--root`.
    pub(super) fn near_misses(&self, pattern: &MethodPattern) -> Vec<String> {
        let matching: Vec<ClassKey> =
            self.mirrors.keys().filter(|key| pattern.matches_class(&self.mirrors.get(*key).name)).collect();
        if !matching.is_empty() {
            return self.near_methods(pattern, &matching);
        }
        let classes: Vec<(String, ClassKey)> =
            self.mirrors.keys().map(|key| (self.mirrors.get(key).name.replace('/', "."), key)).collect();
        // A class was named, and no method.
        let whole = format!("{}.{}", pattern.class_text(), pattern.method_text()).replace('/', ".");
        if classes.iter().any(|(name, _)| *name == whole) {
            return vec![format!("{whole}::*")];
        }
        let names = classes.iter().map(|(name, _)| name.as_str());
        let near = pattern::near_misses(pattern.class_text(), names, LIMIT);
        // Of classes that nothing has asked about yet the methods are not known; one of the very name is meant all the same.
        let fits = |near: &str, (name, key): &(String, ClassKey)| {
            name == near
                && match self.mirrors.methods(*key) {
                    Some(_) => self.has_method(*key, pattern),
                    None => simple(near) == simple(pattern.class_text()),
                }
        };
        let with_method: Vec<String> = near
            .iter()
            .filter(|near| classes.iter().any(|class| fits(near, class)))
            .map(|near| format!("{near}::{}", pattern.method_text()))
            .collect();
        // A method is wanted, not a class.
        let with_any = || near.iter().map(|near| format!("{near}::*")).collect();
        if with_method.is_empty() { with_any() } else { with_method }
    }

    /// Whether a class is known to have a method that a pattern names.
    pub(super) fn has_method(&self, class: ClassKey, pattern: &MethodPattern) -> bool {
        self.mirrors.methods(class).into_iter().flatten().any(|(signature, _)| {
            let (name, descriptor) = self.mirrors.signature(*signature);
            pattern.matches_method(name, descriptor)
        })
    }

    pub(super) fn near_methods(&self, pattern: &MethodPattern, classes: &[ClassKey]) -> Vec<String> {
        let mut methods = Vec::new();
        for class in classes {
            for (signature, method) in self.mirrors.methods(*class).into_iter().flatten() {
                if method.has_code() {
                    methods.push((*class, self.mirrors.signature(*signature)));
                }
            }
        }
        let near = pattern::near_misses(pattern.method_text(), methods.iter().map(|(_, (name, _))| &**name), LIMIT);
        let mut found: Vec<String> = Vec::new();
        for wanted in near {
            for (class, (name, descriptor)) in methods.iter().filter(|(_, (name, _))| &**name == wanted) {
                let class = &self.mirrors.get(*class).name;
                let dotted = class.replace('/', ".");
                let text = if wanted == pattern.method_text() {
                    // It was the parameters that did not fit.
                    let whole = display_name(class, name, descriptor);
                    format!("{dotted}::{}", &whole[dotted.len() + 1..])
                } else {
                    format!("{dotted}::{wanted}")
                };
                if !found.contains(&text) && found.len() < LIMIT {
                    found.push(text);
                }
            }
        }
        found
    }
}
