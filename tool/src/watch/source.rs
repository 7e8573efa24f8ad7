//! Where JVMs and their threads come from: this machine, or a play of it in tests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::attach::{AttachError, TargetHost};
use crate::jvm::{self, Jvm};
use crate::thread_dump::{self, DumpError};
use crate::threads::Dump;

/// Why a JVM has not told of its threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unasked {
    /// It has ended.
    Gone,
    /// It will not; a sentence.
    Refused(String),
    /// It did not this time; a sentence.
    Failed(String),
}

/// JVMs, and what they are asked. All of it blocks.
pub(crate) trait Source: Send + Sync + 'static {
    /// Those that are running.
    fn jvms(&self) -> Vec<Jvm>;

    /// Takes hold of one.
    fn hold(&self, jvm: &Jvm) -> Result<Arc<dyn JvmHandle>, Unasked>;
}

/// A hold on one JVM.
pub(crate) trait JvmHandle: Send + Sync {
    /// All its threads.
    fn dump(&self) -> Result<Dump, Unasked>;

    /// What it is being asked is wanted no more, as long as this is so.
    fn set_given_up(&self, is_given_up: bool);
}

/// The JVMs of this machine, by their attach mechanism.
#[derive(Debug)]
pub(crate) struct Here;

impl Source for Here {
    fn jvms(&self) -> Vec<Jvm> {
        jvm::list()
    }

    fn hold(&self, jvm: &Jvm) -> Result<Arc<dyn JvmHandle>, Unasked> {
        TargetHost::of(jvm).map(|host| Arc::new(host) as Arc<dyn JvmHandle>).map_err(Unasked::of)
    }
}

impl JvmHandle for TargetHost {
    fn dump(&self) -> Result<Dump, Unasked> {
        thread_dump::plain(self).map_err(|error| match error {
            DumpError::Attach(error) => Unasked::of(error),
            other => Unasked::Failed(other.to_string()),
        })
    }

    fn set_given_up(&self, is_given_up: bool) {
        self.abandoned().store(is_given_up, Ordering::Release);
    }
}

impl Unasked {
    fn of(error: AttachError) -> Unasked {
        match error {
            AttachError::Gone { .. } => Unasked::Gone,
            AttachError::NotAJvm { .. }
            | AttachError::NotPermitted { .. }
            | AttachError::Disabled { .. }
            | AttachError::Refused { .. }
            | AttachError::Squatted { .. }
            | AttachError::NoTmp { .. } => Unasked::Refused(error.to_string()),
            // What is stopped, overloaded, only just starting or short of something may answer later.
            _ => Unasked::Failed(error.to_string()),
        }
    }
}
