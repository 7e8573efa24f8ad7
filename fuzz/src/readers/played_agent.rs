//! An agent that answers as one does, and now and then says something else: at the wrong time, about things that are not there, or garbled.

use std::collections::HashMap;

use headwater_protocol::message::events::Telling;
use headwater_protocol::message::{
    Answer, Calibration, ClassFileBytes, ClassInfo, Command, CompiledCode, CompiledPiece, Frame, Greeting,
    HotswapResult, MethodInfo, MethodRef, Notice, Reply, RunningCall, SampledCall, StackSamples, ThreadStack, ToAgent,
    ToTool, UnlinkedClass, Upcall, Walked, WalkedThread,
};
use headwater_protocol::{ClassId, LoaderId, MethodId, PROTOCOL_VERSION, ThreadId, wire};
use headwater_rewriter::ClassFile;
use headwater_tests::random::Random;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::messages;
use crate::mutation::{change, edge};

const APPLICATION: LoaderId = LoaderId(2);
/// It has this much to say that nobody has asked for.
const MOST_SAID: usize = 40;
/// When nothing comes for so many turns, whoever waits for it waits in vain.
const TURNS: usize = 100;

/// A class of the played JVM.
#[derive(Debug)]
pub(crate) struct Class {
    info: ClassInfo,
    bytes: Vec<u8>,
    methods: Vec<MethodInfo>,
}

/// The classes of such files, with their supertypes as far as these are among them.
pub(crate) fn classes(files: &[Vec<u8>]) -> Vec<Class> {
    let parsed: Vec<ClassFile<'_>> = files.iter().map(|file| ClassFile::parse(file).expect("a sound sample")).collect();
    let name = |class: &ClassFile<'_>| class.name().expect("a sound sample").into_owned();
    let id = |index: usize| ClassId(index as u64 + 1);
    let by_name: HashMap<String, ClassId> =
        parsed.iter().enumerate().map(|(index, class)| (name(class), id(index))).collect();
    let of = |(index, class): (usize, &ClassFile<'_>)| Class {
        info: ClassInfo {
            id: id(index),
            name: name(class),
            loader: APPLICATION,
            super_class: class.super_name().ok().flatten().and_then(|name| by_name.get(&*name).copied()),
            interfaces: class.interfaces().iter().flatten().filter_map(|name| by_name.get(&**name).copied()).collect(),
            access: class.access(),
            initialized: true,
            modifiable: true,
            probed: true,
        },
        bytes: files[index].clone(),
        methods: class
            .methods()
            .iter()
            .map(|method| MethodInfo {
                name: method.name().into_owned(),
                descriptor: method.descriptor().into_owned(),
                access: method.access,
                calls: (method.index % 2 == 0).then_some(1000),
            })
            .collect(),
    };
    parsed.iter().enumerate().map(of).collect()
}

/// The agent.
pub(crate) struct Agent<'a> {
    stream: UnixStream,
    classes: &'a [Class],
    random: &'a mut Random,
    received: Vec<u8>,
    said: usize,
    requests: u64,
    /// Of so many messages one is a lie.
    honesty: usize,
}

impl<'a> Agent<'a> {
    /// Connects, greets and is welcomed.
    pub(crate) async fn connect(
        path: &std::path::Path,
        classes: &'a [Class],
        random: &'a mut Random,
    ) -> std::io::Result<Agent<'a>> {
        let stream = UnixStream::connect(path).await?;
        let greeting = Greeting {
            protocol: PROTOCOL_VERSION,
            pid: 1,
            vm_version: String::new(),
            java_version: "25".to_owned(),
            startup: false,
            internals: Vec::new(),
        };
        let honesty = random.choose(&[4, 16, 64, 1 << 20]);
        let mut agent = Agent { stream, classes, random, received: Vec::new(), said: 0, requests: 1 << 20, honesty };
        agent.stream.write_all(&wire::encode(&Ok::<_, String>(greeting)).expect("a greeting")).await?;
        let length = agent.stream.read_u32_le().await?;
        agent.stream.read_exact(&mut vec![0; length as usize]).await?;
        Ok(agent)
    }

    /// Answers and says things until there is no more to say, or nobody listens.
    pub(crate) async fn play(mut self) {
        while let Ok(true) = self.step().await {}
    }

    /// One message, or something of its own; whether there is more.
    async fn step(&mut self) -> std::io::Result<bool> {
        for turn in 0..TURNS {
            if let Some(message) = self.received_message() {
                return self.answer(message).await.map(|()| true);
            }
            match self.stream.try_read_buf(&mut self.received) {
                Ok(0) => return Ok(false),
                Ok(_) => continue,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if self.said < MOST_SAID && turn > 0 && self.random.once_in(2) {
                self.said += 1;
                let message = self.anything();
                return self.send(message).await.map(|()| true);
            }
            tokio::task::yield_now().await;
        }
        Ok(false)
    }

    fn received_message(&mut self) -> Option<ToAgent> {
        let (prefix, rest) = self.received.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*prefix) as usize;
        let message = wire::decode(rest.get(..length)?).expect("the tool's own");
        self.received.drain(..4 + length);
        Some(message)
    }

    async fn send(&mut self, message: ToTool) -> std::io::Result<()> {
        let mut frame = wire::encode(&message).expect("a message");
        if self.random.once_in(self.honesty) {
            let mut body = frame.split_off(4);
            let other = body.clone();
            for _ in 0..=self.random.below(3) {
                change(&mut body, &other, self.random);
            }
            frame = (body.len() as u32).to_le_bytes().to_vec();
            frame.extend(body);
        }
        self.stream.write_all(&frame).await
    }

    async fn ask(&mut self, upcall: Upcall) -> std::io::Result<()> {
        self.requests += 1;
        let thread = Some(ThreadId(70 + self.random.below(4) as u64));
        self.send(ToTool::Upcall { request: self.requests, thread, upcall }).await
    }

    async fn answer(&mut self, message: ToAgent) -> std::io::Result<()> {
        match message {
            ToAgent::Command { request, command } => {
                if let Command::Hotswap { classes } = &command {
                    self.hooks(classes).await?;
                }
                let reply = self.reply(&command);
                let reply = match self.random.once_in(self.honesty) {
                    true if self.random.once_in(2) => Err("no".to_owned()),
                    true => {
                        let replies = messages::replies();
                        let at = self.random.below(replies.len());
                        Ok(replies[at].clone())
                    }
                    false => Ok(reply),
                };
                self.send(ToTool::Reply { request, reply }).await
            }
            ToAgent::Answer { answer: Answer::Hotswap { classes }, .. } if !classes.is_empty() => {
                self.hooks(&classes).await?;
                let result = self.hotswapped(&classes);
                self.ask(Upcall::Hotswapped(result)).await
            }
            ToAgent::Answer { answer: Answer::Link { classes }, .. } => {
                for class in &classes {
                    if let Some(info) = self.class(*class).map(|class| class.info.clone()) {
                        self.ask(Upcall::ClassPrepared(info)).await?;
                    }
                }
                self.ask(Upcall::Linked).await
            }
            ToAgent::Answer { .. } => Ok(()),
        }
    }

    fn class(&self, id: ClassId) -> Option<&'a Class> {
        self.classes.get((id.0 as usize).checked_sub(1)?)
    }

    async fn hooks(&mut self, classes: &[ClassId]) -> std::io::Result<()> {
        for class in classes {
            let Some(class) = self.class(*class) else { continue };
            let (id, name, bytes) = (class.info.id, class.info.name.clone(), class.bytes.clone());
            self.ask(Upcall::ClassBytes { class: Some(id), loader: APPLICATION, name, bytes }).await?;
        }
        Ok(())
    }

    fn hotswapped(&mut self, classes: &[ClassId]) -> HotswapResult {
        let of = |some: bool| classes.iter().copied().filter(move |_| some);
        HotswapResult {
            classes: classes.len() as u32,
            refused: of(self.random.once_in(8)).map(|class| (class, "it says no".to_owned())).collect(),
            unanswered: of(self.random.once_in(8)).collect(),
            total_ns: edge(self.random),
            pause_ns: self.random.below(1 << 20) as u64,
            threads: self.random.below(3) as u32,
        }
    }

    /// What an agent replies.
    fn reply(&mut self, command: &Command) -> Reply {
        let all = self.classes;
        let some = |classes: &[ClassId]| -> Vec<&'a Class> {
            classes.iter().filter_map(|id| all.get((id.0 as usize).checked_sub(1)?)).collect()
        };
        match command {
            Command::Calibrate => Reply::Calibration(Calibration {
                inner_ns: 20.0,
                outer_ns: 30.0,
                outside_ns: 2.0,
                control_ns: 40.0,
                inner_spread_ns: 1.0,
                outer_spread_ns: 1.0,
                object_ns: 0.0,
            }),
            Command::ListClasses { .. } => {
                let (linked, unlinked): (Vec<&Class>, Vec<&Class>) = all.iter().partition(|_| !self.random.once_in(4));
                let unlinked = unlinked.iter().map(|class| UnlinkedClass {
                    id: class.info.id,
                    name: class.info.name.clone(),
                    super_class: class.info.super_class,
                    is_of_class_path: true,
                });
                Reply::Classes {
                    linked: linked.iter().map(|class| class.info.clone()).collect(),
                    unlinked: unlinked.collect(),
                }
            }
            Command::ListMethods { classes } => {
                Reply::Methods(some(classes).iter().map(|class| (class.info.id, class.methods.clone())).collect())
            }
            Command::ReadClasses { classes } => {
                let file = |class: &&Class| ClassFileBytes { class: class.info.id, bytes: class.bytes.clone() };
                Reply::ClassFiles(some(classes).iter().map(file).collect())
            }
            Command::ListMentions => Reply::Mentions(vec![1, 2, 3]),
            Command::ListCompiled => Reply::Compiled(self.compiled()),
            Command::ListStale => Reply::Methods(Vec::new()),
            Command::Hotswap { classes } => Reply::Hotswapped(self.hotswapped(classes)),
            Command::ForgetLambdas => Reply::Hotswapped(HotswapResult::default()),
            Command::ListStacks { roots } => Reply::Stacks(self.stacks(roots)),
            Command::ListCalls => {
                let (version, class) = (edge(self.random), self.any_class());
                let call = RunningCall { version, class, is_native: false };
                Reply::Calls(vec![(ThreadId(77), vec![call])])
            }
            Command::Sample { roots, .. } => Reply::Sampled(self.seen(roots)),
            Command::EndWalk => Reply::Walked(self.walked()),
            Command::Stop => Reply::Stopped { time_ns: 1 << 30 },
            Command::Tell(_) => Reply::Telling(Telling::default()),
            Command::Detach => Reply::Detached { hotswap: HotswapResult::default() },
            Command::Omit(_)
            | Command::Reveal(_)
            | Command::Watch { .. }
            | Command::Count(_)
            | Command::Record
            | Command::Walk { .. }
            | Command::FollowOpen { .. }
            | Command::Release => Reply::Done,
        }
    }

    fn stacks(&mut self, roots: &[MethodRef]) -> Vec<ThreadStack> {
        if !self.random.once_in(8) {
            return Vec::new();
        }
        let frames = (0..self.random.below(4)).map(|_| Frame { method: self.any_method(), replaced: false });
        let mut frames: Vec<Frame> = frames.collect();
        frames.extend(roots.first().map(|root| Frame { method: root.clone(), replaced: true }));
        vec![ThreadStack { thread: ThreadId(7), name: "open".to_owned(), frames }]
    }

    fn seen(&mut self, roots: &[MethodRef]) -> StackSamples {
        let methods: Vec<MethodRef> = roots.iter().cloned().chain((0..3).map(|_| self.any_method())).collect();
        let call = |at: u32, random: &mut Random| SampledCall {
            by: (at > 0)
                .then(|| if random.once_in(8) { edge(random) as u32 } else { random.below(at as usize) as u32 }),
            method: if random.once_in(8) { edge(random) as u32 } else { random.below(methods.len()) as u32 },
        };
        let calls = (0..self.random.below(6) as u32).map(|at| call(at, self.random)).collect();
        StackSamples { classes: vec![(self.any_class(), 7)], methods, calls, paused_ns: 5 }
    }

    fn walked(&mut self) -> Walked {
        let methods: Vec<MethodRef> = (0..4).map(|_| self.any_method()).collect();
        let random = &mut *self.random;
        let place = |random: &mut Random| if random.once_in(8) { edge(random) as u32 } else { random.below(4) as u32 };
        let stacks = (0..3).map(|_| (0..random.below(5)).map(|_| place(random)).collect()).collect();
        let thread = |random: &mut Random| WalkedThread {
            at_ns: edge(random).cast_signed(),
            stack: place(random),
            is_cut: random.once_in(2),
            is_native: random.once_in(2),
            stands_for: edge(random) as u16,
        };
        Walked {
            methods,
            stacks,
            threads: (0..6).map(|_| thread(random)).collect(),
            looks: edge(random) as u32,
            took_ns: edge(random),
        }
    }

    fn compiled(&mut self) -> CompiledCode {
        let methods: Vec<MethodRef> = (0..4).map(|_| self.any_method()).collect();
        let random = &mut *self.random;
        let place = |random: &mut Random| if random.once_in(8) { edge(random) as u32 } else { random.below(4) as u32 };
        let piece = |random: &mut Random| CompiledPiece {
            bytes: edge(random) as u32,
            method: Some(place(random)),
            inlined: (0..random.below(4)).map(|_| place(random)).collect(),
        };
        CompiledCode { methods, pieces: (0..6).map(|_| piece(random)).collect() }
    }

    fn any_class(&mut self) -> ClassId {
        let draw = self.random.below(self.classes.len() + 2);
        if draw == 0 { ClassId(edge(self.random)) } else { ClassId(draw as u64) }
    }

    fn any_method(&mut self) -> MethodRef {
        let class = self.any_class();
        let methods = self.class(class).map_or(&[][..], |class| &class.methods);
        let method = methods.get(self.random.below(methods.len().max(1)));
        let (name, descriptor) = method.map_or(("?", "("), |method| (&method.name, &method.descriptor));
        MethodRef { class, name: name.to_owned(), descriptor: descriptor.to_owned() }
    }

    fn any_number(&mut self) -> MethodId {
        MethodId(if self.random.once_in(8) { edge(self.random) as u32 } else { 1 + self.random.below(30) as u32 })
    }

    fn any_info(&mut self) -> ClassInfo {
        let class = self.any_class();
        let mut info = self.class(class).or(self.classes.first()).expect("a sample").info.clone();
        match self.random.below(6) {
            0 => info.id = class,
            1 => info.super_class = Some(self.any_class()),
            2 => info.interfaces.push(self.any_class()),
            3 => info.name.clear(),
            _ => {}
        }
        info
    }

    /// Something that nobody has asked for.
    fn anything(&mut self) -> ToTool {
        let upcall = match self.random.below(14) {
            0..=4 => Upcall::FirstCall(self.any_number()),
            5 => Upcall::Reflected(self.any_method()),
            6 => Upcall::Received { call: self.random.below(8) as u32, class: self.any_class() },
            7 => Upcall::ClassPrepared(self.any_info()),
            8 => {
                let some = [self.any_class(), self.any_class()];
                Upcall::Hotswapped(self.hotswapped(&some))
            }
            9 => {
                let class = self.any_class();
                let class = self.class(class).or(self.classes.first()).expect("a sample");
                let (name, bytes) = (class.info.name.clone(), class.bytes.clone());
                Upcall::ClassBytes { class: None, loader: APPLICATION, name, bytes }
            }
            10 => {
                let upcalls = messages::upcalls();
                let at = self.random.below(upcalls.len());
                upcalls[at].clone()
            }
            _ => return ToTool::Notice(self.any_notice()),
        };
        self.requests += 1;
        let thread = (!self.random.once_in(8)).then(|| ThreadId(70 + self.random.below(4) as u64));
        ToTool::Upcall { request: self.requests, thread, upcall }
    }

    fn any_notice(&mut self) -> Notice {
        match self.random.below(8) {
            0 => {
                let thread = ThreadId(self.random.below(4) as u64);
                let os_thread = Some(70 + self.random.below(4) as u32);
                Notice::ThreadStarted { thread, name: "t".to_owned(), os_thread }
            }
            1 => Notice::FirstCall(self.any_number()),
            2 => Notice::Reflected(self.any_method()),
            3 => Notice::Received { call: self.random.below(8) as u32, class: self.any_class() },
            4 => Notice::ClassPrepared(self.any_info()),
            5 => Notice::HasRun(vec![self.any_method()]),
            6 => Notice::OutOfPatience { request: self.requests },
            _ => {
                let notices = messages::notices();
                let at = self.random.below(notices.len());
                notices[at].clone()
            }
        }
    }
}
