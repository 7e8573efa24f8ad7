//! Which methods and threads of a profile are meant.

use std::fmt;
use std::str::FromStr;

use crate::profile::ThreadProfile;
use headwater_terms::pattern::{MethodPattern, PatternError};

/// Methods of a profile, as users name them.
///
/// With `::`, `#` or a parameter list it is a [`MethodPattern`]. Otherwise it is a method (`com.acme.Shop.checkout`), a class with all its
/// methods (`com.acme.Shop`), or a package with all its classes and subpackages (`com.acme` or `com.acme.*`); a name without a dot is
/// also every method of that name. `*` stands for any characters, dots included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodSelector {
    text: String,
    readings: Vec<MethodPattern>,
}

impl FromStr for MethodSelector {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<MethodSelector, PatternError> {
        let text = text.trim();
        if text.contains("::") || text.contains(['#', '(']) {
            return Ok(MethodSelector { text: text.to_owned(), readings: vec![text.parse()?] });
        }
        let class: Result<MethodPattern, PatternError> = format!("{text}::*").parse();
        let package = format!("{text}.*::*").parse();
        let method: Result<MethodPattern, PatternError> =
            if text.contains('.') { text.parse() } else { format!("*::{text}").parse() };
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        // Where no reading makes sense, what is wrong with the first says it best: its columns are those of the text.
        let complaint = method.as_ref().err().cloned().unwrap_or(PatternError::Empty);
        let readings: Vec<MethodPattern> = [method, class, package].into_iter().flatten().collect();
        if readings.is_empty() { Err(complaint) } else { Ok(MethodSelector { text: text.to_owned(), readings }) }
    }
}

impl MethodSelector {
    /// Whether a method is meant, given by its machine name: `a.b.C.m(ILjava/lang/String;)V`.
    pub fn matches(&self, machine: &str) -> bool {
        self.is_read(machine, |_| true)
    }

    /// Whether a method is meant by its own name, and not with others of its class or package.
    pub fn names(&self, machine: &str) -> bool {
        self.is_read(machine, |reading| !reading.method_text().contains('*'))
    }

    /// Whether methods of a class may be meant, given by its name with dots, and not only because those of any class are.
    pub fn means_class(&self, class: &str) -> bool {
        self.readings.iter().any(|reading| reading.class_text() != "*" && reading.matches_class(class))
    }

    /// Whether methods of this name may be meant if their class does not matter.
    pub fn means_method(&self, machine: &str) -> bool {
        let method = without_place(machine).split('(').next().and_then(|name| name.rsplit('.').next());
        let is_named = |reading: &MethodPattern| method.is_some_and(|method| reading.method_text() == method);
        self.readings.iter().any(is_named)
    }

    fn is_read(&self, machine: &str, counts: impl Fn(&MethodPattern) -> bool) -> bool {
        let machine = without_place(machine);
        let (name, descriptor) = machine.split_at(machine.find('(').unwrap_or(machine.len()));
        let Some((class, method)) = name.rsplit_once('.') else { return false };
        self.readings.iter().any(|reading| counts(reading) && reading.matches(class, method, descriptor))
    }
}

/// Of `a.b.C.m(I)V:12`, as methods are called that are told apart by lines: the method. Of `a.b.Item@C:12`, an object that is made there: its class.
fn without_place(machine: &str) -> &str {
    let named = match machine.rsplit_once(':') {
        Some((named, line)) if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) => named,
        _ => machine,
    };
    match named.split_once('@') {
        Some((class, _)) if !named.contains('(') => class,
        _ => named,
    }
}

impl fmt::Display for MethodSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Threads of a profile: the JVM's number, or a name, in which `*` stands for any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadSelector(String);

impl FromStr for ThreadSelector {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<ThreadSelector, &'static str> {
        if text.is_empty() { Err("give a thread's name or number") } else { Ok(ThreadSelector(text.to_owned())) }
    }
}

impl ThreadSelector {
    /// Whether a thread is meant.
    pub fn matches(&self, thread: &ThreadProfile) -> bool {
        self.0.parse() == Ok(thread.id.0) || covers(&self.0, &thread.name)
    }
}

impl fmt::Display for ThreadSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a pattern with `*` matches a text. The earliest place for each part is the best one.
fn covers(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(head) else { return false };
    let (inner, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in inner.split('*') {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use headwater_protocol::ThreadId;

    use super::*;
    use crate::profile::Tree;

    #[test]
    fn a_line_is_a_part_of_its_method() {
        let checkout: MethodSelector = "com.acme.Shop.checkout(Cart)".parse().expect("a selector");
        assert!(checkout.matches("com.acme.Shop.checkout(Lcom/acme/Cart;)Z:41"));
        let item: MethodSelector = "com.acme.Item".parse().expect("a selector");
        assert!(
            item.matches("com.acme.Item@Shop:41")
                && item.matches("com.acme.Item@Shop")
                && !item.matches("com.acme.Items@Shop:41")
        );
        let checkout: MethodSelector = "checkout".parse().expect("a selector");
        assert!(checkout.matches("com.acme.Shop.checkout:41") && !checkout.matches("com.acme.Shop.checkouts:41"));
    }

    #[test]
    fn a_selector_is_a_method_a_class_or_a_package() {
        const CHECKOUT: &str = "com.acme.Shop.checkout(Lcom/acme/Cart;)Z";
        for (selector, meant) in [
            ("com.acme.Shop.checkout", true),
            ("com.acme.Shop.check*", true),
            ("com.acme.Shop::checkout", true),
            ("com.acme.Shop#checkout", true),
            ("com.acme.Shop.checkout(Cart)", true),
            ("com.acme.Shop.checkout(int)", false),
            ("com.acme.Shop", true),
            ("com.acme.Shop.*", true),
            ("com.acme", true),
            ("com.acme.*", true),
            ("com.*", true),
            ("com.acme.Sh*", true),
            ("com.acme.Sho", false),
            ("com.ac", false),
            ("*Shop", true),
            ("*", true),
            ("checkout", true),
            ("check*", true),
            ("Shop", false),
            ("org.*", false),
        ] {
            assert_eq!(selector.parse::<MethodSelector>().expect(selector).matches(CHECKOUT), meant, "{selector}");
        }
        assert!("Main.*".parse::<MethodSelector>().expect("a class").matches("Main.run()V"));
        assert!("Main".parse::<MethodSelector>().expect("a class").matches("Main$Inner.run()V"));
    }

    #[test]
    fn a_method_is_meant_by_its_own_name_or_with_others() {
        const OVER: &str = "shop.Exact.over(I)V";
        for (selector, named) in [
            ("shop.Exact.over", true),
            ("Exact::over", false),
            ("*Exact::over", true),
            ("over", true),
            ("shop.Exact.over(int)", true),
            ("shop.Exact.over(long)", false),
            ("shop.Exact.ov*", false),
            ("shop.Exact", false),
            ("shop", false),
            ("*", false),
        ] {
            assert_eq!(selector.parse::<MethodSelector>().expect(selector).names(OVER), named, "{selector}");
        }
    }

    #[test]
    fn what_names_nothing_is_refused_with_its_column() {
        let refused = |text: &str| text.parse::<MethodSelector>().expect_err(text).to_string();
        assert_eq!(refused("com.acme.."), "`com.acme..`, column 9: the class name is missing after this dot");
        assert!(refused(" ").starts_with("the pattern is empty"));
        assert!(refused("a b.c").contains("column 2"), "{}", refused("a b.c"));
    }

    #[test]
    fn threads_by_number_name_and_wildcard() {
        let thread = ThreadProfile { id: ThreadId(31), name: "http-8080-exec-1".into(), tree: Tree::default() };
        for (selector, meant) in [
            ("31", true),
            ("3", false),
            ("http-8080-exec-1", true),
            ("http-*", true),
            ("*exec*", true),
            ("http*exec*1", true),
            ("http*exec*2", false),
            ("*1*1", false),
            ("exec", false),
            ("*", true),
        ] {
            assert_eq!(selector.parse::<ThreadSelector>().expect(selector).matches(&thread), meant, "{selector}");
        }
        assert!("".parse::<ThreadSelector>().is_err());
    }
}
