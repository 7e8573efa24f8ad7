//! A command line of a session, cut into words: quotes, comments, variables.
//!
//! Words are separated by white space. `'...'` is literal; within `"..."`, and outside quotes, `${NAME}` is replaced (by the
//! default in `${NAME:-default}`, if there is no such variable) and `\` takes the next character as it is. A `$` without a brace is a character like any other, because Java names have them. `#`
//! at the beginning of a word starts a comment. `>` and `>>` at the beginning of a word stand alone: `Cart::<init>` is one word.

use std::fmt;

/// A word, and where it begins: in characters, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Without quotes, variables replaced.
    pub text: String,
    /// Where it begins.
    pub column: usize,
    /// It was quoted, at least in part: it is no operator.
    pub quoted: bool,
}

impl Word {
    /// Whether it is this operator.
    pub fn is_operator(&self, operator: &str) -> bool {
        !self.quoted && self.text == operator
    }
}

/// What is wrong at a place of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError {
    /// Where: in characters, from 1.
    pub column: usize,
    /// What.
    pub message: String,
}

impl LineError {
    /// An error at a column.
    pub fn new(column: usize, message: impl Into<String>) -> LineError {
        LineError { column, message: message.into() }
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What a variable stands for; `None` when there is no such variable.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Cuts a line into words.
pub fn split(line: &str, variables: Variables<'_>) -> Result<Vec<Word>, LineError> {
    let mut words = Vec::new();
    let mut at = Cursor { characters: line.chars().collect(), next: 0 };
    loop {
        while at.peek().is_some_and(char::is_whitespace) {
            at.next += 1;
        }
        match at.peek() {
            None | Some('#') => return Ok(words),
            Some('>') => words.push(at.operator()),
            Some(_) => words.push(at.word(variables)?),
        }
    }
}

struct Cursor {
    characters: Vec<char>,
    next: usize,
}

impl Cursor {
    fn peek(&self) -> Option<char> {
        self.characters.get(self.next).copied()
    }

    fn take(&mut self) -> Option<char> {
        let taken = self.peek()?;
        self.next += 1;
        Some(taken)
    }

    /// The column of the next character.
    fn column(&self) -> usize {
        self.next + 1
    }

    fn operator(&mut self) -> Word {
        let column = self.column();
        self.next += 1;
        let mut text = '>'.to_string();
        text.extend(self.peek().filter(|next| ['>', '='].contains(next)));
        self.next += text.len() - 1;
        Word { text, column, quoted: false }
    }

    fn word(&mut self, variables: Variables<'_>) -> Result<Word, LineError> {
        let mut word = Word { text: String::new(), column: self.column(), quoted: false };
        while let Some(next) = self.peek().filter(|next| !next.is_whitespace()) {
            let column = self.column();
            self.next += 1;
            match next {
                '\'' => {
                    word.quoted = true;
                    self.literal(column, &mut word.text)?;
                }
                '"' => {
                    word.quoted = true;
                    self.quoted(column, variables, &mut word.text)?;
                }
                other => self.plain(other, column, variables, &mut word.text)?,
            }
        }
        Ok(word)
    }

    fn literal(&mut self, column: usize, text: &mut String) -> Result<(), LineError> {
        loop {
            match self.take() {
                Some('\'') => return Ok(()),
                Some(other) => text.push(other),
                None => return Err(LineError::new(column, "this quote is never closed")),
            }
        }
    }

    fn quoted(&mut self, column: usize, variables: Variables<'_>, text: &mut String) -> Result<(), LineError> {
        loop {
            let here = self.column();
            match self.take() {
                Some('"') => return Ok(()),
                Some(other) => self.plain(other, here, variables, text)?,
                None => return Err(LineError::new(column, "this quote is never closed")),
            }
        }
    }

    /// A character that is not one of the quotes' own: taken from `column`, not yet looked at.
    fn plain(
        &mut self,
        character: char,
        column: usize,
        variables: Variables<'_>,
        text: &mut String,
    ) -> Result<(), LineError> {
        match character {
            '\\' => match self.take() {
                Some(escaped) => text.push(escaped),
                None => return Err(LineError::new(column, "nothing follows this backslash")),
            },
            '$' if self.peek() == Some('{') => {
                self.next += 1;
                let rest = &self.characters[self.next..];
                let Some(length) = rest.iter().position(|character| *character == '}') else {
                    return Err(LineError::new(column, "this variable's brace is never closed"));
                };
                let name: String = rest[..length].iter().collect();
                self.next += length + 1;
                let (name, default) = match name.split_once(":-") {
                    Some((name, default)) => (name, Some(default.to_owned())),
                    None => (name.as_str(), None),
                };
                let value = variables(name).or(default).ok_or_else(|| {
                    LineError::new(column, format!("there is no variable {name}; set it by --set {name}=VALUE"))
                })?;
                text.push_str(&value);
            }
            other => text.push(other),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(name: &str) -> Option<String> {
        (name == "METHOD").then(|| "a.B::c d".to_owned())
    }

    #[track_caller]
    fn check(line: &str, expected: &[(&str, usize)]) {
        let words = split(line, &variables).unwrap();
        let words: Vec<(&str, usize)> = words.iter().map(|word| (word.text.as_str(), word.column)).collect();
        assert_eq!(words, expected, "{line}");
    }

    #[track_caller]
    fn check_error(line: &str, column: usize, message: &str) {
        assert_eq!(split(line, &variables), Err(LineError::new(column, message)), "{line}");
    }

    #[test]
    fn words_and_their_columns() {
        check("", &[]);
        check("  tree  --min 1", &[("tree", 3), ("--min", 9), ("1", 15)]);
        check("tree # all of it", &[("tree", 1)]);
        check("# nothing", &[]);
        check("profile a.B#c", &[("profile", 1), ("a.B#c", 9)]);
        check("ü ä", &[("ü", 1), ("ä", 3)]);
    }

    #[test]
    fn operators_stand_alone_only_where_a_word_could_begin() {
        check("tree > a.txt", &[("tree", 1), (">", 6), ("a.txt", 8)]);
        check("tree >>a.txt", &[("tree", 1), (">>", 6), ("a.txt", 8)]);
        check("expect calls >= 3", &[("expect", 1), ("calls", 8), (">=", 14), ("3", 17)]);
        check("profile a.B::<init>", &[("profile", 1), ("a.B::<init>", 9)]);
        assert!(!split("'>'", &variables).unwrap()[0].is_operator(">"));
    }

    #[test]
    fn quotes_escapes_and_variables() {
        check("echo 'a b' \"c d\" e\\ f", &[("echo", 1), ("a b", 6), ("c d", 12), ("e f", 18)]);
        check("profile ${METHOD}", &[("profile", 1), ("a.B::c d", 9)]);
        check("profile \"${METHOD}\"x", &[("profile", 1), ("a.B::c dx", 9)]);
        check("profile '${METHOD}' \\${METHOD}", &[("profile", 1), ("${METHOD}", 9), ("${METHOD}", 21)]);
        check("wait ${METHOD:-3s} ${TIME:-3 s}${NONE:-}", &[("wait", 1), ("a.B::c d", 6), ("3 s", 20)]);
        check("profile Cart$Item", &[("profile", 1), ("Cart$Item", 9)]);
        check("echo '' \"\"", &[("echo", 1), ("", 6), ("", 9)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        check_error("echo 'abc", 6, "this quote is never closed");
        check_error("echo a\"b", 7, "this quote is never closed");
        check_error("echo \\", 6, "nothing follows this backslash");
        check_error("echo x${OTHER}", 7, "there is no variable OTHER; set it by --set OTHER=VALUE");
        check_error("echo ${OTHER", 6, "this variable's brace is never closed");
    }
}
