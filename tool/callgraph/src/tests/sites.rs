//! Where objects are made.

use super::*;
use crate::known::Rewritten;
use crate::sites::ObjectSite;

const SOURCE: &str = "
    class Main {
        static Object[] kept;
        static void root() { make(); kept = new Object[] {new Main(), new int[2][3][]}; }
        static void make() { kept = new Object[1]; }
        static void other() { kept = new Object[2]; }
    }
";

fn attached(options: Options) -> PlayedJvm {
    PlayedJvm::new(SOURCE, options).attach(&["Main"])
}

/// The sites that are probed in `Main`: by their methods, and what is made.
fn probed(jvm: &mut PlayedJvm) -> Vec<(usize, String)> {
    let class = &jvm.classes["Main"];
    let file = &parsed(&class.bytes);
    let selected = jvm.graph.selected(Occasion::Retransforming(class.id), class.loader, "Main", file);
    let rewritten = Rewritten { class: Some(class.id), loader: class.loader, name: "Main", file };
    let CallGraph { known, methods, plan, .. } = &mut jvm.graph;
    let sites = plan.sites.in_file(known, methods, rewritten, &selected);
    let named = |it: &ObjectSite| (it.method_index, jvm.graph.objects()[it.number as usize].to_string());
    sites.iter().map(named).collect()
}

#[test]
fn what_selected_methods_make_has_numbers_that_stay() {
    let mut jvm = attached(Options { objects: true, ..options("Main::root") });
    let of_root = [(1, "java.lang.Object[]@Main:4"), (1, "Main@Main:4"), (1, "int[][][]@Main:4")];
    let of_root = of_root.map(|(method, name)| (method, name.to_owned()));
    let first = probed(&mut jvm);
    assert_eq!(first[..3], of_root);
    jvm.enter("Main.root()V");
    let later = probed(&mut jvm);
    assert_eq!(later[..3], of_root);
    assert!(later.contains(&(2, "java.lang.Object[]@Main:5".to_owned())), "{later:?}");
    assert!(later.iter().all(|(method, _)| *method != 3), "it is not called: {later:?}");
    let all: Vec<&str> = jvm.graph.objects().iter().map(|name| &**name).collect();
    assert_eq!(all[..4], ["java.lang.Object[]@Main:4", "Main@Main:4", "int[][][]@Main:4", "int[][]@Main:4"]);
    assert_eq!(all.len(), 5, "each once: {all:?}");
}

#[test]
fn of_lines_what_they_make() {
    let lines = vec![Some(Lines { first: 5, last: 5 })];
    let mut jvm = attached(Options { objects: true, lines, ..options("Main::*") });
    assert_eq!(probed(&mut jvm), [(2, "java.lang.Object[]@Main:5".to_owned())]);
}

#[test]
fn nothing_is_probed_unless_it_is_asked_for_nor_while_roots_are_timed() {
    assert_eq!(probed(&mut attached(options("Main::root"))), []);
    let mut jvm = attached(Options { objects: true, ..options("Main::root") });
    assert!(!probed(&mut jvm).is_empty());
    let main = jvm.classes["Main"].id;
    assert_eq!(jvm.graph.keep_only_roots(), [main], "it gets code without these probes");
    assert_eq!(probed(&mut jvm), []);
}
