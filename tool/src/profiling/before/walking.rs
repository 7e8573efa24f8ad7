//! Looks at the stacks of threads that run, where the recorder is not begun before a profile, or misses much.
//!
//! The agent makes them: nothing in the program changes. They see nothing of what is compiled into other methods and has no loop, so the recorder's samples from after the
//! profile count beside them, as far as they tell of what ran, and what the two differ by is in the error.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use headwater_jfr::{FrameIndex, Sample, Samples};
use headwater_protocol::ClassId;
use headwater_protocol::message::{MethodRef, Walked, WalkedThread};
use headwater_terms::pattern::java_name;
use headwater_terms::waiting;
use tokio::time::Instant;

use super::{Before, How, ns};
use crate::callgraph::CallGraph;
use crate::profiling::recorder::PERIOD;
use crate::session::{Session, SessionError};

/// For so long, if all else takes no longer.
const SHORTEST: Duration = Duration::from_secs(2);
/// A thread stands for so many at most.
const MOST: u16 = 16;

/// Looks are being made.
#[derive(Debug)]
pub(in crate::profiling) struct Walking {
    begun: Instant,
    from: SystemTime,
}

impl Walking {
    /// Has the agent begin.
    pub(in crate::profiling) async fn begin(session: &mut Session) -> Result<Walking, SessionError> {
        session.walk(PERIOD).await?;
        Ok(Walking { begun: Instant::now(), from: SystemTime::now() })
    }

    /// Something is about to be changed: what was seen until then.
    pub(in crate::profiling) async fn end(self, session: &mut Session) -> Result<Before, SessionError> {
        session.serve_until(tokio::time::sleep_until(self.begun + SHORTEST)).await?;
        let walked = session.walked().await?;
        let until = SystemTime::now();
        let Walked { looks, took_ns, .. } = walked;
        log::debug!("{looks} looks, {} stacks, {} ms", walked.threads.len(), took_ns / 1_000_000);
        let samples = samples(&walked, session.graph());
        let taken = (ns(self.from), ns(until));
        Ok(Before { samples, taken, how: How::Walked { looks }, ..Before::default() })
    }
}

/// What an agent has seen, which may be anything, as samples.
fn samples(walked: &Walked, graph: &CallGraph) -> Samples {
    let names: HashMap<ClassId, &str> = graph.classes().map(|(id, name)| (id, &**name)).collect();
    let name = |method: &MethodRef| {
        let class = names.get(&method.class).copied().unwrap_or("?");
        java_name(class, &method.name, &method.descriptor)
    };
    let methods: Vec<String> = walked.methods.iter().map(name).collect();
    let is_known = |place: &&u32| (**place as usize) < methods.len();
    let frames = |stack: &Vec<u32>| stack.iter().filter(is_known).map(|place| FrameIndex(*place)).collect();
    let stacks: Vec<std::sync::Arc<[FrameIndex]>> = walked.stacks.iter().map(frames).collect();
    let waits = |stack: &[FrameIndex]| {
        let innermost = stack.last().and_then(|frame| methods[frame.0 as usize].split('(').next());
        innermost.is_none_or(waiting::waits)
    };
    let seen = |thread: &WalkedThread| {
        let stack = stacks.get(thread.stack as usize)?;
        let WalkedThread { at_ns, is_cut, is_native, stands_for, .. } = *thread;
        let times = if is_native && waits(stack) { 0 } else { stands_for.min(MOST) };
        let sample = Sample { at_ns, thread: 0, frames: stack.clone(), is_cut, is_native };
        Some(std::iter::repeat_n(sample, times.into()))
    };
    let stacks = walked.threads.iter().filter_map(seen).flatten().collect();
    Samples { methods, stacks }
}

#[cfg(test)]
mod tests {
    use headwater_protocol::LoaderId;
    use headwater_protocol::message::ClassInfo;

    use super::*;
    use crate::callgraph::Options;

    #[test]
    fn who_waits_in_native_code_is_not_seen_and_what_makes_no_sense_is_left_out() {
        let mut graph = CallGraph::new(Options::default());
        let info = |id, name: &str| ClassInfo {
            id: ClassId(id),
            name: name.to_owned(),
            loader: LoaderId(1),
            super_class: None,
            interfaces: Vec::new(),
            access: 0x21,
            initialized: true,
            modifiable: true,
            probed: false,
        };
        graph.add_classes(vec![info(1, "a/B"), info(2, "java/net/SocketInputStream")]);
        let method = |class, name: &str| MethodRef {
            class: ClassId(class),
            name: name.to_owned(),
            descriptor: "()V".to_owned(),
        };
        let thread =
            |stack, is_native, stands_for| WalkedThread { at_ns: 5, stack, is_cut: false, is_native, stands_for };
        let walked = Walked {
            methods: vec![method(1, "m"), method(2, "socketRead0"), method(9, "of_nobody")],
            stacks: vec![vec![0, 0], vec![0, 1], vec![2, 77]],
            threads: vec![
                thread(0, false, 2),
                thread(1, true, 3),
                thread(0, true, 700),
                thread(2, false, 1),
                thread(9, false, 1),
            ],
            looks: 5,
            took_ns: 0,
        };
        let Samples { methods, stacks } = samples(&walked, &graph);
        assert_eq!(methods, ["a.B.m()V", "java.net.SocketInputStream.socketRead0()V", "?.of_nobody()V"]);
        let of = |native: bool| stacks.iter().filter(|sample| sample.is_native == native).count();
        assert_eq!((of(false), of(true)), (3, 16));
        assert_eq!(stacks.last().map(|last| last.frames.to_vec()), Some(vec![FrameIndex(2)]));
    }
}
