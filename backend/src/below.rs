//! What threads run below the roots, as stacks show it: which methods are instrumented with the roots, and which classes are hotswapped first, is
//! decided by that.

use std::collections::HashMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use headwater_protocol::ClassId;
use headwater_protocol::message::{MethodRef, SampledCall, StackSamples};
use jni::sys::jmethodID;

use crate::jni_env::Jni;
use crate::jvmti::Error;
use crate::target::Target;

/// Calls on a stack that are looked at, the innermost: where the root is further out, the stack says nothing.
const DEPTH: usize = 1024;
/// Calls that are told of one command, at most: recursion has stacks that are all different.
const MOST_CALLS: usize = 20_000;
/// Between two looks. A look is a safepoint.
const INTERVAL: Duration = Duration::from_millis(5);

/// A method that was on a stack.
#[derive(Clone, Copy, Debug)]
struct Known {
    class: ClassId,
    is_root: bool,
    /// Its place among the methods that are told of.
    told: Option<u32>,
}

/// Looks at all threads' stacks so often: what was below the outermost calls of one of these methods, and on how many stacks each class was.
pub fn sample(jni: Jni, target: &Target, roots: &[MethodRef], looks: u32) -> Result<StackSamples, Error> {
    let mut known: HashMap<jmethodID, Option<Known>> = HashMap::new();
    let known_of = |method: jmethodID| {
        let class = target.jvmti.declaring_class(method).ok()?;
        let id = target.classes.id(class);
        jni.delete_local(class);
        let class = id.ok()?;
        // Few classes have a root, and names cost more than numbers.
        let may_be_root = roots.iter().any(|root| root.class == class);
        let is_root =
            may_be_root && target.classes.reference(jni, method).is_some_and(|method| roots.contains(&method));
        Some(Known { class, is_root, told: None })
    };
    let (mut seen, mut calls, mut paused) = (StackSamples::default(), Calls::default(), Duration::ZERO);
    let mut classes: HashMap<ClassId, u32> = HashMap::new();
    for look in 0..looks {
        if look > 0 {
            sleep(INTERVAL);
        }
        let start = Instant::now();
        let stacks = target.jvmti.all_stacks(DEPTH)?;
        paused += start.elapsed();
        for (thread, stack) in stacks {
            jni.delete_local(thread);
            let mut below: Vec<ClassId> = Vec::new();
            let mut by = None;
            for method in stack {
                let Some(call) = known.entry(method).or_insert_with(|| known_of(method)) else { continue };
                if below.is_empty() && !call.is_root {
                    continue;
                }
                below.push(call.class);
                let told = call.told.or_else(|| {
                    let method = target.classes.reference(jni, method)?;
                    seen.methods.push(method);
                    u32::try_from(seen.methods.len() - 1).ok()
                });
                call.told = told;
                by = told.and_then(|method| calls.place(SampledCall { by, method })).or(by);
            }
            below.sort_unstable();
            below.dedup();
            below.into_iter().for_each(|class| *classes.entry(class).or_default() += 1);
        }
    }
    seen.classes = classes.into_iter().collect();
    seen.calls = calls.all;
    seen.paused_ns = paused.as_nanos() as u64;
    Ok(seen)
}

/// Calls, each once behind the one that made it.
#[derive(Debug, Default)]
struct Calls {
    all: Vec<SampledCall>,
    places: HashMap<SampledCall, u32>,
}

impl Calls {
    /// A call's place; `None` where there are too many.
    fn place(&mut self, call: SampledCall) -> Option<u32> {
        if let Some(place) = self.places.get(&call) {
            return Some(*place);
        }
        let place = u32::try_from(self.all.len()).ok().filter(|_| self.all.len() < MOST_CALLS)?;
        self.all.push(call);
        self.places.insert(call, place);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_was_seen_twice_has_one_place_and_there_are_only_so_many() {
        let mut calls = Calls::default();
        let root = calls.place(SampledCall { by: None, method: 0 });
        let callee = SampledCall { by: root, method: 1 };
        assert_eq!((root, calls.place(callee), calls.place(callee)), (Some(0), Some(1), Some(1)));
        for method in 2..MOST_CALLS as u32 {
            assert_eq!(calls.place(SampledCall { by: root, method }), Some(method));
        }
        assert_eq!(calls.place(SampledCall { by: callee.by, method: 0 }), None);
        assert_eq!((calls.place(callee), calls.all.len()), (Some(1), MOST_CALLS));
    }
}
