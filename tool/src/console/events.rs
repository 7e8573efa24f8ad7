//! `events`: what happens in the target, told beside everything else.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use headwater_protocol::message::events::Kinds;
use rustyline::ExternalPrinter;

use super::{Console, Failure, NO_EVENTS, not_attached};
use crate::events::names;
use crate::events::running::{Over, Running};
use crate::events::summary::Summary;
use crate::jvm::Jvm;
use crate::outlet::{Lines, Sink};
use crate::profiling::ProfileError;
use crate::request::events::{Change, Telling};
use crate::session::SessionError;

/// Writes to the terminal above the line that the user may be typing.
#[derive(Clone)]
pub(super) struct Printer(pub(super) Arc<Mutex<Box<dyn ExternalPrinter + Send>>>);

impl Printer {
    /// Whether it could be written.
    pub(super) fn print(&self, text: String) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).print(text).is_ok()
    }
}

impl std::fmt::Debug for Printer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Printer")
    }
}

impl Sink for Printer {
    fn write(&mut self, lines: &[Arc<str>]) -> io::Result<()> {
        let text = lines.iter().map(|line| format!("{line}\n")).collect();
        if self.print(text) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }
}

/// What of the target is told.
#[derive(Debug, Default)]
pub(super) struct Happening {
    running: Option<Running>,
    on: Kinds,
    /// What there was, when it ended.
    last: Option<Summary>,
    /// At a prompt.
    pub(super) printer: Option<Printer>,
}

impl Happening {
    /// Of another target there was nothing yet.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    fn stdout(&self) -> Box<dyn Sink> {
        match &self.printer {
            Some(printer) => Box::new(printer.clone()),
            None => Box::new(Lines(io::stdout())),
        }
    }
}

impl Console {
    /// Switches kinds of events on or off, or shows what has happened.
    pub(super) async fn events(
        &mut self,
        telling: &Telling,
        interrupt: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        let jvm = self.jvm.clone().ok_or_else(not_attached)?;
        self.events_may_be_over().await;
        let Some(change) = telling.change().map_err(|message| Failure::new(2, message))? else {
            return self.show_events().await;
        };
        let wanted = change.of(self.happening.on);
        if wanted.is_empty() {
            return self.leave_events().await;
        }
        tokio::select! {
            switched = self.switch_events(&jvm, telling, wanted) => switched,
            () = interrupt => Err(Failure::interrupted()),
        }
    }

    async fn switch_events(&mut self, jvm: &Jvm, telling: &Telling, wanted: Kinds) -> Result<(), Failure> {
        let destination = telling.destination();
        let is_on = matches!(telling.change(), Ok(Some(Change::On(_))));
        let teller = match &self.happening.running {
            Some(_) if !(is_on && destination.is_given()) => None,
            _ => Some(destination.teller(jvm.pid, self.happening.stdout())?),
        };
        match (&self.happening.running, teller) {
            (Some(running), Some(teller)) => running.go_on_as(teller),
            (None, Some(teller)) => self.happening.running = Some(Running::begin(jvm, teller).await?),
            (_, None) => {}
        }
        let Some(running) = &mut self.happening.running else { return Ok(()) };
        match running.switch(wanted).await {
            Ok(remarks) => {
                remarks.iter().for_each(|remark| self.progress.say(remark));
                self.happening.on = wanted;
                self.progress.say(&format!("telling of {}", names(wanted)));
                Ok(())
            }
            Err(error) => {
                if matches!(&error, ProfileError::Session(error) if error.is_final()) || self.happening.on.is_empty() {
                    self.happening.running = None;
                    self.happening.on = Kinds::default();
                }
                Err(error.into())
            }
        }
    }

    async fn show_events(&mut self) -> Result<(), Failure> {
        let summary = self.what_happened().await.ok_or_else(|| Failure::new(1, NO_EVENTS))?;
        let on = if self.happening.on.is_empty() { "nothing".to_owned() } else { names(self.happening.on) };
        let mut out = io::stdout().lock();
        writeln!(out, "on        {on}")?;
        summary.lines().iter().try_for_each(|line| writeln!(out, "{line}"))?;
        Ok(())
    }

    /// What has happened, up to now or to the end of the telling.
    pub(super) async fn what_happened(&mut self) -> Option<Summary> {
        self.events_may_be_over().await;
        match &self.happening.running {
            Some(running) => running.summary().await,
            None => self.happening.last.clone(),
        }
    }

    /// Ends the telling, if there is any.
    pub(super) async fn leave_events(&mut self) -> Result<(), Failure> {
        self.happening.on = Kinds::default();
        let Some(running) = self.happening.running.take() else { return Ok(()) };
        let Over { summary, lost, failed } = running.leave().await;
        self.happening.last = Some(summary);
        if let Some(failed) = failed {
            return Err(Failure::new(1, failed));
        }
        match lost {
            // The session says so by itself.
            None | Some(SessionError::TargetEnded) => Ok(()),
            Some(error) => Err(ProfileError::from(error).into()),
        }
    }

    /// Says so if it has ended by itself.
    async fn events_may_be_over(&mut self) {
        if self.happening.running.as_ref().is_some_and(Running::is_over)
            && let Err(failure) = self.leave_events().await
        {
            self.progress.say(&failure.message);
        }
    }
}
