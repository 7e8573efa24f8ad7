//! What threads run below the roots, as stacks show it: which classes are hotswapped first is decided by that.

use std::collections::HashMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use headwater_protocol::ClassId;
use headwater_protocol::message::{MethodRef, Reply};
use jni::sys::jmethodID;

use crate::jni_env::Jni;
use crate::jvmti::Error;
use crate::target::Target;

/// Calls on a stack that are looked at, the innermost: where the root is further out, the stack says nothing.
const DEPTH: usize = 1024;
/// Between two looks. A look is a safepoint.
const INTERVAL: Duration = Duration::from_millis(5);

/// Looks at all threads' stacks so often: for each class, on how many stacks it was below the outermost call of one of these methods, or that call's.
pub fn sample(jni: Jni, target: &Target, roots: &[MethodRef], looks: u32) -> Result<Reply, Error> {
    let mut known: HashMap<usize, Option<(ClassId, bool)>> = HashMap::new();
    let mut call_of = |method: jmethodID| {
        let call = known.entry(method as usize).or_insert_with(|| {
            let class = target.jvmti.declaring_class(method).ok()?;
            let id = target.classes.id(class);
            jni.delete_local(class);
            let id = id.ok()?;
            // Few classes have a root, and names cost more than numbers.
            let may_be_root = roots.iter().any(|root| root.class == id);
            let is_root =
                may_be_root && target.classes.reference(jni, method).is_some_and(|method| roots.contains(&method));
            Some((id, is_root))
        });
        *call
    };
    let (mut classes, mut paused): (HashMap<ClassId, u32>, _) = (HashMap::new(), Duration::ZERO);
    for look in 0..looks {
        if look > 0 {
            sleep(INTERVAL);
        }
        let start = Instant::now();
        let stacks = target.jvmti.all_stacks(DEPTH)?;
        paused += start.elapsed();
        for (thread, stack) in stacks {
            jni.delete_local(thread);
            let calls = stack.into_iter().filter_map(&mut call_of);
            let mut below: Vec<ClassId> = calls.skip_while(|(_, is_root)| !is_root).map(|(class, _)| class).collect();
            below.sort_unstable();
            below.dedup();
            below.into_iter().for_each(|class| *classes.entry(class).or_default() += 1);
        }
    }
    Ok(Reply::Sampled { classes: classes.into_iter().collect(), paused_ns: paused.as_nanos() as u64 })
}
