//! Work that is handed over to other threads (`--follow threads`).

use super::*;

#[test]
fn what_was_handed_over_hangs_on_the_call_that_did_so_whichever_is_read_first() {
    check_passes(
        &[("*1@0 +2@10 s@5 -2@20 -1@30", "r@5 +3@40 -3@60 e@0")],
        &["t1 1 1 20", "t1 1/2 1 10", "t2 1 0 0", "t2 1/2 0 0", "t2 1/2/~3 1 20"],
    );
    let expected = ["t1 1 0 0", "t1 1/~3 2 25", "t1 1/~3/4 1 5", "t2 1 1 100"];
    check_passes(&[("r@5 +3@10 +4@12 -4@17 -3@30 +3@40 -3@50 e@0", "*1@0 s@5 -1@100")], &expected);
    check_passes(&[("r@5 +3@10", ""), ("+4@12 -4@17 -3@30", ""), ("+3@40 -3@50 e@0", "*1@0 s@5 -1@100")], &expected);
}

#[test]
fn what_is_handed_over_in_turn_hangs_on_what_was_handed_over() {
    check_passes(
        &[("r@5 +2@10 s@6 -2@30 e@0", "*1@0 s@5 -1@100 r@6 +3@200 -3@210 e@0")],
        &["t1 1 0 0", "t1 1/~2 1 20", "t2 1 1 100", "t2 1/~2 0 0", "t2 1/~2/~3 1 10"],
    );
    // Between two calls of what it runs, too.
    check_passes(
        &[("r@5 s@6 e@0 r@6 +3@10 -3@20 e@0", "*1@0 s@5 -1@100")],
        &["t1 1 0 0", "t1 1/~3 1 10", "t2 1 1 100"],
    );
}

#[test]
fn other_work_of_a_thread_that_was_started_inside_is_outside() {
    check_passes(
        &[("r@5 +2@0 -2@5 r@0 *1@10 -1@20 e@0 +2@30 -2@35", "*1@0 s@5 -1@10")],
        &["t1 1 1 10", "t1 1/~2 2 10", "t2 1 1 10"],
    );
}

#[test]
fn a_virtual_threads_runs_wait_for_another_threads_word_too() {
    check_passes(
        &[("1@7 r@5 +2@0", ""), ("", "2@7 -2@10"), ("", ""), ("", "t@2 *1@100 s@5 -1@110"), ("", ""), ("", "")],
        &["t7 1 0 0", "t7 1/~2 1 1010", "t2 1 1 10"],
    );
}

#[test]
fn work_that_nobody_is_known_to_have_handed_over_is_left_out_and_counted() {
    let mut decoder = decoded("r@9 +2@10 +3@20 -3@30 -2@40 e@0 *1@50 -1@60");
    assert_eq!(trees(&decoder), Vec::<String>::new(), "it may come");
    (0..5).for_each(|_| decoder.pass_done());
    assert_eq!(trees(&decoder), ["t1 1 1 10"]);
    assert_eq!((decoder.lost_handovers(), decoder.healed()), (1, 0));
    let mut decoder = decoded("r@9 +2@10 -2@40 e@0");
    decoder.finish(100);
    assert_eq!(decoder.lost_handovers(), 1);
}

#[test]
fn work_that_is_dropped_is_forgotten_in_whatever_order_that_is_read() {
    for text in ["*1@0 s@5 s@6 -1@10 d@5 d@6", "d@5 d@6 *1@0 s@5 s@6 -1@10"] {
        let decoder = decoded(text);
        assert_eq!(decoder.handovers.remembered(), 0, "{text}");
    }
}

#[test]
fn what_root_calls_beyond_the_limit_hand_over_does_not_count() {
    let mut decoder = Decoder::new(DecodeOptions { root_limit: Some(1), ..DecodeOptions::default() });
    let text = "*1@0 s@5 -1@10 *1@20 s@6 -1@30 t@2 r@6 +2@40 -2@50 e@0 r@5 +3@60 -3@65 e@0";
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words(text));
    assert_eq!(trees(&decoder), ["t1 1 1 10", "t2 1 0 0", "t2 1/~3 1 5"]);
}

#[test]
fn frames_that_are_open_when_work_ends_are_healed() {
    let decoder = decoded("*1@0 s@5 -1@10 t@2 r@5 +2@20 +3@30 e@0 *1@40 -1@50");
    assert_eq!(trees(&decoder), ["t1 1 1 10", "t2 1 1 10", "t2 1/~2 1 10", "t2 1/~2/3 1 0"]);
    assert_eq!((decoder.healed(), decoder.open_frames()[1]), (2, 0));
}

#[test]
fn clearing_keeps_threads_in_what_they_run() {
    let mut decoder = decoded("*1@0 s@5 s@6 -1@10 t@2 r@5 +2@20");
    decoder.clear(30);
    let mut cursor = ChunkCursor::new(ThreadId(2), 0);
    decoder.words(&mut cursor, &words("+3@40 -3@50 -2@60 +2@70 -2@80 e@0 r@6 +4@90 -4@95 e@0"));
    assert_eq!(trees(&decoder), ["t2 1 0 0", "t2 1/~2 1 30", "t2 1/~2/3 1 10", "t2 1/~4 1 5"]);
}
