//! What is done over the limits, and within them again.

use rustc_hash::FxHashMap;

use super::*;
use crate::budget::{Governor, Limit, Probes, Tally};
use crate::profile::Clock;

#[tokio::test]
async fn over_the_limit_threads_go_on_and_tell_the_agent_so() {
    let (mut session, agent) = begin(|agent| {
        agent.ask(10, 77, Upcall::FirstCall(ROOT));
        let (request, _) = agent.command();
        agent.tell_methods(request, &[OTHER]);
        assert_eq!(agent.answer(), (10, nothing()));
        let (request, command) = agent.command();
        assert_eq!(command, Command::Reveal(Reveal::Background));
        agent.reply(request, Reply::Done);
    })
    .await;
    session.be(Gentle::On, Duration::ZERO);
    session.account(&[], &HotswapResult { pause_ns: 1_000_000_000, ..done() });
    let question = session.next_event().await.unwrap();
    session.serve(question).await.unwrap();
    agent.join().expect("the agent's script went as written");
    assert_eq!(session.left_over, [OTHER], "it is instrumented when the limit allows");
    assert_eq!(session.graph().late(), 1);
    assert!(session.next_due().is_some_and(|due| due > Instant::now()));
}

#[tokio::test]
async fn what_threads_tell_that_do_not_wait_is_seen_to_together() {
    const NOTICES: usize = 3;
    let (mut session, agent) = begin(|agent| {
        let (request, command) = agent.command();
        assert_eq!(command, Command::ListMethods { classes: vec![OTHER] });
        agent.tell_methods(request, &[OTHER]);
    })
    .await;
    session.be(Gentle::On, Duration::ZERO);
    session.account(&[], &HotswapResult { pause_ns: 1_000_000_000, ..done() });
    session.is_in_background = true;
    for told in 1..=NOTICES {
        session.serve(SessionEvent::Message(ToTool::Notice(Notice::FirstCall(ROOT)))).await.unwrap();
        assert_eq!(session.meanwhile.entered.len(), told, "it waits for the others");
    }
    let due = session.next_event().await.unwrap();
    assert!(matches!(due, SessionEvent::Due));
    session.serve(due).await.unwrap();
    agent.join().expect("the agent's script went as written");
    assert_eq!((session.meanwhile.entered.len(), &session.left_over[..]), (0, &[OTHER][..]));
}

#[tokio::test]
async fn what_was_told_in_passing_is_not_seen_though_another_thread_waits_for_the_same_hotswap() {
    let (mut session, agent) = begin(|agent| {
        agent.send(&ToTool::Notice(Notice::FirstCall(ROOT)));
        agent.ask(10, 77, Upcall::Hotswapped(done()));
        let (request, command) = agent.command();
        assert_eq!(command, Command::ListMethods { classes: vec![OTHER] });
        agent.tell_methods(request, &[OTHER]);
        assert_eq!(agent.answer(), (10, Answer::Hotswap { classes: vec![OTHER] }));
    })
    .await;
    session.running = Some(Running { request: 9, thread: Some(ThreadId(77)), classes: Vec::new() });
    for _ in 0..2 {
        let event = session.next_event().await.unwrap();
        session.serve(event).await.unwrap();
    }
    agent.join().expect("the agent's script went as written");
    assert_eq!(session.graph().late(), 1);
}

#[tokio::test]
async fn who_had_gone_on_when_recording_ended_was_not_seen_and_who_had_waited_until_then_called_nothing() {
    for (has_gone_on, late) in [(true, 1), (false, 0)] {
        let (mut session, agent) = begin(move |agent| {
            let (stop, command) = agent.command();
            assert_eq!(command, Command::Stop);
            agent.ask(10, 77, Upcall::FirstCall(ROOT));
            assert_eq!(agent.answer(), (10, nothing()));
            if has_gone_on {
                agent.send(&ToTool::Notice(Notice::OutOfPatience { request: 10 }));
            }
            agent.reply(stop, Reply::Stopped { time_ns: 0 });
            if has_gone_on {
                let (request, command) = agent.command();
                assert_eq!(command, Command::ListMethods { classes: vec![OTHER] });
                agent.tell_methods(request, &[OTHER]);
            }
        })
        .await;
        session.stop().await.unwrap();
        agent.join().expect("the agent's script went as written");
        assert_eq!(session.graph().late(), late);
    }
}

#[tokio::test]
async fn what_is_likely_is_not_looked_for_when_nothing_is_instrumented_any_more() {
    let (mut session, agent) = begin(|_| {}).await;
    agent.join().expect("the agent's script went as written");
    assert_eq!(session.room(), None, "there is no limit");
    session.be(Gentle::On, Duration::from_secs(10));
    assert!(session.room() > Some(0));
    session.account(&[], &HotswapResult { pause_ns: 1_000_000_000, ..done() });
    session.recording_for(Some(Duration::from_secs(10)));
    // It will be allowed,
    assert!(session.room() > Some(0));
    session.recording_for(Some(Duration::ZERO));
    // or too late.
    assert_eq!(session.room(), Some(0));
    session.be(Gentle::Off, Duration::ZERO);
    session.stopping = true;
    assert_eq!(session.room(), Some(0));
}

#[tokio::test]
async fn what_costs_too_much_is_dropped_over_the_limit_too() {
    let (mut session, agent) = begin(|agent| {
        agent.first_call();
        assert!(agent.hook(11, Some(ThreadId(77)), OTHER));
        agent.ask(12, 77, Upcall::Hotswapped(done()));
        assert_eq!(agent.answer(), (12, nothing()));
        let (request, command) = agent.command();
        assert_eq!(command, Command::Hotswap { classes: vec![OTHER] });
        assert!(!agent.hook(13, None, OTHER), "it has its own code again");
        agent.reply(request, Reply::Hotswapped(done()));
    })
    .await;
    for _ in 0..3 {
        let question = session.next_event().await.unwrap();
        session.serve(question).await.unwrap();
    }
    session.be(Gentle::On, Duration::ZERO);
    session.limit_code(&compilers());
    session.graph.set_compiled(compiled([(OTHER, 100)]));
    let probes = Probes { clock: Clock::default(), idle_ns: 0.0, timing_ns: 0.0 };
    let (_, tallies) = tokio::sync::watch::channel(Tally::default());
    session.keep_to(Governor::new(Limit::UNASKED, probes, FxHashMap::default()), tallies);
    session.account(&[], &HotswapResult { pause_ns: 1_000_000_000, ..done() });
    let called = session.graph().methods().iter().find(|it| it.root_of.is_empty()).expect("what it calls").id;
    session.losing = session.graph.drop_methods(&[called]);
    session.turn().await.unwrap();
    agent.join().expect("the agent's script went as written");
    assert!(session.losing.is_empty() && !session.graph().can_drop(called));
    let room = session.allowance.map(|allowance| allowance.room(Instant::now()));
    assert!(room < Some(1.0), "it is compiled again");
}

#[tokio::test]
async fn however_much_is_dropped_none_of_it_waits_for_the_limit() {
    const CLASSES: std::ops::Range<u64> = 1_000..3_000;
    let (mut session, agent) = begin(|agent| {
        let mut restored = 0;
        while restored < CLASSES.count() {
            let (request, command) = agent.command();
            let Command::Hotswap { classes } = command else { panic!("{command:?}") };
            assert!(classes.len() < CLASSES.count(), "not all at once");
            restored += classes.len();
            agent.reply(request, Reply::Hotswapped(done()));
        }
    })
    .await;
    session.be(Gentle::On, Duration::ZERO);
    session.limit_code(&compilers());
    let classes: Vec<ClassId> = CLASSES.map(ClassId).collect();
    session.account(&classes, &HotswapResult { pause_ns: 1_000_000_000, ..done() });
    session.losing = classes;
    session.turn().await.unwrap();
    agent.join().expect("the agent's script went as written");
    assert!(session.left_over.is_empty());
}

#[tokio::test]
async fn within_the_limit_threads_wait_again() {
    let (mut session, agent) = begin(|agent| {
        let (request, command) = agent.command();
        assert_eq!(command, Command::Reveal(Reveal::Background));
        agent.reply(request, Reply::Done);
        let (request, command) = agent.command();
        assert_eq!(command, Command::Hotswap { classes: vec![OTHER] });
        agent.reply(request, Reply::Hotswapped(done()));
        let (request, command) = agent.command();
        assert_eq!(command, Command::Reveal(Reveal::Blocking));
        agent.reply(request, Reply::Done);
    })
    .await;
    session.be(Gentle::On, Duration::ZERO);
    session.left_over = vec![OTHER];
    session.exceed().await.unwrap();
    while session.is_in_background {
        let event = session.next_event().await.unwrap();
        session.serve(event).await.unwrap();
    }
    agent.join().expect("the agent's script went as written");
}

#[tokio::test]
async fn where_there_is_a_choice_what_is_on_stacks_is_among_the_first_however_it_is_called() {
    const CLASSES: std::ops::Range<u64> = 1_000..3_000;
    let (mut session, agent) = begin(|agent| {
        let (request, command) = agent.command();
        let Command::Sample { mut roots, .. } = command else { panic!("{command:?}") };
        roots.push(MethodRef { class: OTHER, name: "callee".to_owned(), descriptor: "()V".to_owned() });
        let calls = vec![SampledCall { by: None, method: 0 }, SampledCall { by: Some(0), method: 1 }];
        let seen = StackSamples { classes: vec![(OTHER, 1)], methods: roots, calls, paused_ns: 0 };
        agent.reply(request, Reply::Sampled(seen));
        let (request, command) = agent.command();
        assert_eq!(command, Command::ListMethods { classes: vec![OTHER] });
        agent.tell_methods(request, &[OTHER]);
        let (request, command) = agent.command();
        let Command::Hotswap { classes } = command else { panic!("{command:?}") };
        assert!(classes.contains(&OTHER) && classes.len() < CLASSES.count());
        // That is no answer to it.
        agent.reply(request, Reply::Done);
    })
    .await;
    session.be(Gentle::On, Duration::ZERO);
    session.is_in_background = true;
    assert!(session.hotswap_in_background(CLASSES.map(ClassId).collect()).await.is_err());
    agent.join().expect("the agent's script went as written");
    assert!(session.graph().methods().iter().any(|method| method.java_name() == "Other.callee()V"));
}

/// As of a large program: for all of its code they would be at work for a minute.
fn compilers() -> CompilerTime {
    let threads = Scheduled { ran_ns: 1_000_000_000, queued_ns: 0 };
    CompilerTime { number: 1, had: Duration::from_secs(30), threads, over: Duration::from_secs(1) }
}

/// A method of each class is compiled, to so many bytes.
fn compiled(classes: impl IntoIterator<Item = (ClassId, u32)>) -> CompiledCode {
    let mut code = CompiledCode::default();
    for (class, bytes) in classes {
        let (name, descriptor) = ("callee".to_owned(), "()V".to_owned());
        code.pieces.push(CompiledPiece { bytes, method: Some(code.methods.len() as u32), inlined: Vec::new() });
        code.methods.push(MethodRef { class, name, descriptor });
    }
    code
}

/// Classes with these numbers are loaded.
fn load(session: &mut Session, classes: impl Iterator<Item = ClassId>) {
    let info = |id: ClassId| ClassInfo { id, name: format!("Class{}", id.0), ..Agent::info(OTHER) };
    session.graph.add_classes(classes.map(info).collect());
}

#[tokio::test]
async fn of_a_large_program_few_classes_are_changed_at_once() {
    const CLASSES: std::ops::Range<u64> = 1_000..1_200;
    let (mut session, agent) = begin(|_| {}).await;
    agent.join().expect("the agent's script went as written");
    let classes = || CLASSES.map(ClassId).collect::<Vec<ClassId>>();
    load(&mut session, CLASSES.map(ClassId));
    session.graph.set_compiled(compiled(CLASSES.map(|class| (ClassId(class), 100))));
    session.limit_code(&compilers());
    assert_eq!(session.classes_at_once_of(classes()), None, "without limits all of them are");
    session.be(Gentle::On, Duration::ZERO);
    session.limit_code(&compilers());
    assert_eq!((session.classes_at_once_of(classes()), session.held_back_to()), (Some(20), None));
    for _ in 0..2 {
        let first = session.batch(classes());
        assert_eq!((first.len(), std::mem::take(&mut session.left_over).len()), (20, 180));
    }
    assert_eq!(session.held_back_to(), Some(20));
    session.account(&classes()[..20], &done());
    assert!(session.must_wait_for(&classes()[20..40]), "compilers have to catch up");
    assert_eq!(session.allowed_from(1), None, "not with what somebody asks for");
}

#[tokio::test]
async fn where_all_of_the_time_is_in_code_that_is_discarded_few_classes_are_changed() {
    let (mut session, _, agent) = select(|_| {}).await;
    agent.join().expect("the agent's script went as written");
    session.be(Gentle::On, Duration::ZERO);
    session.limit_code(&compilers());
    let others = || (1_000..1_004).map(ClassId);
    let classes = || [OTHER].into_iter().chain(others()).collect::<Vec<ClassId>>();
    assert_eq!(session.batch(classes()).len(), classes().len(), "nothing is known of them");
    load(&mut session, others());
    let of_others = others().map(|class| (class, 250));
    session.graph.set_compiled(compiled([(MAIN, 12_000), (OTHER, 150)].into_iter().chain(of_others)));
    assert_eq!(session.batch(classes()).len(), classes().len(), "by their size");
    assert_eq!(session.classes_at_once_of(classes()), Some(classes().len()), "it may be fewer");
    let names = ["Main.root()V", "Other.callee()V"].map(str::to_owned);
    session.graph.ran_in_samples(&names, [[0, 1, 1, 1, 1]; 10].into_iter().map(<[usize; 5]>::into_iter));
    assert_eq!(session.batch(classes()), [OTHER], "with another it would be slow for longer");
    assert_eq!(std::mem::take(&mut session.left_over), others().collect::<Vec<ClassId>>());
    session.account(&[OTHER], &done());
    assert!(!session.must_wait_for(&[ClassId(1_000)]) && session.must_wait_for(&others().collect::<Vec<ClassId>>()));
    assert_eq!(
        session.batch(others().collect()),
        others().take(2).collect::<Vec<ClassId>>(),
        "what is not dense finds room"
    );
}

#[tokio::test]
async fn roots_do_not_wait_for_compilers() {
    let (mut session, _, agent) = select(|_| {}).await;
    agent.join().expect("the agent's script went as written");
    session.be(Gentle::On, Duration::ZERO);
    session.limit_code(&compilers());
    let [waits, dense, nothing] = [1_000, 1_001, 1_002].map(ClassId);
    load(&mut session, [waits, dense, nothing].into_iter());
    session.graph.set_compiled(compiled([(MAIN, 3_500), (OTHER, 1_000), (waits, 500), (dense, 5_000)]));
    session.account(&[OTHER], &done());
    assert!(session.must_wait_for(&[waits]));
    assert!(!session.must_wait_for(&[MAIN, waits]));
    let first = session.batch(vec![waits, OTHER, nothing, MAIN]);
    assert_eq!(
        (&first[..], &session.left_over[..]),
        (&[MAIN, OTHER, nothing][..], &[waits][..]),
        "what discards nothing more"
    );
    session.left_over.clear();
    assert_eq!(session.batch(vec![dense, waits]), [waits], "so that it goes on");
    assert_eq!(session.batch(vec![dense]), [], "it never does");
    assert!(session.left_over.is_empty() && session.held_back_to().is_some());
    assert_eq!(session.too_much().collect::<Vec<_>>(), ["Class1001"], "and is named");
}
