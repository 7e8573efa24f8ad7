//! Calls that are not expected to be made.

use super::*;
use crate::guards::Told;

const SHOP: &str = "
    class Main {
        static int root(int x) { if (x > 0) often(); else seldom(); return price(x); }
        static int price(int x) { if (x > 99) throw new IllegalStateException(message(x) + Texts.end()); return x; }
        static void often() { }
        static void seldom() { deep(); }
        static void deep() { }
        static String message(int x) { return Texts.text() + Texts.text(); }
    }
    class Texts {
        static String text() { return \"\"; }
        static String end() { return \"\"; }
    }
";
const ROOT: &str = "Main.root(I)I";
const PRICE: &str = "Main.price(I)I";
const MESSAGE: &str = "Main.message(I)Ljava/lang/String;";
const END: &str = "Texts.end()Ljava/lang/String;";
const TEXT: &str = "Texts.text()Ljava/lang/String;";

fn shop(options: Options) -> PlayedJvm {
    PlayedJvm::new(SHOP, options)
}

impl PlayedJvm {
    /// The guards in a class's code, each with the method that it is in.
    pub(super) fn guards(&mut self, class: &str) -> Vec<(String, MethodId)> {
        let guards = self.guarded(class, Some(self.classes[class].id));
        let name = |guard: &Guarded| self.classes[class].methods[guard.method_index].name.clone();
        let passed = guards.iter().filter_map(|guard| match guard.told {
            Told::Passed(id) => Some((name(guard), id)),
            Told::Receiver(_) => None,
        });
        passed.collect()
    }

    /// A thread comes to a call that is guarded.
    pub(super) fn pass(&mut self, guard: MethodId) {
        let step = self.graph.first_call(guard);
        self.settle(step);
    }
}

#[test]
fn what_only_an_exception_leads_to_is_instrumented_when_it_is_about_to_be_called() {
    let mut jvm = shop(ahead()).attach(&["Main", "Texts"]);
    let guards = jvm.guards("Main");
    let methods: Vec<&str> = guards.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(methods, ["price", "price"], "nothing is known of seldom");
    jvm.enter(ROOT);
    jvm.enter(PRICE);
    assert!(!jvm.instrumented.contains(MESSAGE) && !jvm.instrumented.contains(END));
    let hotswaps = jvm.hotswaps;
    jvm.pass(guards[0].1);
    assert!(jvm.instrumented.contains(MESSAGE) && !jvm.instrumented.contains(END), "each call for itself");
    jvm.pass(guards[0].1);
    assert_eq!(jvm.hotswaps, hotswaps + 1, "once is enough");
    jvm.enter(MESSAGE);
    assert!(jvm.instrumented.contains(TEXT));
    jvm.pass(guards[1].1);
    assert!(jvm.instrumented.contains(END));
    assert_eq!(jvm.guards("Main").len(), 2, "the code that other threads execute has them still");
}

#[test]
fn what_a_compiled_method_calls_and_was_never_compiled_is_guarded() {
    let mut jvm = shop(ahead());
    jvm.compiled = vec![("Main", "root"), ("Main", "often")];
    let mut jvm = jvm.attach(&["Main", "Texts"]);
    let guards = jvm.guards("Main");
    let [(_, seldom), ..] = &guards[..] else { panic!("{guards:?}") };
    jvm.enter(ROOT);
    assert!(jvm.instrumented.contains("Main.often()V") && !jvm.instrumented.contains("Main.seldom()V"));
    jvm.pass(*seldom);
    assert!(jvm.instrumented.contains("Main.seldom()V"));
}

#[test]
fn what_never_ran_is_guarded_in_what_did() {
    let mut jvm = shop(ahead());
    jvm.run_before(&["Main.root", "Main.often", "Main.price"]);
    let mut jvm = jvm.attach(&["Main", "Texts"]);
    let guards = jvm.guards("Main");
    let methods: Vec<&str> = guards.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(methods, ["root", "price", "price"]);
    jvm.enter(ROOT);
    assert!(jvm.instrumented.contains("Main.often()V") && !jvm.instrumented.contains("Main.seldom()V"));
    jvm.pass(guards[0].1);
    assert!(jvm.instrumented.contains("Main.seldom()V"));
    jvm.enter("Main.seldom()V");
    assert!(jvm.instrumented.contains("Main.deep()V"), "in what never ran before, nothing is known");
}

#[test]
fn what_cannot_be_guarded_is_selected_with_the_rest() {
    let mut jvm = shop(ahead()).attach(&["Main", "Texts"]);
    let guards = jvm.guarded("Main", Some(jvm.classes["Main"].id));
    jvm.graph.refuse_guards(&guards);
    let step = jvm.graph.hotswapped();
    jvm.settle(step);
    assert!(jvm.instrumented.contains(MESSAGE) && jvm.instrumented.contains(END));
    assert!(jvm.guards("Main").is_empty());
}

#[test]
fn there_are_no_guards_where_nobody_waits() {
    let mut jvm = shop(ahead());
    jvm.graph.forbid_guards();
    let mut jvm = jvm.attach(&["Main", "Texts"]);
    assert!(jvm.guards("Main").is_empty());
    jvm.enter(ROOT);
    jvm.enter(PRICE);
    assert!(jvm.instrumented.contains(MESSAGE));
}

#[test]
fn a_class_that_is_being_loaded_has_guards_too() {
    let mut jvm = shop(Options { look_ahead: true, ..options("Main::price") }).attach(&["Texts"]);
    let bytes = jvm.classes["Main"].bytes.clone();
    assert_eq!(
        jvm.graph.selected(Occasion::Loading { by_graph: false }, APPLICATION, "Main", &parsed(&bytes)).len(),
        1
    );
    let guards = jvm.guarded("Main", None);
    let [Guarded { told: Told::Passed(guard), .. }] = guards[..] else {
        panic!("of its own methods nothing is known yet: {guards:?}")
    };
    jvm.load("Main");
    assert!(jvm.instrumented.contains(PRICE) && !jvm.instrumented.contains(END));
    jvm.pass(guard);
    assert!(jvm.instrumented.contains(END));
}

#[test]
fn a_dropped_method_keeps_its_guards() {
    let mut jvm = shop(ahead()).attach(&["Main", "Texts"]);
    jvm.enter(ROOT);
    jvm.enter(PRICE);
    let id = jvm.ids[PRICE];
    let classes = jvm.graph.drop_methods(&[id]);
    jvm.settle(Step::Hotswap(classes));
    let guards = jvm.guards("Main");
    assert_eq!(guards.len(), 2);
    jvm.pass(guards[0].1);
    assert!(jvm.instrumented.contains(MESSAGE));
}

#[test]
fn what_is_passed_on_by_a_guarded_call_can_be_called_back() {
    let source = "
        class Main {
            static void root(Key key) { try { work(); } catch (RuntimeException e) { Basket.keep(key); } }
            static void work() { }
        }
        class Basket {
            static java.util.Set<Object> all;
            static void keep(Object it) { all.add(it); }
        }
        class Key { public int hashCode() { return 1; } }";
    let mut jvm = PlayedJvm::new(source, ahead()).attach(&["Main", "Basket", "Key"]);
    let guards = jvm.guards("Main");
    jvm.enter("Main.root(LKey;)V");
    assert!(!jvm.instrumented.contains("Key.hashCode()I"));
    jvm.pass(guards[0].1);
    assert!(jvm.instrumented.contains("Key.hashCode()I"), "{:?}", jvm.instrumented);
}
