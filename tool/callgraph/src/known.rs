//! What is known of the target's classes, what the user wants, and what has to be known yet.

use headwater_protocol::{ClassId, LoaderId};
use headwater_rewriter::ClassFile;
use headwater_terms::Scheme;
use rustc_hash::FxHashSet;

use super::code_store::CodeStore;
use super::filter::{Caller, Options};
use super::mirror::{ClassKey, Meant, Mirrors, Signature};

/// A method that is called, and by whom.
pub(super) type Target = (Signature, Caller);

/// A class file that is rewritten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rewritten<'f> {
    /// Its class, unless that is being loaded.
    pub(super) class: Option<ClassId>,
    pub(super) loader: LoaderId,
    /// Internal.
    pub(super) name: &'f str,
    pub(super) file: &'f ClassFile<'f>,
}

/// What all else goes by.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) options: Options,
    /// Only roots are instrumented any more.
    pub(super) roots_only: bool,
    /// Nobody waits for instrumentation: a call behind a guard would be made before it is.
    pub(super) nobody_waits: bool,
    pub(super) mirrors: Mirrors,
    pub(super) code: CodeStore,
    /// Classes whose methods the current work needs.
    pub(super) needed: FxHashSet<ClassKey>,
    /// How often methods were needed and not known: unchanged, a step is complete.
    pub(super) needs: u64,
}

impl Known {
    /// Nothing but what is wanted.
    pub(super) fn new(options: Options) -> Known {
        Known {
            roots_only: options.only_roots,
            nobody_waits: false,
            options,
            mirrors: Mirrors::default(),
            code: CodeStore::default(),
            needed: FxHashSet::default(),
            needs: 0,
        }
    }

    /// Whether nothing has to be asked of the JVM before work goes on.
    pub(super) fn is_complete(&self) -> bool {
        self.needed.is_empty() && self.code.is_complete()
    }

    /// The class that a file is of.
    pub(super) fn class_of(&self, rewritten: Rewritten<'_>) -> Option<ClassKey> {
        match rewritten.class {
            Some(class) => self.mirrors.by_id(class),
            None => self.mirrors.being_loaded(rewritten.loader, rewritten.name),
        }
    }

    pub(super) fn is_inside(&self, key: ClassKey, caller: Caller) -> bool {
        let mirror = self.mirrors.get(key);
        self.options.admits_class(&mirror.name, mirror.loader, caller)
    }

    /// Whether a class's code is there; if not, it is asked for.
    pub(super) fn has_code(&mut self, key: ClassKey) -> bool {
        let mirror = self.mirrors.get(key);
        self.code.has(key, mirror.linked && mirror.id.is_some())
    }

    pub(super) fn is_foreseeing(&self) -> bool {
        self.options.look_ahead && self.options.scheme == Scheme::Lazy && !self.roots_only
    }

    /// No class of this name is loaded where `class` would see it.
    pub(super) fn is_still_to_come(&self, name: &str, class: ClassKey) -> bool {
        self.mirrors.meant(name, self.mirrors.get(class).loader) == Meant::Others(&[])
    }

    pub(super) fn need(&mut self, key: ClassKey) {
        self.needs += 1;
        self.needed.insert(key);
    }
}
