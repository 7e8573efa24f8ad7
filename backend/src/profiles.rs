//! HotSpot's stale type profiles: those with lambdas' classes of versions that were replaced.
//!
//! When a class is given other code, all its `invokedynamic` instructions are linked anew, and each lambda expression gets another class:
//! once for each version of the code that runs it. Whoever calls such objects (a stream, a sort) is profiled with the classes it has seen,
//! two in one place as HotSpot is set; once these are of versions that are gone, the place counts as calling anything, for good, and what it
//! calls is no longer inlined. So when code has been given back, classes whose profiles remember such lambdas are retransformed
//! into what they are, by which HotSpot forgets their profiles, and makes new ones of what runs then. At detaching that is one
//! operation with the giving back: a program that runs in between is compiled with profiles that are about to go, and again at once, when what it
//! calls has none. Before the bare phase they are two, and the program runs in between until it links a lambda, for which it waits for the
//! tool.
//!
//! Why so, and at what cost: docs/decisions/stale-type-profiles.md.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use headwater_protocol::LoaderId;
use headwater_protocol::message::mention;
use jni::sys::{jclass, jmethodID, jobject};

use crate::classes::{Classes, Spared};
use crate::hotspot::type_profiles::TypeProfiles;
use crate::jni_env::Jni;
use crate::jvmti::{Error, Jvmti, MethodName};
use crate::mentions;

/// Calls on a stack that are looked at. A stack that is deeper may move under that window.
const DEPTH: usize = 1024;
/// For so long threads are looked at, until each has been seen elsewhere.
const LONGEST_LOOK: Duration = Duration::from_millis(300);
/// Between two looks.
const NAP: Duration = Duration::from_micros(100);
/// ... and so many times what the one before took: threads are stopped for it.
const NAPS: u32 = 4;
/// HotSpot relies on what this class's methods are compiled to.
const LEFT_ALONE: &str = "java/lang/VirtualThread";

/// Classes that are to be retransformed into what they are.
#[derive(Debug, Default)]
pub struct Remembering {
    /// Their profiles remember lambdas in code that classes do not have any more, or are about to lose.
    pub classes: Vec<jclass>,
    /// Loaders and names of the instrumented ones that are best given back with them: they have such code, or may call it, and their profiles
    /// begin anew then.
    pub with_them: HashSet<(LoaderId, String)>,
    /// What others remember; `None`, where it is not known.
    pub spared: Option<Spared>,
}

impl Remembering {
    /// Those that remember a lambda of a class that has been given other code, but for those in whose code a thread stays: it
    /// would go on in code that is replaced, which HotSpot no longer compiles. None where nothing can be known of profiles.
    pub fn find((jvmti, jni): (Jvmti, Jni), classes: &Classes, profiles: Option<&TypeProfiles>) -> Remembering {
        let Some(profiles) = profiles else {
            return Remembering { spared: Some(Spared::default()), ..Remembering::default() };
        };
        // What cannot be done costs the program time, and the tool nothing.
        match GoneLambdas::find((jvmti, jni), classes, profiles) {
            Ok(Some(gone)) => gone.remembering(jvmti, jni, classes).unwrap_or_default(),
            Ok(None) => Remembering { spared: Some(Spared::default()), ..Remembering::default() },
            Err(_) => Remembering::default(),
        }
    }
}

/// Lambdas in code that classes do not have any more, or are about to lose.
#[derive(Debug)]
struct GoneLambdas {
    profiles: TypeProfiles,
    /// Addresses of their classes' structures.
    classes: HashSet<u64>,
    /// Names and descriptors of the methods that they implement.
    methods: HashSet<u64>,
    /// The classes in whose code they are.
    hosts: HashSet<(LoaderId, String)>,
    /// Who remembered others that were gone before, and was spared.
    spared: Spared,
}

impl GoneLambdas {
    /// The lambdas of all classes that have been given other code since lambdas were last forgotten, as far as they have been made, and those that
    /// somebody was let remember then. `None` when there are none.
    fn find(
        (jvmti, jni): (Jvmti, Jni),
        classes: &Classes,
        profiles: &TypeProfiles,
    ) -> Result<Option<GoneLambdas>, Error> {
        let profiles = profiles.clone();
        let (lambdas, methods, hosts) = (HashSet::new(), HashSet::new(), HashSet::new());
        let Spared { classes: remembering, lambdas: spared_lambdas } = classes.spared_lambdas();
        // Those that are not loaded any more are nobody's.
        let spared = Spared { classes: remembering, lambdas: HashSet::new() };
        let mut gone = GoneLambdas { profiles, classes: lambdas, methods, hosts, spared };
        for class in jvmti.loaded_classes()? {
            if let Some(host) = classes.instrumented_with_lambda(jni, class) {
                gone.add(jvmti, class);
                gone.hosts.insert(host);
            } else if !gone.spared.classes.is_empty() && classes.is_lambda(class) {
                gone.add_if_spared(jvmti, class, &spared_lambdas);
            }
            jni.delete_local(class);
        }
        Ok((!gone.methods.is_empty()).then_some(gone))
    }

    fn add(&mut self, jvmti: Jvmti, class: jclass) {
        let methods = jvmti.methods(class).unwrap_or_default();
        self.classes.extend(methods.iter().filter_map(|method| self.profiles.class_of(*method)));
        self.add_methods(jvmti, methods);
    }

    fn add_if_spared(&mut self, jvmti: Jvmti, class: jclass, spared: &HashSet<u64>) {
        let methods = jvmti.methods(class).unwrap_or_default();
        let address = methods.first().and_then(|method| self.profiles.class_of(*method));
        if let Some(address) = address.filter(|address| spared.contains(address)) {
            self.spared.lambdas.insert(address);
            self.add_methods(jvmti, methods);
        }
    }

    fn add_methods(&mut self, jvmti: Jvmti, methods: Vec<jmethodID>) {
        for method in methods {
            if let Ok(MethodName { name, descriptor }) = jvmti.method_key(method)
                && !name.starts_with(b"<")
            {
                self.methods.insert(mention(&name, &descriptor));
            }
        }
    }

    fn remembering(self, jvmti: Jvmti, jni: Jni, classes: &Classes) -> Result<Remembering, Error> {
        let mut remembering = Vec::new();
        let mut with_them = self.hosts.clone();
        for class in jvmti.loaded_classes()? {
            if self.may_call(jvmti, classes, class) {
                match classes.instrumented(jni, class) {
                    Some(instrumented) => {
                        with_them.insert(instrumented);
                    }
                    None => {
                        if let Some(methods) = self.methods_if_remembering(jvmti, jni, classes, class) {
                            remembering.push((class, methods));
                            continue;
                        }
                    }
                }
            }
            jni.delete_local(class);
        }
        let methods = remembering.iter().flat_map(|(_, methods)| methods).map(|method| *method as usize).collect();
        let staying = staying(jvmti, jni, &methods)?;
        let stays = |methods: &[jmethodID]| methods.iter().any(|method| staying.contains(&(*method as usize)));
        let (staying, others): (Vec<_>, Vec<_>) = remembering.into_iter().partition(|(_, methods)| stays(methods));
        let mut spared = Spared::default();
        for (class, _) in staying {
            spared.classes.extend(classes.key(jni, class).unwrap_or_default());
            jni.delete_local(class);
        }
        if !spared.classes.is_empty() {
            spared.lambdas = self.classes;
            spared.lambdas.extend(self.spared.lambdas);
        }
        let classes = others.into_iter().map(|(class, _)| class).collect();
        Ok(Remembering { classes, with_them, spared: Some(spared) })
    }

    /// Whether a class may call one of the lambdas, and can be retransformed.
    fn may_call(&self, jvmti: Jvmti, classes: &Classes, class: jclass) -> bool {
        // An array has no constants; whoever calls a lambda has its method among them.
        let Ok((_, pool)) = jvmti.constant_pool(class) else { return false };
        !mentions::of(&pool).is_disjoint(&self.methods)
            && jvmti.is_modifiable(class).unwrap_or(false)
            && !classes.is_named(class, LEFT_ALONE)
    }

    /// A class's methods, if the profile of any remembers one of the lambdas.
    fn methods_if_remembering(
        &self,
        jvmti: Jvmti,
        jni: Jni,
        classes: &Classes,
        class: jclass,
    ) -> Option<Vec<jmethodID>> {
        let methods = jvmti.methods(class).ok()?;
        // Others remember lambdas that were gone before only if they are not: objects stay what they are.
        let was_spared = !self.spared.classes.is_empty() && classes.is_among(jni, class, &self.spared.classes);
        let remembers_any = |method: jmethodID, lambdas| self.profiles.remembers(method, lambdas).unwrap_or(false);
        let remembers = |method: &jmethodID| {
            remembers_any(*method, &self.classes) || was_spared && remembers_any(*method, &self.spared.lambdas)
        };
        methods.iter().any(remembers).then_some(methods)
    }
}

/// Those of these methods that a thread may be in a single call of all the time.
fn staying(jvmti: Jvmti, jni: Jni, methods: &HashSet<usize>) -> Result<HashSet<usize>, Error> {
    let mut staying = HashSet::new();
    if methods.is_empty() {
        return Ok(staying);
    }
    let end = Instant::now() + LONGEST_LOOK;
    let mut watched = Vec::new();
    for (thread, stack) in jvmti.all_stacks(DEPTH)? {
        if stack.len() == DEPTH {
            staying.extend(stack.iter().map(|method| *method as usize).filter(|method| methods.contains(method)));
        }
        let stack = up_to_last(stack, methods);
        if stack.is_empty() || staying.contains(&(stack[stack.len() - 1] as usize)) {
            jni.delete_local(thread);
        } else {
            watched.push((thread, stack));
        }
    }
    let mut took = Duration::ZERO;
    while !watched.is_empty() && Instant::now() < end {
        std::thread::sleep(NAP.max(took * NAPS));
        let start = Instant::now();
        let threads: Vec<jobject> = watched.iter().map(|(thread, _)| *thread).collect();
        let stacks = jvmti.stacks_of(&threads, DEPTH);
        took = start.elapsed();
        let both = watched.into_iter().zip(stacks);
        watched = both.filter_map(|(watched, now)| look_again(jni, watched, &now, methods)).collect();
    }
    for (thread, stack) in watched {
        staying.extend(stack.iter().map(|method| *method as usize).filter(|method| methods.contains(method)));
        jni.delete_local(thread);
    }
    Ok(staying)
}

/// What is left of a thread's calls that may be the same ones; `None` when none of the methods is among them, or the thread has ended.
fn look_again(
    jni: Jni,
    (thread, mut stack): (jobject, Vec<jmethodID>),
    now: &[jmethodID],
    methods: &HashSet<usize>,
) -> Option<(jobject, Vec<jmethodID>)> {
    let same = stack.iter().zip(now).take_while(|(before, now)| before == now).count();
    stack.truncate(same);
    let stack = up_to_last(stack, methods);
    if stack.is_empty() {
        jni.delete_local(thread);
        return None;
    }
    Some((thread, stack))
}

/// A stack's calls up to the innermost one of these methods.
fn up_to_last(mut stack: Vec<jmethodID>, methods: &HashSet<usize>) -> Vec<jmethodID> {
    let last = stack.iter().rposition(|method| methods.contains(&(*method as usize)));
    stack.truncate(last.map_or(0, |last| last + 1));
    stack
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_of_interest_up_to_the_innermost_such_call() {
        let stack: Vec<jmethodID> = [1, 2, 3, 2, 4].map(|method: usize| method as jmethodID).to_vec();
        assert_eq!(up_to_last(stack.clone(), &HashSet::from([2])), stack[..4]);
        assert!(up_to_last(stack, &HashSet::from([5])).is_empty());
    }
}
