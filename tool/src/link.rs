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
        let (reader, writer) = stream.into_split();
        Ok(Link { reader, writer, received: Vec::new() })
    }
}

impl Link {
    /// Sends a message.
    pub async fn send(&mut self, message: &ToAgent) -> Result<(), WireError> {
        Ok(self.writer.write_all(&wire::encode(message)?).await?)
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
