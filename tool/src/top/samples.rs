//! Samples of all threads on the whole screen, without a root; and the way from a method that was seen to its exact profile.

use std::io;
use std::sync::Mutex;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::screen::{Input, Screen};
use super::view::{Phase, Request, View};
use super::{Pace, narrowed};
use crate::jvm::Jvm;
use crate::sampling::{self, Heard, SampleError, SampleOptions};
use crate::whole_jvm::Whole;

/// What the user wants when the samples are over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// To leave.
    Nothing,
    /// The exact profile of a method, as a pattern.
    Exact(String),
}

/// Shows samples until the user has enough, or `interrupt` is ready. When they end by themselves the last ones stay on the screen until then.
///
/// Fails when the terminal cannot be taken over.
pub(crate) async fn watch(
    jvm: Jvm,
    wanted: SampleOptions,
    view: View,
    pace: Pace,
    mut interrupt: impl Future<Output = ()> + Unpin,
) -> io::Result<(Result<Whole, SampleError>, Next)> {
    let (asking, mut requests) = unbounded_channel();
    let screen = Screen::open(view, asking)?;
    // It is told from the thread that samples.
    let (told, telling) = (screen.inputs(), Mutex::new(screen.inputs()));
    let options = pace.options.clone();
    let tell = move |heard| {
        if let (Ok(telling), Heard::SoFar(profile)) = (telling.lock(), heard) {
            // A view that is gone has closed the requests: that is noticed there.
            let _ = telling.send(Input::Results(narrowed(&options, *profile), None));
        }
    };
    let mut next = None;
    let taken = {
        let asked = async {
            next = Some(asked(&mut requests, &told, &mut interrupt).await);
        };
        sampling::take(jvm, SampleOptions { live: Some(pace.period), ..wanted }, tell, asked).await
    };
    if next.is_none()
        && let Ok(whole) = &taken
    {
        let _ = told.send(Input::Results(narrowed(&pace.options, whole.profile.clone()), None));
        let why = if whole.target_ended { "The target has ended." } else { "The time is over." };
        let why = format!("{why} These are the last samples; s saves them, q leaves.");
        let _ = told.send(Input::Phase(Phase::Ended(why)));
        next = Some(asked(&mut requests, &told, &mut interrupt).await);
    }
    screen.close();
    Ok((taken, next.unwrap_or(Next::Nothing)))
}

/// What the user wants to have next.
async fn asked(
    requests: &mut UnboundedReceiver<Request>,
    told: &std::sync::mpsc::Sender<Input>,
    mut interrupt: impl Future<Output = ()> + Unpin,
) -> Next {
    loop {
        let request = tokio::select! {
            request = requests.recv() => request.unwrap_or(Request::Quit),
            () = &mut interrupt => Request::Quit,
        };
        match request {
            Request::Quit => return Next::Nothing,
            Request::Exact(pattern) => return Next::Exact(pattern),
            Request::Pause | Request::Resume | Request::Clear => {
                let said = "samples are neither paused nor cleared: f freezes what is shown";
                let _ = told.send(Input::Say(said.to_owned()));
            }
            Request::Count(_) => {
                let said = "of samples all is known: x on a method is its exact profile, in which more can be counted";
                let _ = told.send(Input::Say(said.to_owned()));
            }
            // The view's own.
            Request::Save { .. } | Request::Redraw => {}
        }
    }
}
