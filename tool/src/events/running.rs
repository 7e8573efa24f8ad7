//! A visit that goes on while others are at work: a task serves it, and is asked.

use std::time::Duration;

use headwater_protocol::message::events::Kinds;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::summary::Summary;
use super::teller::Teller;
use super::visit::Visit;
use crate::jvm::Jvm;
use crate::profiling::ProfileError;
use crate::session::SessionError;

/// How often it is looked whether anybody still reads.
const LOOK: Duration = Duration::from_millis(200);

/// What the JVM does not tell of what has been switched on.
pub(crate) type Remarks = Vec<&'static str>;

enum Ask {
    Switch(Kinds, oneshot::Sender<Result<Remarks, SessionError>>),
    GoOnAs(Box<Teller>),
    Summary(oneshot::Sender<Summary>),
    Leave,
}

/// A visit, served by a task. The task leaves the JVM when this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    asks: UnboundedSender<Ask>,
    task: JoinHandle<Over>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Over {
    /// What happened until then.
    pub(crate) summary: Summary,
    /// The conversation ended by itself.
    pub(crate) lost: Option<SessionError>,
    /// What was told could not be written.
    pub(crate) failed: Option<String>,
}

impl Running {
    /// Attaches; nothing is told of yet.
    pub(crate) async fn begin(jvm: &Jvm, teller: Teller) -> Result<Running, ProfileError> {
        let visit = Visit::begin(jvm).await?;
        let (asks, asked) = unbounded_channel();
        Ok(Running { asks, task: tokio::spawn(serve(visit, teller, asked)) })
    }

    /// Has these kinds told, and no others.
    pub(crate) async fn switch(&mut self, kinds: Kinds) -> Result<Remarks, ProfileError> {
        let (answer, answered) = oneshot::channel();
        // A task that has ended does not answer either.
        let _ = self.asks.send(Ask::Switch(kinds, answer));
        match answered.await {
            Ok(switched) => Ok(switched?),
            Err(_) => Err(self.over().await.lost.unwrap_or(SessionError::Disconnected).into()),
        }
    }

    /// Writes what follows elsewhere.
    pub(crate) fn go_on_as(&self, teller: Teller) {
        let _ = self.asks.send(Ask::GoOnAs(Box::new(teller)));
    }

    /// What has happened so far; none if it is over.
    pub(crate) async fn summary(&self) -> Option<Summary> {
        let (answer, answered) = oneshot::channel();
        let _ = self.asks.send(Ask::Summary(answer));
        answered.await.ok()
    }

    /// Whether it has ended by itself.
    pub(crate) fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits for its end. To be called once.
    pub(crate) async fn over(&mut self) -> Over {
        match (&mut self.task).await {
            Ok(over) => over,
            Err(error) => {
                let failed = Some(format!("the events could not be told: {error}"));
                Over { summary: Summary::default(), lost: None, failed }
            }
        }
    }

    /// Leaves the JVM as it was.
    pub(crate) async fn leave(mut self) -> Over {
        let _ = self.asks.send(Ask::Leave);
        self.over().await
    }
}

async fn serve(mut visit: Visit, mut teller: Teller, mut asked: UnboundedReceiver<Ask>) -> Over {
    let lost = loop {
        tokio::select! {
            happened = visit.next() => match happened {
                Ok(happened) => teller.tell(&happened),
                Err(error) => break Some(error),
            },
            ask = asked.recv() => match ask {
                Some(Ask::Switch(kinds, answer)) => match visit.switch(kinds).await {
                    // Whoever no longer waits for an answer needs none.
                    Ok((clock, remarks)) => {
                        teller.switched(kinds, clock);
                        let _ = answer.send(Ok(remarks));
                    }
                    Err(error) if error.is_final() => break Some(error),
                    Err(error) => drop(answer.send(Err(error))),
                },
                Some(Ask::GoOnAs(other)) => teller.go_on_as(*other),
                Some(Ask::Summary(answer)) => drop(answer.send(teller.summary().clone())),
                Some(Ask::Leave) | None => break None,
            },
            () = tokio::time::sleep(LOOK) => {}
        }
        if teller.is_broken() {
            break None;
        }
    };
    visit.leave().await.iter().for_each(|happened| teller.tell(happened));
    let (summary, failed) = teller.finish();
    Over { summary, lost, failed }
}
