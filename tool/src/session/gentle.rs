//! Limits of what a profile takes of the target's time, all its waits and pauses together.
//!
//! A single pause is short and a single wait has its deadline, but a large program has hundreds of the ones and thousands of the others. So the JVM is
//! stopped for a small part of the time only, little compiled code is discarded at once ([`Allowance`]), and each thread waits for a small part of its own
//! ([`Patience`], kept by the agent). Within that, discovery
//! is exact: a thread that enters a method waits until what it calls is instrumented. What would take more is instrumented later, by the
//! agent's own thread, as soon as the limit allows, and meanwhile threads tell what they reveal and go on. What that misses is known by method
//! ([`CallGraph::missed`](crate::callgraph::CallGraph::missed)).

use std::cell::Cell;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use headwater_protocol::ClassId;
use headwater_protocol::message::{Command, Patience, Reply, Reveal};
use rustc_hash::FxBuildHasher;

use super::allowance::{Allowance, CompilerTime, MOST_BEHIND, Taking};
use super::{LIST_AT_ONCE, Session, SessionError, unexpected};
use crate::callgraph::Discarded;

/// Whether a profile keeps to limits of what it takes of the target's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gentle {
    /// It does.
    #[default]
    On,
    /// It takes what it needs: only single waits have a deadline.
    Off,
}

/// How long a thread of the target waits for one answer before it goes on without.
pub const TARGET_DEADLINE: Duration = Duration::from_secs(3);
/// The same where the target may be held up: a hotswap of the JDK, verified, on a machine with ten times as many threads as processors, took longer than that.
const UNHURRIED_DEADLINE: Duration = Duration::from_secs(12);
/// What each thread of the target waits.
pub(super) const PATIENCE: Patience = Patience { most_ms: 300, per_mille: 50 };
/// Threads wait again when so many batches are allowed, and nothing has been left over for [`QUIET`].
const ROOM_FOR: f64 = 2.0;
const QUIET: Duration = Duration::from_secs(1);
/// What is compiled has not changed much for so long, but for what was discarded.
pub(super) const KNOWN: Duration = Duration::from_secs(2);
/// Of all that may be discarded at once such a part is worth a hotswap.
const LITTLE: f64 = 0.02;
/// What threads tell that do not wait is seen to so long after the first of it: each time all that is left over is looked through.
const TOGETHER: Duration = Duration::from_millis(25);

/// What becomes of classes for the compiled code that their change discards.
#[derive(Debug, Default)]
pub(super) struct CompiledSoon {
    /// There is room for these,
    pub(super) first: Vec<ClassId>,
    /// those wait for it,
    pub(super) others: Vec<ClassId>,
    /// and these are never changed, because each by itself would take too much of the program's time.
    pub(super) too_much: Vec<ClassId>,
}

/// What a session knows of compiled code.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    /// When it was told last.
    listed: Option<Instant>,
    /// What part of all that may be changed at once the classes with this hash are.
    latest: Cell<Option<(u64, f64)>>,
}

impl Session {
    /// Keeps to the limits from now on, or to none. The profile was announced to take so long.
    pub fn be(&mut self, gentle: Gentle, announced: Duration) {
        self.deadline = if gentle == Gentle::On { TARGET_DEADLINE } else { UNHURRIED_DEADLINE };
        self.allowance = (gentle == Gentle::On).then(|| Allowance::new(Instant::now(), announced));
    }

    /// Limits what code is discarded at once, as compilers have fared so far.
    pub fn limit_code(&mut self, compilers: &CompilerTime) {
        log::debug!("before anything is changed: {compilers:?}");
        self.allowance.iter_mut().for_each(|allowance| allowance.limit_code(compilers));
    }

    /// The limits, where there is one of code.
    pub(super) fn limit_of_code(&self) -> Option<&Allowance> {
        self.allowance.as_ref().filter(|allowance| allowance.limits_code())
    }

    /// Whether that is known since less than that, where it is limited.
    fn knows_what_is_compiled(&self, known_since: Duration) -> bool {
        self.limit_of_code().is_none() || self.compiled.listed.is_some_and(|listed| listed.elapsed() < known_since)
    }

    /// Learns what is compiled by now, where that is limited, and is not known since less than that.
    pub(super) async fn learn_what_is_compiled(&mut self, known_since: Duration) -> Result<(), SessionError> {
        if self.knows_what_is_compiled(known_since) {
            return Ok(());
        }
        match self.list_compiled().await {
            Err(SessionError::Agent { what, reason }) => log::warn!("{what}: {reason}"),
            listed => listed?,
        }
        Ok(())
    }

    /// Learns what is compiled by now.
    pub(super) async fn list_compiled(&mut self) -> Result<(), SessionError> {
        self.compiled.listed = Some(Instant::now());
        match self.command(Command::ListCompiled, "list compiled methods").await? {
            Reply::Compiled(code) => {
                self.graph.set_compiled(code);
                Ok(())
            }
            other => Err(unexpected("list compiled methods", &other)),
        }
    }

    /// How many of these classes may be changed at once, at most, if not all of them for sure.
    pub(super) fn classes_at_once_of(&self, mut classes: Vec<ClassId>) -> Option<usize> {
        let allowance = self.limit_of_code()?;
        if allowance.part(Discarded { time: 1.0, ..self.graph.discarded(&classes) }) <= 1.0 {
            return None;
        }
        self.graph.sort_by_urgency(&mut classes);
        Some(self.compiled_soon(classes).first.len())
    }

    /// How many classes were changed at once, if others had to wait for compilers.
    pub fn held_back_to(&self) -> Option<usize> {
        self.hotswaps.are_held_back.then_some(self.hotswaps.most_at_once)
    }

    /// What is left over has to wait: for compilers, perhaps.
    fn hold_back(&mut self) {
        let taking = self.taking_of(&self.left_over);
        let waits = |allowance: &Allowance| allowance.waits_for_compilers(taking, Instant::now());
        self.hotswaps.are_held_back |= self.allowance.as_ref().is_some_and(waits);
    }

    /// Those of some classes, the most urgent first, that there is room for. Whoever names roots wants all of them.
    pub(super) fn compiled_soon(&self, classes: Vec<ClassId>) -> CompiledSoon {
        let Some(allowance) = &self.allowance else {
            return CompiledSoon { first: classes, ..CompiledSoon::default() };
        };
        let now = Instant::now();
        let (room, room_alone) = (allowance.room(now), allowance.room_alone(now));
        let roots = classes.iter().take_while(|class| self.graph.awaits_root(**class)).count();
        let (mut count, mut so_far) = (0, 0.0_f64);
        let (mut first, mut others) = self.graph.admitted(classes, |of| {
            count += 1;
            let part = allowance.part(of);
            let is_admitted = count <= roots || part <= room.max(so_far);
            if is_admitted {
                so_far = part;
            }
            is_admitted
        });
        let mut too_much = Vec::new();
        if first.is_empty() {
            // So that it goes on. What takes too much of the program's time by itself is never changed.
            let part = |class: &ClassId| allowance.part(self.graph.discarded(&[*class]));
            too_much = others.extract_if(.., |class| part(class) > room_alone).collect();
            first.extend((!others.is_empty()).then(|| others.remove(0)));
            too_much.retain(|class| part(class) > MOST_BEHIND);
        }
        CompiledSoon { first, others, too_much }
    }

    /// The classes that were left as they are because of what the JVM would discard for each by itself.
    pub fn too_much(&self) -> impl Iterator<Item = String> {
        let classes = self.graph.classes().filter(|(id, _)| self.hotswaps.too_much.contains(id));
        classes.map(|(_, name)| name.replace('/', "."))
    }

    /// What hotswapping these classes takes, or as many of them as may be in one batch. Whoever names roots wants all of them: those do not wait for compilers.
    fn taking_of(&self, classes: &[ClassId]) -> Taking {
        let pause = self.cost.of(classes.len().min(self.cost.most_classes()));
        let has_roots = classes.iter().any(|class| self.graph.awaits_root(*class));
        Taking { pause, code: if has_roots { 0.0 } else { self.code_of(classes) } }
    }

    /// What part of all that may be changed at once these are.
    pub(super) fn code_of(&self, classes: &[ClassId]) -> f64 {
        let Some(allowance) = self.limit_of_code() else { return 0.0 };
        let state = (self.hotswaps.totals.batches, self.compiled.listed);
        let key = FxBuildHasher.hash_one((classes, state));
        // It is asked of all that is left over at each message.
        match self.compiled.latest.get() {
            Some((of, code)) if of == key => code,
            _ => {
                let code = allowance.part(self.graph.discarded(classes));
                self.compiled.latest.set(Some((key, code)));
                code
            }
        }
    }

    /// How many classes it is worth looking for: what a batch has room for, and a choice; none, where nothing more will be instrumented. `None`
    /// where there are no limits.
    pub(super) fn room(&self) -> Option<usize> {
        const CHOICE: f64 = 1.5;
        if self.stopping {
            return Some(0);
        }
        let (allowance, now) = (self.allowance.as_ref()?, Instant::now());
        let one = Taking { pause: self.cost.of(1), code: LITTLE };
        let is_in_vain = !allowance.is_worth_while(now) && !allowance.allows(one, now);
        let room = if is_in_vain { 0 } else { (CHOICE * self.cost.most_classes() as f64) as usize };
        Some(room.saturating_sub(self.left_over.len()))
    }

    /// Recording begins, for so long; as long as it takes, if it is not said.
    pub(super) fn recording_for(&mut self, duration: Option<Duration>) {
        if let Some(allowance) = &mut self.allowance {
            allowance.recording_for(duration, Instant::now());
        }
        if let (Some(governor), Some(duration)) = (self.governor_mut(), duration) {
            governor.ends_after(duration);
        }
    }

    /// Whether what was just told is seen to later, with what is told meanwhile: nobody waits.
    pub(super) fn puts_off(&mut self) -> bool {
        let Some(allowance) = self.allowance.as_mut().filter(|_| self.is_in_background && self.queue.is_empty()) else {
            return false;
        };
        allowance.put_off.get_or_insert_with(|| Instant::now() + TOGETHER);
        true
    }

    /// All that was told is seen to.
    pub(super) fn puts_off_nothing(&mut self) {
        if let Some(allowance) = &mut self.allowance {
            allowance.put_off = None;
        }
    }

    /// When something is to be seen to that nobody tells of.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let put_off = self.allowance.as_ref().and_then(|allowance| allowance.put_off);
        self.next_batch_due().into_iter().chain(put_off).min()
    }

    /// When classes that are left over may be hotswapped, if that is not at once.
    fn next_batch_due(&self) -> Option<Instant> {
        let allowance = self.allowance.as_ref().filter(|_| !self.stopping && self.running.is_none())?;
        let now = Instant::now();
        if !self.left_over.is_empty() {
            let taking = self.taking_of(&self.left_over);
            let due = allowance.due(taking, now);
            // What may be done by now and is not worth while any more is never done.
            let is_to_be =
                |due: &Instant| allowance.is_worth_while(*due) && (*due > now || allowance.allows(taking, now));
            return Some(due).filter(is_to_be);
        }
        // Then threads may wait again.
        let exceeded = allowance.exceeded.filter(|_| self.is_in_background)?;
        let room = Taking { pause: self.cost.of(1).mul_f64(ROOM_FOR), code: 1.0 };
        Some(allowance.due(room, now).max(exceeded + QUIET))
    }

    /// Whether the next batch of these classes has to wait.
    pub(super) fn must_wait_for(&self, classes: &[ClassId]) -> bool {
        let taking = self.taking_of(classes);
        let allows = |allowance: &Allowance| allowance.allows(taking, Instant::now());
        !classes.is_empty() && !self.allowance.as_ref().is_none_or(allows)
    }

    /// When a batch of so many classes may be hotswapped that somebody has asked for, if that is not now.
    pub(super) fn allowed_from(&self, classes: usize) -> Option<Instant> {
        let (now, asked_for) = (Instant::now(), Taking { pause: self.cost.of(classes), code: 0.0 });
        let due = self.allowance.as_ref()?.due(asked_for, now);
        (due > now).then_some(due)
    }

    /// Has the agent's own thread execute a hotswap, and those that it entails, as far as the limits allow; the rest is left over. Nobody waits for it.
    pub(super) async fn hotswap_in_background(&mut self, mut classes: Vec<ClassId>) -> Result<(), SessionError> {
        self.nobody_waits_for(&classes);
        if !classes.is_empty() && !self.must_wait_for(&classes) {
            self.learn_what_is_compiled(KNOWN).await?;
        }
        if self.must_wait_for(&classes) {
            self.left_over.extend(classes);
            return self.exceed().await;
        }
        // Where there is a choice, what runs now goes before what ran at the beginning.
        let is_choice = classes.len() > self.cost.most_classes() || self.code_of(&classes) > 1.0;
        if self.allowance.is_some() && self.is_in_background && is_choice {
            self.look_below_roots().await?;
            let seen = self.select_seen().await?;
            self.nobody_waits_for(&seen);
            classes.extend(seen);
            classes.sort_unstable();
            classes.dedup();
        }
        self.hotswap_by_agent(classes).await
    }

    /// What is called next in these classes is not seen until they are instrumented.
    pub(super) fn nobody_waits_for(&mut self, classes: &[ClassId]) {
        self.tell_time();
        self.graph.went_on(classes);
    }

    /// A limit is reached: threads wait no more, for a while.
    pub(super) async fn exceed(&mut self) -> Result<(), SessionError> {
        if let Some(allowance) = &mut self.allowance {
            allowance.exceeded = Some(Instant::now());
        }
        self.hold_back();
        if self.is_in_background || self.stopping {
            return Ok(());
        }
        self.is_in_background = true;
        log::debug!("a limit is reached: threads wait no more");
        self.command(Command::Reveal(Reveal::Background), "go on in the background").await.map(|_| ())
    }

    /// Lets threads wait again, if they do not and may.
    pub(super) async fn relent(&mut self) -> Result<(), SessionError> {
        let is_over = |due: Instant| due <= Instant::now();
        let is_quiet = self.queue.is_empty() && self.left_over.is_empty() && self.running.is_none();
        if !self.is_in_background || self.stopping || !is_quiet || !self.next_batch_due().is_some_and(is_over) {
            return Ok(());
        }
        if !self.knows_what_is_compiled(KNOWN) {
            // Nobody waits for that yet. What is told meanwhile has its turn, and then this again.
            return self.learn_what_is_compiled(KNOWN).await;
        }
        self.is_in_background = false;
        log::debug!("threads wait again");
        self.command(Command::Reveal(Reveal::Blocking), "wait again").await.map(|_| ())
    }

    /// When nothing is recorded any more: learns which of the methods that nobody waited for, and that were never instrumented, have not been called.
    pub async fn acquit_idle(&mut self) -> Result<(), SessionError> {
        if !self.graph.knows_what_was_called() {
            return Ok(());
        }
        for classes in self.graph.classes_of_unseen().chunks(LIST_AT_ONCE) {
            self.list_methods(classes.to_vec()).await?;
        }
        self.graph.acquit_idle();
        Ok(())
    }

    /// Has methods watched that the call graph leaves alone as long as they do not run.
    pub(super) async fn watch_new(&mut self) -> Result<(), SessionError> {
        let methods = self.graph.take_watched();
        if methods.is_empty() || self.stopping {
            return Ok(());
        }
        self.command(Command::Watch { methods }, "watch methods").await.map(|_| ())
    }
}
