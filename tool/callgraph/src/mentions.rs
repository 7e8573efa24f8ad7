//! What code of the JDK can call at all.
//!
//! Of an object that escapes to the JDK, whatever types of the JDK's declare may be called, by all that is known of the JDK's code: it is
//! not looked through. A driver's connections, statements and results have hundreds of such methods. But a class calls nothing that its
//! constant pool does not name, and most of these are named by no class of the JDK that is loaded. So what has never run, and cannot be called
//! by what is loaded, is *withheld* until a class comes that names it: it is there before any of that class's code runs.
//!
//! What native methods of the application call is not known at all; where the graph has such calls, nothing is withheld.
//! A text among its constants counts as well: it may be the name of what is called by reflection. What can be missed so is a method that the
//! JDK calls by a name that it puts together, or out of native code, in no other way, and that had never been called when we came.

use headwater_modified_utf8 as modified_utf8;
use headwater_protocol::message::{mention, mention_by_text};
use headwater_rewriter::ClassFile;
use headwater_terms::reach::Obstacle;
use rustc_hash::{FxHashMap, FxHashSet};

use super::filter::JdkMethods;
use super::known::Known;
use super::likely::Ground;
use super::mirror::{ClassKey, Declared, Signature};
use super::policy::Mechanism;
use super::source::Source;

/// A method that objects of a class have.
pub(super) type Exposed = (ClassKey, Signature, Source);

/// The names and descriptors, and the texts, in the constant pools of the JDK's classes.
#[derive(Debug, Default)]
pub(super) struct Mentions {
    mentioned: FxHashSet<u64>,
    /// Those of the classes that were loaded when we came are among them.
    listed: bool,
    wanted: bool,
    withheld: FxHashMap<u64, Vec<Exposed>>,
    /// Those that are not, any more, and are to be selected.
    released: Vec<Exposed>,
    /// Native methods of the application are called: nobody sees what these call.
    blind: bool,
}

impl Mentions {
    /// Whether they have become wanted.
    pub(super) fn take_wanted(&mut self) -> bool {
        std::mem::take(&mut self.wanted)
    }

    /// What the JDK's loaded classes mention, each by its [`mention`].
    pub(super) fn add(&mut self, mentions: Vec<u64>) {
        self.listed = true;
        self.mentioned.extend(mentions);
    }

    /// What is no longer withheld.
    pub(super) fn take_released(&mut self) -> Vec<Exposed> {
        std::mem::take(&mut self.released)
    }

    /// For one of them more has to be known.
    pub(super) fn put_off(&mut self, released: Exposed) {
        self.released.push(released);
    }

    /// Native methods of the application's own are called: nothing is withheld any more.
    pub(super) fn stop_withholding(&mut self) {
        self.blind = true;
        let released = std::mem::take(&mut self.withheld).into_values().flatten();
        self.released.extend(released);
    }

    /// A class has been linked: what was looked at before may call its methods.
    pub(super) fn look_for_blind_spots(&mut self, known: &Known, class: ClassKey) {
        let is_native = |methods: &FxHashMap<_, Declared>| methods.values().any(|method| method.is_native());
        if !known.mirrors.get(class).loader.is_jdk() && known.mirrors.methods(class).is_some_and(is_native) {
            self.stop_withholding();
        }
    }

    /// A class of the JDK's is being loaded: what it mentions can be called from now on.
    pub(super) fn jdk_class_comes(&mut self, known: &Known, file: &ClassFile<'_>) {
        if !known.asks_for_mentions() {
            return;
        }
        let called = file.names_and_types().map(|(name, descriptor)| mention(name, descriptor));
        for mention in called.chain(file.texts().filter_map(mention_by_text)) {
            if !self.mentioned.insert(mention) {
                continue;
            }
            let released = self.withheld.remove(&mention).into_iter().flatten();
            self.released.extend(released);
        }
    }

    /// Whether a method of a class's objects is not selected on account of the JDK's code, because nothing there can call it yet. If that
    /// is not known, it is asked for.
    pub(super) fn withholds(
        &mut self,
        Ground { known, methods, likely }: &mut Ground<'_>,
        class: ClassKey,
        signature: Signature,
        from: Source,
    ) -> bool {
        let caller = from.caller;
        let may_wait = likely.knows_what_is_idle() && !known.nobody_waits && !self.blind;
        if !known.asks_for_mentions() || !may_wait {
            return false;
        }
        let (mut places, mut unknown) = (Vec::new(), Vec::new());
        known.selection(class, signature, caller, &mut places, &mut unknown);
        // Seldom is not never here: nobody tells when it is called.
        let was_called = |place: &ClassKey| known.mirrors.method(*place, signature).and_then(|it| it.calls) != Some(0);
        let is_other = |place: &ClassKey| was_called(place) || !likely.is_idle(known, methods, *place, signature);
        let has_others = places.is_empty() || places.iter().any(is_other);
        if has_others || !unknown.is_empty() {
            return false;
        }
        if !self.listed {
            self.wanted = true;
            known.lack();
            return true;
        }
        let (name, descriptor) = known.mirrors.signature(signature);
        let name = modified_utf8::encode(name);
        let called = mention(&name, &modified_utf8::encode(descriptor));
        let mentions = [Some(called), mention_by_text(&name)].into_iter().flatten();
        if mentions.clone().any(|mention| self.mentioned.contains(&mention)) {
            return false;
        }
        for place in places {
            methods.passed_over.add(place, signature, Obstacle::Withheld, from.cause);
        }
        let is_known = |it: &Exposed| (it.0, it.1, it.2.caller) == (class, signature, caller);
        for mention in mentions {
            let withheld = self.withheld.entry(mention).or_default();
            if !withheld.iter().any(is_known) {
                withheld.push((class, signature, from));
            }
        }
        true
    }
}

impl Known {
    pub(super) fn asks_for_mentions(&self) -> bool {
        self.options.jdk == JdkMethods::None && self.is_foreseeing() && !self.options.without.has(Mechanism::Withheld)
    }
}
