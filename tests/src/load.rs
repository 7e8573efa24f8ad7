//! HTTP load from several keep-alive connections, which can be held back and let go on.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::PATIENCE;
use crate::patience::{LOOK, Patience};

/// A client does something else between two requests, and leaves the processors to others.
const PAUSE: Duration = Duration::from_millis(2);

/// What the connections share.
#[derive(Debug, Default)]
struct State {
    held: bool,
    stopped: bool,
    in_flight: usize,
    answered: u64,
    failures: Vec<String>,
}

/// Running load.
#[derive(Debug)]
pub struct Load {
    shared: Arc<(Mutex<State>, Condvar)>,
    connections: Vec<JoinHandle<()>>,
}

impl Load {
    /// Sends requests over so many connections, each soon after the one before was answered.
    pub fn start(port: u16, connections: usize) -> Load {
        let shared: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let connections = (0..connections)
            .map(|number| {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || connection(port, number, &shared))
            })
            .collect();
        Load { shared, connections }
    }

    /// Holds the connections back and returns when no request is under way.
    pub fn hold(&self) {
        self.change(|state| state.held = true);
        self.wait(|state| state.in_flight == 0);
    }

    /// Lets them go on.
    pub fn resume(&self) {
        self.change(|state| state.held = false);
    }

    /// Returns when so many more requests have been answered.
    pub fn await_answers(&self, more: u64) {
        let goal = self.answered() + more;
        self.wait(|state| state.answered >= goal);
    }

    /// Requests that were answered so far.
    pub fn answered(&self) -> u64 {
        self.shared.0.lock().expect("no panic while locked").answered
    }

    /// Ends the load; what went wrong.
    pub fn stop(mut self) -> Vec<String> {
        self.end();
        std::mem::take(&mut self.shared.0.lock().expect("no panic while locked").failures)
    }

    fn end(&mut self) {
        self.change(|state| state.stopped = true);
        for connection in std::mem::take(&mut self.connections) {
            if connection.join().is_err() {
                self.change(|state| state.failures.push("a connection's thread panicked".into()));
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.shared.0.lock().expect("no panic while locked"));
        self.shared.1.notify_all();
    }

    fn wait(&self, until: impl Fn(&State) -> bool) {
        let state = self.shared.0.lock().expect("no panic while locked");
        let mut patience = Patience::default();
        let mut is_waiting = |state: &mut State| !until(state) && state.failures.is_empty();
        let mut state = state;
        while is_waiting(&mut state) && patience.lasts() {
            let waited = self.shared.1.wait_timeout_while(state, LOOK, &mut is_waiting).expect("no panic while locked");
            state = waited.0;
        }
        assert!(until(&state) && state.failures.is_empty(), "the load: {:#?}", *state);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}

fn connection(port: u16, number: usize, shared: &(Mutex<State>, Condvar)) {
    let mut stream = None;
    loop {
        {
            let state = shared.0.lock().expect("no panic while locked");
            let mut state =
                shared.1.wait_while(state, |state| state.held && !state.stopped).expect("no panic while locked");
            if state.stopped {
                return;
            }
            state.in_flight += 1;
        }
        let result = request(&mut stream, port, number);
        let mut state = shared.0.lock().expect("no panic while locked");
        state.in_flight -= 1;
        match result {
            Ok(()) => state.answered += 1,
            Err(failure) => state.failures.push(failure),
        }
        shared.1.notify_all();
        if !state.failures.is_empty() {
            return;
        }
        drop(state);
        std::thread::sleep(PAUSE);
    }
}

/// One request, on the connection if the server keeps it open (Tomcat closes it after a hundred requests).
fn request(stream: &mut Option<BufReader<TcpStream>>, port: u16, number: usize) -> Result<(), String> {
    let open = || {
        let stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| format!("connect: {error}"))?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
        Ok::<_, String>(BufReader::new(stream))
    };
    let mut reader = match stream.take() {
        Some(reader) => reader,
        None => open()?,
    };
    let text = format!("GET /?n={} HTTP/1.1\r\nHost: localhost\r\n\r\n", number % 5);
    reader.get_mut().write_all(text.as_bytes()).map_err(|error| format!("send: {error}"))?;
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        let read = reader.read_line(&mut line).map_err(|error| format!("receive: {error}"))?;
        if read == 0 || line == "\r\n" {
            break;
        }
        head.push(line.trim_end().to_ascii_lowercase());
    }
    if !head.first().is_some_and(|status| status.contains(" 200")) {
        return Err(format!("answer: {head:?}"));
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let mut body = vec![0; length.ok_or_else(|| format!("no length: {head:?}"))?];
    reader.read_exact(&mut body).map_err(|error| format!("body: {error}"))?;
    if !body.starts_with(b"hello ") {
        return Err(format!("body: {:?}", String::from_utf8_lossy(&body)));
    }
    if !head.iter().any(|line| line == "connection: close") {
        *stream = Some(reader);
    }
    Ok(())
}
