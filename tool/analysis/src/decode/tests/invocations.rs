//! How long each invocation lasted (`--stats`).

use super::*;

/// Every method's invocations, a line each: `method: count x shortest..longest = sum, pairs inside`.
fn check_invocations(statistics: Statistics, text: &str, expected: &[&str]) {
    let mut decoder = Decoder::new(DecodeOptions { statistics, root_limit: Some(3), ..DecodeOptions::default() });
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words(text));
    decoder.finish(1_000);
    let line = |(method, invocations): (MethodId, &Invocations)| {
        let total =
            |outer_ns| invocations.summary(PairCost { inner_ns: 0.0, outer_ns, least: 0.0 }).expect("some").total_ns;
        let summary = invocations.summary(PairCost { inner_ns: 0.0, outer_ns: 0.0, least: 0.0 }).expect("some");
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
        .filter_map(|(_, invocations)| invocations.summary(PairCost { inner_ns: 0.0, outer_ns: 0.0, least: 0.0 }))
        .map(|summary| (summary.count, summary.total_ns))
        .collect();
    assert_eq!(totals, [(2, 7 + 1020), (1, 990)]);
}

#[test]
fn random_programs_invocations_agree_with_a_plain_list() {
    const COST: PairCost = PairCost { inner_ns: 2.0, outer_ns: 1.0, least: 0.0 };
    for seed in 1..=50_u64 {
        let mut random = numbers(seed);
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
