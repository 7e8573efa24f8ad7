//! What ends work from outside.

use std::future::poll_fn;
use std::task::Poll;

use tokio::signal::unix::{SignalKind, signal};

/// Ready when the user wants an end: Ctrl-C, or a request to terminate; and each time again. From this call on none of them ends the process
/// by itself.
pub(crate) fn interrupted() -> impl Future<Output = ()> {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
    let mut signals: Vec<_> = signals.into_iter().flatten().collect();
    poll_fn(move |context| {
        let is_wanted = signals.iter_mut().any(|signal| signal.poll_recv(context).is_ready());
        if is_wanted { Poll::Ready(()) } else { Poll::Pending }
    })
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    #[tokio::test]
    async fn an_interruption_is_not_missed_before_it_is_waited_for() {
        let mut interrupted = std::pin::pin!(super::interrupted());
        for _ in 0..2 {
            kill_process(getpid(), Signal::INT).unwrap();
            interrupted.as_mut().await;
        }
    }
}
