//! How other tools name methods.

use headwater_terms::pattern::{display_name, stable_name};
use rustc_hash::FxHashMap;

/// A frame's names, for machines and for people: of a class as the JVM writes it (`com/acme/Shop.checkout` is `com.acme.Shop.checkout`), and where
/// it has its signature (`(Ljava/lang/String|)V`), as everywhere here.
pub(super) fn method_names(frame: &str) -> (String, String) {
    let frame = &*stable_name(frame);
    let as_it_is = || (frame.to_owned(), frame.to_owned());
    let (name, signature) = frame.split_at(frame.find('(').unwrap_or(frame.len()));
    let Some((class, method)) = name.rsplit_once('.').filter(|_| !name.contains(' ')) else { return as_it_is() };
    // Go's names begin so too: `net/http.Server.Serve`, `net/http.Get`, `github.com/acme/shop.Checkout`.
    let is_class = |name: &str| name.starts_with(|c: char| c.is_uppercase() || c == '$');
    let is_internal = class
        .rsplit_once('/')
        .is_some_and(|(package, name)| !package.contains('.') && !name.contains('.') && is_class(name));
    let dotted = name.replace('/', ".");
    match signature {
        "" if is_internal => (dotted.clone(), dotted),
        _ if is_descriptor(signature) => {
            let signature = signature.replace('|', ";");
            (format!("{dotted}{signature}"), display_name(class, method, &signature))
        }
        _ => as_it_is(),
    }
}

/// Whether a signature is Java's: it has a result behind its parameters.
fn is_descriptor(signature: &str) -> bool {
    let result = signature.rsplit_once(')').map_or("", |(_, result)| result);
    let element = result.trim_start_matches('[');
    matches!(element, "B" | "C" | "D" | "F" | "I" | "J" | "S" | "Z" | "V")
        || element.starts_with('L') && element.ends_with(['|', ';'])
}

/// Names of functions, by their names and files, if these are known: where several files have one of a name, as `(anonymous)`, with the file.
pub(super) fn apart(functions: &[(&str, &str)]) -> Vec<String> {
    let mut files: FxHashMap<&str, Option<&str>> = FxHashMap::default();
    for (name, file) in functions {
        let known = files.entry(name).or_insert(Some(file));
        if known.is_some_and(|known| known != *file) {
            *known = None;
        }
    }
    let name = |(name, file): &(&str, &str)| match files[name] {
        None if !file.is_empty() => format!("{name} [{file}]"),
        _ => (*name).to_owned(),
    };
    functions.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_one_name_and_several_files_have_these_behind_it() {
        let functions =
            [("(anonymous)", "a.js"), ("(anonymous)", "b.js"), ("f", "a.js"), ("f", "a.js"), ("(anonymous)", "")];
        let names = apart(&functions);
        assert_eq!(names, ["(anonymous) [a.js]", "(anonymous) [b.js]", "f", "f", "(anonymous)"]);
    }

    #[test]
    fn a_class_is_called_as_java_writes_it_and_other_languages_names_stay() {
        for (frame, machine) in [
            ("com/acme/Shop.sell", "com.acme.Shop.sell"),
            ("com/acme/Shop.sell(I)V", "com.acme.Shop.sell(I)V"),
            ("com/acme/Shop$$Lambda$4.0x00007f6bd8000c30.call", "com.acme.Shop$$Lambda.call"),
            ("com.acme.Shop.sell", "com.acme.Shop.sell"),
            ("net/http.HandlerFunc.ServeHTTP", "net/http.HandlerFunc.ServeHTTP"),
            ("net/http.Get", "net/http.Get"),
            ("net/http.(*conn).serve", "net/http.(*conn).serve"),
            ("github.com/acme/shop.Checkout", "github.com/acme/shop.Checkout"),
            ("std::vector<a/b>::at", "std::vector<a/b>::at"),
            ("(anonymous)", "(anonymous)"),
        ] {
            assert_eq!(method_names(frame).0, machine);
        }
    }
}
