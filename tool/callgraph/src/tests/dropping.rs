//! Methods that give up their probes.

use super::*;

const SHOP: &str = "
    class Main {
        static int root(Shape shape) { return helper() + shape.area(); }
        static int helper() { return tiny(1) + tiny(2) + Other.own(); }
        static int tiny(int x) { return x == 0 ? below() : x; }
        static int below() { return deeper(); }
        static int deeper() { return 1; }
    }
    class Other { static int own() { return Main.tiny(3); } }
    interface Shape { int area(); }
    class Square implements Shape { public int area() { return 4; } }
    class Disc implements Shape { public int area() { return 3; } }
";
const ROOT: &str = "Main.root(LShape;)I";
const HELPER: &str = "Main.helper()I";
const TINY: &str = "Main.tiny(I)I";
const BELOW: &str = "Main.below()I";
const SQUARE: &str = "Square.area()I";

/// Root and helper have been entered.
fn entered(options: Options) -> PlayedJvm {
    let mut jvm = PlayedJvm::new(SHOP, options).attach(&["Main", "Other", "Shape", "Square"]);
    jvm.enter(ROOT);
    jvm.enter(HELPER);
    jvm
}

impl PlayedJvm {
    /// Drops a method; what the graph says that became of it.
    fn drop(&mut self, method: &str) -> Vec<(MethodId, bool)> {
        let classes = self.graph.drop_methods(&[self.ids[method]]);
        assert!(!classes.is_empty(), "{method}");
        self.settle(Step::Hotswap(classes));
        self.graph.take_drops()
    }

    fn is_instrumented(&self, method: &str) -> bool {
        self.instrumented.contains(method)
    }
}

#[test]
fn a_dropped_method_has_its_own_code_and_the_others_of_its_class_keep_their_probes() {
    let mut jvm = entered(options("Main::root"));
    let id = jvm.ids[TINY];
    assert!(jvm.graph.can_drop(id));
    assert_eq!(jvm.drop(TINY), [(id, true)]);
    assert_eq!(jvm.instrumented(), [HELPER, ROOT, "Other.own()I", SQUARE]);
    assert!(!jvm.graph.can_drop(id), "once is enough");
    assert!(jvm.graph.drop_methods(&[id]).is_empty());
    assert!(jvm.graph.take_drops().is_empty());
}

#[test]
fn a_root_cannot_be_dropped() {
    let mut jvm = entered(options("Main::root"));
    assert!(!jvm.graph.can_drop(jvm.ids[ROOT]));
    assert!(jvm.graph.drop_methods(&[jvm.ids[ROOT], MethodId(999), MethodId::CALIBRATION]).is_empty());
    // One that is another root's callee is a root all the same.
    let roots = vec!["Main::root".parse().expect("a pattern"), "Main::tiny".parse().expect("a pattern")];
    let jvm = entered(Options { roots, ..Options::default() });
    assert!(!jvm.graph.can_drop(jvm.ids[TINY]));
}

#[test]
fn it_is_not_found_again() {
    for scheme in [Scheme::Lazy, Scheme::Eager, Scheme::Total] {
        let mut jvm = entered(Options { scheme, ..options("Main::root") });
        jvm.drop(TINY);
        // By another caller, by classes that come, and when other methods of its class are hotswapped.
        jvm.enter("Other.own()I");
        jvm.load("Disc");
        let step = jvm.graph.first_call(jvm.ids[HELPER]);
        jvm.settle(step);
        jvm.graph.hotswap_again(jvm.classes["Main"].id);
        let step = jvm.graph.hotswapped();
        jvm.settle(step);
        assert!(!jvm.is_instrumented(TINY) && jvm.is_instrumented(HELPER), "{scheme:?}");
        assert!(jvm.is_instrumented("Disc.area()I"), "{scheme:?}: what comes later is found");
    }
}

#[test]
fn what_it_calls_stays_instrumented_and_what_it_never_called_is_found_when_it_is_entered_late() {
    let mut jvm = entered(options("Main::root"));
    jvm.enter(TINY);
    jvm.enter(BELOW);
    jvm.drop(TINY);
    assert!(jvm.is_instrumented(BELOW) && jvm.is_instrumented("Main.deeper()I"));
    // Its first call was under way when it was dropped: the question comes afterwards.
    let mut jvm = entered(options("Main::root"));
    jvm.drop(TINY);
    assert!(!jvm.is_instrumented(BELOW));
    let step = jvm.graph.first_call(jvm.ids[TINY]);
    jvm.settle(step);
    assert!(jvm.is_instrumented(BELOW) && !jvm.is_instrumented(TINY));
}

#[test]
fn an_implementation_that_is_dropped_does_not_take_others_with_it() {
    let mut jvm = entered(options("Main::root"));
    jvm.drop(SQUARE);
    jvm.load("Disc");
    assert!(!jvm.is_instrumented(SQUARE) && jvm.is_instrumented("Disc.area()I"));
}

#[test]
fn a_class_that_hotspot_does_not_take_back_keeps_its_probes() {
    let mut jvm = entered(options("Main::root"));
    let (id, class) = (jvm.ids[TINY], jvm.classes["Main"].id);
    let bytes = jvm.classes["Main"].bytes.clone();
    assert_eq!(jvm.graph.drop_methods(&[id]), [class]);
    assert!(!jvm.graph.is_dropping(), "nothing has been handed out");
    let selected = jvm.graph.selected(Occasion::Retransforming(class), APPLICATION, "Main", &parsed(&bytes));
    assert!(selected.iter().all(|method| method.id != id));
    assert!(jvm.graph.is_dropping());
    jvm.graph.class_refused(class, "it does not like it".to_owned());
    let step = jvm.graph.hotswapped();
    jvm.settle(step);
    assert_eq!(jvm.graph.take_drops(), [(id, false)]);
    assert!(!jvm.graph.can_drop(id), "it would not be otherwise the next time");
    let selected = jvm.graph.selected(Occasion::Retransforming(class), APPLICATION, "Main", &parsed(&bytes));
    assert!(selected.iter().any(|method| method.id == id), "its events are still counted");
}

#[test]
fn a_hotswap_that_nobody_answered_is_done_again() {
    let mut jvm = entered(options("Main::root"));
    let (id, class) = (jvm.ids[TINY], jvm.classes["Main"].id);
    let bytes = jvm.classes["Main"].bytes.clone();
    jvm.graph.drop_methods(&[id]);
    jvm.graph.selected(Occasion::Retransforming(class), APPLICATION, "Main", &parsed(&bytes));
    jvm.graph.hotswap_again(class);
    assert!(jvm.graph.take_drops().is_empty());
    let step = jvm.graph.hotswapped();
    jvm.settle(step);
    assert_eq!(jvm.graph.take_drops(), [(id, true)]);
    assert!(jvm.is_instrumented(HELPER) && !jvm.is_instrumented(TINY));
}
