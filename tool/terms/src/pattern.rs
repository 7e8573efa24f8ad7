//! Method and class patterns, as users write them on the command line, and the names that reports show.
//!
//! A method pattern is `CLASS::METHOD`, `CLASS.METHOD` or `CLASS#METHOD`, with an optional parameter list:
//!
//! - `*` matches any characters, dots and `$` included: `com.acme.*::get*` also covers `com.acme.a.B$C::getX`, and `*`
//!   as a method covers constructors and class initialisers.
//! - Nested classes are `a.Outer$Inner` or `a.Outer.Inner`: a dot in a pattern matches a dot or a `$`.
//! - `<init>` is a constructor, `<clinit>` a class initialiser.
//! - Parameters in Java form are full or simple type names, `m(int, String, byte[], Object...)`; type arguments and
//!   parameter names are allowed and ignored; `*` is any one type, or characters in its name. `(..)` and `(*)` are any list.
//!   The result may follow behind a colon, `m(int): String`, where overloads differ in nothing else.
//! - Parameters in JVM form are a descriptor, `m(ILjava/lang/String;)V`; the return type may be left out.
//!   A list that reads both ways, such as `(I)`, is taken as JVM form.

use std::fmt;
use std::str::FromStr;

mod glob;
mod names;
mod near;
#[cfg(test)]
mod tests;

pub use names::{Detail, class_name, detailed_name, display_name, java_name, stable_name};
pub use near::near_misses;

use glob::{Glob, Star};
use names::{field_type, is_descriptor_list, parameter_types, result_type};

/// What the names of the JDK's classes begin with.
pub const JDK_PACKAGES: [&str; 5] = ["java.", "javax.", "jdk.", "sun.", "com.sun."];

/// What means the method that people are shown as `a.b.C.m(int)`: `a.b.C::m(int)`. The line behind it, if it has one, is left out.
pub fn pattern_of(display: &str) -> Option<String> {
    let (method, line) = display.rsplit_once(':').unwrap_or((display, ""));
    let display = if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) { method } else { display };
    let (name, parameters) = display.split_at(display.find('(').unwrap_or(display.len()));
    let (class, method) = name.rsplit_once('.')?;
    Some(format!("{class}::{method}{parameters}"))
}

/// Why a pattern could not be understood. Columns count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is nothing.
    #[error("the pattern is empty; write a class and a method, such as `com.acme.Main::run`")]
    Empty,
    /// There is no separator between class and method.
    #[error("`{pattern}` names no class; write `CLASS::{pattern}`, or `*::{pattern}` for any class")]
    NoClass {
        /// The pattern.
        pattern: String,
    },
    /// Class or method are empty, or hold a character that no name has.
    #[error("`{pattern}`, column {column}: {why}")]
    BadName {
        /// The pattern.
        pattern: String,
        /// Where in it.
        column: usize,
        /// What is wrong there, and what would be right.
        why: &'static str,
    },
    /// The parameter list or what follows it is neither in Java form nor in JVM form.
    #[error("`{pattern}`, column {column}: {why}; write parameters as `(int, String)` or `(ILjava/lang/String;)V`")]
    BadParameters {
        /// The pattern.
        pattern: String,
        /// Where in it.
        column: usize,
        /// What is wrong there.
        why: &'static str,
    },
    /// A filter has a parameter list.
    #[error(
        "`{pattern}`, column {column}: a filter selects classes and methods without their parameters; leave them out"
    )]
    ParametersInFilter {
        /// The pattern.
        pattern: String,
        /// Where the list begins.
        column: usize,
    },
}

/// Which methods a user means; the module's documentation has the syntax.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodPattern {
    text: String,
    class_text: String,
    method_text: String,
    class: Glob,
    method: Glob,
    parameters: Parameters,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Parameters {
    Any,
    Java {
        types: Vec<TypePattern>,
        result: Option<TypePattern>,
    },
    /// With the parentheses; the return type apart.
    Jvm {
        list: String,
        result: Option<String>,
    },
}

/// A type in Java form, as a pattern over `java_type`'s output.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TypePattern(Glob);

impl TypePattern {
    /// A type without its package, or an inner class without its outer one, is meant as well.
    fn matches(&self, full_name: &str) -> bool {
        self.0.matches(full_name)
            || full_name.match_indices(['.', '$']).any(|(at, _)| self.0.matches(&full_name[at + 1..]))
    }
}

impl FromStr for MethodPattern {
    type Err = PatternError;

    fn from_str(pattern: &str) -> Result<MethodPattern, PatternError> {
        let text = pattern.trim();
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        let (head, list) = text.split_at(text.find('(').unwrap_or(text.len()));
        let head = head.trim_end();
        let Some((class_text, separator_bytes)) = split_class(head).or_else(|| Some((head.rfind(['.', '/'])?, 1)))
        else {
            return Err(PatternError::NoClass { pattern: text.to_owned() });
        };
        let (class_text, method_text) = (&head[..class_text], &head[class_text + separator_bytes..]);
        check_class(text, class_text)?;
        check_method(text, method_text, head.len() - method_text.len())?;
        Ok(MethodPattern {
            text: text.to_owned(),
            class_text: class_text.to_owned(),
            method_text: method_text.to_owned(),
            class: Glob::of_class(class_text, Star::Any),
            method: Glob::of_name(method_text),
            parameters: parse_parameters(text, list)?,
        })
    }
}

/// Where `::` or `#` ends the class, and the separator's length.
fn split_class(head: &str) -> Option<(usize, usize)> {
    head.rfind("::").map(|at| (at, 2)).or_else(|| head.rfind('#').map(|at| (at, 1)))
}

fn column(text: &str, byte: usize) -> usize {
    text[..byte].chars().count() + 1
}

fn check_class(text: &str, class: &str) -> Result<(), PatternError> {
    let bad = |at, why| Err(PatternError::BadName { pattern: text.to_owned(), column: column(text, at), why });
    if class.is_empty() {
        return bad(0, "the class is missing; write `*` for any class");
    }
    if let Some(at) = class.find(|c: char| c.is_whitespace() || "()[];:#<>,".contains(c)) {
        return bad(at, "no class name has this character");
    }
    if let Some(at) = class.find("..").or_else(|| class.starts_with('.').then_some(0)) {
        return bad(at, "a package or class name is missing here; `*` matches any number of them");
    }
    if class.ends_with('.') {
        return bad(class.len() - 1, "the class name is missing after this dot");
    }
    Ok(())
}

fn check_method(text: &str, method: &str, start: usize) -> Result<(), PatternError> {
    let bad = |at, why| Err(PatternError::BadName { pattern: text.to_owned(), column: column(text, start + at), why });
    if method.is_empty() {
        return bad(0, "the method is missing; write `*` for all of them");
    }
    if let Some(at) = method.find(['.', ';', '[', ']', '/', ')', ',', ':', '#']) {
        return bad(at, "no method name has this character");
    }
    // JVMS 4.2.2: only the two special names have angle brackets.
    if let Some(at) = method.find(['<', '>'])
        && !["<init>", "<clinit>", "<*>"].contains(&method)
    {
        return bad(at, "the only names in angle brackets are `<init>` and `<clinit>`");
    }
    Ok(())
}

fn parse_parameters(text: &str, list: &str) -> Result<Parameters, PatternError> {
    let start = text.len() - list.len();
    let bad = |at: usize, why| {
        Err(PatternError::BadParameters { pattern: text.to_owned(), column: column(text, start + at), why })
    };
    if list.is_empty() {
        return Ok(Parameters::Any);
    }
    let Some(close) = list.rfind(')') else { return bad(0, "this parenthesis is never closed") };
    let (inner, result) = (&list[1..close], list[close + 1..].trim());
    if let Some(at) = inner.find(['(', ')']) {
        return bad(1 + at, "a second parameter list begins or ends here");
    }
    if let Some(result) = result.strip_prefix(':') {
        let Some(name) = java_parameter(result) else {
            return bad(close + 2 + (result.len() - result.trim_start().len()), "this is no Java type");
        };
        let result = Some(TypePattern(Glob::of_class(&name, Star::Any)));
        let types = if inner.trim().is_empty() { Ok(Vec::new()) } else { java_types(inner) };
        return types
            .map_or_else(|at| bad(1 + at, "this is no Java type"), |types| Ok(Parameters::Java { types, result }));
    }
    let result = match result.replace('.', "/") {
        none if none.is_empty() => None,
        result if result == "V" || field_type(&result).is_some_and(|end| end == result.len()) => Some(result),
        _ => return bad(close + 1, "what follows the list is no return type in JVM form"),
    };
    if matches!(inner.trim(), ".." | "*" | "...") && result.is_none() {
        return Ok(Parameters::Any);
    }
    let compact = inner.trim().replace('.', "/");
    if is_descriptor_list(&compact) {
        return Ok(Parameters::Jvm { list: format!("({compact})"), result });
    }
    if result.is_some() {
        return bad(1, "this is followed by a return type in JVM form, but is no list in JVM form");
    }
    let types = java_types(inner);
    types.map_or_else(|at| bad(1 + at, "this is no Java type"), |types| Ok(Parameters::Java { types, result: None }))
}

/// The types of a list in Java form; or where one is none.
fn java_types(list: &str) -> Result<Vec<TypePattern>, usize> {
    let mut types = Vec::new();
    let mut at = 0;
    for parameter in split_outside_type_arguments(list) {
        match java_parameter(parameter) {
            Some(name) => types.push(TypePattern(Glob::of_class(&name, Star::Any))),
            None => return Err(at + (parameter.len() - parameter.trim_start().len())),
        }
        at += parameter.len() + 1;
    }
    Ok(types)
}

/// Splits at the commas that are not inside `<...>`.
fn split_outside_type_arguments(list: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, character) in list.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts
}

/// The type of one parameter in Java form, without type arguments, modifiers and the parameter's name, `...` as `[]`.
fn java_parameter(parameter: &str) -> Option<String> {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for character in parameter.trim().chars() {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.checked_sub(1)?,
            _ if depth == 0 => plain.push(character),
            _ => {}
        }
    }
    if depth != 0 {
        return None;
    }
    let mut spaced = String::new();
    for character in plain.replace("...", "[]").chars() {
        match character {
            '[' => spaced.push_str(" ["),
            ']' => spaced.push_str("] "),
            space if space.is_whitespace() && spaced.ends_with('[') => {}
            other => spaced.push(other),
        }
    }
    let mut words = spaced.split_whitespace().filter(|word| *word != "final").peekable();
    let mut name = words.next()?.replace('/', ".");
    let mut dimensions = 0;
    while words.next_if_eq(&"[]").is_some() {
        dimensions += 1;
    }
    // The parameter's name, and dimensions behind it as in C.
    if let Some(variable) = words.next()
        && !variable.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$')
    {
        return None;
    }
    for rest in words {
        if rest != "[]" {
            return None;
        }
        dimensions += 1;
    }
    let valid = |c: char| c.is_alphanumeric() || "._$*-".contains(c);
    if !name.chars().all(valid) || name.starts_with('.') || name.ends_with('.') || name.contains("..") {
        return None;
    }
    // `*` alone is any type, arrays too; otherwise the dimensions must agree.
    name.push_str(&"[]".repeat(dimensions));
    Some(name)
}

impl MethodPattern {
    /// Whether a method is meant, given as in a class file: `a/b/C`, `m`, `(I)V`.
    pub fn matches(&self, class_internal: &str, method: &str, descriptor: &str) -> bool {
        self.matches_method(method, descriptor) && self.matches_class(class_internal)
    }

    /// Whether methods of this class may be meant.
    pub fn matches_class(&self, class_internal: &str) -> bool {
        self.class.matches(class_internal)
    }

    /// Whether a method of a class that matches is meant.
    pub fn matches_method(&self, name: &str, descriptor: &str) -> bool {
        self.method.matches(name)
            && match &self.parameters {
                Parameters::Any => true,
                Parameters::Jvm { list, result } => descriptor
                    .strip_prefix(list.as_str())
                    .is_some_and(|rest| result.as_deref().is_none_or(|result| result == rest)),
                Parameters::Java { types, result } => {
                    parameter_types(descriptor).is_some_and(|parameters| {
                        parameters.len() == types.len()
                            && types.iter().zip(&parameters).all(|(wanted, parameter)| wanted.matches(parameter))
                    }) && result
                        .as_ref()
                        .is_none_or(|wanted| result_type(descriptor).is_some_and(|result| wanted.matches(&result)))
                }
            }
    }

    /// Whether the class part has no wildcard, so that it names one class.
    pub fn class_is_exact(&self) -> bool {
        self.class.is_exact()
    }

    /// The class part, as given.
    pub fn class_text(&self) -> &str {
        &self.class_text
    }

    /// The method part without its parameters, as given.
    pub fn method_text(&self) -> &str {
        &self.method_text
    }
}

impl fmt::Display for MethodPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Which classes and methods a filter (`--include`, `--exclude`) means.
///
/// `com.acme.Foo` is one class, `com.acme.*` the classes of that package with their nested ones, `com.acme.**` those of
/// its subpackages too. In general `*` stops at a dot and `**` does not. A method part may follow: `com.acme.Foo::get*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassPattern {
    text: String,
    class: Glob,
    method: Option<Glob>,
}

impl FromStr for ClassPattern {
    type Err = PatternError;

    fn from_str(pattern: &str) -> Result<ClassPattern, PatternError> {
        let text = pattern.trim();
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        if let Some(at) = text.find('(') {
            return Err(PatternError::ParametersInFilter { pattern: text.to_owned(), column: column(text, at) });
        }
        let (class, method) = match split_class(text) {
            Some((at, length)) => (&text[..at], Some(&text[at + length..])),
            None => (text, None),
        };
        check_class(text, class)?;
        if let Some(method) = method {
            check_method(text, method, text.len() - method.len())?;
        }
        let class = Glob::of_class(class, Star::WithinSegment);
        Ok(ClassPattern { text: text.to_owned(), class, method: method.map(Glob::of_name) })
    }
}

impl ClassPattern {
    /// Whether methods of this class may be meant, given as in a class file: `a/b/C`.
    pub fn matches_class(&self, class_internal: &str) -> bool {
        self.class.matches(class_internal)
    }

    /// Whether it can mean classes of the JDK: by what stands before its first wildcard.
    pub fn may_mean_jdk(&self) -> bool {
        let class = split_class(&self.text).map_or(self.text.as_str(), |(at, _)| &self.text[..at]).replace('/', ".");
        let (fixed, is_whole) = class.split_once('*').map_or((&*class, true), |(fixed, _)| (fixed, false));
        JDK_PACKAGES.iter().any(|packages| fixed.starts_with(packages) || !is_whole && packages.starts_with(fixed))
    }

    /// Whether a method is meant, given as in a class file: `a/b/C`, `m`.
    pub fn matches(&self, class_internal: &str, method: &str) -> bool {
        self.class.matches(class_internal) && self.method.as_ref().is_none_or(|wanted| wanted.matches(method))
    }
}

impl fmt::Display for ClassPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
