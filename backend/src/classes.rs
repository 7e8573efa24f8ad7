//! Loaded classes by number: a class's id is its JVMTI tag, so that the agent holds no reference to any class.

use std::collections::HashSet;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use headwater_protocol::message::{ClassInfo, MethodInfo, MethodRef, UnlinkedClass};
use headwater_protocol::{ClassId, LoaderId};
use jni::sys::{jclass, jmethodID, jobject};

use crate::connection::Connection;
use crate::hotspot::invocations::Invocations;
use crate::jni_env::Jni;
use crate::jvmti::{Error, Jvmti, class_status};
use crate::stale::Stale;

/// What HotSpot's lambdas are called behind the name of the class whose code they stand in.
const LAMBDA: &str = "$$Lambda";
/// So many classes at most are looked for by their tags: HotSpot compares each with all that there are. With 20,000 classes 256 take 4 to 7 ms so and
/// 1,024 take 8 to 27; to ask all classes takes 10 to 15, however many are looked for.
const ASKED_BY_TAG: usize = 512;

/// What is not forgotten, because a thread stays in the code of those that remember it.
#[derive(Clone, Debug, Default)]
pub struct Spared {
    /// Loaders and names of those that remember.
    pub classes: HashSet<(LoaderId, String)>,
    /// The lambdas that they may remember: addresses of their classes' structures.
    pub lambdas: HashSet<u64>,
}

/// Numbers classes and loaders of one session.
#[derive(Debug)]
pub struct Classes {
    jvmti: Jvmti,
    /// Class and loader ids share one sequence: both are tags. 1 is the platform loader's.
    next_tag: AtomicU64,
    /// Two threads must not number the same class at the same time.
    numbering: Mutex<()>,
    /// Classes that have been given other bytes than their own, by loader and name: at load time there is no id yet.
    instrumented: Mutex<Instrumented>,
}

/// Classes by loader and name.
#[derive(Debug, Default)]
struct Instrumented {
    all: HashSet<(LoaderId, String)>,
    /// Those that have been since lambdas were last forgotten, also if they have their own again.
    changed: HashSet<(LoaderId, String)>,
    /// What profiles remember nevertheless of lambdas that were gone then.
    spared: Spared,
    /// Those that have been given their bytes while being loaded, and have not been seen loaded yet.
    being_defined: HashSet<(LoaderId, String)>,
}

impl Classes {
    /// Nothing is numbered yet.
    pub fn new(jvmti: Jvmti) -> Classes {
        Classes {
            jvmti,
            next_tag: AtomicU64::new(LoaderId::PLATFORM.0 + 1),
            numbering: Mutex::new(()),
            instrumented: Mutex::default(),
        }
    }

    fn tag(&self, object: jobject, choose: impl FnOnce() -> u64) -> Result<u64, Error> {
        let known = self.jvmti.tag(object)?;
        if known != 0 {
            return Ok(known as u64);
        }
        let _guard = self.numbering.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.jvmti.tag(object)?;
        if known != 0 {
            return Ok(known as u64);
        }
        let tag = choose();
        self.jvmti.set_tag(object, tag as i64)?;
        Ok(tag)
    }

    /// The number of a class.
    pub fn id(&self, class: jclass) -> Result<ClassId, Error> {
        self.tag(class, || self.next_tag.fetch_add(1, Ordering::Relaxed)).map(ClassId)
    }

    /// The number of a class that the JVM tells of as loaded; `None` if it was before: the JVM tells again when another loader finds it.
    pub fn newly_loaded(&self, class: jclass) -> Option<ClassId> {
        let is_numbered = || self.jvmti.tag(class).is_ok_and(|tag| tag != 0);
        let is_linked = || self.jvmti.class_status(class).is_ok_and(|status| status & class_status::PREPARED != 0);
        // A hidden class is found by nobody, and linked by now, which has given it its number.
        let is_hidden = self.jvmti.class_signature(class).is_ok_and(|signature| signature.contains('.'));
        if !is_hidden && (is_numbered() || is_linked()) { None } else { self.id(class).ok() }
    }

    /// The number of a class loader.
    pub fn loader_id(&self, jni: Jni, loader: jobject) -> Result<LoaderId, Error> {
        if loader.is_null() {
            return Ok(LoaderId::BOOT);
        }
        let choose = || {
            let class = jni.object_class(loader);
            let name = self.jvmti.class_signature(class).unwrap_or_default();
            jni.delete_local(class);
            if name == "Ljdk/internal/loader/ClassLoaders$PlatformClassLoader;" {
                LoaderId::PLATFORM.0
            } else {
                self.next_tag.fetch_add(1, Ordering::Relaxed)
            }
        };
        self.tag(loader, choose).map(LoaderId)
    }

    /// What the tool wants to know of a class; `None` for arrays, primitives and what is not linked yet.
    pub fn info(&self, jni: Jni, class: jclass) -> Result<Option<ClassInfo>, Error> {
        let status = self.jvmti.class_status(class)?;
        if status & (class_status::ARRAY | class_status::PRIMITIVE) != 0 || status & class_status::PREPARED == 0 {
            return Ok(None);
        }
        let signature = self.jvmti.class_signature(class)?;
        let Some(name) = class_name(&signature) else { return Ok(None) };
        let loader = self.jvmti.class_loader(class)?;
        let loader_id = self.loader_id(jni, loader)?;
        jni.delete_local(loader);
        let super_class = jni.superclass(class);
        let super_id = if super_class.is_null() { None } else { Some(self.id(super_class)?) };
        jni.delete_local(super_class);
        let mut interfaces = Vec::new();
        for interface in self.jvmti.interfaces(class)? {
            interfaces.push(self.id(interface)?);
            jni.delete_local(interface);
        }
        Ok(Some(ClassInfo {
            id: self.id(class)?,
            name: name.to_owned(),
            loader: loader_id,
            super_class: super_id,
            interfaces,
            access: self.jvmti.class_modifiers(class)? as u16,
            initialized: status & (class_status::INITIALIZED | class_status::ERROR) != 0,
            modifiable: self.jvmti.is_modifiable(class)?,
            probed: self.is_instrumented(loader_id, name),
        }))
    }

    /// All loaded classes: those that are linked, and those that are not.
    pub fn list(&self, jni: Jni, connection: &Connection) -> Result<(Vec<ClassInfo>, Vec<UnlinkedClass>), Error> {
        let (mut linked, mut unlinked) = (Vec::new(), Vec::new());
        for class in connection.attending(self.jvmti.loaded_classes()?) {
            // A class that fails here is being unloaded or initialised badly; it has nothing to instrument.
            match self.info(jni, class) {
                Ok(Some(info)) => linked.push(info),
                Ok(None) => unlinked.extend(self.unlinked(jni, class).ok().flatten()),
                Err(_) => {}
            }
            jni.delete_local(class);
        }
        Ok((linked, unlinked))
    }

    /// A class that is not linked; `None` if it cannot be.
    fn unlinked(&self, jni: Jni, class: jclass) -> Result<Option<UnlinkedClass>, Error> {
        const OTHERS: i32 =
            class_status::ARRAY | class_status::PRIMITIVE | class_status::PREPARED | class_status::ERROR;
        if self.jvmti.class_status(class)? & OTHERS != 0 {
            return Ok(None);
        }
        let signature = self.jvmti.class_signature(class)?;
        let Some(name) = class_name(&signature) else { return Ok(None) };
        let loader = self.jvmti.class_loader(class)?;
        let is_of_class_path = !loader.is_null() && {
            let kind = jni.object_class(loader);
            let signature = self.jvmti.class_signature(kind);
            jni.delete_local(kind);
            signature? == "Ljdk/internal/loader/ClassLoaders$AppClassLoader;"
        };
        jni.delete_local(loader);
        let super_class = jni.superclass(class);
        let super_id = if super_class.is_null() { None } else { Some(self.id(super_class)?) };
        jni.delete_local(super_class);
        Ok(Some(UnlinkedClass { id: self.id(class)?, name: name.to_owned(), super_class: super_id, is_of_class_path }))
    }

    /// The declared methods of classes that are still loaded.
    pub fn methods(
        &self,
        jni: Jni,
        ids: &[ClassId],
        invocations: Option<&Invocations>,
        stale: &Stale,
        connection: &Connection,
    ) -> Result<Vec<(ClassId, Vec<MethodInfo>)>, Error> {
        let mut all = Vec::new();
        for (class, id) in connection.attending(self.find(jni, ids)?) {
            if let Ok(methods) = self.methods_of(class, id, invocations, stale) {
                all.push((id, methods));
            }
            jni.delete_local(class);
        }
        Ok(all)
    }

    /// Names a method; `None` when its class is gone.
    pub fn reference(&self, jni: Jni, method: jmethodID) -> Option<MethodRef> {
        let class = self.jvmti.declaring_class(method).ok()?;
        let id = self.id(class);
        jni.delete_local(class);
        let (name, descriptor) = self.jvmti.method_name(method).ok()?;
        Some(MethodRef { class: id.ok()?, name, descriptor })
    }

    /// Names what a `Method` or a `Constructor` stands for. JNI's `FromReflectedMethod` would initialise its class, before anybody
    /// calls it.
    pub fn reflected(&self, jni: Jni, executable: jobject) -> Option<MethodRef> {
        const CLASS: &CStr = c"Ljava/lang/Class;";
        let kind = jni.object_class(executable);
        let is_constructor = self.jvmti.class_signature(kind).ok()? == "Ljava/lang/reflect/Constructor;";
        jni.delete_local(kind);
        let descriptor_of = |class: jclass| {
            let descriptor = self.jvmti.class_signature(class).ok();
            jni.delete_local(class);
            descriptor
        };
        let class = jni.object_field(executable, c"clazz", CLASS).ok()?;
        let id = self.id(class).ok();
        jni.delete_local(class);
        let types = jni.object_field(executable, c"parameterTypes", c"[Ljava/lang/Class;").ok()?;
        let parameters: Option<String> =
            (0..jni.length(types)).map(|at| descriptor_of(jni.element(types, at).ok()?)).collect();
        jni.delete_local(types);
        let (name, result) = if is_constructor {
            ("<init>".to_owned(), "V".to_owned())
        } else {
            let text = jni.object_field(executable, c"name", c"Ljava/lang/String;").ok()?;
            let name = jni.string(text);
            jni.delete_local(text);
            (name, descriptor_of(jni.object_field(executable, c"returnType", CLASS).ok()?)?)
        };
        Some(MethodRef { class: id?, name, descriptor: format!("({}){result}", parameters?) })
    }

    fn methods_of(
        &self,
        class: jclass,
        id: ClassId,
        invocations: Option<&Invocations>,
        stale: &Stale,
    ) -> Result<Vec<MethodInfo>, Error> {
        let methods = self.jvmti.methods(class)?;
        let counted = invocations.map(|invocations| invocations.look(&methods));
        if let Some(counted) = &counted {
            stale.look(id, &methods, counted);
        }
        let method = |(at, id): (usize, jmethodID)| {
            let (name, descriptor) = self.jvmti.method_name(id)?;
            let calls = counted.as_ref().and_then(|counted| Some(counted[at]?.calls));
            Ok(MethodInfo { name, descriptor, access: self.jvmti.method_modifiers(id)? as u16, calls })
        };
        methods.into_iter().enumerate().map(method).collect()
    }

    /// Compares each tag that there is with each of these.
    fn find_few(&self, ids: &[ClassId]) -> Result<Vec<(jclass, ClassId)>, Error> {
        let tags: Vec<i64> = ids.iter().map(|id| id.0 as i64).collect();
        let found = self.jvmti.objects_with_tags(&tags)?;
        Ok(found.into_iter().map(|(object, tag)| (object, ClassId(tag as u64))).collect())
    }

    /// Asks each class for its tag.
    fn find_many(&self, jni: Jni, ids: &[ClassId]) -> Result<Vec<(jclass, ClassId)>, Error> {
        let wanted: HashSet<ClassId> = ids.iter().copied().collect();
        let mut found = Vec::with_capacity(ids.len());
        for class in self.jvmti.loaded_classes()? {
            let id = ClassId(self.jvmti.tag(class).unwrap_or(0) as u64);
            if wanted.contains(&id) {
                found.push((class, id));
            } else {
                jni.delete_local(class);
            }
        }
        Ok(found)
    }

    /// The classes with these ids that are still loaded: local references, in the order of the ids.
    pub fn find(&self, jni: Jni, ids: &[ClassId]) -> Result<Vec<(jclass, ClassId)>, Error> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut found = if ids.len() > ASKED_BY_TAG { self.find_many(jni, ids)? } else { self.find_few(ids)? };
        found.sort_unstable_by_key(|(_, id)| id.0);
        Ok(found)
    }

    /// Remembers that a class is given other bytes than its own, while it is loaded or later; whether it had its own.
    pub fn mark_instrumented(&self, loader: LoaderId, name: &str, while_loading: bool) -> bool {
        let mut instrumented = self.lock_instrumented();
        if while_loading {
            instrumented.being_defined.insert((loader, name.to_owned()));
        }
        instrumented.changed.insert((loader, name.to_owned()));
        instrumented.all.insert((loader, name.to_owned()))
    }

    /// Forgets that a class was given other bytes, because it is being given its own back; whether it was.
    pub fn unmark_instrumented(&self, loader: LoaderId, name: &str) -> bool {
        self.lock_instrumented().all.remove(&(loader, name.to_owned()))
    }

    /// Whether a class has been given other bytes than its own.
    pub fn is_instrumented(&self, loader: LoaderId, name: &str) -> bool {
        self.lock_instrumented().all.contains(&(loader, name.to_owned()))
    }

    /// A class has been seen loaded.
    pub fn defined(&self, loader: LoaderId, name: &str) {
        let mut instrumented = self.lock_instrumented();
        if !instrumented.being_defined.is_empty() {
            instrumented.being_defined.remove(&(loader, name.to_owned()));
        }
    }

    fn lock_instrumented(&self) -> MutexGuard<'_, Instrumented> {
        self.instrumented.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the loaded classes that have been given other bytes than their own: local references. Those that are not loaded
    /// (yet) stay remembered.
    ///
    /// Left out are classes whose initialisation failed: their code can no longer be called, nor can they be retransformed.
    pub fn take_instrumented(&self, jni: Jni) -> Result<Vec<jclass>, Error> {
        if self.lock_instrumented().all.is_empty() {
            return Ok(Vec::new());
        }
        let loaded = self.jvmti.loaded_classes()?;
        let mut classes = Vec::new();
        for class in loaded {
            let key = self.key(jni, class).unwrap_or_default();
            let taken = key.is_some_and(|key| {
                let mut instrumented = self.lock_instrumented();
                instrumented.being_defined.remove(&key);
                instrumented.all.remove(&key)
            });
            let failed = || self.jvmti.class_status(class).is_ok_and(|status| status & class_status::ERROR != 0);
            if taken && !failed() {
                classes.push(class);
            } else {
                jni.delete_local(class);
            }
        }
        Ok(classes)
    }

    /// Whether classes that were given other bytes are still being loaded.
    pub fn is_defining(&self) -> bool {
        !self.lock_instrumented().being_defined.is_empty()
    }

    /// Whether a class has this internal name, as far as the JVM tells.
    pub fn is_named(&self, class: jclass, name: &str) -> bool {
        self.jvmti.class_signature(class).map_or(true, |signature| class_name(&signature) == Some(name))
    }

    /// The class in whose code a lambda is, whose own class this is, if it has been given other bytes than its own since lambdas were last forgotten.
    pub fn instrumented_with_lambda(&self, jni: Jni, class: jclass) -> Option<(LoaderId, String)> {
        // Few have lambdas, and the loader takes longer to be known.
        if !self.is_lambda(class) {
            return None;
        }
        let (loader, name) = self.key(jni, class).ok()??;
        let host = (loader, name.rsplit_once(LAMBDA)?.0.to_owned());
        self.lock_instrumented().changed.contains(&host).then_some(host)
    }

    /// Lambdas that were gone when lambdas were last forgotten, and are remembered nevertheless.
    pub fn spared_lambdas(&self) -> Spared {
        self.lock_instrumented().spared.clone()
    }

    /// Whether a class is a lambda's own.
    pub fn is_lambda(&self, class: jclass) -> bool {
        self.jvmti.class_signature(class).is_ok_and(|signature| signature.contains(LAMBDA))
    }

    /// A class's loader and name, if it has been given other bytes than its own.
    pub fn instrumented(&self, jni: Jni, class: jclass) -> Option<(LoaderId, String)> {
        let key = self.key(jni, class).ok()??;
        self.lock_instrumented().all.contains(&key).then_some(key)
    }

    /// Whether a class is one of these.
    pub fn is_among(&self, jni: Jni, class: jclass, these: &HashSet<(LoaderId, String)>) -> bool {
        self.key(jni, class).unwrap_or_default().is_some_and(|key| these.contains(&key))
    }

    /// Profiles remember no more lambdas of classes that were restored, but for what was spared: the lambdas that these have now stay.
    pub fn lambdas_forgotten(&self, still_remembered: Spared) {
        let mut instrumented = self.lock_instrumented();
        let Instrumented { all, changed, spared, .. } = &mut *instrumented;
        changed.retain(|class| all.contains(class));
        *spared = still_remembered;
    }

    /// A class's loader and name; an array has none.
    pub fn key(&self, jni: Jni, class: jclass) -> Result<Option<(LoaderId, String)>, Error> {
        let signature = self.jvmti.class_signature(class)?;
        let Some(name) = class_name(&signature) else { return Ok(None) };
        let loader = self.jvmti.class_loader(class)?;
        let loader_id = self.loader_id(jni, loader);
        jni.delete_local(loader);
        Ok(Some((loader_id?, name.to_owned())))
    }
}

/// The internal name in a class's signature; an array has none.
fn class_name(signature: &str) -> Option<&str> {
    signature.strip_prefix('L')?.strip_suffix(';')
}
