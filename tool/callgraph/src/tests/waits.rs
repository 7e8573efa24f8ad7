//! Where threads may wait.

use headwater_protocol::word::{Counting, ProbedWait};
use headwater_rewriter::ProbeSite;

use super::*;
use crate::known::Rewritten;

const SOURCE: &str = "
    class Main {
        static void root() throws InterruptedException { rest(); Thread.sleep(1, 0); Thread.sleep(2); }
        static void rest() throws InterruptedException { Thread.sleep(1); Thread.yield(); }
        static void other() throws InterruptedException { Thread.sleep(1); }
    }
";

/// The waits that are probed in `Main`: in which methods, of those that are instrumented.
fn probed(jvm: &mut PlayedJvm) -> Vec<(ProbedWait, bool)> {
    let class = &jvm.classes["Main"];
    let file = &parsed(&class.bytes);
    let selected = jvm.graph.selected(Occasion::Retransforming(class.id), class.loader, "Main", file);
    let rewritten = Rewritten { class: Some(class.id), loader: class.loader, name: "Main", file };
    let places = jvm.graph.plan.wait_places(&jvm.graph.known, rewritten, &selected);
    places.iter().map(|it| (it.wait, matches!(it.place, ProbeSite::Wait { call: Some(_) }))).collect()
}

#[test]
fn calls_of_sleep_are_probed_in_selected_methods() {
    let attached = |waits| PlayedJvm::new(SOURCE, Options { waits, ..options("Main::root") }).attach(&["Main"]);
    let mut jvm = attached(true);
    assert_eq!(probed(&mut jvm), [(ProbedWait::Asleep, true); 2]);
    jvm.enter("Main.root()V");
    assert_eq!(probed(&mut jvm), [(ProbedWait::Asleep, true); 3]);
    assert_eq!(probed(&mut attached(false)), []);
}

#[test]
fn what_is_to_be_told_later_needs_code_once_more() {
    let mut jvm = PlayedJvm::new(SOURCE, options("Main::root")).attach(&["Main"]);
    jvm.enter("Main.root()V");
    assert_eq!(probed(&mut jvm), []);
    let main = jvm.classes["Main"].id;
    let waits = Counting { probed_waits: true, ..Counting::default() };
    assert_eq!(jvm.graph.tell(waits), [main]);
    assert_eq!(probed(&mut jvm), [(ProbedWait::Asleep, true); 3]);
    assert_eq!(jvm.graph.tell(waits), [], "it has it already");
    assert_eq!(jvm.graph.tell(Counting { alloc: true, gc: true, ..waits }), [], "no code tells of that");
    assert_eq!(jvm.graph.tell(Counting { exceptions: true, ..waits }), [main]);
    assert_eq!(jvm.graph.probe_again(), [main]);
}

/// A class file whose methods are called as the JDK's that tell something.
const TELLING: &str = "
    class Main {
        Main() { }
        Main(int n) { this(); }
        static void root() { }
        Class<?> loadClass(String name) { return null; }
        void park() { }
    }
";

/// What a class of the JDK's with that code would tell when it is loaded: the waits in its methods, and how many constructors.
fn told(options: Options, loader: LoaderId, class: &str) -> (Vec<ProbedWait>, usize) {
    let jvm = PlayedJvm::new(TELLING, options).attach(&["Main"]);
    let file = &parsed(&jvm.classes["Main"].bytes);
    let rewritten = Rewritten { class: None, loader, name: class, file };
    let CallGraph { known, plan, .. } = &jvm.graph;
    let waits = plan.wait_places(known, rewritten, &[]);
    let constructors = plan.exception_constructors(known, rewritten);
    (waits.into_iter().map(|it| it.wait).collect(), constructors.len())
}

#[test]
fn classes_of_the_jdk_tell_what_is_asked_for_and_nothing_else() {
    const CLASSES: [&str; 3] =
        ["java/lang/ClassLoader", "java/util/concurrent/locks/LockSupport", "java/lang/Throwable"];
    let of = |options: Options, loader| CLASSES.map(|class| told(options.clone(), loader, class));
    let nothing = || (Vec::new(), 0);
    let root = || options("Main::root");
    let all = || Options { waits: true, loading: true, exceptions: true, ..root() };
    assert_eq!(of(root(), LoaderId::BOOT), [nothing(), nothing(), nothing()]);
    let loading = (vec![ProbedWait::Loading], 0);
    let parked = (vec![ProbedWait::Parked], 0);
    assert_eq!(of(Options { loading: true, ..root() }, LoaderId::BOOT), [loading.clone(), nothing(), nothing()]);
    assert_eq!(of(Options { exceptions: true, ..root() }, LoaderId::BOOT), [nothing(), nothing(), (Vec::new(), 2)]);
    assert_eq!(of(all(), LoaderId::BOOT), [loading, parked, (Vec::new(), 2)]);
    assert_eq!(of(all(), LoaderId(2)), [nothing(), nothing(), nothing()], "it is not the JDK's");
    assert_eq!(of(Options { only_roots: true, ..all() }, LoaderId::BOOT), [nothing(), nothing(), nothing()]);
}
