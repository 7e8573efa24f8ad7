//! Where threads may wait.

use headwater_protocol::word::Wait;
use headwater_rewriter::Place;

use super::*;

const SOURCE: &str = "
    class Main {
        static void root() throws InterruptedException { rest(); Thread.sleep(1, 0); Thread.sleep(2); }
        static void rest() throws InterruptedException { Thread.sleep(1); Thread.yield(); }
        static void other() throws InterruptedException { Thread.sleep(1); }
    }
";

/// The waits that are probed in `Main`: in which methods, of those that are instrumented.
fn probed(jvm: &mut PlayedJvm) -> Vec<(Wait, bool)> {
    let class = &jvm.classes["Main"];
    let selected = jvm.graph.class_bytes(Occasion::Retransforming(class.id), class.loader, "Main", &class.bytes);
    let places = jvm.graph.wait_places(Some(class.id), class.loader, "Main", &class.bytes, &selected);
    places.iter().map(|it| (it.wait, matches!(it.place, Place::Wait { call: Some(_) }))).collect()
}

#[test]
fn calls_of_sleep_are_probed_in_selected_methods() {
    let attached = |waits| PlayedJvm::new(SOURCE, Options { waits, ..options("Main::root") }).attach(&["Main"]);
    let mut jvm = attached(true);
    assert_eq!(probed(&mut jvm), [(Wait::Asleep, true); 2]);
    jvm.enter("Main.root()V");
    assert_eq!(probed(&mut jvm), [(Wait::Asleep, true); 3]);
    assert_eq!(probed(&mut attached(false)), []);
}
