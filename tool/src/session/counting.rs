//! What is counted beside calls, from the beginning or switched on and off while it is recorded.
//!
//! What the JVM tells of by itself is switched by a word to the agent. What probes tell of needs them first: code that is instrumented already is hotswapped
//! once more, within the limits. From then on they are told whether to tell.

use headwater_protocol::message::Command;
use headwater_protocol::word::Counting;

use super::{Session, SessionError, until};

impl Session {
    /// What is counted now.
    pub fn counting(&self) -> Counting {
        self.counting
    }

    /// Why the kernel did not count for threads, for each of them.
    pub fn uncounted(&self) -> &[String] {
        &self.uncounted
    }

    /// Has these counted beside calls from now on, and nothing else. Code that is instrumented from now on can tell of them; for what is instrumented
    /// already see [`Session::lacks_probes`].
    pub async fn count(&mut self, what: Counting) -> Result<(), SessionError> {
        self.probed = self.probed.and(what);
        if what != self.counting {
            self.command(Command::Count(what), "count more than calls, or less").await?;
            self.counting = what;
        }
        Ok(())
    }

    /// The same while the target is being recorded, and may have questions meanwhile.
    pub async fn recount(&mut self, what: Counting) -> Result<(), SessionError> {
        self.count(what).await?;
        self.turn().await
    }

    /// Code that is instrumented from now on has probes for these, too; how many classes have code without, which [`Session::probe_those`] changes. Probes for
    /// what is no longer counted stay, but for code that counts instructions or objects: that costs something wherever it runs.
    pub fn lacks_probes(&mut self, what: Counting) -> usize {
        let is_code_other = what.bytecodes != self.probed.bytecodes || what.objects != self.probed.objects;
        self.probed = Counting { bytecodes: what.bytecodes, objects: what.objects, ..self.probed.and(what) };
        let classes = self.graph.tell(what);
        self.unprobed.extend(classes);
        if is_code_other {
            let classes = self.graph.probe_again();
            self.unprobed.extend(classes);
        }
        self.unprobed.sort_unstable();
        self.unprobed.dedup();
        self.unprobed.len()
    }

    /// Gives these classes their probes, a batch at a time, as the limits allow. No thread waits for that. Whether all of them have them now: not if `interrupt`
    /// was ready before.
    pub async fn probe_those(&mut self, interrupt: impl Future<Output = ()>) -> Result<bool, SessionError> {
        let mut interrupt = std::pin::pin!(interrupt);
        while !self.unprobed.is_empty() {
            while let Some(due) = self.allowed_from(self.unprobed.len()) {
                let event = tokio::select! {
                    () = interrupt.as_mut() => return Ok(false),
                    () = until(Some(due)) => break,
                    event = self.next_event() => event?,
                };
                self.serve(event).await?;
            }
            let most = self.cost.most_classes().min(self.unprobed.len());
            let batch = self.unprobed.drain(..most).collect();
            self.hotswap_batch(batch).await?;
        }
        self.turn().await?;
        Ok(true)
    }
}
