//! Methods that have never run, or long ago, and are to be told of when they do.
//!
//! They could be called, by code that cannot be told anything, and nearly none ever is. HotSpot counts the calls of each method anyway
//! ([`invocations`](crate::hotspot::invocations)); so the counters are looked at every so often, which costs the program nothing and the agent's thread a
//! hundredth of its time at most.
//!
//! Why so, and at what cost: docs/decisions/watched-methods.md.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use headwater_protocol::ClassId;
use headwater_protocol::message::{MethodRef, Notice};
use jni::sys::jmethodID;

use crate::hotspot::invocations::Invocations;
use crate::jni_env::Jni;
use crate::jvmti::{Error, MethodNumber};
use crate::target::Target;

/// How often the agent's thread looks.
const INTERVAL: Duration = Duration::from_millis(100);
/// Looking takes such a part of the time at most.
const PART: u32 = 100;

/// The methods that are watched.
#[derive(Debug, Default)]
pub struct Watch(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By their classes.
    methods: HashMap<ClassId, Vec<Watched>>,
    next_look: Option<Instant>,
}

#[derive(Debug)]
struct Watched {
    id: MethodNumber,
    /// What its counter said.
    calls: u32,
    name: String,
    descriptor: String,
}

impl State {
    /// Takes the methods of these classes, of all if there are none, that have run.
    fn take_run(&mut self, invocations: &Invocations, classes: Option<&[ClassId]>) -> Vec<MethodRef> {
        let mut run = Vec::new();
        let looked_at: Vec<ClassId> = match classes {
            Some(classes) => classes.to_vec(),
            None => self.methods.keys().copied().collect(),
        };
        for class in &looked_at {
            let Some(methods) = self.methods.get_mut(class) else { continue };
            let ids: Vec<jmethodID> = methods.iter().map(|method| method.id.0).collect();
            let mut counted = invocations.look(&ids).into_iter();
            // Of one whose calls cannot be read any more the class is gone.
            methods.retain_mut(|method| match counted.next().flatten().map(|counted| counted.calls) {
                Some(calls) if calls == method.calls => true,
                // Its class has been given other code, and counting has begun anew.
                Some(0) => {
                    method.calls = 0;
                    true
                }
                Some(_) => {
                    let (name, descriptor) = (method.name.clone(), method.descriptor.clone());
                    run.push(MethodRef { class: *class, name, descriptor });
                    false
                }
                None => false,
            });
        }
        for class in &looked_at {
            if self.methods.get(class).is_some_and(Vec::is_empty) {
                self.methods.remove(class);
            }
        }
        run
    }
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches these, too.
    pub fn add(&self, jni: Jni, target: &Target, methods: Vec<MethodRef>) -> Result<(), Error> {
        let mut ids: Vec<ClassId> = methods.iter().map(|method| method.class).collect();
        ids.sort_unstable_by_key(|id| id.0);
        ids.dedup();
        let Some(invocations) = target.invocations() else { return Ok(()) };
        let wanted: HashSet<MethodRef> = methods.into_iter().collect();
        let mut found = Vec::new();
        for (class, id) in target.classes.find(jni, &ids)? {
            for method in target.jvmti.methods(class).unwrap_or_default() {
                let Ok((name, descriptor)) = target.jvmti.method_name(method) else { continue };
                let reference = MethodRef { class: id, name, descriptor };
                if wanted.contains(&reference) {
                    let MethodRef { name, descriptor, .. } = reference;
                    let calls = invocations.look(&[method])[0].map_or(0, |counted| counted.calls);
                    found.push((id, Watched { id: MethodNumber(method), calls, name, descriptor }));
                }
            }
            jni.delete_local(class);
        }
        let mut state = self.lock();
        for (class, method) in found {
            state.methods.entry(class).or_default().push(method);
        }
        if !state.methods.is_empty() {
            state.next_look.get_or_insert_with(|| Instant::now() + INTERVAL);
        }
        Ok(())
    }

    /// When to look next; `None` if there is nothing to be looked at.
    pub fn next_look(&self) -> Option<Instant> {
        self.lock().next_look
    }

    /// Looks, if it is time, and tells the tool.
    pub fn look_if_due(&self, target: &Target) {
        let mut state = self.lock();
        let start = Instant::now();
        if state.next_look.is_none_or(|next| next > start) {
            return;
        }
        let Some(invocations) = target.invocations() else { return };
        let run = state.take_run(invocations, None);
        let pause = INTERVAL.max(start.elapsed() * PART);
        state.next_look = (!state.methods.is_empty()).then(|| Instant::now() + pause);
        drop(state);
        tell(target, run);
    }

    /// Looks at the methods of classes whose counters are about to be lost, because they get other code.
    pub fn look_before(&self, target: &Target, classes: &[ClassId]) {
        let mut state = self.lock();
        if state.methods.is_empty() {
            return;
        }
        let Some(invocations) = target.invocations() else { return };
        let run = state.take_run(invocations, Some(classes));
        drop(state);
        tell(target, run);
    }

    /// Watches nothing any more.
    pub fn forget(&self) {
        *self.lock() = State::default();
    }
}

fn tell(target: &Target, run: Vec<MethodRef>) {
    if !run.is_empty() {
        target.connection.notice(Notice::HasRun(run));
    }
}
