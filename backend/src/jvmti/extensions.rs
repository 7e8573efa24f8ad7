//! Events that are HotSpot's own: they are found by their names.

use std::ffi::c_char;
use std::ptr;

use jni::sys::{JNIEnv, jint};

use super::abi::{A_CHAR, ExtensionEvent, IN_POINTER, Parameter, slot};
use super::{Env, Error, Jvmti, jthread};

/// Those in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extension {
    /// A virtual thread goes on, on some carrier.
    VirtualThreadMount,
    /// It is about to leave its carrier.
    VirtualThreadUnmount,
    /// A class has been unloaded.
    ClassUnload,
}

impl Extension {
    fn id(self) -> &'static str {
        match self {
            Extension::VirtualThreadMount => "com.sun.hotspot.events.VirtualThreadMount",
            Extension::VirtualThreadUnmount => "com.sun.hotspot.events.VirtualThreadUnmount",
            Extension::ClassUnload => "com.sun.hotspot.events.ClassUnload",
        }
    }
}

/// What those of virtual threads call.
pub type ExtensionCallback = unsafe extern "system" fn(*mut Env, *mut JNIEnv, jthread);
/// What [`Extension::ClassUnload`] calls, with the class's internal name.
pub type UnloadCallback = unsafe extern "system" fn(*mut Env, *mut JNIEnv, *const c_char);

impl Jvmti {
    /// Has an event call a function. `NOT_AVAILABLE` where the JVM has no such event.
    pub fn enable_extension(self, event: Extension, callback: ExtensionCallback) -> Result<(), Error> {
        let (index, _) = self.extension(event)?.ok_or(Error::NOT_AVAILABLE)?;
        let slot = slot::SET_EXTENSION_EVENT_CALLBACK;
        call!(self, slot, (jint, Option<ExtensionCallback>), index, Some(callback))?;
        // The number stands for an event's, though those of the specification are greater.
        self.set_mode(1, index)
    }

    /// Has [`Extension::ClassUnload`] call a function. `NOT_AVAILABLE` where the JVM has no such event, or an old one, which names no class.
    pub fn enable_unloads(self, callback: UnloadCallback) -> Result<(), Error> {
        let found = self.extension(Extension::ClassUnload)?;
        let (index, parameters) = found.ok_or(Error::NOT_AVAILABLE)?;
        let [_, Parameter { kind: IN_POINTER, base_type: A_CHAR, .. }] = parameters[..] else {
            return Err(Error::NOT_AVAILABLE);
        };
        let slot = slot::SET_EXTENSION_EVENT_CALLBACK;
        call!(self, slot, (jint, Option<UnloadCallback>), index, Some(callback))?;
        self.set_mode(1, index)
    }

    /// It calls none any more. The function stays: a thread may be about to call it.
    pub fn disable_extension(self, event: Extension) -> Result<(), Error> {
        let (index, _) = self.extension(event)?.ok_or(Error::NOT_AVAILABLE)?;
        self.set_mode(0, index)
    }

    /// Its number, and what it calls with: the parameters' names are not to be read.
    fn extension(self, event: Extension) -> Result<Option<(jint, Vec<Parameter>)>, Error> {
        let (mut count, mut events): (jint, *mut ExtensionEvent) = (0, ptr::null_mut());
        let slot = slot::GET_EXTENSION_EVENTS;
        call!(self, slot, (*mut jint, *mut *mut ExtensionEvent), &mut count, &mut events)?;
        let mut found = None;
        for known in self.take_array(events, count) {
            let id = self.take_string(known.id);
            self.deallocate::<c_char>(known.description);
            let parameters = self.take_array(known.parameters, known.parameter_count);
            for parameter in &parameters {
                self.deallocate::<c_char>(parameter.name);
            }
            if id == event.id() {
                found = Some((known.index, parameters));
            }
        }
        Ok(found)
    }
}
