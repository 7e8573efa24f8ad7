//! Methods' names: descriptors (JVMS 4.3), and how reports write them.

use std::borrow::Cow;

/// The end of the field type that a text begins with (JVMS 4.3.2).
pub(super) fn field_type(text: &str) -> Option<usize> {
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

pub(super) fn is_descriptor_list(mut list: &str) -> bool {
    while !list.is_empty() {
        match field_type(list) {
            Some(end) => list = &list[end..],
            None => return false,
        }
    }
    true
}

/// The parameter types of a method descriptor, in Java form with full names: `int`, `java.lang.String[]`.
pub(super) fn parameter_types(descriptor: &str) -> Option<Vec<String>> {
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

/// A name of a method or class without what a hidden class's name has in each run other of: an address, and numbers. What is left is the name of
/// all lambdas of a class.
pub fn stable_name(name: &str) -> Cow<'_, str> {
    const ADDRESSES: [&str; 3] = ["/0x", "+0x", ".0x"];
    const LAMBDA: &str = "$$Lambda";
    let (place, signature) = name.split_at(name.find('(').unwrap_or(name.len()));
    let end_of_lambda = place.find(LAMBDA).map(|at| at + LAMBDA.len());
    let address = || ADDRESSES.iter().find_map(|mark| place.find(mark));
    let Some(end) = end_of_lambda.or_else(address) else { return Cow::Borrowed(name) };
    let (class, mut rest) = place.split_at(end);
    // No method's name begins with a digit; `0x1F+0` has digits of an address and where it is.
    while let Some(number) =
        rest.strip_prefix(['/', '.', '$', '+']).filter(|it| it.starts_with(|c: char| c.is_ascii_digit()))
    {
        rest = number.strip_prefix("0x").map_or_else(
            || number.trim_start_matches(|c: char| c.is_ascii_digit()),
            |address| address.trim_start_matches(|c: char| c.is_ascii_hexdigit()),
        );
    }
    // What is at an address of a library is no class: `libzip.so+0x1f`.
    let is_class = end_of_lambda.is_some() || rest.starts_with('.') || !place[end..].starts_with('+');
    if is_class { Cow::Owned(format!("{class}{rest}{signature}")) } else { Cow::Borrowed(name) }
}

/// A class's name for people, of what the JVM calls it: `byte[]`, `java.lang.String`.
pub fn class_name(jvm: &str) -> String {
    if jvm.starts_with('[') && field_type(jvm) == Some(jvm.len()) { java_type(jvm) } else { jvm.replace('/', ".") }
}

/// A method's name for people, with simple parameter types: `a.b.C.m(int, String)`. [`MethodPattern`](super::MethodPattern) understands it.
pub fn display_name(class_internal: &str, method: &str, descriptor: &str) -> String {
    let Some(types) = parameter_types(descriptor) else { return java_name(class_internal, method, descriptor) };
    let simple: Vec<&str> = types.iter().map(|name| simple_name(name)).collect();
    format!("{}.{method}({})", class_internal.replace('/', "."), simple.join(", "))
}

/// What a name for people has beside the usual, where that is not of one method alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The result: `a.b.C.m(int): String`.
    Result,
    /// That, and the packages of all types: `a.b.C.m(a.b.D): java.lang.String`.
    FullNames,
}

/// A more exact name for people of a method that is given by its machine name. [`MethodPattern`](super::MethodPattern) understands it. `None`
/// of what is no method's name.
pub fn detailed_name(machine: &str, detail: Detail) -> Option<String> {
    let (name, descriptor) = machine.split_at(machine.find('(')?);
    let result = result_type(descriptor)?;
    let types = parameter_types(descriptor)?;
    let shown = |name: &str| match detail {
        Detail::Result => simple_name(name).to_owned(),
        Detail::FullNames => name.to_owned(),
    };
    let parameters: Vec<String> = types.iter().map(|name| shown(name)).collect();
    Some(format!("{name}({}): {}", parameters.join(", "), shown(&result)))
}

/// The result of a method descriptor, in Java form with its full name.
pub(super) fn result_type(descriptor: &str) -> Option<String> {
    match descriptor.rsplit_once(')')?.1 {
        "V" => Some("void".to_owned()),
        result => (field_type(result) == Some(result.len())).then(|| java_type(result)),
    }
}

fn simple_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}
