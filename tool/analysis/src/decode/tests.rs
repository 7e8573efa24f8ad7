//! The accounting rules case by case, and random programs against the plainest decoder there can be.

use std::collections::BTreeMap;

use headwater_protocol::collections::Collection;
use headwater_protocol::word::{Counter, Handover, ProbedWait, SITE_BITS};

use super::*;
use crate::cct::Named;

mod handing_over;
mod invocations;
mod open_calls;
mod virtual_threads;
mod waits;

/// Events of one thread by a short notation: `+1@100` enters method 1 at 100 ns, `*1` enters it as a root, `-1` leaves it, `!1`
/// leaves it by an exception, `p@30` is a pause of 30 ns, `t@7` a change to thread 7, `2@7` to its run 2. `s@5` hands over under number
/// 5, `r@5` runs that (`r@0` something that was not handed over), `e@0` ends it, `d@5` drops it. `w@8` begins to park, `i@8` to read, `x@9` ends
/// that, `m@7` are 7 ns in `Object.wait`. `l@8` begins to load a class, `k@9` ends that; `n@7` is an exception of class 7,
/// `a@7` that class 7 was loaded, `o@...` an object that is made.
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
                b'c' => Event::Count { counter: Counter::Blocked, value: number },
                b'b' => Event::Count { counter: Counter::Bytecodes, value: number },
                b'p' => Event::Pause { reason: Some(PauseReason::Hotswap), duration_ns: number },
                b'w' => Event::Wait { wait: ProbedWait::Parked, begins: true, time_ns: number },
                b'i' => Event::Wait { wait: ProbedWait::Socket, begins: true, time_ns: number },
                b'x' => Event::Wait { wait: ProbedWait::Parked, begins: false, time_ns: number },
                b'l' => Event::Wait { wait: ProbedWait::Loading, begins: true, time_ns: number },
                b'k' => Event::Wait { wait: ProbedWait::Loading, begins: false, time_ns: number },
                b'n' => Event::Count { counter: Counter::Exceptions, value: number },
                b'a' => Event::Count { counter: Counter::Loaded, value: number },
                b'o' => Event::Count { counter: Counter::Objects, value: number },
                b'm' => Event::Count { counter: Counter::WaitedNs, value: number },
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
                path.push(format!("{}{}", if node.is_handed() { "~" } else { "" }, node.method().0));
                at = tree.parent(id);
            }
            path.reverse();
            let thrown = tree.thrown(id);
            let thrown = if thrown > 0 { format!(" !{thrown}") } else { String::new() };
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
    assert_eq!((decoder.healed(), decoder.open_frames()[1]), (0, 0), "{passes:?}");
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
    assert_eq!((decoder.events(), decoder.healed(), decoder.open_frames()[1]), (2 * DEPTH + 1, 0, 1));
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
    assert_eq!((decoder.healed(), decoder.roots_completed(), decoder.open_frames()[1]), (2, 2, 0));
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
    assert_eq!(decoder.open_frames()[1], 2);
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

/// Numbers below a limit, by xorshift: the same for the same seed.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move |limit| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    }
}

#[test]
fn random_programs_agree_with_the_plainest_decoder() {
    for seed in 1..=50_u64 {
        let mut random = numbers(seed);
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

#[test]
fn forgetting_keeps_open_methods_open_without_their_calls() {
    let mut decoder = decoded("*1@100 +2@110 +3@130 -3@150");
    decoder.clear(160);
    assert_eq!(trees(&decoded("")), Vec::<String>::new());
    assert_eq!(trees(&decoder), ["t1 1 0 0", "t1 1/2 0 0"], "what is open, and nothing counted");
    assert_eq!((decoder.events(), decoder.roots_entered()), (0, 0));
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("+3@170 -3@180 -2@200 -1@210 *1@300 -1@301"));
    assert_eq!(trees(&decoder), ["t1 1 1 11", "t1 1/2 0 30", "t1 1/2/3 1 10"]);
    assert_eq!((decoder.healed(), decoder.roots_entered(), decoder.roots_completed()), (0, 1, 1));
}

#[test]
fn a_root_call_that_began_before_what_was_forgotten_is_none_of_those_recorded() {
    for (later, completed) in [("-1@200", 0), ("*1@300 -1@310", 1), ("-1@200 *1@300 -1@310 *1@320 -1@330", 2)] {
        let mut decoder = decoded("*1@90 -1@95 *1@100 +2@110 -2@120");
        assert_eq!(decoder.roots_completed(), 1);
        decoder.clear(160);
        decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words(later));
        assert_eq!((decoder.roots_entered(), decoder.roots_completed()), (completed, completed), "{later}");
    }
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
    assert_eq!(
        (trees(&decoder), decoder.open_frames()[1]),
        (vec!["t1 1 1 10".to_owned(), "t1 1/2 1 40".to_owned()], 0)
    );
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("*1@900 +2@910 -2@920 -1@930"));
    assert_eq!(trees(&decoder), ["t1 1 2 30", "t1 1/2 2 50"]);
    assert_eq!(decoder.healed(), 0, "nothing was missing");
}

#[test]
fn what_is_counted_belongs_to_the_method_on_top_and_to_no_clock() {
    let mut decoder = decoded("c@9 *1@0 c@1 +2@10 c@2 c@3 -2@20 c@4 -1@30 c@9 *1@40 +2@41 c@5 -2@51 -1@52");
    assert_eq!(trees(&decoder), ["t1 1 2 22", "t1 1/2 2 20"]);
    let counts = |decoder: &Decoder| {
        let (_, tree) = decoder.threads().next().expect("a thread");
        tree.nodes().skip(1).map(|(id, _)| tree.count(id, Counter::Blocked)).collect::<Vec<u64>>()
    };
    assert_eq!(counts(&decoder), [5, 10]);
    let mut all = Cct::new();
    for _ in 0..2 {
        decoder.threads().for_each(|(_, tree)| drop(tree.merge_into(&mut all)));
    }
    assert_eq!(all.nodes().skip(1).map(|(id, _)| all.count(id, Counter::Blocked)).collect::<Vec<u64>>(), [10, 20]);
    decoder.clear(60);
    assert_eq!(decoder.threads().count(), 0, "forgotten");
}

#[test]
fn what_has_a_name_is_counted_by_it() {
    let mut decoder = decoded("n@9 *1@0 n@7 +2@10 n@7 n@8 n@7 !2@20 n@8 -1@30 n@9");
    assert_eq!(trees(&decoder), ["t1 1 1 20", "t1 1/2 1 10 !1"], "in no time");
    let named = |tree: &Cct| {
        let of = |(id, what, times): (NodeId, Named, u64)| (id.index(), what.number, times);
        tree.named().into_iter().map(of).collect::<Vec<_>>()
    };
    let expected = [(1, 7, 1), (1, 8, 1), (2, 7, 2), (2, 8, 1)];
    assert_eq!(named(decoder.threads().next().expect("a thread").1), expected);
    let mut all = Cct::new();
    for _ in 0..2 {
        decoder.threads().for_each(|(_, tree)| drop(tree.merge_into(&mut all)));
    }
    assert_eq!(named(&all), expected.map(|(node, number, times)| (node, number, 2 * times)));
    let (only, ..) = all.only(|method| method == MethodId(1)).expect("there is another");
    assert_eq!(named(&only), [(1, 7, 2), (1, 8, 2)]);
    decoder.clear(60);
    assert_eq!(decoder.threads().count(), 0, "forgotten");
}

#[test]
fn objects_are_counted_by_their_sites_with_their_sizes() {
    let made = |units: u64, site: u64| format!("o@{}", units << SITE_BITS | site);
    let [three, five, other] = [made(3, 7), made(5, 7), made(2, 8)];
    let decoder = decoded(&format!("{three} *1@0 {three} {five} +2@10 {other} -2@20 {three} -1@30 {other}"));
    let (_, tree) = decoder.threads().next().expect("a thread");
    let named: Vec<_> =
        tree.named().into_iter().map(|(id, what, sum)| (id.index(), what.counter, what.number, sum)).collect();
    let (objects, bytes) = (Counter::Objects, Counter::ObjectBytes);
    assert_eq!(named, [(1, objects, 7, 3), (1, bytes, 7, 8 * 11), (2, objects, 8, 1), (2, bytes, 8, 16)]);
    assert_eq!(tree.objects(), [0, 3, 1]);
}

/// `b@7` are seven instructions of the call that is left next.
#[test]
fn bytecodes_belong_to_the_call_that_is_left() {
    let counts = |text: &str| {
        let decoder = decoded(text);
        let (_, tree) = decoder.threads().next().expect("a thread");
        tree.nodes().skip(1).map(|(id, _)| tree.count(id, Counter::Bytecodes)).collect::<Vec<u64>>()
    };
    assert_eq!(counts("*1@0 +2@1 b@3 -2@2 +2@3 b@4 !2@4 b@5 -1@5"), [5, 7]);
    assert_eq!(counts("*1@0 +2@1 b@3 b@4 p@1 -2@3 b@5 -1@5"), [5, 7], "by parts");
    assert_eq!(counts("*1@0 +2@1 +3@2 b@4 -2@3 b@5 -1@5"), [5, 4, 0], "the innermost has left no exit");
    assert_eq!(counts("*1@0 b@4 +2@1 b@3 -2@2 b@5 -1@5"), [5, 3], "what no exit followed is forgotten");
    assert_eq!(decoded("*1@0 +2@1 b@3 -2@2 b@4 -1@3").events(), 4, "it is no event");
}

#[test]
fn collections_belong_to_the_methods_on_top_while_they_go_on() {
    let collection = |start_ns: i64, duration_ns: u64| Collection {
        start_ns,
        duration_ns,
        heap_before: None,
        heap_after: None,
        cause: String::new(),
        collector: String::new(),
    };
    let mut decoder = Decoder::new(DecodeOptions::default());
    // One before the root, one in it, one in its callee, two there again, one that is not over, one behind all.
    for (start_ns, duration_ns) in [(5, 3), (12, 4), (25, 5), (41, 1), (43, 2), (58, 4), (100, 10)] {
        decoder.collection(collection(start_ns, duration_ns));
    }
    let events = "*1@10 +2@20 -2@30 +2@40 c@7 -2@50 +3@55 +4@60 -4@70 -3@80 -1@90";
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words(events));
    let counts = |decoder: &Decoder| {
        let (_, tree) = decoder.threads().next().expect("a thread");
        let of = |id| (tree.count(id, Counter::CollectedNs), tree.count(id, Counter::Collected));
        tree.nodes().skip(1).map(|(id, _)| of(id)).collect::<Vec<_>>()
    };
    assert_eq!(counts(&decoder), [(4, 1), (8, 3), (2, 0), (2, 1)]);
    assert_eq!(trees(&decoder), ["t1 1 1 35", "t1 1/2 2 20", "t1 1/3 1 15", "t1 1/3/4 1 10"], "as without");
    assert_eq!((decoder.events(), decoder.collections().0.len()), (10, 7));
    let mut waiting = Decoder::new(DecodeOptions::default());
    waiting.collection(collection(12, 4));
    waiting.collection(collection(30, 5));
    waiting.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("*1@10 w@20 x@40 -1@90"));
    let (_, tree) = waiting.threads().next().expect("a thread");
    let of_root = [Counter::CollectedNs, Counter::StoppedNs].map(|counter| tree.count(tree.roots()[0].0, counter));
    assert_eq!(of_root, [9, 4], "what was waiting was not stopped");
    // What it comes past outside is nobody's; what is told of later is somebody's.
    decoder.collection(collection(130, 5));
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("*1@120 -1@140"));
    assert_eq!(counts(&decoder)[0], (9, 2));
    decoder.clear(150);
    decoder.collection(collection(160, 2));
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("*1@155 -1@170"));
    assert_eq!((counts(&decoder), decoder.collections().0.len()), (vec![(2, 1)], 1));
}
