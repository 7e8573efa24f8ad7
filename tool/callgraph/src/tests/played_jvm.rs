//! A JVM that is played: real class files, and what HotSpot would tell of them.

use std::collections::{BTreeMap, BTreeSet};

use headwater_protocol::LoaderId;
use headwater_protocol::message::{CompiledCode, CompiledPiece, MethodInfo, MethodRef, UnlinkedClass, mention};
use headwater_rewriter::ClassFile;
use headwater_tests::{compile_text, jdks};

use super::super::*;
use super::parsed;
use crate::known::Rewritten;
use crate::likely::Reading;
use crate::requests::Selected;

pub(super) const APPLICATION: LoaderId = LoaderId(2);

/// A class of the played JVM.
pub(super) struct Class {
    pub(super) id: ClassId,
    pub(super) loader: LoaderId,
    pub(super) super_class: Option<String>,
    pub(super) interfaces: Vec<String>,
    pub(super) access: u16,
    pub(super) methods: Vec<MethodInfo>,
    pub(super) bytes: Vec<u8>,
    pub(super) linked: bool,
    pub(super) initialized: bool,
}

/// A JVM in which classes are loaded and methods entered by hand.
pub(super) struct PlayedJvm {
    pub(super) graph: CallGraph,
    pub(super) classes: BTreeMap<String, Class>,
    pub(super) ids: BTreeMap<String, MethodId>,
    /// Methods whose instrumented code is in place.
    pub(super) instrumented: BTreeSet<String>,
    pub(super) hotswaps: usize,
    /// Classes and methods that the JIT compiler has compiled when we attach.
    pub(super) compiled: Vec<(&'static str, &'static str)>,
    /// Names of methods that the JDK declares, and none of its classes that are loaded mentions.
    pub(super) unmentioned: Vec<&'static str>,
    /// Names of methods that have run, and do no longer.
    pub(super) stale: Vec<&'static str>,
    /// Classes whose loading thread did not wait until it was answered what they are to be.
    pub(super) unanswered: Vec<&'static str>,
    /// Classes in whose code threads are when we attach.
    pub(super) running: Vec<&'static str>,
}

impl PlayedJvm {
    /// The classes of a source text, none of them loaded. `roots` and the rest as on the command line.
    pub(super) fn new(source: &str, options: Options) -> PlayedJvm {
        let compiled = compile_text(&jdks()[0], source);
        let mut jvm = PlayedJvm {
            graph: CallGraph::new(options),
            classes: BTreeMap::new(),
            ids: BTreeMap::new(),
            instrumented: BTreeSet::new(),
            hotswaps: 0,
            compiled: Vec::new(),
            unmentioned: Vec::new(),
            stale: Vec::new(),
            running: Vec::new(),
            unanswered: Vec::new(),
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

    pub(super) fn add_jdk_class(&mut self, name: &str, super_class: Option<&str>, interface: bool, methods: &[&str]) {
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

    pub(super) fn add_class(&mut self, bytes: Vec<u8>) {
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

    pub(super) fn unlinked(&self, name: &str) -> UnlinkedClass {
        let class = &self.classes[name];
        let super_class = class.super_class.as_ref().map(|name| self.classes[name].id);
        UnlinkedClass { id: class.id, name: name.to_owned(), super_class, is_of_class_path: true }
    }

    pub(super) fn info(&self, name: &str) -> ClassInfo {
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
            probed: !self.unanswered.contains(&name),
        }
    }

    /// The classes that are loaded and initialised before we attach; then the roots are instrumented.
    pub(super) fn attach(mut self, loaded: &[&str]) -> PlayedJvm {
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
        for class in self.classes.values().filter(|class| class.linked) {
            let stale = class.methods.iter().filter(|method| self.stale.contains(&&*method.name));
            self.graph.add_stale(class.id, &stale.cloned().collect::<Vec<_>>());
        }
        self.graph.set_compiled(self.compiled_code());
        self.graph.set_running(self.running.iter().map(|name| self.classes[*name].id).collect());
        let step = self.graph.start();
        self.settle(step);
        self
    }

    fn compiled_code(&self) -> CompiledCode {
        let methods = self.compiled.iter().flat_map(|(class, method)| {
            let Class { id, methods, .. } = &self.classes[*class];
            let of = methods.iter().filter(|info| info.name == *method);
            of.map(|info| MethodRef { class: *id, name: info.name.clone(), descriptor: info.descriptor.clone() })
        });
        let methods: Vec<MethodRef> = methods.collect();
        let piece = |method| CompiledPiece { bytes: 100, method: Some(method), inlined: Vec::new() };
        CompiledCode { pieces: (0..methods.len() as u32).map(piece).collect(), methods }
    }

    /// These methods have been called before we attach, and no others.
    pub(super) fn run_before(&mut self, methods: &[&str]) {
        for (name, class) in &mut self.classes {
            for method in &mut class.methods {
                method.calls = Some(u32::from(methods.contains(&&*format!("{name}.{}", method.name))));
            }
        }
    }

    /// A class's file comes by the load hook.
    pub(super) fn define(&mut self, name: &str, by_graph: bool) {
        let bytes = self.classes[name].bytes.clone();
        let selected = self.graph.selected(Occasion::Loading { by_graph }, APPLICATION, name, &parsed(&bytes));
        if !self.unanswered.contains(&name) {
            self.instrument(name, &selected);
        }
    }

    /// Loads and links a class, after its supertypes.
    pub(super) fn load(&mut self, name: &str) {
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
    pub(super) fn enter(&mut self, method: &str) {
        assert!(self.instrumented.contains(method), "{method} is not among {:#?}", self.instrumented);
        let step = self.graph.first_call(self.ids[method]);
        self.settle(step);
    }

    pub(super) fn settle(&mut self, mut step: Step) {
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
                        // The JDK's have none here.
                        if bytes.is_empty() {
                            continue;
                        }
                        let selected =
                            self.graph.selected(Occasion::Retransforming(id), APPLICATION, &name, &parsed(&bytes));
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

    pub(super) fn instrument(&mut self, class: &str, selected: &[Selected]) {
        for method in selected {
            let info = &self.classes[class].methods[method.method_index];
            let name = format!("{class}.{}{}", info.name, info.descriptor);
            self.ids.insert(name.clone(), method.id);
            self.instrumented.insert(name);
        }
    }

    /// The guards in a class's file; without its id, as it is loaded.
    pub(super) fn guarded(&mut self, name: &str, class: Option<ClassId>) -> Vec<Guarded> {
        let CallGraph { known, methods, likely, reachable, plan, .. } = &mut self.graph;
        let file = &parsed(&self.classes[name].bytes);
        let rewritten = Rewritten { class, loader: APPLICATION, name, file };
        plan.guards.in_file(Reading { known, methods, likely }, reachable, rewritten)
    }

    /// What is instrumented, sorted.
    pub(super) fn instrumented(&self) -> Vec<&str> {
        self.instrumented.iter().map(String::as_str).collect()
    }
}
