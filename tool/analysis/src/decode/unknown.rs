//! What a target tells of methods that nobody has instrumented: it is broken, or lies.

use headwater_protocol::MethodId;

use super::Decoder;
use crate::cct::NodeId;

impl Decoder {
    /// Forgets calls of methods that have higher numbers than there are methods, with all below; how many such calls there were. To be done when nothing is
    /// decoded any more.
    pub fn forget_unknown(&mut self, methods: usize) -> u64 {
        let is_known = |method: MethodId| (1..=methods).contains(&(method.0 as usize));
        self.controls.retain(|method, _| is_known(*method));
        self.recorder.retain(is_known);
        let mut forgotten = 0_u64;
        if let Some((tree, _, calls)) = self.folded.only(is_known) {
            self.folded = tree;
            forgotten = calls;
        }
        for thread in &mut self.threads {
            thread.ended.retain(|ended| is_known(ended.method()));
            let Some((tree, places, calls)) = thread.tree.only(is_known) else { continue };
            forgotten = forgotten.saturating_add(calls);
            thread.tree = tree;
            let place = |node: NodeId| places[node.index()].unwrap_or(NodeId::TOP);
            (thread.top, thread.base) = (place(thread.top), place(thread.base));
            thread.began = thread.began.and_then(|began| began.moved(|node| places[node.index()]));
        }
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use headwater_protocol::ThreadId;
    use headwater_protocol::word::Event;

    use crate::decode::{ChunkCursor, DecodeOptions, Decoder, Statistics};

    use super::*;

    #[test]
    fn times_that_no_clock_has_are_survived() {
        let options = DecodeOptions { statistics: Statistics::Every, ..DecodeOptions::default() };
        let mut decoder = Decoder::new(options);
        let enter = Event::Enter { method: MethodId(1), time_ns: 1, root: true }.encode();
        for base_ns in [0, i64::MAX - 9, i64::MIN, i64::MAX - 9, 0, i64::MAX - 9] {
            decoder.words(&mut ChunkCursor::new(ThreadId(1), base_ns), &[enter]);
        }
        assert_eq!(decoder.roots_entered(), 6);
    }

    #[test]
    fn calls_of_methods_that_are_not_there_are_forgotten_with_all_below() {
        let options = DecodeOptions { statistics: Statistics::Every, ..DecodeOptions::default() };
        let mut decoder = Decoder::new(options);
        let enter = |method, time_ns, root| Event::Enter { method: MethodId(method), time_ns, root }.encode();
        let exit = |method, time_ns| Event::Exit { method: MethodId(method), time_ns, thrown: false }.encode();
        let words = [
            enter(1, 0, true),
            enter(2, 1, false),
            exit(2, 2),
            enter(9, 3, false),
            enter(2, 4, false),
            exit(2, 5),
            exit(9, 6),
            exit(1, 7),
            enter(0, 8, true),
            Event::Control { method: MethodId(3), duration_ns: 5 }.encode(),
        ];
        decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words);
        decoder.finish(10);
        assert_eq!(decoder.forget_unknown(2), 2);
        let (_, tree) = decoder.threads().next().expect("a thread");
        let calls: Vec<_> = tree.nodes().skip(1).map(|(_, node)| (node.method().0, node.calls)).collect();
        assert_eq!(calls, [(1, 1), (2, 1)]);
        assert!(decoder.controls().is_empty() && decoder.invocations().all(|(method, _)| method.0 <= 2));
        assert!(decoder.partial().keys().all(|method| method.0 == 1 || method.0 == 2), "{:?}", decoder.partial());
        assert_eq!(decoder.forget_unknown(2), 0);
    }
}
