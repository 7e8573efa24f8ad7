//! What the call graph is told of the target, and of what the user wants. What follows comes with the next step.

use std::time::Duration;

use headwater_protocol::message::{ClassInfo, CompiledCode, MethodInfo, MethodRef, StackSamples, UnlinkedClass};
use headwater_protocol::word::Counting;
use headwater_protocol::{ClassId, MethodId};

use super::CallGraph;
use super::cause::Moment;
use super::filter::Options;
use super::mirror::{ClassKey, Mirror};
use super::policy::Mechanism;

impl CallGraph {
    /// The classes that are loaded at the beginning.
    pub fn add_classes(&mut self, infos: Vec<ClassInfo>) {
        infos.into_iter().for_each(|info| self.known.mirrors.found(info));
    }

    /// The methods that a class declares; none when the target cannot tell.
    pub fn add_methods(&mut self, class: ClassId, mut methods: Vec<MethodInfo>) {
        if self.known.options.without.has(Mechanism::Counters) {
            methods.iter_mut().for_each(|method| method.calls = None);
        }
        self.likely.knows_calls |= methods.iter().any(|method| method.calls.is_some());
        self.escape.opaque.ask_again();
        self.known.mirrors.set_methods(class, methods);
    }

    /// The file of a class that was needed.
    pub fn add_code(&mut self, class: ClassId, bytes: Option<Vec<u8>>) {
        if let Some(key) = self.known.mirrors.by_id(class) {
            self.known.code.add(key, bytes);
        }
    }

    /// What the JDK's loaded classes mention, each by its [`mention`](headwater_protocol::message::mention).
    pub fn add_mentions(&mut self, mentions: Vec<u64>) {
        self.escape.mentions.add(mentions);
    }

    /// Classes that are loaded, and not linked; some of them may be linked ahead, if threads wait for that.
    pub fn add_unlinked(&mut self, classes: Vec<UnlinkedClass>, may_link: bool) {
        self.reachable.unlinked.add(classes, may_link);
    }

    /// What the target's JIT compilers have found worth compiling, all of it.
    pub fn set_compiled(&mut self, code: CompiledCode) {
        let mirrors = &self.known.mirrors;
        let known = |method: &MethodRef| {
            Some((mirrors.by_id(method.class)?, mirrors.intern_signature(&method.name, &method.descriptor)))
        };
        let methods: Vec<_> = code.methods.iter().map(known).collect();
        if !self.likely.knows_calls {
            methods.iter().flatten().for_each(|(class, signature)| self.likely.compiled(*class, *signature));
        }
        self.plan.ran.compiled.replace(&methods, code.pieces);
    }

    /// What is compiled of these classes, and with them, is discarded: they were changed.
    pub fn are_changed(&mut self, classes: &[ClassId]) {
        let keys = classes.iter().filter_map(|class| self.known.mirrors.by_id(*class));
        self.plan.ran.compiled.are_changed(keys);
    }

    /// Methods that had run, and did not while the roots were called: they are not expected to, any more than what never has.
    pub fn add_stale(&mut self, class: ClassId, methods: &[MethodInfo]) {
        let Some(key) = self.known.mirrors.by_id(class) else { return };
        for method in methods {
            let signature = self.known.mirrors.intern_signature(&method.name, &method.descriptor);
            self.known.mirrors.is_stale(key, signature);
        }
    }

    /// Threads were seen below roots in these calls.
    pub fn ran_below_roots(&mut self, seen: &StackSamples) {
        self.plan.ran.add(&self.known, seen);
    }

    /// Whether they have been.
    pub fn has_run_below_roots(&self) -> bool {
        self.plan.ran.has_any()
    }

    /// The same by samples, which name methods (`a.b.C.m(I)V`): each stack's are these, the outermost first.
    pub fn ran_in_samples(&mut self, names: &[String], stacks: impl Iterator<Item: Iterator<Item = usize>>) {
        self.plan.ran.add_samples(&self.known, &self.methods, names, stacks);
    }

    /// Threads are in these classes' code, and stay there: HotSpot would never compile it again for a loop that goes on in it, once the class
    /// is changed.
    pub fn set_running(&mut self, classes: Vec<ClassId>) {
        self.mark(classes, |mirror| mirror.running = true);
    }

    /// Threads run loops in these classes' code: they are left alone, whoever names them.
    pub fn set_looping(&mut self, classes: Vec<ClassId>) {
        self.mark(classes, |mirror| mirror.looping = true);
    }

    fn mark(&mut self, classes: Vec<ClassId>, mark: impl Fn(&mut Mirror)) {
        for key in classes.into_iter().filter_map(|class| self.known.mirrors.by_id(class)).collect::<Vec<ClassKey>>() {
            mark(self.known.mirrors.get_mut(key));
        }
    }

    /// What it costs to hotswap one class.
    pub fn set_batch_cost(&mut self, batch: Duration) {
        self.likely.set_batch_cost(batch);
    }

    /// So many classes more can be hotswapped soon; as many as there are, if it is not said. What is likely beyond them is looked at when it is entered.
    pub fn set_room(&mut self, classes: Option<usize>) {
        self.plan.room = classes;
    }

    /// How long has been recorded, and how many hotswaps there have been.
    pub fn set_time(&mut self, now: Moment) {
        self.methods.set_time(now);
    }

    /// Nobody waits for instrumentation.
    pub fn forbid_guards(&mut self) {
        self.known.nobody_waits = true;
    }

    /// Nobody waits until these classes are hotswapped, from now on.
    pub fn went_on(&mut self, classes: &[ClassId]) {
        self.methods.went_on(&self.known, classes);
    }

    /// [Their classes'](CallGraph::classes_of_unseen) methods have just been told: what has never run was not missed, and what has run seldom not more
    /// often than that.
    pub fn acquit_idle(&mut self) {
        self.methods.acquit_idle(&self.known);
    }

    /// A batch is over, and so many threads had been in the graph then: another than the one that linked classes for it may have called
    /// them before.
    pub fn instrumented_linked(&mut self, threads: u32) {
        self.reachable.unlinked.instrumented(&self.methods, threads);
    }

    /// Changes what is wanted, before [`CallGraph::start`].
    pub fn set_options(&mut self, options: Options) {
        self.known.roots_only = options.only_roots;
        self.known.options = options;
    }

    /// From now on nothing but the roots is instrumented; the classes to be retransformed for that.
    pub fn keep_only_roots(&mut self) -> Vec<ClassId> {
        self.known.roots_only = true;
        self.plan.keep_only_roots(&self.known, &self.methods)
    }

    /// Whether only roots are put into class files for the time being; what is selected stays so.
    pub fn hold_back_others(&mut self, are_held_back: bool) {
        self.known.roots_only = are_held_back || self.known.options.only_roots;
    }

    /// From now on this is told of as well, as far as probes tell of it; the classes to be retransformed for that: the JDK's, and of instrumented methods those
    /// that the probes are in. They tell nothing more until the target is told to.
    pub fn tell(&mut self, what: Counting) -> Vec<ClassId> {
        self.plan.tell(&mut self.known, &self.methods, what)
    }

    /// The classes with instrumented methods, all of which are to get other probes.
    pub fn probe_again(&mut self) -> Vec<ClassId> {
        self.plan.probe_again(&mut self.known, &self.methods, |_, _| true)
    }

    /// From now on these methods are not instrumented any more; the classes to be retransformed for that.
    pub fn drop_methods(&mut self, methods: &[MethodId]) -> Vec<ClassId> {
        self.plan.drop_methods(&self.known, &mut self.methods, methods)
    }

    /// A hotswap is over, and what HotSpot refused has been told.
    pub fn drops_accepted(&mut self) {
        self.plan.drops_accepted(&mut self.methods);
    }
}
