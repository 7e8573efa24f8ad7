//! As much of a class file as the agent looks at (JVMS 4.1): the constants, and the methods with their attributes. What cannot be read is `None`:
//! the JVM says what is wrong with it.

use crate::constants::{self, Constant, UTF8, short};

/// Where the number of constants stands.
const POOL_COUNT_AT: usize = 8;

/// A class file.
#[derive(Debug)]
pub struct ClassFile<'b> {
    /// Its constants.
    pub pool: Pool<'b>,
    /// Where these end: the flags of the class.
    pub pool_end: usize,
    /// In the order of declaration.
    pub methods: Vec<Method<'b>>,
    /// How call sites and computed constants are linked (JVMS 4.7.23): of each way the index of the method handle, and those of its arguments.
    pub bootstraps: Vec<Vec<u16>>,
}

/// A declared method.
#[derive(Debug)]
pub struct Method<'b> {
    /// Its name, as the file spells it.
    pub name: &'b [u8],
    /// Its descriptor.
    pub descriptor: &'b [u8],
    /// Where the number of its attributes stands.
    pub attributes_at: usize,
    /// Where the last of them ends.
    pub end: usize,
    /// Its attributes.
    pub attributes: Vec<Attribute<'b>>,
}

/// An attribute.
#[derive(Clone, Copy, Debug)]
pub struct Attribute<'b> {
    /// What it is called.
    pub name: &'b [u8],
    /// What follows the length.
    pub content: &'b [u8],
}

/// Constants by their indexes.
#[derive(Debug, Default)]
pub struct Pool<'b>(Vec<Option<Constant<'b>>>);

impl<'b> Pool<'b> {
    /// Reads what stands behind `count`, and the rest.
    pub fn parse(count: u16, mut rest: &'b [u8]) -> Option<(Pool<'b>, &'b [u8])> {
        let mut pool = vec![None];
        while pool.len() < usize::from(count) {
            let (constant, behind) = constants::split_first(rest)?;
            pool.push(Some(constant));
            pool.resize(pool.len() + constant.indexes - 1, None);
            rest = behind;
        }
        Some((Pool(pool), rest))
    }

    /// How many indexes there are, and one more.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The constant with an index.
    pub fn get(&self, index: u16) -> Option<Constant<'b>> {
        *self.0.get(usize::from(index))?
    }

    /// The text with an index.
    pub fn text(&self, index: u16) -> Option<&'b [u8]> {
        let constant = self.get(index).filter(|constant| constant.tag == UTF8)?;
        constant.content.get(2..)
    }
}

impl<'b> ClassFile<'b> {
    /// Reads a class file.
    pub fn parse(bytes: &'b [u8]) -> Option<ClassFile<'b>> {
        let count = short(bytes, POOL_COUNT_AT)?;
        let (pool, rest) = Pool::parse(count, bytes.get(POOL_COUNT_AT + 2..)?)?;
        let pool_end = bytes.len() - rest.len();
        // Flags, the class, its superclass.
        let interfaces_at = pool_end + 6;
        let mut at = interfaces_at + 2 + 2 * usize::from(short(bytes, interfaces_at)?);
        let fields = short(bytes, at)?;
        at += 2;
        for _ in 0..fields {
            at = attributes(bytes, &pool, at + 6)?.1;
        }
        let count = short(bytes, at)?;
        at += 2;
        let mut methods = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let attributes_at = at + 6;
            let (attributes, end) = attributes(bytes, &pool, attributes_at)?;
            let text = |at| pool.text(short(bytes, at)?);
            let (name, descriptor) = (text(at + 2)?, text(at + 4)?);
            methods.push(Method { name, descriptor, attributes_at, end, attributes });
            at = end;
        }
        let (attributes, end) = attributes(bytes, &pool, at)?;
        let bootstraps = attributes.iter().find(|attribute| attribute.name == b"BootstrapMethods");
        let bootstraps = bootstraps.map_or(Some(Vec::new()), |attribute| bootstraps_in(attribute.content))?;
        (end == bytes.len()).then_some(ClassFile { pool, pool_end, methods, bootstraps })
    }
}

/// What is in a BootstrapMethods attribute.
fn bootstraps_in(content: &[u8]) -> Option<Vec<Vec<u16>>> {
    let mut at = 2;
    let mut bootstrap = |_| {
        let (handle, count) = (short(content, at)?, short(content, at + 2)?);
        at += 4;
        let mut all = vec![handle];
        for _ in 0..count {
            all.push(short(content, at)?);
            at += 2;
        }
        Some(all)
    };
    (0..short(content, 0)?).map(&mut bootstrap).collect()
}

impl<'b> Method<'b> {
    /// The content of its attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&'b [u8]> {
        self.attributes.iter().find(|attribute| attribute.name == name.as_bytes()).map(|attribute| attribute.content)
    }
}

/// The attributes whose number stands there, and where they end.
pub fn attributes<'b>(bytes: &'b [u8], pool: &Pool<'b>, at: usize) -> Option<(Vec<Attribute<'b>>, usize)> {
    const HEADER: usize = 6;
    let count = short(bytes, at)?;
    let (mut found, mut at) = (Vec::with_capacity(usize::from(count)), at + 2);
    for _ in 0..count {
        let name = pool.text(short(bytes, at)?)?;
        let length = u32::from_be_bytes(*bytes.get(at + 2..)?.first_chunk()?);
        let end = (at + HEADER).checked_add(usize::try_from(length).ok()?)?;
        found.push(Attribute { name, content: bytes.get(at + HEADER..end)? });
        at = end;
    }
    Some((found, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_is_found_with_its_code() {
        for class in headwater_runtime_java::CLASSES {
            let file = ClassFile::parse(class.bytes).unwrap_or_else(|| panic!("{}", class.name));
            for method in &file.methods {
                assert!(method.end > method.attributes_at);
            }
            assert!(file.methods.iter().any(|method| method.attribute("Code").is_some()));
        }
    }

    #[test]
    fn what_is_cut_off_is_no_class_file() {
        let bytes = headwater_runtime_java::CLASSES[0].bytes;
        for length in 0..bytes.len() {
            assert!(ClassFile::parse(&bytes[..length]).is_none(), "cut at {length}");
        }
    }
}
