//! Programs that reload, run scripts or make proxies: very many classes have one name, each its own loader.

use headwater_protocol::LoaderId;
use headwater_protocol::message::MethodInfo;
use headwater_terms::reach::Way;

use super::super::filter::Caller;
use super::super::source::{Named, Source, Spare};
use super::super::*;
use super::options;

/// A static method.
const CALLED: (&str, &str) = ("called", "()V");
const FIRST_LOADER: u64 = 1000;

/// A graph, and so many classes of a name that are loaded.
struct Graph(CallGraph);

impl Graph {
    fn with(count: u64) -> Graph {
        let mut graph = Graph(CallGraph::new(options("Main::root")));
        for number in 0..count {
            graph.link(number);
        }
        graph
    }

    /// One more comes, and what is reachable is applied to it.
    fn link(&mut self, number: u64) -> ClassKey {
        let id = ClassId(FIRST_LOADER + number);
        let key = self.0.known.mirrors.linked(ClassInfo {
            id,
            name: "Named".to_owned(),
            loader: LoaderId(id.0),
            super_class: None,
            interfaces: Vec::new(),
            access: 1,
            initialized: true,
            modifiable: true,
            probed: false,
        });
        let (name, descriptor) = CALLED;
        let method = MethodInfo { name: name.into(), descriptor: descriptor.into(), access: 9, calls: None };
        self.0.add_methods(id, vec![method]);
        self.0.apply_to(key);
        key
    }

    /// Code of this loader calls the method; how many it may run that nobody has called before.
    fn call_from(&mut self, loader: u64) -> usize {
        let signature = self.0.known.mirrors.intern_signature(CALLED.0, CALLED.1);
        let mut callees = Vec::new();
        let called = (signature, Source::new(Caller::Application, None, Way::Direct));
        let CallGraph { known, methods, likely, reachable, .. } = &mut self.0;
        let named = Named { name: "Named", loader: LoaderId(loader) };
        reachable.reach_direct(&mut Ground { known, methods, likely }, named, called, Spare::Nothing, &mut callees);
        callees.len()
    }

    fn is_selected(&self, key: ClassKey) -> bool {
        !self.0.methods.in_class(key).is_empty()
    }
}

#[test]
fn of_few_classes_of_a_name_each_call_may_run_all() {
    let mut graph = Graph::with(10);
    assert_eq!([graph.call_from(7), graph.call_from(8)], [10, 10]);
    assert_eq!(graph.call_from(FIRST_LOADER + 3), 1, "its own");
}

#[test]
fn of_very_many_classes_of_a_name_each_is_gone_through_once() {
    let mut graph = Graph::with(100);
    assert_eq!([graph.call_from(7), graph.call_from(8)], [100, 0]);
    assert!(graph.0.known.mirrors.keys().all(|key| graph.is_selected(key)));
    let (one, other) = (graph.link(100), graph.link(101));
    assert!(graph.is_selected(one) && graph.is_selected(other), "those that come are told of the call when they do");
    assert_eq!([graph.call_from(9), graph.call_from(7)], [2, 0]);
    assert_eq!(graph.call_from(FIRST_LOADER + 3), 1, "its own");
}

#[test]
fn what_a_class_outside_the_filter_does_with_a_virtual_call_is_known_of_very_many_too() {
    let mut graph = Graph::with(3);
    let signature = graph.0.known.mirrors.intern_signature("toString", "()Ljava/lang/String;");
    let called = (signature, Source::new(Caller::Application, None, Way::Virtual));
    let target = source::target(called);
    let mut callees = Vec::new();
    let CallGraph { known, methods, likely, reachable, .. } = &mut graph.0;
    let named = Named { name: "Named", loader: LoaderId(7) };
    reachable.reach_virtual(&mut Ground { known, methods, likely }, named, called, Spare::Nothing, &mut callees);
    let first = known.mirrors.visible("Named", LoaderId(7))[0];
    assert!(reachable.begin_to_leave(known, first, target));
    for number in 3..100 {
        graph.link(number);
    }
    let latest = graph.0.known.mirrors.visible("Named", LoaderId(7));
    assert!(!latest.contains(&first) && graph.0.reachable.leaves("Named", &latest, target));
}
