//! The part of JVMTI that the agent uses: our own view of the function table, over `jni::sys` types.
//!
//! The table is an array of 156 slots, numbered from 1 as in the JVMTI specification and in `jvmti.h`; a test compares the
//! numbers used here with the header of every installed JDK.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use jni::sys::{JavaVM, jclass, jint, jlong, jmethodID, jobject};

use crate::jni_env::Jni;

/// A `java.lang.Thread`.
#[allow(non_camel_case_types, reason = "JVMTI's name")]
pub type jthread = jobject;

/// Slots of the function table (JVMTI 1.1 to 25 have the same length).
pub const SLOTS: usize = 156;

/// A JVMTI environment's function table.
#[repr(C)]
pub struct Interface {
    slots: [*const c_void; SLOTS],
}

/// A JVMTI error code, as the JVM gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Error(pub jint);

impl Error {
    const NONE: Error = Error(0);

    /// The error's name in the specification, without its prefix.
    pub fn name(self) -> &'static str {
        ERRORS.iter().find(|(code, _)| *code == self.0).map_or("unknown JVMTI error", |(_, name)| name)
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.name(), self.0)
    }
}

impl std::error::Error for Error {}

macro_rules! errors {
    ($($name:ident = $code:literal,)*) => {
        /// The error codes that can reach a user.
        const ERRORS: &[(jint, &str)] = &[$(($code, stringify!($name)),)*];
    };
}

errors! {
    INVALID_THREAD = 10, THREAD_NOT_ALIVE = 15, INVALID_OBJECT = 20, INVALID_CLASS = 21, CLASS_NOT_PREPARED = 22,
    INVALID_METHODID = 23, INVALID_CLASS_FORMAT = 60, CIRCULAR_CLASS_DEFINITION = 61, FAILS_VERIFICATION = 62,
    UNSUPPORTED_REDEFINITION_METHOD_ADDED = 63, UNSUPPORTED_REDEFINITION_SCHEMA_CHANGED = 64, INVALID_TYPESTATE = 65,
    UNSUPPORTED_REDEFINITION_HIERARCHY_CHANGED = 66, UNSUPPORTED_REDEFINITION_METHOD_DELETED = 67,
    UNSUPPORTED_VERSION = 68, NAMES_DONT_MATCH = 69, UNSUPPORTED_REDEFINITION_CLASS_MODIFIERS_CHANGED = 70,
    UNSUPPORTED_REDEFINITION_METHOD_MODIFIERS_CHANGED = 71, UNSUPPORTED_REDEFINITION_CLASS_ATTRIBUTE_CHANGED = 72,
    UNSUPPORTED_OPERATION = 73, UNMODIFIABLE_CLASS = 79, UNMODIFIABLE_MODULE = 80, NOT_AVAILABLE = 98,
    MUST_POSSESS_CAPABILITY = 99, NULL_POINTER = 100, ILLEGAL_ARGUMENT = 103, OUT_OF_MEMORY = 110, ACCESS_DENIED = 111,
    WRONG_PHASE = 112, INTERNAL = 113, UNATTACHED_THREAD = 115, INVALID_ENVIRONMENT = 116,
}

/// Bits of `jvmtiCapabilities`.
pub mod capability {
    /// Tag objects.
    pub const TAG_OBJECTS: u32 = 0;
    /// Class hooks for every class, the JDK's included.
    pub const ALL_CLASS_HOOKS: u32 = 26;
    /// `CompiledMethodLoad`.
    pub const COMPILED_METHOD_LOAD: u32 = 27;
    /// `GetConstantPool`.
    pub const CONSTANT_POOL: u32 = 35;
    /// `RetransformClasses`.
    pub const RETRANSFORM_CLASSES: u32 = 37;
    /// ... of classes of the JDK, too.
    pub const RETRANSFORM_ANY_CLASS: u32 = 38;
}

/// `jvmtiCapabilities`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Capabilities([u32; 4]);

impl Capabilities {
    /// The set of these bits.
    pub fn of(bits: &[u32]) -> Self {
        let mut words = [0; 4];
        for bit in bits {
            words[(bit / 32) as usize] |= 1 << (bit % 32);
        }
        Capabilities(words)
    }
}

/// `jvmtiEvent`: the events in use.
#[derive(Clone, Copy, Debug)]
#[repr(i32)]
pub enum EventKind {
    /// The VM is up, `main` not yet begun.
    VmInit = 50,
    /// The VM goes down.
    VmDeath = 51,
    /// A platform thread ends.
    ThreadEnd = 53,
    /// A class file is about to be parsed.
    ClassFileLoadHook = 54,
    /// A class has been linked.
    ClassPrepare = 56,
    /// A method has been compiled, or, by `GenerateEvents`, is there compiled.
    CompiledMethodLoad = 68,
}

/// Type of `VMInit`.
pub type VmInit = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, jthread);
/// Type of `VMDeath`.
pub type VmDeath = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv);
/// Type of `ThreadEnd`.
pub type ThreadEnd = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, jthread);
/// Type of `ClassFileLoadHook`.
pub type ClassFileLoadHook = unsafe extern "system" fn(
    *mut Env,
    *mut jni::sys::JNIEnv,
    jclass,
    jobject,
    *const c_char,
    jobject,
    jint,
    *const u8,
    *mut jint,
    *mut *mut u8,
);
/// Type of `ClassPrepare`.
pub type ClassPrepare = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, jthread, jclass);

/// Type of `CompiledMethodLoad`.
pub type CompiledMethodLoad =
    unsafe extern "system" fn(*mut Env, jmethodID, jint, *const c_void, jint, *const c_void, *const CompileRecord);

/// `jvmtiCompiledMethodLoadRecordHeader` (jvmticmlr.h).
#[repr(C)]
pub struct CompileRecord {
    /// [`CompileRecord::INLINE_INFO`], or another kind.
    pub kind: jint,
    /// Of the record's format.
    pub version: [jint; 2],
    /// More about the same method.
    pub next: *const CompileRecord,
}

impl CompileRecord {
    /// The record is an [`InlineRecord`].
    pub const INLINE_INFO: jint = 2;
}

/// `jvmtiCompiledMethodLoadInlineRecord`: the methods at each place of the compiled code.
#[repr(C)]
pub struct InlineRecord {
    /// What all records begin with.
    pub header: CompileRecord,
    /// How many places.
    pub count: jint,
    /// The places.
    pub places: *const InlinePlace,
}

/// `PCStackInfo`.
#[repr(C)]
pub struct InlinePlace {
    /// In the compiled code.
    pub address: *const c_void,
    /// How many methods are inlined in one another here, the compiled method itself included.
    pub depth: jint,
    /// The methods.
    pub methods: *const jmethodID,
    /// Where in them.
    pub bytecode_indices: *const jint,
}

/// `jvmtiEventCallbacks`, as far as it is used; the JVM takes the size it is given.
#[repr(C)]
#[derive(Default)]
pub struct Callbacks {
    /// Event 50.
    pub vm_init: Option<VmInit>,
    /// Event 51.
    pub vm_death: Option<VmDeath>,
    /// Event 52.
    pub thread_start: Option<unsafe extern "system" fn()>,
    /// Event 53.
    pub thread_end: Option<ThreadEnd>,
    /// Event 54.
    pub class_file_load_hook: Option<ClassFileLoadHook>,
    /// Event 55.
    pub class_load: Option<unsafe extern "system" fn()>,
    /// Event 56.
    pub class_prepare: Option<ClassPrepare>,
    /// Events 57 to 67.
    pub unused: [Option<unsafe extern "system" fn()>; 11],
    /// Event 68.
    pub compiled_method_load: Option<CompiledMethodLoad>,
}

#[repr(C)]
struct ThreadInfo {
    name: *mut c_char,
    priority: jint,
    is_daemon: u8,
    thread_group: jobject,
    context_class_loader: jobject,
}

/// `jvmtiFrameInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
struct FrameInfo {
    method: jmethodID,
    location: jlong,
}

/// `jvmtiStackInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
struct StackInfo {
    thread: jthread,
    state: jint,
    frames: *const FrameInfo,
    frame_count: jint,
}

/// The environment's struct: a pointer to its function table comes first.
pub type Env = *const Interface;

/// Function of a thread that `RunAgentThread` starts.
pub type StartFunction = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, *mut c_void);

/// A JVMTI environment. Copies name the same one.
#[derive(Clone, Copy, Debug)]
pub struct Jvmti(*mut Env);

// SAFETY: JVMTI environments may be used from any attached thread (JVMTI specification, "Function Calls").
unsafe impl Send for Jvmti {}
// SAFETY: as above.
unsafe impl Sync for Jvmti {}

/// Slot numbers, from 1.
pub mod slot {
    #![allow(missing_docs, reason = "they are named as the specification's functions are")]
    pub const SET_EVENT_NOTIFICATION_MODE: usize = 2;
    pub const GET_THREAD_INFO: usize = 9;
    pub const RUN_AGENT_THREAD: usize = 12;
    pub const IS_MODIFIABLE_CLASS: usize = 45;
    pub const ALLOCATE: usize = 46;
    pub const DEALLOCATE: usize = 47;
    pub const GET_CLASS_SIGNATURE: usize = 48;
    pub const GET_CLASS_STATUS: usize = 49;
    pub const GET_CLASS_MODIFIERS: usize = 51;
    pub const GET_CLASS_METHODS: usize = 52;
    pub const GET_IMPLEMENTED_INTERFACES: usize = 54;
    pub const GET_CLASS_LOADER: usize = 57;
    pub const GET_METHOD_NAME: usize = 64;
    pub const GET_METHOD_DECLARING_CLASS: usize = 65;
    pub const GET_METHOD_MODIFIERS: usize = 66;
    pub const GET_LOADED_CLASSES: usize = 78;
    pub const IS_METHOD_OBSOLETE: usize = 91;
    pub const GET_ALL_STACK_TRACES: usize = 100;
    pub const GET_STACK_TRACE: usize = 104;
    pub const GET_TAG: usize = 106;
    pub const SET_TAG: usize = 107;
    pub const GET_OBJECTS_WITH_TAGS: usize = 114;
    pub const SET_EVENT_CALLBACKS: usize = 122;
    pub const GENERATE_EVENTS: usize = 123;
    pub const DISPOSE_ENVIRONMENT: usize = 127;
    pub const GET_SYSTEM_PROPERTY: usize = 131;
    pub const ADD_CAPABILITIES: usize = 142;
    pub const GET_CONSTANT_POOL: usize = 146;
    pub const RETRANSFORM_CLASSES: usize = 152;

    /// For the test against `jvmti.h`.
    #[cfg(test)]
    pub const ALL: &[(usize, &str)] = &[
        (SET_EVENT_NOTIFICATION_MODE, "SetEventNotificationMode"),
        (GET_THREAD_INFO, "GetThreadInfo"),
        (RUN_AGENT_THREAD, "RunAgentThread"),
        (IS_MODIFIABLE_CLASS, "IsModifiableClass"),
        (ALLOCATE, "Allocate"),
        (DEALLOCATE, "Deallocate"),
        (GET_CLASS_SIGNATURE, "GetClassSignature"),
        (GET_CLASS_STATUS, "GetClassStatus"),
        (GET_CLASS_MODIFIERS, "GetClassModifiers"),
        (GET_CLASS_METHODS, "GetClassMethods"),
        (GET_IMPLEMENTED_INTERFACES, "GetImplementedInterfaces"),
        (GET_CLASS_LOADER, "GetClassLoader"),
        (GET_METHOD_NAME, "GetMethodName"),
        (GET_METHOD_DECLARING_CLASS, "GetMethodDeclaringClass"),
        (GET_METHOD_MODIFIERS, "GetMethodModifiers"),
        (GET_LOADED_CLASSES, "GetLoadedClasses"),
        (IS_METHOD_OBSOLETE, "IsMethodObsolete"),
        (GET_ALL_STACK_TRACES, "GetAllStackTraces"),
        (GET_STACK_TRACE, "GetStackTrace"),
        (GET_TAG, "GetTag"),
        (SET_TAG, "SetTag"),
        (GET_OBJECTS_WITH_TAGS, "GetObjectsWithTags"),
        (SET_EVENT_CALLBACKS, "SetEventCallbacks"),
        (GENERATE_EVENTS, "GenerateEvents"),
        (DISPOSE_ENVIRONMENT, "DisposeEnvironment"),
        (GET_SYSTEM_PROPERTY, "GetSystemProperty"),
        (ADD_CAPABILITIES, "AddCapabilities"),
        (GET_CONSTANT_POOL, "GetConstantPool"),
        (RETRANSFORM_CLASSES, "RetransformClasses"),
    ];
}

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

/// What of a class is wanted as `initialized` or prepared.
pub mod class_status {
    /// `JVMTI_CLASS_STATUS_PREPARED`.
    pub const PREPARED: i32 = 2;
    /// `JVMTI_CLASS_STATUS_INITIALIZED`.
    pub const INITIALIZED: i32 = 4;
    /// `JVMTI_CLASS_STATUS_ERROR`.
    pub const ERROR: i32 = 8;
    /// `JVMTI_CLASS_STATUS_ARRAY`.
    pub const ARRAY: i32 = 16;
    /// `JVMTI_CLASS_STATUS_PRIMITIVE`.
    pub const PRIMITIVE: i32 = 32;
}

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

    /// Sets the functions that events call.
    pub fn set_callbacks(self, callbacks: &Callbacks) -> Result<(), Error> {
        let size = size_of::<Callbacks>() as jint;
        call!(self, slot::SET_EVENT_CALLBACKS, (*const Callbacks, jint), callbacks, size)
    }

    /// Turns an event on for all threads.
    pub fn enable(self, event: EventKind) -> Result<(), Error> {
        self.set_mode(1, event)
    }

    /// Turns an event off for all threads.
    pub fn disable(self, event: EventKind) -> Result<(), Error> {
        self.set_mode(0, event)
    }

    fn set_mode(self, mode: jint, event: EventKind) -> Result<(), Error> {
        let slot = slot::SET_EVENT_NOTIFICATION_MODE;
        call!(self, slot, (jint, jint, jthread), mode, event as jint, ptr::null_mut())
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

    /// A thread's name.
    pub fn thread_name(self, jni: Jni, thread: jthread) -> Result<String, Error> {
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
        Ok(self.take_string(info.name))
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

    /// Copies and frees a modified-UTF-8 string of the JVM's; lone surrogates and the like are replaced.
    fn take_string(self, string: *mut c_char) -> String {
        if string.is_null() {
            return String::new();
        }
        // SAFETY: JVMTI's strings end in a zero byte; this one is ours until it is deallocated.
        let text = unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned();
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

    /// Access flags.
    pub fn method_modifiers(self, method: jmethodID) -> Result<jint, Error> {
        let mut modifiers = 0;
        call!(self, slot::GET_METHOD_MODIFIERS, (jmethodID, *mut jint), method, &mut modifiers)?;
        Ok(modifiers)
    }

    /// Whether this is a version of a method that has been replaced by another.
    pub fn is_obsolete(self, method: jmethodID) -> Result<bool, Error> {
        let mut obsolete = 0u8;
        call!(self, slot::IS_METHOD_OBSOLETE, (jmethodID, *mut u8), method, &mut obsolete)?;
        Ok(obsolete != 0)
    }

    /// A thread's stack (the current one's, if it is null), the outermost call first; at most so many of the inner calls.
    pub fn stack(self, thread: jthread, most: usize) -> Result<Vec<jmethodID>, Error> {
        let mut frames = vec![FrameInfo { method: ptr::null_mut(), location: 0 }; most];
        let mut count = 0;
        call!(
            self,
            slot::GET_STACK_TRACE,
            (jthread, jint, jint, *mut FrameInfo, *mut jint),
            thread,
            0,
            most as jint,
            frames.as_mut_ptr(),
            &mut count
        )?;
        frames.truncate(count.max(0) as usize);
        Ok(frames.iter().rev().map(|frame| frame.method).collect())
    }

    /// All platform threads, as local references, with their stacks as [`stack`](Jvmti::stack) has them.
    pub fn all_stacks(self, most: usize) -> Result<Vec<(jthread, Vec<jmethodID>)>, Error> {
        let (mut count, mut stacks): (jint, *mut StackInfo) = (0, ptr::null_mut());
        let slot = slot::GET_ALL_STACK_TRACES;
        call!(self, slot, (jint, *mut *mut StackInfo, *mut jint), most as jint, &mut stacks, &mut count)?;
        let mut all = Vec::new();
        for index in 0..count.max(0) as usize {
            // SAFETY: the JVM says that there are `count` stacks; they and their frames are ours until deallocated.
            let frames = unsafe {
                let stack = *stacks.add(index);
                let frames = match stack.frames.is_null() {
                    true => &[],
                    false => std::slice::from_raw_parts(stack.frames, stack.frame_count.max(0) as usize),
                };
                (stack.thread, frames.iter().rev().map(|frame| frame.method).collect())
            };
            all.push(frames);
        }
        self.deallocate(stacks);
        Ok(all)
    }

    /// An object's tag; 0 when it has none.
    pub fn tag(self, object: jobject) -> Result<jlong, Error> {
        let mut tag = 0;
        call!(self, slot::GET_TAG, (jobject, *mut jlong), object, &mut tag)?;
        Ok(tag)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn headers() -> Vec<(PathBuf, String)> {
        let homes = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter();
        let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path());
        let headers: Vec<_> = homes
            .chain(installed)
            .map(|home| home.join("include/jvmti.h"))
            .filter_map(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?)))
            .collect();
        assert!(!headers.is_empty(), "no jvmti.h under JAVA_HOME or /usr/lib/jvm: install openjdk-17-jdk-headless");
        headers
    }

    /// `NAME = value` in the header.
    fn constant(header: &str, name: &str) -> i32 {
        let line = header.lines().find(|line| line.trim_start().starts_with(&format!("{name} ="))).expect(name);
        let value = line.split('=').nth(1).expect("a value").trim().trim_end_matches(',').trim();
        match value.strip_prefix("0x") {
            Some(hex) => i32::from_str_radix(hex, 16).expect(name),
            None => value.parse().expect(name),
        }
    }

    #[test]
    fn slots_are_the_headers() {
        for (path, header) in headers() {
            let table = &header[header.find("jvmtiInterface_1_ {").expect("the table")..];
            for (number, name) in slot::ALL {
                let function = table.find(&format!("(JNICALL *{name})")).unwrap_or_else(|| panic!("{name}"));
                let comment = &table[table[..function].rfind("/*").expect("a comment")..function];
                let found: usize = comment[2..].split(':').next().expect("a number").trim().parse().expect(name);
                assert_eq!(found, *number, "{name} in {}", path.display());
            }
            assert!(table.contains(" 156 : ") && !table.contains(" 157 : "), "{}", path.display());
        }
    }

    #[test]
    fn errors_events_and_status_bits_are_the_headers() {
        for (_, header) in headers() {
            for (code, name) in ERRORS.iter().filter(|(_, name)| header.contains(&format!("JVMTI_ERROR_{name} "))) {
                assert_eq!(constant(&header, &format!("JVMTI_ERROR_{name}")), *code, "{name}");
            }
            for (event, name) in [
                (EventKind::VmInit, "VM_INIT"),
                (EventKind::VmDeath, "VM_DEATH"),
                (EventKind::ThreadEnd, "THREAD_END"),
                (EventKind::ClassFileLoadHook, "CLASS_FILE_LOAD_HOOK"),
                (EventKind::ClassPrepare, "CLASS_PREPARE"),
                (EventKind::CompiledMethodLoad, "COMPILED_METHOD_LOAD"),
            ] {
                assert_eq!(constant(&header, &format!("JVMTI_EVENT_{name}")), event as i32);
            }
            for (bit, name) in [
                (class_status::PREPARED, "PREPARED"),
                (class_status::INITIALIZED, "INITIALIZED"),
                (class_status::ERROR, "ERROR"),
                (class_status::ARRAY, "ARRAY"),
                (class_status::PRIMITIVE, "PRIMITIVE"),
            ] {
                assert_eq!(constant(&header, &format!("JVMTI_CLASS_STATUS_{name}")), bit);
            }
        }
    }

    #[test]
    fn the_kind_of_inline_records_is_the_headers() {
        for (path, _) in headers() {
            let header = std::fs::read_to_string(path.with_file_name("jvmticmlr.h")).expect("it stands beside jvmti.h");
            assert_eq!(constant(&header, "JVMTI_CMLR_INLINE_INFO"), CompileRecord::INLINE_INFO);
        }
    }

    #[test]
    fn capability_bits_are_the_headers() {
        for (_, header) in headers() {
            let bits: Vec<&str> =
                header.lines().filter_map(|line| line.trim().strip_prefix("unsigned int can_")).collect();
            for (bit, name) in [
                (capability::TAG_OBJECTS, "tag_objects"),
                (capability::ALL_CLASS_HOOKS, "generate_all_class_hook_events"),
                (capability::COMPILED_METHOD_LOAD, "generate_compiled_method_load_events"),
                (capability::CONSTANT_POOL, "get_constant_pool"),
                (capability::RETRANSFORM_CLASSES, "retransform_classes"),
                (capability::RETRANSFORM_ANY_CLASS, "retransform_any_class"),
            ] {
                assert_eq!(bits[bit as usize].split(' ').next(), Some(name));
            }
        }
    }

    #[test]
    fn callbacks_stand_in_the_headers_order() {
        for (_, header) in headers() {
            let end = header.find("} jvmtiEventCallbacks;").expect("the struct");
            let start = header[..end].rfind("typedef struct {").expect("its beginning");
            let names: Vec<&str> = header[start..end]
                .lines()
                .filter_map(|line| line.trim().strip_prefix("jvmtiEvent")?.split(' ').nth(1))
                .map(|name| name.trim_end_matches(';'))
                .collect();
            let expected =
                ["VMInit", "VMDeath", "ThreadStart", "ThreadEnd", "ClassFileLoadHook", "ClassLoad", "ClassPrepare"];
            assert_eq!(names[..expected.len()], expected);
        }
    }
}
