//! What a session is asked: reports, its state, the methods of the target, the filters.

use std::io::{self, Write};
use std::sync::Arc;

use tokio::time::Instant;

use super::command::FilterChange;
use super::{Console, ConsoleEvent, Failure, State, is_broken_pipe, not_attached, show};
use crate::jvm::Jvm;
use crate::jvm::process::has_program;
use crate::locks::{self, LocksError};
use crate::pattern::{ClassPattern, display_name, java_name};
use crate::profile::{MethodName, tell_apart};
use crate::request::explain::Explaining;
use crate::request::locks::Waiting;
use crate::request::output::{Origin, Output};
use crate::request::sample::Sampling;
use crate::sampling::{self, SampleError};
use crate::session::SessionError;
use crate::thread_dump::{self, DumpError, DumpOptions};
use crate::threads::Taken;
use crate::watch::source::Here;
use crate::watch::watching::{Watching, selected};
use crate::watch::{self, Ending};
use crate::whole_jvm::{Recorder, price_of_recorder};

impl Console {
    /// Writes a report of the profile up to now.
    pub(super) async fn report(&mut self, output: &Output) -> Result<(), Failure> {
        let profile = self.profile_so_far().await?;
        output.check_selection(&profile).map_err(|nothing| Failure::new(1, nothing.to_string()))?;
        Ok(output.write(&profile, Origin::Recording).or_else(is_broken_pipe)?)
    }

    /// Says why methods have probes, or none.
    pub(super) async fn explain(&mut self, explaining: &Explaining) -> Result<(), Failure> {
        let profile = self.profile_so_far().await?;
        let explained = explaining.explain(&profile).map_err(|unexplained| Failure::new(1, unexplained.to_string()))?;
        Ok(explaining.write(&explained).or_else(is_broken_pipe)?)
    }

    pub(super) async fn roots(&mut self) -> Result<(), Failure> {
        let profile = self.profile_so_far().await?;
        Ok(show::roots(&profile, &mut io::stdout().lock())?)
    }

    pub(super) async fn status(&mut self) -> Result<(), Failure> {
        let what = match (&self.state, &self.jvm) {
            (State::Live { live, .. }, _) if live.is_paused() => "recording is interrupted",
            (State::Live { .. }, _) => "recording",
            (State::Attached(_), _) | (State::Detached, Some(_)) => "attached; no profile is being recorded",
            (State::Detached, None) => "not attached",
        };
        if self.last.is_none() && !matches!(self.state, State::Live { .. }) {
            return Ok(writeln!(io::stdout(), "status    {what}")?);
        }
        let profile = self.profile_so_far().await?;
        let now = Instant::now();
        let (since, events) = self.looked.unwrap_or((now - profile.duration, 0));
        let rate = profile.events.recorded.saturating_sub(events) as f64 / (now - since).as_secs_f64().max(1e-3) / 2.0;
        if let State::Live { live, .. } = &self.state {
            self.looked = Some((now, profile.events.recorded));
            let rate = (!live.is_paused()).then_some(rate);
            return Ok(show::status(&profile, what, rate, &mut io::stdout().lock())?);
        }
        Ok(show::status(&profile, what, None, &mut io::stdout().lock())?)
    }

    /// All threads of the target, which is served meanwhile.
    pub(super) async fn all_threads(
        &mut self,
        wanted: DumpOptions,
        interrupt: impl Future<Output = ()>,
    ) -> Result<Taken, Failure> {
        let jvm = self.jvm.clone().ok_or_else(not_attached)?;
        let (taken, served) = self.found_out(thread_dump::take_unless(jvm, wanted, interrupt)).await;
        served?;
        match taken {
            Err(DumpError::Interrupted) => Err(Failure::interrupted()),
            Err(error) => Err(self.failed(error.exit_code(), error.to_string()).await),
            Ok(taken) => Ok(taken),
        }
    }

    /// What is found out, while the target is served; a profile that ends goes its own way. If the target is lost meanwhile, that is the second: what was
    /// found is found all the same.
    async fn found_out<T>(&mut self, finding: impl Future<Output = T>) -> (T, Result<(), Failure>) {
        let mut finding = std::pin::pin!(finding);
        loop {
            match self.serve_until(finding.as_mut()).await {
                Ok(found) => return (found, Ok(())),
                Err(ConsoleEvent::Lost(failure)) => return (finding.await, Err(failure)),
                Err(ConsoleEvent::Complete(message)) => self.progress.say(&message),
            }
        }
    }

    /// What was to be found out about the target could not be: if it has ended, that is why.
    async fn failed(&mut self, code: u8, message: String) -> Failure {
        match &self.jvm {
            Some(jvm) if !has_program(jvm.pid) => self.lost(SessionError::TargetEnded).await,
            _ => Failure::new(code, message),
        }
    }

    /// Contended locks of the target, which is served meanwhile. Interrupted, it shows what was recorded.
    pub(super) async fn contended(
        &mut self,
        waiting: &Waiting,
        interrupt: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        let jvm = self.jvm.clone().ok_or_else(not_attached)?;
        let output = waiting.output();
        price_of_recorder(&jvm).into_iter().for_each(|price| self.progress.say(&price));
        let (taken, served) = self.found_out(locks::take(jvm, waiting.wanted(), |_| {}, interrupt)).await;
        let taken = match taken {
            Err(LocksError::Interrupted) => return Err(Failure::interrupted()),
            Err(error) => {
                served?;
                return Err(self.failed(error.exit_code(), error.to_string()).await);
            }
            Ok(taken) => taken,
        };
        let profile = self.locks.insert(taken.profile);
        output.check_selection(profile).map_err(|nothing| Failure::new(1, nothing.to_string()))?;
        output.write(profile, Origin::Recording).or_else(is_broken_pipe)?;
        served
    }

    /// What the JVM pays for its recorder, before it does.
    pub(super) fn say_price(&self, jvm: &Jvm, recorder: Recorder) {
        let price = price_of_recorder(jvm).filter(|_| recorder == Recorder::On);
        price.into_iter().for_each(|price| self.progress.say(&format!("{price}; --recorder off leaves it alone")));
    }

    /// Samples of all threads of the target, which is served meanwhile. Interrupted, it shows what was sampled.
    pub(super) async fn sample(
        &mut self,
        sampling: &Sampling,
        interrupt: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        let jvm = self.jvm.clone().ok_or_else(not_attached)?;
        let wanted = sampling.wanted(None);
        self.say_price(&jvm, wanted.recorder);
        let (taken, served) = self.found_out(sampling::take(jvm, wanted, |_| {}, interrupt)).await;
        let taken = match taken {
            Err(SampleError::Interrupted) => return Err(Failure::interrupted()),
            Err(error) => {
                served?;
                return Err(self.failed(error.exit_code(), error.to_string()).await);
            }
            Ok(taken) => taken,
        };
        let (profile, output) = (self.sampled.insert(taken.profile), sampling.output());
        output.check_selection(profile).map_err(|nothing| Failure::new(1, nothing.to_string()))?;
        output.write(profile, Origin::Recording).or_else(is_broken_pipe)?;
        served
    }

    /// Stack traces of many JVMs, or of the target, which is served meanwhile.
    pub(super) async fn watch(
        &mut self,
        targets: &[String],
        all: bool,
        watching: &Watching,
        interrupt: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        let progress = self.progress.clone();
        let say = |text: &str| progress.say(text);
        let mut wanted = selected(targets, &say).map_err(|error| Failure::new(error.exit_code(), error.to_string()))?;
        if all {
            wanted.all = true;
        } else if targets.is_empty() {
            wanted.jvms.push(self.jvm.clone().ok_or_else(not_attached)?);
        }
        let plan = watching.plan(wanted, watching.shape(|_| None));
        let (watched, served) = self.found_out(watch::run(plan, Arc::new(Here), interrupt, &say)).await;
        match watched {
            Ok(Ending::Done) => served,
            Ok(Ending::Failed) => Err(Failure::new(1, "not all that was watched could be written")),
            Ok(Ending::Nothing) => Err(Failure::interrupted()),
            Ok(Ending::Gone) => Err(Failure::new(5, watch::GONE)),
            Err(error) => Err(Failure::new(1, error)),
        }
    }

    pub(super) async fn methods(&mut self, pattern: Option<ClassPattern>, limit: usize) -> Result<(), Failure> {
        let names = match pattern {
            Some(pattern) => {
                let is_class = |class: &str| pattern.matches_class(class);
                let names = self.loaded_methods(&is_class, &|class, method| pattern.matches(class, method)).await?;
                if names.is_empty() {
                    return Err(Failure::new(4, format!("no method of a loaded class matches {pattern}")));
                }
                names
            }
            None => {
                let profile = self.profile_so_far().await?;
                let mut names: Vec<String> = profile.methods.iter().map(|method| method.display.clone()).collect();
                names.sort_unstable();
                names.dedup();
                names
            }
        };
        Ok(show::limited(&names, limit, &mut io::stdout().lock())?)
    }

    /// Methods of the target by class and name: asked for, so that also what is not instrumented is there.
    pub(super) async fn loaded_methods(
        &mut self,
        is_class: &dyn Fn(&str) -> bool,
        is_wanted: &dyn Fn(&str, &str) -> bool,
    ) -> Result<Vec<String>, Failure> {
        /// Classes that are asked for at once.
        const BATCH: usize = 1_000;
        let Some(session) = self.session() else { return Err(not_attached()) };
        let known = session.graph().classes().filter(|(_, name)| is_class(name));
        let classes: Vec<_> = known.map(|(id, name)| (id, name.clone())).collect();
        let mut names = Vec::new();
        for batch in classes.chunks(BATCH) {
            let Some(session) = self.session() else { return Err(not_attached()) };
            let found = match session.methods_of(batch.iter().map(|(id, _)| *id).collect()).await {
                Ok(found) => found,
                Err(error) => return Err(self.lost(error).await),
            };
            for (id, methods) in found {
                let Some((_, class)) = batch.iter().find(|(known, _)| *known == id) else { continue };
                let wanted = methods.iter().filter(|method| is_wanted(class, &method.name));
                names.extend(wanted.map(|method| MethodName {
                    machine: java_name(class, &method.name, &method.descriptor),
                    display: display_name(class, &method.name, &method.descriptor),
                }));
            }
        }
        tell_apart(&mut names);
        let mut names: Vec<String> = names.into_iter().map(|name| name.display).collect();
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    pub(super) fn filter(&mut self, change: Option<FilterChange>) -> Result<(), Failure> {
        match change {
            None => {}
            Some(FilterChange::Include { patterns }) => self.include.extend(patterns),
            Some(FilterChange::Exclude { patterns }) => self.exclude.extend(patterns),
            Some(FilterChange::Clear) => {
                self.include.clear();
                self.exclude.clear();
            }
        }
        show::filters(&self.include, &self.exclude, &mut io::stdout().lock())?;
        if matches!(self.state, State::Live { .. }) {
            self.progress.say("the filters hold from the next `profile` on");
        }
        Ok(())
    }
}
