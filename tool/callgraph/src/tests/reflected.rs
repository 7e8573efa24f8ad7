//! What is called by reflection, which uses handles, and may have been inlined by them.

use super::*;

const HANDLE: &str = "java/lang/invoke/DirectMethodHandle";

impl PlayedJvm {
    /// A thread in the graph is about to call a method by reflection: the classes to be hotswapped before.
    fn reflect(&mut self, class: &str, name: &str, descriptor: &str) -> Vec<ClassId> {
        let (class, name, descriptor) = (self.classes[class].id, name.into(), descriptor.into());
        let Step::Hotswap(classes) = self.graph.reflected(&MethodRef { class, name, descriptor }) else {
            panic!("all is known")
        };
        self.graph.hotswapped();
        classes
    }
}

/// A JVM whose reflection uses handles, if `accessors` are there; the root has been entered.
fn reflecting(accessors: bool) -> PlayedJvm {
    const SOURCE: &str = "
        class Main { static int root(Item item) { return item.id() + Item.twice(3) + Item.sum(item); } }
        class Item {
            int id() { return 7; }
            static int twice(int number) { return 2 * number; }
            static int sum(Item item) {
                int sum = 0;
                for (int i = 0; i < item.id(); i++) { sum += item.id() * i + item.id() / (i + 1) - twice(i); }
                return sum;
            }
        }
    ";
    let mut jvm = PlayedJvm::new(SOURCE, options("Main::root"));
    let mut loaded = vec!["Main", "Item", HANDLE];
    jvm.add_jdk_class(HANDLE, Some("java/lang/Object"), false, &[]);
    if accessors {
        jvm.add_jdk_class(crate::reflection::ACCESSOR_BY_HANDLE, Some("java/lang/Object"), false, &[]);
        loaded.push(crate::reflection::ACCESSOR_BY_HANDLE);
    }
    let mut jvm = jvm.attach(&loaded);
    jvm.enter("Main.root(LItem;)I");
    assert!(jvm.instrumented.contains("Item.id()I"));
    jvm
}

#[test]
fn compiled_code_that_may_have_inlined_a_small_method_by_a_handle_is_discarded_once() {
    let mut jvm = reflecting(true);
    let handle = jvm.classes[HANDLE].id;
    assert_eq!(jvm.reflect("Item", "id", "()I"), [handle]);
    assert_eq!(jvm.reflect("Item", "id", "()I"), [], "it had its probes the last time");
    assert_eq!(jvm.reflect("Item", "twice", "(I)I"), [], "so had all of its class");
}

#[test]
fn code_that_has_inlined_a_large_method_or_nothing_by_a_handle_is_kept() {
    let mut jvm = reflecting(true);
    assert_eq!(jvm.reflect("Item", "sum", "(LItem;)I"), [], "what it has inlined of so large a method is known of it");
    let mut jvm = reflecting(false);
    assert_eq!(jvm.reflect("Item", "id", "()I"), [], "reflection does not use handles");
}
