//! The control protocol's messages, of both sides: one of each kind as a sample.

use headwater_protocol::message::events::{
    self, Happened, JvmEvent, Kinds, Named, Owner, Pool, Sort, StackFrame, Telling, What,
};
use headwater_protocol::message::{
    Answer, Calibration, ClassFileBytes, ClassInfo, Command, CompiledCode, CompiledPiece, Frame, Greeting,
    HotswapResult, Internal, MethodInfo, MethodRef, Notice, Omitted, Patience, Reply, Reveal, RunningCall, SampledCall,
    StackSamples, Standing, ThreadStack, ToAgent, ToTool, UnlinkedClass, Upcall, Walked, WalkedThread, Welcome,
};
use headwater_protocol::{ClassId, LoaderId, MethodId, PROTOCOL_VERSION, ThreadId, wire};
use headwater_tests::random::Random;

use super::Reader;
use crate::mutation::{changed, edge};

/// Reads streams of frames as each of the four kinds that there are.
pub(crate) struct Messages {
    samples: Vec<Vec<u8>>,
}

impl Messages {
    pub(crate) fn new() -> Messages {
        let greeting = Greeting {
            protocol: PROTOCOL_VERSION,
            pid: 4711,
            vm_version: "25.0.3+9-LTS".to_owned(),
            java_version: "25.0.3".to_owned(),
            startup: false,
            internals: vec![(Internal::TypeProfiles, Standing::Failed)],
        };
        let mut samples: Vec<Vec<u8>> = to_agent().iter().map(frame).collect();
        samples.extend(to_tool().iter().map(frame));
        samples.push(frame(&Ok::<_, String>(greeting)));
        samples.push(frame(&Err::<Greeting, _>("it is going down".to_owned())));
        samples.push(frame(&Welcome { protocol: PROTOCOL_VERSION, deadline_ms: 3000 }));
        Messages { samples }
    }
}

fn frame(message: &impl serde::Serialize) -> Vec<u8> {
    wire::encode(message).expect("a message")
}

impl Reader for Messages {
    fn input(&mut self, random: &mut Random) -> Vec<u8> {
        let mut stream = Vec::new();
        for _ in 0..=random.below(2) {
            let mut message = changed(&self.samples, random);
            // Most frames say how long they are: else little gets past that.
            if let Some(body) = message.len().checked_sub(4).filter(|_| !random.once_in(8)) {
                message[..4].copy_from_slice(&(body as u32).to_le_bytes());
            } else if random.once_in(4) && message.len() >= 4 {
                message[..4].copy_from_slice(&(edge(random) as u32).to_le_bytes());
            }
            stream.extend(message);
        }
        stream
    }

    fn read(&mut self, input: &[u8]) -> bool {
        let read = [
            messages::<ToTool>(input),
            messages::<ToAgent>(input),
            messages::<Result<Greeting, String>>(input),
            messages::<Welcome>(input),
        ];
        read.into_iter().any(|read| read > 0)
    }

    fn most_bytes(&self, input_bytes: usize) -> usize {
        // What says that it has many is given a megabyte ahead, on each level.
        (4 << 20) + 500 * input_bytes
    }
}

/// How many can be read.
fn messages<T: serde::de::DeserializeOwned + serde::Serialize>(mut stream: &[u8]) -> usize {
    let mut read = 0;
    while let Ok(message) = wire::read::<T>(&mut stream) {
        // It can be told on.
        wire::encode(&message).expect("what was read can be written");
        read += 1;
    }
    read
}

fn method_ref() -> MethodRef {
    MethodRef { class: ClassId(3), name: "run".to_owned(), descriptor: "()V".to_owned() }
}

fn method_info() -> MethodInfo {
    MethodInfo { name: "run".to_owned(), descriptor: "(I)V".to_owned(), access: 9, calls: Some(300) }
}

fn class_info() -> ClassInfo {
    ClassInfo {
        id: ClassId(3),
        name: "a/b/C".to_owned(),
        loader: LoaderId(2),
        super_class: Some(ClassId(1)),
        interfaces: vec![ClassId(4), ClassId(5)],
        access: 0x21,
        initialized: true,
        modifiable: true,
        probed: true,
    }
}

fn hotswap() -> HotswapResult {
    HotswapResult {
        classes: 7,
        refused: vec![(ClassId(3), "JVMTI_ERROR_NAMES_DONT_MATCH".to_owned())],
        unanswered: vec![ClassId(9)],
        total_ns: 1_000_000,
        pause_ns: 100_000,
        threads: 3,
    }
}

/// One of each that the tool says.
pub(crate) fn to_agent() -> Vec<ToAgent> {
    let classes = vec![ClassId(3), ClassId(400)];
    let roots = vec![method_ref()];
    let commands = [
        Command::Calibrate,
        Command::ListClasses {
            reveal: Reveal::Blocking,
            deadline_ms: 3000,
            patience: Some(Patience { most_ms: 1000, per_mille: 50 }),
        },
        Command::Omit(Omitted::default()),
        Command::Reveal(Reveal::Background),
        Command::ListStale,
        Command::Watch { methods: roots.clone() },
        Command::ListMethods { classes: classes.clone() },
        Command::ReadClasses { classes: classes.clone() },
        Command::ListMentions,
        Command::ListCompiled,
        Command::Hotswap { classes: classes.clone() },
        Command::ForgetLambdas,
        Command::Record,
        Command::ListStacks { roots: roots.clone() },
        Command::ListCalls,
        Command::Sample { roots, looks: 4 },
        Command::Walk { period_us: 4_000, longest_ms: 60_000 },
        Command::EndWalk,
        Command::FollowOpen {
            methods: vec![(MethodId(1), method_ref())],
            threads: vec![(ThreadId(77), vec![MethodId(1), MethodId(2)])],
        },
        Command::Stop,
        Command::Tell(Kinds::all()),
        Command::Release,
        Command::Detach,
    ];
    let answers = [
        Answer::Bytes(Some(vec![0xCA, 0xFE, 0xBA, 0xBE])),
        Answer::Bytes(None),
        Answer::Hotswap { classes: classes.clone() },
        Answer::Link { classes },
    ];
    let commands = commands.into_iter().map(|command| ToAgent::Command { request: 300, command });
    commands.chain(answers.into_iter().map(|answer| ToAgent::Answer { request: 12, answer })).collect()
}

fn walked() -> Walked {
    let threads = vec![WalkedThread { at_ns: 1 << 60, stack: 0, is_cut: false, is_native: true, stands_for: 3 }];
    Walked {
        methods: vec![method_ref(), method_ref()],
        stacks: vec![vec![0, 1, 0]],
        threads,
        looks: 3,
        took_ns: 70_000,
    }
}

/// One of each that the agent says.
pub(crate) fn to_tool() -> Vec<ToTool> {
    let replies = replies().into_iter().map(|reply| ToTool::Reply { request: 300, reply: Ok(reply) });
    let mut all: Vec<ToTool> = replies.collect();
    all.push(ToTool::Reply { request: 300, reply: Err("no memory".to_owned()) });
    let thread = Some(ThreadId(77));
    all.extend(upcalls().into_iter().map(|upcall| ToTool::Upcall { request: 12, thread, upcall }));
    all.extend(notices().into_iter().map(ToTool::Notice));
    all
}

/// One of each.
pub(crate) fn replies() -> Vec<Reply> {
    let calibration = Calibration {
        inner_ns: 12.5,
        outer_ns: 20.0,
        outside_ns: 3.0,
        control_ns: 50.0,
        inner_spread_ns: 1.0,
        outer_spread_ns: f64::NAN,
        object_ns: f64::INFINITY,
    };
    let unlinked = UnlinkedClass {
        id: ClassId(8),
        name: "a/b/D".to_owned(),
        super_class: Some(ClassId(3)),
        is_of_class_path: true,
    };
    let stack = ThreadStack {
        thread: ThreadId(77),
        name: "worker".to_owned(),
        frames: vec![Frame { method: method_ref(), replaced: true }],
    };
    let seen = StackSamples {
        classes: vec![(ClassId(3), 9)],
        methods: vec![method_ref()],
        calls: vec![SampledCall { by: None, method: 0 }, SampledCall { by: Some(0), method: 0 }],
        paused_ns: 1000,
    };
    vec![
        Reply::Done,
        Reply::Calibration(calibration),
        Reply::Classes { linked: vec![class_info()], unlinked: vec![unlinked] },
        Reply::Methods(vec![(ClassId(3), vec![method_info()])]),
        Reply::ClassFiles(vec![ClassFileBytes { class: ClassId(3), bytes: vec![0xCA, 0xFE] }]),
        Reply::Mentions(vec![1, u64::MAX]),
        Reply::Compiled(CompiledCode {
            methods: vec![method_ref()],
            pieces: vec![CompiledPiece { bytes: 120, method: Some(0), inlined: vec![0, 7] }],
        }),
        Reply::Hotswapped(hotswap()),
        Reply::Calls(vec![(ThreadId(77), vec![RunningCall { version: 5, class: ClassId(3), is_native: false }])]),
        Reply::Stacks(vec![stack]),
        Reply::Sampled(seen),
        Reply::Walked(walked()),
        Reply::Stopped { time_ns: -1 },
        Reply::Telling(Telling { now_ns: 5, has_unloads: true, has_pools: true }),
        Reply::Detached { hotswap: hotswap() },
    ]
}

/// One of each.
pub(crate) fn upcalls() -> Vec<Upcall> {
    vec![
        Upcall::ClassBytes {
            class: Some(ClassId(3)),
            loader: LoaderId(2),
            name: "a/b/C".to_owned(),
            bytes: vec![0xCA, 0xFE, 0xBA, 0xBE],
        },
        Upcall::ClassPrepared(class_info()),
        Upcall::FirstCall(MethodId(1)),
        Upcall::Reflected(method_ref()),
        Upcall::Received { call: 1, class: ClassId(3) },
        Upcall::Hotswapped(hotswap()),
        Upcall::Linked,
    ]
}

/// An event of each sort.
fn happened() -> Happened {
    let thread = || events::Thread { id: 77, name: "worker".to_owned() };
    let stack = || vec![StackFrame { method: 0, line: Some(12) }, StackFrame { method: 0, line: None }];
    let pool = Pool { name: "eden".to_owned(), before: Some(2048), after: 0 };
    let whats = [
        What::Collection { duration_ns: 7, cause: Some("System.gc()".to_owned()), collector: None, pools: vec![pool] },
        What::ClassLoad {
            class: "a.b.C".to_owned(),
            loader: Some("a.b.Loader".to_owned()),
            thread: thread(),
            stack: stack(),
        },
        What::ClassUnload { class: "a.b.C".to_owned() },
        What::ThreadStart { thread: thread(), is_daemon: true },
        What::ThreadEnd { thread: thread() },
        What::Wait {
            duration_ns: 9,
            class: "a.b.C".to_owned(),
            thread: thread(),
            stack: stack(),
            owner: Some(Owner { thread: thread(), stack: stack() }),
        },
        What::Compilation { method: 0, bytes: 512 },
        What::Discard { method: 0 },
    ];
    Happened {
        methods: vec![Named { class: "a.b.C".to_owned(), name: "m".to_owned() }],
        events: whats.into_iter().map(|what| JvmEvent { time_ns: -5, what }).collect(),
        left_out: vec![(Sort::Wait, 3)],
    }
}

/// One of each.
pub(crate) fn notices() -> Vec<Notice> {
    let thread = ThreadId(77);
    vec![
        Notice::ThreadStarted { thread, name: "worker".to_owned(), os_thread: Some(4712) },
        Notice::DeadlinePassed { request: 12, waited_for: "a first call".to_owned() },
        Notice::OutOfPatience { request: 12 },
        Notice::Uncounted { reason: "too many files".to_owned() },
        Notice::FirstCall(MethodId(1)),
        Notice::Reflected(method_ref()),
        Notice::Received { call: 1, class: ClassId(3) },
        Notice::ClassPrepared(class_info()),
        Notice::HasRun(vec![method_ref()]),
        Notice::FramesLeft { thread, open: 1, time_ns: 5, error_ns: 2 },
        Notice::Happened(happened()),
        Notice::VmDeath,
    ]
}
