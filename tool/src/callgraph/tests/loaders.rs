//! Very many loaders, each with classes of the same names.

use std::collections::{BTreeMap, BTreeSet};

use headwater_rewriter::ClassFile;
use headwater_tests::{compile_text, jdks};

use super::*;

const SOURCE: &str = "
    class Main { static int root(Part part) { return part.step(1); } }
    interface Part { int step(int x); }
    class Base { int base() { return 1; } }
    class Plugin extends Base implements Part {
        public int step(int x) { return Helper.help(new Helper(x)) + base(); }
    }
    class Helper {
        int x;
        Helper(int x) { this.x = x; }
        static int help(Helper it) { return it.more(); }
        int more() { return x + 1; }
    }
";
/// What each loader defines, in the order in which the JVM has them linked.
const OWN: [&str; 3] = ["Base", "Plugin", "Helper"];

/// A JVM in which loaders come, each with its own plugin.
struct Loaders {
    graph: CallGraph,
    files: BTreeMap<String, Vec<u8>>,
    /// By id: loader and name.
    classes: BTreeMap<ClassId, (LoaderId, String)>,
    instrumented: BTreeMap<(LoaderId, String), MethodId>,
}

impl Loaders {
    fn new() -> Loaders {
        let compiled = compile_text(&jdks()[0], SOURCE);
        let files = std::fs::read_dir(compiled.path()).expect("compiled classes").map(|entry| {
            let bytes = std::fs::read(entry.expect("an entry").path()).expect("a class file");
            (ClassFile::parse(&bytes).expect("sound").name().expect("a name").to_string(), bytes)
        });
        let files = files.collect();
        let mut jvm = Loaders {
            graph: CallGraph::new(options("Main::root")),
            files,
            classes: BTreeMap::new(),
            instrumented: BTreeMap::new(),
        };
        let object = ClassInfo { super_class: None, ..jvm.info(LoaderId::BOOT, "java/lang/Object") };
        let app = [jvm.info(APPLICATION, "Part"), jvm.info(APPLICATION, "Main")];
        jvm.graph.add_classes([vec![object], app.to_vec()].concat());
        let step = jvm.graph.start();
        jvm.settle(step);
        jvm
    }

    fn info(&mut self, loader: LoaderId, name: &str) -> ClassInfo {
        let id = ClassId(self.classes.len() as u64 + 1);
        self.classes.insert(id, (loader, name.to_owned()));
        let known = |loader: LoaderId, name: &str| {
            self.classes.iter().find(|(_, class)| **class == (loader, name.to_owned())).map(|(id, _)| *id)
        };
        let super_class = if name == "Plugin" { Some(ClassId(id.0 - 1)) } else { Some(ClassId(1)) };
        let interfaces = if name == "Plugin" { known(APPLICATION, "Part").into_iter().collect() } else { Vec::new() };
        let access = if name == "Part" { 0x0600 } else { 0x0020 };
        let name = name.to_owned();
        ClassInfo { id, name, loader, super_class, interfaces, access, initialized: true, modifiable: true }
    }

    fn load(&mut self, loader: LoaderId, name: &str) {
        let bytes = self.files[name].clone();
        let selected = self.graph.class_bytes(Occasion::Loading { by_graph: false }, loader, name, &bytes);
        self.instrument(loader, name, &selected);
        let info = self.info(loader, name);
        let step = self.graph.class_prepared(info);
        self.settle(step);
    }

    fn enter(&mut self, loader: LoaderId, method: &str) {
        let id =
            *self.instrumented.get(&(loader, method.to_owned())).unwrap_or_else(|| panic!("{method} of {loader:?}"));
        let step = self.graph.first_call(id);
        self.settle(step);
    }

    fn methods(&self, class: ClassId) -> Vec<MethodInfo> {
        let Some(bytes) = self.files.get(&self.classes[&class].1) else { return Vec::new() };
        let file = ClassFile::parse(bytes).expect("sound");
        let method = |it: &headwater_rewriter::Method<'_>| MethodInfo {
            name: it.name().into_owned(),
            descriptor: it.descriptor().into_owned(),
            access: it.access,
            calls: None,
        };
        file.methods().iter().map(method).collect()
    }

    fn settle(&mut self, mut step: Step) {
        loop {
            step = match step {
                Step::NeedMethods(classes) => {
                    classes.iter().for_each(|class| self.graph.add_methods(*class, self.methods(*class)));
                    self.graph.resume()
                }
                Step::NeedCode(classes) => {
                    for class in classes {
                        self.graph.add_code(class, self.files.get(&self.classes[&class].1).cloned());
                    }
                    self.graph.resume()
                }
                Step::Hotswap(classes) if classes.is_empty() => return,
                Step::Hotswap(classes) => {
                    for class in classes {
                        let (loader, name) = self.classes[&class].clone();
                        let Some(bytes) = self.files.get(&name).cloned() else { continue };
                        let selected = self.graph.class_bytes(Occasion::Retransforming(class), loader, &name, &bytes);
                        self.instrument(loader, &name, &selected);
                    }
                    self.graph.hotswapped()
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn instrument(&mut self, loader: LoaderId, class: &str, selected: &[Selected]) {
        let file = ClassFile::parse(&self.files[class]).expect("sound");
        for method in selected {
            let name = format!("{class}.{}", file.methods()[method.method_index].name());
            self.instrumented.insert((loader, name), method.id);
        }
    }

    fn instrumented_of(&self, loader: LoaderId) -> BTreeSet<&str> {
        self.instrumented.keys().filter(|(of, _)| *of == loader).map(|(_, method)| method.as_str()).collect()
    }
}

/// So many loaders come, and their plugins are called; what each defines is loaded when it is needed.
fn after(loaders: u64) -> Loaders {
    let mut jvm = Loaders::new();
    jvm.enter(APPLICATION, "Main.root");
    for loader in (0..loaders).map(|number| LoaderId(10 + number)) {
        let [base, plugin, helper] = OWN;
        jvm.load(loader, base);
        jvm.load(loader, plugin);
        jvm.enter(loader, "Plugin.step");
        jvm.load(loader, helper);
        jvm.enter(loader, "Helper.help");
    }
    jvm
}

#[test]
fn each_loaders_own_classes_are_found() {
    let jvm = after(100);
    let all = BTreeSet::from(["Base.base", "Helper.<init>", "Helper.help", "Helper.more", "Plugin.step"]);
    for loader in (0..100).map(|number| LoaderId(10 + number)) {
        assert_eq!(jvm.instrumented_of(loader), all, "{loader:?}");
    }
}

#[test]
fn a_class_takes_no_more_looks_the_more_loaders_have_one_of_its_name() {
    let looks = |loaders: u64| after(loaders).graph.mirrors.names.looks.get();
    let (few, more, many) = (looks(50), looks(150), looks(250));
    assert!(many - more <= (more - few) * 11 / 10, "{few}, {more}, {many}");
}

#[test]
fn code_without_a_class_of_its_own_means_those_of_all_loaders() {
    let mut jvm = after(60);
    let elsewhere = LoaderId(9);
    jvm.load(elsewhere, "Base");
    // Its loader may ask any of the others for the helper, also one that comes later.
    jvm.load(elsewhere, "Plugin");
    jvm.enter(elsewhere, "Plugin.step");
    jvm.load(LoaderId(8), "Helper");
    assert!(jvm.instrumented_of(LoaderId(8)).contains("Helper.help"));
}
