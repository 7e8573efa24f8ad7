//! What a method calls, and what else it mentions that may have code run: for call graphs.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use headwater_modified_utf8 as modified_utf8;

use crate::Error;
use crate::class_file::ClassFile;
use crate::code::Code;
use crate::constant_pool::{CLASS, DYNAMIC, FIELDREF, INTERFACE_METHODREF, METHOD_HANDLE, METHODREF, NAME_AND_TYPE};
use crate::instructions::{
    AASTORE, ANEWARRAY, CHECKCAST, GETFIELD, GETSTATIC, INSTANCEOF, INVOKEDYNAMIC, INVOKEINTERFACE, INVOKESPECIAL,
    INVOKESTATIC, INVOKEVIRTUAL, Instruction, LDC, LDC_W, LDC2_W, MULTIANEWARRAY, NEW, PUTFIELD, PUTSTATIC,
};
use crate::likelihood::{Likelihood, Likelihoods};
use crate::signatures::signature_classes;

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

impl CallKind {
    /// What a constant method handle of a kind does (JVMS 4.4.8); nothing, where it is a field's.
    pub(crate) fn of_handle(kind: u8, at: usize) -> Result<Option<CallKind>, Error> {
        Ok(Some(match kind {
            5 => CallKind::HandleVirtual,
            6 => CallKind::HandleStatic,
            7 => CallKind::HandleSpecial,
            8 => CallKind::HandleNew,
            9 => CallKind::HandleInterface,
            1..=4 => return Ok(None),
            _ => return Err(Error::new(at, "a method handle's kind (1 to 9)")),
        }))
    }

    /// Whether the object's class decides what runs.
    pub fn is_virtual(self) -> bool {
        use CallKind::{HandleInterface, HandleVirtual, Interface, Virtual};
        matches!(self, Virtual | Interface | HandleVirtual | HandleInterface)
    }

    /// Whether it is a constant, by which others call.
    pub fn is_handle(self) -> bool {
        !matches!(self, CallKind::Static | CallKind::Special | CallKind::Virtual | CallKind::Interface)
    }
}

/// A call, or a method handle among the constants that a method uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// How it is called.
    pub kind: CallKind,
    /// Internal name of the class that the call names; not always the one that declares the method.
    pub owner: Arc<str>,
    /// The method's name.
    pub name: Arc<str>,
    /// Its descriptor.
    pub descriptor: Arc<str>,
    /// The owner is an interface.
    pub interface: bool,
    /// Of the instruction, in the code.
    pub offset: u32,
    /// Whether it runs when the method does.
    pub likelihood: Likelihood,
}

/// An `invokedynamic` instruction's call site; those that are alike are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamicSite {
    /// Internal name of the class whose bootstrap method makes it.
    pub bootstrap: Arc<str>,
    /// What it is given, and gives back.
    pub descriptor: Arc<str>,
}

/// Everything in a method's code that may have other code run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSites {
    /// Calls, in the order of the code; calls on arrays are left out.
    pub calls: Vec<CallSite>,
    /// Internal names of all classes that the code, the method's descriptor, and the generic signatures of the method and of its own
    /// class's fields that it uses mention, each once; of arrays, the elements' class.
    pub types: Vec<String>,
    /// Internal names of the classes whose static initialisers the code may trigger (JVMS 5.5), each once.
    pub initialized: Vec<String>,
    /// The call sites of `invokedynamic` instructions.
    pub dynamic: Vec<DynamicSite>,
    /// Internal names of the classes as which objects are kept for others to find: what is stored in fields, and in arrays
    /// (`java/lang/Object` for these, whose elements' class the code does not say), each once.
    pub kept: Vec<String>,
    /// The bootstrap methods of the code's dynamic call sites and constants, but for those of the JDK's own that make lambdas,
    /// strings and the like.
    pub bootstraps: Vec<CallSite>,
}

/// Analyses a method. One without code calls nothing. Takes as long as the code and the constants that it uses are, each
/// once.
pub fn call_sites(class: &ClassFile<'_>, method_index: usize) -> Result<CallSites, Error> {
    let Some(method) = class.methods().get(method_index) else { return Ok(CallSites::default()) };
    let Some(code) = class.code(method)? else { return Ok(CallSites::default()) };
    let mut collector = Collector::of(class, Likelihoods::of(&code));
    collector.mention_descriptor(&method.descriptor());
    method.signature.into_iter().for_each(|signature| collector.mention_signature(signature));
    for instruction in code.instructions() {
        collector.instruction(&code, &instruction)?;
    }
    Ok(collector.sites)
}

/// What the code of a class can call at most, by its constants alone: for one whose code cannot be had. How is not known, so a method counts as
/// called in each way that its constant allows.
pub fn constant_sites(class: &ClassFile<'_>) -> Result<CallSites, Error> {
    let mut collector = Collector::of(class, Likelihoods::default());
    for index in 1..class.pool.len() as u16 {
        // The second half of a long constant is no entry.
        let Ok((tag, _)) = class.pool.entry(index, 0) else { continue };
        match tag {
            METHODREF | INTERFACE_METHODREF => {
                let is_constructor = class.pool.member(index, 0)?.name == "<init>";
                let by_object = if tag == METHODREF { CallKind::Virtual } else { CallKind::Interface };
                let kinds = [CallKind::Special, CallKind::Static, by_object];
                for kind in kinds.into_iter().take(if is_constructor { 1 } else { 3 }) {
                    collector.call(kind, index, 0, 0)?;
                }
            }
            FIELDREF => collector.initialize(&class.pool.member(index, 0)?.owner),
            NAME_AND_TYPE => collector.mention_descriptor(&class.pool.name_and_type(index, 0)?.1),
            CLASS => {
                collector.constant(index, 0, 0)?;
                collector.initialize(&class.pool.class_name(index, 0)?);
            }
            METHOD_HANDLE => collector.constant(index, 0, 0)?,
            _ => {}
        }
    }
    // What it keeps, and what its call sites are given, is not known.
    add_classes(&mut collector.sites.kept, "Ljava/lang/Object;");
    Ok(collector.sites)
}

/// Packages of the JDK whose bootstrap methods call nothing but what their arguments say.
const JDK_BOOTSTRAPS: [&str; 2] = ["java/lang/invoke/", "java/lang/runtime/"];

/// In the place of an opcode: the number is that of a bootstrap method.
const BOOTSTRAP_METHOD: u8 = 2;
/// The same: a field's, which is written.
const WRITTEN_FIELD: u8 = 3;

/// Owner, name and descriptor of a method, and whether the owner is an interface.
type Member = (Arc<str>, Arc<str>, Arc<str>, bool);

struct Collector<'c, 'a> {
    class: &'c ClassFile<'a>,
    sites: CallSites,
    types: HashSet<String>,
    initialized: HashSet<String>,
    /// Methods that have been seen, by constant pool index.
    members: HashMap<u16, Member>,
    /// Other constants that have been seen, and whether a class was initialised by them.
    constants: HashSet<(u16, u8)>,
    likelihoods: Likelihoods,
}

impl<'c, 'a> Collector<'c, 'a> {
    fn of(class: &'c ClassFile<'a>, likelihoods: Likelihoods) -> Self {
        Collector {
            class,
            sites: CallSites::default(),
            types: HashSet::new(),
            initialized: HashSet::new(),
            members: HashMap::new(),
            constants: HashSet::new(),
            likelihoods,
        }
    }

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
                self.call(kind, instruction.operand(code.bytes), at, instruction.offset)?;
            }
            INVOKEDYNAMIC => {
                self.dynamic(instruction.operand(code.bytes), at, instruction.offset)?;
            }
            GETSTATIC | PUTSTATIC | GETFIELD | PUTFIELD => {
                let is_static = u8::from(matches!(instruction.opcode, GETSTATIC | PUTSTATIC));
                let index = instruction.operand(code.bytes);
                if self.constants.insert((index, is_static)) {
                    let member = pool.member(index, at)?;
                    self.mention_class(&member.owner);
                    self.mention_descriptor(&member.descriptor);
                    let mut signatures = self.class.field_signatures.iter();
                    let generic = signatures.find(|(name, _)| modified_utf8::decode(name) == member.name);
                    if let Some((_, signature)) = generic
                        && self.class.name().is_ok_and(|own| own == member.owner)
                    {
                        self.mention_signature(signature);
                    }
                    if is_static == 1 {
                        self.initialize(&member.owner);
                    }
                }
                if matches!(instruction.opcode, PUTSTATIC | PUTFIELD) && self.constants.insert((index, WRITTEN_FIELD)) {
                    let member = pool.member(index, at)?;
                    add_classes(&mut self.sites.kept, &member.descriptor);
                }
            }
            AASTORE => add_classes(&mut self.sites.kept, "Ljava/lang/Object;"),
            NEW | ANEWARRAY | CHECKCAST | INSTANCEOF | MULTIANEWARRAY => {
                let is_new = u8::from(instruction.opcode == NEW);
                let index = instruction.operand(code.bytes);
                if self.constants.insert((index, is_new)) {
                    let name = pool.class_name(index, at)?;
                    self.mention_class(&name);
                    if is_new == 1 {
                        self.initialize(&name);
                    }
                }
            }
            LDC => self.constant(instruction.u1(code.bytes).into(), at, instruction.offset)?,
            LDC_W | LDC2_W => self.constant(instruction.operand(code.bytes), at, instruction.offset)?,
            _ => {}
        }
        Ok(())
    }

    fn call(&mut self, kind: CallKind, index: u16, at: usize, offset: u32) -> Result<(), Error> {
        let call = self.site(kind, index, at, offset)?;
        if !call.owner.starts_with('[') {
            self.sites.calls.push(call);
        }
        Ok(())
    }

    fn site(&mut self, kind: CallKind, index: u16, at: usize, offset: u32) -> Result<CallSite, Error> {
        let (owner, name, descriptor, interface) = match self.members.get(&index) {
            Some(member) => member.clone(),
            None => {
                let member = self.class.pool.member(index, at)?;
                self.mention_class(&member.owner);
                self.mention_descriptor(&member.descriptor);
                let member = (member.owner.into(), member.name.into(), member.descriptor.into(), member.interface);
                self.members.insert(index, member);
                self.members[&index].clone()
            }
        };
        let initializes = matches!(kind, CallKind::Static | CallKind::HandleStatic | CallKind::HandleNew);
        if initializes && self.constants.insert((index, 1)) {
            self.initialize(&owner);
        }
        Ok(CallSite { kind, owner, name, descriptor, interface, offset, likelihood: self.likelihoods.at(offset) })
    }

    /// A constant that is loaded, or an argument of a bootstrap method; and what it is made of, to any depth.
    fn constant(&mut self, index: u16, at: usize, offset: u32) -> Result<(), Error> {
        let mut pending = vec![(index, at)];
        while let Some((index, at)) = pending.pop() {
            let pool = &self.class.pool;
            match pool.entry(index, at)?.0 {
                CLASS if self.constants.insert((index, 0)) => {
                    let name = pool.class_name(index, at)?;
                    self.mention_class(&name);
                }
                METHOD_HANDLE => match self.method_handle(index, at)? {
                    (Some(kind), member) => self.call(kind, member, at, offset)?,
                    // Who is given the handle reads the field, and may call what is in it.
                    (None, member) => self.mention_descriptor(&pool.member(member, at)?.descriptor),
                },
                // A constant is made once, however often it is used.
                DYNAMIC if self.constants.insert((index, 0)) => {
                    self.arguments(index, at, offset, &mut pending)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A dynamic call site: what its bootstrap method is given.
    fn dynamic(&mut self, index: u16, at: usize, offset: u32) -> Result<(), Error> {
        if !self.constants.insert((index, 0)) {
            return Ok(());
        }
        let mut arguments = Vec::new();
        let site = self.arguments(index, at, offset, &mut arguments)?;
        self.sites.dynamic.push(site);
        for (index, at) in arguments {
            self.constant(index, at, offset)?;
        }
        Ok(())
    }

    /// What a constant method handle does, `None` for reading and writing a field; and the member that it does it to.
    fn method_handle(&self, index: u16, at: usize) -> Result<(Option<CallKind>, u16), Error> {
        let (kind, member) = self.class.pool.method_handle(index, at)?;
        Ok((CallKind::of_handle(kind, at)?, member))
    }

    /// A bootstrap method, and its arguments, with where they stand; what it is called for.
    fn arguments(
        &mut self,
        index: u16,
        at: usize,
        offset: u32,
        to: &mut Vec<(u16, usize)>,
    ) -> Result<DynamicSite, Error> {
        let (bootstrap, name_and_type, at) = self.class.pool.dynamic(index, at)?;
        let (_, descriptor) = self.class.pool.name_and_type(name_and_type, at)?;
        self.mention_descriptor(&descriptor);
        let (handle, mut arguments) = self.class.bootstrap_method(bootstrap, at)?;
        let (kind, member) = self.method_handle(handle, at)?;
        let owner = self.class.pool.member(member, at)?.owner;
        let site = DynamicSite { bootstrap: (&*owner).into(), descriptor: descriptor.into() };
        // Many call sites may share a bootstrap method with many arguments.
        if !self.constants.insert((bootstrap, BOOTSTRAP_METHOD)) {
            return Ok(site);
        }
        if let Some(kind) = kind
            && !JDK_BOOTSTRAPS.iter().any(|package| owner.starts_with(package))
        {
            let bootstrap = self.site(kind, member, at, offset)?;
            self.sites.bootstraps.push(bootstrap);
        }
        while !arguments.is_empty() {
            let at = arguments.offset();
            to.push((arguments.u2("a bootstrap argument")?, at));
        }
        Ok(site)
    }

    fn mention_class(&mut self, name: &str) {
        if name.starts_with('[') {
            self.mention_descriptor(name);
        } else if !self.types.contains(name) {
            self.types.insert(name.to_owned());
            self.sites.types.push(name.to_owned());
        }
    }

    fn mention_descriptor(&mut self, descriptor: &str) {
        descriptor_classes(descriptor).for_each(|class| self.mention_class(class));
    }

    /// What a container is said to hold leaves with it.
    fn mention_signature(&mut self, signature: &[u8]) {
        let classes = signature_classes(&modified_utf8::decode(signature));
        classes.iter().for_each(|class| self.mention_class(class));
    }

    fn initialize(&mut self, name: &str) {
        if !name.starts_with('[') && self.initialized.insert(name.to_owned()) {
            self.sites.initialized.push(name.to_owned());
        }
    }
}

/// Adds the classes in a descriptor, if they are not there.
fn add_classes(to: &mut Vec<String>, descriptor: &str) {
    for class in descriptor_classes(descriptor) {
        if !to.iter().any(|known| known == class) {
            to.push(class.to_owned());
        }
    }
}

/// The internal names of the classes in a descriptor of a field, a method or an array; of arrays, the elements' class.
pub fn descriptor_classes(descriptor: &str) -> impl Iterator<Item = &str> {
    let mut rest = descriptor;
    std::iter::from_fn(move || {
        let start = rest.find('L')?;
        let end = start + rest[start..].find(';')?;
        let class = &rest[start + 1..end];
        rest = &rest[end + 1..];
        Some(class)
    })
}

/// The part of a method descriptor that says what the method is given.
pub fn parameters(descriptor: &str) -> &str {
    descriptor.split(')').next().unwrap_or_default()
}

/// The part of a method descriptor that says what the method returns.
pub fn returned(descriptor: &str) -> &str {
    descriptor.split(')').nth(1).unwrap_or_default()
}
