//! The class file's structure (JVMS 4.1), with its methods' attributes located.

use std::borrow::Cow;
use std::sync::OnceLock;

use headwater_modified_utf8 as modified_utf8;

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
    pub(crate) this_class_at: usize,
    interfaces_at: usize,
    methods: Vec<Method<'a>>,
    /// Names and generic signatures of the fields that have one.
    pub(crate) field_signatures: Vec<(&'a [u8], &'a [u8])>,
    /// Absolute offsets of the BootstrapMethods attribute's content.
    bootstrap_methods: Option<(usize, usize)>,
    /// Absolute offset of each bootstrap method, once somebody has asked.
    bootstrap_index: OnceLock<Vec<u32>>,
}

/// A declared method.
#[derive(Clone, Copy, Debug)]
pub struct Method<'a> {
    /// In the order of declaration, from 0.
    pub index: usize,
    /// Access flags (JVMS table 4.6-A).
    pub access: u16,
    pub(crate) name: &'a [u8],
    pub(crate) descriptor: &'a [u8],
    /// Absolute offset of the Code attribute's length field, and of its content's end.
    pub(crate) code: Option<(usize, usize)>,
    /// Its generic signature.
    pub(crate) signature: Option<&'a [u8]>,
}

impl<'a> ClassFile<'a> {
    /// All of it.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> Method<'a> {
    /// Its name.
    pub fn name(&self) -> Cow<'a, str> {
        modified_utf8::decode(self.name)
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> Cow<'a, str> {
        modified_utf8::decode(self.descriptor)
    }

    pub(crate) fn is_finalizer(&self) -> bool {
        (self.name, self.descriptor) == (b"finalize", b"()V")
    }

    /// Neither abstract nor native.
    pub fn has_code(&self) -> bool {
        self.code.is_some()
    }
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

        let mut field_signatures = Vec::new();
        for _ in 0..reader.u2("the number of fields")? {
            reader.u2("a field's access flags")?;
            let at = reader.offset();
            let name = reader.u2("a field's name")?;
            reader.u2("a field's descriptor")?;
            for _ in 0..reader.u2("a field's number of attributes")? {
                let attribute = attribute(&mut reader)?;
                if let Some(signature) = signature(&pool, attribute) {
                    field_signatures.push((pool.utf8_bytes(name, at)?, signature));
                }
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
        Ok(ClassFile {
            bytes,
            pool,
            major_version,
            access,
            this_class_at,
            interfaces_at,
            methods,
            field_signatures,
            bootstrap_methods,
            bootstrap_index: OnceLock::new(),
        })
    }

    /// The format's version: 45 for Java 1.1, 69 for Java 25.
    pub fn major_version(&self) -> u16 {
        self.major_version
    }

    /// Access flags (JVMS table 4.1-B).
    pub fn access(&self) -> u16 {
        self.access
    }

    pub(crate) fn u2_at(&self, at: usize) -> Result<u16, Error> {
        Reader::new(self.bytes.get(at..).unwrap_or_default(), at).u2("a constant's index")
    }

    /// Names and descriptors of all that the class's code can name: fields, methods, call sites. In the constant pool's order, as it
    /// spells them; what is malformed there is left out.
    pub fn names_and_types(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + '_ {
        self.pool.names_and_types()
    }

    /// The texts of the class's string constants, likewise.
    pub fn texts(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.pool.texts()
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
    pub fn methods(&self) -> &[Method<'a>] {
        &self.methods
    }

    /// The arguments of a bootstrap method (JVMS 4.7.23); `at` is where its number stands.
    pub(crate) fn bootstrap_method(&self, wanted: u16, at: usize) -> Result<(u16, Reader<'a>), Error> {
        let missing = || Error::new(at, "the number of a bootstrap method");
        let (from, to) = self.bootstrap_methods.ok_or_else(missing)?;
        let start = |offset: usize| self.part(offset, to);
        let index = match self.bootstrap_index.get() {
            Some(index) => index,
            None => {
                let mut table = start(from);
                let mut index = Vec::new();
                for _ in 0..table.u2("the number of bootstrap methods")? {
                    index.push(table.offset() as u32);
                    bootstrap_method(&mut table)?;
                }
                self.bootstrap_index.get_or_init(|| index)
            }
        };
        let offset = index.get(usize::from(wanted)).ok_or_else(missing)?;
        bootstrap_method(&mut start(*offset as usize))
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

/// What a Signature attribute says; nothing, if it is another one, or cannot be read: the JVM does not check these.
fn signature<'a>(pool: &ConstantPool<'a>, (name, mut content): (u16, Reader<'a>)) -> Option<&'a [u8]> {
    let is_signature = pool.utf8_bytes(name, 0).ok()? == b"Signature";
    pool.utf8_bytes(content.u2("a signature").ok().filter(|_| is_signature)?, 0).ok()
}

/// A bootstrap method's handle and arguments; the reader stands behind it.
fn bootstrap_method<'a>(table: &mut Reader<'a>) -> Result<(u16, Reader<'a>), Error> {
    let handle = table.u2("a bootstrap method")?;
    let arguments = table.u2("a bootstrap method's number of arguments")?;
    Ok((handle, table.part(usize::from(arguments) * 2, "a bootstrap method's arguments")?))
}

fn method<'a>(reader: &mut Reader<'a>, pool: &ConstantPool<'a>, index: usize) -> Result<Method<'a>, Error> {
    let access = reader.u2("a method's access flags")?;
    let at = reader.offset();
    let name = pool.utf8_bytes(reader.u2("a method's name")?, at)?;
    let descriptor = pool.utf8_bytes(reader.u2("a method's descriptor")?, at + 2)?;
    let (mut code, mut generic) = (None, None);
    for _ in 0..reader.u2("a method's number of attributes")? {
        let at = reader.offset();
        let (attribute_name, content) = attribute(reader)?;
        if pool.utf8_bytes(attribute_name, at)? == b"Code" {
            if code.is_some() {
                return Err(Error::new(at, "at most one Code attribute"));
            }
            code = Some((content.offset() - 4, reader.offset()));
        } else {
            generic = generic.or(signature(pool, (attribute_name, content)));
        }
    }
    Ok(Method { index, access, name, descriptor, code, signature: generic })
}
