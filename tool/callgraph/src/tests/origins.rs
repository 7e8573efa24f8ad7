//! Why methods are reached, and why others are not selected.

use headwater_protocol::message::{CompiledCode, CompiledPiece, SampledCall, StackSamples};
use headwater_terms::reach::{Obstacle, Trigger, Way};

use super::*;

const ROOT: &str = "Main.root(LShape;)I";

impl PlayedJvm {
    /// What became of a method that was selected.
    #[track_caller]
    fn fate(&self, method: &str) -> Fate {
        let record = self.graph.methods().iter().find(|record| record.java_name() == method);
        self.graph.fate(record.unwrap_or_else(|| panic!("{method} was not selected")))
    }

    fn name(&self, method: Option<MethodId>) -> String {
        method.and_then(|id| self.graph.methods.record(id)).map_or(String::new(), MethodRecord::java_name)
    }

    /// Who leads to a method, in which way, and by which type.
    #[track_caller]
    fn check_origin(&self, method: &str, by: &str, way: Way, through: &str) {
        let origin = self.fate(method).origin;
        let named = origin.through.as_deref().unwrap_or_default();
        assert_eq!((&*self.name(origin.by), origin.way, named), (by, way, through), "{method}");
    }

    /// Why a method was not selected, and who leads to it.
    #[track_caller]
    pub(super) fn check_passed_over(&self, method: &str, why: Obstacle, by: &str) {
        let passed_over = self.graph.passed_over();
        let name = |it: &Unselected| headwater_terms::pattern::java_name(&it.class, &it.name, &it.descriptor);
        let found = passed_over.iter().find(|it| name(it) == method);
        let found = found.unwrap_or_else(|| panic!("{method} was not passed over: {passed_over:#?}"));
        assert_eq!((found.why, &*self.name(found.origin.by)), (why, by), "{method}");
    }
}

#[test]
fn calls_are_told_apart_by_how_they_find_what_they_run() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Main::root")).attach(&["Main", "Shape", "Square", "Disc"]);
    jvm.check_origin(ROOT, "", Way::Root, "");
    assert_eq!(jvm.fate(ROOT).trigger, Trigger::Start);
    jvm.graph.set_time(Moment { recorded: Duration::from_millis(70), batches: 1 });
    jvm.enter(ROOT);
    jvm.check_origin("Main.helper()I", ROOT, Way::Direct, "");
    jvm.check_origin("Square.area()I", ROOT, Way::Virtual, "Shape");
    let area = jvm.fate("Square.area()I");
    let found = Moment { recorded: Duration::from_millis(70), batches: 1 };
    assert_eq!((area.trigger, area.found, area.probed, area.lacks), (Trigger::Entered, found, Some(found), None));
    jvm.check_passed_over("Shape.area()I", Obstacle::Abstract, ROOT);
    jvm.load("Hole");
    jvm.check_origin("Hole.area()I", ROOT, Way::Virtual, "Shape");
    assert_eq!(jvm.fate("Hole.area()I").trigger, Trigger::Loaded);
    let hole = jvm.fate("Hole.area()I");
    // In its load hook, when it was found.
    assert_eq!((hole.found, hole.probed, hole.lacks), (found, Some(found), None));
}

#[test]
fn what_has_no_probes_has_a_reason() {
    let source = "
        class Main {
            static void root(Object[] all, java.util.Comparator<Object> by) {
                Hidden.pass(); Gone.call(); Natively.call(); java.util.Arrays.sort(all, by);
            }
            static void behind() { }
        }
        class Hidden { static void pass() { Main.behind(); } }
        class Gone { static void call() { } }
        class Natively { static native void call(); }
        class Order implements java.util.Comparator<Object> { public int compare(Object a, Object b) { return 0; } }";
    const SORTING: &str = "Main.root([Ljava/lang/Object;Ljava/util/Comparator;)V";
    let exclude = vec!["Hidden".parse().expect("a pattern")];
    let mut jvm = PlayedJvm::new(source, Options { exclude, ..options("Main::root") })
        .attach(&["Main", "Hidden", "Natively", "Order"]);
    jvm.enter(SORTING);
    for (method, why) in [
        ("Hidden.pass()V", Obstacle::Filtered),
        ("Gone.call()V", Obstacle::NotLoaded),
        ("Natively.call()V", Obstacle::Native),
        ("java.util.Arrays.sort([Ljava/lang/Object;Ljava/util/Comparator;)V", Obstacle::Jdk),
    ] {
        jvm.check_passed_over(method, why, SORTING);
    }
    jvm.check_origin("Main.behind()V", SORTING, Way::Hidden, "Hidden");
    // Objects of any class may be called back, and a comparator is named.
    jvm.check_origin(
        "Order.compare(Ljava/lang/Object;Ljava/lang/Object;)I",
        SORTING,
        Way::Callback,
        "java/util/Comparator",
    );
    let classes: Vec<&str> = jvm.graph.application_classes().map(|name| &**name).collect();
    assert!(classes.contains(&"Order") && !classes.contains(&"Gone") && !classes.contains(&"java/util/Arrays"));
}

#[test]
fn lambdas_initialisers_and_hidden_classes_lead_on() {
    let source = "
        class Main {
            static int root(Runnable it) { it.run(); Runnable made = () -> helper(); return Fresh.value; }
            static void helper() { }
            static void called() { }
        }
        class Fresh { static int value = 1 + Main.class.hashCode(); }
        class Main$$Hidden implements Runnable { public void run() { Main.called(); } }";
    const RUNS: &str = "Main.root(Ljava/lang/Runnable;)I";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main", "Main$$Hidden"]);
    jvm.enter(RUNS);
    jvm.load("Fresh");
    jvm.check_origin("Main.lambda$root$0()V", RUNS, Way::Handle, "");
    jvm.check_origin("Fresh.<clinit>()V", RUNS, Way::Initializer, "");
    jvm.check_origin("Main.called()V", RUNS, Way::Hidden, "Main$$Hidden");
    jvm.check_passed_over("Main$$Hidden.run()V", Obstacle::Unmodifiable, RUNS);
}

#[test]
fn what_is_found_ahead_or_behind_a_guard_says_so() {
    let mut jvm = PlayedJvm::new(CHAIN, ahead()).attach(&["Main", "Shape", "Square", "Parts"]);
    let guards = jvm.guards("Main");
    jvm.enter(ROOT);
    assert_eq!(jvm.fate("Main.third()I").trigger, Trigger::Foreseen);
    assert_eq!(jvm.fate("Parts.side()I").trigger, Trigger::Ahead);
    jvm.check_passed_over("Main.message()Ljava/lang/String;", Obstacle::Guarded, "Main.second()I");
    let (_, passed) = guards.iter().find(|(method, _)| method == "second").expect("an exception is thrown there");
    jvm.pass(*passed);
    jvm.check_origin("Main.message()Ljava/lang/String;", "Main.second()I", Way::Direct, "");
    assert_eq!(jvm.fate("Main.message()Ljava/lang/String;").trigger, Trigger::Passed);
}

#[test]
fn what_is_on_a_stack_hangs_on_the_nearest_of_the_graph_below_it() {
    let exclude = vec!["Disc".parse().expect("a pattern")];
    let mut jvm = PlayedJvm::new(SHAPES, Options { exclude, ..options("Main::root") })
        .attach(&["Main", "Shape", "Square", "Disc"]);
    let frame = |class: &str, name: &str, descriptor: &str| Frame {
        method: MethodRef { class: jvm.classes[class].id, name: name.into(), descriptor: descriptor.into() },
        replaced: true,
    };
    let frames =
        vec![frame("Main", "root", "(LShape;)I"), frame("Disc", "area", "()I"), frame("Square", "other", "()I")];
    let stack = ThreadStack { thread: ThreadId(1), name: "main".into(), frames };
    let step = jvm.graph.open_calls(&[stack]);
    jvm.settle(step);
    jvm.check_origin("Square.other()I", ROOT, Way::Open, "");
    assert_eq!(jvm.fate("Square.other()I").trigger, Trigger::Seen);
    jvm.check_origin("Main.helper()I", ROOT, Way::Direct, "");
    assert_eq!(jvm.fate("Main.helper()I").trigger, Trigger::Open, "its caller was seen");
}

#[test]
fn what_was_seen_below_a_root_is_selected_before_anything_is_entered() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Main::root")).attach(&["Main", "Shape", "Square", "Disc"]);
    let method = |class: &str, name: &str, descriptor: &str| MethodRef {
        class: jvm.classes[class].id,
        name: name.into(),
        descriptor: descriptor.into(),
    };
    let call = |by, method| SampledCall { by, method };
    let seen = StackSamples {
        classes: Vec::new(),
        methods: vec![method("Main", "root", "(LShape;)I"), method("Square", "other", "()I")],
        // The last two name what is not there: whoever answers may say anything.
        calls: vec![call(None, 0), call(Some(0), 1), call(Some(1), 7), call(Some(9), 1)],
        paused_ns: 0,
    };
    jvm.graph.ran_below_roots(&seen);
    let step = jvm.graph.select_seen();
    jvm.settle(step);
    jvm.check_origin("Square.other()I", ROOT, Way::Open, "");
    assert_eq!(jvm.fate("Square.other()I").trigger, Trigger::Seen);
    assert_eq!(jvm.fate("Square.other()I").lacks, None, "it has probes before it is entered");
    let methods = jvm.graph.methods().len();
    let step = jvm.graph.select_seen();
    jvm.settle(step);
    assert_eq!(jvm.graph.methods().len(), methods, "once is enough");
}

#[test]
fn what_samples_have_below_a_root_is_selected_and_what_they_have_around_it_is_not() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Main::root")).attach(&["Main", "Shape", "Square", "Disc"]);
    let names = ["Main.helper()I", ROOT, "java.lang.reflect.Method.invoke()V", "Square.other()I", "Disc.area()I"];
    let names = names.map(str::to_owned);
    // The last stack has no root on it; what there is no method of is passed over.
    let stacks: [&[usize]; 2] = [&[0, 1, 2, 3, 9], &[2, 4]];
    jvm.graph.ran_in_samples(&names, stacks.iter().map(|stack| stack.iter().copied()));
    let step = jvm.graph.select_seen();
    jvm.settle(step);
    jvm.check_origin("Square.other()I", ROOT, Way::Open, "");
    let is_selected = |method: &str| jvm.graph.methods().iter().any(|it| it.java_name() == method);
    assert!(is_selected(ROOT) && !is_selected("Disc.area()I"));
    let class = |name: &str| jvm.classes[name].id;
    let mut classes = [class("Disc"), class("Square")];
    jvm.graph.sort_by_urgency(&mut classes);
    assert_eq!(classes, [class("Square"), class("Disc")], "what ran is the first");
    let by_chance = |jvm: &PlayedJvm| jvm.name(jvm.graph.chosen_by_chance().max());
    assert_eq!(by_chance(&jvm), "Square.other()I");
    jvm.graph.ran_in_samples(&names, stacks.iter().map(|stack| stack.iter().copied()));
    assert_eq!(by_chance(&jvm), "", "two samples have shown it");
}

#[test]
fn classes_are_admitted_by_what_is_discarded_for_them() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Main::root")).attach(&["Main", "Shape", "Square", "Disc"]);
    let [main, square, disc] = ["Main", "Square", "Disc"].map(|name| jvm.classes[name].id);
    let method = |class, name: &str| MethodRef { class, name: name.to_owned(), descriptor: "()I".to_owned() };
    let methods = vec![
        MethodRef { descriptor: "(LShape;)I".to_owned(), ..method(main, "root") },
        method(main, "helper"),
        method(square, "other"),
        method(disc, "area"),
        method(ClassId(99), "unknown"),
    ];
    let piece =
        |method, bytes, inlined: &[u32]| CompiledPiece { bytes, method: Some(method), inlined: inlined.to_vec() };
    // The root has inlined helper; Square's method is compiled twice, once with Disc's in it, which is compiled by itself
    // too. Nobody knows whose code the last is.
    let pieces =
        [piece(0, 100, &[1]), piece(2, 50, &[]), piece(2, 250, &[3, 7]), piece(3, 400, &[4]), piece(4, 200, &[1])];
    let code = CompiledCode { methods, pieces: pieces.to_vec() };
    let names = [ROOT, "Main.helper()I", "Square.other()I", "Disc.area()I"].map(str::to_owned);
    // The last is not below the root.
    let stacks: [&[usize]; 5] = [&[0, 1], &[0, 2], &[0, 2, 3], &[0, 3], &[3]];
    jvm.graph.ran_in_samples(&names, stacks.iter().map(|stack| stack.iter().copied()));
    assert_eq!(jvm.graph.discarded(&[main, disc]), Discarded::default(), "nothing is compiled");
    let check = |jvm: &PlayedJvm| {
        let discarded = |classes: &[ClassId]| {
            let Discarded { code, time } = jvm.graph.discarded(classes);
            ((code * 1_000.0).round(), time)
        };
        assert_eq!([discarded(&[main]), discarded(&[square])], [(300.0, 0.25), (300.0, 0.5)]);
        assert_eq!(discarded(&[disc]), (650.0, 0.75), "what has inlined it");
        assert_eq!((discarded(&[square, disc]), discarded(&[])), ((700.0, 0.75), (0.0, 0.0)), "each piece once");
        let admitted = |admits: fn(Discarded) -> bool| jvm.graph.admitted(vec![disc, main, square], admits);
        assert_eq!(admitted(|of| of.time < 1.0), (vec![disc, square], vec![main]));
        assert_eq!(admitted(|of| of.code < 0.61), (vec![main, square], vec![disc]));
        assert_eq!(admitted(|of| of.time != 0.75), (vec![main], vec![disc, square]), "what goes by adds nothing");
    };
    for _ in 0..2 {
        jvm.graph.set_compiled(code.clone());
        check(&jvm);
        jvm.graph.are_changed(&[square]);
        assert_eq!(jvm.graph.discarded(&[square]), Discarded::default(), "it has been");
        assert_eq!(jvm.graph.discarded(&[disc]), Discarded { code: 0.4, time: 0.25 }, "the rest of it");
    }
}

#[test]
fn methods_that_were_refused_or_dropped_or_whose_turn_did_not_come_lack_probes() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Main::root")).attach(&["Main", "Shape", "Square"]);
    let mut step = jvm.graph.first_call(jvm.ids[ROOT]);
    while let Step::NeedMethods(classes) = step {
        for id in classes {
            let class = jvm.classes.values().find(|class| class.id == id).expect("a class we told of");
            jvm.graph.add_methods(id, class.methods.clone());
        }
        step = jvm.graph.resume();
    }
    assert_eq!(jvm.fate("Square.area()I").lacks, Some(Obstacle::Limits), "{step:?}");
    jvm.settle(step);
    let area = jvm.ids["Square.area()I"];
    assert_eq!(jvm.fate("Square.area()I").lacks, None);
    let classes = jvm.graph.drop_methods(&[area]);
    assert_eq!(jvm.fate("Square.area()I").lacks, None, "it has its probes until it is hotswapped");
    jvm.settle(Step::Hotswap(classes));
    assert_eq!(jvm.fate("Square.area()I").lacks, Some(Obstacle::Dropped));
    jvm.graph.refused(area, "no room".into());
    assert_eq!(jvm.fate("Square.area()I").lacks, Some(Obstacle::Refused));
}
