//! The state machine against a JVM that is played: real class files, and what HotSpot would tell of them.

use std::collections::{BTreeMap, BTreeSet};

use headwater_protocol::message::{Frame, MethodRef, ThreadStack, mention};
use headwater_protocol::{LoaderId, ThreadId};
use headwater_rewriter::ClassFile;
use headwater_tests::{compile_text, jdks};

use super::*;
use crate::pattern::ClassPattern;

mod ahead;
mod callbacks;
mod dropping;
mod guards;
mod loading;
mod mentions;
mod natives;
mod opaque;
mod receivers;

const APPLICATION: LoaderId = LoaderId(2);

/// A class of the played JVM.
struct Class {
    id: ClassId,
    loader: LoaderId,
    super_class: Option<String>,
    interfaces: Vec<String>,
    access: u16,
    methods: Vec<MethodInfo>,
    bytes: Vec<u8>,
    linked: bool,
    initialized: bool,
}

/// A JVM in which classes are loaded and methods entered by hand.
struct PlayedJvm {
    graph: CallGraph,
    classes: BTreeMap<String, Class>,
    ids: BTreeMap<String, MethodId>,
    /// Methods whose instrumented code is in place.
    instrumented: BTreeSet<String>,
    hotswaps: usize,
    /// Classes and methods that the JIT compiler has compiled when we attach.
    compiled: Vec<(&'static str, &'static str)>,
    /// Names of methods that the JDK declares, and none of its classes that are loaded mentions.
    unmentioned: Vec<&'static str>,
    /// Classes in whose code threads are when we attach.
    running: Vec<&'static str>,
}

impl PlayedJvm {
    /// The classes of a source text, none of them loaded. `roots` and the rest as on the command line.
    fn new(source: &str, options: Options) -> PlayedJvm {
        let compiled = compile_text(&jdks()[0], source);
        let mut jvm = PlayedJvm {
            graph: CallGraph::new(options),
            classes: BTreeMap::new(),
            ids: BTreeMap::new(),
            instrumented: BTreeSet::new(),
            hotswaps: 0,
            compiled: Vec::new(),
            unmentioned: Vec::new(),
            running: Vec::new(),
        };
        for (name, super_class, interface, methods) in [
            ("java/lang/Object", None, false, &["<init>()V", "hashCode()I", "toString()Ljava/lang/String;"][..]),
            (
                "java/util/Comparator",
                Some("java/lang/Object"),
                true,
                &["compare(Ljava/lang/Object;Ljava/lang/Object;)I"],
            ),
            ("java/lang/Runnable", Some("java/lang/Object"), true, &["run()V"]),
            (
                "java/util/Arrays",
                Some("java/lang/Object"),
                false,
                &["sort([Ljava/lang/Object;Ljava/util/Comparator;)V"],
            ),
        ] {
            jvm.add_jdk_class(name, super_class, interface, methods);
        }
        for entry in std::fs::read_dir(compiled.path()).expect("compiled classes") {
            let bytes = std::fs::read(entry.expect("an entry").path()).expect("a class file");
            jvm.add_class(bytes);
        }
        jvm
    }

    fn add_jdk_class(&mut self, name: &str, super_class: Option<&str>, interface: bool, methods: &[&str]) {
        let methods = methods.iter().map(|method| {
            let (name, descriptor) = method.split_at(method.find('(').expect("a descriptor"));
            let access = if interface {
                0x0401
            } else if name == "sort" {
                0x0009
            } else {
                0x0001
            };
            MethodInfo { name: name.into(), descriptor: descriptor.into(), access, calls: None }
        });
        let class = Class {
            id: ClassId(self.classes.len() as u64 + 1),
            loader: LoaderId::BOOT,
            super_class: super_class.map(str::to_owned),
            interfaces: Vec::new(),
            access: if interface { 0x0601 } else { 0x0001 },
            methods: methods.collect(),
            bytes: Vec::new(),
            linked: true,
            initialized: true,
        };
        self.classes.insert(name.to_owned(), class);
    }

    fn add_class(&mut self, bytes: Vec<u8>) {
        let file = ClassFile::parse(&bytes).expect("javac's class files are sound");
        let name = file.name().expect("a name").to_string();
        let methods: Vec<MethodInfo> = file
            .methods()
            .iter()
            .map(|method| MethodInfo {
                calls: None,
                name: method.name().into_owned(),
                descriptor: method.descriptor().into_owned(),
                access: method.access,
            })
            .collect();
        let class = Class {
            id: ClassId(self.classes.len() as u64 + 1),
            loader: APPLICATION,
            super_class: file.super_name().expect("sound").map(|name| name.to_string()),
            interfaces: file.interfaces().expect("sound").iter().map(|name| name.to_string()).collect(),
            access: file.access(),
            methods,
            linked: false,
            initialized: false,
            bytes: bytes.clone(),
        };
        self.classes.insert(name, class);
    }

    fn info(&self, name: &str) -> ClassInfo {
        let class = &self.classes[name];
        ClassInfo {
            id: class.id,
            name: name.to_owned(),
            loader: class.loader,
            super_class: class.super_class.as_ref().map(|name| self.classes[name].id),
            interfaces: class.interfaces.iter().map(|name| self.classes[name].id).collect(),
            access: class.access,
            initialized: class.initialized,
            modifiable: !name.contains("$$"),
        }
    }

    /// The classes that are loaded and initialised before we attach; then the roots are instrumented.
    fn attach(mut self, loaded: &[&str]) -> PlayedJvm {
        for name in loaded {
            let class = self.classes.get_mut(*name).expect("a class of the source");
            (class.linked, class.initialized) = (true, true);
        }
        let infos: Vec<ClassInfo> =
            self.classes.keys().filter(|name| self.classes[*name].linked).map(|name| self.info(name)).collect();
        self.graph.add_classes(infos);
        for id in self.graph.worth_listing() {
            let class = self.classes.values().find(|class| class.id == id).expect("a class we told of");
            self.graph.add_methods(id, class.methods.clone());
        }
        for (class, method) in &self.compiled {
            let class = &self.classes[*class];
            let methods = class.methods.iter().filter(|info| info.name == *method).cloned().collect();
            self.graph.add_compiled(class.id, methods);
        }
        self.graph.set_running(self.running.iter().map(|name| self.classes[*name].id).collect());
        let step = self.graph.start();
        self.settle(step);
        self
    }

    /// These methods have been called before we attach, and no others.
    fn run_before(&mut self, methods: &[&str]) {
        for (name, class) in &mut self.classes {
            for method in &mut class.methods {
                method.calls = Some(u32::from(methods.contains(&&*format!("{name}.{}", method.name))));
            }
        }
    }

    /// A class's file comes by the load hook.
    fn define(&mut self, name: &str, by_graph: bool) {
        let bytes = self.classes[name].bytes.clone();
        let selected = self.graph.class_bytes(Occasion::Loading { by_graph }, APPLICATION, name, &bytes);
        self.instrument(name, &selected);
    }

    /// Loads and links a class, after its supertypes.
    fn load(&mut self, name: &str) {
        if self.classes[name].linked {
            return;
        }
        // Hidden classes come by no load hook.
        if !name.contains("$$Lambda") {
            self.define(name, false);
        }
        let class = &self.classes[name];
        for supertype in class.super_class.iter().chain(&class.interfaces).cloned().collect::<Vec<_>>() {
            self.load(&supertype);
        }
        self.classes.get_mut(name).expect("it was there above").linked = true;
        let step = self.graph.class_prepared(self.info(name));
        self.settle(step);
    }

    /// An instrumented method runs for the first time.
    fn enter(&mut self, method: &str) {
        assert!(self.instrumented.contains(method), "{method} is not among {:#?}", self.instrumented);
        let step = self.graph.first_call(self.ids[method]);
        self.settle(step);
    }

    fn settle(&mut self, mut step: Step) {
        loop {
            match step {
                Step::NeedMethods(classes) => {
                    for id in classes {
                        let class = self.classes.values().find(|class| class.id == id).expect("a class we told of");
                        self.graph.add_methods(id, class.methods.clone());
                    }
                    step = self.graph.resume();
                }
                Step::NeedCode(classes) => {
                    for id in classes {
                        let class = self.classes.values().find(|class| class.id == id).expect("a class we told of");
                        self.graph.add_code(id, Some(class.bytes.clone()).filter(|bytes| !bytes.is_empty()));
                    }
                    step = self.graph.resume();
                }
                Step::NeedLinks(classes) => {
                    let mut infos = Vec::new();
                    for id in classes {
                        let (name, class) = self.classes.iter_mut().find(|(_, it)| it.id == id).expect("as above");
                        class.linked = true;
                        let name = name.clone();
                        infos.push(self.info(&name));
                    }
                    step = self.graph.add_linked(infos);
                }
                Step::NeedMentions => {
                    let declared = self.classes.values().filter(|class| class.loader == LoaderId::BOOT);
                    let declared = declared.flat_map(|class| &class.methods);
                    let mentioned = declared.filter(|method| !self.unmentioned.contains(&&*method.name));
                    let mentions =
                        mentioned.map(|method| mention(method.name.as_bytes(), method.descriptor.as_bytes()));
                    self.graph.add_mentions(mentions.collect());
                    step = self.graph.resume();
                }
                Step::Hotswap(classes) => {
                    let hotswapped = !classes.is_empty();
                    self.hotswaps += usize::from(hotswapped);
                    for id in classes {
                        let (name, class) = self.classes.iter().find(|(_, class)| class.id == id).expect("as above");
                        assert!(class.linked, "{name} is hotswapped before it is linked");
                        let (name, bytes) = (name.clone(), class.bytes.clone());
                        let selected = self.graph.class_bytes(Occasion::Retransforming(id), APPLICATION, &name, &bytes);
                        // Each retransformation begins with the original.
                        self.instrumented.retain(|method| !method.starts_with(&format!("{name}.")));
                        self.instrument(&name, &selected);
                    }
                    if !hotswapped {
                        return;
                    }
                    step = self.graph.hotswapped();
                }
            }
        }
    }

    fn instrument(&mut self, class: &str, selected: &[Selected]) {
        for method in selected {
            let info = &self.classes[class].methods[method.method_index];
            let name = format!("{class}.{}{}", info.name, info.descriptor);
            self.ids.insert(name.clone(), method.id);
            self.instrumented.insert(name);
        }
    }

    /// What is instrumented, sorted.
    fn instrumented(&self) -> Vec<&str> {
        self.instrumented.iter().map(String::as_str).collect()
    }
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
    jvm.graph.methods.iter_mut().filter(|method| method.id == area).for_each(|method| method.in_place = false);
    jvm.graph.class_bytes(Occasion::Retransforming(square), APPLICATION, "Square", &bytes);
    jvm.graph.class_refused(square, "no".into());
    assert_eq!(jvm.graph.skipped(), [("Square.area()I".to_owned(), "no".to_owned())]);
    assert_eq!(jvm.graph.instrumented(), 2);
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
    assert_eq!(jvm.graph.near_misses(&"Shap::area".parse().expect("a pattern")), ["Shape"]);
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
