//! A whole profile with an agent that lies: the conversation, the call graph, the rewriter, and what is made of it with the events of such a
//! target.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use headwater::Scheme;
use headwater::callgraph::{CallGraph, JdkMethods, Options};
use headwater::clock_source::ClockChoice;
use headwater::connection::{Listener, Peer};
use headwater::decode::{ChunkCursor, Decoder};
use headwater::foreign;
use headwater::profile::ClockMode;
use headwater::profiling::{BareTiming, Keeping, Settings};
use headwater::session::{Gentle, Session, SessionError};
use headwater_protocol::ThreadId;
use headwater_protocol::layout::Shape;
use headwater_protocol::message::{Calibration, Reveal};
use headwater_protocol::segment::{Overflow, Recording, Segment};
use headwater_tests::Scratch;
use headwater_tests::random::Random;
use tokio::runtime::Runtime;

use super::Reader;
use super::events::{options, words};
use super::played_agent::{Agent, Class, classes};
use crate::mutation::edge;

/// Messages that are served, at most.
const SERVED: usize = 60;
/// When nothing comes for so many turns, the profile is ended.
const QUIET_TURNS: usize = 20;
/// What the roots are chosen from.
const ROOTS: [&str; 4] = ["*::main", "*::run", "*::*", "Counter*::*"];
/// As a command would wait for the agent.
const DEADLINE: Duration = Duration::from_secs(3);

/// The conversation.
pub(crate) struct Sessions {
    runtime: Runtime,
    listener: Listener,
    path: PathBuf,
    classes: Vec<Class>,
    segment: Arc<Segment>,
    file: std::fs::File,
    _scratch: Scratch,
}

impl Sessions {
    pub(crate) fn new(files: &[Vec<u8>]) -> Sessions {
        let scratch = Scratch::new("fuzz-session");
        let path = scratch.file("control");
        let socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        // Where the tool waits for a time to pass, it has passed when nothing else is to be done.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let peer = Peer { pid: Some(std::process::id()), uid: rustix::process::getuid().as_raw() };
        let entered = runtime.enter();
        let listener = Listener::new(socket, "control".to_owned(), peer).expect("a socket");
        drop(entered);
        let (segment, file) = Segment::create(Shape::of(2), Recording::default()).expect("memory");
        let classes = classes(files);
        Sessions { runtime, listener, path, classes, segment: Arc::new(segment), file, _scratch: scratch }
    }
}

fn settings(random: &mut Random) -> Settings {
    Settings {
        subgraph: Options {
            roots: vec![random.choose(&ROOTS).parse().expect("a pattern")],
            jdk: random.choose(&[JdkMethods::None, JdkMethods::Edge, JdkMethods::All]),
            scheme: random.choose(&[Scheme::Lazy, Scheme::Lazy, Scheme::Eager, Scheme::Total]),
            look_ahead: random.once_in(2),
            watch_idle: random.once_in(2),
            skip_trivial: random.once_in(2),
            natives: random.once_in(2),
            follow_threads: random.once_in(2),
            ..Options::default()
        },
        reveal: random.choose(&[Reveal::Blocking, Reveal::Background]),
        gentle: random.choose(&[Gentle::On, Gentle::Off]),
        duration: None,
        calls: None,
        clock: ClockMode::Exact,
        clock_source: ClockChoice::Auto,
        control: None,
        statistics: Default::default(),
        counting: Default::default(),
        budget: Keeping::Off,
        bare: BareTiming::Off,
        buffer_bytes: 0,
        overflow: Overflow::Wait,
        await_roots: false,
        live: None,
    }
}

/// So long nothing has come, and nothing will.
async fn turns() {
    for _ in 0..QUIET_TURNS {
        tokio::task::yield_now().await;
    }
}

/// What the tool does; how far it came.
async fn profile(session: &mut Session, settings: &Settings, timed: bool) -> Result<Calibration, SessionError> {
    session.be(settings.gentle, Duration::ZERO);
    let calibration = session.calibrate().await?;
    session.list_classes(settings.reveal).await?;
    let first = session.select_roots(|_| {}).await?;
    if timed && session.time_roots_alone(&first).await? {
        tokio::select! {
            biased;
            heard = session.hear() => heard?,
            () = turns() => {}
        }
        session.end_timing(None).await?;
    }
    session.instrument(first, None).await?;
    for _ in 0..SERVED {
        let event = tokio::select! {
            biased;
            event = session.next_event() => event?,
            () = turns() => break,
        };
        session.serve(event).await?;
    }
    session.stop().await?;
    if timed {
        session.time_roots().await?;
        session.stop().await?;
    }
    session.detach().await?;
    Ok(calibration)
}

impl Reader for Sessions {
    /// What the agent says is drawn while it is played.
    fn input(&mut self, random: &mut Random) -> Vec<u8> {
        [random.below(1 << 30), random.below(1 << 30)].map(|half| (half as u32).to_le_bytes()).concat()
    }

    fn read(&mut self, input: &[u8]) -> bool {
        let seed: [u8; 8] = input.try_into().expect("eight bytes");
        let random = &mut Random(u64::from_le_bytes(seed).max(1));
        let settings = settings(random);
        let (timed, draw) = (random.once_in(4), random.below(256) as u8);
        let mut decoder = Decoder::new(options(draw));
        let mut cursor = ChunkCursor::new(ThreadId(1), 0);
        decoder.words(&mut cursor, &words(random, 12));
        decoder.pass_done();
        decoder.finish(1 << 20);
        let lied = Calibration {
            inner_ns: random.choose(&[20.0, f64::NAN, f64::INFINITY, -1.0, f64::MIN_POSITIVE, 1e300]),
            outer_ns: random.choose(&[30.0, f64::NAN, 0.0]),
            outside_ns: edge(random) as f64,
            control_ns: random.choose(&[40.0, f64::NEG_INFINITY]),
            inner_spread_ns: random.choose(&[1.0, f64::NAN]),
            outer_spread_ns: random.choose(&[1.0, -1e9]),
            object_ns: random.choose(&[0.0, 3.0, 1e300]),
        };
        let Sessions { runtime, listener, path, classes, segment, file, .. } = self;
        let played = async { Agent::connect(path, classes, random).await.expect("it is let in").play().await };
        let profiled = async {
            let link = listener.accept().await.expect("it greets").welcome(&*file, DEADLINE).expect("it is welcome");
            let mut session = Session::new(link, Arc::clone(segment), CallGraph::new(settings.subgraph.clone()));
            let outcome = profile(&mut session, &settings, timed).await;
            // That takes longer than all before.
            if draw % 8 == 0 {
                foreign::profile(&session, &settings, &mut decoder, *outcome.as_ref().unwrap_or(&lied));
            }
            outcome.is_ok()
        };
        let (is_done, ()) = runtime.block_on(async { tokio::join!(profiled, played) });
        is_done
    }

    fn most_bytes(&self, _: usize) -> usize {
        // All classes are rewritten some times, and reports are made; the page alone has some hundred kilobytes.
        256 << 20
    }
}
