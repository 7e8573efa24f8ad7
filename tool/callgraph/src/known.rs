//! What is known of the target's classes, what the user wants, and what has to be known yet.

use std::cell::{Cell, RefCell};

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

/// What all else goes by: changed by what is told, and read by whoever selects.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) options: Options,
    /// Only roots are instrumented any more.
    pub(super) roots_only: bool,
    /// Nobody waits for instrumentation: a call behind a guard would be made before it is.
    pub(super) nobody_waits: bool,
    pub(super) mirrors: Mirrors,
    pub(super) code: CodeStore,
    questions: Questions,
}

/// What the current work needs and is not known. Who reads what is known notes it down; nothing else is changed by that.
#[derive(Debug, Default)]
struct Questions {
    /// Classes whose methods it needs.
    classes: RefCell<FxHashSet<ClassKey>>,
    /// How often something was needed: unchanged, a step is complete.
    times: Cell<u64>,
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
            questions: Questions::default(),
        }
    }

    /// Whether nothing has to be asked of the JVM before work goes on.
    pub(super) fn is_complete(&self) -> bool {
        self.questions.classes.borrow().is_empty() && self.code.is_complete()
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
    pub(super) fn has_code(&self, key: ClassKey) -> bool {
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

    /// A class's methods are needed.
    pub(super) fn need(&self, key: ClassKey) {
        self.lack();
        self.questions.classes.borrow_mut().insert(key);
    }

    /// Something is needed that is asked for.
    pub(super) fn lack(&self) {
        self.questions.times.set(self.needs() + 1);
    }

    /// How often something was: unchanged, nothing was between two calls.
    pub(super) fn needs(&self) -> u64 {
        self.questions.times.get()
    }

    /// The classes whose methods are to be asked for now.
    pub(super) fn take_needed(&mut self) -> Vec<ClassId> {
        let needed = self.questions.classes.get_mut().drain();
        needed.filter_map(|key| self.mirrors.get(key).id).collect()
    }

    /// What was not known is asked for when it is needed again.
    pub(super) fn ask_later(&self) {
        self.questions.classes.borrow_mut().clear();
    }
}
