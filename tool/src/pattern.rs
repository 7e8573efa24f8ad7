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
//! - Parameters in JVM form are a descriptor, `m(ILjava/lang/String;)V`; the return type may be left out.
//!   A list that reads both ways, such as `(I)`, is taken as JVM form.

use std::fmt;
use std::str::FromStr;

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
    Java(Vec<TypePattern>),
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
    let mut types = Vec::new();
    let mut at = 1;
    for parameter in split_outside_type_arguments(inner) {
        match java_parameter(parameter) {
            Some(name) => types.push(TypePattern(Glob::of_class(&name, Star::Any))),
            None => return bad(at + (parameter.len() - parameter.trim_start().len()), "this is no Java type"),
        }
        at += parameter.len() + 1;
    }
    Ok(Parameters::Java(types))
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
                Parameters::Java(types) => parameter_types(descriptor).is_some_and(|parameters| {
                    parameters.len() == types.len()
                        && types.iter().zip(&parameters).all(|(wanted, parameter)| wanted.matches(parameter))
                }),
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

/// What a single `*` covers.
#[derive(Clone, Copy)]
enum Star {
    Any,
    WithinSegment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Byte(u8),
    /// The end of a package or of an outer class: `.`, `/` or `$`.
    Separator,
    Any,
    /// Any characters but those that end a package: `.` and `/`.
    AnyInSegment,
}

/// A wildcard pattern, matched byte by byte: UTF-8 needs no more.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Glob(Vec<Token>);

impl Glob {
    fn of_class(text: &str, star: Star) -> Glob {
        Glob::compile(text, star, Token::Separator)
    }

    fn of_name(text: &str) -> Glob {
        Glob::compile(text, Star::Any, Token::Byte(b'.'))
    }

    fn compile(text: &str, star: Star, separator: Token) -> Glob {
        let mut tokens = Vec::with_capacity(text.len());
        let mut bytes = text.bytes().peekable();
        while let Some(byte) = bytes.next() {
            tokens.push(match (byte, star) {
                (b'*', _) => {
                    let mut stars = 1;
                    while bytes.next_if_eq(&b'*').is_some() {
                        stars += 1;
                    }
                    if stars == 1 && matches!(star, Star::WithinSegment) { Token::AnyInSegment } else { Token::Any }
                }
                (b'.' | b'/', _) => separator,
                (byte, _) => Token::Byte(byte),
            });
        }
        Glob(tokens)
    }

    fn is_exact(&self) -> bool {
        !self.0.iter().any(|token| token.is_wildcard())
    }

    fn matches(&self, name: &str) -> bool {
        let name = name.as_bytes();
        // `*.Foo` and `**.Foo` also mean the class without a package.
        if let [Token::Any | Token::AnyInSegment, Token::Separator, rest @ ..] = self.0.as_slice()
            && tokens_match(rest, name)
        {
            return true;
        }
        tokens_match(&self.0, name)
    }
}

impl Token {
    fn is_wildcard(self) -> bool {
        matches!(self, Token::Any | Token::AnyInSegment)
    }

    /// Whether the token matches this byte, or a wildcard covers it.
    fn covers(self, byte: u8) -> bool {
        match self {
            Token::Byte(wanted) => wanted == byte,
            Token::Separator => matches!(byte, b'.' | b'/' | b'$'),
            Token::Any => true,
            Token::AnyInSegment => !matches!(byte, b'.' | b'/'),
        }
    }
}

/// What precedes the first wildcard is compared directly; from there on all ways to match are followed at once, because
/// with two kinds of wildcards and a separator that is also an ordinary character, no single way back is enough.
fn tokens_match(tokens: &[Token], name: &[u8]) -> bool {
    let plain = tokens.iter().position(|token| token.is_wildcard()).unwrap_or(tokens.len());
    let Some((head, tail)) = name.split_at_checked(plain) else { return false };
    if !tokens.iter().zip(head).all(|(token, &byte)| token.covers(byte)) {
        return false;
    }
    let tokens = &tokens[plain..];
    match tokens {
        [] => return tail.is_empty(),
        [Token::Any] => return true,
        _ => {}
    }
    // reached[i]: the bytes so far can be matched by the first i tokens.
    let mut reached = vec![false; tokens.len() + 1];
    reached[0] = true;
    let skip_wildcards = |reached: &mut [bool]| {
        for (at, token) in tokens.iter().enumerate() {
            reached[at + 1] |= reached[at] && token.is_wildcard();
        }
    };
    skip_wildcards(&mut reached);
    let mut next = reached.clone();
    for &byte in tail {
        next.fill(false);
        for (at, token) in tokens.iter().enumerate() {
            if reached[at] && token.covers(byte) {
                // A wildcard stays where it is, to cover more.
                next[if token.is_wildcard() { at } else { at + 1 }] = true;
            }
        }
        skip_wildcards(&mut next);
        std::mem::swap(&mut reached, &mut next);
    }
    reached[tokens.len()]
}

/// The end of the field type that a text begins with (JVMS 4.3.2).
fn field_type(text: &str) -> Option<usize> {
    let dimensions = text.bytes().take_while(|&byte| byte == b'[').count();
    match text.as_bytes().get(dimensions)? {
        b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' => Some(dimensions + 1),
        b'L' => {
            let end = text.find(';')?;
            let name = &text[dimensions + 1..end];
            (!name.is_empty() && !name.contains(['[', ',', ' '])).then_some(end + 1)
        }
        _ => None,
    }
}

fn is_descriptor_list(mut list: &str) -> bool {
    while !list.is_empty() {
        match field_type(list) {
            Some(end) => list = &list[end..],
            None => return false,
        }
    }
    true
}

/// The parameter types of a method descriptor, in Java form with full names: `int`, `java.lang.String[]`.
fn parameter_types(descriptor: &str) -> Option<Vec<String>> {
    let (mut list, _) = descriptor.strip_prefix('(')?.rsplit_once(')')?;
    let mut types = Vec::new();
    while !list.is_empty() {
        let (one, rest) = list.split_at(field_type(list)?);
        types.push(java_type(one));
        list = rest;
    }
    Some(types)
}

/// A field type of the class file in Java form.
fn java_type(descriptor: &str) -> String {
    let element = descriptor.trim_start_matches('[');
    let name = match element.as_bytes() {
        b"B" => "byte".to_owned(),
        b"C" => "char".to_owned(),
        b"D" => "double".to_owned(),
        b"F" => "float".to_owned(),
        b"I" => "int".to_owned(),
        b"J" => "long".to_owned(),
        b"S" => "short".to_owned(),
        b"Z" => "boolean".to_owned(),
        _ => element.trim_start_matches('L').trim_end_matches(';').replace('/', "."),
    };
    name + &"[]".repeat(descriptor.len() - element.len())
}

/// A method's name in machine output: `a.b.C.m(ILjava/lang/String;)V`.
pub fn java_name(class_internal: &str, method: &str, descriptor: &str) -> String {
    format!("{}.{method}{descriptor}", class_internal.replace('/', "."))
}

/// A method's name for people, with simple parameter types: `a.b.C.m(int, String)`. [`MethodPattern`] understands it.
pub fn display_name(class_internal: &str, method: &str, descriptor: &str) -> String {
    let Some(types) = parameter_types(descriptor) else { return java_name(class_internal, method, descriptor) };
    let simple: Vec<&str> = types.iter().map(|name| name.rsplit('.').next().unwrap_or(name)).collect();
    format!("{}.{method}({})", class_internal.replace('/', "."), simple.join(", "))
}

/// The candidates that come nearest to a name nobody has, best first: for "did you mean".
///
/// Names are compared without parameters, whole and by their last part; the last part counts more, because packages
/// make everything in them look alike.
pub fn near_misses<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>, limit: usize) -> Vec<&'a str> {
    const NEAR: f64 = 0.6;
    let wanted = comparable(wanted);
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut scored: Vec<(f64, &str)> = candidates
        .map(|candidate| (similarity(&wanted, &comparable(candidate)), candidate))
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|(a, x), (b, y)| b.total_cmp(a).then_with(|| x.cmp(y)));
    scored.dedup_by(|(_, x), (_, y)| x == y);
    scored.truncate(limit);
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

/// A name without parameters and wildcards, with dots for all separators.
fn comparable(name: &str) -> String {
    let head = name.split('(').next().unwrap_or(name);
    head.replace("::", ".").replace(['#', '/', '$'], ".").replace('*', "").trim_matches('.').to_owned()
}

fn similarity(wanted: &str, candidate: &str) -> f64 {
    const SIMPLE_WEIGHT: f64 = 0.6;
    const SHORTEST_PART: usize = 3;
    let simple = |name: &'_ str| name.rsplit('.').next().map(str::to_lowercase).unwrap_or_default();
    let (wanted_simple, candidate_simple) = (simple(wanted), simple(candidate));
    let last_part = if wanted_simple == candidate_simple {
        1.0
    } else if wanted_simple.len() >= SHORTEST_PART && candidate_simple.contains(&wanted_simple) {
        0.85
    } else {
        strsim::normalized_damerau_levenshtein(&wanted_simple, &candidate_simple)
    };
    // The expensive comparison only where it can still change the outcome.
    if last_part < 0.3 {
        return 0.0;
    }
    // A simple name was asked for: the package of the candidate says nothing.
    let whole = if wanted.contains('.') { strsim::jaro_winkler(wanted, candidate) } else { last_part };
    SIMPLE_WEIGHT * last_part + (1.0 - SIMPLE_WEIGHT) * whole
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A method as `a/b/C.m(I)V`.
    fn split(method: &str) -> (&str, &str, &str) {
        let (class, rest) = method.split_once('.').expect("a class");
        let (name, _) = rest.split_once('(').expect("a descriptor");
        (class, name, &rest[name.len()..])
    }

    #[test]
    fn method_patterns_match_what_they_say() {
        let cases: &[(&str, &str, bool)] = &[
            ("a.b.C::m", "a/b/C.m()V", true),
            ("a.b.C.m", "a/b/C.m()V", true),
            ("a.b.C#m", "a/b/C.m(IJ)V", true),
            ("a/b/C.m", "a/b/C.m()V", true),
            (" a.b.C::m ", "a/b/C.m()V", true),
            ("a.b.C::m", "a/b/C.mm()V", false),
            ("a.b.C::m", "a/b/D.m()V", false),
            ("a.b.C::m", "x/a/b/C.m()V", false),
            ("a.b.C::m", "a/b/C$D.m()V", false),
            ("C::m", "C.m()V", true),
            ("C::m", "a/C.m()V", false),
            ("*::m", "a/b/C.m()V", true),
            ("*.C::m", "a/b/C.m()V", true),
            ("*.C::m", "C.m()V", true),
            ("*.C::m", "a/b/XC.m()V", false),
            ("a.*::get*", "a/b/c/D$E.getX()V", true),
            ("a.*.D::*", "a/b/c/D.x()V", true),
            ("a.*.D::*", "a/D.x()V", false),
            ("a.*Service::*", "a/b/OrderService.<init>()V", true),
            ("a.**::m", "a/b/C.m()V", true),
            ("a.b.Outer$Inner::m", "a/b/Outer$Inner.m()V", true),
            ("a.b.Outer.Inner::m", "a/b/Outer$Inner.m()V", true),
            ("a.b.Outer.Inner.m", "a/b/Outer$Inner.m()V", true),
            ("a.b.Outer$Inner::m", "a/b/Outer/Inner.m()V", false),
            ("a.b.C.<init>", "a/b/C.<init>()V", true),
            ("a.b.C::<clinit>", "a/b/C.<clinit>()V", true),
            ("a.b.C::<init>", "a/b/C.<clinit>()V", false),
            ("a.C::caf*", "a/C.café()V", true),
            ("a.C::m*n*o", "a/C.manyno()V", true),
            ("a.C::m*n*o", "a/C.many()V", false),
            ("a.C::lambda$m$0", "a/C.lambda$m$0()V", true),
            // Parameters in JVM form.
            ("a.C::m()", "a/C.m()V", true),
            ("a.C::m()", "a/C.m(I)V", false),
            ("a.C::m()V", "a/C.m()I", false),
            ("a.C::m(ILjava/lang/String;)", "a/C.m(ILjava/lang/String;)J", true),
            ("a.C::m(ILjava/lang/String;)V", "a/C.m(ILjava/lang/String;)J", false),
            ("a.C::m(ILjava.lang.String;)V", "a/C.m(ILjava/lang/String;)V", true),
            ("a.C::m([[J)[B", "a/C.m([[J)[B", true),
            ("a.C::m(I)", "a/C.m(II)V", false),
            // Parameters in Java form.
            ("a.C.m(int, java.lang.String, byte[])", "a/C.m(ILjava/lang/String;[B)V", true),
            ("a.C.m(int, String, byte[])", "a/C.m(ILjava/lang/String;[B)V", true),
            ("a.C.m(int,String,byte [ ] )", "a/C.m(ILjava/lang/String;[B)V", true),
            ("a.C.m(int, ring)", "a/C.m(ILjava/lang/String;)V", false),
            ("a.C.m(int)", "a/C.m(J)V", false),
            ("a.C.m(int)", "a/C.m(II)V", false),
            ("a.C.m(int)", "a/C.m([I)V", false),
            ("a.C.m(Object...)", "a/C.m([Ljava/lang/Object;)V", true),
            ("a.C.m(String fmt, Object... args)", "a/C.m(Ljava/lang/String;[Ljava/lang/Object;)V", true),
            ("a.C.m(final int count, int rest[])", "a/C.m(I[I)V", true),
            ("a.C.m(Map<String, List<?>>, int[][])", "a/C.m(Ljava/util/Map;[[I)V", true),
            ("a.C.m(Map.Entry)", "a/C.m(Ljava/util/Map$Entry;)V", true),
            ("a.C.m(Entry)", "a/C.m(Ljava/util/Map$Entry;)V", true),
            ("a.C.m(java.util.Map$Entry)", "a/C.m(Ljava/util/Map$Entry;)V", true),
            ("a.C.m(*, int)", "a/C.m([Ljava/lang/String;I)V", true),
            ("a.C.m(*, int)", "a/C.m(I)V", false),
            ("a.C.m(*)", "a/C.m(IJ)V", true),
            ("a.C.m(..)", "a/C.m()V", true),
        ];
        for &(pattern, method, expected) in cases {
            let (class, name, descriptor) = split(method);
            let parsed: MethodPattern = pattern.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(parsed.matches(class, name, descriptor), expected, "{pattern} on {method}");
            assert_eq!(parsed.to_string(), pattern.trim());
        }
    }

    #[test]
    fn patterns_give_their_parts() {
        let cases = [
            ("a.b.C::m(int)", "a.b.C", "m", true),
            ("a.b.C.m", "a.b.C", "m", true),
            ("a.*.C#get*", "a.*.C", "get*", false),
        ];
        for (pattern, class, method, exact) in cases {
            let parsed: MethodPattern = pattern.parse().expect("valid");
            assert_eq!((parsed.class_text(), parsed.method_text()), (class, method));
            assert_eq!(parsed.class_is_exact(), exact);
        }
    }

    #[test]
    fn errors_say_where_and_why() {
        let cases = [
            ("", "the pattern is empty"),
            ("main", "`main` names no class; write `CLASS::main`, or `*::main`"),
            ("::m", "column 1: the class is missing"),
            ("a.C::", "column 6: the method is missing"),
            ("a.C.", "column 5: the method is missing"),
            ("a..C::m", "column 2: a package or class name is missing"),
            ("a.C.::m", "column 4: the class name is missing after this dot"),
            ("a b::m", "column 2: no class name has this character"),
            ("a.List<X>::m", "column 7: no class name"),
            ("a.C::x.y", "column 7: no method name has this character"),
            ("é.C::<int>", "column 6: the only names in angle brackets"),
            ("a.C::m(int", "column 7: this parenthesis is never closed"),
            ("a.C::m(int))", "column 11: a second parameter list begins or ends here"),
            ("a.C::m(int)Q", "column 12: what follows the list is no return type"),
            ("a.C::m(int)V", "column 8: this is followed by a return type in JVM form"),
            ("a.C::m(int,, long)", "column 12: this is no Java type"),
            ("a.C::m(int, a-!)", "column 13: this is no Java type"),
            ("a.C::m(List<X)", "column 8: this is no Java type"),
        ];
        for (pattern, expected) in cases {
            let error = pattern.parse::<MethodPattern>().expect_err(pattern).to_string();
            assert!(error.contains(expected), "{pattern}: {error}");
        }
        let error = "a.C::m(int)".parse::<ClassPattern>().expect_err("no parameters").to_string();
        assert!(error.contains("column 7: a filter selects classes and methods without"), "{error}");
    }

    #[test]
    fn filters_match_packages_classes_and_methods() {
        let cases = [
            ("com.acme.**", "com/acme/a/b/C", true),
            ("com.acme.**", "com/acme/C", true),
            ("com.acme.**", "com/acmex/C", false),
            ("com.acme.*", "com/acme/C", true),
            ("com.acme.*", "com/acme/C$D", true),
            ("com.acme.*", "com/acme/a/C", false),
            ("com.acme.Foo", "com/acme/Foo", true),
            ("com.acme.Foo", "com/acme/Foo$Bar", false),
            ("com.acme.Foo$*", "com/acme/Foo$Bar", true),
            ("com.acme.Foo*", "com/acme/Foo$Bar", true),
            ("com.*.Foo", "com/acme/Foo", true),
            ("com.*.Foo", "com/acme/x/Foo", false),
            ("com.**.Foo", "com/acme/x/Foo", true),
            ("**.*Dao", "com/acme/x/FooDao", true),
            ("**.*Dao", "FooDao", true),
            ("**a.*b.c", "xa/b/a/bb/c", true),
            ("**", "X", true),
        ];
        for (pattern, class, expected) in cases {
            let parsed: ClassPattern = pattern.parse().expect("valid");
            assert_eq!(parsed.matches(class, "m"), expected, "{pattern} on {class}");
            assert_eq!(parsed.to_string(), pattern);
        }
        for (pattern, method, expected) in [
            ("com.acme.Foo::bar*", "barrier", true),
            ("com.acme.Foo#bar*", "foo", false),
            ("com.acme.*::<init>", "<init>", true),
        ] {
            let parsed: ClassPattern = pattern.parse().expect("valid");
            assert_eq!(parsed.matches("com/acme/Foo", method), expected, "{pattern} on {method}");
        }
    }

    #[test]
    fn wildcards_agree_with_a_plain_recursive_matcher() {
        fn slow(tokens: &[Token], name: &[u8]) -> bool {
            match (tokens.first(), name.first()) {
                (None, first) => first.is_none(),
                (Some(Token::Any), _) => (0..=name.len()).any(|skip| slow(&tokens[1..], &name[skip..])),
                (Some(Token::AnyInSegment), _) => (0..=name.len())
                    .take_while(|&skip| !name[..skip].iter().any(|byte| matches!(byte, b'.' | b'/')))
                    .any(|skip| slow(&tokens[1..], &name[skip..])),
                (Some(Token::Separator), Some(b'.' | b'/' | b'$')) => slow(&tokens[1..], &name[1..]),
                (Some(Token::Byte(wanted)), Some(byte)) if wanted == byte => slow(&tokens[1..], &name[1..]),
                _ => false,
            }
        }
        let digits = |mut number: usize, alphabet: &[&str]| {
            let mut text = String::new();
            while number > 0 {
                text.push_str(alphabet[number % alphabet.len()]);
                number /= alphabet.len();
            }
            text
        };
        let names: Vec<String> = (0..500).map(|number| digits(number, &["a", "b", "/", "$"])).collect();
        for number in 0..3000 {
            let Glob(tokens) =
                Glob::of_class(&digits(number, &["a", "*", "**x", ".", "b"]).replace('x', ""), Star::WithinSegment);
            for name in &names {
                let expected = slow(&tokens, name.as_bytes());
                assert_eq!(tokens_match(&tokens, name.as_bytes()), expected, "{tokens:?} on {name}");
            }
        }
    }

    #[test]
    fn names_for_machines_and_for_people() {
        let cases = [
            ("a/b/C.m(ILjava/lang/String;)V", "a.b.C.m(ILjava/lang/String;)V", "a.b.C.m(int, String)"),
            ("C.<init>()V", "C.<init>()V", "C.<init>()"),
            (
                "a/O$I.m([[JLjava/util/Map$Entry;)Z",
                "a.O$I.m([[JLjava/util/Map$Entry;)Z",
                "a.O$I.m(long[][], Map$Entry)",
            ),
            ("a/C.m(Q)V", "a.C.m(Q)V", "a.C.m(Q)V"),
        ];
        for (method, machine, people) in cases {
            let (class, name, descriptor) = split(method);
            assert_eq!(java_name(class, name, descriptor), machine);
            assert_eq!(display_name(class, name, descriptor), people);
        }
        for method in ["a/O$I.m([[JLjava/util/Map$Entry;)Z", "C.<init>()V", "a/b/C.m(ILjava/lang/String;)V"] {
            let (class, name, descriptor) = split(method);
            for shown in [java_name(class, name, descriptor), display_name(class, name, descriptor)] {
                let pattern: MethodPattern = shown.parse().expect("names that we show are patterns");
                assert!(pattern.matches(class, name, descriptor), "{shown}");
            }
        }
    }

    #[test]
    fn near_misses_are_found_by_typo_case_and_simple_name() {
        let candidates = [
            "com.acme.orders.OrderService",
            "com.acme.orders.Item",
            "com.acme.orders.OrderService.place(I)V",
            "com.acme.billing.Invoice",
            "com.acme.Main",
        ];
        let cases: &[(&str, &[&str])] = &[
            ("com.acme.orders.OrderServise", &["com.acme.orders.OrderService"]),
            ("OrderService", &["com.acme.orders.OrderService"]),
            ("orderservice", &["com.acme.orders.OrderService"]),
            ("com.acme.order.OrderService::plcae", &["com.acme.orders.OrderService.place(I)V"]),
            ("com.acme.Invoice", &["com.acme.billing.Invoice"]),
            ("main", &["com.acme.Main"]),
            ("com.acme.orders.Zebra", &[]),
            ("*", &[]),
        ];
        for (wanted, expected) in cases {
            assert_eq!(near_misses(wanted, candidates.into_iter(), 1), *expected, "{wanted}");
        }
        assert_eq!(near_misses("x", ["x", "x"].into_iter(), 5), ["x"]);
    }
}
