//! Which calls are probed because they run native methods.

use super::*;
use crate::known::Rewritten;
use crate::natives::NativeCall;

const SOURCE: &str = "
    class Main {
        static int root(Base base) { return base.work() + Late.work() + base.fixed() + own() + own(); }
        static native int own();
    }
    class Base { native int work(); final native int fixed(); }
    class Native extends Base { native int work(); }
    class Java extends Base { int work() { return 1; } }
    class Late { static native int work(); }
";
const ROOT: &str = "Main.root(LBase;)I";

fn attached(natives: bool) -> PlayedJvm {
    PlayedJvm::new(SOURCE, Options { natives, ..options("Main::root") }).attach(&["Main", "Base"])
}

/// The native methods that are probed in `Main`, in the order of their calls.
fn probed(jvm: &PlayedJvm) -> Vec<String> {
    let class = &jvm.classes["Main"];
    let file = &parsed(&class.bytes);
    let rewritten = Rewritten { class: Some(class.id), loader: class.loader, name: "Main", file };
    let calls = jvm.graph.plan.natives.in_file(&jvm.graph.known, rewritten);
    assert!(calls.is_sorted_by_key(|call| call.offset));
    let record = |call: &NativeCall| jvm.graph.methods().iter().find(|record| record.id == call.id);
    calls.iter().map(|call| record(call).expect("a method of the graph").java_name()).collect()
}

#[test]
fn calls_that_can_only_run_native_methods_are_probed_when_their_caller_is_selected() {
    let jvm = attached(true);
    assert_eq!(probed(&jvm), ["Base.work()I", "Base.fixed()I", "Main.own()I", "Main.own()I"]);
    assert_eq!(jvm.instrumented(), [ROOT]);
    assert_eq!(jvm.hotswaps, 1);
    assert_eq!(probed(&attached(false)), [""; 0]);
}

#[test]
fn a_class_that_comes_later_may_change_which_calls_these_are() {
    let mut jvm = attached(true);
    jvm.load("Late");
    assert_eq!(probed(&jvm), ["Base.work()I", "Late.work()I", "Base.fixed()I", "Main.own()I", "Main.own()I"]);
    assert_eq!(jvm.hotswaps, 2);
    jvm.load("Native");
    assert_eq!(jvm.hotswaps, 2, "that is native, too");
    jvm.load("Java");
    assert_eq!(probed(&jvm), ["Late.work()I", "Base.fixed()I", "Main.own()I", "Main.own()I"]);
    assert_eq!(jvm.hotswaps, 3);
    assert_eq!(jvm.graph.skipped(), [], "the root has not been entered");
}

#[test]
fn a_native_method_whose_class_is_loaded_by_the_call_is_told_of() {
    let mut jvm = attached(true);
    jvm.enter(ROOT);
    jvm.load("Late");
    let [(method, reason)] = jvm.graph.skipped() else { panic!("{:?}", jvm.graph.skipped()) };
    assert_eq!(method, "Late.work()I");
    assert!(reason.contains(ROOT), "{reason}");
}
