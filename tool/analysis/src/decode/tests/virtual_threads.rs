//! Virtual threads, whose runs are spread over the chunks of their carriers.

use super::*;

#[test]
fn a_virtual_threads_runs_are_decoded_in_their_order() {
    let expected = ["t7 1 1 30", "t7 1/2 1 1000"];
    // The carrier that is read first has the second run.
    check_passes(&[("2@7 -2@1010 -1@1030", "1@7 *1@0 +2@10"), ("", ""), ("", "")], &["t7 1 1 30", "t7 1/2 1 0"]);
    check_passes(&[("1@7 *1@0 +2@10", "2@7 -2@10 -1@30"), ("", ""), ("", "")], &expected);
    // The first run grows after its chunk has been read, and before the second run begins.
    check_passes(&[("1@7 *1@0", "2@7 -2@10 -1@30"), (" +2@10", ""), ("", "")], &expected);
    // A run goes on after its turn has come.
    check_passes(&[("1@7 *1@0 +2@10", "2@7"), ("", ""), ("", "-2@10"), ("", "-1@30")], &expected);
}

#[test]
fn a_virtual_thread_may_change_its_carrier_in_every_pass() {
    check_passes(
        &[("1@7 *1@0", ""), ("", "2@7 +2@10"), ("3@7 -2@1030", ""), ("", "4@7 -1@50"), ("", ""), ("", "")],
        &["t7 1 1 1030", "t7 1/2 1 20"],
    );
}

#[test]
fn between_the_carriers_clocks_no_time_is_counted() {
    let check = |passes, expected| check_passes_by(TimeBase::Carrier, passes, expected);
    // The second carrier's clock is far ahead; the first's is behind when the thread comes back to it.
    check(
        &[("1@7 *1@0 +2@10", ""), ("", "2@7 -2@10"), ("", "-1@30"), ("", ""), ("", "")],
        &["t7 1 1 30", "t7 1/2 1 0"],
    );
    check(
        &[("3@7 -3@5 -1@9 1@7 *1@0 +2@10", "2@7 -2@10 +3@14"), ("", ""), ("", "")],
        &["t7 1 1 18", "t7 1/2 1 0", "t7 1/3 1 0"],
    );
    // A run whose first event is not there yet when its turn comes.
    check(&[("1@7 *1@0", "2@7"), ("", ""), ("", "-1@7"), ("", "")], &["t7 1 1 0"]);
}

#[test]
fn a_thread_by_its_own_clock_keeps_no_time_after_its_last_event() {
    let mut decoder = Decoder::new(DecodeOptions { time_base: TimeBase::Carrier, ..DecodeOptions::default() });
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("*1@10 +2@30"));
    decoder.finish(1_000_000);
    assert_eq!(trees(&decoder), ["t1 1 1 20", "t1 1/2 1 0"]);
}

#[test]
fn threads_on_one_carrier_are_told_apart() {
    check_passes(
        &[("1@7 *1@0 1@8 *1@5 2@7 -1@10 2@8 -1@20 t@9 *1@30 -1@40", ""), ("", ""), ("", "")],
        &["t7 1 1 10", "t8 1 1 15", "t9 1 1 10"],
    );
}

#[test]
fn runs_that_are_held_at_the_end_are_decoded() {
    let mut decoder = Decoder::new(DecodeOptions::default());
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("2@7 -1@30 1@7 *1@10"));
    decoder.finish(50);
    assert_eq!(trees(&decoder), ["t7 1 1 20"]);
}

#[test]
fn virtual_threads_by_the_million_are_added_up() {
    let mut decoder = Decoder::new(DecodeOptions::default());
    let mut carrier = ChunkCursor::new(ThreadId(1), 0);
    let threads = 3 * FOLD_AT as u64;
    // One stays inside its root.
    decoder.words(&mut carrier, &words("1@7 *1@0"));
    for thread in 10..10 + threads {
        decoder.words(&mut carrier, &words(&format!("1@{thread} *1@0 +2@10 -2@30 -1@40")));
        decoder.pass_done();
        decoder.pass_done();
    }
    decoder.words(&mut carrier, &words("2@7 -1@50"));
    decoder.finish(60);
    let all: Vec<(ThreadId, u64)> = decoder
        .threads()
        .map(|(id, tree)| (id, tree.roots().iter().map(|(root, _)| tree.node(*root).calls).sum()))
        .collect();
    assert!(all.len() <= FOLD_AT + 2, "{}", all.len());
    assert_eq!(all.iter().map(|(_, calls)| calls).sum::<u64>(), threads + 1);
    assert_eq!(all[0], (ThreadId(7), 1));
    assert_eq!(all.last().map(|(id, _)| *id), Some(FOLDED));
    assert_eq!((decoder.healed(), decoder.open_frames()[1]), (0, 0));
}

#[test]
fn a_virtual_thread_runs_as_its_carrier_does_and_waits_while_another_is_there() {
    let mut decoder = Decoder::new(DecodeOptions::default());
    let mut carriers = [1, 2].map(|carrier| ChunkCursor::new(ThreadId(carrier), 0));
    let look = |decoder: &mut Decoder, running: [bool; 2]| {
        decoder.sample_unmounted();
        [1, 2].map(|carrier| decoder.sample(ThreadId(carrier), || Some(running[carrier as usize - 1])))
    };
    let mut write = |decoder: &mut Decoder, carrier: usize, text| {
        decoder.words(&mut carriers[carrier - 1], &words(text));
        decoder.pass_done();
        decoder.pass_done();
    };
    write(&mut decoder, 1, "1@7 *1@0 +2@10");
    assert_eq!(look(&mut decoder, [true, true]), [true, false]);
    write(&mut decoder, 1, "1@8 *1@20");
    assert_eq!(look(&mut decoder, [true, true]), [true, false], "thread 8 has its carrier");
    write(&mut decoder, 2, "2@7 -2@30");
    assert_eq!(look(&mut decoder, [false, true]), [true, true], "thread 7 goes on elsewhere");
    decoder.finish(100);
    let samples = |(thread, tree): (ThreadId, &Cct)| {
        let of_node = |(id, _): (NodeId, _)| (tree.cpu(id).samples, tree.cpu(id).running);
        (thread.0, tree.nodes().skip(1).map(of_node).collect())
    };
    let seen: Vec<(u64, Vec<(u32, u32)>)> = decoder.threads().map(samples).collect();
    assert_eq!(seen, [(7, vec![(1, 1), (2, 1)]), (8, vec![(2, 1)])]);
}
