//! JVMTI's table, structures and numbers, as the headers have them (`jvmti.h`, `jvmticmlr.h`).
//!
//! The table is an array of 156 slots, numbered from 1 as in the specification. Tests compare what is here with the headers of every installed
//! JDK.

use std::ffi::{c_char, c_void};

use jni::sys::{jclass, jint, jlong, jmethodID, jobject};

/// A `java.lang.Thread`.
#[allow(non_camel_case_types, reason = "JVMTI's name")]
pub type jthread = jobject;

/// Slots of the function table (JVMTI 1.1 to 25 have the same length).
pub const SLOTS: usize = 156;

/// A JVMTI environment's function table.
#[repr(C)]
pub struct Interface {
    pub(super) slots: [*const c_void; SLOTS],
}

/// A JVMTI error code, as the JVM gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Error(pub jint);

impl Error {
    pub(super) const NONE: Error = Error(0);
    pub(super) const NOT_AVAILABLE: Error = Error(98);
    pub(super) const ABSENT_INFORMATION: Error = Error(101);

    /// The error's name in the specification, without its prefix.
    pub fn name(self) -> &'static str {
        ERRORS.iter().find(|(code, _)| *code == self.0).map_or("unknown JVMTI error", |(_, name)| name)
    }

    /// Why the JVM lets a class's code not be changed, as a sentence about the class.
    pub fn of_class(self) -> String {
        let reason = match self.0 {
            20 | 21 => "it is being unloaded",
            22 => "it is not linked yet",
            60..=62 | 65 | 68 | 69 => "the JVM takes its new class file for malformed",
            63 | 64 | 66 | 67 | 70..=73 => "the JVM takes its new class file for that of another class",
            79 | 80 => "the JVM lets nobody change it",
            110 => "the JVM has not enough memory for it",
            _ => "the JVM could not change it",
        };
        format!("{reason} ({self})")
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
    MUST_POSSESS_CAPABILITY = 99, NULL_POINTER = 100, ABSENT_INFORMATION = 101, ILLEGAL_ARGUMENT = 103, OUT_OF_MEMORY = 110, ACCESS_DENIED = 111,
    WRONG_PHASE = 112, INTERNAL = 113, UNATTACHED_THREAD = 115, INVALID_ENVIRONMENT = 116,
}

/// Bits of `jvmtiCapabilities`.
pub mod capability {
    /// Tag objects.
    pub const TAG_OBJECTS: u32 = 0;
    /// `GetBytecodes`.
    pub const BYTECODES: u32 = 3;
    /// `GetObjectMonitorUsage`.
    pub const MONITOR_INFO: u32 = 7;
    /// `GetLineNumberTable`.
    pub const LINE_NUMBERS: u32 = 12;
    /// Class hooks for every class, the JDK's included.
    pub const ALL_CLASS_HOOKS: u32 = 26;
    /// `CompiledMethodLoad`.
    pub const COMPILED_METHOD_LOAD: u32 = 27;
    /// `MonitorContendedEnter` and its kin.
    pub const MONITOR_EVENTS: u32 = 28;
    /// `NativeMethodBind`.
    pub const NATIVE_METHOD_BIND: u32 = 30;
    /// `GarbageCollectionStart` and `GarbageCollectionFinish`.
    pub const GARBAGE_COLLECTION_EVENTS: u32 = 31;
    /// `GetConstantPool`.
    pub const CONSTANT_POOL: u32 = 35;
    /// `RetransformClasses`.
    pub const RETRANSFORM_CLASSES: u32 = 37;
    /// ... of classes of the JDK, too.
    pub const RETRANSFORM_ANY_CLASS: u32 = 38;
    /// Events of virtual threads; since JDK 21.
    pub const VIRTUAL_THREADS: u32 = 44;
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
    /// A platform thread begins.
    ThreadStart = 52,
    /// A platform thread ends.
    ThreadEnd = 53,
    /// A class file is about to be parsed.
    ClassFileLoadHook = 54,
    /// A class has been loaded, and not linked yet.
    ClassLoad = 55,
    /// A class has been linked.
    ClassPrepare = 56,
    /// Code has been found for a native method.
    NativeMethodBind = 67,
    /// A method has been compiled, or, by `GenerateEvents`, is there compiled.
    CompiledMethodLoad = 68,
    /// A method's compiled code is gone.
    CompiledMethodUnload = 69,
    /// A thread is about to wait in `Object.wait`.
    MonitorWait = 73,
    /// It has.
    MonitorWaited = 74,
    /// A thread is about to wait for a monitor that another one has.
    MonitorContendedEnter = 75,
    /// It has entered it.
    MonitorContendedEntered = 76,
    /// The JVM is stopped for a collection.
    GarbageCollectionStart = 81,
    /// It will go on.
    GarbageCollectionFinish = 82,
}

/// Type of `VMInit`.
pub type VmInit = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, jthread);
/// Type of `VMDeath`.
pub type VmDeath = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv);
/// Type of `ThreadStart` and `ThreadEnd`.
pub type OfThread = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, jthread);
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
/// Type of `ClassLoad` and `ClassPrepare`.
pub type OfClass = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, jthread, jclass);

/// Type of `NativeMethodBind`: the code that was found, and where other code may be named instead.
pub type NativeMethodBind =
    unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, jthread, jmethodID, *mut c_void, *mut *mut c_void);

/// Type of `MonitorWait`; the time is in ms.
pub type MonitorWait = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, jthread, jobject, jlong);
/// Type of `MonitorWaited`.
pub type MonitorWaited = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, jthread, jobject, u8);
/// Type of `MonitorContendedEnter` and `MonitorContendedEntered`.
pub type MonitorContended = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, jthread, jobject);
/// Type of `GarbageCollectionStart` and `GarbageCollectionFinish`.
pub type GarbageCollection = unsafe extern "system" fn(*mut Env);
/// Type of `CompiledMethodLoad`.
pub type CompiledMethodLoad =
    unsafe extern "system" fn(*mut Env, jmethodID, jint, *const c_void, jint, *const c_void, *const CompileRecord);

/// Type of `CompiledMethodUnload`.
pub type CompiledMethodUnload = unsafe extern "system" fn(*mut Env, jmethodID, *const c_void);

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
    pub thread_start: Option<OfThread>,
    /// Event 53.
    pub thread_end: Option<OfThread>,
    /// Event 54.
    pub class_file_load_hook: Option<ClassFileLoadHook>,
    /// Event 55.
    pub class_load: Option<OfClass>,
    /// Event 56.
    pub class_prepare: Option<OfClass>,
    /// Events 57 to 66.
    pub unused: [Option<unsafe extern "system" fn()>; 10],
    /// Event 67.
    pub native_method_bind: Option<NativeMethodBind>,
    /// Event 68.
    pub compiled_method_load: Option<CompiledMethodLoad>,
    /// Event 69.
    pub compiled_method_unload: Option<CompiledMethodUnload>,
    /// Events 70 to 72.
    pub unused_too: [Option<unsafe extern "system" fn()>; 3],
    /// Event 73.
    pub monitor_wait: Option<MonitorWait>,
    /// Event 74.
    pub monitor_waited: Option<MonitorWaited>,
    /// Event 75.
    pub monitor_contended_enter: Option<MonitorContended>,
    /// Event 76.
    pub monitor_contended_entered: Option<MonitorContended>,
    /// Events 77 to 80.
    pub unused_then: [Option<unsafe extern "system" fn()>; 4],
    /// Event 81.
    pub garbage_collection_start: Option<GarbageCollection>,
    /// Event 82.
    pub garbage_collection_finish: Option<GarbageCollection>,
}

#[repr(C)]
pub(super) struct ThreadInfo {
    pub(super) name: *mut c_char,
    pub(super) priority: jint,
    pub(super) is_daemon: u8,
    pub(super) thread_group: jobject,
    pub(super) context_class_loader: jobject,
}

/// `jvmtiFrameInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FrameInfo {
    pub(super) method: jmethodID,
    pub(super) location: jlong,
}

/// `jvmtiExtensionEventInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ExtensionEvent {
    pub(super) index: jint,
    pub(super) id: *mut c_char,
    pub(super) description: *mut c_char,
    pub(super) parameter_count: jint,
    pub(super) parameters: *mut Parameter,
}

/// `jvmtiParamInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: *mut c_char,
    pub(super) kind: jint,
    pub(super) base_type: jint,
    pub(super) is_null_ok: u8,
}

/// `JVMTI_KIND_IN_PTR`: a parameter that is a pointer.
pub(super) const IN_POINTER: jint = 92;
/// `JVMTI_TYPE_CCHAR`: to a text.
pub(super) const A_CHAR: jint = 115;

/// `jvmtiLineNumberEntry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct LineNumber {
    pub(super) start: jlong,
    pub(super) line: jint,
}

/// `jvmtiStackInfo`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct StackInfo {
    pub(super) thread: jthread,
    pub(super) state: jint,
    pub(super) frames: *const FrameInfo,
    pub(super) frame_count: jint,
}

/// The environment's struct: a pointer to its function table comes first.
pub type Env = *const Interface;

/// Function of a thread that `RunAgentThread` starts.
pub type StartFunction = unsafe extern "system" fn(*mut Env, *mut jni::sys::JNIEnv, *mut c_void);

/// Slot numbers, from 1.
pub mod slot {
    #![allow(missing_docs, reason = "they are named as the specification's functions are")]
    pub const SET_EVENT_NOTIFICATION_MODE: usize = 2;
    pub const GET_ALL_THREADS: usize = 4;
    pub const GET_THREAD_INFO: usize = 9;
    pub const RUN_AGENT_THREAD: usize = 12;
    pub const GET_THREAD_STATE: usize = 17;
    pub const GET_CURRENT_THREAD: usize = 18;
    pub const IS_MODIFIABLE_CLASS: usize = 45;
    pub const ALLOCATE: usize = 46;
    pub const DEALLOCATE: usize = 47;
    pub const GET_CLASS_SIGNATURE: usize = 48;
    pub const GET_CLASS_STATUS: usize = 49;
    pub const GET_CLASS_MODIFIERS: usize = 51;
    pub const GET_CLASS_METHODS: usize = 52;
    pub const GET_IMPLEMENTED_INTERFACES: usize = 54;
    pub const GET_CLASS_LOADER: usize = 57;
    pub const GET_OBJECT_MONITOR_USAGE: usize = 59;
    pub const GET_METHOD_NAME: usize = 64;
    pub const GET_METHOD_DECLARING_CLASS: usize = 65;
    pub const GET_METHOD_MODIFIERS: usize = 66;
    pub const GET_LINE_NUMBER_TABLE: usize = 70;
    pub const GET_BYTECODES: usize = 75;
    pub const GET_LOADED_CLASSES: usize = 78;
    pub const IS_METHOD_OBSOLETE: usize = 91;
    pub const GET_ALL_STACK_TRACES: usize = 100;
    pub const GET_THREAD_LIST_STACK_TRACES: usize = 101;
    pub const GET_STACK_TRACE: usize = 104;
    pub const GET_TAG: usize = 106;
    pub const SET_TAG: usize = 107;
    pub const GET_OBJECTS_WITH_TAGS: usize = 114;
    pub const SET_EVENT_CALLBACKS: usize = 122;
    pub const GENERATE_EVENTS: usize = 123;
    pub const GET_EXTENSION_EVENTS: usize = 125;
    pub const SET_EXTENSION_EVENT_CALLBACK: usize = 126;
    pub const DISPOSE_ENVIRONMENT: usize = 127;
    pub const GET_SYSTEM_PROPERTY: usize = 131;
    pub const ADD_CAPABILITIES: usize = 142;
    pub const RELINQUISH_CAPABILITIES: usize = 143;
    pub const GET_CONSTANT_POOL: usize = 146;
    pub const RETRANSFORM_CLASSES: usize = 152;
    pub const GET_OBJECT_SIZE: usize = 154;

    /// For the test against `jvmti.h`.
    #[cfg(test)]
    pub const ALL: &[(usize, &str)] = &[
        (SET_EVENT_NOTIFICATION_MODE, "SetEventNotificationMode"),
        (GET_ALL_THREADS, "GetAllThreads"),
        (GET_THREAD_INFO, "GetThreadInfo"),
        (RUN_AGENT_THREAD, "RunAgentThread"),
        (GET_THREAD_STATE, "GetThreadState"),
        (GET_CURRENT_THREAD, "GetCurrentThread"),
        (IS_MODIFIABLE_CLASS, "IsModifiableClass"),
        (ALLOCATE, "Allocate"),
        (DEALLOCATE, "Deallocate"),
        (GET_CLASS_SIGNATURE, "GetClassSignature"),
        (GET_CLASS_STATUS, "GetClassStatus"),
        (GET_CLASS_MODIFIERS, "GetClassModifiers"),
        (GET_CLASS_METHODS, "GetClassMethods"),
        (GET_IMPLEMENTED_INTERFACES, "GetImplementedInterfaces"),
        (GET_CLASS_LOADER, "GetClassLoader"),
        (GET_OBJECT_MONITOR_USAGE, "GetObjectMonitorUsage"),
        (GET_METHOD_NAME, "GetMethodName"),
        (GET_METHOD_DECLARING_CLASS, "GetMethodDeclaringClass"),
        (GET_METHOD_MODIFIERS, "GetMethodModifiers"),
        (GET_LINE_NUMBER_TABLE, "GetLineNumberTable"),
        (GET_BYTECODES, "GetBytecodes"),
        (GET_LOADED_CLASSES, "GetLoadedClasses"),
        (IS_METHOD_OBSOLETE, "IsMethodObsolete"),
        (GET_ALL_STACK_TRACES, "GetAllStackTraces"),
        (GET_THREAD_LIST_STACK_TRACES, "GetThreadListStackTraces"),
        (GET_STACK_TRACE, "GetStackTrace"),
        (GET_TAG, "GetTag"),
        (SET_TAG, "SetTag"),
        (GET_OBJECTS_WITH_TAGS, "GetObjectsWithTags"),
        (SET_EVENT_CALLBACKS, "SetEventCallbacks"),
        (GENERATE_EVENTS, "GenerateEvents"),
        (GET_EXTENSION_EVENTS, "GetExtensionEvents"),
        (SET_EXTENSION_EVENT_CALLBACK, "SetExtensionEventCallback"),
        (DISPOSE_ENVIRONMENT, "DisposeEnvironment"),
        (GET_SYSTEM_PROPERTY, "GetSystemProperty"),
        (ADD_CAPABILITIES, "AddCapabilities"),
        (RELINQUISH_CAPABILITIES, "RelinquishCapabilities"),
        (GET_CONSTANT_POOL, "GetConstantPool"),
        (RETRANSFORM_CLASSES, "RetransformClasses"),
        (GET_OBJECT_SIZE, "GetObjectSize"),
    ];
}

/// `jvmtiMonitorUsage`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MonitorUsage {
    /// Who has it: a local reference; null if nobody has.
    pub owner: jthread,
    /// How often it has entered.
    pub entry_count: jint,
    /// How many wait to enter,
    pub waiter_count: jint,
    /// which.
    pub waiters: *mut jthread,
    /// How many wait to be notified,
    pub notify_waiter_count: jint,
    /// which.
    pub notify_waiters: *mut jthread,
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

#[cfg(test)]
mod tests;
