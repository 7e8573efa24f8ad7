//! The conversation against an agent that is played, for what real JVMs do only when they are very slow.

use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;

use headwater_protocol::layout::Shape;
use headwater_protocol::message::{
    Answer, ClassInfo, CompiledCode, CompiledPiece, Frame, Greeting, MethodInfo, MethodRef, Notice, SampledCall,
    StackSamples, ThreadStack, Upcall, Welcome,
};
use headwater_protocol::segment::Recording;
use headwater_protocol::{LoaderId, MethodId, PROTOCOL_VERSION, wire};
use headwater_rewriter::ClassFile;
use headwater_tests::{PATIENCE, Scratch, compile_text, jdks};

use super::*;
use crate::callgraph::{Options, Step};
use crate::connection::Listener;
use crate::decode::Scheduled;

mod limits;

const SOURCE: &str = "class Main { static void root() { Other.callee(); } } class Other { static void callee() {} }";
const MAIN: ClassId = ClassId(1);
const OTHER: ClassId = ClassId(2);
const ROOT: MethodId = MethodId(1);
const APPLICATION: LoaderId = LoaderId(2);
const PUBLIC: u16 = 1;

/// The agent's end of the socket.
struct Agent {
    stream: UnixStream,
    classes: Scratch,
}

impl Agent {
    fn connect(path: &std::path::Path, classes: Scratch) -> Agent {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let greeting = Greeting {
            protocol: PROTOCOL_VERSION,
            pid: 1,
            vm_version: String::new(),
            java_version: String::new(),
            startup: false,
            internals: Vec::new(),
        };
        wire::write(&mut stream, &Ok::<_, String>(greeting)).unwrap();
        let _: Welcome = wire::read(&mut stream).unwrap();
        Agent { stream, classes }
    }

    fn send(&mut self, message: &ToTool) {
        wire::write(&mut self.stream, message).unwrap();
    }

    fn ask(&mut self, request: RequestId, thread: u64, upcall: Upcall) {
        self.send(&ToTool::Upcall { request, thread: Some(ThreadId(thread)), upcall });
    }

    fn reply(&mut self, request: RequestId, reply: Reply) {
        self.send(&ToTool::Reply { request, reply: Ok(reply) });
    }

    fn command(&mut self) -> (RequestId, Command) {
        match wire::read(&mut self.stream).unwrap() {
            ToAgent::Command { request, command } => (request, command),
            other => panic!("a command was expected: {other:?}"),
        }
    }

    fn answer(&mut self) -> (RequestId, Answer) {
        match wire::read(&mut self.stream).unwrap() {
            ToAgent::Answer { request, answer } => (request, answer),
            other => panic!("an answer was expected: {other:?}"),
        }
    }

    fn name(class: ClassId) -> &'static str {
        if class == MAIN { "Main" } else { "Other" }
    }

    fn bytes(&self, class: ClassId) -> Vec<u8> {
        std::fs::read(self.classes.file(&format!("{}.class", Agent::name(class)))).unwrap()
    }

    fn info(class: ClassId) -> ClassInfo {
        ClassInfo {
            id: class,
            name: Agent::name(class).to_owned(),
            loader: APPLICATION,
            super_class: None,
            interfaces: Vec::new(),
            access: PUBLIC,
            initialized: true,
            modifiable: true,
            probed: false,
        }
    }

    /// Replies to a ListMethods command.
    fn tell_methods(&mut self, request: RequestId, classes: &[ClassId]) {
        let methods = classes.iter().map(|class| {
            let bytes = self.bytes(*class);
            let file = ClassFile::parse(&bytes).unwrap();
            let methods = file.methods().iter().map(|method| MethodInfo {
                // The root has been called before.
                calls: (method.name() == "root").then_some(1000),
                name: method.name().into_owned(),
                descriptor: method.descriptor().into_owned(),
                access: method.access,
            });
            (*class, methods.collect())
        });
        let reply = Reply::Methods(methods.collect());
        self.reply(request, reply);
    }

    /// The class file hook of a retransformation: whether the class was instrumented.
    fn hook(&mut self, request: RequestId, thread: Option<ThreadId>, class: ClassId) -> bool {
        let (name, bytes) = (Agent::name(class).to_owned(), self.bytes(class));
        let upcall = Upcall::ClassBytes { class: Some(class), loader: APPLICATION, name, bytes };
        self.send(&ToTool::Upcall { request, thread, upcall });
        match self.answer() {
            (answered, Answer::Bytes(bytes)) if answered == request => bytes.is_some(),
            other => panic!("bytes were expected: {other:?}"),
        }
    }

    /// A thread's first call of the root, up to the point where it is told to hotswap what the root calls.
    fn first_call(&mut self) {
        self.ask(10, 77, Upcall::FirstCall(ROOT));
        let (request, command) = self.command();
        assert_eq!(command, Command::ListMethods { classes: vec![OTHER] });
        self.tell_methods(request, &[OTHER]);
        assert_eq!(self.answer(), (10, Answer::Hotswap { classes: vec![OTHER] }));
    }

    /// That thread's hotswap left a class without an answer: it is told to hotswap that again, and does. Takes three requests.
    fn hotswap_again(&mut self, request: RequestId) {
        let unanswered = HotswapResult { unanswered: vec![OTHER], ..done() };
        self.ask(request, 77, Upcall::Hotswapped(unanswered));
        assert_eq!(self.answer(), (request, Answer::Hotswap { classes: vec![OTHER] }));
        assert!(self.hook(request + 1, Some(ThreadId(77)), OTHER));
        self.ask(request + 2, 77, Upcall::Hotswapped(done()));
        assert_eq!(self.answer(), (request + 2, nothing()));
    }

    /// Up to the point where the root is selected.
    fn begin(&mut self) {
        let (request, command) = self.command();
        assert_eq!(command, Command::ListClasses { reveal: Reveal::Blocking, deadline_ms: 3000, patience: None });
        self.reply(
            request,
            Reply::Classes { linked: vec![Agent::info(MAIN), Agent::info(OTHER)], unlinked: Vec::new() },
        );
        let (request, command) = self.command();
        assert_eq!(command, Command::ListCompiled);
        self.reply(request, Reply::Compiled(CompiledCode::default()));
        let (request, command) = self.command();
        assert_eq!(command, Command::ListCalls);
        self.reply(request, Reply::Calls(Vec::new()));
        let (request, command) = self.command();
        assert_eq!(command, Command::ListMethods { classes: vec![MAIN] });
        self.tell_methods(request, &[MAIN]);
    }

    /// The root is instrumented, or is so once more.
    fn hotswap_root(&mut self, request: RequestId) {
        let (command_request, command) = self.command();
        assert_eq!(command, Command::Hotswap { classes: vec![MAIN] });
        assert!(self.hook(request, None, MAIN));
        self.reply(command_request, Reply::Hotswapped(done()));
    }

    fn expect(&mut self, expected: &Command, reply: Reply) {
        let (request, command) = self.command();
        assert_eq!(command, *expected);
        self.reply(request, reply);
    }
}

/// A session whose root is instrumented, against an agent that goes on by a script.
async fn begin(script: impl FnOnce(&mut Agent) + Send + 'static) -> (Session, JoinHandle<()>) {
    let (mut session, first, agent) = select(|agent| {
        agent.hotswap_root(1);
        agent.expect(&Command::Record, Reply::Done);
        script(agent);
    })
    .await;
    session.instrument(first, None).await.unwrap();
    (session, agent)
}

/// A session whose root is selected.
async fn select(script: impl FnOnce(&mut Agent) + Send + 'static) -> (Session, Vec<ClassId>, JoinHandle<()>) {
    let scratch = Scratch::new("session");
    let path = scratch.file("socket");
    let listener = Listener::at(&path);
    let classes = compile_text(&jdks()[0], SOURCE);
    let agent = std::thread::spawn(move || {
        let mut agent = Agent::connect(&path, classes);
        agent.begin();
        script(&mut agent);
    });
    let caller = listener.accept().await.unwrap();
    let (segment, file) = Segment::create(Shape::of(2), Recording::default()).unwrap();
    let connection = caller.welcome(&file, Duration::from_secs(1)).unwrap();
    let graph = CallGraph::new(Options { roots: vec!["Main::root".parse().unwrap()], ..Options::default() });
    let mut session = Session::new(connection, Arc::new(segment), graph);
    session.list_classes(Reveal::Blocking).await.unwrap();
    let first = session.select_roots(|_| {}).await.unwrap();
    (session, first, agent)
}

/// Runs a session against an agent's script, until the agent closes the connection.
async fn play(script: impl FnOnce(&mut Agent) + Send + 'static) -> Session {
    let (mut session, agent) = begin(script).await;
    let end = loop {
        match session.next_event().await {
            Ok(message) => session.serve(message).await.unwrap(),
            Err(end) => break end,
        }
    };
    assert!(matches!(end, SessionError::Disconnected), "{end}");
    agent.join().expect("the agent's script went as written");
    session
}

/// Of a hotswap of one class.
fn done() -> HotswapResult {
    HotswapResult { classes: 1, ..HotswapResult::default() }
}

fn nothing() -> Answer {
    Answer::Hotswap { classes: Vec::new() }
}

#[tokio::test]
async fn the_asking_thread_executes_the_hotswap() {
    let session = play(|agent| {
        agent.first_call();
        // Somebody else's first call waits its turn.
        agent.ask(11, 78, Upcall::FirstCall(ROOT));
        assert!(agent.hook(12, Some(ThreadId(77)), OTHER));
        agent.ask(13, 77, Upcall::Hotswapped(done()));
        assert_eq!(agent.answer(), (13, nothing()));
        assert_eq!(agent.answer(), (11, nothing()));
    })
    .await;
    assert_eq!((session.graph().instrumented(), session.hotswap_totals().batches), (2, 2));
}

#[tokio::test]
async fn a_hotswap_whose_thread_gave_up_is_executed_by_the_agent() {
    let session = play(|agent| {
        agent.ask(10, 77, Upcall::FirstCall(ROOT));
        let (request, _) = agent.command();
        // While its question is being decided, the thread's patience ends.
        agent.send(&ToTool::Notice(Notice::DeadlinePassed { request: 10, waited_for: "callees".into() }));
        agent.tell_methods(request, &[OTHER]);
        let (request, command) = agent.command();
        assert_eq!(command, Command::Hotswap { classes: vec![OTHER] });
        assert!(agent.hook(11, None, OTHER));
        agent.reply(request, Reply::Hotswapped(done()));
        // And nobody waits in vain after it.
        agent.ask(12, 78, Upcall::FirstCall(ROOT));
        assert_eq!(agent.answer(), (12, nothing()));
    })
    .await;
    assert_eq!(session.deadlines_passed(), ["callees"]);
    assert_eq!(session.graph().instrumented(), 2);
}

#[tokio::test]
async fn a_thread_that_hotswaps_does_not_wait_for_itself() {
    play(|agent| {
        agent.first_call();
        agent.ask(11, 77, Upcall::FirstCall(ROOT));
        assert_eq!(agent.answer(), (11, nothing()));
        let callee = MethodRef { class: OTHER, name: "callee".to_owned(), descriptor: "()V".to_owned() };
        agent.ask(12, 77, Upcall::Reflected(callee));
        assert_eq!(agent.answer(), (12, nothing()));
        assert!(agent.hook(13, Some(ThreadId(77)), OTHER));
        agent.ask(14, 77, Upcall::Hotswapped(done()));
        assert_eq!(agent.answer(), (14, nothing()));
    })
    .await;
}

#[tokio::test]
async fn the_agent_does_not_hotswap_while_a_thread_does() {
    let (mut session, agent) = begin(|agent| {
        agent.first_call();
        // Meanwhile the agent's turn comes: only after all that the thread asks.
        agent.ask(11, 77, Upcall::ClassPrepared(Agent::info(OTHER)));
        assert_eq!(agent.answer(), (11, nothing()));
        assert!(agent.hook(12, Some(ThreadId(77)), OTHER));
        // What it has to hotswap next, it does.
        agent.hotswap_again(13);
        let (request, command) = agent.command();
        assert_eq!(command, Command::Hotswap { classes: vec![MAIN] });
        agent.reply(request, Reply::Hotswapped(done()));
    })
    .await;
    let question = session.next_event().await.unwrap();
    session.serve(question).await.unwrap();
    session.hotswap_by_agent(vec![MAIN]).await.unwrap();
    agent.join().expect("the agent's script went as written");
    assert_eq!(session.hotswap_totals().batches, 4);
}

#[tokio::test]
async fn nobody_waits_for_a_hotswap_that_the_agent_could_not_execute() {
    let (mut session, agent) = begin(|agent| {
        let (request, command) = agent.command();
        assert_eq!(command, Command::Hotswap { classes: vec![MAIN] });
        agent.send(&ToTool::Reply { request, reply: Err("no memory".to_owned()) });
    })
    .await;
    let failed = session.hotswap_by_agent(vec![MAIN]).await;
    assert!(matches!(failed, Err(SessionError::Agent { .. })), "{failed:?}");
    assert!(session.running.is_none());
    agent.join().expect("the agent's script went as written");
}

#[tokio::test]
async fn no_class_file_is_read_while_a_thread_hotswaps() {
    let (mut session, agent) = begin(|agent| {
        agent.first_call();
        assert!(agent.hook(11, Some(ThreadId(77)), OTHER));
        agent.ask(12, 77, Upcall::Hotswapped(done()));
        assert_eq!(agent.answer(), (12, nothing()));
        let (request, command) = agent.command();
        assert_eq!(command, Command::ReadClasses { classes: vec![MAIN] });
        agent.reply(request, Reply::ClassFiles(Vec::new()));
    })
    .await;
    let question = session.next_event().await.unwrap();
    session.serve(question).await.unwrap();
    session.settle(Step::NeedCode(vec![MAIN])).await.unwrap();
    agent.join().expect("the agent's script went as written");
}

#[tokio::test]
async fn what_nobody_waits_for_is_hotswapped_by_the_agent() {
    let session = play(|agent| {
        agent.send(&ToTool::Notice(Notice::FirstCall(ROOT)));
        let (request, command) = agent.command();
        assert_eq!(command, Command::ListMethods { classes: vec![OTHER] });
        agent.tell_methods(request, &[OTHER]);
        let (request, command) = agent.command();
        assert_eq!(command, Command::Hotswap { classes: vec![OTHER] });
        assert!(agent.hook(10, None, OTHER));
        agent.reply(request, Reply::Hotswapped(done()));
        // The session has understood that before it answers this.
        agent.ask(11, 78, Upcall::FirstCall(ROOT));
        assert_eq!(agent.answer(), (11, nothing()));
    })
    .await;
    assert_eq!((session.graph().instrumented(), session.graph().late()), (2, 1));
}

#[tokio::test]
async fn a_class_that_got_no_answer_is_hotswapped_again() {
    play(|agent| {
        agent.first_call();
        agent.hotswap_again(11);
    })
    .await;
}

#[tokio::test]
async fn a_call_that_was_open_and_returns_soon_is_no_part_of_the_profile() {
    let (mut session, agent) = begin(|agent| {
        let method = MethodRef { class: MAIN, name: "root".into(), descriptor: "()V".into() };
        let frames = vec![Frame { method, replaced: true }];
        let inside = ThreadStack { thread: ThreadId(77), name: "main".into(), frames };
        for stacks in [vec![inside.clone()], vec![inside], Vec::new()] {
            let (request, command) = agent.command();
            assert!(matches!(command, Command::ListStacks { .. }), "{command:?}");
            agent.reply(request, Reply::Stacks(stacks));
        }
    })
    .await;
    assert_eq!(session.find_open_calls().await.unwrap(), []);
    agent.join().expect("the agent's script went as written");
    assert_eq!(session.graph().methods().len(), 1, "what it was about to call is not looked for");
}

#[tokio::test]
async fn a_thread_that_has_waited_enough_is_no_reason_for_a_warning() {
    let session = play(|agent| {
        agent.ask(10, 77, Upcall::FirstCall(ROOT));
        let (request, _) = agent.command();
        agent.send(&ToTool::Notice(Notice::OutOfPatience { request: 10 }));
        agent.tell_methods(request, &[OTHER]);
        let (request, command) = agent.command();
        assert_eq!(command, Command::Hotswap { classes: vec![OTHER] });
        assert!(agent.hook(11, None, OTHER));
        agent.reply(request, Reply::Hotswapped(done()));
        agent.ask(12, 78, Upcall::FirstCall(ROOT));
        assert_eq!(agent.answer(), (12, nothing()));
    })
    .await;
    assert_eq!((session.deadlines_passed().len(), session.graph().late()), (0, 1));
}

#[tokio::test]
async fn while_the_roots_are_timed_alone_nobody_waits_and_nothing_else_is_instrumented() {
    let (mut session, first, agent) = select(|agent| {
        agent.hotswap_root(1);
        agent.expect(&Command::Record, Reply::Done);
        agent.ask(10, 77, Upcall::ClassPrepared(Agent::info(OTHER)));
        assert_eq!(agent.answer(), (10, nothing()));
        agent.expect(&Command::Stop, Reply::Stopped { time_ns: 2 });
        agent.hotswap_root(2);
        agent.expect(&Command::Record, Reply::Done);
        agent.first_call();
    })
    .await;
    assert!(session.time_roots_alone(&first).await.unwrap());
    session.hear().await.unwrap();
    assert_eq!(session.end_timing(None).await.unwrap(), 2);
    session.instrument(first, None).await.unwrap();
    assert_eq!(session.hotswap_totals().batches, 2, "what timing needs is what the profile costs, too");
    while let Ok(event) = session.next_event().await {
        session.serve(event).await.unwrap();
    }
    agent.join().expect("the agent's script went as written");
}

#[tokio::test]
async fn a_long_call_that_was_timed_is_not_slowed_down_in_its_midst() {
    let (mut session, first, agent) = select(|agent| {
        agent.hotswap_root(1);
        agent.expect(&Command::Record, Reply::Done);
        agent.expect(&Command::Stop, Reply::Stopped { time_ns: 2 });
        agent.expect(&Command::Record, Reply::Done);
        // The next one begins.
        agent.ask(10, 77, Upcall::FirstCall(ROOT));
        agent.hotswap_root(2);
        let (request, command) = agent.command();
        assert_eq!(command, Command::ListMethods { classes: vec![OTHER] });
        agent.tell_methods(request, &[OTHER]);
        assert_eq!(agent.answer(), (10, Answer::Hotswap { classes: vec![OTHER] }));
    })
    .await;
    assert!(session.time_roots_alone(&first).await.unwrap());
    assert_eq!(session.end_timing(None).await.unwrap(), 2);
    session.instrument(first, Some(PATIENCE)).await.unwrap();
    agent.join().expect("the agent's script went as written");
}
