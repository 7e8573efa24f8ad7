//! Where HotSpot keeps how much memory each thread has allocated: beside the thread, as the bytes of its former allocation buffers and its place
//! in the present one. Probes read it there, as they read a clock.
//!
//! The places are used only in a JVM that says of a thread what is found there, in
//! `com.sun.management.ThreadMXBean.getThreadAllocatedBytes`. That is tried when it is asked for, since it makes the JVM load classes.
//!
//! Why so, and at what cost: docs/decisions/allocation.md.

use jni::sys::{jlong, jmethodID, jobject};

use super::vm_structs::{Description, Memory};
use crate::jni_env::{Jni, Thrown};
use crate::jvmti::{Error, Jvmti};

/// What is allocated between comparisons: nothing, what fits into a thread's buffer, and what hardly does. In `int`s.
const ALLOCATED: [usize; 3] = [0, 100, 1 << 18];
/// So often a comparison is made before it has failed: a collection may have come between.
const ATTEMPTS: usize = 5;
/// Bytes that the JVM may allocate to say how many it has allocated.
const OWN: u64 = 1 << 16;

/// Why allocation cannot be counted in this JVM.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum Unknown {
    /// There is no description.
    #[error("this JVM does not describe where it keeps what threads have allocated")]
    Undescribed,
    /// There is nothing to compare with.
    #[error(
        "this JVM does not say what threads have allocated: it has no module java.management, or that is switched off"
    )]
    Unsaid,
    /// It says something else.
    #[error("what this JVM describes as allocated by a thread is not what it says that thread has allocated")]
    Different,
    /// A virtual thread's bytes could not be told from others'.
    #[error("this JVM does not tell when virtual threads change carriers ({0})")]
    Mounts(Error),
}

/// Offsets in HotSpot's `Thread`.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Bytes that were allocated, but for the present buffer.
    pub former: u64,
    /// Where the present buffer begins.
    pub start: u64,
    /// Where what is free of it does.
    pub top: u64,
}

/// What this JVM describes.
#[derive(Clone, Debug)]
pub struct Allocation {
    memory: Memory,
    places: Places,
}

impl Allocation {
    pub(super) fn find(memory: &Memory, described: &Description) -> Option<Allocation> {
        let buffer = described.offset("Thread", "_tlab")?;
        let in_buffer = |name| Some(buffer + described.offset("ThreadLocalAllocBuffer", name)?);
        let former = described.offset("Thread", "_allocated_bytes")?;
        let places = Places { former, start: in_buffer("_start")?, top: in_buffer("_top")? };
        Some(Allocation { memory: memory.clone(), places })
    }

    /// The places, if the JVM says the same of the current thread.
    pub fn tried(&self, jvmti: Jvmti, jni: Jni) -> Result<Places, Unknown> {
        let thread = jvmti.current_thread().map_err(|_| Unknown::Unsaid)?;
        let compared = self.compare(jni, thread);
        jni.delete_local(thread);
        compared.map(|()| self.places)
    }

    fn compare(&self, jni: Jni, thread: jobject) -> Result<(), Unknown> {
        let of_vm = jni.thread_number(thread, c"eetop").map_err(|_| Unknown::Undescribed)? as u64;
        let said = Said::find(jni, thread).map_err(|_| Unknown::Unsaid)?;
        let compared = ALLOCATED.into_iter().try_for_each(|length| {
            let numbers = jni.new_ints(&vec![0; length]).map_err(|_| Unknown::Unsaid)?;
            jni.delete_local(numbers);
            for _ in 0..ATTEMPTS {
                let read = || self.read(of_vm);
                let (before, said, after) = (read(), said.bytes(jni)?, read());
                let is_same = before.zip(after).is_some_and(|(before, after)| {
                    (before..=after).contains(&said) && after - before < OWN && said >= 4 * length as u64
                });
                if is_same {
                    return Ok(());
                }
            }
            Err(Unknown::Different)
        });
        jni.delete_local(said.bean);
        compared
    }

    /// What is found there, of the JVM's thread at this address: it must not run Java code meanwhile.
    fn read(&self, thread: u64) -> Option<u64> {
        for _ in 0..ATTEMPTS {
            let former = self.memory.word(thread + self.places.former)?;
            let used = self
                .memory
                .word(thread + self.places.top)?
                .checked_sub(self.memory.word(thread + self.places.start)?)?;
            if self.memory.word(thread + self.places.former)? == former {
                return former.checked_add(used);
            }
        }
        None
    }
}

/// What the JVM says of a thread.
struct Said {
    bean: jobject,
    method: jmethodID,
    thread: jlong,
}

impl Said {
    fn find(jni: Jni, thread: jobject) -> Result<Said, Thrown> {
        let factory = jni.find_class("java/lang/management/ManagementFactory")?;
        let get = jni.static_method(factory, "getThreadMXBean", "()Ljava/lang/management/ThreadMXBean;");
        let bean = get.and_then(|get| jni.call_static_object(factory, get));
        jni.delete_local(factory);
        let bean = bean?;
        let class = jni.object_class(bean);
        let method = jni.method(class, c"getThreadAllocatedBytes", c"(J)J");
        jni.delete_local(class);
        Ok(Said { bean, method: method?, thread: jni.thread_id(thread)? })
    }

    fn bytes(&self, jni: Jni) -> Result<u64, Unknown> {
        let said = jni.call_long(self.bean, self.method, self.thread).map_err(|_| Unknown::Unsaid)?;
        u64::try_from(said).map_err(|_| Unknown::Unsaid)
    }
}
