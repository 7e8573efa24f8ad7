//! The tool's end of the control socket: the handshake, and messages in both directions.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::time::Duration;

use headwater_protocol::PROTOCOL_VERSION;
use headwater_protocol::message::{Greeting, ToAgent, ToTool, Welcome};
use headwater_protocol::wire::{self, WireError};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::UCred;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::{AbortHandle, JoinSet};

use crate::jvm::process;

/// How long whoever has connected may take to greet.
const GREETING_DEADLINE: Duration = Duration::from_secs(10);
/// More than any greeting has: nobody has shown yet who he is.
const LONGEST_GREETING_BYTES: usize = 64 << 10;
/// So many may be about to greet at once; then the oldest is dropped.
const MOST_CALLERS: usize = 16;

/// Why there is no conversation with an agent.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The socket cannot be made or used.
    #[error("the control socket {path}: {error}")]
    Socket {
        /// Where.
        path: String,
        /// The operating system's reason.
        error: io::Error,
    },
    /// The agent sent something else than a greeting.
    #[error("the agent in the target could not be understood: {0}")]
    Wire(#[from] WireError),
    /// The agent says why it cannot serve.
    #[error("the agent in the target declines: {0}")]
    Declined(String),
    /// Another version of the agent.
    #[error(
        "an agent of another Headwater version answers (protocol {0}, ours is {PROTOCOL_VERSION}). \
         Use that version, or restart the target"
    )]
    Version(u32),
}

/// Who may connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The process, if it is known; where its pid cannot be compared, its user has to do.
    pub pid: Option<u32>,
    /// Its user.
    pub uid: u32,
}

impl Peer {
    fn is(self, peer: &UCred) -> bool {
        // A pid of 0 is that of a process that is not in our pid namespace or below it.
        let seen = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
        match (self.pid.filter(|_| process::pids_are_ours()), seen) {
            (Some(pid), Some(seen)) => pid == seen,
            _ => peer.uid() == self.uid,
        }
    }
}

/// A socket that waits for the agent.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: String,
    peer: Peer,
}

/// An open conversation.
#[derive(Debug)]
pub struct Connection {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    /// The message that is being received: a cancelled `receive` loses nothing.
    received: Vec<u8>,
    peer_pid: Option<u32>,
}

impl Listener {
    /// Waits at a socket for one peer; the path is for messages.
    pub fn new(
        socket: std::os::unix::net::UnixListener,
        path: String,
        peer: Peer,
    ) -> Result<Listener, ConnectionError> {
        let listening = socket.set_nonblocking(true).and_then(|()| UnixListener::from_std(socket));
        match listening {
            Ok(socket) => Ok(Listener { socket, path, peer }),
            Err(error) => Err(ConnectionError::Socket { path, error }),
        }
    }

    /// Waits for an agent that has greeted, or says why it cannot serve. Others are sent away or not waited for.
    pub async fn accept(&self) -> Result<Caller, ConnectionError> {
        let mut greetings = JoinSet::new();
        let mut callers: VecDeque<AbortHandle> = VecDeque::new();
        loop {
            tokio::select! {
                accepted = self.socket.accept() => {
                    let (stream, _) = accepted.map_err(|error| ConnectionError::Socket { path: self.path.clone(), error })?;
                    if stream.peer_cred().is_ok_and(|peer| self.peer.is(&peer)) {
                        callers.retain(|caller| !caller.is_finished());
                        if callers.len() == MOST_CALLERS && let Some(oldest) = callers.pop_front() {
                            oldest.abort();
                        }
                        callers.push_back(greetings.spawn(tokio::time::timeout(GREETING_DEADLINE, greeting(stream))));
                    }
                }
                Some(greeted) = greetings.join_next(), if !greetings.is_empty() => {
                    // Dropped, too slow, or no greeting: others may come.
                    let Ok(Ok(Ok((stream, greeting)))) = greeted else { continue };
                    let greeting = greeting.map_err(ConnectionError::Declined)?;
                    if greeting.protocol != PROTOCOL_VERSION {
                        return Err(ConnectionError::Version(greeting.protocol));
                    }
                    return Ok(Caller { stream, greeting, path: self.path.clone() });
                }
            }
        }
    }
}

/// The first frame: a greeting, or the agent's reason not to serve.
async fn greeting(mut stream: UnixStream) -> Result<(UnixStream, Result<Greeting, String>), WireError> {
    let length = stream.read_u32_le().await? as usize;
    if length > LONGEST_GREETING_BYTES {
        return Err(WireError::Length(length));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok((stream, wire::decode(&body)?))
}

/// An agent that has greeted and not been welcomed yet.
#[derive(Debug)]
pub struct Caller {
    stream: UnixStream,
    greeting: Greeting,
    path: String,
}

impl Caller {
    /// What it says of its JVM.
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Welcomes the agent with the segment's file.
    pub fn welcome(self, segment: impl AsFd, deadline: Duration) -> Result<Connection, ConnectionError> {
        let failed = |error| ConnectionError::Socket { path: self.path.clone(), error };
        let deadline_ms = u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX);
        let frame = wire::encode(&Welcome { protocol: PROTOCOL_VERSION, deadline_ms })?;
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [segment.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        // Nothing else is in the socket's buffer yet: it does not have to be waited for.
        let sent = rustix::net::sendmsg(&self.stream, &[IoSlice::new(&frame)], &mut ancillary, SendFlags::NOSIGNAL)
            .map_err(|error| failed(error.into()))?;
        if sent != frame.len() {
            return Err(failed(io::ErrorKind::WriteZero.into()));
        }
        let peer = self.stream.peer_cred().ok().and_then(|peer| peer.pid());
        let peer_pid = peer.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
        let (reader, writer) = self.stream.into_split();
        Ok(Connection { reader, writer, received: Vec::new(), peer_pid })
    }
}

impl Connection {
    /// The process that connected, as we see it; `None` where it cannot be seen.
    pub fn peer_pid(&self) -> Option<u32> {
        self.peer_pid
    }

    /// Sends a message, and takes in meanwhile what comes: the agent may be in the middle of a long message itself, and
    /// would not read ours before it has sent it.
    pub async fn send(&mut self, message: &ToAgent) -> Result<(), WireError> {
        let frame = wire::encode(message)?;
        let mut rest = &frame[..];
        while !rest.is_empty() {
            tokio::select! {
                written = self.writer.write(rest) => rest = &rest[written?..],
                read = self.reader.read_buf(&mut self.received) => if read? == 0 {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                },
            }
        }
        Ok(())
    }

    /// The next message. May be cancelled and called again.
    pub async fn receive(&mut self) -> Result<ToTool, WireError> {
        loop {
            if let Some((prefix, rest)) = self.received.split_first_chunk::<4>() {
                let length = wire::body_length(*prefix)?;
                if let Some(body) = rest.get(..length) {
                    let message = wire::decode(body)?;
                    self.received.drain(..4 + length);
                    return Ok(message);
                }
            }
            if self.reader.read_buf(&mut self.received).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use headwater_protocol::message::{Answer, Reply};
    use headwater_tests::{PATIENCE, Scratch};

    use super::*;

    /// More than any socket buffer holds.
    const MUCH: usize = 8 << 20;

    impl Listener {
        /// At a path, for this process.
        pub(crate) fn at(path: &Path) -> Listener {
            Listener::for_peer(path, Peer { pid: Some(std::process::id()), uid: rustix::process::geteuid().as_raw() })
        }

        fn for_peer(path: &Path, peer: Peer) -> Listener {
            let socket = std::os::unix::net::UnixListener::bind(path).unwrap();
            Listener::new(socket, path.display().to_string(), peer).unwrap()
        }
    }

    fn greet(stream: &mut impl std::io::Write, pid: u32) {
        let greeting = Greeting {
            protocol: PROTOCOL_VERSION,
            pid,
            vm_version: String::new(),
            java_version: String::new(),
            startup: false,
            internals: Vec::new(),
        };
        wire::write(stream, &Ok::<_, String>(greeting)).unwrap();
    }

    #[test]
    fn who_is_another_process_is_another_user_or_sent_away() {
        let own = std::process::id();
        let (one, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        one.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        let us = UnixStream::from_std(one).unwrap().peer_cred().unwrap();
        for (pid, uid, expected) in [
            (Some(own), us.uid(), true),
            (Some(own), us.uid() + 1, true),
            (Some(own + 1), us.uid(), false),
            // Its pid is not known.
            (None, us.uid(), true),
            (None, us.uid() + 1, false),
        ] {
            assert_eq!(Peer { pid, uid }.is(&us), expected, "{pid:?} {uid}");
        }
    }

    /// Some connect and say nothing, or begin to greet and never end: the agent that comes after them is heard all the same.
    #[tokio::test]
    async fn nobody_keeps_the_agent_from_being_heard() {
        let scratch = Scratch::new("link");
        let path = scratch.file("socket");
        let listener = Listener::at(&path);
        let agent = std::thread::spawn(move || {
            let strangers: Vec<_> = (0..2 * MOST_CALLERS)
                .map(|number| {
                    let mut stranger = std::os::unix::net::UnixStream::connect(&path).unwrap();
                    let begun: [&[u8]; 4] = [&[], &[9], &[9, 0, 0, 0, 1], &[0xff; 64]];
                    // One that was sent away does not listen.
                    let _ = std::io::Write::write_all(&mut stranger, begun[number % begun.len()]);
                    stranger
                })
                .collect();
            let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
            greet(&mut stream, 4711);
            (strangers, stream)
        });
        let caller = tokio::time::timeout(PATIENCE, listener.accept()).await.expect("heard").unwrap();
        assert_eq!(caller.greeting().pid, 4711);
        agent.join().unwrap();
    }

    #[tokio::test]
    async fn another_process_is_sent_away_whatever_it_says() {
        let scratch = Scratch::new("link");
        let path = scratch.file("socket");
        let us = std::process::id();
        let listener = Listener::for_peer(&path, Peer { pid: Some(us + 1), uid: rustix::process::geteuid().as_raw() });
        let stranger = std::thread::spawn(move || {
            let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
            let greeted = wire::write(&mut stream, &Err::<Greeting, _>("let me in".to_owned()));
            // The end of the connection, or that it is reset.
            (greeted, std::io::Read::read(&mut stream, &mut [0]).unwrap_or(0))
        });
        let accepting = listener.accept();
        tokio::pin!(accepting);
        let sent_away = tokio::task::spawn_blocking(move || stranger.join().unwrap());
        tokio::select! {
            _ = &mut accepting => panic!("nobody has called"),
            sent_away = tokio::time::timeout(PATIENCE, sent_away) => assert_eq!(sent_away.expect("sent away").unwrap().1, 0),
        }
    }

    #[tokio::test]
    async fn two_long_messages_pass_each_other() {
        let scratch = Scratch::new("link");
        let path = scratch.file("socket");
        let listener = Listener::at(&path);
        let agent = std::thread::spawn(move || {
            let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
            greet(&mut stream, 1);
            let _: Welcome = wire::read(&mut stream).unwrap();
            let long: Result<Reply, String> = Err("x".repeat(MUCH));
            wire::write(&mut stream, &ToTool::Reply { request: 1, reply: long }).unwrap();
            wire::read::<ToAgent>(&mut stream).unwrap()
        });
        let caller = listener.accept().await.unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut connection = caller.welcome(&file, std::time::Duration::from_secs(1)).unwrap();
        let sent = ToAgent::Answer { request: 2, answer: Answer::Bytes(Some(vec![7; MUCH])) };
        tokio::time::timeout(PATIENCE, connection.send(&sent)).await.expect("no deadlock").unwrap();
        let received = tokio::time::timeout(PATIENCE, connection.receive()).await.expect("no deadlock").unwrap();
        assert!(matches!(received, ToTool::Reply { request: 1, .. }));
        assert_eq!(agent.join().unwrap(), sent);
    }
}
