//! The agent's end of the control socket.
//!
//! Any thread may ask the tool something and wait for the answer. One thread at a time reads the socket: the agent's own,
//! which hands answers to whoever waits for them. When that thread itself has a question (a class hook during a
//! hotswap it executes), it goes on reading until its own answer is there.

use std::fs::File;
use std::io::{self, IoSliceMut, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId as OsThread;
use std::time::{Duration, Instant};

use headwater_protocol::message::{Answer, Command, Greeting, Notice, RequestId, ToAgent, ToTool, Upcall, Welcome};
use headwater_protocol::pulse::{End, Pulse};
use headwater_protocol::wire::{self, WireError};
use headwater_protocol::{PROTOCOL_VERSION, ThreadId};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, sockopt};

use self::reader::{Reader, is_timeout};
use crate::os::os_thread;
use crate::presence::Presence;
use crate::retransformation;
use crate::waiting::{Waited, Waiting};

mod reader;
#[cfg(test)]
mod tests;

/// A write that comes no further for so long means that the tool has stopped reading.
const WRITE_DEADLINE: Duration = Duration::from_secs(2);
/// How often one that waits for room looks whether the tool is still there.
const WRITE_STEP: Duration = Duration::from_millis(50);
/// How long a question waits while nothing has been answered since one that got no answer in time.
const UNRESPONSIVE_DEADLINE: Duration = Duration::from_millis(20);
/// Each time that a question got no answer because a hotswap made no progress, later ones wait so many times shorter while one does, for the rest of the
/// session. If what it waits for is a lock that the asking thread has, it will be so each time.
const SHORTER: u32 = 4;
/// They do not wait shorter than that: a hotswap that takes so long need not be stuck, on a busy machine.
const SHORTEST_DEADLINE: Duration = Duration::from_millis(200);
/// Of so many things that take long together the tool is heard before one.
pub const ATTENDING: usize = 8;
/// How much may be on its way to the tool: the kernel's memory, taken as it is needed. A message takes most of a kilobyte there.
const ON_ITS_WAY_BYTES: usize = 4 << 20;

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// There is no tool any more.
    #[error("the connection to the tool is closed")]
    Closed,
    /// The tool did not answer in time.
    #[error("the tool did not answer in time")]
    Deadline,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The operating system refused.
    #[error("cannot connect to the tool's socket: {0}")]
    Io(#[from] io::Error),
    /// What came is no welcome.
    #[error("the tool's answer could not be understood: {0}")]
    Wire(#[from] WireError),
    /// Another version.
    #[error("the tool speaks protocol version {0}, this agent {PROTOCOL_VERSION}")]
    Version(u32),
    /// No file descriptor came with the welcome.
    #[error("the tool sent no event buffer")]
    NoSegment,
}

/// What comes next from the tool.
#[derive(Debug)]
pub enum Next {
    /// A command.
    Command(RequestId, Command),
    /// Nothing before the deadline.
    Deadline,
    /// The end of the connection.
    Closed,
}

/// The control socket, and who waits for what.
#[derive(Debug)]
pub struct Connection {
    /// To be shut down while others write or read.
    socket: UnixStream,
    writer: Mutex<UnixStream>,
    reader: Mutex<Reader>,
    waiting: Waiting,
    next_request: AtomicU64,
    closed: AtomicBool,
    /// No questions are answered any more; messages can still be sent.
    ending: AtomicBool,
    presence: Presence,
    /// How often there was no answer in time while a hotswap made no progress; once for all questions that waited at the same time.
    stuck: AtomicU32,
    deadline_ms: AtomicU64,
    reading_thread: Mutex<Option<OsThread>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What these mutexes guard is valid between any two statements; a panic elsewhere must not take the target along.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets as much as possible be on its way to the tool: hundreds of classes may be told of before it reads again, and who tells of one that
/// finds no room waits.
fn make_room(stream: &UnixStream) {
    // Only a privileged process gets all of it, others twice what sockets have to begin with; a socket works without, too.
    let _ = sockopt::set_socket_send_buffer_size_force(stream, ON_ITS_WAY_BYTES)
        .or_else(|_| sockopt::set_socket_send_buffer_size(stream, ON_ITS_WAY_BYTES));
}

/// Connects to the tool and tells it why no session can be had.
pub fn decline(socket: &Path, reason: &str) {
    // Nobody is left to be told when this fails, too.
    if let Ok(mut stream) = UnixStream::connect(socket) {
        let refusal: Result<Greeting, String> = Err(reason.to_owned());
        let _ = wire::write(&mut stream, &refusal);
    }
}

impl Connection {
    /// Connects, greets, and receives the shared segment's file descriptor.
    pub fn open(socket: &Path, greeting: Greeting) -> Result<(Connection, File), ConnectError> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_write_timeout(Some(WRITE_DEADLINE))?;
        make_room(&stream);
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let greeting: Result<Greeting, String> = Ok(greeting);
        wire::write(&mut stream, &greeting)?;

        // The descriptor comes with the first byte of the welcome.
        let mut prefix = [0u8; 4];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::net::recvmsg(
            &stream,
            &mut [IoSliceMut::new(&mut prefix)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL,
        )
        .map_err(io::Error::from)?;
        if received.bytes != prefix.len() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let descriptor = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        let mut body = vec![0; wire::body_length(prefix)?];
        stream.read_exact(&mut body)?;
        let welcome: Welcome = wire::decode(&body)?;
        if welcome.protocol != PROTOCOL_VERSION {
            return Err(ConnectError::Version(welcome.protocol));
        }
        let segment = File::from(descriptor.ok_or(ConnectError::NoSegment)?);
        let presence = Presence::of(Pulse::open(&segment)?);
        Ok((Connection::over(stream, presence, Duration::from_millis(welcome.deadline_ms.into()))?, segment))
    }

    /// Over a socket on which both have greeted.
    fn over(stream: UnixStream, presence: Presence, deadline: Duration) -> io::Result<Connection> {
        stream.set_write_timeout(Some(WRITE_STEP))?;
        Ok(Connection {
            socket: stream.try_clone()?,
            reader: Mutex::new(Reader::of(stream.try_clone()?)),
            writer: Mutex::new(stream),
            waiting: Waiting::default(),
            next_request: AtomicU64::new(1),
            closed: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            presence,
            stuck: AtomicU32::new(0),
            deadline_ms: AtomicU64::new(ms(deadline)),
            reading_thread: Mutex::new(None),
        })
    }

    /// Whether the tool is there.
    pub fn presence(&self) -> &Presence {
        &self.presence
    }

    /// How long a thread of the target waits at most.
    pub fn deadline(&self) -> Duration {
        // Relaxed: a number that stands for itself.
        Duration::from_millis(self.deadline_ms.load(Ordering::Relaxed))
    }

    /// From now on it waits for so long at most.
    pub fn set_deadline(&self, deadline: Duration) {
        self.deadline_ms.store(ms(deadline), Ordering::Relaxed);
    }

    /// Whether the tool is gone.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Ends the connection and wakes whoever waits.
    pub fn close(&self) {
        self.waiting.wake_all(|| self.closed.store(true, Ordering::Release));
        // Wakes the reading thread, and who waits for room; an error means that the socket is closed already.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// Wakes whoever waits for an answer: there will be none any more.
    pub fn answer_nobody(&self) {
        self.waiting.wake_all(|| self.ending.store(true, Ordering::Release));
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire) || self.is_closed()
    }

    /// Makes the current thread the one that reads.
    pub fn read_here(&self) {
        *lock(&self.reading_thread) = Some(std::thread::current().id());
    }

    /// Sends a message; waits for room, but not for a tool that is absent. A failure closes the connection.
    pub fn send(&self, message: &ToTool) -> Result<(), AskError> {
        if self.is_closed() {
            return Err(AskError::Closed);
        }
        let frame = wire::encode(message).map_err(|_| AskError::Closed)?;
        let mut writer = lock(&self.writer);
        if self.is_closed() {
            // Found out by somebody who had the socket before us.
            return Err(AskError::Closed);
        }
        let written = self.write(&mut writer, &frame);
        drop(writer);
        if written.is_err() {
            self.close();
            return Err(AskError::Closed);
        }
        Ok(())
    }

    fn write(&self, writer: &mut UnixStream, mut frame: &[u8]) -> io::Result<()> {
        let mut end = Instant::now() + WRITE_DEADLINE;
        while !frame.is_empty() {
            match writer.write(frame) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    frame = &frame[count..];
                    end = Instant::now() + WRITE_DEADLINE;
                }
                Err(error) if is_timeout(&error) => {
                    if self.presence.is_absent() || Instant::now() >= end {
                        self.presence.end(End::Silence);
                        return Err(error);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells something without waiting.
    pub fn notice(&self, notice: Notice) {
        // A closed connection has nobody to be told.
        let _ = self.send(&ToTool::Notice(notice));
    }

    /// Asks the tool and waits for its answer, for a limited time: for as long as the current thread waits at all, and the tool is there.
    pub fn ask(&self, upcall: Upcall, left: Duration) -> Result<Answer, AskError> {
        if self.is_ending() {
            return Err(AskError::Closed);
        }
        let thread = if self.is_reading_thread() { None } else { Some(this_thread()) };
        let request = self.next_request.fetch_add(1, Ordering::Relaxed);
        let what = describe(&upcall);
        self.waiting.expect(request);
        let stuck = self.stuck.load(Ordering::Relaxed);
        let longest = if self.presence.is_unresponsive() { UNRESPONSIVE_DEADLINE } else { self.deadline() };
        let patience = longest.min(left);
        let start = Instant::now();
        let answer = self.send(&ToTool::Upcall { request, thread, upcall }).and_then(|()| {
            if self.is_reading_thread() {
                return self.pump(request, start + patience);
            }
            let shorter = patience_after(patience, stuck);
            match self.wait(request, start + shorter) {
                Err(AskError::Deadline) if !retransformation::stands_still(shorter) => {
                    self.wait(request, start + patience)
                }
                answer => answer,
            }
        });
        self.waiting.forget(request);
        match &answer {
            Ok(_) => {}
            // Who waits no longer says nothing of the tool.
            Err(AskError::Deadline) if left < longest => self.notice(Notice::OutOfPatience { request }),
            Err(AskError::Deadline) => {
                self.presence.has_not_answered();
                if !self.presence.is_absent() && retransformation::stands_still(start.elapsed() / 2) {
                    // A failure means that another thread has counted it.
                    let next = stuck.saturating_add(1);
                    let _ = self.stuck.compare_exchange(stuck, next, Ordering::Relaxed, Ordering::Relaxed);
                }
                self.notice(Notice::DeadlinePassed { request, waited_for: what });
            }
            Err(AskError::Closed) => {}
        }
        answer
    }

    fn is_reading_thread(&self) -> bool {
        *lock(&self.reading_thread) == Some(std::thread::current().id())
    }

    /// Waits for an answer, but not for that of a tool that is absent.
    fn wait(&self, request: RequestId, deadline: Instant) -> Result<Answer, AskError> {
        let left = || deadline.saturating_duration_since(Instant::now()).min(self.presence.until_absent());
        loop {
            let time = || if self.is_ending() { Duration::ZERO } else { left() };
            if let Waited::Answered(answer) = self.waiting.wait(request, time) {
                return Ok(answer);
            }
            if self.is_ending() {
                return Err(AskError::Closed);
            }
            if left().is_zero() {
                return Err(AskError::Deadline);
            }
        }
    }

    fn pump(&self, request: RequestId, deadline: Instant) -> Result<Answer, AskError> {
        loop {
            if let Some(answer) = self.waiting.take(request) {
                return Ok(answer);
            }
            let now = Instant::now();
            let left = deadline.saturating_duration_since(now).min(self.presence.until_absent());
            let mut reader = lock(&self.reader);
            match reader.next(Some(now + left)) {
                Ok(Some(message)) => self.take(&mut reader, message),
                Ok(None) if left.is_zero() => return Err(AskError::Deadline),
                Ok(None) => {}
                Err(_) => {
                    drop(reader);
                    self.close();
                    return Err(AskError::Closed);
                }
            }
        }
    }

    /// Hears what the tool has said meanwhile, without waiting for anything: answers are handed over, commands wait for their turn. Whether there is
    /// still a tool. For the reading thread, in the midst of what takes long.
    pub fn attend(&self) -> bool {
        while !self.is_closed() {
            let mut reader = lock(&self.reader);
            match reader.next_now() {
                Ok(Some(message)) => self.take(&mut reader, message),
                Ok(None) => return true,
                Err(_) => {
                    drop(reader);
                    self.close();
                }
            }
        }
        false
    }

    /// These one after the other, as long as there is a tool that wants to hear of them; it is heard meanwhile. For the reading thread.
    pub fn attending<T>(&self, items: Vec<T>) -> impl Iterator<Item = T> {
        let is_wanted = |at: usize| !at.is_multiple_of(ATTENDING) || self.attend();
        items.into_iter().enumerate().take_while(move |(at, _)| is_wanted(*at)).map(|(_, item)| item)
    }

    fn take(&self, reader: &mut Reader, message: ToAgent) {
        match message {
            ToAgent::Answer { request, answer } => self.hand_over(request, answer),
            ToAgent::Command { request, command } => {
                self.presence.is_heard();
                reader.commands.push_back((request, command));
            }
        }
    }

    fn hand_over(&self, request: RequestId, answer: Answer) {
        self.presence.is_heard();
        // Nobody waits any more for an answer that comes after its deadline.
        self.waiting.answer(request, answer);
    }

    /// The next command, if it comes in time; hands answers over meanwhile, and asks after each for the deadline: a thread of the target that
    /// makes something due, by a hotswap, gets an answer then. For the reading thread.
    pub fn next_command(&self, deadline: impl Fn() -> Option<Instant>) -> Next {
        loop {
            if self.is_closed() {
                return Next::Closed;
            }
            let mut reader = lock(&self.reader);
            if let Some((request, command)) = reader.commands.pop_front() {
                return Next::Command(request, command);
            }
            match reader.next(deadline()) {
                Ok(Some(ToAgent::Command { request, command })) => {
                    self.presence.is_heard();
                    return Next::Command(request, command);
                }
                Ok(Some(ToAgent::Answer { request, answer })) => {
                    self.hand_over(request, answer);
                    if deadline().is_some_and(|deadline| deadline <= Instant::now()) {
                        return Next::Deadline;
                    }
                }
                Ok(None) => return Next::Deadline,
                Err(_) => {
                    drop(reader);
                    self.close();
                    return Next::Closed;
                }
            }
        }
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How long a question waits while a hotswap makes no progress, after so many that got no answer because of that.
fn patience_after(patience: Duration, stuck: u32) -> Duration {
    let shorter = SHORTER.checked_pow(stuck).map_or(Duration::ZERO, |times| patience / times);
    shorter.max(SHORTEST_DEADLINE.min(patience))
}

/// A number for the current thread, to tell the threads that wait for the tool apart. Not the Java thread's id: that
/// would take a call into Java, in places where none may be made.
fn this_thread() -> ThreadId {
    ThreadId(os_thread().into())
}

fn describe(upcall: &Upcall) -> String {
    match upcall {
        Upcall::ClassBytes { name, .. } => format!("class {name}"),
        Upcall::ClassPrepared(info) => format!("class {} being linked", info.name),
        Upcall::FirstCall(method) => format!("the callees of method {}", method.0),
        Upcall::Reflected(method) => format!("the instrumentation of {}, called by reflection", method.name),
        Upcall::Received { .. } => "the instrumentation of what is called on a class's objects".to_owned(),
        Upcall::Hotswapped(_) => "the end of a hotswap".to_owned(),
        Upcall::Linked => "what follows on linked classes".to_owned(),
    }
}
