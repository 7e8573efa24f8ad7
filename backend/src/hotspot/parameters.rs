//! Names and flags of parameters, as reflection tells them (`javac -parameters`, records).
//!
//! Up to JDK 18 HotSpot forgets them of whatever is retransformed: the class file that it makes up for the hooks has no
//! MethodParameters attributes (JDK-8240908). They are read off the class as it is before the change, and written into that file.
//!
//! No interface tells them without loading the parameters' classes, and with them running code of the program's in the middle of a hotswap:
//! reflection does that. So they are read where HotSpot has them, [behind a method's code](super::behind_code).

use std::collections::HashMap;

use jni::sys::jclass;

use crate::class_file::{ClassFile, Method, Pool};
use crate::jvmti::{Jvmti, MethodName};

use super::behind_code::BehindCode;

/// The attribute (JVMS 4.7.24).
const ATTRIBUTE: &str = "MethodParameters";
/// The flags that it has: final, synthetic, mandated.
const FLAGS: u16 = 0x9010;

/// A parameter's name, if it has one, and flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// As a class file spells it.
    name: Option<Vec<u8>>,
    flags: u16,
}

/// Parameters by their methods.
pub type OfMethods = HashMap<MethodName, Vec<Parameter>>;

/// What is not as it has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// Where the names ought to be is something else.
    #[error("this JVM would forget the names of its parameters, and they could not be read")]
    Unreadable,
    /// The class has all the constants that a class can have.
    #[error("this JVM would forget the names of its parameters, and there is no room for them among its constants")]
    PoolFull,
}

/// Reads parameters.
#[derive(Debug)]
pub struct Parameters(pub(super) BehindCode);

impl Parameters {
    /// The parameters of a class's methods as they are now.
    pub fn of(&self, jvmti: Jvmti, class: jclass) -> Result<OfMethods, Unknown> {
        let mut found = Vec::new();
        for method in jvmti.methods(class).map_err(|_| Unknown::Unreadable)? {
            let tables = self.0.tables(method).ok_or(Unknown::Unreadable)?;
            found.extend(tables.parameters.map(|parameters| (method, parameters)));
        }
        if found.is_empty() {
            return Ok(OfMethods::new());
        }
        let (count, pool) = jvmti.constant_pool(class).map_err(|_| Unknown::Unreadable)?;
        let (pool, _) = Pool::parse(count, &pool).ok_or(Unknown::Unreadable)?;
        let named = found.into_iter().map(|(method, entries)| {
            let name = jvmti.method_key(method).ok()?;
            Some((name, entries.into_iter().map(|entry| parameter(&pool, entry)).collect::<Option<_>>()?))
        });
        named.collect::<Option<OfMethods>>().ok_or(Unknown::Unreadable)
    }
}

fn parameter(pool: &Pool<'_>, [name, flags]: [u16; 2]) -> Option<Parameter> {
    let name = match name {
        0 => None,
        index => Some(pool.text(index)?.to_vec()),
    };
    (flags & !FLAGS == 0).then_some(Parameter { name, flags })
}

/// A class file that tells these parameters of methods of which it tells none; `None` if it is the same.
pub fn written(bytes: &[u8], parameters: &OfMethods) -> Result<Option<Vec<u8>>, Unknown> {
    let Some(file) = ClassFile::parse(bytes).filter(|_| !parameters.is_empty()) else { return Ok(None) };
    let told_of = |method: &Method<'_>| {
        let name = MethodName { name: method.name.to_vec(), descriptor: method.descriptor.to_vec() };
        parameters.get(&name).filter(|_| method.attribute(ATTRIBUTE).is_none())
    };
    let wanting: Vec<_> = file.methods.iter().filter_map(|method| Some((method, told_of(method)?))).collect();
    if wanting.is_empty() {
        return Ok(None);
    }
    let mut texts = Texts { first: file.pool.count(), indexes: HashMap::new(), bytes: Vec::new() };
    let (mut out, mut at) = (Vec::new(), file.pool_end);
    for (method, parameters) in wanting {
        let attributes = u16::from_be_bytes([bytes[method.attributes_at], bytes[method.attributes_at + 1]]);
        out.extend_from_slice(&bytes[at..method.attributes_at]);
        out.extend(attributes.checked_add(1).ok_or(Unknown::PoolFull)?.to_be_bytes());
        out.extend_from_slice(&bytes[method.attributes_at + 2..method.end]);
        out.extend(texts.index(ATTRIBUTE.as_bytes())?.to_be_bytes());
        let count = u8::try_from(parameters.len()).map_err(|_| Unknown::Unreadable)?;
        out.extend((1 + 4 * u32::from(count)).to_be_bytes());
        out.push(count);
        for Parameter { name, flags } in parameters {
            let name = name.as_ref().map_or(Ok(0), |name| texts.index(name))?;
            out.extend(name.to_be_bytes());
            out.extend(flags.to_be_bytes());
        }
        at = method.end;
    }
    out.extend_from_slice(&bytes[at..]);
    const POOL_COUNT: std::ops::Range<usize> = 8..10;
    let count = u16::try_from(texts.count()).map_err(|_| Unknown::PoolFull)?;
    let pool = &bytes[POOL_COUNT.end..file.pool_end];
    Ok(Some([&bytes[..POOL_COUNT.start], &count.to_be_bytes(), pool, &texts.bytes, &out].concat()))
}

/// Texts behind a class file's constants.
struct Texts<'t> {
    /// The first one's index.
    first: usize,
    indexes: HashMap<&'t [u8], u16>,
    bytes: Vec<u8>,
}

impl<'t> Texts<'t> {
    fn count(&self) -> usize {
        self.first + self.indexes.len()
    }

    fn index(&mut self, text: &'t [u8]) -> Result<u16, Unknown> {
        if let Some(index) = self.indexes.get(text) {
            return Ok(*index);
        }
        let index = u16::try_from(self.count()).ok().filter(|index| *index < u16::MAX).ok_or(Unknown::PoolFull)?;
        let length = u16::try_from(text.len()).map_err(|_| Unknown::Unreadable)?;
        self.bytes.push(crate::constants::UTF8);
        self.bytes.extend(length.to_be_bytes());
        self.bytes.extend_from_slice(text);
        self.indexes.insert(text, index);
        Ok(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(names: &[Option<&str>]) -> Vec<Parameter> {
        names.iter().map(|name| Parameter { name: name.map(|name| name.as_bytes().to_vec()), flags: 0x10 }).collect()
    }

    fn key(method: &Method<'_>) -> MethodName {
        MethodName { name: method.name.to_vec(), descriptor: method.descriptor.to_vec() }
    }

    #[test]
    fn what_is_written_is_there_and_nothing_else_has_changed() {
        for class in headwater_runtime_java::CLASSES {
            let file = ClassFile::parse(class.bytes).unwrap();
            let names = [Some("first"), None, Some("Code")];
            let told: OfMethods = file
                .methods
                .iter()
                .enumerate()
                .map(|(at, method)| (key(method), parameters(&names[..at % 4])))
                .collect();
            let bytes = written(class.bytes, &told).unwrap().unwrap();
            let now = ClassFile::parse(&bytes).unwrap_or_else(|| panic!("{}", class.name));
            assert_eq!(now.methods.len(), file.methods.len());
            for (at, (before, method)) in file.methods.iter().zip(&now.methods).enumerate() {
                assert_eq!((method.name, method.descriptor), (before.name, before.descriptor));
                assert_eq!(method.attribute("Code"), before.attribute("Code"));
                let content = method.attribute(ATTRIBUTE).expect("it has parameters now");
                let entries = content[1..].as_chunks::<4>().0.iter();
                let entries: Vec<_> =
                    entries.map(|[a, b, c, d]| [u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])]).collect();
                assert_eq!(usize::from(content[0]), entries.len());
                let read: Option<Vec<_>> = entries.iter().map(|entry| parameter(&now.pool, *entry)).collect();
                assert_eq!(read.as_ref(), told.get(&key(before)), "method {at} of {}", class.name);
            }
            assert_eq!(written(&bytes, &told), Ok(None), "they are told already");
            assert_eq!(bytes[..8], class.bytes[..8]);
        }
    }

    #[test]
    fn what_tells_nothing_stays_the_same() {
        let bytes = headwater_runtime_java::CLASSES[0].bytes;
        assert_eq!(written(bytes, &OfMethods::new()), Ok(None));
        let other = MethodName { name: b"no such method".to_vec(), descriptor: b"()V".to_vec() };
        assert_eq!(written(bytes, &[(other, parameters(&[None]))].into()), Ok(None));
    }
}
