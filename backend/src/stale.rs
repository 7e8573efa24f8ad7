//! Methods that have run, and do no longer: a program's start leaves thousands of them.
//!
//! HotSpot's counters say that they were called, not when. So the counts of methods that are not compiled are remembered as they are told, and
//! looked at once more a little later: what was called in between counts more, and what was not is stale. Of a compiled method nothing is claimed,
//! because calls of compiled code are not counted, nor of one that has been called so often that it may be a part of its compiled callers.
//!
//! Why so, and at what cost: docs/decisions/watched-methods.md.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use headwater_protocol::ClassId;
use headwater_protocol::message::MethodInfo;
use jni::sys::jmethodID;

use crate::hotspot::invocations::{Counted, Invocations};
use crate::jvmti::{Jvmti, MethodNumber};

/// From so many calls on HotSpot compiles a method (`Tier3InvocationThreshold`), or its callers with it.
const COMPILED_FROM: u32 = 200;

/// What was counted when methods were told the first time.
#[derive(Debug, Default)]
pub struct Stale(Mutex<Option<Looked>>);

#[derive(Debug, Default)]
struct Looked {
    classes: HashSet<ClassId>,
    /// By class, in that order.
    methods: Vec<(ClassId, MethodNumber, u32)>,
}

/// How often a method that is not compiled has been called.
fn uncompiled(counted: Option<Counted>) -> Option<u32> {
    counted.filter(|counted| !counted.is_compiled).map(|counted| counted.calls)
}

impl Stale {
    /// Remembers counts from now on.
    pub fn begin(&self) {
        *self.lock() = Some(Looked::default());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Looked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The methods of a class are being told, with what is counted of them.
    pub fn look(&self, class: ClassId, methods: &[jmethodID], counted: &[Option<Counted>]) {
        let mut looked = self.lock();
        let Some(Looked { classes, methods: known }) = &mut *looked else { return };
        if !classes.insert(class) {
            return;
        }
        let counts = methods.iter().zip(counted).filter_map(|(id, counted)| Some((*id, uncompiled(*counted)?)));
        let few = counts.filter(|(_, calls)| (1..COMPILED_FROM).contains(calls));
        known.extend(few.map(|(id, calls)| (class, MethodNumber(id), calls)));
    }

    /// Those that have not run since they were told, by class; the others are forgotten.
    pub fn take(&self, jvmti: Jvmti, invocations: &Invocations) -> Vec<(ClassId, Vec<MethodInfo>)> {
        let methods = self.lock().take().unwrap_or_default().methods;
        let mut stale: Vec<(ClassId, Vec<MethodInfo>)> = Vec::new();
        let ids: Vec<jmethodID> = methods.iter().map(|(_, MethodNumber(id), _)| *id).collect();
        let counted = invocations.look(&ids);
        for ((class, MethodNumber(id), calls), counted) in methods.into_iter().zip(counted) {
            if uncompiled(counted) != Some(calls) {
                continue;
            }
            let (Ok((name, descriptor)), Ok(access)) = (jvmti.method_name(id), jvmti.method_modifiers(id)) else {
                continue;
            };
            let method = MethodInfo { name, descriptor, access: access as u16, calls: Some(calls) };
            match stale.last_mut().filter(|(last, _)| *last == class) {
                Some((_, methods)) => methods.push(method),
                None => stale.push((class, vec![method])),
            }
        }
        stale
    }
}
