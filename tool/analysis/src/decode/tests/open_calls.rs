//! Calls that began before recording.

use super::*;
use crate::cct::Below;

fn open(methods: &[u32]) -> Decoder {
    let mut decoder = open_unknown(methods);
    decoder.followed();
    decoder
}

/// The thread does not know yet that it is in these calls.
fn open_unknown(methods: &[u32]) -> Decoder {
    let mut decoder = Decoder::new(DecodeOptions::default());
    let methods: Vec<MethodId> = methods.iter().copied().map(MethodId).collect();
    decoder.open(ThreadId(1), &methods, 100);
    decoder
}

fn returned(open: usize, time_ns: i64) -> Returned {
    Returned { thread: ThreadId(1), open, time_ns, error_ns: 5 }
}

/// The trees once recording has ended at 1000, and how many open calls there are still.
fn check_open(mut decoder: Decoder, text: &str, expected: &[&str], still: usize) {
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words(text));
    let opened: Vec<usize> = decoder.open_calls().map(|(_, still)| still).collect();
    decoder.finish(1000);
    assert_eq!(trees(&decoder), expected, "{text}");
    assert_eq!((decoder.healed(), opened), (0, vec![still]), "{text}");
}

#[test]
fn calls_that_were_open_before_have_time_and_callees_but_no_calls() {
    check_open(open(&[1, 2]), "+3@200 -3@250", &["t1 1 0 0", "t1 1/2 0 850", "t1 1/2/3 1 50"], 2);
    check_open(open(&[1]), "+1@200 -1@250", &["t1 1 0 850", "t1 1/1 1 50"], 1);
}

#[test]
fn what_a_thread_enters_as_a_root_before_it_knows_of_its_open_calls_is_called_by_them() {
    let mut decoder = open_unknown(&[1]);
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("*3@200 +4@210 -4@230 -3@250 *1@260 -1@270"));
    decoder.followed();
    // It was about to enter that when it was told.
    let expected = ["t1 1 0 770", "t1 1/3 3 100", "t1 1/3/4 1 20", "t1 1/1 1 10"];
    check_open(decoder, "*3@280 -3@300 +3@350 -3@400", &expected, 1);
}

#[test]
fn what_is_recorded_of_a_call_that_began_before_is_told_apart() {
    let partial = |mut decoder: Decoder, text: &str| {
        decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words(text));
        decoder.finish(1000);
        decoder.partial().remove(&MethodId(1)).unwrap_or_default()
    };
    let below = |measured_ns, calls| Below { measured_ns, calls };
    let still_open = partial(open(&[1]), "+3@200 -3@250");
    assert_eq!(still_open, Partial { open_below: below(900, 1), ..Partial::default() });
    let found_gone = partial(open(&[1]), "+3@200 -3@250 -1@300 *1@400 +3@410 -3@420 -1@450");
    let ended = Partial { ended: 1, ended_below: below(200, 1), ..Partial::default() };
    assert_eq!(found_gone, ended);
    let mut seen_to_return = open(&[1]);
    seen_to_return.returned(returned(0, 300));
    assert_eq!(partial(seen_to_return, "+3@200 -3@250 *1@400"), Partial { unfinished: 1, ..ended });
    // Of a call that was under way when results were forgotten, only the rest is left.
    let mut cleared = Decoder::new(DecodeOptions::default());
    cleared.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("*1@100 +3@150"));
    cleared.clear(200);
    let rest = Partial { ended: 1, ended_below: below(100, 1), ..Partial::default() };
    assert_eq!(partial(cleared, "-3@210 +3@220 -3@230 -1@300 *1@400 -1@450"), rest);
}

#[test]
fn an_open_call_ends_when_its_thread_finds_it_gone() {
    let expected = ["t1 1 0 650", "t1 1/2 0 200", "t1 1/3 1 50"];
    check_open(open(&[1, 2]), "-2@300 +3@300 -3@350", &expected, 1);
    // Behind the last one the thread is outside, and comes in again by a root.
    check_open(open(&[1]), "-1@300 *1@400 -1@430", &["t1 1 1 230"], 0);
}

#[test]
fn an_open_call_ends_when_it_was_seen_to_have_returned() {
    let mut decoder = open(&[1, 2]);
    decoder.returned(returned(1, 400));
    decoder.returned(returned(0, 600));
    check_open(decoder.clone(), "", &["t1 1 0 200", "t1 1/2 0 300"], 2);
    // What the thread says of it later changes nothing; what it did before counts before.
    let text = "+3@200 -3@250 -2@900 -1@900 *4@950 -4@960";
    let expected = ["t1 1 0 200", "t1 1/2 0 250", "t1 1/2/3 1 50", "t1 4 1 10"];
    check_open(decoder, text, &expected, 0);
}

#[test]
fn a_look_that_comes_too_late_changes_nothing() {
    let mut decoder = open(&[1, 1]);
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("-1@300 +2@300"));
    decoder.returned(returned(1, 290));
    let expected = ["t1 1 0 600", "t1 1/1 0 200", "t1 1/2 1 100"];
    check_open(decoder, "-2@400", &expected, 1);
}

#[test]
fn open_calls_of_a_thread_in_another_root_begin_behind_it() {
    let mut decoder = Decoder::new(DecodeOptions::default());
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("*5@50"));
    decoder.open(ThreadId(1), &[MethodId(1)], 100);
    decoder.followed();
    check_open(decoder, "-5@200 +2@300 -2@310", &["t1 5 1 150", "t1 1 0 790", "t1 1/2 1 10"], 1);
}

#[test]
fn open_calls_stay_open_when_what_was_counted_is_forgotten() {
    let mut decoder = open(&[1, 2]);
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("+3@200"));
    decoder.clear(500);
    check_open(
        decoder,
        "-3@600 -2@700 +4@700 -4@710",
        &["t1 1 0 290", "t1 1/2 0 100", "t1 1/2/3 0 100", "t1 1/4 1 10"],
        1,
    );
}
