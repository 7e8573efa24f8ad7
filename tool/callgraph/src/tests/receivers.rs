//! Virtual calls of what has run on objects of some classes, and never on others.

use super::*;
use crate::guards::Told;

const SHAPES: &str = "
    class Main {
        static int root(Shape shape) { return area(shape) + Elsewhere.twice(shape); }
        static int area(Shape shape) { return shape.area() + shape.scaled(2); }
    }
    class Elsewhere { static int twice(Shape shape) { return shape.area() + shape.area(); } }
    interface Shape { int area(); default int scaled(int by) { return by * area(); } }
    class Square implements Shape { public int area() { return 4; } }
    class Disc implements Shape { public int area() { return Parts.radius(); } }
    class Hole extends Disc { }
    class Odd implements Shape { public int area() { return 1; } public int scaled(int by) { return by; } }
    class Parts { static int radius() { return 3; } }
";
const CLASSES: [&str; 8] = ["Main", "Elsewhere", "Shape", "Square", "Disc", "Hole", "Odd", "Parts"];
const ROOT: &str = "Main.root(LShape;)I";
const AREA: &str = "Main.area(LShape;)I";
const DISC: &str = "Disc.area()I";
const SQUARE: &str = "Square.area()I";
const ODD: &str = "Odd.area()I";

impl PlayedJvm {
    /// The calls in a class's code that are told what they are made on.
    fn receiving(&mut self, class: &str) -> Vec<u32> {
        let guards = self.guarded(class, Some(self.classes[class].id));
        let told = guards.iter().filter_map(|guard| match guard.told {
            Told::Receiver(call) => Some(call),
            Told::Passed(_) => None,
        });
        told.collect()
    }

    /// Such a call is about to be made on an object of a class.
    fn receive(&mut self, call: u32, class: &str) {
        let step = self.graph.received(call, self.classes[class].id);
        self.settle(step);
    }
}

/// In a program that has used squares only.
fn used(options: Options) -> PlayedJvm {
    let mut jvm = PlayedJvm::new(SHAPES, options);
    jvm.run_before(&["Main.root", "Main.area", "Elsewhere.twice", "Square.area", "Shape.scaled"]);
    jvm
}

#[test]
fn what_never_ran_is_instrumented_when_an_object_has_it_called() {
    let mut jvm = used(ahead()).attach(&CLASSES);
    jvm.enter(ROOT);
    jvm.enter(AREA);
    assert!(jvm.instrumented.contains(SQUARE) && jvm.instrumented.contains("Shape.scaled(I)I"));
    assert!(!jvm.instrumented.contains(DISC) && !jvm.instrumented.contains(ODD));
    let (here, there) = (jvm.receiving("Main"), jvm.receiving("Elsewhere"));
    let [area, scaled] = here[..] else { panic!("{here:?}") };
    assert_eq!(there, [area, area], "all calls of a method share a number");
    assert_ne!(area, scaled);
    let hotswaps = jvm.hotswaps;
    jvm.receive(area, "Square");
    assert_eq!(jvm.hotswaps, hotswaps, "that is instrumented already");
    jvm.receive(area, "Hole");
    assert!(jvm.instrumented.contains(DISC), "a hole inherits it");
    assert!(jvm.instrumented.contains("Parts.radius()I"), "what will be entered is looked into");
    assert!(!jvm.instrumented.contains(ODD));
    jvm.receive(area, "Disc");
    assert_eq!(jvm.hotswaps, hotswaps + 1);
    jvm.receive(scaled, "Odd");
    assert!(jvm.instrumented.contains("Odd.scaled(I)I") && !jvm.instrumented.contains(ODD), "each for itself");
    jvm.receive(area, "Odd");
    assert!(jvm.instrumented.contains(ODD));
}

#[test]
fn nothing_is_spared_where_a_call_cannot_be_told() {
    let mut jvm = used(ahead()).attach(&CLASSES);
    let guards = jvm.guarded("Main", Some(jvm.classes["Main"].id));
    jvm.graph.refuse_guards(&guards);
    jvm.enter(ROOT);
    jvm.enter(AREA);
    for method in [SQUARE, DISC, ODD, "Shape.scaled(I)I", "Odd.scaled(I)I"] {
        assert!(jvm.instrumented.contains(method), "{method}");
    }
    assert!(jvm.receiving("Main").is_empty());
}

#[test]
fn nothing_is_spared_in_code_without_probes() {
    let exclude = vec!["Elsewhere".parse::<ClassPattern>().expect("a pattern")];
    let mut jvm = used(Options { exclude, ..ahead() }).attach(&CLASSES);
    jvm.enter(ROOT);
    for method in [SQUARE, DISC, ODD] {
        assert!(jvm.instrumented.contains(method), "{method}");
    }
    assert!(!jvm.instrumented.contains("Odd.scaled(I)I"), "only shown code calls that");
}

#[test]
fn nothing_is_spared_in_code_that_is_being_executed() {
    let mut jvm = used(ahead()).attach(&CLASSES);
    let class = jvm.classes["Main"].id;
    let frame = |name: &str| Frame {
        method: MethodRef { class, name: name.into(), descriptor: "(LShape;)I".into() },
        replaced: true,
    };
    let stack = ThreadStack { thread: ThreadId(1), name: "main".into(), frames: vec![frame("root"), frame("area")] };
    let step = jvm.graph.open_calls(&[stack]);
    jvm.settle(step);
    for method in [SQUARE, DISC, ODD, "Odd.scaled(I)I"] {
        assert!(jvm.instrumented.contains(method), "{method}");
    }
}

#[test]
fn nothing_is_spared_without_evidence() {
    for (before, look_ahead, forbidden) in [
        (&["Square.area"][..], true, false),
        (&["Main.root", "Main.area", "Square.area"], false, false),
        (&["Main.root", "Main.area", "Square.area"], true, true),
    ] {
        let mut jvm = PlayedJvm::new(SHAPES, Options { look_ahead, ..ahead() });
        jvm.run_before(before);
        if forbidden {
            jvm.graph.forbid_guards();
        }
        let mut jvm = jvm.attach(&CLASSES);
        jvm.enter(ROOT);
        jvm.enter(AREA);
        assert!(jvm.instrumented.contains(DISC) && jvm.instrumented.contains(ODD), "{before:?}");
        assert!(jvm.receiving("Main").is_empty());
    }
}

#[test]
fn a_class_that_comes_later_is_not_spared() {
    let mut jvm = used(ahead()).attach(&["Main", "Elsewhere", "Shape", "Square", "Odd"]);
    jvm.enter(ROOT);
    jvm.enter(AREA);
    assert_eq!(jvm.receiving("Main").len(), 2);
    jvm.load("Hole");
    assert!(jvm.instrumented.contains(DISC) && !jvm.instrumented.contains(ODD));
}

#[test]
fn private_methods_are_not_for_the_object_to_say() {
    let source = "
        class Main { static void root(Base it) { it.work(); } }
        abstract class Base {
            void work() { helper(); }
            private void helper() { }
        }
        class Derived extends Base { private void helper() { } }";
    let mut jvm = PlayedJvm::new(source, ahead());
    jvm.run_before(&["Main.root", "Base.work"]);
    let mut jvm = jvm.attach(&["Main", "Base", "Derived"]);
    jvm.enter("Main.root(LBase;)V");
    jvm.enter("Base.work()V");
    for call in jvm.receiving("Base") {
        jvm.receive(call, "Derived");
    }
    for guard in jvm.guards("Base") {
        jvm.pass(guard.1);
    }
    assert!(jvm.instrumented.contains("Base.helper()V"));
    assert!(!jvm.instrumented.contains("Derived.helper()V"), "{:?}", jvm.instrumented);
}

#[test]
fn a_method_that_would_become_too_long_to_be_compiled_is_not_told() {
    // Each of these has a probe, though they share a number.
    let calls = "sum += it.area(); ".repeat(450);
    let source = format!(
        "class Main {{ static int root(Shape it) {{ int sum = 0; {calls} return sum; }} }}
        interface Shape {{ int area(); }}
        class Square implements Shape {{ public int area() {{ return 4; }} }}
        class Disc implements Shape {{ public int area() {{ return 3; }} }}"
    );
    let mut jvm = PlayedJvm::new(&source, ahead());
    jvm.run_before(&["Main.root", "Square.area"]);
    let mut jvm = jvm.attach(&["Main", "Shape", "Square", "Disc"]);
    jvm.enter(ROOT);
    assert!(jvm.receiving("Main").is_empty());
    assert!(jvm.instrumented.contains(DISC));
}

#[test]
fn what_only_its_package_overrides_runs_on_objects_of_others() {
    let source = "
        class Main { static void root(Base it) { it.near(); } }
        class Base { void near() { } }
        class Friend extends Base { void near() { } }
        class Stranger extends Base { void near() { } }
        class Used extends Base { void near() { } }";
    let mut jvm = PlayedJvm::new(source, ahead());
    // As if it were of a package of the same name, in another loader.
    jvm.classes.get_mut("Stranger").expect("of the source").loader = LoaderId(3);
    jvm.run_before(&["Main.root", "Used.near"]);
    let mut jvm = jvm.attach(&["Main", "Base", "Friend", "Stranger", "Used"]);
    jvm.enter("Main.root(LBase;)V");
    let near = jvm.receiving("Main")[0];
    assert!(!jvm.instrumented.contains("Base.near()V") && jvm.instrumented.contains("Used.near()V"));
    jvm.receive(near, "Friend");
    assert!(jvm.instrumented.contains("Friend.near()V") && !jvm.instrumented.contains("Base.near()V"));
    jvm.receive(near, "Stranger");
    assert!(jvm.instrumented.contains("Base.near()V"), "it is that which runs");
}
