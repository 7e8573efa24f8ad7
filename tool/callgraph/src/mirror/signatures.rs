//! Names and descriptors of methods, numbered in the order in which they came. Who reads them may add some.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Signature;

/// A method's name and descriptor.
type Text = (Arc<str>, Arc<str>);

/// All of them; texts are kept once.
#[derive(Debug, Default)]
pub(super) struct Signatures {
    texts: RefCell<FxHashSet<Arc<str>>>,
    numbers: RefCell<FxHashMap<Text, Signature>>,
    count: Cell<u32>,
    /// By number. Each part has room for as many as all before it and one more, and stays where it is when others come.
    parts: [OnceCell<Box<[OnceCell<Text>]>>; 32],
}

impl Signatures {
    pub(super) fn text(&self, text: &str) -> Arc<str> {
        let mut texts = self.texts.borrow_mut();
        match texts.get(text) {
            Some(known) => known.clone(),
            None => {
                let text: Arc<str> = text.into();
                texts.insert(text.clone());
                text
            }
        }
    }

    pub(super) fn intern(&self, name: &str, descriptor: &str) -> Signature {
        let key = (self.text(name), self.text(descriptor));
        let mut numbers = self.numbers.borrow_mut();
        if let Some(known) = numbers.get(&key) {
            return *known;
        }
        let number = self.count.replace(self.count.get() + 1);
        let (part, at) = place(number);
        let part = self.parts[part].get_or_init(|| (0..1_u32 << part).map(|_| OnceCell::new()).collect());
        part[at].get_or_init(|| key.clone());
        numbers.insert(key, Signature(number));
        Signature(number)
    }

    /// One that has been interned.
    pub(super) fn known(&self, name: &str, descriptor: &str) -> Option<Signature> {
        let texts = self.texts.borrow();
        let key = (texts.get(name)?.clone(), texts.get(descriptor)?.clone());
        self.numbers.borrow().get(&key).copied()
    }

    pub(super) fn get(&self, signature: Signature) -> Option<&Text> {
        let (part, at) = place(signature.0);
        self.parts[part].get()?[at].get()
    }
}

/// The part in which a number lies, and where in it.
fn place(number: u32) -> (usize, usize) {
    let part = (number + 1).ilog2();
    (part as usize, (number + 1 - (1 << part)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_keep_their_numbers_and_places_however_many_come() {
        let signatures = Signatures::default();
        let first = signatures.intern("m0", "()V");
        let text = signatures.get(first);
        for number in 0..1000 {
            assert_eq!(signatures.intern(&format!("m{number}"), "()V"), Signature(number));
        }
        assert_eq!(signatures.get(first).map(std::ptr::from_ref), text.map(std::ptr::from_ref));
        let name = |number| signatures.get(Signature(number)).map(|text| &*text.0);
        assert_eq!([name(0), name(998), name(1000)], [Some("m0"), Some("m998"), None]);
        assert_eq!(signatures.known("m7", "()V"), Some(Signature(7)));
        assert_eq!(signatures.known("m7", "()I"), None);
    }
}
