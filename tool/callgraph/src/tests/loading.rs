//! Classes that are loaded while the graph is known already.

use super::*;

#[test]
fn a_class_that_is_loaded_later_is_instrumented_while_it_loads() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Main::root")).attach(&["Main", "Shape", "Square"]);
    jvm.enter("Main.root(LShape;)I");
    let hotswaps = jvm.hotswaps;
    jvm.load("Disc");
    jvm.load("Hole");
    assert!(jvm.instrumented.contains("Disc.area()I") && jvm.instrumented.contains("Hole.area()I"));
    assert_eq!(jvm.hotswaps, hotswaps, "no redefinition is needed");
}

#[test]
fn what_came_instrumented_is_not_missed_and_what_did_not_is_hotswapped() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Main::root")).attach(&["Main", "Shape", "Square"]);
    jvm.unanswered = vec!["Hole"];
    jvm.enter("Main.root(LShape;)I");
    let hotswaps = jvm.hotswaps;
    jvm.load("Disc");
    jvm.graph.went_on(&[jvm.classes["Disc"].id]);
    assert_eq!((jvm.graph.late(), jvm.hotswaps), (0, hotswaps), "its probes are in place");
    jvm.define("Hole", false);
    assert!(!jvm.instrumented.contains("Hole.area()I"));
    jvm.classes.get_mut("Hole").expect("it is there").linked = true;
    let step = jvm.graph.class_prepared(jvm.info("Hole"));
    jvm.graph.went_on(&[jvm.classes["Hole"].id]);
    assert_eq!(jvm.graph.missed().count(), 1, "until the hotswap its calls are not seen");
    jvm.settle(step);
    assert!(jvm.instrumented.contains("Hole.area()I") && jvm.hotswaps == hotswaps + 1);
    assert!(jvm.graph.missed().all(|(_, missed)| missed.until.is_some()));
}

#[test]
fn an_implementation_may_be_inherited_from_beside_the_interface() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Main::root")).attach(&["Main", "Shape", "Base"]);
    jvm.enter("Main.root(LShape;)I");
    assert!(!jvm.instrumented.contains("Base.area()I"), "it implements nothing yet");
    jvm.load("Mixed");
    assert!(jvm.instrumented.contains("Base.area()I"));
}

#[test]
fn an_abstract_root_stands_for_its_implementations() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Shape::area")).attach(&["Shape", "Square"]);
    assert_eq!(jvm.instrumented(), ["Square.area()I"]);
    assert_eq!(jvm.graph.root_matches(), [RootMatch { classes: 1, methods: 1 }]);
    jvm.load("Hole");
    jvm.load("Mixed");
    assert_eq!(jvm.instrumented(), ["Base.area()I", "Disc.area()I", "Hole.area()I", "Square.area()I"]);
    assert_eq!(jvm.graph.roots_of(PatternIndex(0)).count(), 4);
    assert_eq!(jvm.graph.take_new_roots().len(), 4);
}

#[test]
fn a_root_may_be_loaded_later() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Square::area")).attach(&["Shape"]);
    assert_eq!(jvm.graph.root_matches(), [RootMatch::default()]);
    jvm.load("Square");
    assert_eq!(jvm.instrumented(), ["Square.area()I"]);
    assert_eq!(jvm.graph.take_new_roots().len(), 1);
}

#[test]
fn what_a_class_inherits_is_found_when_it_is_linked_after_its_caller_was_looked_at() {
    let source = "
        class Main { static int root() { return Lower.inherited() + new Lower().both(); } }
        class Upper { static int inherited() { return 1; } int sup() { return 2; } }
        class Lower extends Upper { int both() { return super.sup(); } }
    ";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main", "Upper"]);
    // The verifier of another class may have loaded it long before it is linked.
    jvm.define("Lower", false);
    jvm.enter("Main.root()I");
    jvm.load("Lower");
    assert!(jvm.instrumented.contains("Upper.inherited()I"), "{:?}", jvm.instrumented);
}

#[test]
fn what_a_class_inherits_from_the_jdk_leaves_though_the_class_comes_later() {
    let source = "
        class Main { static void root() { new Later().start(); } static void within() { new Own().start(); } }
        class Later extends Thread { public void run() { } }
        class Own { void start() { } }
        class Key { public int hashCode() { return 1; } }
    ";
    let attached = || {
        let mut jvm = PlayedJvm::new(source, options("Main::*"));
        jvm.add_jdk_class("java/lang/Thread", Some("java/lang/Object"), false, &["<init>()V", "start()V", "run()V"]);
        jvm.attach(&["Main", "Key"])
    };
    let mut jvm = attached();
    jvm.enter("Main.within()V");
    jvm.load("Own");
    assert!(!jvm.instrumented.contains("Key.hashCode()I"), "nothing leaves");
    let mut jvm = attached();
    jvm.enter("Main.root()V");
    assert!(!jvm.instrumented.contains("Key.hashCode()I"), "not yet, as far as it is known");
    jvm.load("Later");
    assert!(jvm.instrumented.contains("Later.run()V") && jvm.instrumented.contains("Key.hashCode()I"));
}

/// As Kotlin's library is called: `CollectionsKt.first(...)`, which only extends what declares it.
const FACADE: &str = "
    class Main { static int root() { return Facade.first() + Facade.own(); } }
    class Part { static int first() { return Other.second(); } }
    class Middle extends Part { }
    class Facade extends Middle { static int own() { return 1; } }
    class Other { static int second() { return 2; } }
";

#[test]
fn a_static_method_may_be_inherited_by_a_class_that_is_never_linked() {
    let mut jvm = PlayedJvm::new(FACADE, options("Main::root"));
    jvm.graph.add_unlinked(vec![jvm.unlinked("Facade"), jvm.unlinked("Middle")], false);
    let mut jvm = jvm.attach(&["Main", "Part", "Other"]);
    jvm.enter("Main.root()I");
    jvm.enter("Part.first()I");
    assert_eq!(jvm.instrumented(), ["Main.root()I", "Other.second()I", "Part.first()I"]);
    jvm.load("Facade");
    assert!(jvm.instrumented.contains("Facade.own()I"), "{:?}", jvm.instrumented);
}

#[test]
fn it_may_be_loaded_later_and_never_linked_then() {
    let mut jvm = PlayedJvm::new(FACADE, options("Main::root")).attach(&["Main", "Part", "Middle", "Other"]);
    jvm.enter("Main.root()I");
    assert!(!jvm.instrumented.contains("Part.first()I"));
    jvm.define("Facade", true);
    // What comes next takes it along.
    jvm.enter("Facade.own()I");
    assert!(jvm.instrumented.contains("Part.first()I"), "{:?}", jvm.instrumented);
}

#[test]
fn of_a_class_that_came_without_probes_it_is_known_who_calls_it_until_it_is_entered() {
    let source = "class Main { static void root() { Later.first(); } }
                  class Later { static void first() { } }";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main"]);
    jvm.enter("Main.root()V");
    jvm.unanswered = vec!["Later"];
    jvm.define("Later", false);
    jvm.classes.get_mut("Later").expect("it is there").linked = true;
    let step = jvm.graph.class_prepared(jvm.info("Later"));
    jvm.graph.went_on(&[jvm.classes["Later"].id]);
    let calls = |jvm: &PlayedJvm, name: &str| {
        let methods = jvm.graph.methods();
        let id = methods.iter().find(|method| method.java_name() == name).expect(name).id;
        let unseen = jvm.graph.unseen().into_iter().find(|unseen| unseen.method == id)?;
        Some((unseen.is_instrumented, unseen.callers.iter().any(|(by, _)| *by == jvm.ids["Main.root()V"])))
    };
    assert_eq!(calls(&jvm, "Later.first()V"), Some((false, true)));
    jvm.settle(step);
    assert_eq!(calls(&jvm, "Later.first()V"), Some((true, true)), "perhaps it will not be called again");
    jvm.enter("Later.first()V");
    assert_eq!(calls(&jvm, "Later.first()V"), None);
}
