//! Krakatau's assembly language.

use krakatau2::{AssemblerOptions, assemble};

/// The classes of a text in Krakatau's assembly language.
pub fn assembled(name: &str, text: &str) -> Vec<(String, Vec<u8>)> {
    let classes = assemble(text, AssemblerOptions::default());
    let classes = classes.unwrap_or_else(|error| panic!("{}", error.format(name, text)));
    classes.into_iter().map(|class| (class.name.expect("a class's name"), class.data)).collect()
}
