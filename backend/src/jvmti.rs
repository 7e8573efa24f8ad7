//! The part of JVMTI that the agent uses: our own view of the function table ([`abi`]), over `jni::sys` types.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use headwater_modified_utf8 as modified_utf8;
use jni::sys::{JavaVM, jclass, jint, jlong, jmethodID, jobject};

use crate::jni_env::Jni;

mod abi;

pub use abi::{
    Callbacks, Capabilities, CompileRecord, Env, Error, EventKind, InlinePlace, InlineRecord, StartFunction,
    capability, class_status, jthread,
};
use abi::{LineNumber, MonitorUsage, ThreadInfo, slot};

/// A JVMTI environment. Copies name the same one.
#[derive(Clone, Copy, Debug)]
pub struct Jvmti(*mut Env);

/// A method's name and descriptor, in modified UTF-8.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MethodName {
    /// Its name.
    pub name: Vec<u8>,
    /// Its descriptor.
    pub descriptor: Vec<u8>,
}

// SAFETY: JVMTI environments may be used from any attached thread (JVMTI specification, "Function Calls").
unsafe impl Send for Jvmti {}
// SAFETY: as above.
unsafe impl Sync for Jvmti {}

/// Calls a slot with the given argument types; evaluates to `Result<(), Error>`.
macro_rules! call {
    ($env:expr, $slot:expr, ($($type:ty),*), $($argument:expr),*) => {{
        // SAFETY: the environment is the JVM's own (see `Jvmti::from_raw`), the slot holds the function of that name
        // (the test against jvmti.h), whose argument types are these; pointers are to live locals or come from the JVM.
        let error = unsafe {
            let function = (**$env.0).slots[$slot - 1];
            let function: unsafe extern "system" fn(*mut Env, $($type),*) -> Error = std::mem::transmute(function);
            function($env.0, $($argument),*)
        };
        if error == Error::NONE { Ok(()) } else { Err(error) }
    }};
}

mod extensions;
mod stacks;

pub use extensions::{Extension, ExtensionCallback};
pub use stacks::{Call, ThreadState};

/// A method's number in the JVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MethodNumber(pub jmethodID);

// SAFETY: method ids may be used in every thread.
unsafe impl Send for MethodNumber {}

impl Jvmti {
    /// A new environment of this VM.
    ///
    /// # Safety
    /// `vm` is the JVM's own invocation interface.
    pub unsafe fn create(vm: *mut JavaVM) -> Result<Jvmti, Error> {
        const JVMTI_VERSION_11: jint = 0x300b_0000;
        let mut env: *mut c_void = ptr::null_mut();
        // SAFETY: `vm` is valid (the caller's promise); GetEnv writes a pointer.
        let result = unsafe { ((**vm).v1_2.GetEnv)(vm, &mut env, JVMTI_VERSION_11) };
        if result == 0 && !env.is_null() { Ok(Jvmti(env.cast())) } else { Err(Error(111)) }
    }

    /// Makes sure that this VM has an environment that is never disposed: one without capabilities, callbacks or events.
    ///
    /// What HotSpot notes of a thread for JVMTI it takes back when the thread ends, but not while there is no environment. The next
    /// one that is made, by whatever tool, is then entered in the notes on threads that have ended, and in their memory, which is
    /// somebody else's by then. With one that stays, nothing is left behind.
    ///
    /// # Safety
    /// `vm` is the JVM's own invocation interface.
    pub unsafe fn keep_one(vm: *mut JavaVM) -> Result<(), Error> {
        static IS_KEPT: Mutex<bool> = Mutex::new(false);
        let mut is_kept = IS_KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_kept {
            // SAFETY: the caller's promise.
            unsafe { Jvmti::create(vm)? };
            *is_kept = true;
        }
        Ok(())
    }

    /// The environment that a callback was given.
    ///
    /// # Safety
    /// `env` comes from the JVM.
    pub unsafe fn from_raw(env: *mut Env) -> Jvmti {
        Jvmti(env)
    }

    /// Gives the environment up: its events end, its tags are forgotten.
    pub fn dispose(self) -> Result<(), Error> {
        call!(self, slot::DISPOSE_ENVIRONMENT, (),)
    }

    /// Asks for capabilities; all or none.
    pub fn add_capabilities(self, capabilities: &Capabilities) -> Result<(), Error> {
        call!(self, slot::ADD_CAPABILITIES, (*const Capabilities), capabilities)
    }

    /// Gives capabilities up.
    pub fn relinquish_capabilities(self, capabilities: &Capabilities) -> Result<(), Error> {
        call!(self, slot::RELINQUISH_CAPABILITIES, (*const Capabilities), capabilities)
    }

    /// Sets the functions that events call.
    pub fn set_callbacks(self, callbacks: &Callbacks) -> Result<(), Error> {
        let size = size_of::<Callbacks>() as jint;
        call!(self, slot::SET_EVENT_CALLBACKS, (*const Callbacks, jint), callbacks, size)
    }

    /// Turns an event on for all threads.
    pub fn enable(self, event: EventKind) -> Result<(), Error> {
        self.set_mode(1, event as jint)
    }

    /// Turns an event off for all threads.
    pub fn disable(self, event: EventKind) -> Result<(), Error> {
        self.set_mode(0, event as jint)
    }

    fn set_mode(self, mode: jint, event: jint) -> Result<(), Error> {
        let slot = slot::SET_EVENT_NOTIFICATION_MODE;
        call!(self, slot, (jint, jint, jthread), mode, event, ptr::null_mut())
    }

    /// Starts the agent's own daemon thread on a fresh `java.lang.Thread`.
    pub fn run_agent_thread(self, thread: jthread, start: StartFunction) -> Result<(), Error> {
        const NORMAL_PRIORITY: jint = 5;
        let types_slot = slot::RUN_AGENT_THREAD;
        call!(
            self,
            types_slot,
            (jthread, StartFunction, *const c_void, jint),
            thread,
            start,
            ptr::null(),
            NORMAL_PRIORITY
        )
    }

    /// The current thread: a local reference.
    pub fn current_thread(self) -> Result<jthread, Error> {
        let mut thread = ptr::null_mut();
        call!(self, slot::GET_CURRENT_THREAD, (*mut jthread), &mut thread)?;
        Ok(thread)
    }

    /// A thread's name.
    pub fn thread_name(self, jni: Jni, thread: jthread) -> Result<String, Error> {
        self.name_and_kind(jni, thread).map(|(name, _)| name)
    }

    /// A thread's name, and whether it is a daemon.
    pub fn name_and_kind(self, jni: Jni, thread: jthread) -> Result<(String, bool), Error> {
        let mut info = ThreadInfo {
            name: ptr::null_mut(),
            priority: 0,
            is_daemon: 0,
            thread_group: ptr::null_mut(),
            context_class_loader: ptr::null_mut(),
        };
        call!(self, slot::GET_THREAD_INFO, (jthread, *mut ThreadInfo), thread, &mut info)?;
        jni.delete_local(info.thread_group);
        jni.delete_local(info.context_class_loader);
        Ok((self.take_string(info.name), info.is_daemon != 0))
    }

    /// Memory that the JVM will free, filled with `bytes`.
    pub fn allocate(self, bytes: &[u8]) -> Result<*mut u8, Error> {
        let mut memory: *mut u8 = ptr::null_mut();
        call!(self, slot::ALLOCATE, (jlong, *mut *mut u8), bytes.len() as jlong, &mut memory)?;
        // SAFETY: the JVM allocated this many bytes, nobody else knows them.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
        Ok(memory)
    }

    fn deallocate<T>(self, memory: *mut T) {
        let result = call!(self, slot::DEALLOCATE, (*mut u8), memory.cast());
        debug_assert!(result.is_ok(), "Deallocate fails only for foreign pointers");
    }

    /// Copies and frees a string of the JVM's.
    fn take_string(self, string: *mut c_char) -> String {
        modified_utf8::decode(&self.take_text(string)).into_owned()
    }

    /// The same, letter for letter.
    fn take_text(self, string: *mut c_char) -> Vec<u8> {
        if string.is_null() {
            return Vec::new();
        }
        // SAFETY: JVMTI's strings end in a zero byte; this one is ours until it is deallocated.
        let text = unsafe { CStr::from_ptr(string) }.to_bytes().to_vec();
        self.deallocate(string);
        text
    }

    /// Copies and frees an array of the JVM's.
    fn take_array<T: Copy>(self, array: *mut T, count: jint) -> Vec<T> {
        if array.is_null() {
            return Vec::new();
        }
        // SAFETY: the JVM says that there are `count` elements; they are ours until deallocated.
        let items = unsafe { std::slice::from_raw_parts(array, count as usize) }.to_vec();
        self.deallocate(array);
        items
    }

    /// Whether any thread has an object's monitor at this moment, which is a safepoint.
    pub fn is_locked(self, jni: Jni, object: jobject) -> Result<bool, Error> {
        let owner = self.monitor_owner(jni, object)?;
        jni.delete_local(owner);
        Ok(!owner.is_null())
    }

    /// Who has an object's monitor at this moment, which is a safepoint: a local reference, null if nobody has.
    pub fn monitor_owner(self, jni: Jni, object: jobject) -> Result<jthread, Error> {
        // A second time it changes nothing.
        self.add_capabilities(&Capabilities::of(&[capability::MONITOR_INFO]))?;
        let mut usage = MonitorUsage {
            owner: ptr::null_mut(),
            entry_count: 0,
            waiter_count: 0,
            waiters: ptr::null_mut(),
            notify_waiter_count: 0,
            notify_waiters: ptr::null_mut(),
        };
        let slot = slot::GET_OBJECT_MONITOR_USAGE;
        call!(self, slot, (jobject, *mut MonitorUsage), object, &mut usage)?;
        let waiting = self.take_array(usage.waiters, usage.waiter_count);
        let notified = self.take_array(usage.notify_waiters, usage.notify_waiter_count);
        waiting.into_iter().chain(notified).for_each(|thread| jni.delete_local(thread));
        Ok(usage.owner)
    }

    /// A system property of the VM.
    pub fn system_property(self, name: &str) -> Option<String> {
        let name = CString::new(name).ok()?;
        let mut value: *mut c_char = ptr::null_mut();
        let slot = slot::GET_SYSTEM_PROPERTY;
        call!(self, slot, (*const c_char, *mut *mut c_char), name.as_ptr(), &mut value).ok()?;
        Some(self.take_string(value))
    }

    /// All classes that are loaded, arrays included: local references.
    pub fn loaded_classes(self) -> Result<Vec<jclass>, Error> {
        let (mut count, mut classes) = (0, ptr::null_mut());
        let slot = slot::GET_LOADED_CLASSES;
        call!(self, slot, (*mut jint, *mut *mut jclass), &mut count, &mut classes)?;
        Ok(self.take_array(classes, count))
    }

    /// Bits of [`class_status`].
    pub fn class_status(self, class: jclass) -> Result<jint, Error> {
        let mut status = 0;
        call!(self, slot::GET_CLASS_STATUS, (jclass, *mut jint), class, &mut status)?;
        Ok(status)
    }

    /// The type's descriptor (`La/b/C;`).
    pub fn class_signature(self, class: jclass) -> Result<String, Error> {
        let mut signature: *mut c_char = ptr::null_mut();
        let slot = slot::GET_CLASS_SIGNATURE;
        call!(
            self,
            slot,
            (jclass, *mut *mut c_char, *mut *mut c_char),
            class,
            &mut signature,
            ptr::null_mut::<*mut c_char>()
        )?;
        Ok(self.take_string(signature))
    }

    /// Access flags.
    pub fn class_modifiers(self, class: jclass) -> Result<jint, Error> {
        let mut modifiers = 0;
        call!(self, slot::GET_CLASS_MODIFIERS, (jclass, *mut jint), class, &mut modifiers)?;
        Ok(modifiers)
    }

    /// Whether it may be retransformed.
    pub fn is_modifiable(self, class: jclass) -> Result<bool, Error> {
        let mut modifiable = 0u8;
        call!(self, slot::IS_MODIFIABLE_CLASS, (jclass, *mut u8), class, &mut modifiable)?;
        Ok(modifiable != 0)
    }

    /// The defining loader: a local reference, or null.
    pub fn class_loader(self, class: jclass) -> Result<jobject, Error> {
        let mut loader = ptr::null_mut();
        call!(self, slot::GET_CLASS_LOADER, (jclass, *mut jobject), class, &mut loader)?;
        Ok(loader)
    }

    /// Direct superinterfaces: local references.
    pub fn interfaces(self, class: jclass) -> Result<Vec<jclass>, Error> {
        let (mut count, mut classes) = (0, ptr::null_mut());
        let slot = slot::GET_IMPLEMENTED_INTERFACES;
        call!(self, slot, (jclass, *mut jint, *mut *mut jclass), class, &mut count, &mut classes)?;
        Ok(self.take_array(classes, count))
    }

    /// The constant pool as in a class file: what stands in front of the entries (how many they are, and one more), and these.
    pub fn constant_pool(self, class: jclass) -> Result<(u16, Vec<u8>), Error> {
        let (mut count, mut length, mut bytes) = (0, 0, ptr::null_mut());
        let slot = slot::GET_CONSTANT_POOL;
        call!(self, slot, (jclass, *mut jint, *mut jint, *mut *mut u8), class, &mut count, &mut length, &mut bytes)?;
        Ok((count as u16, self.take_array(bytes, length)))
    }

    /// Declared methods.
    pub fn methods(self, class: jclass) -> Result<Vec<jmethodID>, Error> {
        let (mut count, mut methods) = (0, ptr::null_mut());
        let slot = slot::GET_CLASS_METHODS;
        call!(self, slot, (jclass, *mut jint, *mut *mut jmethodID), class, &mut count, &mut methods)?;
        Ok(self.take_array(methods, count))
    }

    /// Name and descriptor.
    pub fn method_name(self, method: jmethodID) -> Result<(String, String), Error> {
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        call!(
            self,
            slot::GET_METHOD_NAME,
            (jmethodID, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char),
            method,
            &mut name,
            &mut descriptor,
            ptr::null_mut::<*mut c_char>()
        )?;
        Ok((self.take_string(name), self.take_string(descriptor)))
    }

    /// Name and descriptor, letter for letter.
    pub fn method_key(self, method: jmethodID) -> Result<MethodName, Error> {
        let (mut name, mut descriptor) = (ptr::null_mut(), ptr::null_mut());
        call!(
            self,
            slot::GET_METHOD_NAME,
            (jmethodID, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char),
            method,
            &mut name,
            &mut descriptor,
            ptr::null_mut::<*mut c_char>()
        )?;
        Ok(MethodName { name: self.take_text(name), descriptor: self.take_text(descriptor) })
    }

    /// Its generic signature, letter for letter, if it has one.
    pub fn generic_signature(self, method: jmethodID) -> Result<Option<Vec<u8>>, Error> {
        let mut generic = ptr::null_mut();
        call!(
            self,
            slot::GET_METHOD_NAME,
            (jmethodID, *mut *mut c_char, *mut *mut c_char, *mut *mut c_char),
            method,
            ptr::null_mut::<*mut c_char>(),
            ptr::null_mut::<*mut c_char>(),
            &mut generic
        )?;
        Ok((!generic.is_null()).then(|| self.take_text(generic)))
    }

    /// Access flags.
    pub fn method_modifiers(self, method: jmethodID) -> Result<jint, Error> {
        let mut modifiers = 0;
        call!(self, slot::GET_METHOD_MODIFIERS, (jmethodID, *mut jint), method, &mut modifiers)?;
        Ok(modifiers)
    }

    /// Its instructions, as they are in a class file, with indexes of the class's [constants](Jvmti::constant_pool).
    pub fn bytecodes(self, method: jmethodID) -> Result<Vec<u8>, Error> {
        let (mut count, mut bytes) = (0, ptr::null_mut());
        call!(self, slot::GET_BYTECODES, (jmethodID, *mut jint, *mut *mut u8), method, &mut count, &mut bytes)?;
        Ok(self.take_array(bytes, count))
    }

    /// Where its lines begin, in the table's order: the index of an instruction, and the line.
    pub fn line_numbers(self, method: jmethodID) -> Result<Vec<(u16, u16)>, Error> {
        let (mut count, mut rows): (jint, *mut LineNumber) = (0, ptr::null_mut());
        let slot = slot::GET_LINE_NUMBER_TABLE;
        match call!(self, slot, (jmethodID, *mut jint, *mut *mut LineNumber), method, &mut count, &mut rows) {
            Ok(()) => Ok(self.take_array(rows, count).iter().map(|row| (row.start as u16, row.line as u16)).collect()),
            Err(Error::ABSENT_INFORMATION) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Whether this is a version of a method that has been replaced by another.
    pub fn is_obsolete(self, method: jmethodID) -> Result<bool, Error> {
        let mut obsolete = 0u8;
        call!(self, slot::IS_METHOD_OBSOLETE, (jmethodID, *mut u8), method, &mut obsolete)?;
        Ok(obsolete != 0)
    }

    /// An object's tag; 0 when it has none.
    pub fn tag(self, object: jobject) -> Result<jlong, Error> {
        let mut tag = 0;
        call!(self, slot::GET_TAG, (jobject, *mut jlong), object, &mut tag)?;
        Ok(tag)
    }

    /// How large an object is, in bytes.
    pub fn object_size(self, object: jobject) -> Result<jlong, Error> {
        let mut size = 0;
        call!(self, slot::GET_OBJECT_SIZE, (jobject, *mut jlong), object, &mut size)?;
        Ok(size)
    }

    /// Tags an object.
    pub fn set_tag(self, object: jobject, tag: jlong) -> Result<(), Error> {
        call!(self, slot::SET_TAG, (jobject, jlong), object, tag)
    }

    /// The live objects with these tags, with their tags: local references, in no order.
    pub fn objects_with_tags(self, tags: &[jlong]) -> Result<Vec<(jobject, jlong)>, Error> {
        let (mut count, mut objects, mut found) = (0, ptr::null_mut(), ptr::null_mut());
        call!(
            self,
            slot::GET_OBJECTS_WITH_TAGS,
            (jint, *const jlong, *mut jint, *mut *mut jobject, *mut *mut jlong),
            tags.len() as jint,
            tags.as_ptr(),
            &mut count,
            &mut objects,
            &mut found
        )?;
        let objects = self.take_array::<jobject>(objects, count);
        Ok(objects.into_iter().zip(self.take_array(found, count)).collect())
    }

    /// The class that declares a method: a local reference.
    pub fn declaring_class(self, method: jmethodID) -> Result<jclass, Error> {
        let mut class: jclass = ptr::null_mut();
        call!(self, slot::GET_METHOD_DECLARING_CLASS, (jmethodID, *mut jclass), method, &mut class)?;
        Ok(class)
    }

    /// Sends an event for what happened before it was enabled, on the current thread.
    pub fn generate(self, event: EventKind) -> Result<(), Error> {
        call!(self, slot::GENERATE_EVENTS, (jint), event as jint)
    }

    /// Has the class file hooks run over these classes' original bytes and installs the outcome, in one safepoint.
    pub fn retransform(self, classes: &[jclass]) -> Result<(), Error> {
        call!(self, slot::RETRANSFORM_CLASSES, (jint, *const jclass), classes.len() as jint, classes.as_ptr())
    }
}
