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
