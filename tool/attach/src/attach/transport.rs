//! One command to the JVM, and its answer.
//!
//! The request is the protocol's version, the command and three arguments, each ended by a zero byte; the answer is the
//! result as a decimal number, a line feed, and the command's output up to the end of the connection. All JVMs understand this
//! version. JDK 24 has a second one, with options; and it hands out its answer while it makes it, unless it is told by one not to
//! ([`execute_at_safepoint`]).

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use headwater_modified_utf8 as modified_utf8;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::trigger::{ensure_socket, remove_socket, socket_name};
use super::{AttachError, TargetHost};

const PROTOCOL_VERSION: &str = "1";
/// `AttachOperation::arg_length_max` in HotSpot, without the zero byte; longer arguments are refused as a bad version.
const LONGEST_ARGUMENT_BYTES: usize = 1024;
/// How long the JVM may take to accept the connection and the request.
const SEND_DEADLINE: Duration = Duration::from_secs(5);
/// How long it may take to carry out the command: it first brings its threads to a safepoint.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);
/// More than any command's output that we ask for: HotSpot cuts it off at 100 MiB.
const LONGEST_ANSWER_BYTES: u64 = 128 << 20;

/// Has the JVM carry out one command of its attach mechanism, and returns the output.
pub(super) fn execute(host: &TargetHost, command: &str, arguments: [&str; 3]) -> Result<String, AttachError> {
    ask(host, command, &request(command, arguments)?)
}

/// The same for a command whose answer is made at a safepoint. From JDK 24 on the JVM would be stopped there until all of it but what a
/// socket holds has been read: for ever, if this process were stopped.
pub(super) fn execute_at_safepoint(
    host: &TargetHost,
    command: &str,
    arguments: [&str; 3],
) -> Result<String, AttachError> {
    let options = match execute(host, "getversion", ["options", "", ""]) {
        Ok(options) => options,
        // What older ones say.
        Err(AttachError::CommandFailed { .. }) => String::new(),
        Err(error) => return Err(error),
    };
    let has_option = options.split_whitespace().any(|option| option == "streaming");
    if !has_option {
        return execute(host, command, arguments);
    }
    ask(host, command, &request_with(command, "streaming=0", arguments)?)
}

fn ask(host: &TargetHost, command: &str, request: &[u8]) -> Result<String, AttachError> {
    ensure_socket(host)?;
    if host.is_abandoned() {
        return Err(AttachError::NoAnswer { pid: host.pid(), command: command.to_owned(), waited: Duration::ZERO });
    }
    // As the target's user: a JVM accepts that one always, root in most cases.
    let converse = || host.as_target(|| converse(host, command, request))?;
    let mut reply = converse()?;
    if matches!(reply, Reply::Deserted) || matches!(reply, Reply::Denied) && is_deserted(host) {
        // A JVM removes at its start what one of the same number has left that was killed, unless that was another user's.
        remove_socket(host)?;
        ensure_socket(host)?;
        reply = converse()?;
    }
    answered(host, command, reply)
}

/// Whether nobody listens at a socket that the target's user may not open: an earlier process of another user's left it.
fn is_deserted(host: &TargetHost) -> bool {
    connect(host).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Whether the JVM closes a connection of our own, not its user's, without an answer. Its socket must exist.
#[cfg(test)]
pub(super) fn refuses_us(host: &TargetHost) -> Result<bool, AttachError> {
    let request = request("jcmd", ["VM.version", "", ""])?;
    Ok(matches!(converse(host, "jcmd", &request)?, Reply::Closed))
}

/// What the JVM said, or why it said nothing.
fn answered(host: &TargetHost, command: &str, reply: Reply) -> Result<String, AttachError> {
    match reply {
        Reply::Answer(answer) => decode(host.pid(), command, &answer),
        Reply::Closed => Err(refused(host)),
        Reply::Denied => {
            let path = format!("/tmp/{}", socket_name(host));
            Err(AttachError::WrongSocket { path, why: format!("user id {} may not open it", host.uid()) })
        }
        Reply::Deserted => {
            let path = format!("/tmp/{}", socket_name(host));
            Err(AttachError::WrongSocket { path, why: "nobody listens at it".to_owned() })
        }
    }
}

fn refused(host: &TargetHost) -> AttachError {
    if host.is_alive() {
        AttachError::Refused { pid: host.pid(), uid: host.uid(), gid: host.gid() }
    } else {
        AttachError::Gone { pid: host.pid() }
    }
}

fn request(command: &str, arguments: [&str; 3]) -> Result<Vec<u8>, AttachError> {
    strings(command, &[&[PROTOCOL_VERSION, command][..], &arguments].concat())
}

/// A request of the second version: the length of what follows, the command with its options, and its arguments.
fn request_with(command: &str, options: &str, arguments: [&str; 3]) -> Result<Vec<u8>, AttachError> {
    let with_options = format!("{command} {options}");
    let body = strings(command, &[&[with_options.as_str()][..], &arguments].concat())?;
    let mut request = strings(command, &["2", &body.len().to_string()])?;
    request.extend(body);
    Ok(request)
}

fn strings(command: &str, parts: &[&str]) -> Result<Vec<u8>, AttachError> {
    let bad = |why: String| Err(AttachError::BadArgument { command: command.to_owned(), why });
    let mut request = Vec::new();
    for part in parts {
        if part.contains('\0') {
            return bad("contains a zero byte".to_owned());
        }
        if part.len() > LONGEST_ARGUMENT_BYTES {
            return bad(format!("has {} bytes, and at most {LONGEST_ARGUMENT_BYTES} are allowed", part.len()));
        }
        request.extend(part.as_bytes());
        request.push(0);
    }
    Ok(request)
}

enum Reply {
    Answer(Vec<u8>),
    /// The connection ended without a byte: HotSpot's way to refuse a user.
    Closed,
    /// Nobody listens at the socket.
    Deserted,
    /// The target's user may not open it.
    Denied,
}

fn converse(host: &TargetHost, command: &str, request: &[u8]) -> Result<Reply, AttachError> {
    let path = format!("/tmp/{}", socket_name(host));
    let start = Instant::now();
    let exchange = || -> io::Result<Vec<u8>> {
        let mut stream = connect(host)?;
        stream.write_all(request)?;
        read_to_end(&mut stream, start + ANSWER_DEADLINE)
    };
    match exchange() {
        Ok(answer) if answer.is_empty() => Ok(Reply::Closed),
        Ok(answer) => Ok(Reply::Answer(answer)),
        Err(error) => match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => Ok(Reply::Closed),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                host.status()?;
                Err(AttachError::NoAnswer { pid: host.pid(), command: command.to_owned(), waited: start.elapsed() })
            }
            io::ErrorKind::ConnectionRefused => {
                host.status()?;
                Ok(Reply::Deserted)
            }
            io::ErrorKind::PermissionDenied => Ok(Reply::Denied),
            _ => Err(AttachError::file("talk to the JVM at", &path, error)),
        },
    }
}

/// Connects through handles on the target's /tmp and on the socket itself: that works across mount namespaces, from a thread with fewer
/// rights, is always short enough for a socket address, and leads nowhere else when the name is made another file's.
fn connect(host: &TargetHost) -> io::Result<UnixStream> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(host.tmp(), socket_name(host), flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::Socket {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // The sending timeout also bounds a connect to a full backlog.
    set_socket_timeout(&socket, Timeout::Send, Some(SEND_DEADLINE))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path.as_str())?)?;
    Ok(UnixStream::from(socket))
}

fn read_to_end(stream: &mut UnixStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut chunk = [0; 8192];
    while (answer.len() as u64) < LONGEST_ANSWER_BYTES {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => answer.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The JVM may close with unread input of ours; what it has said so far counts.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset && !answer.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(answer)
}

/// Splits the answer into result and output; a result other than 0 is an error with the JVM's words.
fn decode(pid: u32, command: &str, answer: &[u8]) -> Result<String, AttachError> {
    let text = modified_utf8::decode_text(answer);
    let (result, output) = text.split_once('\n').unwrap_or((&text, ""));
    match result.trim().parse::<i32>() {
        Ok(0) => Ok(output.to_owned()),
        Ok(code) => {
            let message = match (one_line(output), code) {
                // ATTACH_ERROR_BADVERSION, in HotSpot's attachListener.hpp.
                (said, 101) if said.is_empty() => "it does not know this version of the attach protocol".to_owned(),
                (said, _) if said.is_empty() => "it gave no reason".to_owned(),
                (said, _) => said,
            };
            Err(AttachError::CommandFailed { pid, command: command.to_owned(), code, message })
        }
        Err(_) => Err(AttachError::BadAnswer { pid, answer: text.chars().take(80).collect() }),
    }
}

/// Some lines of output as one line for a message.
pub(super) fn one_line(output: &str) -> String {
    output.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_five_strings_each_ended_by_zero() {
        let bytes = request("load", ["/tmp/a.so", "true", ""]).expect("valid");
        assert_eq!(bytes, b"1\0load\0/tmp/a.so\0true\0\0");
        let bytes = request_with("threaddump", "streaming=0", ["-e", "", ""]).expect("valid");
        assert_eq!(bytes, b"2\x0028\0threaddump streaming=0\0-e\0\0\0");
        let cases =
            [("a\0b".to_owned(), "contains a zero byte"), ("x".repeat(1025), "has 1025 bytes, and at most 1024")];
        for (argument, expected) in cases {
            let error = request("load", [&argument, "", ""]).expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn an_answer_is_a_result_and_an_output() {
        let cases: &[(&[u8], Result<&str, &str>)] = &[
            (b"0\n", Ok("")),
            (b"0", Ok("")),
            (b"0\nreturn code: 0\n", Ok("return code: 0\n")),
            (b"0\n\xed\xa0\xb5\xed\xb2\xb3.m \xf0\x9d\x92\xb3", Ok("\u{1d4b3}.m \u{1d4b3}")),
            (b"101\n", Err("the JVM 7 refused the command `load` (error 101): it does not know this version")),
            (b"100\n", Err("the JVM 7 refused the command `load` (error 100): it gave no reason")),
            (b"-1\nno\nway\n", Err("(error -1): no; way")),
            (b"hello\n", Err("no attach response: `hello")),
            (b"\xff\n", Err("no attach response")),
        ];
        for (answer, expected) in cases {
            let decoded = decode(7, "load", answer).map_err(|error| error.to_string());
            match (&decoded, expected) {
                (Ok(output), Ok(expected)) => assert_eq!(output, expected),
                (Err(message), Err(expected)) => assert!(message.contains(expected), "{message}"),
                _ => panic!("{decoded:?} is not {expected:?}"),
            }
        }
    }
}
