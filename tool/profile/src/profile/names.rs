//! Methods' names for people: told apart, and fit to be shown.

use rustc_hash::FxHashMap;

use super::MethodName;
use headwater_terms::pattern::{Detail, detailed_name};
use headwater_terms::printable::printable;

/// Makes names for people that differ where methods do. Overloads may differ in their result alone, or in the packages of their
/// parameters' types: they are given as much more as it takes. Classes of one name, of different loaders, stay one to the reader.
pub fn tell_apart(methods: &mut [MethodName]) {
    for method in methods.iter_mut() {
        if let std::borrow::Cow::Owned(shown) = printable(&method.display) {
            method.display = shown;
        }
    }
    for detail in [Detail::Result, Detail::FullNames] {
        let mut first: FxHashMap<&str, &str> = FxHashMap::default();
        let mut alike: Vec<String> = Vec::new();
        for MethodName { machine, display } in methods.iter() {
            let known = *first.entry(display).or_insert(machine);
            if known != machine {
                alike.push(display.clone());
            }
        }
        if alike.is_empty() {
            return;
        }
        alike.sort_unstable();
        for method in methods.iter_mut().filter(|method| alike.binary_search(&method.display).is_ok()) {
            if let Some(name) = detailed_name(&method.machine, detail) {
                method.display = printable(&name).into_owned();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(named: &[(&str, &str, &str)]) {
        let mut methods: Vec<MethodName> = named
            .iter()
            .map(|(machine, display, _)| MethodName { machine: (*machine).into(), display: (*display).into() })
            .collect();
        tell_apart(&mut methods);
        let shown: Vec<&str> = methods.iter().map(|method| method.display.as_str()).collect();
        assert_eq!(shown, named.iter().map(|(_, _, shown)| *shown).collect::<Vec<_>>());
    }

    #[test]
    fn overloads_that_differ_in_their_result_alone_are_told_apart() {
        check(&[
            ("a.C.get(I)Ljava/lang/Object;", "a.C.get(int)", "a.C.get(int): Object"),
            ("a.C.get(I)Ljava/lang/String;", "a.C.get(int)", "a.C.get(int): String"),
            ("a.C.get(I)[J", "a.C.get(int)", "a.C.get(int): long[]"),
            ("a.C.other(I)V", "a.C.other(int)", "a.C.other(int)"),
        ]);
    }

    #[test]
    fn types_of_one_simple_name_are_told_apart() {
        check(&[
            ("C.m(La/T;)V", "C.m(T)", "C.m(a.T): void"),
            ("C.m(Lb/T;)V", "C.m(T)", "C.m(b.T): void"),
            ("C.m()La/T;", "C.m()", "C.m(): a.T"),
            ("C.m()Lb/T;", "C.m()", "C.m(): b.T"),
        ]);
    }

    #[test]
    fn classes_of_one_name_are_one_and_lines_keep_theirs() {
        check(&[
            ("C.m()V", "C.m()", "C.m()"),
            ("C.m()V", "C.m()", "C.m()"),
            ("C.n()V:3-9", "C.n():3-9", "C.n():3-9"),
            ("C.n()V:12", "C.n():12", "C.n():12"),
        ]);
    }

    #[test]
    fn names_have_nothing_that_a_terminal_obeys() {
        check(&[("C.\u{1b}[2J()V", "C.\u{1b}[2J()", "C.\\u001b[2J()")]);
    }
}
