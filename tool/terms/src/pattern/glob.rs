//! Wildcards.

/// What a single `*` covers.
#[derive(Clone, Copy)]
pub(super) enum Star {
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
pub(super) struct Glob(Vec<Token>);

impl Glob {
    pub(super) fn of_class(text: &str, star: Star) -> Glob {
        Glob::compile(text, star, Token::Separator)
    }

    pub(super) fn of_name(text: &str) -> Glob {
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

    pub(super) fn is_exact(&self) -> bool {
        !self.0.iter().any(|token| token.is_wildcard())
    }

    pub(super) fn matches(&self, name: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
