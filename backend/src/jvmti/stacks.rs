//! Threads' stacks.

use std::ptr;

use jni::sys::{jint, jmethodID};

use super::abi::{FrameInfo, StackInfo, slot};
use super::{Env, Error, Jvmti, jthread};
use crate::jni_env::Jni;

/// So many threads at most are asked for their stacks one by one, which holds no other thread up. Of more, each might have to wait for a processor
/// until it tells.
const ASKED_EACH: usize = 8;

/// What a thread does, as JVMTI knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It waits, or has ended.
    Other,
    /// It runs, or stands in line for a processor.
    Runnable,
    /// The same, or it waits, in native code.
    InNative,
}

/// A call on a stack.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// What is called; of a version that is not current, but has the same code as one that was, it may be the current one's.
    pub method: jmethodID,
    /// The index of the instruction that it is at, in the version that it runs; of a native method there is none.
    pub at: Option<usize>,
}

impl Call {
    fn of(frame: &FrameInfo) -> Call {
        Call { method: frame.method, at: usize::try_from(frame.location).ok() }
    }
}

impl Jvmti {
    /// All platform threads that live: local references.
    pub fn threads(self) -> Result<Vec<jthread>, Error> {
        let (mut count, mut threads) = (0, ptr::null_mut());
        call!(self, slot::GET_ALL_THREADS, (*mut jint, *mut *mut jthread), &mut count, &mut threads)?;
        Ok(self.take_array(threads, count))
    }

    /// What a thread does.
    pub fn state(self, thread: jthread) -> ThreadState {
        const RUNNABLE: jint = 0x4;
        const SUSPENDED: jint = 0x10_0000;
        const IN_NATIVE: jint = 0x40_0000;
        let mut state = 0;
        let told = call!(self, slot::GET_THREAD_STATE, (jthread, *mut jint), thread, &mut state);
        match (told, state & (RUNNABLE | SUSPENDED), state & IN_NATIVE) {
            (Ok(()), RUNNABLE, 0) => ThreadState::Runnable,
            (Ok(()), RUNNABLE, _) => ThreadState::InNative,
            _ => ThreadState::Other,
        }
    }

    /// A thread's stack (the current one's, if it is null), the outermost call first; at most so many of the inner calls.
    pub fn stack(self, thread: jthread, most: usize) -> Result<Vec<jmethodID>, Error> {
        Ok(self.calls(thread, most)?.iter().map(|call| call.method).collect())
    }

    /// The same, with where each call is.
    pub fn calls(self, thread: jthread, most: usize) -> Result<Vec<Call>, Error> {
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
        Ok(frames.iter().rev().map(Call::of).collect())
    }

    /// All platform threads, as local references, with their stacks as [`stack`](Jvmti::stack) has them.
    pub fn all_stacks(self, most: usize) -> Result<Vec<(jthread, Vec<jmethodID>)>, Error> {
        let methods = |calls: Vec<Call>| calls.iter().map(|call| call.method).collect();
        Ok(self.all_calls(most)?.into_iter().map(|(thread, calls)| (thread, methods(calls))).collect())
    }

    /// The same, with where each call is.
    pub fn all_calls(self, most: usize) -> Result<Vec<(jthread, Vec<Call>)>, Error> {
        let (mut count, mut stacks): (jint, *mut StackInfo) = (0, ptr::null_mut());
        let slot = slot::GET_ALL_STACK_TRACES;
        call!(self, slot, (jint, *mut *mut StackInfo, *mut jint), most as jint, &mut stacks, &mut count)?;
        Ok(self.take_stacks(stacks, count))
    }

    /// These threads' stacks, in their order, as [`stack`](Jvmti::stack) has them. That of a thread that has ended is empty.
    pub fn stacks_of(self, threads: &[jthread], most: usize) -> Vec<Vec<jmethodID>> {
        if threads.len() > ASKED_EACH
            && let Ok(stacks) = self.stacks_at_once(threads, most)
        {
            return stacks;
        }
        threads.iter().map(|thread| self.stack(*thread, most).unwrap_or_default()).collect()
    }

    /// The same, all of one moment: at a safepoint.
    fn stacks_at_once(self, threads: &[jthread], most: usize) -> Result<Vec<Vec<jmethodID>>, Error> {
        let mut stacks: *mut StackInfo = ptr::null_mut();
        call!(
            self,
            slot::GET_THREAD_LIST_STACK_TRACES,
            (jint, *const jthread, jint, *mut *mut StackInfo),
            threads.len() as jint,
            threads.as_ptr(),
            most as jint,
            &mut stacks
        )?;
        let stacks = self.take_stacks(stacks, threads.len() as jint);
        Ok(stacks.into_iter().map(|(_, calls)| calls.iter().map(|call| call.method).collect()).collect())
    }

    /// Copies and frees stacks of the JVM's, each with its thread.
    fn take_stacks(self, stacks: *mut StackInfo, count: jint) -> Vec<(jthread, Vec<Call>)> {
        let mut all = Vec::new();
        for index in 0..count.max(0) as usize {
            // SAFETY: the JVM says that there are `count` stacks; they and their frames are ours until deallocated.
            let frames = unsafe {
                let stack = *stacks.add(index);
                let frames = match stack.frames.is_null() {
                    true => &[],
                    false => std::slice::from_raw_parts(stack.frames, stack.frame_count.max(0) as usize),
                };
                (stack.thread, frames.iter().rev().map(Call::of).collect())
            };
            all.push(frames);
        }
        self.deallocate(stacks);
        all
    }

    /// Stops all threads for a moment, at a safepoint.
    pub fn safepoint(self, jni: Jni) -> Result<(), Error> {
        let thread = self.current_thread()?;
        // One thread's stack is had without a safepoint.
        let had = self.stacks_at_once(&[thread; 2], 0);
        jni.delete_local(thread);
        had.map(drop)
    }
}
