//! Looking ahead: by the shape of the code, and by what has run before.

use super::*;

#[test]
fn what_is_likely_to_be_entered_comes_in_the_same_batch() {
    let mut jvm = PlayedJvm::new(CHAIN, ahead());
    jvm.graph.set_batch_cost(Duration::from_millis(1));
    let mut jvm = jvm.attach(&["Main", "Shape", "Square", "Disc", "Parts"]);
    let found = ["Disc.area()I", "Main.first()I", "Main.root(LShape;)I"];
    let more = ["Main.second()I", "Main.third()I", "Square.area()I"];
    // Of two implementations nobody knows which will run.
    assert_eq!(jvm.instrumented(), [&found[..], &more[..]].concat());
    assert_eq!(jvm.hotswaps, 1);
    for method in ["Main.root(LShape;)I", "Main.first()I", "Main.second()I", "Main.third()I"] {
        jvm.enter(method);
    }
    assert_eq!(jvm.hotswaps, 1, "all that they call is there");
    jvm.enter("Disc.area()I");
    assert!(jvm.instrumented.contains("Parts.radius()I") && !jvm.instrumented.contains("Parts.side()I"));
}

#[test]
fn classes_with_roots_are_listed_first() {
    let mut jvm = PlayedJvm::new(CHAIN, ahead());
    jvm.classes.values_mut().for_each(|class| class.linked = true);
    let infos = jvm.classes.keys().map(|name| jvm.info(name)).collect();
    jvm.graph.add_classes(infos);
    let listed = jvm.graph.worth_listing();
    assert_eq!((listed[0], listed.len()), (jvm.classes["Main"].id, 5));
}

#[test]
fn dear_batches_look_further_ahead() {
    let mut jvm = PlayedJvm::new(CHAIN, ahead());
    jvm.graph.set_batch_cost(Duration::from_millis(10));
    let jvm = jvm.attach(&["Main", "Shape", "Square", "Disc", "Parts"]);
    assert!(jvm.instrumented.contains("Parts.radius()I") && jvm.instrumented.contains("Parts.side()I"));
    assert!(!jvm.instrumented.contains("Main.text()Ljava/lang/String;"), "still, exceptions are rare");
}

#[test]
fn where_there_is_room_for_few_classes_the_surest_are_first() {
    let source = "class Main { static void root(boolean b) { Sure.a(); if (b) Maybe.a(); } }
        class Sure { static void a() { Surer.b(); } } class Surer { static void b() { Last.c(); } } class Last { static void c() { } }
        class Maybe { static void a() { Perhaps.b(); } } class Perhaps { static void b() { } }";
    let attached = |room| {
        let mut jvm = PlayedJvm::new(source, ahead());
        jvm.graph.set_batch_cost(Duration::from_millis(10));
        jvm.graph.set_room(room);
        jvm.attach(&["Main", "Sure", "Surer", "Last", "Maybe", "Perhaps"])
    };
    let all = ["Last.c()V", "Main.root(Z)V", "Maybe.a()V", "Perhaps.b()V", "Sure.a()V", "Surer.b()V"];
    assert_eq!(attached(None).instrumented(), all);
    assert_eq!(attached(Some(6)).instrumented(), all);
    let mut few = attached(Some(4));
    assert_eq!(few.instrumented(), ["Main.root(Z)V", "Maybe.a()V", "Sure.a()V", "Surer.b()V"]);
    few.enter("Main.root(Z)V");
    few.enter("Maybe.a()V");
    assert!(few.instrumented.contains("Perhaps.b()V"), "it is found by its caller's first call");
}

#[test]
fn guesses_without_evidence_are_few_until_some_were_right() {
    use std::fmt::Write as _;
    const METHODS: usize = 100;
    let (mut calls, mut methods, mut others) = (String::new(), String::new(), String::new());
    for number in 0..METHODS {
        let _ = write!(calls, "a{number}(); ");
        let _ = write!(methods, "static void a{number}() {{ Other.b{number}(); }} ");
        let _ = write!(others, "static void b{number}() {{ }} ");
    }
    let source = format!("class Main {{ static void root() {{ {calls} }} {methods} }} class Other {{ {others} }}");
    let mut jvm = PlayedJvm::new(&source, ahead());
    jvm.graph.set_batch_cost(Duration::from_millis(10));
    let mut jvm = jvm.attach(&["Main", "Other"]);
    let second = |jvm: &PlayedJvm| jvm.instrumented.iter().filter(|name| name.starts_with("Other.b")).count();
    let few = second(&jvm);
    assert!(few > 0 && few < METHODS, "{few}");
    jvm.enter("Main.root()V");
    (0..METHODS).for_each(|number| jvm.enter(&format!("Main.a{number}()V")));
    assert_eq!(second(&jvm), METHODS);
    assert!(jvm.hotswaps < METHODS / 2, "{}", jvm.hotswaps);
}

#[test]
fn what_has_been_compiled_is_likely_to_run_again() {
    let mut jvm = PlayedJvm::new(CHAIN, ahead());
    jvm.graph.set_batch_cost(Duration::from_millis(1));
    jvm.compiled = vec![("Main", "root"), ("Disc", "area")];
    let jvm = jvm.attach(&["Main", "Shape", "Square", "Disc", "Parts"]);
    assert!(jvm.instrumented.contains("Parts.radius()I"));
    assert!(!jvm.instrumented.contains("Parts.side()I"));
}

#[test]
fn what_has_been_called_is_instrumented_at_once_and_no_more() {
    let mut jvm = PlayedJvm::new(CHAIN, ahead());
    jvm.graph.set_batch_cost(Duration::from_millis(1));
    jvm.run_before(&["Main.root", "Main.first", "Main.second", "Main.third", "Square.area", "Parts.side"]);
    let jvm = jvm.attach(&["Main", "Shape", "Square", "Disc", "Parts"]);
    assert!(jvm.instrumented.contains("Main.third()I") && jvm.instrumented.contains("Parts.side()I"));
    // The call can run it, but is told when it is about to.
    assert!(!jvm.instrumented.contains("Disc.area()I") && !jvm.instrumented.contains("Parts.radius()I"));
    assert!(!jvm.instrumented.contains("Main.message()Ljava/lang/String;"));
    assert_eq!(jvm.hotswaps, 1);
}

#[test]
fn a_lambdas_class_stands_for_one_of_its_hosts_lambdas() {
    let source = "
        class Main {
            static void root(Runnable it) { it.run(); }
            static Runnable make(int kind) {
                return kind == 0 ? () -> first() : kind == 1 ? () -> second() : () -> third();
            }
            static void first() {}
            static void second() {}
            static void third() {}
        }
        class Main$$Lambda implements Runnable { public void run() {} }
        class Main$$Lambda2 implements Runnable { public void run() {} }";
    let mut jvm = PlayedJvm::new(source, ahead());
    jvm.run_before(&["Main.root"]);
    jvm.graph.set_batch_cost(Duration::from_millis(10));
    let mut jvm = jvm.attach(&["Main", "Main$$Lambda"]);
    jvm.enter("Main.root(Ljava/lang/Runnable;)V");
    let lambdas = ["Main.lambda$make$0()V", "Main.lambda$make$1()V", "Main.lambda$make$2()V"];
    let expected = [&lambdas[..], &["Main.root(Ljava/lang/Runnable;)V"]].concat();
    assert_eq!(jvm.instrumented(), expected, "what never ran is not expected to, and so not what it calls");

    let mut jvm = PlayedJvm::new(source, ahead());
    jvm.run_before(&["Main.root", "Main$$Lambda.run", "Main.lambda$make$1", "Main.second"]);
    let mut jvm = jvm.attach(&["Main", "Main$$Lambda"]);
    jvm.enter("Main.root(Ljava/lang/Runnable;)V");
    let has = |jvm: &PlayedJvm, lambda: &str| jvm.instrumented.contains(lambda);
    assert!(has(&jvm, lambdas[1]), "the only class is its");
    assert!(!has(&jvm, lambdas[0]) && !has(&jvm, lambdas[2]), "{:?}", jvm.instrumented());
    jvm.load("Main$$Lambda2");
    assert!(lambdas.iter().all(|lambda| has(&jvm, lambda)), "one of them has a class now");
}

#[test]
fn however_long_the_way_what_has_been_called_is_reached() {
    use std::fmt::Write as _;
    const DEEP: usize = 60;
    let mut methods = String::new();
    for depth in 0..DEEP {
        let _ = write!(methods, "static void a{depth}(int x) {{ if (x > {depth}) a{}(x); }} ", depth + 1);
    }
    let source =
        format!("class Main {{ static void root() {{ a0(99); }} {methods} static void a{DEEP}(int x) {{ }} }}");
    let mut jvm = PlayedJvm::new(&source, ahead());
    let called: Vec<String> = (0..=DEEP).map(|depth| format!("Main.a{depth}")).collect();
    jvm.run_before(&called.iter().map(String::as_str).chain(["Main.root"]).collect::<Vec<_>>());
    jvm.graph.set_batch_cost(Duration::from_millis(10));
    let jvm = jvm.attach(&["Main"]);
    assert_eq!((jvm.instrumented.len(), jvm.hotswaps), (DEEP + 2, 1));
}

#[test]
fn a_class_that_is_new_has_had_no_chance_to_be_called() {
    let source = "
        class Main { static int root(Shape shape) { return shape.area(); } }
        interface Shape { int area(); }
        class Square implements Shape { public int area() { return 1; } }
        class Disc implements Shape {
            public int area() { return radius() > 0 ? radius() * turn() : 0; }
            int radius() { return 2; }
            int turn() { return 3; }
        }";
    let mut jvm = PlayedJvm::new(source, ahead());
    jvm.run_before(&["Main.root", "Square.area"]);
    let mut jvm = jvm.attach(&["Main", "Shape", "Square"]);
    jvm.load("Disc");
    jvm.enter("Main.root(LShape;)I");
    jvm.enter("Disc.area()I");
    assert!(jvm.instrumented.contains("Disc.turn()I"), "no guard stands before it");
}

#[test]
fn what_is_called_in_the_class_itself_comes_with_it() {
    let source = "
        class Main { static int root(Shape shape) { return shape.area(); } }
        interface Shape { int area(); }
        class Square implements Shape { public int area() { return side() * Later.value(); } int side() { return 2; } }
        class Disc implements Shape { public int area() { return 2 + radius(); } int radius() { return 2; } }
        class Later { static int value() { return one(); } static int one() { return 1; } }";
    let mut jvm = PlayedJvm::new(source, ahead());
    // Too cheap a batch to look ahead into other classes.
    jvm.graph.set_batch_cost(Duration::ZERO);
    let mut jvm = jvm.attach(&["Main", "Shape", "Square"]);
    jvm.enter("Main.root(LShape;)I");
    assert!(jvm.instrumented.contains("Square.side()I"), "its class was hotswapped anyway");
    let hotswaps = jvm.hotswaps;
    jvm.load("Disc");
    jvm.load("Later");
    assert!(jvm.instrumented.contains("Disc.radius()I") && jvm.instrumented.contains("Later.one()I"));
    jvm.enter("Square.area()I");
    assert_eq!(jvm.hotswaps, hotswaps, "a class that was still to come was instrumented when it came");
}

#[test]
fn a_constructor_tells_that_methods_of_its_class_may_run() {
    let source = "
        class Main {
            static int root(int x) { return x > 0 ? area(new Square()) : area(null); }
            static int area(Shape shape) { return shape.area(); }
        }
        interface Shape { int area(); }
        class Square implements Shape { public int area() { return Parts.side(); } }
        class Disc implements Shape { public int area() { return Parts.radius(); } }
        class Ring implements Shape { public int area() { return Parts.width(); } }
        class Parts { static int side() { return 2; } static int radius() { return 2; } static int width() { return 2; } }";
    let mut jvm = PlayedJvm::new(source, ahead());
    jvm.graph.set_batch_cost(Duration::from_millis(2));
    let mut jvm = jvm.attach(&["Main", "Shape", "Square", "Disc", "Ring", "Parts"]);
    jvm.enter("Main.root(I)I");
    jvm.enter("Square.<init>()V");
    jvm.enter("Main.area(LShape;)I");
    // This one takes a batch, into which goes what may be next: of a square there is one.
    jvm.enter("Disc.area()I");
    let ahead = ["Parts.side()I", "Parts.radius()I", "Parts.width()I"].map(|part| jvm.instrumented.contains(part));
    assert_eq!(ahead, [true, true, false]);
}

#[test]
fn what_the_graph_loads_is_instrumented_as_if_it_were_used() {
    let source = "
        class Main { static void root() { } }
        interface Shape { int area(); }
        class Square implements Shape { public int area() { return 4; } }
        class Disc implements Shape { public int area() { return 3; } int radius() { return 1; } }";
    let mut jvm = PlayedJvm::new(source, ahead()).attach(&["Main", "Shape"]);
    start_up(&mut jvm);
    jvm.graph.likely.loaded_by_graph -= 1;
    jvm.define("Square", false);
    assert_eq!(jvm.instrumented(), ["Main.root()V"], "somebody else loads it");
    jvm.define("Disc", true);
    assert_eq!(jvm.instrumented(), ["Disc.<init>()V", "Disc.area()I", "Main.root()V"]);
}

/// As when a program has just started.
fn start_up(jvm: &mut PlayedJvm) {
    jvm.graph.likely.knows_calls = true;
    jvm.graph.likely.link_batches = policy::MANY_LINKED;
    jvm.graph.likely.loaded_by_graph = policy::MANY_LOADED;
}

#[test]
fn while_a_program_starts_classes_that_are_loaded_already_are_linked_for_a_batch_that_is_due() {
    let source = "
        class Main {
            static void root(int x) { if (x > 0) first(x); }
            static void first(int x) { new Used().act(); Other.second(); if (x < 0) throw new Error(Never.text()); }
        }
        class Other { static void second() { } }
        class Used { void act() { new Deeper(); } void idle() { } }
        class Deeper { }
        class Never { static String text() { return null; } }";
    let instrumented = |is_starting: bool| {
        let mut jvm = PlayedJvm::new(source, ahead());
        jvm.graph.set_batch_cost(Duration::ZERO);
        let mut jvm = jvm.attach(&["Main", "Other"]);
        let unlinked = ["Used", "Deeper", "Never"].map(|name| jvm.unlinked(name));
        jvm.graph.add_unlinked(unlinked.into(), true);
        if is_starting {
            start_up(&mut jvm);
        }
        jvm.enter("Main.root(I)V");
        jvm.graph.set_batch_cost(Duration::from_millis(50));
        jvm.enter("Main.first(I)V");
        assert!(!jvm.classes["Never"].linked);
        assert_eq!(jvm.graph.linked_late(), 0);
        // As if another thread had come into the graph while the batch was made.
        jvm.graph.instrumented_linked(2);
        assert_eq!(jvm.graph.linked_late(), if is_starting { 3 } else { 0 });
        let methods: Vec<String> = jvm.instrumented.iter().cloned().collect();
        (jvm.classes["Used"].linked, methods)
    };
    let (is_linked, methods) = instrumented(false);
    assert!(!is_linked && methods.len() == 3, "{methods:?}");
    let (is_linked, methods) = instrumented(true);
    assert!(is_linked, "{methods:?}");
    let found = ["Deeper.<init>()V", "Main.first(I)V", "Main.root(I)V", "Other.second()V"];
    assert_eq!(methods, [&found[..], &["Used.<init>()V", "Used.act()V"]].concat());
}

#[test]
fn a_class_that_is_hotswapped_again_gets_all_that_it_overrides() {
    let source = "
        class Main {
            static void root(Visitor visitor) { visitor.visitOne(); if (visitor != null) first(visitor); }
            static void first(Visitor visitor) { visitor.visitTwo(); }
        }
        class Visitor { void visitOne() { } void visitTwo() { } void visitThree() { } void visitFour() { } }
        class Printer extends Visitor {
            void visitOne() { } void visitTwo() { } void visitThree() { } void visitFour() { } void indent() { }
        }";
    let others = |is_starting: bool| {
        let mut jvm = PlayedJvm::new(source, options("Main::root"));
        jvm.graph.known.options.look_ahead = true;
        // So that nothing is selected for the sake of anything but this.
        jvm.graph.set_batch_cost(Duration::ZERO);
        let mut jvm = jvm.attach(&["Main", "Visitor", "Printer"]);
        if is_starting {
            start_up(&mut jvm);
        }
        jvm.enter("Main.root(LVisitor;)V");
        assert!(jvm.instrumented.contains("Printer.visitOne()V") && !jvm.instrumented.contains("Printer.visitTwo()V"));
        jvm.enter("Main.first(LVisitor;)V");
        assert!(jvm.instrumented.contains("Printer.visitTwo()V"));
        ["visitThree", "visitFour", "indent", "<init>"]
            .map(|name| jvm.instrumented.contains(&format!("Printer.{name}()V")))
    };
    assert_eq!(others(false), [false; 4]);
    assert_eq!(others(true), [true, true, false, false]);
}

#[test]
fn while_a_program_starts_more_is_guessed_at() {
    let source = "
        class Main { static void root(int x) { if (x > 0) Parts.first(x); } }
        class Parts { static void first(int x) { if (x > 1) Other.second(x); } }
        class Other { static void second(int x) { if (x > 2) Last.third(); } }
        class Last { static void third() { } }";
    let is_guessed = |is_starting: bool, has_run: bool| {
        let mut jvm = PlayedJvm::new(source, ahead());
        jvm.graph.set_batch_cost(Duration::ZERO);
        if has_run {
            jvm.run_before(&["Main.root"]);
        }
        let mut jvm = jvm.attach(&["Main", "Parts", "Other", "Last"]);
        assert_eq!(jvm.instrumented().len(), if has_run { 1 } else { 2 });
        if is_starting {
            start_up(&mut jvm);
        }
        jvm.graph.set_batch_cost(Duration::from_millis(1));
        jvm.enter("Main.root(I)V");
        if !has_run {
            jvm.enter("Parts.first(I)V");
        }
        jvm.instrumented.contains("Last.third()V")
    };
    assert!(!is_guessed(false, false));
    assert!(is_guessed(true, false));
    assert!(!is_guessed(true, true), "what never has run is not expected where the rest has");
}

#[test]
fn when_much_runs_that_never_did_nothing_is_expected_of_what_never_did() {
    use std::fmt::Write as _;
    const METHODS: usize = 40;
    let (mut calls, mut methods) = (String::new(), String::new());
    for number in 0..METHODS {
        let _ = write!(calls, "a{number}(); ");
        let _ = write!(methods, "static void a{number}() {{ }} ");
    }
    let source = format!("class Main {{ static void root() {{ {calls} }} {methods} }}");
    let mut jvm = PlayedJvm::new(&source, ahead());
    jvm.run_before(&["Main.root"]);
    let mut jvm = jvm.attach(&["Main"]);
    jvm.enter("Main.root()V");
    let last = format!("Main.a{}()V", METHODS - 1);
    let has_run = |jvm: &PlayedJvm| {
        let record = jvm.graph.methods.record(jvm.ids[&last]).expect("it is selected");
        jvm.graph.likely.has_run(&jvm.graph.known, record.key, record.signature)
    };
    assert_eq!(has_run(&jvm), Some(false));
    (0..METHODS - 1).for_each(|number| jvm.enter(&format!("Main.a{number}()V")));
    assert_eq!(has_run(&jvm), None);
}

#[test]
fn that_a_task_has_run_says_nothing_of_the_call_graph() {
    let source = "
        class Main {
            static Thread root(Task task) { return new Thread(task); }
            static void sort(Object[] words, Order order) { java.util.Arrays.sort(words, order); }
        }
        class Task implements Runnable { public void run() { Parts.done(); } }
        class Order implements java.util.Comparator<Object> { public int compare(Object a, Object b) { return Parts.of(); } }
        class Parts { static void done() { } static int of() { return 0; } }";
    let found = |root: &str, callback: &str, part: &str| {
        let mut jvm = PlayedJvm::new(source, Options { look_ahead: true, ..options(root) });
        jvm.run_before(&["Main.root", "Main.sort", "Task.run", "Order.compare", "Parts.done", "Parts.of"]);
        jvm.graph.set_batch_cost(Duration::from_millis(5));
        let jvm = jvm.attach(&["Main", "Task", "Order", "Parts"]);
        assert!(jvm.instrumented.contains(callback), "{:?}", jvm.instrumented);
        jvm.instrumented.contains(part)
    };
    assert!(found("Main::sort", "Order.compare(Ljava/lang/Object;Ljava/lang/Object;)I", "Parts.of()I"));
    assert!(!found("Main::root", "Task.run()V", "Parts.done()V"), "an executor's thread runs it");
}
