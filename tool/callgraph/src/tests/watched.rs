//! Methods that are watched instead of being instrumented.

use headwater_terms::reach::Obstacle;

use super::*;
use crate::policy::MOST_IDLE;

/// More classes than are instrumented though they have never run.
const CLASSES: usize = MOST_IDLE + 50;
const ROOT: &str = "Main.root([Ljava/lang/Object;Ljava/util/Comparator;)V";

/// A root that gives a comparator away, and has been called so often; of all its classes none has run.
fn sorting(watch_idle: bool, root_calls: u32) -> PlayedJvm {
    attached(played(watch_idle, root_calls))
}

fn played(watch_idle: bool, root_calls: u32) -> PlayedJvm {
    let class = |at| {
        format!(
            "class C{at} implements java.util.Comparator<Object> {{ public int compare(Object a, Object b) {{ return {at}; }} }} "
        )
    };
    let classes: String = (0..CLASSES).map(class).collect();
    let main = "class Main { static void root(Object[] all, java.util.Comparator<Object> by) { java.util.Arrays.sort(all, by); } }";
    let mut jvm = PlayedJvm::new(&(main.to_owned() + &classes), Options { watch_idle, ..ahead() });
    jvm.run_before(&[]);
    let root = jvm.classes.get_mut("Main").expect("the source's").methods.iter_mut().find(|it| it.name == "root");
    root.expect("the source's").calls = Some(root_calls);
    jvm
}

fn attached(jvm: PlayedJvm) -> PlayedJvm {
    let names: Vec<String> = jvm.classes.keys().filter(|name| !name.contains('/')).cloned().collect();
    let mut jvm = jvm.attach(&names.iter().map(String::as_str).collect::<Vec<_>>());
    jvm.enter(ROOT);
    jvm
}

fn comparators(jvm: &PlayedJvm) -> usize {
    jvm.instrumented.iter().filter(|method| method.contains(".compare(")).count()
}

#[test]
fn of_many_that_never_ran_a_few_are_instrumented_and_the_others_watched() {
    let mut jvm = sorting(true, 1_000);
    assert_eq!((comparators(&jvm), jvm.graph.take_watched().len()), (MOST_IDLE, CLASSES - MOST_IDLE));
    let passed_over = jvm.graph.passed_over();
    let watched = passed_over.iter().filter(|method| method.why == Obstacle::Watched);
    assert_eq!(watched.count(), CLASSES - MOST_IDLE);
    assert_eq!(jvm.graph.take_watched(), [], "the agent is told once");
}

#[test]
fn nothing_is_watched_where_all_is_to_be_exact_or_the_root_has_hardly_run() {
    for (watch_idle, root_calls) in [(false, 1_000), (true, 1)] {
        let mut jvm = sorting(watch_idle, root_calls);
        assert_eq!((comparators(&jvm), jvm.graph.take_watched().len()), (CLASSES, 0), "{watch_idle} {root_calls}");
    }
}

#[test]
fn what_has_run_after_all_is_instrumented_and_its_calls_may_be_missing() {
    let mut jvm = sorting(true, 1_000);
    let run = jvm.graph.take_watched().remove(0);
    jvm.graph.set_time(Moment { recorded: Duration::from_secs(3), batches: 0 });
    let step = jvm.graph.have_run(std::slice::from_ref(&run));
    jvm.settle(step);
    assert_eq!(comparators(&jvm), MOST_IDLE + 1);
    let missed: Vec<Missed> = jvm.graph.missed().map(|(_, missed)| missed).collect();
    let at = Duration::from_secs(3);
    assert_eq!(missed, [Missed { since: at, until: Some(at), most: None }]);
    let step = jvm.graph.have_run(&[run]);
    assert_eq!(step, Step::Hotswap(Vec::new()), "once is enough");
}

#[test]
fn a_method_whose_caller_was_not_seen_is_not_seen_either() {
    let source = "class Main { static void root() { First.first(); } }
                  class First { static void first() { Second.second(); } }
                  class Second { static void second() { } }";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main", "First", "Second"]);
    let step = jvm.graph.first_call(jvm.ids["Main.root()V"]);
    let Step::NeedMethods(classes) = step else { panic!("{step:?}") };
    for class in classes {
        let class = jvm.classes.values().find(|it| it.id == class).expect("a class we told of");
        jvm.graph.add_methods(class.id, class.methods.clone());
    }
    let Step::Hotswap(classes) = jvm.graph.resume() else { panic!("first's class is to be hotswapped") };
    // The thread does not wait for that.
    jvm.graph.went_on(&classes);
    jvm.settle(Step::Hotswap(classes));
    assert_eq!(jvm.graph.late(), 1);
    jvm.enter("First.first()V");
    assert_eq!(jvm.graph.late(), 2, "second was called whenever first was");
}

/// The JVM tells the methods of these classes, and how often each has run.
fn tell(jvm: &mut PlayedJvm, classes: [&str; 2], calls: impl Fn(&str) -> u32) {
    for name in classes {
        let class = &jvm.classes[name];
        let told = |method: &MethodInfo| MethodInfo { calls: Some(calls(&method.name)), ..method.clone() };
        jvm.graph.add_methods(class.id, class.methods.iter().map(told).collect());
    }
}

#[test]
fn of_what_never_was_instrumented_it_is_known_who_calls_it_and_whether_it_ran() {
    let source = "class Main { static void root() { First.first(); Second.second(); } }
                  class First { static void first() { } }
                  class Second { static void second() { } }";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main", "First", "Second"]);
    let names = ["First", "Second"];
    let tell = |jvm: &mut PlayedJvm, second_ran: u32| {
        tell(jvm, names, |method| if method == "second" { second_ran } else { 0 });
    };
    let step = jvm.graph.first_call(jvm.ids["Main.root()V"]);
    assert!(matches!(step, Step::NeedMethods(_)), "{step:?}");
    tell(&mut jvm, 0);
    let Step::Hotswap(classes) = jvm.graph.resume() else { panic!("their classes are to be hotswapped") };
    // Nobody waits for that, and the profile ends before.
    jvm.graph.went_on(&classes);
    let root = jvm.ids["Main.root()V"];
    let unseen = jvm.graph.unseen();
    assert_eq!(unseen.len(), 2);
    let is_by_root = |unseen: &Unseen| matches!(unseen.callers[..], [(caller, calls)] if caller == root && calls > 0.9);
    assert!(unseen.iter().all(is_by_root), "{unseen:?}");
    let mut classes = jvm.graph.classes_of_unseen();
    classes.sort_unstable();
    assert_eq!(classes, names.map(|name| jvm.classes[name].id));
    tell(&mut jvm, 3);
    jvm.graph.acquit_idle();
    let name = |it: &Unseen| jvm.graph.methods()[it.method.0 as usize - 1].java_name();
    let unseen = jvm.graph.unseen();
    let names: Vec<String> = unseen.iter().map(name).collect();
    assert_eq!(names, ["Second.second()V"], "the other one has not run at all");
    assert_eq!(unseen[0].most, Some(3));
}

#[test]
fn what_the_jvm_has_counted_since_a_class_was_redefined_is_no_bound() {
    let source = "class Main { static void root() { own(); Other.other(); } static void own() { } }
                  class Other { static void other() { } }";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main", "Other"]);
    let tell = |jvm: &mut PlayedJvm, ran: u32| tell(jvm, ["Main", "Other"], |_| ran);
    let step = jvm.graph.first_call(jvm.ids["Main.root()V"]);
    assert!(matches!(step, Step::NeedMethods(_)), "{step:?}");
    tell(&mut jvm, 0);
    let Step::Hotswap(classes) = jvm.graph.resume() else { panic!("their classes are to be hotswapped") };
    jvm.graph.went_on(&classes);
    tell(&mut jvm, 3);
    jvm.graph.acquit_idle();
    let mut most: Vec<(String, Option<u32>)> = Vec::new();
    for it in jvm.graph.unseen() {
        most.push((jvm.graph.methods()[it.method.0 as usize - 1].java_name(), it.most));
    }
    most.sort();
    let (own, other) = ("Main.own()V".to_owned(), "Other.other()V".to_owned());
    assert_eq!(most, [(own, None), (other, Some(3))]);
}

#[test]
fn what_ran_when_the_program_started_and_does_no_longer_is_watched_too() {
    let mut jvm = played(true, 1_000);
    for method in jvm.classes.values_mut().flat_map(|class| &mut class.methods).filter(|it| it.name == "compare") {
        method.calls = Some(50);
    }
    jvm.stale = vec!["compare"];
    assert_eq!(comparators(&attached(jvm)), MOST_IDLE);
}

#[test]
fn how_often_the_roots_have_been_called_is_known_before_anything_is_instrumented() {
    let jvm = sorting(true, 1_000);
    assert_eq!(jvm.graph.calls_of_roots(), (vec![jvm.classes["Main"].id], 1_000));
    assert!(jvm.graph.each_root_is_called_again());
    assert!(
        !sorting(true, 1).graph.each_root_is_called_again(),
        "it may be one that the program is in for as long as it runs"
    );
}
