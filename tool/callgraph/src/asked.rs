//! What the call graph can be asked.

use std::sync::Arc;

use headwater_protocol::message::{MethodRef, ThreadStack};
use headwater_protocol::{ClassId, MethodId};
use headwater_terms::Scheme;
use headwater_terms::pattern::MethodPattern;

use super::CallGraph;
use super::compiled::Discarded;
use super::filter::JdkMethods;
use super::late::Unseen;
use super::open_calls::OpenThread;
use super::origins::{Fate, Unselected};
use super::policy::Without;
use super::record::{MethodRecord, Missed, PatternIndex};
use super::roots::{LeftAlone, RootMatch};

impl CallGraph {
    /// What is left out, to measure what it is worth.
    pub fn without(&self) -> Without {
        self.known.options.without
    }

    /// How methods are found.
    pub fn scheme(&self) -> Scheme {
        self.known.options.scheme
    }

    /// The linked classes, with their internal names.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &Arc<str>)> {
        self.known.mirrors.keys().filter_map(|key| {
            let mirror = self.known.mirrors.get(key);
            mirror.id.filter(|_| mirror.linked).map(|id| (id, &mirror.name))
        })
    }

    /// How many classes are loaded and linked.
    pub fn loaded_classes(&self) -> usize {
        self.known.mirrors.keys().filter(|key| self.known.mirrors.get(*key).linked).count()
    }

    /// Names of the classes that are loaded, but for the JDK's, and for those that the JVM makes for code.
    pub fn application_classes(&self) -> impl Iterator<Item = &Arc<str>> {
        self.known.application_classes()
    }

    /// Whether a class is the application's, as far as it is known.
    pub fn is_of_application(&self, class: ClassId) -> bool {
        self.known.mirrors.by_id(class).is_some_and(|key| !self.known.mirrors.get(key).loader.is_jdk())
    }

    /// Whether it is `java.lang.Thread`.
    pub fn is_thread(&self, class: ClassId) -> bool {
        self.known.mirrors.by_id(class).is_some_and(|key| &*self.known.mirrors.get(key).name == "java/lang/Thread")
    }

    /// Whether classes may be changed because of objects that nobody names.
    pub fn changes_unnamed(&self) -> bool {
        !self.known.roots_only
            && self.known.options.scheme != Scheme::Total
            && self.known.options.jdk != JdkMethods::All
    }

    /// The classes whose methods should be known before any is selected, for what has been called tells what will be; first those that
    /// may have roots.
    pub fn worth_listing(&self) -> Vec<ClassId> {
        self.known.worth_listing()
    }

    /// The loaded classes that have methods which are roots, and how often these have been called, as far as it is known.
    pub fn calls_of_roots(&self) -> (Vec<ClassId>, u32) {
        self.known.calls_of_roots()
    }

    /// The methods that are roots, as the target names them: before they are instrumented, as far as their classes' methods are known.
    pub fn root_methods(&self) -> Vec<MethodRef> {
        self.known.root_methods()
    }

    /// What is like the root that the user asked for, best first: methods, as they would be written for `--root`.
    pub fn near_misses(&self, pattern: &MethodPattern) -> Vec<String> {
        self.known.near_misses(pattern)
    }

    /// A linked class with methods that a root pattern names, which must not contain probes.
    pub fn left_alone(&self, pattern: &MethodPattern) -> Option<LeftAlone> {
        self.known.left_alone(pattern)
    }

    /// A class with methods that a root pattern names, in which a thread runs a loop.
    pub fn looping(&self, pattern: &MethodPattern) -> Option<String> {
        self.known.looping(pattern)
    }

    /// What each root pattern matches, in their order.
    pub fn root_matches(&self) -> Vec<RootMatch> {
        self.methods.root_matches(&self.known)
    }

    /// The instrumented methods that a root pattern stands for.
    pub fn roots_of(&self, pattern: PatternIndex) -> impl Iterator<Item = &MethodRecord> {
        self.methods.roots_of(pattern)
    }

    /// The methods that are instrumented as roots. Of a root that is some lines, no stack says whether a thread is in them.
    pub fn instrumented_roots(&self) -> Vec<MethodRef> {
        self.methods.instrumented_roots(&self.known)
    }

    /// Roots that have become known since the last call.
    pub fn take_new_roots(&mut self) -> Vec<MethodId> {
        self.methods.take_new_roots()
    }

    /// Whether a class has a root.
    pub fn has_root(&self, class: ClassId) -> bool {
        self.roots_in(class).next().is_some()
    }

    /// Whether a class has a root that is to have probes, and has none yet.
    pub fn awaits_root(&self, class: ClassId) -> bool {
        self.roots_in(class).any(|root| !root.in_place)
    }

    fn roots_in(&self, class: ClassId) -> impl Iterator<Item = &MethodRecord> {
        let methods = self.known.mirrors.by_id(class).map_or(&[][..], |key| self.methods.in_class(key)).iter();
        methods.filter_map(|id| self.methods.record(*id)).filter(|method| !method.root_of.is_empty())
    }

    /// Whether the roots have been called so often that a call of them that is open is soon over.
    pub fn roots_return_soon(&self) -> bool {
        self.likely.roots_return_soon()
    }

    /// Whether each of them is called again and again: none is called once, for as long as the program runs.
    pub fn each_root_is_called_again(&self) -> bool {
        self.likely.knows_calls && self.known.each_root_is_called_again()
    }

    /// Whether the JVM has told which methods have been called.
    pub fn knows_what_was_called(&self) -> bool {
        self.likely.knows_calls
    }

    /// All methods that were selected.
    pub fn methods(&self) -> &[MethodRecord] {
        self.methods.all()
    }

    /// How many methods are instrumented.
    pub fn instrumented(&self) -> usize {
        self.methods.all().iter().filter(|method| method.submitted && method.refused.is_none()).count()
    }

    /// Names an instrumented method as the target does.
    pub fn reference(&self, method: MethodId) -> Option<MethodRef> {
        self.methods.reference(&self.known, method)
    }

    /// Whether this stands for a call that was not expected.
    pub fn is_guard(&self, method: MethodId) -> bool {
        self.plan.guards.is_guard(method)
    }

    /// How many methods are left alone because they are trivial.
    pub fn trivial(&self) -> usize {
        self.methods.trivial().len()
    }

    /// Methods that should be instrumented and are not, with the reason.
    pub fn skipped(&self) -> &[(String, String)] {
        self.methods.skipped()
    }

    /// The methods that were reached and not selected, as far as they are known. One may be there more than once: what is surest comes first.
    pub fn passed_over(&self) -> Vec<Unselected> {
        self.plan.passed_over(&self.known, &self.methods, &self.reachable)
    }

    /// What became of a method that was selected.
    pub fn fate(&self, method: &MethodRecord) -> Fate {
        self.known.fate(method)
    }

    /// The calls on these stacks that began before their methods were instrumented.
    pub fn open_threads(&self, stacks: &[ThreadStack]) -> Vec<OpenThread> {
        self.methods.open_threads(&self.known, stacks)
    }

    /// Methods that were in one sample alone, and would not have probes without it, or not with the first: their code does not lead to them, or nobody else was
    /// seen in their class.
    pub fn chosen_by_chance(&self) -> impl Iterator<Item = MethodId> {
        self.plan.ran.by_chance(&self.methods)
    }

    /// How many methods may have been called before they were instrumented.
    pub fn late(&self) -> usize {
        self.methods.missed().count()
    }

    /// How many methods of classes that were linked ahead may have been.
    pub fn linked_late(&self) -> usize {
        self.reachable.unlinked.late()
    }

    /// Methods that may have been called before they were instrumented, and when.
    pub fn missed(&self) -> impl Iterator<Item = (MethodId, Missed)> {
        self.methods.missed()
    }

    /// Those of them that are not instrumented, or have not been entered since they were, and who calls them.
    pub fn unseen(&self) -> Vec<Unseen> {
        self.methods.unseen()
    }

    /// The classes of methods that may have been called and are not instrumented: told their methods once more, with how often they have
    /// been called, it knows which have not, or seldom ([`CallGraph::acquit_idle`]).
    pub fn classes_of_unseen(&self) -> Vec<ClassId> {
        self.methods.classes_of_unseen(&self.known)
    }

    /// Roots first, then those classes in whose code threads were seen below them, then those whose methods are the likeliest to be called, and not
    /// instrumented: what the caller has been entered of before the others.
    pub fn sort_by_urgency(&self, classes: &mut [ClassId]) {
        self.plan.sort_by_urgency(&self.known, &self.methods, classes);
    }

    /// What is discarded when these classes are changed, of what is compiled.
    pub fn discarded(&self, classes: &[ClassId]) -> Discarded {
        self.plan.ran.compiled.discarded(classes.iter().filter_map(|class| self.known.mirrors.by_id(*class)))
    }

    /// Those of some classes that are admitted, in their order, and the others: by what is discarded for all of them.
    pub fn admitted(
        &self,
        classes: Vec<ClassId>,
        admits: impl FnMut(Discarded) -> bool,
    ) -> (Vec<ClassId>, Vec<ClassId>) {
        let keys = classes.iter().map(|class| self.known.mirrors.by_id(*class));
        let mut are_admitted = self.plan.ran.compiled.admitted(keys, admits).into_iter();
        classes.into_iter().partition(|_| are_admitted.next().unwrap_or_default())
    }

    /// What is to be watched and was not before.
    pub fn take_watched(&mut self) -> Vec<MethodRef> {
        self.reachable.watched.take_new(&self.known)
    }

    /// What objects are called, by the numbers of the sites that make them.
    pub fn objects(&self) -> &[Arc<str>] {
        self.plan.sites.names()
    }

    /// Whether a method can be dropped: it is instrumented, and no root. A native one's probes are in other methods.
    pub fn can_drop(&self, method: MethodId) -> bool {
        self.methods.can_drop(&self.known, method)
    }

    /// Whether a hotswap is under way that methods are dropped by.
    pub fn is_dropping(&self) -> bool {
        self.plan.is_dropping(&self.methods)
    }

    /// What became of methods that were to be dropped, since the last call: each with whether it was restored.
    pub fn take_drops(&mut self) -> Vec<(MethodId, bool)> {
        self.plan.take_drops(&self.methods)
    }
}
