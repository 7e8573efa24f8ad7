//! The classes in generic signatures (JVMS 4.7.9.1). The JVM does not check these attributes: what cannot be read says nothing.

/// Type arguments that are nested deeper are not looked at.
const DEEPEST: usize = 64;

/// The internal names of the classes in a signature of a field or a method; of arrays, the elements' class.
pub(crate) fn signature_classes(signature: &str) -> Vec<String> {
    let mut parser = Parser { rest: signature, found: Vec::new() };
    parser.parameters();
    while !parser.rest.is_empty() {
        parser.skip(&['(', ')', '^']);
        if parser.any_type(0).is_none() {
            break;
        }
    }
    parser.found
}

struct Parser<'s> {
    rest: &'s str,
    found: Vec<String>,
}

impl Parser<'_> {
    fn skip(&mut self, what: &[char]) {
        self.rest = self.rest.trim_start_matches(what);
    }

    /// Goes behind the next of these characters: what stands in front of it, and which one it is.
    fn behind(&mut self, ends: &[char]) -> Option<(&str, char)> {
        let (text, rest) = self.rest.split_at(self.rest.find(ends)?);
        let end = rest.chars().next()?;
        self.rest = &rest[end.len_utf8()..];
        Some((text, end))
    }

    /// Formal type parameters, with their bounds, if there are any.
    fn parameters(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix('<')?;
        while !self.rest.starts_with('>') {
            self.behind(&[':'])?;
            self.skip(&[':']);
            loop {
                self.any_type(0)?;
                if !self.rest.starts_with(':') {
                    break;
                }
                self.skip(&[':']);
            }
        }
        self.behind(&['>']).map(|_| ())
    }

    fn any_type(&mut self, depth: usize) -> Option<()> {
        self.skip(&['[']);
        let kind = self.rest.chars().next()?;
        match kind {
            'L' if depth < DEEPEST => self.class_type(depth),
            'T' => self.behind(&[';']).map(|_| ()),
            'B' | 'C' | 'D' | 'F' | 'I' | 'J' | 'S' | 'Z' | 'V' => {
                self.rest = &self.rest[1..];
                Some(())
            }
            _ => None,
        }
    }

    fn class_type(&mut self, depth: usize) -> Option<()> {
        self.rest = &self.rest[1..];
        let mut name = String::new();
        loop {
            let (part, end) = self.behind(&['<', '.', ';'])?;
            name.push_str(part);
            match end {
                '<' => {
                    while !self.rest.starts_with('>') {
                        self.skip(&['+', '-']);
                        match self.rest.strip_prefix('*') {
                            Some(rest) => self.rest = rest,
                            None => self.any_type(depth + 1)?,
                        }
                    }
                    self.rest = &self.rest[1..];
                }
                '.' => name.push('$'),
                _ => {
                    self.found.push(name);
                    return Some(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_stand_in_parameters_bounds_and_arguments() {
        for (signature, expected) in [
            ("Ljava/util/List<LKey;>;", &["Key", "java/util/List"][..]),
            (
                "<List:Ljava/lang/Object;V::LBound<TV;>;>(TV;[ILjava/util/Map<+LKey;*>;)TList;^LFailed;",
                &["java/lang/Object", "Bound", "Key", "java/util/Map", "Failed"],
            ),
            ("LOuter<LKey;>.Inner<[LValue;>;", &["Key", "Value", "Outer$Inner"]),
            ("()V", &[]),
        ] {
            assert_eq!(signature_classes(signature), expected, "{signature}");
        }
    }

    #[test]
    fn what_cannot_be_read_says_nothing() {
        let whole = "<K:LBound;>(Ljava/util/Map<+LKey;*>;)TK;";
        for length in 0..whole.len() {
            signature_classes(&whole[..length]);
        }
        for signature in ["<", "<<", "<K", "<K:", "L<;>", "La<*", "LÄ<é>;", "(((", "T", "La<La<"] {
            signature_classes(signature);
        }
        signature_classes(&"La<".repeat(20_000));
        signature_classes(&"[".repeat(60_000));
    }
}
