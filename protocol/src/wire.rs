//! Framing: a little-endian u32 length, then that many bytes of postcard.

use std::io::{self, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest frame that is believed. The list of 100,000 classes takes about 10 MB.
pub const MAX_FRAME_BYTES: usize = 256 << 20;

/// What can be wrong with a frame.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The other side closed the connection, or the operating system did.
    #[error("the connection was lost: {0}")]
    Io(#[from] io::Error),
    /// A length that no message has.
    #[error("a message of {0} bytes was announced, {MAX_FRAME_BYTES} is the limit: the stream is garbled")]
    Length(usize),
    /// Bytes that are no message.
    #[error("a message could not be understood ({0}): the stream is garbled, or the versions differ")]
    Garbled(#[from] postcard::Error),
}

/// The frame of a message, length included.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, WireError> {
    let mut frame = postcard::to_extend(message, vec![0; 4])?;
    let length = frame.len() - 4;
    if length > MAX_FRAME_BYTES {
        return Err(WireError::Length(length));
    }
    frame[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(frame)
}

/// The message in a frame's body.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, WireError> {
    Ok(postcard::from_bytes(body)?)
}

/// The body length that a frame's first four bytes announce.
pub fn body_length(prefix: [u8; 4]) -> Result<usize, WireError> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length > MAX_FRAME_BYTES { Err(WireError::Length(length)) } else { Ok(length) }
}

/// Writes one message.
pub fn write<T: Serialize>(to: &mut impl Write, message: &T) -> Result<(), WireError> {
    to.write_all(&encode(message)?)?;
    Ok(to.flush()?)
}

/// Reads one message; the end of the stream is an error of kind `UnexpectedEof`.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> Result<T, WireError> {
    let mut prefix = [0; 4];
    from.read_exact(&mut prefix)?;
    let length = body_length(prefix)?;
    // Grown as bytes arrive: a garbled length must not allocate 256 MB.
    let mut body = Vec::with_capacity(length.min(64 << 10));
    if from.take(length as u64).read_to_end(&mut body)? != length {
        return Err(WireError::Io(io::ErrorKind::UnexpectedEof.into()));
    }
    decode(&body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Answer, ToAgent};

    fn sample() -> Vec<ToAgent> {
        vec![
            ToAgent::Answer { request: 300, answer: Answer::Bytes(Some(vec![0xca, 0xfe])) },
            ToAgent::Answer { request: 301, answer: Answer::Bytes(None) },
        ]
    }

    #[test]
    fn messages_survive_the_wire() {
        let mut stream = Vec::new();
        for message in sample() {
            write(&mut stream, &message).unwrap();
        }
        let mut from = stream.as_slice();
        for message in sample() {
            assert_eq!(read::<ToAgent>(&mut from).unwrap(), message);
        }
    }

    #[test]
    fn garbled_streams_are_errors() {
        let whole = encode(&sample()[0]).unwrap();
        for cut in 0..whole.len() {
            assert!(read::<ToAgent>(&mut &whole[..cut]).is_err(), "cut at {cut}");
        }
        assert!(matches!(read::<ToAgent>(&mut &[0xff; 64][..]), Err(WireError::Length(_))));
        assert!(matches!(read::<ToAgent>(&mut &[1, 0, 0, 0, 0x77][..]), Err(WireError::Garbled(_))));
    }
}
