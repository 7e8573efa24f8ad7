//! Names and flags of parameters, as reflection tells them (`javac -parameters`, records).
//!
//! Up to JDK 18 HotSpot forgets them of whatever is retransformed: the class file that it makes up for the hooks has no
//! MethodParameters attributes (JDK-8240908). They are read off the class as it is before the change, and written into that file.
//!
//! No interface tells them without loading the parameters' classes, and with them running code of the program's in the middle of a hotswap:
//! reflection does that. So they are read where HotSpot has them ([`vm_structs`](super::vm_structs)): at the end of a method's constant
//! part, in front of the index of its generic signature, which JVMTI tells too, so that the place is known to be the right one.

use std::collections::HashMap;

use jni::sys::{jclass, jmethodID};

use crate::class_file::{ClassFile, Method, Pool};
use crate::jni_env::Jni;
use crate::jvmti::{Jvmti, MethodName};

use super::vm_structs::{Description, Memory};

/// The attribute (JVMS 4.7.24).
const ATTRIBUTE: &str = "MethodParameters";
/// The flags that it has: final, synthetic, mandated.
const FLAGS: u16 = 0x9010;
/// A word of the JVM's, in bytes.
const WORD: u64 = size_of::<u64>() as u64;
/// A number in the tables behind the code, in bytes.
const SHORT: u64 = size_of::<u16>() as u64;

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

/// Where HotSpot has parameters.
#[derive(Debug)]
pub struct Parameters {
    memory: Memory,
    layout: Layout,
}

/// Offsets, in bytes, and bits.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// In a `Method`: what never changes of it.
    constant_part: u64,
    /// In a `ConstMethod`: its length, in words.
    length: u64,
    /// In a `ConstMethod`: which tables it has.
    flags: u64,
    has_signature: u16,
    has_parameters: u16,
    /// Pointers to annotations, which stand at the very end.
    has_annotations: [u16; 4],
}

impl Parameters {
    /// Finds out where they are; `None` if it is not known for sure.
    pub(super) fn find(memory: &Memory, described: &Description, (jvmti, jni): (Jvmti, Jni)) -> Option<Parameters> {
        let parameters = Parameters { layout: Layout::find(described)?, memory: memory.clone() };
        let class = jni.find_class("java/lang/Class").ok()?;
        let is_right = parameters.is_right(jvmti, class);
        jni.delete_local(class);
        is_right?.then_some(parameters)
    }

    /// Whether the generic signatures are where they must be, in a class that has methods with and without, and with annotations.
    fn is_right(&self, jvmti: Jvmti, class: jclass) -> Option<bool> {
        let (count, pool) = jvmti.constant_pool(class).ok()?;
        let (pool, _) = Pool::parse(count, &pool)?;
        let mut seen = [0, 0];
        for method in jvmti.methods(class).ok()? {
            let found = match self.layout.tables(&self.memory, method)?.signature {
                Some(index) => Some(pool.text(index)?),
                None => None,
            };
            let generic = jvmti.generic_signature(method).ok()?;
            if generic.as_deref() != found {
                return Some(false);
            }
            seen[usize::from(found.is_some())] += 1;
        }
        Some(seen.iter().all(|methods| *methods > 0))
    }

    /// The parameters of a class's methods as they are now.
    pub fn of(&self, jvmti: Jvmti, class: jclass) -> Result<OfMethods, Unknown> {
        let mut found = Vec::new();
        for method in jvmti.methods(class).map_err(|_| Unknown::Unreadable)? {
            let tables = self.layout.tables(&self.memory, method).ok_or(Unknown::Unreadable)?;
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

/// What stands at the end of a method's constant part.
#[derive(Debug, PartialEq, Eq)]
struct Tables {
    /// The index of its generic signature.
    signature: Option<u16>,
    /// Of its parameters the indexes of names, and flags.
    parameters: Option<Vec<[u16; 2]>>,
}

impl Layout {
    fn find(described: &Description) -> Option<Layout> {
        let bit = |name: &str| u16::try_from(described.constant(&format!("ConstMethod::_has_{name}"))?).ok();
        Some(Layout {
            constant_part: described.offset("Method", "_constMethod")?,
            length: described.offset("ConstMethod", "_constMethod_size")?,
            flags: described.offset("ConstMethod", "_flags")?,
            has_signature: bit("generic_signature")?,
            has_parameters: bit("method_parameters")?,
            has_annotations: [
                bit("method_annotations")?,
                bit("parameter_annotations")?,
                bit("type_annotations")?,
                bit("default_annotations")?,
            ],
        })
    }

    fn tables(&self, memory: &Memory, method: jmethodID) -> Option<Tables> {
        // A method's id is the address of a pointer to it.
        let method = memory.word(method as u64)?;
        let constant_part = memory.word(method + self.constant_part)?;
        let flags = u16::from_ne_bytes(memory.read(constant_part + self.flags)?);
        let (has_signature, has_parameters) = (flags & self.has_signature != 0, flags & self.has_parameters != 0);
        if !has_signature && !has_parameters {
            return Some(Tables { signature: None, parameters: None });
        }
        let length = u32::from_ne_bytes(memory.read(constant_part + self.length)?);
        let annotations = self.has_annotations.iter().filter(|bit| flags & **bit != 0).count();
        let mut end = constant_part + u64::from(length).checked_sub(annotations as u64)? * WORD;
        let mut last = || {
            end -= SHORT;
            memory.read(end).map(u16::from_ne_bytes)
        };
        let signature = if has_signature { Some(last()?) } else { None };
        let mut parameters = None;
        if has_parameters {
            let count = last()?;
            let entry = |_| last().and_then(|flags| Some([last()?, flags]));
            let mut entries = (0..count).map(entry).collect::<Option<Vec<_>>>()?;
            entries.reverse();
            parameters = Some(entries);
        }
        Some(Tables { signature, parameters })
    }
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
