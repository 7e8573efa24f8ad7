//! Names of methods for people: without packages, with the types of parameters where overloads must be told apart.

/// Class and method of `a.b.C::m` or `a.b.C.m(I)V`, without package and signature.
pub(crate) fn short(method: &str) -> &str {
    let name = method.split('(').next().unwrap_or(method);
    let mut parts = name.rmatch_indices('.').map(|(at, _)| at + 1);
    let at = if name.contains("::") { parts.next() } else { parts.nth(1) };
    &name[at.unwrap_or(0)..]
}

/// The same of `a.b.C.m(Ljava/lang/String;I)V`, with its parameters: `C.m(String, int)`.
pub(crate) fn with_parameters(method: &str) -> String {
    let descriptor = method.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map_or("", |(types, _)| types);
    format!("{}({})", short(method), parameters(descriptor).join(", "))
}

/// Types of a descriptor (JVMS 4.3.2), without their packages.
fn parameters(descriptor: &str) -> Vec<String> {
    let (mut types, mut rest) = (Vec::new(), descriptor);
    while let Some(letter) = rest.trim_start_matches('[').chars().next() {
        let dimensions = rest.len() - rest.trim_start_matches('[').len();
        let end = if letter == 'L' { rest.find(';').unwrap_or(rest.len() - 1) } else { dimensions };
        let name = match letter {
            'L' => rest[dimensions + 1..end].rsplit('/').next().unwrap_or_default(),
            'B' => "byte",
            'C' => "char",
            'D' => "double",
            'F' => "float",
            'I' => "int",
            'J' => "long",
            'S' => "short",
            'Z' => "boolean",
            _ => "?",
        };
        types.push(format!("{name}{}", "[]".repeat(dimensions)));
        rest = &rest[end + 1..];
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_neither_packages_nor_return_types() {
        assert_eq!(short("a.b.C$D::m"), "C$D::m");
        assert_eq!(short("a.b.C.<init>(I)V"), "C.<init>");
        assert_eq!(with_parameters("a.b.C.m(Ljava/lang/String;[[IJ[La/X;)La/Y;"), "C.m(String, int[][], long, X[])");
        assert_eq!(with_parameters("a.b.C.m()V"), "C.m()");
    }
}
