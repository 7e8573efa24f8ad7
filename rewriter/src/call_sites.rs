//! What a method calls, and what else it mentions that may have code run: for call graphs.

use std::collections::HashSet;

use crate::Error;
use crate::class_file::{ClassFile, Method};
use crate::code::Code;
use crate::constant_pool::{CLASS, DYNAMIC, METHOD_HANDLE};
use crate::instructions::{
    ANEWARRAY, CHECKCAST, GETFIELD, GETSTATIC, INSTANCEOF, INVOKEDYNAMIC, INVOKEINTERFACE, INVOKESPECIAL, INVOKESTATIC,
    INVOKEVIRTUAL, Instruction, LDC, LDC_W, LDC2_W, MULTIANEWARRAY, NEW, PUTFIELD, PUTSTATIC,
};
use crate::reader::Reader;

/// How a method is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// `invokestatic`.
    Static,
    /// `invokespecial`: constructors, private methods, `super.m()`.
    Special,
    /// `invokevirtual`.
    Virtual,
    /// `invokeinterface`.
    Interface,
    /// A method handle of kind REF_invokeStatic: a lambda's body, or a reference to a static method.
    HandleStatic,
    /// REF_invokeVirtual.
    HandleVirtual,
    /// REF_invokeSpecial.
    HandleSpecial,
    /// REF_invokeInterface.
    HandleInterface,
    /// REF_newInvokeSpecial: a constructor reference.
    HandleNew,
}

/// A call, or a method handle among the constants that a method uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// How it is called.
    pub kind: CallKind,
    /// Internal name of the class that the call names; not always the one that declares the method.
    pub owner: String,
    /// The method's name.
    pub name: String,
    /// Its descriptor.
    pub descriptor: String,
    /// The owner is an interface.
    pub interface: bool,
    /// Of the instruction, in the code.
    pub offset: u32,
}

/// Everything in a method's code that may have other code run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSites {
    /// Calls, in the order of the code; calls on arrays are left out.
    pub calls: Vec<CallSite>,
    /// Internal names of all classes that the code and the method's descriptor mention, each once; of arrays, the
    /// elements' class.
    pub types: Vec<String>,
    /// Internal names of the classes whose static initialisers the code may trigger (JVMS 5.5), each once.
    pub initialized: Vec<String>,
    /// There are `invokedynamic` instructions: code that the JVM makes up may call anything that it is given.
    pub has_invokedynamic: bool,
}

/// Nesting of dynamic constants that is followed.
const MAX_DEPTH: u32 = 16;

/// Analyses a method. One without code calls nothing.
pub fn call_sites(class: &ClassFile<'_>, method_index: usize) -> Result<CallSites, Error> {
    let mut collector =
        Collector { class, sites: CallSites::default(), types: HashSet::new(), initialized: HashSet::new() };
    let Some(Method { code: Some((from, to)), descriptor, .. }) = class.methods().get(method_index) else {
        return Ok(collector.sites);
    };
    let code = Code::parse(class, *from, *to)?;
    collector.mention_descriptor(descriptor);
    for instruction in &code.instructions {
        collector.instruction(&code, instruction)?;
    }
    Ok(collector.sites)
}

struct Collector<'c, 'a> {
    class: &'c ClassFile<'a>,
    sites: CallSites,
    types: HashSet<String>,
    initialized: HashSet<String>,
}

impl<'a> Collector<'_, 'a> {
    fn instruction(&mut self, code: &Code<'_>, instruction: &Instruction) -> Result<(), Error> {
        let at = code.base + instruction.offset as usize + 1;
        let pool = &self.class.pool;
        match instruction.opcode {
            INVOKEVIRTUAL | INVOKESPECIAL | INVOKESTATIC | INVOKEINTERFACE => {
                let kind = match instruction.opcode {
                    INVOKEVIRTUAL => CallKind::Virtual,
                    INVOKESPECIAL => CallKind::Special,
                    INVOKESTATIC => CallKind::Static,
                    _ => CallKind::Interface,
                };
                let member = pool.member(instruction.operand(code.bytes), at)?;
                self.call(kind, &member, instruction.offset);
            }
            INVOKEDYNAMIC => {
                self.sites.has_invokedynamic = true;
                self.dynamic(instruction.operand(code.bytes), at, instruction.offset, 0)?;
            }
            GETSTATIC | PUTSTATIC | GETFIELD | PUTFIELD => {
                let member = pool.member(instruction.operand(code.bytes), at)?;
                self.mention_class(&member.owner);
                self.mention_descriptor(&member.descriptor);
                if matches!(instruction.opcode, GETSTATIC | PUTSTATIC) {
                    self.initialize(&member.owner);
                }
            }
            NEW | ANEWARRAY | CHECKCAST | INSTANCEOF | MULTIANEWARRAY => {
                let name = pool.class_name(instruction.operand(code.bytes), at)?;
                self.mention_class(&name);
                if instruction.opcode == NEW {
                    self.initialize(&name);
                }
            }
            LDC => self.constant(code.bytes[instruction.offset as usize + 1].into(), at, instruction.offset, 0)?,
            LDC_W | LDC2_W => self.constant(instruction.operand(code.bytes), at, instruction.offset, 0)?,
            _ => {}
        }
        Ok(())
    }

    fn call(&mut self, kind: CallKind, member: &crate::constant_pool::MemberRef<'_>, offset: u32) {
        self.mention_class(&member.owner);
        self.mention_descriptor(&member.descriptor);
        if matches!(kind, CallKind::Static | CallKind::HandleStatic | CallKind::HandleNew) {
            self.initialize(&member.owner);
        }
        if !member.owner.starts_with('[') {
            self.sites.calls.push(CallSite {
                kind,
                owner: member.owner.to_string(),
                name: member.name.to_string(),
                descriptor: member.descriptor.to_string(),
                interface: member.interface,
                offset,
            });
        }
    }

    /// A constant that is loaded, or an argument of a bootstrap method.
    fn constant(&mut self, index: u16, at: usize, offset: u32, depth: u32) -> Result<(), Error> {
        let pool = &self.class.pool;
        match pool.entry(index, at)?.0 {
            CLASS => {
                let name = pool.class_name(index, at)?;
                self.mention_class(&name);
            }
            METHOD_HANDLE => {
                let (kind, member) = pool.method_handle(index, at)?;
                let kind = match kind {
                    5 => CallKind::HandleVirtual,
                    6 => CallKind::HandleStatic,
                    7 => CallKind::HandleSpecial,
                    8 => CallKind::HandleNew,
                    9 => CallKind::HandleInterface,
                    // Fields are read and written by nobody's code.
                    1..=4 => return Ok(()),
                    _ => return Err(Error::new(at, "a method handle's kind (1 to 9)")),
                };
                self.call(kind, &member, offset);
            }
            DYNAMIC => self.dynamic(index, at, offset, depth + 1)?,
            _ => {}
        }
        Ok(())
    }

    /// A dynamic call site or constant: the arguments of its bootstrap method.
    fn dynamic(&mut self, index: u16, at: usize, offset: u32, depth: u32) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Ok(());
        }
        let (bootstrap, name_and_type, at) = self.class.pool.dynamic(index, at)?;
        let (_, descriptor) = self.class.pool.name_and_type(name_and_type, at)?;
        self.mention_descriptor(&descriptor);
        let mut arguments = self.bootstrap_arguments(bootstrap, at)?;
        while !arguments.is_empty() {
            let at = arguments.offset();
            self.constant(arguments.u2("a bootstrap argument")?, at, offset, depth)?;
        }
        Ok(())
    }

    /// JVMS 4.7.23. Walks the table, which has no index; methods with very many call sites are rare.
    fn bootstrap_arguments(&self, wanted: u16, at: usize) -> Result<Reader<'a>, Error> {
        let missing = || Error::new(at, "a class with bootstrap methods");
        let (from, to) = self.class.bootstrap_methods.ok_or_else(missing)?;
        let mut table = self.class.part(from, to);
        let count = table.u2("the number of bootstrap methods")?;
        for index in 0..count {
            table.u2("a bootstrap method")?;
            let arguments = table.u2("a bootstrap method's number of arguments")?;
            let arguments = table.part(usize::from(arguments) * 2, "a bootstrap method's arguments")?;
            if index == wanted {
                return Ok(arguments);
            }
        }
        Err(Error::new(at, "the number of a bootstrap method"))
    }

    fn mention_class(&mut self, name: &str) {
        if name.starts_with('[') {
            self.mention_descriptor(name);
        } else if !self.types.contains(name) {
            self.types.insert(name.to_owned());
            self.sites.types.push(name.to_owned());
        }
    }

    /// The class names in a descriptor of a field, a method or an array.
    fn mention_descriptor(&mut self, descriptor: &str) {
        let mut rest = descriptor;
        while let Some(start) = rest.find('L') {
            let Some(end) = rest[start..].find(';') else { return };
            self.mention_class(&rest[start + 1..start + end]);
            rest = &rest[start + end + 1..];
        }
    }

    fn initialize(&mut self, name: &str) {
        if !name.starts_with('[') && self.initialized.insert(name.to_owned()) {
            self.sites.initialized.push(name.to_owned());
        }
    }
}
