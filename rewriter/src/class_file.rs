//! The class file's structure (JVMS 4.1), with its methods' attributes located.

use std::borrow::Cow;

use crate::Error;
use crate::constant_pool::ConstantPool;
use crate::reader::Reader;

/// A class file, read as far as rewriting and analysis need it.
#[derive(Clone, Debug)]
pub struct ClassFile<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) pool: ConstantPool<'a>,
    major_version: u16,
    access: u16,
    /// Absolute offset of `this_class`.
    this_class_at: usize,
    interfaces_at: usize,
    methods: Vec<Method>,
    /// Absolute offset of the BootstrapMethods attribute's content, 0 when there is none.
    pub(crate) bootstrap_methods: Option<(usize, usize)>,
}

/// A declared method.
#[derive(Clone, Debug)]
pub struct Method {
    /// In the order of declaration, from 0.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Its descriptor.
    pub descriptor: String,
    /// Access flags (JVMS table 4.6-A).
    pub access: u16,
    /// Neither abstract nor native.
    pub has_code: bool,
    /// Absolute offset of the Code attribute's length field, and of its content's end.
    pub(crate) code: Option<(usize, usize)>,
}

impl<'a> ClassFile<'a> {
    /// Reads a class file of any version. Fails at the first thing that is not as JVMS 4 has it, but does not verify more
    /// than it needs.
    pub fn parse(bytes: &'a [u8]) -> Result<ClassFile<'a>, Error> {
        let mut reader = Reader::new(bytes, 0);
        if reader.u4("the magic number CAFEBABE")? != 0xcafe_babe {
            return Err(Error::new(0, "the magic number CAFEBABE"));
        }
        reader.u2("the minor version")?;
        let major_version = reader.u2("the major version")?;
        let pool = ConstantPool::parse(bytes, &mut reader)?;
        let access = reader.u2("the access flags")?;
        let this_class_at = reader.offset();
        reader.u4("this_class and super_class")?;
        let interfaces_at = reader.offset();
        let interfaces = reader.u2("the number of interfaces")?;
        reader.bytes(usize::from(interfaces) * 2, "the interfaces")?;

        for _ in 0..reader.u2("the number of fields")? {
            reader.bytes(6, "a field")?;
            for _ in 0..reader.u2("a field's number of attributes")? {
                attribute(&mut reader)?;
            }
        }
        let count = reader.u2("the number of methods")?;
        let mut methods = Vec::with_capacity(usize::from(count));
        for index in 0..usize::from(count) {
            methods.push(method(&mut reader, &pool, index)?);
        }
        let mut bootstrap_methods = None;
        for _ in 0..reader.u2("the class's number of attributes")? {
            let at = reader.offset();
            let (name, content) = attribute(&mut reader)?;
            if pool.utf8_bytes(name, at)? == b"BootstrapMethods" {
                bootstrap_methods = Some((content.offset(), reader.offset()));
            }
        }
        if !reader.is_empty() {
            return reader.fail("the end of the class file");
        }
        Ok(ClassFile { bytes, pool, major_version, access, this_class_at, interfaces_at, methods, bootstrap_methods })
    }

    /// The format's version: 45 for Java 1.1, 69 for Java 25.
    pub fn major_version(&self) -> u16 {
        self.major_version
    }

    /// Access flags (JVMS table 4.1-B).
    pub fn access(&self) -> u16 {
        self.access
    }

    fn u2_at(&self, at: usize) -> Result<u16, Error> {
        Reader::new(self.bytes.get(at..).unwrap_or_default(), at).u2("a constant's index")
    }

    /// Internal name (`a/b/C`).
    pub fn name(&self) -> Result<Cow<'a, str>, Error> {
        self.pool.class_name(self.u2_at(self.this_class_at)?, self.this_class_at)
    }

    /// The superclass's internal name; `None` for `java/lang/Object` and modules.
    pub fn super_name(&self) -> Result<Option<Cow<'a, str>>, Error> {
        let at = self.this_class_at + 2;
        match self.u2_at(at)? {
            0 => Ok(None),
            index => self.pool.class_name(index, at).map(Some),
        }
    }

    /// Internal names of the direct superinterfaces.
    pub fn interfaces(&self) -> Result<Vec<Cow<'a, str>>, Error> {
        let count = usize::from(self.u2_at(self.interfaces_at)?);
        let places = (0..count).map(|i| self.interfaces_at + 2 + i * 2);
        places.map(|at| self.pool.class_name(self.u2_at(at)?, at)).collect()
    }

    /// The declared methods, in their order.
    pub fn methods(&self) -> &[Method] {
        &self.methods
    }

    /// The content of an attribute, by its absolute offsets.
    pub(crate) fn part(&self, from: usize, to: usize) -> Reader<'a> {
        Reader::new(self.bytes.get(from..to).unwrap_or_default(), from)
    }
}

/// An attribute's name and content; the reader stands behind it.
pub(crate) fn attribute<'a>(reader: &mut Reader<'a>) -> Result<(u16, Reader<'a>), Error> {
    let name = reader.u2("an attribute's name")?;
    let length = reader.u4("an attribute's length")?;
    Ok((name, reader.part(length as usize, "an attribute")?))
}

fn method(reader: &mut Reader<'_>, pool: &ConstantPool<'_>, index: usize) -> Result<Method, Error> {
    let access = reader.u2("a method's access flags")?;
    let at = reader.offset();
    let name = pool.utf8(reader.u2("a method's name")?, at)?.into_owned();
    let descriptor = pool.utf8(reader.u2("a method's descriptor")?, at + 2)?.into_owned();
    let mut code = None;
    for _ in 0..reader.u2("a method's number of attributes")? {
        let at = reader.offset();
        let (attribute_name, content) = attribute(reader)?;
        if pool.utf8_bytes(attribute_name, at)? == b"Code" {
            if code.is_some() {
                return Err(Error::new(at, "at most one Code attribute"));
            }
            code = Some((content.offset() - 4, reader.offset()));
        }
    }
    Ok(Method { index, name, descriptor, access, has_code: code.is_some(), code })
}
