//! What a session is asked: reports, its state, the methods of the target, the filters.

use std::io::{self, Write};

use tokio::time::Instant;

use super::command::FilterChange;
use super::{Console, Event, Failure, State, is_broken_pipe, not_attached, show};
use crate::locks::{self, LocksError};
use crate::pattern::{ClassPattern, display_name, java_name};
use crate::profile::{MethodName, tell_apart};
use crate::request::locks::Waiting;
use crate::request::output::{Origin, Output};
use crate::thread_dump::{self, DumpError, Wanted};
use crate::threads::Taken;
use crate::whole_jvm::{Whole, price_of_recorder};

impl Console {
    /// Writes a report of the profile up to now.
    pub(super) async fn report(&mut self, output: &Output) -> Result<(), Failure> {
        let profile = self.profile_so_far().await?;
        output.check_selection(&profile).map_err(|nothing| Failure::new(1, nothing.to_string()))?;
        Ok(output.write(&profile, Origin::Recording).or_else(is_broken_pipe)?)
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
        wanted: Wanted,
        interrupt: impl Future<Output = ()>,
    ) -> Result<Taken, Failure> {
        let jvm = self.jvm.clone().ok_or_else(not_attached)?;
        let mut taking = std::pin::pin!(thread_dump::take_unless(jvm, wanted, interrupt));
        loop {
            match self.serve_until(taking.as_mut()).await {
                Ok(Err(DumpError::Interrupted)) => return Err(Failure::interrupted()),
                Ok(taken) => return taken.map_err(|error| Failure::new(error.exit_code(), error.to_string())),
                Err(Event::Lost(failure)) => return Err(failure),
                Err(Event::Complete(message)) => self.progress.say(&message),
            }
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
        let mut taking = std::pin::pin!(locks::take(jvm, waiting.wanted(), |_| {}, interrupt));
        let Whole { profile, .. } = loop {
            match self.serve_until(taking.as_mut()).await {
                Ok(Err(LocksError::Interrupted)) => return Err(Failure::interrupted()),
                Ok(taken) => break taken.map_err(|error| Failure::new(error.exit_code(), error.to_string()))?,
                Err(Event::Lost(failure)) => return Err(failure),
                Err(Event::Complete(message)) => self.progress.say(&message),
            }
        };
        output.check_selection(&profile).map_err(|nothing| Failure::new(1, nothing.to_string()))?;
        output.write(&profile, Origin::Recording).or_else(is_broken_pipe)?;
        self.locks = Some(profile);
        Ok(())
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
