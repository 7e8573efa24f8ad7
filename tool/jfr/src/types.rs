//! What a recording says of its own types: classes with their fields, from the metadata of each chunk.

use rustc_hash::FxHashMap;

use super::bytes::{Bytes, Text};
use super::fields::Name;
use super::{EventKind, ReadError};

/// A number that no class has.
const NO_CLASS: i64 = i64::MIN;
/// Structures within structures: the JVM has three levels.
const DEEPEST: usize = 16;

/// A field of a class.
#[derive(Clone, Debug)]
struct Field {
    name: Name,
    class: i64,
    /// The value stands among the constants, and its key here.
    is_constant: bool,
    is_array: bool,
}

/// A value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// An integer or a truth.
    Number(i64),
    /// A string.
    Text(Text),
    /// A constant of a class, by its key.
    Constant(i64),
}

/// How a class's values are written.
#[derive(Clone, Debug)]
enum Form {
    Byte,
    Number,
    Float,
    Double,
    Text,
    Fields(Vec<Field>),
}

/// The classes that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Text,
    Symbol,
    Class,
    Method,
    Stack,
    Thread,
    Cause,
    Collector,
    When,
}

impl Kind {
    /// All of them, in their order.
    const ALL: [Kind; 9] = [
        Kind::Text,
        Kind::Symbol,
        Kind::Class,
        Kind::Method,
        Kind::Stack,
        Kind::Thread,
        Kind::Cause,
        Kind::Collector,
        Kind::When,
    ];

    fn of(name: &str) -> Option<Kind> {
        Some(match name {
            "java.lang.String" => Kind::Text,
            "jdk.types.Symbol" => Kind::Symbol,
            "java.lang.Class" => Kind::Class,
            "jdk.types.Method" => Kind::Method,
            "jdk.types.StackTrace" => Kind::Stack,
            "java.lang.Thread" => Kind::Thread,
            "jdk.types.GCCause" => Kind::Cause,
            "jdk.types.GCName" => Kind::Collector,
            "jdk.types.GCWhen" => Kind::When,
            _ => return None,
        })
    }
}

/// The classes of a chunk.
#[derive(Debug, Default)]
pub(super) struct Types {
    forms: FxHashMap<i64, Form>,
    /// Their numbers, by [`Kind`].
    by_kind: [Option<i64>; Kind::ALL.len()],
    /// Which events they are.
    events: FxHashMap<i64, EventKind>,
}

/// What may still be read: values without content must not be read for ever.
#[derive(Debug)]
pub(super) struct Fuel(u64);

impl Fuel {
    /// For a chunk of so many bytes. Each value but a structure takes one at least.
    pub(super) fn for_bytes(bytes: usize) -> Fuel {
        Fuel(4 * bytes as u64)
    }

    fn burn(&mut self) -> Result<(), ReadError> {
        self.0 = self.0.checked_sub(1).ok_or(ReadError::Format("it has more values than bytes"))?;
        Ok(())
    }
}

impl Types {
    /// Reads them from a metadata event, from behind its type on.
    pub(super) fn read(mut event: Bytes<'_>) -> Result<Types, ReadError> {
        for _start_duration_id in 0..3 {
            event.number()?;
        }
        let mut strings = Vec::new();
        for _ in 0..event.count()? {
            match event.text()? {
                Text::Here(text) => strings.push(text),
                Text::Constant(_) => return Err(ReadError::Format("a name is a constant")),
            }
        }
        let mut elements = Elements { event, strings, types: Types::default() };
        elements.read()?;
        Ok(elements.types)
    }

    /// Which events a class is, of those that are asked for.
    pub(super) fn event(&self, class: i64) -> Option<EventKind> {
        self.events.get(&class).copied()
    }

    /// The classes that are events.
    pub(super) fn events(&self) -> impl Iterator<Item = EventKind> {
        self.events.values().copied()
    }

    /// Which of those that are asked for a class is.
    pub(super) fn kind(&self, class: i64) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| self.by_kind[*kind as usize] == Some(class))
    }

    /// Reads a value of a class, and tells of each of its fields, and of theirs.
    pub(super) fn value(
        &self,
        class: i64,
        from: &mut Bytes<'_>,
        fuel: &mut Fuel,
        tell: &mut impl FnMut(Name, Value),
    ) -> Result<(), ReadError> {
        let outermost = Field { name: Name::Other, class, is_constant: false, is_array: false };
        self.one(&outermost, from, fuel, 0, tell)
    }

    fn field(
        &self,
        field: &Field,
        from: &mut Bytes<'_>,
        fuel: &mut Fuel,
        level: usize,
        tell: &mut impl FnMut(Name, Value),
    ) -> Result<(), ReadError> {
        let times = if field.is_array { from.count()? } else { 1 };
        (0..times).try_for_each(|_| self.one(field, from, fuel, level, tell))
    }

    fn one(
        &self,
        field: &Field,
        from: &mut Bytes<'_>,
        fuel: &mut Fuel,
        level: usize,
        tell: &mut impl FnMut(Name, Value),
    ) -> Result<(), ReadError> {
        fuel.burn()?;
        if field.is_constant {
            tell(field.name, Value::Constant(from.number()?));
            return Ok(());
        }
        let form = self.forms.get(&field.class).ok_or(ReadError::Format("a value is of no known class"))?;
        match form {
            Form::Byte => tell(field.name, Value::Number(i64::from(from.byte()?))),
            Form::Number => tell(field.name, Value::Number(from.number()?)),
            Form::Float => drop(from.take(4)?),
            Form::Double => drop(from.take(8)?),
            Form::Text => tell(field.name, Value::Text(from.text()?)),
            Form::Fields(_) if level == DEEPEST => return Err(ReadError::Format("its values are nested too deeply")),
            Form::Fields(fields) => {
                fields.iter().try_for_each(|field| self.field(field, from, fuel, level + 1, tell))?;
            }
        }
        Ok(())
    }
}

/// The metadata's tree of elements, which have a name, attributes and children.
struct Elements<'a> {
    event: Bytes<'a>,
    strings: Vec<String>,
    types: Types,
}

/// An element whose children are being read.
struct Open {
    children: usize,
    /// The class that it is about: its number, the number of its name, its fields.
    class: Option<(i64, usize, Vec<Field>)>,
}

impl Elements<'_> {
    fn read(&mut self) -> Result<(), ReadError> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            let element = self.string()?;
            let (mut id, mut name) = (None, None);
            let mut field = Field { name: Name::Other, class: NO_CLASS, is_constant: false, is_array: false };
            for _ in 0..self.event.count()? {
                let (key, at) = (self.string()?, self.string()?);
                let value = self.strings[at].as_str();
                match self.strings[key].as_str() {
                    "id" => id = value.parse().ok(),
                    "name" => {
                        name = Some(at);
                        field.name = Name::of(value);
                    }
                    "class" => field.class = value.parse().unwrap_or(NO_CLASS),
                    "constantPool" => field.is_constant = value == "true",
                    "dimension" => field.is_array = value != "0",
                    _ => {}
                }
            }
            let mut class = None;
            match self.strings[element].as_str() {
                "class" => class = id.zip(name).map(|(id, name)| (id, name, Vec::new())),
                "field" => {
                    if let Some(Open { class: Some((_, _, fields)), .. }) = open.last_mut() {
                        fields.push(field);
                    }
                }
                _ => {}
            }
            open.push(Open { children: self.event.count()?, class });
            while let Some(last) = open.pop_if(|last| last.children == 0) {
                if let Some((id, name, fields)) = last.class {
                    self.types.add(id, &self.strings[name], fields);
                }
            }
            match open.last_mut() {
                Some(last) => last.children -= 1,
                None => return Ok(()),
            }
        }
    }

    /// A string, by its number.
    fn string(&mut self) -> Result<usize, ReadError> {
        let number = usize::try_from(self.event.number()?).ok().filter(|number| *number < self.strings.len());
        number.ok_or(ReadError::Format("a name is missing"))
    }
}

impl Types {
    fn add(&mut self, id: i64, name: &str, fields: Vec<Field>) {
        let form = match name {
            "boolean" | "byte" => Form::Byte,
            "char" | "short" | "int" | "long" => Form::Number,
            "float" => Form::Float,
            "double" => Form::Double,
            "java.lang.String" => Form::Text,
            _ => Form::Fields(fields),
        };
        self.forms.insert(id, form);
        if let Some(kind) = Kind::of(name) {
            self.by_kind[kind as usize] = Some(id);
        }
        if let Some(kind) = EventKind::of(name) {
            self.events.insert(id, kind);
        }
    }
}
