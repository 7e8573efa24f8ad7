//! The view on the terminal. A thread draws, so that a terminal that is slow, or stopped, holds up nothing.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use ratatui::crossterm::event::{Event, KeyEventKind};
use tokio::sync::mpsc::UnboundedSender;

use super::view::{Asked, View};
use crate::top::screen::{Taken, read_keys};

/// What the drawing thread is told.
enum Input {
    Terminal(Event),
    /// There is something new.
    New,
    Leave,
}

/// A view that is being shown.
pub(super) struct Screen {
    view: Arc<Mutex<View>>,
    inputs: SyncSender<Input>,
    drawing: JoinHandle<io::Result<()>>,
}

impl Screen {
    /// Takes the terminal over. `quit` is told when the user wants an end, and closed when the terminal is gone.
    pub(super) fn open(view: View, quit: UnboundedSender<()>) -> io::Result<Screen> {
        let mut taken = Taken::take()?;
        let view = Arc::new(Mutex::new(view));
        let (inputs, received) = sync_channel(16);
        let (keys, shown) = (inputs.clone(), Arc::clone(&view));
        let read = move || read_keys(|event| keys.send(Input::Terminal(event)).is_ok());
        std::thread::Builder::new().name("keys".into()).spawn(read)?;
        let drawing = std::thread::Builder::new().name("screen".into());
        let drawing = drawing.spawn(move || show(&mut taken, &shown, &received, &quit))?;
        Ok(Screen { view, inputs, drawing })
    }

    /// Has the view changed, and drawn when there is time for it.
    pub(super) fn change(&self, change: impl FnOnce(&mut View)) {
        change(&mut lock(&self.view));
        // What is on its way to the thread already will have it drawn.
        let _ = self.inputs.try_send(Input::New);
    }

    /// Gives the terminal back.
    pub(super) fn close(self) {
        // One whose terminal is gone has left already.
        let _ = self.inputs.send(Input::Leave);
        // What it could not draw any more is no loss.
        let _ = self.drawing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    }
}

fn lock(view: &Mutex<View>) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

fn show(
    taken: &mut Taken,
    view: &Mutex<View>,
    received: &Receiver<Input>,
    quit: &UnboundedSender<()>,
) -> io::Result<()> {
    loop {
        taken.draw(|area, buffer| lock(view).draw(area, buffer))?;
        let Ok(first) = received.recv() else { return Ok(()) };
        // What has come in meanwhile makes one picture.
        for input in std::iter::once(first).chain(received.try_iter()) {
            let asked = match input {
                Input::Terminal(Event::Key(key)) if key.kind != KeyEventKind::Release => lock(view).press(key),
                // The size is asked for with each picture.
                Input::Terminal(_) | Input::New => None,
                Input::Leave => return Ok(()),
            };
            match asked {
                None => {}
                Some(Asked::Redraw) => taken.clear()?,
                // When nobody listens any more, the order to leave is on its way.
                Some(Asked::Quit) => drop(quit.send(())),
            }
        }
    }
}
