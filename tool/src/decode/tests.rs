//! The accounting rules case by case, and random programs against the plainest decoder there can be.

use std::collections::BTreeMap;

use headwater_protocol::word::Handover;

use super::*;

mod open_calls;

/// Events of one thread by a short notation: `+1@100` enters method 1 at 100 ns, `*1` enters it as a root, `-1` leaves it, `!1`
/// leaves it by an exception, `p@30` is a pause of 30 ns, `t@7` a change to thread 7, `2@7` to its run 2. `s@5` hands over under number
/// 5, `r@5` runs that (`r@0` something that was not handed over), `e@0` ends it, `d@5` drops it.
fn words(text: &str) -> Vec<u64> {
    text.split_whitespace()
        .map(|event| {
            let (what, number) = event.split_once('@').expect("what@number");
            let number: u64 = number.parse().expect("a number");
            let method = MethodId(what[1..].parse().unwrap_or(0));
            match what.as_bytes()[0] {
                b'+' => Event::Enter { method, time_ns: number, root: false },
                b'*' => Event::Enter { method, time_ns: number, root: true },
                b'-' => Event::Exit { method, time_ns: number, thrown: false },
                b'!' => Event::Exit { method, time_ns: number, thrown: true },
                b'p' => Event::Pause { reason: Some(PauseReason::Hotswap), duration_ns: number },
                b's' => Event::Handover { what: Handover::Submit, link: number },
                b'r' => Event::Handover { what: Handover::Run, link: number },
                b'e' => Event::Handover { what: Handover::End, link: number },
                b'd' => Event::Handover { what: Handover::Drop, link: number },
                b't' => Event::Thread { thread: ThreadId(number), run: None },
                b'0'..=b'9' => Event::Thread { thread: ThreadId(number), run: Run::new(what.parse().expect("a run")) },
                _ => panic!("{event}"),
            }
            .encode()
        })
        .collect()
}

/// The trees: a line a node, `path calls self_ns`, what was handed over behind a `~`, and `!thrown` where there is any.
fn trees(decoder: &Decoder) -> Vec<String> {
    let mut lines = Vec::new();
    for (thread, tree) in decoder.threads() {
        for (id, node) in tree.nodes().skip(1) {
            let mut path = Vec::new();
            let mut at = Some(id);
            while let Some(id) = at.filter(|id| *id != NodeId::TOP) {
                let node = tree.node(id);
                path.push(format!("{}{}", if node.handed { "~" } else { "" }, node.method.0));
                at = tree.parent(id);
            }
            path.reverse();
            let thrown = if node.thrown > 0 { format!(" !{}", node.thrown) } else { String::new() };
            lines.push(format!("t{} {} {} {}{thrown}", thread.0, path.join("/"), node.calls, node.self_measured_ns));
        }
    }
    lines
}

fn decoded(text: &str) -> Decoder {
    let mut decoder = Decoder::new(DecodeOptions::default());
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words(text));
    decoder
}

fn check(text: &str, expected: &[&str]) {
    assert_eq!(trees(&decoded(text)), expected, "{text}");
}

#[test]
fn entering_a_callee_stops_the_callers_clock() {
    check("*1@100 +2@110 -2@150 -1@160", &["t1 1 1 20", "t1 1/2 1 40"]);
}

#[test]
fn every_level_of_a_recursion_is_a_node() {
    check("*1@0 +1@10 +1@30 -1@60 -1@100 -1@150", &["t1 1 1 60", "t1 1/1 1 60", "t1 1/1/1 1 30"]);
}

#[test]
fn a_deep_stack_that_an_exception_leaves_takes_a_step_a_frame() {
    // With a step for each frame below, too, this would take minutes.
    const DEPTH: u64 = 100_000;
    let at = |time_ns| (MethodId(2), time_ns);
    let enter = (1..=DEPTH).map(at).map(|(method, time_ns)| Event::Enter { method, time_ns, root: false });
    let leave = (DEPTH..2 * DEPTH).map(at).map(|(method, time_ns)| Event::Exit { method, time_ns, thrown: true });
    let root = Event::Enter { method: MethodId(1), time_ns: 0, root: true };
    let words: Vec<u64> = std::iter::once(root).chain(enter).chain(leave).map(Event::encode).collect();
    let mut decoder = Decoder::new(DecodeOptions::default());
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words);
    assert_eq!((decoder.events(), decoder.healed(), decoder.open_frames()), (2 * DEPTH + 1, 0, 1));
}

#[test]
fn pauses_are_taken_off_the_clock_they_lie_on() {
    check("*1@0 +2@10 p@25 +3@40 -3@50 -2@60 -1@70", &["t1 1 1 20", "t1 1/2 1 15", "t1 1/2/3 1 10"]);
    assert_eq!(decoded("*1@0 p@25 -1@40").pauses(PauseReason::Hotswap), PauseTotal { count: 1, duration_ns: 25 });
}

#[test]
fn a_pause_longer_than_its_interval_makes_no_negative_time() {
    check("*1@0 p@500 -1@40", &["t1 1 1 0"]);
}

#[test]
fn exceptions_are_counted_where_they_leave() {
    check("*1@0 +2@10 +3@20 !3@30 !2@40 -1@50", &["t1 1 1 20", "t1 1/2 1 20 !1", "t1 1/2/3 1 10 !1"]);
}

#[test]
fn a_missing_exit_is_healed_by_the_next_one_above() {
    // A constructor (2) whose superclass constructor throws leaves no exit.
    let decoder = decoded("*1@0 +2@10 +3@20 -1@50 *1@60 -1@70");
    assert_eq!(trees(&decoder), ["t1 1 2 20", "t1 1/2 1 10", "t1 1/2/3 1 30"]);
    assert_eq!((decoder.healed(), decoder.roots_completed(), decoder.open_frames()), (2, 2, 0));
}

#[test]
fn an_exit_of_nobody_is_ignored() {
    let decoder = decoded("*1@0 -7@10 -1@20 -1@30");
    assert_eq!(trees(&decoder), ["t1 1 1 20"]);
    assert_eq!(decoder.healed(), 2);
}

#[test]
fn a_root_from_outside_finds_the_stack_empty() {
    let decoder = decoded("*1@0 +2@10 *1@100 -1@110");
    assert_eq!(trees(&decoder), ["t1 1 2 20", "t1 1/2 1 0"], "nobody knows when the first one ended");
    assert_eq!((decoder.healed(), decoder.roots_completed()), (2, 2));
}

#[test]
fn what_is_below_no_root_has_no_place() {
    let decoder = decoded("+2@10 -2@20 *1@30 -1@40");
    assert_eq!(trees(&decoder), ["t1 1 1 10"]);
    assert_eq!(decoder.healed(), 2);
}

#[test]
fn threads_are_kept_apart() {
    check("*1@0 t@7 *1@5 -1@9 t@1 -1@20", &["t1 1 1 20", "t7 1 1 4"]);
}

#[test]
fn open_methods_get_their_time_at_the_end() {
    let mut decoder = decoded("*1@0 +2@10");
    decoder.finish(100);
    assert_eq!(trees(&decoder), ["t1 1 1 10", "t1 1/2 1 90"]);
    assert_eq!(decoder.open_frames(), 2);
}

#[test]
fn a_limit_counts_the_first_roots_and_nothing_else() {
    let mut decoder = Decoder::new(DecodeOptions { root_limit: Some(2), ..DecodeOptions::default() });
    let text = "*1@0 +2@1 -2@2 -1@3 *1@10 t@7 *1@11 +2@12 -2@13 -1@14 t@1 +2@15 -2@16 -1@20 *1@30 -1@31";
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words(text));
    assert_eq!(trees(&decoder), ["t1 1 2 11", "t1 1/2 2 2"]);
    assert_eq!((decoder.roots_entered(), decoder.roots_completed(), decoder.healed()), (2, 2, 0));
}

#[test]
fn words_without_meaning_are_counted() {
    let mut decoder = Decoder::new(DecodeOptions::default());
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &[1, 2]);
    assert_eq!(decoder.unknown(), 2);
}

#[test]
fn random_programs_agree_with_the_plainest_decoder() {
    for seed in 1..=50_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = move |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % limit
        };
        let mut stack: Vec<u64> = Vec::new();
        let mut expected: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let (mut now, mut stream) = (0, Vec::new());
        for step in 0..2_000 {
            let elapsed = random(50);
            let path = |stack: &[u64]| stack.iter().map(u64::to_string).collect::<Vec<_>>().join("/");
            if !stack.is_empty() {
                expected.entry(path(&stack)).or_default().1 += elapsed;
            }
            now += elapsed;
            let wind_up = step > 1_900;
            let method = match stack.last() {
                Some(top) if wind_up || stack.len() > 40 || random(2) == 0 => {
                    let method = MethodId(*top as u32);
                    stack.pop();
                    stream.push(Event::Exit { method, time_ns: now, thrown: random(5) == 0 }.encode());
                    continue;
                }
                _ if wind_up => break,
                _ => 1 + random(30),
            };
            let root = stack.is_empty();
            stack.push(method);
            expected.entry(path(&stack)).or_default().0 += 1;
            stream.push(Event::Enter { method: MethodId(method as u32), time_ns: now, root }.encode());
        }
        let mut decoder = Decoder::new(DecodeOptions::default());
        // In pieces, as the chunks' words come in.
        let mut cursor = ChunkCursor::new(ThreadId(1), 0);
        stream.chunks(7).for_each(|piece| decoder.words(&mut cursor, piece));
        let mut found: Vec<String> =
            trees(&decoder).iter().map(|line| line.split(" !").next().unwrap_or(line).to_owned()).collect();
        found.sort();
        let mut wanted: Vec<String> =
            expected.iter().map(|(path, (calls, self_ns))| format!("t1 {path} {calls} {self_ns}")).collect();
        wanted.sort();
        assert_eq!(found, wanted, "seed {seed}");
        assert_eq!(decoder.healed(), 0);
    }
}

/// Reads pieces of two carriers' chunks, a line a pass (`first | second`), and the trees after the last.
fn check_passes(passes: &[(&str, &str)], expected: &[&str]) {
    check_passes_by(TimeBase::System, passes, expected);
}

fn check_passes_by(time_base: TimeBase, passes: &[(&str, &str)], expected: &[&str]) {
    let mut decoder = Decoder::new(DecodeOptions { time_base, ..DecodeOptions::default() });
    let mut carriers = [ChunkCursor::new(ThreadId(1), 0), ChunkCursor::new(ThreadId(2), 1000)];
    for (first, second) in passes {
        decoder.words(&mut carriers[0], &words(first));
        decoder.words(&mut carriers[1], &words(second));
        decoder.pass_done();
    }
    assert_eq!(trees(&decoder), expected, "{passes:?}");
    assert_eq!((decoder.healed(), decoder.open_frames()), (0, 0), "{passes:?}");
}

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
fn forgetting_keeps_open_methods_open_without_their_calls() {
    let mut decoder = decoded("*1@100 +2@110 +3@130 -3@150");
    decoder.clear(160);
    assert_eq!(trees(&decoded("")), Vec::<String>::new());
    assert_eq!(trees(&decoder), ["t1 1 0 0", "t1 1/2 0 0"], "what is open, and nothing counted");
    assert_eq!((decoder.events(), decoder.roots_entered()), (0, 0));
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("+3@170 -3@180 -2@200 -1@210 *1@300 -1@301"));
    assert_eq!(trees(&decoder), ["t1 1 1 11", "t1 1/2 0 30", "t1 1/2/3 1 10"]);
    assert_eq!(decoder.healed(), 0);
}

#[test]
fn words_that_overtake_the_request_to_forget_are_not_timed_twice() {
    let mut decoder = decoded("*1@100 +2@110");
    decoder.clear(105);
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("-2@120"));
    assert_eq!(trees(&decoder), ["t1 1 0 0", "t1 1/2 0 10"]);
}

#[test]
fn an_interruption_closes_all_methods() {
    let mut decoder = decoded("*1@100 +2@110");
    decoder.interrupt(150);
    assert_eq!((trees(&decoder), decoder.open_frames()), (vec!["t1 1 1 10".to_owned(), "t1 1/2 1 40".to_owned()], 0));
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("*1@900 +2@910 -2@920 -1@930"));
    assert_eq!(trees(&decoder), ["t1 1 2 30", "t1 1/2 2 50"]);
    assert_eq!(decoder.healed(), 0, "nothing was missing");
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
    assert_eq!((decoder.healed(), decoder.open_frames()), (0, 0));
}

/// Every method's invocations, a line each: `method: count x shortest..longest = sum, pairs inside`.
fn check_invocations(statistics: Statistics, text: &str, expected: &[&str]) {
    let mut decoder = Decoder::new(DecodeOptions { statistics, root_limit: Some(3), ..DecodeOptions::default() });
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words(text));
    decoder.finish(1_000);
    let line = |(method, invocations): (MethodId, &Invocations)| {
        let total = |outer_ns| invocations.summary(PairCost { inner_ns: 0.0, outer_ns }).expect("some").total_ns;
        let summary = invocations.summary(PairCost { inner_ns: 0.0, outer_ns: 0.0 }).expect("some");
        // At 1 ns a pair.
        let pairs = total(0.0) - total(1.0);
        let (min_ns, max_ns) = (summary.min_ns, summary.max_ns);
        format!("{}: {} x {min_ns}..{max_ns} = {}, {pairs}", method.0, summary.count, summary.total_ns)
    };
    assert_eq!(decoder.invocations().map(line).collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn an_invocation_lasts_from_its_entry_to_its_exit_without_pauses() {
    let text = "*1@0 +2@10 -2@40 p@25 +3@70 +2@75 !2@80 -3@90 -1@100";
    check_invocations(
        Statistics::Every,
        text,
        &["1: 1 x 75..75 = 75, 3", "2: 2 x 5..30 = 35, 0", "3: 1 x 20..20 = 20, 1"],
    );
}

#[test]
fn a_recursions_inner_invocations_count_unless_only_the_outermost_are_wanted() {
    let text = "*1@0 +2@10 +2@20 +1@30 -1@40 -2@50 -2@60 +2@70 -2@75 -1@100";
    check_invocations(Statistics::Every, text, &["1: 2 x 10..100 = 110, 4", "2: 3 x 5..50 = 85, 3"]);
    check_invocations(Statistics::Outermost, text, &["1: 1 x 100..100 = 100, 4", "2: 2 x 5..50 = 55, 2"]);
    check_invocations(Statistics::Off, text, &[]);
}

#[test]
fn what_was_healed_or_is_open_has_no_duration() {
    for statistics in [Statistics::Every, Statistics::Outermost] {
        // A constructor (2) without an exit; a root (1) torn by the next; the last is open at the end.
        let text = "*1@0 +2@10 +3@20 -3@25 -1@50 *1@60 +2@65 *1@100 +3@110 -3@114 +3@120";
        check_invocations(statistics, text, &["1: 1 x 50..50 = 50, 2", "3: 2 x 4..5 = 9, 0"]);
        // It stays out of what comes later, too.
        let text = "*1@0 +2@10 -1@50 *1@60 +2@65 -2@70 -1@80";
        check_invocations(statistics, text, &["1: 2 x 20..50 = 70, 2", "2: 1 x 5..5 = 5, 0"]);
    }
}

#[test]
fn invocations_that_were_open_when_recording_was_cleared_or_interrupted_have_no_duration() {
    let mut decoder = Decoder::new(DecodeOptions { statistics: Statistics::Every, ..DecodeOptions::default() });
    let mut cursor = ChunkCursor::new(ThreadId(1), 0);
    decoder.words(&mut cursor, &words("*1@0 +2@10 -2@20 +2@30"));
    decoder.clear(40);
    assert_eq!(decoder.invocations().count(), 0);
    decoder.words(&mut cursor, &words("+3@50 -3@53 -2@60 +2@70 -2@75 -1@80 *1@90"));
    decoder.interrupt(95);
    decoder.words(&mut cursor, &words("*1@100 -1@102"));
    let counts: Vec<(u32, u64)> = decoder.invocations().map(|(method, all)| (method.0, all.count())).collect();
    assert_eq!(counts, [(1, 1), (2, 1), (3, 1)]);
}

#[test]
fn roots_beyond_the_limit_have_no_invocations() {
    let text = "*1@0 -1@1 *1@10 -1@12 *1@20 +2@21 -2@22 -1@23 *1@30 +2@31 -2@36 -1@39";
    check_invocations(Statistics::Every, text, &["1: 3 x 1..3 = 6, 1", "2: 1 x 1..1 = 1, 0"]);
}

#[test]
fn invocations_are_of_all_threads_and_a_virtual_threads_are_in_order() {
    let mut decoder = Decoder::new(DecodeOptions { statistics: Statistics::Every, ..DecodeOptions::default() });
    let mut carriers = [ChunkCursor::new(ThreadId(1), 0), ChunkCursor::new(ThreadId(2), 1000)];
    decoder.words(&mut carriers[0], &words("*1@0 -1@7 1@7 *1@10 +2@20"));
    decoder.words(&mut carriers[1], &words("2@7 -2@10 -1@30"));
    (0..3).for_each(|_| decoder.pass_done());
    let totals: Vec<(u64, u64)> = decoder
        .invocations()
        .filter_map(|(_, invocations)| invocations.summary(PairCost { inner_ns: 0.0, outer_ns: 0.0 }))
        .map(|summary| (summary.count, summary.total_ns))
        .collect();
    assert_eq!(totals, [(2, 7 + 1020), (1, 990)]);
}

#[test]
fn random_programs_invocations_agree_with_a_plain_list() {
    const COST: PairCost = PairCost { inner_ns: 2.0, outer_ns: 1.0 };
    for seed in 1..=50_u64 {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut random = move |limit: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % limit
        };
        // Open calls with entry time and pairs so far; durations by method, corrected.
        let mut stack: Vec<(u32, u64, u64)> = Vec::new();
        let mut expected: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        let (mut now, mut pairs, mut stream) = (0, 0, Vec::new());
        for step in 0..3_000 {
            // More than its probes cost.
            now += 10 + random(5_000);
            let method = match stack.last() {
                Some(&(top, entered, before)) if step > 2_900 || stack.len() > 20 || random(2) == 0 => {
                    let inside = (pairs - before) as f64 * (COST.inner_ns + COST.outer_ns);
                    expected.entry(top).or_default().push((now - entered) as f64 - COST.inner_ns - inside);
                    stack.pop();
                    let exit = Event::Exit { method: MethodId(top), time_ns: now, thrown: random(5) == 0 };
                    stream.push(exit.encode());
                    continue;
                }
                _ if step > 2_900 => break,
                _ => 1 + random(6) as u32,
            };
            pairs += 1;
            let root = stack.is_empty();
            stack.push((method, now, pairs));
            stream.push(Event::Enter { method: MethodId(method), time_ns: now, root }.encode());
        }
        let mut decoder = Decoder::new(DecodeOptions { statistics: Statistics::Every, ..DecodeOptions::default() });
        let mut cursor = ChunkCursor::new(ThreadId(1), 0);
        stream.chunks(7).for_each(|piece| decoder.words(&mut cursor, piece));
        assert_eq!(decoder.invocations().count(), expected.len());
        for (method, invocations) in decoder.invocations() {
            let mut exact = expected.remove(&method.0).expect("known");
            exact.sort_by(f64::total_cmp);
            let found = invocations.summary(COST).expect("some");
            let count = exact.len() as f64;
            let mean = exact.iter().sum::<f64>() / count;
            let deviation = (exact.iter().map(|ns| (ns - mean).powi(2)).sum::<f64>() / count).sqrt();
            assert_eq!(found.count, exact.len() as u64);
            assert!((found.mean_ns - mean).abs() <= 1e-6 * mean, "seed {seed}: {found:?}, {mean}");
            assert!((found.sd_ns - deviation).abs() <= 1e-6 * mean, "seed {seed}: {found:?}, {deviation}");
            let quantile = |part: f64| exact[(part * count).ceil() as usize - 1];
            for (ns, exact) in [
                (found.min_ns, exact[0]),
                (found.p50_ns, quantile(0.5)),
                (found.p90_ns, quantile(0.9)),
                (found.p99_ns, quantile(0.99)),
                (found.max_ns, exact[exact.len() - 1]),
            ] {
                // A hundredth of what was measured, and what the pairs of a bucket's invocations differ.
                assert!((ns as f64 - exact).abs() <= 0.02 * exact + 20.0, "seed {seed}: {ns} for {exact}, {found:?}");
            }
        }
    }
}

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
    assert_eq!((decoder.healed(), decoder.open_frames()), (2, 0));
}

#[test]
fn clearing_keeps_threads_in_what_they_run() {
    let mut decoder = decoded("*1@0 s@5 s@6 -1@10 t@2 r@5 +2@20");
    decoder.clear(30);
    let mut cursor = ChunkCursor::new(ThreadId(2), 0);
    decoder.words(&mut cursor, &words("+3@40 -3@50 -2@60 +2@70 -2@80 e@0 r@6 +4@90 -4@95 e@0"));
    assert_eq!(trees(&decoder), ["t2 1 0 0", "t2 1/~2 1 30", "t2 1/~2/3 1 10", "t2 1/~4 1 5"]);
}
