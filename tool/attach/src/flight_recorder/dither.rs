//! Samples at a period that changes.
//!
//! A program whose calls take as long as a period, or a small multiple or part of it, is seen at the same place of call after call: hundreds of samples say then no more
//! than a few dozen, and something else every time. So the period is another one after a few samples.
//!
//! The recorder samples at the shortest period that any recording wants. Ours wants the longest; another one of ours begins and ends beside it and wants a shorter one, each
//! time a different one, so that in the mean it is what was asked for. Each change costs a service with deep stacks a hundredth of a second, for the recorder begins a new chunk: so there are
//! only a few. Somebody else's recording would be cut into such pieces too, so beside one the period stays.
//!
//! A recording that is to end by itself, if this process does not end it, writes what it has into a file, whatever is asked: so that has a place, and is a single chunk.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::ms;
use crate::attach::{TargetHost, jcmd};

/// What the other recording is called.
pub(super) const NAME: &str = "headwater-period";

/// The periods, in ms, where this one is wanted in the mean: that of our recording, and those of the other one in turn.
pub(super) fn periods(wanted: Duration) -> (u64, Vec<u64>) {
    let wanted = ms(wanted).min(u64::MAX / 8);
    let quarters = |quarters: u64| (quarters * wanted).div_ceil(4);
    let ours = quarters(6);
    let mut others: Vec<u64> = [5, 3, 4].map(quarters).into_iter().filter(|other| *other < ours).collect();
    others.dedup();
    (ours, others)
}

/// Changes a recording's period until it is dropped.
#[derive(Debug)]
pub(super) struct Dither {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Dither {
    /// Begins; `settings` are the files that the other recording reads in turn, `file` is what it writes.
    pub(super) fn begin(host: Arc<TargetHost>, settings: Vec<String>, file: String, stretch: Duration) -> Dither {
        let (end, ended) = mpsc::channel();
        let change = move || {
            let seconds = stretch.saturating_mul(2).as_secs().saturating_add(1);
            let is_over = || ended.recv_timeout(stretch) != Err(RecvTimeoutError::Timeout);
            let mut settings = settings.iter().cycle();
            while !is_over()
                && let Some(settings) = settings.next()
            {
                let start = format!(
                    "JFR.start name={NAME} settings={settings} filename={file} duration={seconds}s dumponexit=false"
                );
                if !jcmd(&host, &start).is_ok_and(|answer| answer.contains("Started recording")) {
                    break;
                }
                let is_over = is_over();
                if jcmd(&host, &format!("JFR.stop name={NAME}")).is_err() || is_over {
                    break;
                }
            }
        };
        // Without a thread it stays what it is.
        Dither { end: Some(end), thread: thread::Builder::new().name("dither".to_owned()).spawn(change).ok() }
    }
}

impl Drop for Dither {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // There is nothing it could tell.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_different_and_come_to_what_was_wanted() {
        assert_eq!(periods(Duration::from_millis(4)), (6, vec![5, 3, 4]));
        for wanted in [1, 2, 3, 10, 20, 100] {
            let (ours, others) = periods(Duration::from_millis(wanted));
            assert!(!others.is_empty() && others.iter().all(|other| (1..ours).contains(other)), "{wanted}");
            let rate = |period: &u64| wanted as f64 / *period as f64;
            let mean = (rate(&ours) + others.iter().map(rate).sum::<f64>() / others.len() as f64) / 2.0;
            assert!((0.7..1.4).contains(&mean), "{wanted}: {mean}");
        }
        assert_eq!(periods(Duration::from_micros(10)), (2, vec![1]));
        assert!(periods(Duration::MAX).0 > 0);
    }
}
