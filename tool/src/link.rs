//! The tool's end of the control socket: the handshake, and messages in both directions.

use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use headwater_protocol::PROTOCOL_VERSION;
use headwater_protocol::message::{Greeting, ToAgent, ToTool, Welcome};
use headwater_protocol::wire::{self, WireError};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

/// How long the agent may take over each step of the handshake.
const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// Why there is no conversation with an agent.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
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

/// A socket that waits for the agent.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: String,
}

/// An open conversation.
#[derive(Debug)]
pub struct Link {
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    /// The message that is being received: a cancelled `receive` loses nothing.
    received: Vec<u8>,
    peer_pid: Option<u32>,
}

impl Listener {
    /// Listens at a path in the file system; whoever may enter the directory may connect.
    pub fn bind(path: &Path) -> Result<Listener, LinkError> {
        let name = path.display().to_string();
        let bound = UnixListener::bind(path).and_then(|socket| {
            // The directory keeps others out; the target may run under another user than we do.
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o666))?;
            Ok(socket)
        });
        match bound {
            Ok(socket) => Ok(Listener { socket, path: name }),
            Err(error) => Err(LinkError::Socket { path: name, error }),
        }
    }

    /// Waits for an agent's connection.
    pub async fn accept(&self) -> Result<Caller, LinkError> {
        let failed = |error| LinkError::Socket { path: self.path.clone(), error };
        let (stream, _) = self.socket.accept().await.map_err(failed)?;
        let stream = stream.into_std().map_err(failed)?;
        stream.set_nonblocking(false).map_err(failed)?;
        stream.set_read_timeout(Some(HANDSHAKE_DEADLINE)).map_err(failed)?;
        stream.set_write_timeout(Some(HANDSHAKE_DEADLINE)).map_err(failed)?;
        Ok(Caller { stream, path: self.path.clone() })
    }
}

/// An agent that has connected and not been welcomed yet.
#[derive(Debug)]
pub struct Caller {
    stream: std::os::unix::net::UnixStream,
    path: String,
}

impl Caller {
    /// The first frame: a greeting, or the agent's reason not to serve.
    pub fn greeting(&mut self) -> Result<Greeting, LinkError> {
        let greeting: Result<Greeting, String> = wire::read(&mut self.stream)?;
        let greeting = greeting.map_err(LinkError::Declined)?;
        if greeting.protocol == PROTOCOL_VERSION { Ok(greeting) } else { Err(LinkError::Version(greeting.protocol)) }
    }

    /// Welcomes the agent with the segment's file.
    pub fn welcome(self, segment: impl AsFd, deadline: Duration) -> Result<Link, LinkError> {
        let failed = |error| LinkError::Socket { path: self.path.clone(), error };
        let deadline_ms = u32::try_from(deadline.as_millis()).unwrap_or(u32::MAX);
        let frame = wire::encode(&Welcome { protocol: PROTOCOL_VERSION, deadline_ms })?;
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [segment.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let sent = rustix::net::sendmsg(&self.stream, &[IoSlice::new(&frame)], &mut ancillary, SendFlags::NOSIGNAL)
            .map_err(|error| failed(error.into()))?;
        if sent != frame.len() {
            return Err(failed(io::ErrorKind::WriteZero.into()));
        }
        self.stream.set_nonblocking(true).map_err(failed)?;
        let stream = UnixStream::from_std(self.stream.try_clone().map_err(failed)?).map_err(failed)?;
        let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
        let peer_pid = peer.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0);
        let (reader, writer) = stream.into_split();
        Ok(Link { reader, writer, received: Vec::new(), peer_pid })
    }
}

impl Link {
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
    use headwater_protocol::message::{Answer, Reply};
    use headwater_tests::{PATIENCE, Scratch};

    use super::*;

    /// More than any socket buffer holds.
    const MUCH: usize = 8 << 20;

    #[tokio::test]
    async fn two_long_messages_pass_each_other() {
        let scratch = Scratch::new("link");
        let path = scratch.file("socket");
        let listener = Listener::bind(&path).unwrap();
        let agent = std::thread::spawn(move || {
            let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
            let greeting = Greeting {
                protocol: PROTOCOL_VERSION,
                pid: 1,
                vm_version: String::new(),
                java_version: String::new(),
                startup: false,
                forgets_names: false,
            };
            wire::write(&mut stream, &Ok::<_, String>(greeting)).unwrap();
            let _: Welcome = wire::read(&mut stream).unwrap();
            let long: Result<Reply, String> = Err("x".repeat(MUCH));
            wire::write(&mut stream, &ToTool::Reply { request: 1, reply: long }).unwrap();
            wire::read::<ToAgent>(&mut stream).unwrap()
        });
        let mut caller = listener.accept().await.unwrap();
        caller.greeting().unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut link = caller.welcome(&file, std::time::Duration::from_secs(1)).unwrap();
        let sent = ToAgent::Answer { request: 2, answer: Answer::Bytes(Some(vec![7; MUCH])) };
        tokio::time::timeout(PATIENCE, link.send(&sent)).await.expect("no deadlock").unwrap();
        let received = tokio::time::timeout(PATIENCE, link.receive()).await.expect("no deadlock").unwrap();
        assert!(matches!(received, ToTool::Reply { request: 1, .. }));
        assert_eq!(agent.join().unwrap(), sent);
    }
}
