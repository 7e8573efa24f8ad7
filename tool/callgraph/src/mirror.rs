//! Mirrors of the target's classes: names, hierarchy, and, where they matter, methods.

use std::sync::Arc;

use headwater_protocol::message::{ClassInfo, MethodInfo};
use headwater_protocol::{ClassId, LoaderId};
use headwater_rewriter::ClassFile;
use namesakes::Namesakes;
use rustc_hash::{FxHashMap, FxHashSet};
use signatures::Signatures;

mod namesakes;
mod signatures;

pub(super) use namesakes::{Meant, VERY_MANY};

/// What all classes extend.
pub(super) const OBJECT: &str = "java/lang/Object";
/// Names the class initialiser.
pub(super) const CLINIT: (&str, &str) = ("<clinit>", "()V");

/// A class, loaded or being loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ClassKey(u32);

/// An interned name and descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Signature(u32);

/// A declared method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    access: u16,
    /// At least so often it had been called when its class was listed; `None` where that is not known, or says nothing: the class is new.
    pub(super) calls: Option<u32>,
}

const ACC_PUBLIC: u16 = 0x0001;
const ACC_PRIVATE: u16 = 0x0002;
const ACC_PROTECTED: u16 = 0x0004;
const ACC_STATIC: u16 = 0x0008;
const ACC_FINAL: u16 = 0x0010;
const ACC_NATIVE: u16 = 0x0100;
const ACC_INTERFACE: u16 = 0x0200;
const ACC_ABSTRACT: u16 = 0x0400;

impl Declared {
    pub(super) fn has_code(self) -> bool {
        self.access & (ACC_ABSTRACT | ACC_NATIVE) == 0
    }

    pub(super) fn is_native(self) -> bool {
        self.access & ACC_NATIVE != 0
    }

    pub(super) fn is_abstract(self) -> bool {
        self.access & ACC_ABSTRACT != 0
    }

    /// May be overridden, or implement something.
    pub(super) fn is_virtual(self) -> bool {
        self.access & (ACC_STATIC | ACC_PRIVATE) == 0
    }

    pub(super) fn is_final(self) -> bool {
        self.access & ACC_FINAL != 0
    }

    pub(super) fn is_private(self) -> bool {
        self.access & ACC_PRIVATE != 0
    }

    /// Only classes of its package override it.
    pub(super) fn is_of_package(self) -> bool {
        self.access & (ACC_PUBLIC | ACC_PROTECTED | ACC_PRIVATE) == 0
    }

    pub(super) fn is_static(self) -> bool {
        self.access & ACC_STATIC != 0
    }
}

/// What is known of a class.
#[derive(Clone, Debug)]
pub(super) struct Mirror {
    /// None while it is being loaded.
    pub(super) id: Option<ClassId>,
    pub(super) name: Arc<str>,
    pub(super) loader: LoaderId,
    pub(super) super_class: Option<ClassKey>,
    pub(super) interfaces: Vec<ClassKey>,
    /// Direct subtypes.
    subtypes: Vec<ClassKey>,
    access: u16,
    pub(super) initialized: bool,
    /// It was loaded but not initialised when we came, and none of its methods has been seen to run since.
    pub(super) dormant: bool,
    /// A constructor of it has been entered, for an object of it or of a subclass, since we came or before.
    pub(super) alive: bool,
    /// It had been initialised when we came: what had not been called by then has had its chance.
    settled: bool,
    pub(super) modifiable: bool,
    /// A thread was in its code when we came, and for longer than a moment.
    pub(super) running: bool,
    /// A thread runs a loop in its code.
    pub(super) looping: bool,
    /// How often it was to be hotswapped.
    pub(super) hotswaps: u32,
    /// Its hierarchy is known.
    pub(super) linked: bool,
    /// HotSpot refuses to retransform it.
    pub(super) refused: bool,
    methods: Option<FxHashMap<Signature, Declared>>,
    /// Names of supertypes, while it is being loaded.
    pub(super) super_names: Vec<Arc<str>>,
}

impl Mirror {
    pub(super) fn is_interface(&self) -> bool {
        self.access & ACC_INTERFACE != 0
    }

    /// Of a class that the JVM made for a lambda or a method reference: internal name of the class in whose code that stands.
    pub(super) fn lambda_host(&self) -> Option<&str> {
        if self.modifiable {
            return None;
        }
        self.name.rsplit_once("$$Lambda").map(|(host, _)| host)
    }

    /// The JDK made it for an instruction of somebody's code, and it has no code of the application's.
    pub(super) fn is_made_for_code(&self) -> bool {
        !self.modifiable && ["$$TypeSwitch", "$$StringConcat"].iter().any(|part| self.name.contains(part))
    }

    /// No object is of this very class. Of an interface there may be objects whose class nobody knows: lambdas.
    pub(super) fn is_abstract_class(&self) -> bool {
        self.access & ACC_ABSTRACT != 0 && !self.is_interface()
    }

    pub(super) fn is_final(&self) -> bool {
        self.access & ACC_FINAL != 0
    }
}

/// All classes.
#[derive(Debug, Default)]
pub(super) struct Mirrors {
    classes: Vec<Mirror>,
    by_id: FxHashMap<ClassId, ClassKey>,
    by_name: FxHashMap<Arc<str>, Namesakes>,
    /// Lambdas' classes, by the name of the class in whose code these stand.
    by_host: FxHashMap<Arc<str>, Namesakes>,
    signatures: Signatures,
    /// Grows with each class, and with each method of which something else is known.
    pub(super) generation: u64,
}

impl Mirrors {
    pub(super) fn intern_signature(&self, name: &str, descriptor: &str) -> Signature {
        self.signatures.intern(name, descriptor)
    }

    /// A signature that has been interned.
    pub(super) fn known_signature(&self, name: &str, descriptor: &str) -> Option<Signature> {
        self.signatures.known(name, descriptor)
    }

    pub(super) fn signature(&self, signature: Signature) -> &(Arc<str>, Arc<str>) {
        // There is none that was not interned.
        self.signatures.get(signature).expect("it has been interned")
    }

    pub(super) fn get(&self, key: ClassKey) -> &Mirror {
        &self.classes[key.0 as usize]
    }

    pub(super) fn get_mut(&mut self, key: ClassKey) -> &mut Mirror {
        &mut self.classes[key.0 as usize]
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = ClassKey> + use<> {
        (0..self.classes.len() as u32).map(ClassKey)
    }

    pub(super) fn by_id(&self, id: ClassId) -> Option<ClassKey> {
        self.by_id.get(&id).copied()
    }

    /// All names, each with its classes.
    pub(super) fn names(&self) -> impl Iterator<Item = (&Arc<str>, &[ClassKey])> {
        self.by_name.iter().map(|(name, classes)| (name, classes.all()))
    }

    /// All classes of a name.
    pub(super) fn named(&self, name: &str) -> &[ClassKey] {
        self.by_name.get(name).map_or(&[], Namesakes::all)
    }

    /// Those of a loader.
    fn named_by(&self, name: &str, loader: LoaderId) -> impl Iterator<Item = ClassKey> {
        self.by_name.get(name).into_iter().flat_map(move |all| all.of(loader))
    }

    /// What a name means in a class of this loader: the class that the same loader defines, else any of them.
    pub(super) fn meant(&self, name: &str, from: LoaderId) -> Meant<'_> {
        self.named_by(name, from).next().map_or_else(|| Meant::Others(self.named(name)), Meant::Own)
    }

    /// The classes that it may mean; of [very many](Meant::is_very_many) the latest.
    pub(super) fn visible(&self, name: &str, from: LoaderId) -> Vec<ClassKey> {
        self.meant(name, from).latest()
    }

    /// Whether the class that a name means in a class of this loader may be yet another than these, which are [visible](Self::visible) by it: one that
    /// is not linked yet.
    pub(super) fn may_come(&self, visible: &[ClassKey], from: LoaderId) -> bool {
        !visible.iter().map(|key| self.get(*key)).any(|it| it.linked && (it.loader == from || it.loader.is_jdk()))
    }

    fn add(&mut self, mirror: Mirror) -> ClassKey {
        self.generation += 1;
        let key = ClassKey(self.classes.len() as u32);
        if !mirror.name.is_empty() {
            self.by_name.entry(mirror.name.clone()).or_default().push(key, mirror.loader);
        }
        self.classes.push(mirror);
        key
    }

    /// The classes of lambdas in the code of a loader's class of this name.
    pub(super) fn lambda_classes(&self, host: &str, loader: LoaderId) -> impl Iterator<Item = ClassKey> {
        self.by_host.get(host).into_iter().flat_map(move |all| all.of(loader))
    }

    /// A class whose loading has begun, and not ended.
    pub(super) fn being_loaded(&self, loader: LoaderId, name: &str) -> Option<ClassKey> {
        self.named_by(name, loader).find(|key| self.get(*key).id.is_none())
    }

    /// A class whose loading has begun: its hierarchy is known by name only.
    pub(super) fn loading(&mut self, loader: LoaderId, name: &str, file: &ClassFile<'_>) -> ClassKey {
        let key = self.being_loaded(loader, name).unwrap_or_else(|| {
            let name = self.signatures.text(name);
            self.add(Mirror::unknown(name, loader))
        });
        let mut super_names = Vec::new();
        super_names.extend(file.super_name().ok().flatten().map(|name| self.signatures.text(&name)));
        for interface in file.interfaces().unwrap_or_default() {
            super_names.push(self.signatures.text(&interface));
        }
        let methods = file
            .methods()
            .iter()
            .map(|method| {
                (
                    self.intern_signature(&method.name(), &method.descriptor()),
                    Declared { access: method.access, calls: None },
                )
            })
            .collect();
        self.generation += 1;
        let mirror = self.get_mut(key);
        mirror.super_names = super_names;
        mirror.methods = Some(methods);
        mirror.access = file.access();
        key
    }

    /// The mirror of an id; an empty one, for supertypes that are told of later.
    fn key_of(&mut self, id: ClassId) -> ClassKey {
        if let Some(key) = self.by_id(id) {
            return key;
        }
        let empty = self.signatures.text("");
        let key = self.add(Mirror { id: Some(id), ..Mirror::unknown(empty, LoaderId::BOOT) });
        self.by_id.insert(id, key);
        key
    }

    /// A class with its hierarchy. Being told twice is harmless.
    pub(super) fn linked(&mut self, info: ClassInfo) -> ClassKey {
        let name = self.signatures.text(&info.name);
        let key = match self.by_id(info.id) {
            Some(key) => key,
            None => match self.being_loaded(info.loader, &name) {
                Some(key) => {
                    self.by_id.insert(info.id, key);
                    self.get_mut(key).id = Some(info.id);
                    key
                }
                None => self.key_of(info.id),
            },
        };
        if self.get(key).linked {
            self.get_mut(key).initialized |= info.initialized;
            return key;
        }
        if self.get(key).name.is_empty() {
            self.by_name.entry(name.clone()).or_default().push(key, info.loader);
        }
        // A JVM has no class that extends itself; a target that lies is not followed in circles.
        let super_class = info.super_class.map(|id| self.key_of(id)).filter(|at| !self.extends(*at, key));
        let interfaces: Vec<ClassKey> = info.interfaces.iter().map(|id| self.key_of(*id)).collect();
        for supertype in super_class.iter().chain(&interfaces) {
            self.get_mut(*supertype).subtypes.push(key);
        }
        self.generation += 1;
        let mirror = self.get_mut(key);
        mirror.name = name;
        mirror.loader = info.loader;
        mirror.super_class = super_class;
        mirror.interfaces = interfaces;
        mirror.access = info.access;
        mirror.initialized = info.initialized;
        mirror.modifiable = info.modifiable;
        mirror.linked = true;
        mirror.super_names = Vec::new();
        if let Some(host) = self.get(key).lambda_host().map(Arc::from) {
            self.by_host.entry(host).or_default().push(key, info.loader);
        }
        key
    }

    /// Whether a class is another, or extends it, directly or not.
    fn extends(&self, class: ClassKey, other: ClassKey) -> bool {
        std::iter::successors(Some(class), |key| self.get(*key).super_class).any(|key| key == other)
    }

    /// A class that was loaded when we came.
    pub(super) fn found(&mut self, info: ClassInfo) {
        let is_settled = info.initialized;
        let key = self.linked(info);
        let mirror = self.get_mut(key);
        (mirror.dormant, mirror.settled) = (!is_settled, is_settled);
    }

    pub(super) fn set_methods(&mut self, id: ClassId, methods: Vec<MethodInfo>) {
        let Some(key) = self.by_id(id) else { return };
        let is_settled = self.get(key).settled;
        self.get_mut(key).alive |=
            methods.iter().any(|method| method.name == "<init>" && method.calls.is_some_and(|calls| calls > 0));
        let methods = methods
            .into_iter()
            .map(|method| {
                let calls = method.calls.filter(|calls| *calls > 0 || is_settled);
                let signature = self.intern_signature(&method.name, &method.descriptor);
                (signature, Declared { access: method.access, calls })
            })
            .collect();
        self.get_mut(key).methods = Some(methods);
        self.generation += 1;
    }

    /// A method that had run does no longer. That counts where its class was initialised when we came, as that it never ran does.
    pub(super) fn is_stale(&mut self, key: ClassKey, signature: Signature) {
        self.generation += 1;
        let mirror = self.get_mut(key);
        let is_settled = mirror.settled;
        let method = mirror.methods.as_mut().and_then(|methods| methods.get_mut(&signature));
        if let Some(method) = method.filter(|method| is_settled && method.calls.is_some()) {
            method.calls = Some(0);
        }
    }

    /// A method has run since its calls were told.
    pub(super) fn has_run(&mut self, key: ClassKey, signature: Signature) {
        self.generation += 1;
        let methods = self.get_mut(key).methods.as_mut();
        if let Some(method) = methods.and_then(|methods| methods.get_mut(&signature)) {
            method.calls = method.calls.map(|calls| calls.max(1));
        }
    }

    /// The declared methods, if they have been told.
    pub(super) fn methods(&self, key: ClassKey) -> Option<&FxHashMap<Signature, Declared>> {
        self.get(key).methods.as_ref()
    }

    pub(super) fn method(&self, key: ClassKey, signature: Signature) -> Option<Declared> {
        self.methods(key)?.get(&signature).copied()
    }

    /// Whether two classes are of one package, as the JVM sees it (JVMS 5.3).
    pub(super) fn share_package(&self, one: ClassKey, other: ClassKey) -> bool {
        let (one, other) = (self.get(one), self.get(other));
        let package = |mirror: &Mirror| mirror.name.rfind('/').map_or(0, |slash| slash);
        one.loader == other.loader && one.name[..package(one)] == other.name[..package(other)]
    }

    /// A class and everything below it.
    pub(super) fn subtypes(&self, key: ClassKey) -> Vec<ClassKey> {
        self.closure(key, |mirror| mirror.subtypes.iter().copied())
    }

    /// A class and everything above it.
    pub(super) fn supertypes(&self, key: ClassKey) -> Vec<ClassKey> {
        self.closure(key, |mirror| mirror.super_class.iter().chain(&mirror.interfaces).copied())
    }

    fn closure<'m, I: Iterator<Item = ClassKey>>(
        &'m self,
        from: ClassKey,
        next: impl Fn(&'m Mirror) -> I,
    ) -> Vec<ClassKey> {
        /// Of more it is looked up which are there already.
        const FEW: usize = 32;
        let mut found = vec![from];
        let mut known: FxHashSet<ClassKey> = FxHashSet::default();
        let mut at = 0;
        while let Some(key) = found.get(at).copied() {
            for key in next(self.get(key)) {
                let is_new = if found.len() < FEW {
                    !found.contains(&key)
                } else {
                    if known.is_empty() {
                        known.extend(&found);
                    }
                    known.insert(key)
                };
                if is_new {
                    found.push(key);
                }
            }
            at += 1;
        }
        found
    }
}

impl Mirror {
    fn unknown(name: Arc<str>, loader: LoaderId) -> Mirror {
        Mirror {
            id: None,
            name,
            loader,
            super_class: None,
            interfaces: Vec::new(),
            subtypes: Vec::new(),
            access: 0,
            initialized: false,
            dormant: false,
            alive: false,
            settled: false,
            modifiable: true,
            running: false,
            looping: false,
            hotswaps: 0,
            linked: false,
            refused: false,
            methods: None,
            super_names: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_extend_one_another_end_somewhere() {
        let class = |id: u64, super_class: u64| ClassInfo {
            id: ClassId(id),
            name: format!("C{id}"),
            loader: LoaderId(2),
            super_class: Some(ClassId(super_class)),
            interfaces: vec![ClassId(super_class)],
            access: 1,
            initialized: true,
            modifiable: true,
            probed: false,
        };
        let mut mirrors = Mirrors::default();
        let keys = [(1, 2), (2, 3), (3, 1), (4, 4)].map(|(id, super_class)| mirrors.linked(class(id, super_class)));
        let supers = keys.map(|key| mirrors.get(key).super_class);
        assert_eq!(supers, [Some(keys[1]), Some(keys[2]), None, None]);
        assert_eq!(mirrors.supertypes(keys[0]).len(), 3);
        for id in 10..60 {
            mirrors.linked(class(id, 4));
        }
        assert_eq!(mirrors.subtypes(keys[3]).len(), 51, "each once, however many there are");
    }
}
