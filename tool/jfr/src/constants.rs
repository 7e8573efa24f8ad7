//! The constants that events name by their keys.

use rustc_hash::FxHashMap;

use super::bytes::{Bytes, Text};
use super::fields::Name;
use super::types::{Fuel, Kind, Types, Value};
use super::{CONSTANTS, Chunk, DEEPEST, ReadError, StackIndex, ThreadIndex};

/// Those of a chunk that are needed, by their keys.
#[derive(Default)]
pub(super) struct Constants {
    texts: FxHashMap<i64, String>,
    /// Classes' names, as keys of symbols.
    classes: FxHashMap<i64, i64>,
    methods: FxHashMap<i64, Method>,
    pub(super) stacks: FxHashMap<i64, Stack>,
    pub(super) threads: FxHashMap<i64, Thread>,
    symbols: FxHashMap<i64, Text>,
    /// What is said of collections.
    said: FxHashMap<(Kind, i64), Text>,
}

#[derive(Clone, Copy, Default)]
struct Method {
    class: i64,
    name: i64,
    descriptor: i64,
}

#[derive(Default)]
pub(super) struct Stack {
    pub(super) is_cut: bool,
    /// Keys, the innermost first.
    pub(super) methods: Vec<i64>,
    /// Where in each; 0 where that is not known.
    pub(super) lines: Vec<u32>,
    /// What it comes to, once that is known.
    pub(super) index: Option<StackIndex>,
}

#[derive(Default)]
pub(super) struct Thread {
    pub(super) number: u32,
    pub(super) is_virtual: bool,
    /// Its names, as the operating system and Java have them.
    names: [Option<Text>; 2],
    pub(super) index: Option<ThreadIndex>,
}

impl Constants {
    pub(super) fn read(chunk: &Chunk<'_>, types: &Types, fuel: &mut Fuel) -> Result<Constants, ReadError> {
        let mut constants = Constants::default();
        for event in chunk.events() {
            let (CONSTANTS, mut event) = event? else { continue };
            // When, for how long, where the ones before are, and whether they are all.
            for _ in 0..3 {
                event.number()?;
            }
            event.byte()?;
            for _ in 0..event.count()? {
                let class = event.number()?;
                for _ in 0..event.count()? {
                    let key = event.number()?;
                    constants.add(key, class, &mut event, types, fuel)?;
                }
            }
        }
        Ok(constants)
    }

    /// Reads one, and keeps it if it is of a kind that is needed.
    fn add(
        &mut self,
        key: i64,
        class: i64,
        from: &mut Bytes<'_>,
        types: &Types,
        fuel: &mut Fuel,
    ) -> Result<(), ReadError> {
        let (mut text, mut method, mut stack) = (None, Method::default(), Stack::default());
        let mut thread = Thread::default();
        types.value(class, from, fuel, &mut |name, value| match (name, value) {
            (Name::Characters | Name::Cause | Name::When | Name::Symbol | Name::Other, Value::Text(value)) => {
                text = Some(value);
            }
            (Name::Type, Value::Constant(key)) => method.class = key,
            (Name::Symbol, Value::Constant(key)) => method.name = key,
            (Name::Descriptor, Value::Constant(key)) => method.descriptor = key,
            (Name::Truncated, Value::Number(cut)) => stack.is_cut = cut != 0,
            (Name::Method, Value::Constant(key)) => stack.methods.push(key),
            (Name::Line, Value::Number(line)) => stack.lines.push(u32::try_from(line).unwrap_or(0)),
            (Name::OsThreadId, Value::Number(number)) => thread.number = u32::try_from(number).unwrap_or(0),
            (Name::Virtual, Value::Number(is_virtual)) => thread.is_virtual = is_virtual != 0,
            (Name::OsThreadCalled, Value::Text(name)) => thread.names[0] = Some(name),
            (Name::JavaThreadCalled, Value::Text(name)) => thread.names[1] = Some(name),
            _ => {}
        })?;
        match (types.kind(class), text) {
            (Some(Kind::Text), Some(Text::Here(text))) => drop(self.texts.insert(key, text)),
            (Some(kind @ (Kind::Cause | Kind::Collector | Kind::When)), Some(text)) => {
                self.said.insert((kind, key), text);
            }
            (Some(Kind::Symbol), Some(text)) => drop(self.symbols.insert(key, text)),
            (Some(Kind::Class), _) => drop(self.classes.insert(key, method.name)),
            (Some(Kind::Method), _) => drop(self.methods.insert(key, method)),
            (Some(Kind::Stack), _) if stack.methods.len() <= DEEPEST => drop(self.stacks.insert(key, stack)),
            (Some(Kind::Thread), _) => drop(self.threads.insert(key, thread)),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn text<'a>(&'a self, text: &'a Text) -> Option<&'a str> {
        match text {
            Text::Here(text) => Some(text),
            Text::Constant(key) => self.texts.get(key).map(String::as_str),
        }
    }

    /// What is said of a collection.
    pub(super) fn said(&self, kind: Kind, key: i64) -> &str {
        self.said.get(&(kind, key)).and_then(|text| self.text(text)).unwrap_or_default()
    }

    fn symbol(&self, key: i64) -> Option<&str> {
        self.text(self.symbols.get(&key)?)
    }

    /// A class's name, with slashes.
    pub(super) fn class(&self, class: i64) -> Option<&str> {
        self.symbol(*self.classes.get(&class)?)
    }

    /// What a method's name is made of. Code that is not Java's has no class.
    pub(super) fn parts(&self, method: i64) -> Option<[&str; 3]> {
        let method = self.methods.get(&method)?;
        let class = self.class(method.class).unwrap_or_default();
        Some([class, self.symbol(method.name)?, self.symbol(method.descriptor).unwrap_or_default()])
    }

    /// A thread's name: Java's, or the operating system's where that has none.
    pub(super) fn thread_name<'a>(&'a self, thread: &'a Thread) -> &'a str {
        let mut names = thread.names.iter().rev().flatten().filter_map(|name| self.text(name));
        names.find(|name| !name.is_empty()).unwrap_or_default()
    }
}
