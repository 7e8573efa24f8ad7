//! The few JNI functions that the agent needs, over `jni::sys`: raw, because the agent's threads are the JVM's own and
//! must be able to go away at any moment.

use std::ffi::{CStr, CString, NulError};
use std::ptr;

use headwater_modified_utf8 as modified_utf8;
use jni::sys::{JNIEnv, jclass, jint, jlong, jmethodID, jobject, jvalue};

/// The JNI environment of the current thread. Not to be kept beyond the call that it came with.
#[derive(Clone, Copy, Debug)]
pub struct Jni(*mut JNIEnv);

/// A Java exception was thrown; it has been cleared.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("Java code threw an exception in {0}")]
pub struct Thrown(pub &'static str);

/// Calls a function of JNI's table.
macro_rules! jni {
    ($env:expr, $function:ident $(, $argument:expr)*) => {{
        // SAFETY: the environment is the current thread's (see `Jni::from_raw`); the arguments are live references of
        // this JVM and pointers to live locals, as the function wants them.
        unsafe { ((**$env.0).v1_6.$function)($env.0 $(, $argument)*) }
    }};
}

impl Jni {
    /// # Safety
    /// `env` is the current thread's JNI environment.
    pub unsafe fn from_raw(env: *mut JNIEnv) -> Jni {
        Jni(env)
    }

    /// Clears a pending exception; tells whether there was one.
    pub fn clear_exception(self) -> bool {
        let pending = self.exception_pending();
        if pending {
            jni!(self, ExceptionClear);
        }
        pending
    }

    /// Whether an exception is pending.
    pub fn exception_pending(self) -> bool {
        jni!(self, ExceptionCheck)
    }

    fn checked<T>(self, value: T, what: &'static str) -> Result<T, Thrown> {
        if self.clear_exception() { Err(Thrown(what)) } else { Ok(value) }
    }

    /// A class that the system class loader finds: a local reference.
    pub fn find_class(self, name: &str) -> Result<jclass, Thrown> {
        let name = spelled(name).map_err(|_| Thrown("FindClass"))?;
        self.checked(jni!(self, FindClass, name.as_ptr()), "FindClass")
    }

    /// Has a loader find a class by its Java name, without initialising it.
    pub fn for_name(self, name: &str, loader: jobject) -> Result<(), Thrown> {
        const WHAT: &str = "Class.forName";
        let text = spelled(name).map_err(|_| Thrown(WHAT))?;
        let class = self.find_class("java/lang/Class")?;
        let for_name =
            self.static_method(class, "forName", "(Ljava/lang/String;ZLjava/lang/ClassLoader;)Ljava/lang/Class;")?;
        let name = self.checked(jni!(self, NewStringUTF, text.as_ptr()), WHAT)?;
        let arguments = [jvalue { l: name }, jvalue { z: false }, jvalue { l: loader }];
        let found = jni!(self, CallStaticObjectMethodA, class, for_name, arguments.as_ptr());
        [class, name].into_iter().for_each(|reference| self.delete_local(reference));
        let found = self.checked(found, WHAT)?;
        self.delete_local(found);
        Ok(())
    }

    /// Defines a class with the bootstrap loader: a local reference.
    pub fn define_boot_class(self, name: &str, bytes: &[u8]) -> Result<jclass, Thrown> {
        let name = spelled(name).map_err(|_| Thrown("DefineClass"))?;
        let class = jni!(self, DefineClass, name.as_ptr(), ptr::null_mut(), bytes.as_ptr().cast(), bytes.len() as jint);
        self.checked(class, "DefineClass")
    }

    /// The superclass: a local reference, or null.
    pub fn superclass(self, class: jclass) -> jclass {
        jni!(self, GetSuperclass, class)
    }

    /// An object's class: a local reference.
    pub fn object_class(self, object: jobject) -> jclass {
        jni!(self, GetObjectClass, object)
    }

    /// A static method; initialises the class.
    pub fn static_method(self, class: jclass, name: &str, descriptor: &str) -> Result<jmethodID, Thrown> {
        let (Ok(name), Ok(descriptor)) = (spelled(name), spelled(descriptor)) else {
            return Err(Thrown("GetStaticMethodID"));
        };
        let method = jni!(self, GetStaticMethodID, class, name.as_ptr(), descriptor.as_ptr());
        self.checked(method, "GetStaticMethodID")
    }

    /// Whether a class has an instance method; initialises the class.
    pub fn has_method(self, class: jclass, name: &str, descriptor: &CStr) -> bool {
        let Ok(name) = spelled(name) else { return false };
        let method = jni!(self, GetMethodID, class, name.as_ptr(), descriptor.as_ptr());
        !self.clear_exception() && !method.is_null()
    }

    /// Unbinds a class's native methods: code is looked for again when one is called.
    pub fn unregister_natives(self, class: jclass) -> Result<(), Thrown> {
        let result = jni!(self, UnregisterNatives, class);
        self.checked(result, "UnregisterNatives").map(|_| ())
    }

    /// Calls a static method with nothing but zeros, whatever it returns.
    pub fn call_with_zeros(self, class: jclass, method: jmethodID, descriptor: &CStr) -> Result<(), Thrown> {
        // More than any has.
        let zeros = [jvalue { j: 0 }; 8];
        match descriptor.to_bytes().last() {
            Some(b'V') => jni!(self, CallStaticVoidMethodA, class, method, zeros.as_ptr()),
            Some(b'Z') => drop(jni!(self, CallStaticBooleanMethodA, class, method, zeros.as_ptr())),
            Some(b'I') => drop(jni!(self, CallStaticIntMethodA, class, method, zeros.as_ptr())),
            Some(b'J') => drop(jni!(self, CallStaticLongMethodA, class, method, zeros.as_ptr())),
            _ => return Err(Thrown("a native method")),
        }
        self.checked((), "a native method")
    }

    /// Calls a static method without result.
    pub fn call_static_void(self, class: jclass, method: jmethodID, arguments: &[jvalue]) -> Result<(), Thrown> {
        jni!(self, CallStaticVoidMethodA, class, method, arguments.as_ptr());
        self.checked((), "the runtime class")
    }

    /// Calls a static method that returns a long.
    pub fn call_static_long(self, class: jclass, method: jmethodID) -> Result<jlong, Thrown> {
        let value = jni!(self, CallStaticLongMethodA, class, method, ptr::null());
        self.checked(value, "the runtime class")
    }

    /// Calls a static method without arguments that returns an object: a local reference.
    pub fn call_static_object(self, class: jclass, method: jmethodID) -> Result<jobject, Thrown> {
        let object = jni!(self, CallStaticObjectMethodA, class, method, ptr::null());
        self.checked(object, "a static method")
    }

    /// Calls an instance method that takes a long and returns one.
    pub fn call_long(self, object: jobject, method: jmethodID, argument: jlong) -> Result<jlong, Thrown> {
        let value = jni!(self, CallLongMethodA, object, method, [jvalue { j: argument }].as_ptr());
        self.checked(value, "an instance method")
    }

    /// An instance method, whoever may call it.
    pub fn method(self, class: jclass, name: &CStr, descriptor: &CStr) -> Result<jmethodID, Thrown> {
        let method = jni!(self, GetMethodID, class, name.as_ptr(), descriptor.as_ptr());
        self.checked(method, "GetMethodID")
    }

    /// Calls a static method that returns an array of `N` doubles.
    pub fn call_static_doubles<const N: usize>(self, class: jclass, method: jmethodID) -> Result<[f64; N], Thrown> {
        let array = jni!(self, CallStaticObjectMethodA, class, method, ptr::null());
        let array = self.checked(array, "the runtime class")?;
        let mut values = [0.0; N];
        jni!(self, GetDoubleArrayRegion, array, 0, N as jint, values.as_mut_ptr());
        self.delete_local(array);
        self.checked(values, "the runtime class")
    }

    /// A new `java.lang.Thread` of the given name, not started: a local reference.
    pub fn new_thread(self, name: &str) -> Result<jobject, Thrown> {
        let class = self.find_class("java/lang/Thread")?;
        let (Ok(text), name_of_constructor, descriptor) = (spelled(name), c"<init>", c"(Ljava/lang/String;)V") else {
            return Err(Thrown("new Thread"));
        };
        let constructor = jni!(self, GetMethodID, class, name_of_constructor.as_ptr(), descriptor.as_ptr());
        let constructor = self.checked(constructor, "new Thread")?;
        let name = self.checked(jni!(self, NewStringUTF, text.as_ptr()), "new Thread")?;
        let thread = jni!(self, NewObjectA, class, constructor, [jvalue { l: name }].as_ptr());
        self.checked(thread, "new Thread")
    }

    /// `Thread.threadId()`, also where that method does not exist yet.
    pub fn thread_id(self, thread: jobject) -> Result<jlong, Thrown> {
        self.thread_number(thread, c"tid")
    }

    /// What a thread has in one of the fields of `Thread` that are longs.
    pub fn thread_number(self, thread: jobject, field: &CStr) -> Result<jlong, Thrown> {
        let class = self.object_class(thread);
        let field = jni!(self, GetFieldID, class, field.as_ptr(), c"J".as_ptr());
        self.delete_local(class);
        let field = self.checked(field, "a field of Thread")?;
        self.checked(jni!(self, GetLongField, thread, field), "a field of Thread")
    }

    /// How often a class has been redefined: more often than its superclass, because a redefinition counts for all classes below, too.
    pub fn redefinitions(self, class: jclass) -> Result<jint, Thrown> {
        let above = self.superclass(class);
        let inherited = if above.is_null() { Ok(0) } else { self.redefined_count(above) };
        self.delete_local(above);
        Ok(self.redefined_count(class)? - inherited?)
    }

    /// How often a class, or one above it, has been redefined.
    pub fn redefined_count(self, class: jclass) -> Result<jint, Thrown> {
        let kind = self.object_class(class);
        let field = jni!(self, GetFieldID, kind, c"classRedefinedCount".as_ptr(), c"I".as_ptr());
        self.delete_local(kind);
        let field = self.checked(field, "Class.classRedefinedCount")?;
        self.checked(jni!(self, GetIntField, class, field), "Class.classRedefinedCount")
    }

    /// What an object has in a field of its own class: a local reference, or null.
    pub fn object_field(self, object: jobject, name: &'static CStr, descriptor: &CStr) -> Result<jobject, Thrown> {
        let class = self.object_class(object);
        let field = jni!(self, GetFieldID, class, name.as_ptr(), descriptor.as_ptr());
        self.delete_local(class);
        let field = self.checked(field, "GetFieldID")?;
        self.checked(jni!(self, GetObjectField, object, field), "GetObjectField")
    }

    /// How many elements an array has.
    pub fn length(self, array: jobject) -> jint {
        jni!(self, GetArrayLength, array)
    }

    /// An element of an array of objects: a local reference.
    pub fn element(self, array: jobject, at: jint) -> Result<jobject, Thrown> {
        self.checked(jni!(self, GetObjectArrayElement, array, at), "GetObjectArrayElement")
    }

    /// A string's text; lone surrogates are replaced.
    pub fn string(self, string: jobject) -> String {
        let units = jni!(self, GetStringLength, string).max(0);
        let mut text = vec![0; units as usize];
        jni!(self, GetStringRegion, string, 0, units, text.as_mut_ptr());
        modified_utf8::decode_units(&text)
    }

    /// A new array of these numbers: a local reference.
    pub fn new_ints(self, numbers: &[jint]) -> Result<jobject, Thrown> {
        let array = self.checked(jni!(self, NewIntArray, numbers.len() as jint), "new int[]")?;
        jni!(self, SetIntArrayRegion, array, 0, numbers.len() as jint, numbers.as_ptr());
        self.checked(array, "new int[]")
    }

    /// Gives back what was kept; null is fine.
    pub fn delete_global(self, object: jobject) {
        if !object.is_null() {
            jni!(self, DeleteGlobalRef, object);
        }
    }

    /// Keeps an object for good.
    pub fn new_global(self, object: jobject) -> jobject {
        jni!(self, NewGlobalRef, object)
    }

    /// Gives a local reference back; null is fine.
    pub fn delete_local(self, object: jobject) {
        if !object.is_null() {
            jni!(self, DeleteLocalRef, object);
        }
    }
}

/// As the JVM spells it.
fn spelled(name: &str) -> Result<CString, NulError> {
    CString::new(modified_utf8::encode(name))
}
