//! Who reaches methods, and why.

use headwater_protocol::{LoaderId, MethodId};
use headwater_rewriter::CallKind;
use headwater_terms::reach::Way;

use super::cause::Cause;
use super::filter::Caller;
use super::known::Target;
use super::mirror::{ClassKey, Signature};

/// Who reaches a method, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) caller: Caller,
    pub(super) cause: Cause,
}

impl Source {
    /// A root pattern.
    pub(super) const ROOT: Source =
        Source { caller: Caller::Root, cause: Cause { by: None, way: Way::Root, through: None } };

    pub(super) fn new(caller: Caller, by: Option<MethodId>, way: Way) -> Source {
        Source { caller, cause: Cause { by, way, through: None } }
    }

    /// The same method, in another way.
    pub(super) fn via(self, way: Way) -> Source {
        Source { cause: Cause { way, ..self.cause }, ..self }
    }

    /// The same by a type, unless one is known already.
    pub(super) fn through(self, class: ClassKey) -> Source {
        Source { cause: Cause { through: self.cause.through.or(Some(class)), ..self.cause }, ..self }
    }

    /// The same from code of other classes.
    pub(super) fn from(self, caller: Caller) -> Source {
        Source { caller, ..self }
    }
}

/// What is called, and by whom it was first.
pub(super) type Called = (Signature, Source);

/// The same without why.
pub(super) fn target((signature, from): Called) -> Target {
    (signature, from.caller)
}

/// A class as code names it: what the name means in a class of this loader's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) loader: LoaderId,
}

/// What of a virtual call's methods is not selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Spare {
    Nothing,
    /// What has never run: the call is told what it is made on.
    Idle,
    /// What has never run and is watched: nobody can be told of the call.
    Watched,
}

/// How a call leads to what it runs.
pub(super) fn way_of(kind: CallKind) -> Way {
    match kind {
        CallKind::Static | CallKind::Special => Way::Direct,
        CallKind::Virtual | CallKind::Interface => Way::Virtual,
        CallKind::HandleStatic
        | CallKind::HandleVirtual
        | CallKind::HandleSpecial
        | CallKind::HandleInterface
        | CallKind::HandleNew => Way::Handle,
    }
}
