//! `wait`.

use std::time::Duration;

use super::condition::{Wait, WaitCommand};
use super::{Console, ConsoleEvent, Failure, NOTHING_RECORDED, State};

/// How often it is looked whether what is waited for has come.
const POLL: Duration = Duration::from_millis(10);

impl Console {
    pub(super) async fn wait(&mut self, wait: WaitCommand, interrupt: impl Future<Output = ()>) -> Result<(), Failure> {
        let progress = match (&self.state, wait.what) {
            (_, Wait::For(_)) => None,
            (State::Live { live, .. }, _) => Some(live.progress().clone()),
            _ => return self.has_come(wait.what),
        };
        let come = async {
            match (wait.what, &progress) {
                (Wait::For(time), _) => tokio::time::sleep(time).await,
                (Wait::Calls(calls), Some(progress)) => {
                    while progress.roots_completed() < calls {
                        tokio::time::sleep(POLL).await;
                    }
                }
                (Wait::RootEntered, Some(progress)) => {
                    while progress.roots_entered() == 0 {
                        tokio::time::sleep(POLL).await;
                    }
                }
                (Wait::Done | Wait::Calls(_) | Wait::RootEntered, _) => std::future::pending().await,
            }
        };
        let waited = async {
            tokio::select! {
                () = come => Ok(()),
                () = tokio::time::sleep(wait.at_most.unwrap_or_default()), if wait.at_most.is_some() => {
                    let at_most = wait.at_most.unwrap_or_default();
                    Err(Failure::new(1, format!("waited {at_most:?} in vain for {}", wait.what)))
                }
                () = interrupt => Err(Failure::interrupted()),
            }
        };
        let mut waited = std::pin::pin!(waited);
        loop {
            match self.serve_until(waited.as_mut()).await {
                Ok(result) => return result,
                Err(ConsoleEvent::Lost(failure)) => return Err(failure),
                Err(ConsoleEvent::Complete(message)) => {
                    self.progress.say(&message);
                    if !matches!(wait.what, Wait::For(_)) {
                        return self.has_come(wait.what);
                    }
                }
            }
        }
    }

    /// Whether what is waited for had come before the profile ended.
    fn has_come(&self, what: Wait) -> Result<(), Failure> {
        let Some(last) = &self.last else { return Err(Failure::new(1, NOTHING_RECORDED)) };
        let calls: u64 = last.roots.iter().map(|root| root.calls).sum();
        match what {
            Wait::Calls(wanted) if calls < wanted => {}
            Wait::RootEntered if calls == 0 => {}
            _ => return Ok(()),
        }
        Err(Failure::new(1, format!("the profile ended, and {what} never came")))
    }
}
