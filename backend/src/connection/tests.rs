//! The connection with a tool that is played.

use headwater_protocol::MethodId;
use headwater_protocol::segment::Segment;

use super::*;
use crate::os::monotonic_ns;
use crate::presence::tests::played;
use crate::retransformation::tests::Standing;

/// A connection, the tool's end of it, and where the tool gives its signs.
fn connected() -> (Connection, UnixStream, Segment) {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let (segment, presence) = played();
    (Connection::over(ours, presence, Duration::from_secs(3600)).expect("a connection"), theirs, segment)
}

const ALL: Duration = Duration::MAX;

#[test]
fn a_tool_that_is_absent_is_told_and_not_waited_for() {
    let (connection, mut theirs, segment) = connected();
    segment.beat(0);
    let answer = connection.ask(Upcall::FirstCall(MethodId(7)), ALL);
    assert!(matches!(answer, Err(AskError::Deadline)));
    assert!(matches!(wire::read(&mut theirs), Ok(ToTool::Upcall { upcall: Upcall::FirstCall(MethodId(7)), .. })));
    assert!(matches!(wire::read(&mut theirs), Ok(ToTool::Notice(Notice::DeadlinePassed { .. }))));
    connection.read_here();
    // Nor by the thread that reads.
    assert!(matches!(connection.ask(Upcall::FirstCall(MethodId(7)), ALL), Err(AskError::Deadline)));
    assert!(!connection.is_closed() && segment.end().is_none());
}

#[test]
fn who_finds_no_room_ends_the_session_of_a_tool_that_is_absent() {
    let (connection, _theirs, segment) = connected();
    segment.beat(0);
    while connection.send(&ToTool::Notice(Notice::FirstCall(MethodId(7)))).is_ok() {}
    assert!(connection.is_closed());
    assert_eq!(segment.end(), Some(End::Silence));
}

#[test]
fn what_the_tool_says_is_heard_in_the_midst_of_something_long() {
    let (connection, mut theirs, _segment) = connected();
    connection.presence().has_not_answered();
    connection.waiting.expect(1);
    assert!(connection.attend());
    for message in [
        ToAgent::Command { request: 7, command: Command::Stop },
        ToAgent::Answer { request: 1, answer: Answer::Bytes(None) },
    ] {
        wire::write(&mut theirs, &message).expect("it is sent");
    }
    assert!(connection.attend() && !connection.presence().is_unresponsive());
    assert!(matches!(connection.wait(1, Instant::now()), Ok(Answer::Bytes(None))));
    assert!(matches!(connection.next_command(|| None), Next::Command(7, Command::Stop)));
    drop(theirs);
    assert!(!connection.attend());
    assert!(matches!(connection.next_command(|| None), Next::Closed));
}

#[test]
fn who_waited_in_vain_for_a_hotswap_that_stood_still_waits_shorter_the_next_time() {
    let deadline = Duration::from_secs(3);
    let waits: Vec<u128> = (0..6).map(|stuck| patience_after(deadline, stuck).as_millis()).collect();
    assert_eq!(waits, [3000, 750, 200, 200, 200, 200]);
    assert_eq!(patience_after(deadline, u32::MAX), SHORTEST_DEADLINE);
    assert_eq!(patience_after(Duration::from_millis(50), 0), Duration::from_millis(50));
}

#[test]
fn only_while_a_hotswap_stands_still_is_a_wait_in_vain_the_reason_for_shorter_ones() {
    let (ours, _theirs) = UnixStream::pair().expect("a pair of sockets");
    let (segment, presence) = played();
    let connection = Connection::over(ours, presence, Duration::from_millis(1)).expect("a connection");
    let in_vain = || {
        segment.beat(monotonic_ns());
        assert!(matches!(connection.ask(Upcall::FirstCall(MethodId(7)), ALL), Err(AskError::Deadline)));
        connection.stuck.load(Ordering::Relaxed)
    };
    assert_eq!((0..20).map(|_| in_vain()).max(), Some(0));
    let standing = Standing::begin();
    // A machine may stand still for so long that the tool counts as absent, once.
    assert!((0..20).any(|_| in_vain() > 0));
    drop(standing);
    let stuck = connection.stuck.load(Ordering::Relaxed);
    assert_eq!((0..20).map(|_| in_vain()).max(), Some(stuck));
}
