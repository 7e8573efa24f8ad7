//! Messages of the tool, as they come.

use std::collections::VecDeque;
use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use headwater_protocol::message::{Command, RequestId, ToAgent};
use headwater_protocol::wire::{self, WireError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;

/// The reading end.
#[derive(Debug)]
pub struct Reader {
    stream: UnixStream,
    received: Vec<u8>,
    /// Commands that arrived while the reading thread waited for an answer, or was at something else.
    pub commands: VecDeque<(RequestId, Command)>,
}

impl Reader {
    /// Of this socket, from which nothing has been read.
    pub fn of(stream: UnixStream) -> Reader {
        Reader { stream, received: Vec::new(), commands: VecDeque::new() }
    }

    /// The next message; `None` when the deadline passes first, and nothing has come by then.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Option<ToAgent>, WireError> {
        let mut has_read = false;
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(Some(message));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            // Who always comes too late would never hear anything.
            if has_read && left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            has_read = true;
            self.wait(left)?;
            self.receive()?;
        }
    }

    /// Waits until something has come, for so long at most. A socket's own deadline would be rounded up to the kernel's ticks, which are up to ten milliseconds.
    fn wait(&self, longest: Option<Duration>) -> io::Result<()> {
        let longest = longest.and_then(|longest| Timespec::try_from(longest).ok());
        match poll(&mut [PollFd::new(&self.stream, PollFlags::IN)], longest.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The next message; `None` when there is none yet.
    pub fn next_now(&mut self) -> Result<Option<ToAgent>, WireError> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(Some(message));
            }
            if !self.receive()? {
                return Ok(None);
            }
        }
    }

    /// The first message of what has been received, if it is whole.
    fn take_message(&mut self) -> Result<Option<ToAgent>, WireError> {
        let Some((prefix, rest)) = self.received.split_first_chunk::<4>() else { return Ok(None) };
        let Some(body) = rest.get(..wire::body_length(*prefix)?) else { return Ok(None) };
        let message = wire::decode(body)?;
        let length = 4 + body.len();
        self.received.drain(..length);
        Ok(Some(message))
    }

    /// Receives what there is; whether there was anything.
    fn receive(&mut self) -> io::Result<bool> {
        let mut buffer = [0_u8; 16 << 10];
        match rustix::net::recv(&self.stream, &mut buffer, RecvFlags::DONTWAIT).map_err(io::Error::from) {
            Ok((_, 0)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((read, _)) => {
                self.received.extend_from_slice(&buffer[..read]);
                Ok(true)
            }
            Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// Whether nothing has come, or gone, before a socket's own deadline.
pub fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_has_come_is_heard_however_late_one_is() {
        let (mut tool, stream) = UnixStream::pair().expect("a pair of sockets");
        let mut reader = Reader::of(stream);
        let late = Some(Instant::now());
        assert!(matches!(reader.next(late), Ok(None)), "nothing has come");
        let command = ToAgent::Command { request: 7, command: Command::Detach };
        tool.write_all(&wire::encode(&command).expect("a frame")).expect("it is sent");
        assert!(matches!(reader.next(late), Ok(Some(ToAgent::Command { request: 7, command: Command::Detach }))));
        drop(tool);
        assert!(reader.next(late).is_err(), "the end is heard too");
    }

    #[test]
    fn what_has_come_is_heard_without_waiting_for_more() {
        let (mut tool, stream) = UnixStream::pair().expect("a pair of sockets");
        let mut reader = Reader::of(stream);
        assert!(matches!(reader.next_now(), Ok(None)), "nothing has come");
        let frame = wire::encode(&ToAgent::Command { request: 7, command: Command::Stop }).expect("a frame");
        tool.write_all(&frame[..5]).expect("it is sent");
        assert!(matches!(reader.next_now(), Ok(None)), "it is not whole");
        tool.write_all(&frame[5..]).expect("it is sent");
        tool.write_all(&frame).expect("it is sent");
        for _ in 0..2 {
            assert!(matches!(reader.next_now(), Ok(Some(ToAgent::Command { request: 7, command: Command::Stop }))));
        }
        drop(tool);
        assert!(reader.next_now().is_err(), "the end is heard too");
    }
}
