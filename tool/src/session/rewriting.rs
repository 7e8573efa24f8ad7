//! Class files in, class files out: what the call graph selected, put in by the rewriter.

use std::time::Instant;

use headwater_protocol::word::Counting;
use headwater_protocol::{ClassId, LoaderId, MethodId, ThreadId};
use headwater_rewriter::{Around, Exceptions, Instructions, Place, Probes, Refusal, Refused, Request, Rewritten};

use super::{REWRITING, Session};
use crate::callgraph::{Guarded, Invoker, Lines, Occasion, Selected, Told};

/// What the probes call in the target.
const PROBES: Probes<'static> = Probes {
    class: headwater_runtime_java::PROBE_CLASS,
    enter: headwater_runtime_java::ENTER,
    exit: headwater_runtime_java::EXIT,
    throw: headwater_runtime_java::THROWN,
    allocate: Some(headwater_runtime_java::ALLOCATED),
    receive: Some(headwater_runtime_java::REFLECTED),
    argument: Some(headwater_runtime_java::HANDED_OVER),
    around: Some(Around { begin: headwater_runtime_java::BEGUN, end: headwater_runtime_java::DONE }),
    waiting: Some(Around { begin: headwater_runtime_java::WAIT_BEGINS, end: headwater_runtime_java::WAIT_ENDS }),
    before: Some(headwater_runtime_java::APPROACHED),
    receiver: Some(headwater_runtime_java::RECEIVED),
    exceptions: None,
    instructions: Instructions::Ignored,
};

/// Where exceptions are counted.
const EXCEPTIONS: Exceptions<'static> = Exceptions {
    seen: headwater_runtime_java::EXCEPTIONAL,
    passing: headwater_runtime_java::exception::PASSING,
    caught: headwater_runtime_java::exception::CAUGHT,
};

/// The probes that tell what is counted, too.
fn probes(what: Counting) -> Probes<'static> {
    let instructions = if what.bytecodes { Instructions::Counted } else { Instructions::Ignored };
    Probes { instructions, exceptions: what.exceptions.then_some(EXCEPTIONS), ..PROBES }
}

impl Session {
    /// The new bytes of a class, or `None` where it stays as it is.
    pub(super) fn rewrite(
        &mut self,
        thread: Option<ThreadId>,
        class: Option<ClassId>,
        loader: LoaderId,
        name: &str,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        let begun = Instant::now();
        self.tell_time();
        let rewritten = self.rewritten(thread, class, loader, name, bytes);
        self.spent.add(REWRITING, begun.elapsed());
        rewritten
    }

    fn rewritten(
        &mut self,
        thread: Option<ThreadId>,
        class: Option<ClassId>,
        loader: LoaderId,
        name: &str,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        if self.stopping {
            return None;
        }
        let by_graph = thread.is_some_and(|thread| self.inside.contains(&thread));
        let occasion = class.map_or(Occasion::Loading { by_graph }, Occasion::Retransforming);
        let selected = self.graph.class_bytes(occasion, loader, name, bytes);
        self.mark_roots();
        let invokers = self.graph.invokers(class, bytes);
        let methods = selected.iter().map(|method: &Selected| Request {
            method_index: method.method_index,
            id: method.id.0,
            place: method.lines.map_or(Place::Method, Lines::place),
        });
        let arguments = invokers.iter().map(|invoker| Request {
            method_index: invoker.method_index,
            id: invoker.kind,
            place: Place::FirstArgument,
        });
        let native_calls = self.graph.native_calls(class, loader, name, bytes).into_iter().map(|call| Request {
            method_index: call.method_index,
            id: call.id.0,
            place: Place::Call { offset: call.offset },
        });
        let passages = self.graph.passages(loader, class, name, bytes).into_iter().map(|passage| Request {
            method_index: passage.method_index,
            id: passage.kind,
            place: passage.place,
        });
        let waits = self.graph.wait_places(class, loader, name, bytes, &selected).into_iter().map(|waits| Request {
            method_index: waits.method_index,
            id: waits.wait.number(),
            place: waits.place,
        });
        let constructors = self.graph.exception_constructors(class, loader, name, bytes).into_iter();
        let made = constructors.map(|method_index| Request {
            method_index,
            id: headwater_runtime_java::exception::MADE,
            place: Place::Constructed,
        });
        let objects = self.graph.object_sites(class, loader, name, bytes, &selected).into_iter().map(|site| Request {
            method_index: site.method_index,
            id: site.number,
            place: Place::Allocation { offset: site.offset },
        });
        let others = arguments.chain(passages).chain(native_calls).chain(waits).chain(made).chain(objects);
        let mut requests: Vec<Request> = methods.chain(others).collect();
        let mut guards = self.graph.guards(class, loader, name, bytes);
        let mut without_guards = requests.len();
        requests.extend(guards.iter().map(guard_request));
        if requests.is_empty() {
            return None;
        }
        let probes = &probes(self.probed);
        let mut rewritten = headwater_rewriter::instrument(bytes, probes, &requests);
        // What is only counted gives way first.
        if let Ok(Rewritten { refused, .. }) = &rewritten
            && let (crowding, others) = requests.iter().partition::<Vec<Request>, _>(|it| takes_room(it, refused))
            && !crowding.is_empty()
        {
            self.graph.objects_refused(name, "their probes would make methods too large");
            without_guards -= crowding.len();
            requests = others;
            rewritten = headwater_rewriter::instrument(bytes, probes, &requests);
        }
        // Perhaps there is room without them. Other methods keep theirs: they may be running.
        while let Ok(Rewritten { refused, .. }) = &rewritten
            && let (crowded, fit) = guards.iter().partition::<Vec<Guarded>, _>(|guard| is_in_the_way(guard, refused))
            && !crowded.is_empty()
        {
            self.graph.refuse_guards(&crowded);
            guards = fit;
            requests.truncate(without_guards);
            requests.extend(guards.iter().map(guard_request));
            rewritten = headwater_rewriter::instrument(bytes, probes, &requests);
        }
        let full = rewritten.as_ref().map_or(Vec::new(), |rewritten| crowded(&rewritten.refused));
        let is_crowding = |it: &Request| is_call(it.place) && full.contains(&it.method_index);
        let (crowding, others): (Vec<Request>, Vec<Request>) = requests.iter().partition(|it| is_crowding(it));
        if !crowding.is_empty() {
            for call in crowding {
                let reason = "the method that makes it is too large for probes around it";
                match call.place {
                    Place::Wait { .. } => self.graph.wait_refused(name, reason),
                    _ => self.graph.native_call_refused(MethodId(call.id), reason),
                }
            }
            requests = others;
            rewritten = headwater_rewriter::instrument(bytes, probes, &requests);
        }
        match rewritten {
            Ok(rewritten) => {
                for refused in &rewritten.refused {
                    let Request { method_index, id, place } = refused.request;
                    let reason = refused.refusal.to_string();
                    match place {
                        Place::FirstArgument => self.graph.invoker_refused(Invoker { method_index, kind: id }, &reason),
                        Place::Call { .. } => self.graph.native_call_refused(MethodId(id), &reason),
                        Place::Argument { .. } | Place::Around { .. } => self.graph.passage_refused(name, &reason),
                        Place::Wait { .. } | Place::Constructed => self.graph.wait_refused(name, &reason),
                        Place::Allocation { .. } => self.graph.objects_refused(name, &reason),
                        _ if refused.refusal == Refusal::NoSuchPlace => self.graph.no_such_lines(MethodId(id)),
                        _ => self.graph.refused(MethodId(id), reason),
                    }
                }
                for Refused { request, refusal } in rewritten.uncounted {
                    self.not_counted(MethodId(request.id), &refusal);
                }
                (rewritten.refused.len() < requests.len()).then_some(rewritten.bytes)
            }
            Err(error) => {
                for method in &selected {
                    self.graph.refused(method.id, format!("its class file could not be read: {error}"));
                }
                self.remark(format!("the class file of {name} could not be read: {error}"));
                None
            }
        }
    }

    /// A method's instructions cannot be counted.
    fn not_counted(&mut self, method: MethodId, why: &Refusal) {
        let Some(record) = self.graph.methods().iter().find(|record| record.id == method) else { return };
        self.remark(format!("bytecodes of {} are not counted: {why}", record.java_name()));
    }

    /// Remembers something for the report, once: a class may be retransformed more than once.
    fn remark(&mut self, remark: String) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Declares the roots that are about to be instrumented.
    pub(super) fn mark_roots(&mut self) {
        for method in self.graph.take_new_roots() {
            self.segment.mark_root(method);
        }
    }
}

fn guard_request(guard: &Guarded) -> Request {
    let &Guarded { method_index, offset, told, .. } = guard;
    match told {
        Told::Passed(guard) => Request { method_index, id: guard.0, place: Place::Before { offset } },
        Told::Receiver(call) => Request { method_index, id: call, place: Place::Receiver { offset } },
    }
}

/// Whether an object that is told of takes room that something has been refused for.
fn takes_room(request: &Request, refused: &[Refused]) -> bool {
    let is_in_the_way = |it: &Refused| {
        let in_method = it.request.method_index == request.method_index && it.refusal.is_for_room();
        in_method || it.refusal == Refusal::ConstantPoolFull
    };
    matches!(request.place, Place::Allocation { .. }) && refused.iter().any(is_in_the_way)
}

/// Whether something was refused that might not be without a guard.
fn is_in_the_way(guard: &Guarded, refused: &[Refused]) -> bool {
    refused.iter().any(|it| it.request.method_index == guard.method_index || it.refusal == Refusal::ConstantPoolFull)
}

fn is_call(place: Place) -> bool {
    matches!(place, Place::Call { .. } | Place::Wait { call: Some(_) })
}

/// Methods that are refused as wholes.
fn crowded(refused: &[Refused]) -> Vec<usize> {
    refused.iter().filter(|it| it.request.place == Place::Method).map(|it| it.request.method_index).collect()
}
