//! The state machine against a JVM that is played.

use std::time::Duration;

use headwater_protocol::message::{Frame, MethodInfo, MethodRef, ThreadStack};
use headwater_protocol::{LoaderId, ThreadId};
use headwater_rewriter::ClassFile;

use super::*;
use headwater_terms::pattern::ClassPattern;

mod ahead;
mod callbacks;
mod dropping;
mod guards;
mod loading;
mod mentions;
mod namesakes;
mod natives;
mod opaque;
mod origins;
mod played_jvm;
mod receivers;
mod reflected;
mod sites;
mod waits;
mod watched;

use played_jvm::{APPLICATION, PlayedJvm};

fn parsed(bytes: &[u8]) -> ClassFile<'_> {
    ClassFile::parse(bytes).expect("a class file")
}

fn options(root: &str) -> Options {
    Options { roots: vec![root.parse().expect("a pattern")], ..Options::default() }
}

const SHAPES: &str = "
    class Main {
        static int root(Shape shape) { return helper() + shape.area(); }
        static int helper() { return new Main().own(); }
        private int own() { return 1; }
        static void unrelated() {}
    }
    interface Shape { int area(); default int twice() { return 2 * area(); } }
    class Square implements Shape { public int area() { return 4; } public int other() { return 0; } }
    class Disc implements Shape { public int area() { return 3; } }
    class Hole extends Disc { public int area() { return super.area(); } }
    class Base { public int area() { return 5; } }
    class Mixed extends Base implements Shape { }
";

#[test]
fn callees_are_selected_when_their_caller_is_entered() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Main::root")).attach(&["Main", "Shape", "Square", "Disc"]);
    assert_eq!(jvm.instrumented(), ["Main.root(LShape;)I"]);
    jvm.enter("Main.root(LShape;)I");
    assert_eq!(jvm.instrumented(), ["Disc.area()I", "Main.helper()I", "Main.root(LShape;)I", "Square.area()I"]);
    assert_eq!(jvm.hotswaps, 2, "one for the root, one for all its callees");
    jvm.enter("Main.helper()I");
    assert_eq!(
        jvm.instrumented(),
        ["Disc.area()I", "Main.<init>()V", "Main.helper()I", "Main.own()I", "Main.root(LShape;)I", "Square.area()I"]
    );
}

#[test]
fn a_constructor_and_a_method_of_the_same_class_are_both_found() {
    // The class's methods are asked for on behalf of the constructor; the interface call must not be forgotten meanwhile.
    let source = "
        class Main { static int root() { Shape shape = new Square(); return shape.area(); } }
        interface Shape { int area(); }
        class Square implements Shape { public int area() { return 4; } }
    ";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main", "Shape", "Square"]);
    jvm.enter("Main.root()I");
    assert_eq!(jvm.instrumented(), ["Main.root()I", "Square.<init>()V", "Square.area()I"]);
}

#[test]
fn what_only_its_package_overrides_runs_on_objects_of_other_packages() {
    let source = "
        class Main { static void root(Base it) { it.near(); } }
        abstract class Base { void near() { } }
        class Stranger extends Base { void near() { } }";
    let mut jvm = PlayedJvm::new(source, options("Main::root"));
    // As if it were of a package of the same name, in another loader.
    jvm.classes.get_mut("Stranger").expect("of the source").loader = LoaderId(3);
    let mut jvm = jvm.attach(&["Main", "Base", "Stranger"]);
    jvm.enter("Main.root(LBase;)V");
    assert!(jvm.instrumented.contains("Base.near()V"));
}

const CHAIN: &str = "
    class Main {
        static int root(Shape shape) { return first() + shape.area(); }
        static int first() { return second(); }
        static int second() { if (third() > 9) throw new IllegalStateException(message()); return 2; }
        static int third() { return 3; }
        static String message() { return text(); }
        static String text() { return \"\"; }
    }
    interface Shape { int area(); }
    class Square implements Shape { public int area() { return Parts.side(); } }
    class Disc implements Shape { public int area() { return Parts.radius(); } }
    class Parts { static int side() { return 2; } static int radius() { return 2; } }
";

fn ahead() -> Options {
    Options { look_ahead: true, ..options("Main::root") }
}

#[test]
fn eagerly_everything_reachable_is_instrumented_at_once() {
    let eager = Options { scheme: Scheme::Eager, ..options("Main::root") };
    let mut jvm = PlayedJvm::new(CHAIN, eager).attach(&["Main", "Shape", "Square", "Parts"]);
    assert!(jvm.instrumented.contains("Main.text()Ljava/lang/String;") && jvm.instrumented.contains("Parts.side()I"));
    assert_eq!((jvm.instrumented.len(), jvm.hotswaps), (8, 1));
    jvm.load("Disc");
    assert!(jvm.instrumented.contains("Disc.area()I") && jvm.instrumented.contains("Parts.radius()I"));
}

#[test]
fn in_total_every_method_is_instrumented_that_passes_the_filters() {
    let exclude = vec!["Square".parse().expect("a pattern")];
    let total = Options { scheme: Scheme::Total, exclude, ..options("Main::root") };
    let mut jvm = PlayedJvm::new(CHAIN, total).attach(&["Main", "Shape", "Square"]);
    let all = jvm.instrumented();
    assert!(all.len() == 7 && all.iter().all(|method| method.starts_with("Main.")), "{all:?}");
    jvm.load("Disc");
    assert_eq!(jvm.instrumented.len(), 9);
}

#[test]
fn what_a_hidden_method_calls_is_found() {
    let source = "
        class Main { static void root() { Hidden.pass(new Task()); } }
        class Hidden { static void pass(Runnable task) { deeper(task); } static void deeper(Runnable task) { task.run(); } }
        class Task implements Runnable { public void run() { Main.class.hashCode(); } }
        class Other implements Runnable { public void run() { } }
    ";
    let exclude = vec!["Hidden".parse().expect("a pattern")];
    let mut jvm = PlayedJvm::new(source, Options { exclude, ..options("Main::root") })
        .attach(&["Main", "Hidden", "Task", "Other"]);
    jvm.enter("Main.root()V");
    assert_eq!(jvm.instrumented(), ["Main.root()V", "Other.run()V", "Task.<init>()V", "Task.run()V"]);
    assert_eq!(jvm.hotswaps, 2);
}

#[test]
fn lambdas_and_method_references_are_calls() {
    let source = "
        class Main {
            static void root() {
                Runnable a = () -> helper();
                Runnable b = Other::target;
                java.util.function.Supplier<Other> c = Other::new;
            }
            static void helper() {}
        }
        class Other { static void target() {} }
    ";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main", "Other"]);
    jvm.enter("Main.root()V");
    assert_eq!(jvm.instrumented(), ["Main.lambda$root$0()V", "Main.root()V", "Other.<init>()V", "Other.target()V"]);
    jvm.enter("Main.lambda$root$0()V");
    assert!(jvm.instrumented.contains("Main.helper()V"));
}

#[test]
fn a_static_initialiser_is_a_callee_while_it_has_not_run() {
    let source = "
        class Main { static int root() { return Ready.value + Fresh.value; } }
        class Ready { static int value = compute(); static int compute() { return 1; } }
        class Fresh extends Above { static int value = compute(); static int compute() { return 1; } }
        class Above { static int other = Fresh.compute(); }
    ";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main", "Ready"]);
    jvm.enter("Main.root()I");
    jvm.load("Fresh");
    assert_eq!(jvm.instrumented(), ["Above.<clinit>()V", "Fresh.<clinit>()V", "Main.root()I"]);
}

#[test]
fn filters_hold_for_callees_and_not_for_roots() {
    let pattern = |text: &str| vec![text.parse::<ClassPattern>().expect("a pattern")];
    let loaded = ["Main", "Shape", "Square", "Disc"];
    let mut jvm = PlayedJvm::new(SHAPES, Options { exclude: pattern("Disc"), ..options("Main::root") }).attach(&loaded);
    jvm.enter("Main.root(LShape;)I");
    assert_eq!(jvm.instrumented(), ["Main.helper()I", "Main.root(LShape;)I", "Square.area()I"]);
    let mut jvm = PlayedJvm::new(SHAPES, Options { include: pattern("Disc"), ..options("Main::root") }).attach(&loaded);
    jvm.enter("Main.root(LShape;)I");
    assert_eq!(jvm.instrumented(), ["Disc.area()I", "Main.root(LShape;)I"]);
}

#[test]
fn a_refused_class_is_left_alone_and_named() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Main::root")).attach(&["Main", "Shape", "Square"]);
    jvm.enter("Main.root(LShape;)I");
    let square = jvm.classes["Square"].id;
    let area = jvm.ids["Square.area()I"];
    jvm.graph.class_refused(square, "too late".into());
    assert_eq!(jvm.graph.skipped(), [], "it runs instrumented already");
    let bytes = jvm.classes["Square"].bytes.clone();
    jvm.graph.methods.record_mut(area).expect("it is selected").in_place = false;
    jvm.graph.selected(Occasion::Retransforming(square), APPLICATION, "Square", &parsed(&bytes));
    jvm.graph.class_refused(square, "no".into());
    assert_eq!(jvm.graph.skipped(), [("Square.area()I".to_owned(), "no".to_owned())]);
    assert_eq!(jvm.graph.instrumented(), 2);
}

#[test]
fn only_what_was_instrumented_gets_its_own_code_back_when_the_roots_are_timed() {
    let mut jvm = PlayedJvm::new(SHAPES, options("Main::root")).attach(&["Main", "Shape", "Square", "Disc"]);
    jvm.enter("Main.root(LShape;)I");
    // As if the limits had not let it be instrumented yet.
    let area = jvm.ids["Disc.area()I"];
    jvm.graph.methods.record_mut(area).expect("it is selected").submitted = false;
    let [main, square] = ["Main", "Square"].map(|name| jvm.classes[name].id);
    let others = jvm.graph.keep_only_roots();
    assert!(others.len() == 2 && others.contains(&main) && others.contains(&square), "{others:?}");
    assert!(jvm.graph.has_root(main) && !jvm.graph.has_root(square));
}

#[test]
fn hidden_classes_are_named_but_for_those_that_the_jvm_makes_for_code() {
    let source = "
        class Main { static void root(Runnable it) { it.run(); } static void called() { } }
        class Main$$Hidden implements Runnable { public void run() { Main.called(); } }
        class Main$$TypeSwitch implements Runnable { public void run() { } }";
    let mut jvm = PlayedJvm::new(source, options("Main::root")).attach(&["Main", "Main$$Hidden", "Main$$TypeSwitch"]);
    jvm.enter("Main.root(Ljava/lang/Runnable;)V");
    let reason = "the JVM does not let its class be changed".to_owned();
    assert_eq!(jvm.graph.skipped(), [("Main$$Hidden.run()V".to_owned(), reason)]);
    assert!(jvm.instrumented.contains("Main.called()V"), "it is looked through");
}

#[test]
fn near_misses_name_what_there_is() {
    let jvm = PlayedJvm::new(SHAPES, options("Main::rot")).attach(&["Main", "Shape"]);
    assert_eq!(jvm.graph.near_misses(&"Main::rot".parse().expect("a pattern")), ["Main::root"]);
    assert_eq!(jvm.graph.near_misses(&"Shap::area".parse().expect("a pattern")), ["Shape::*"]);
    assert_eq!(
        jvm.graph.near_misses(&"acme.Shape::area".parse().expect("a pattern")),
        ["Shape::area"],
        "its package only"
    );
    assert_eq!(
        jvm.graph.near_misses(&"Main::root(int)".parse().expect("a pattern")),
        ["Main::root(Shape)"],
        "only the parameters are others"
    );
    let class = jvm.graph.near_misses(&"java.lang.Object".parse().expect("a pattern"));
    assert_eq!(class, ["java.lang.Object::*"], "a class is no root, its methods are");
}
