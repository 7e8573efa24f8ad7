//! Class files in, class files out: what the call graph selected, put in by the rewriter.

use std::time::Instant;

use headwater_protocol::word::Counting;
use headwater_protocol::{ClassId, LoaderId, MethodId, ThreadId};
use headwater_rewriter::{
    Around, ClassFile, Exceptions, Instructions, ProbeSite, Probes, Refusal, Refused, Request, instrument_class,
};

use super::{REWRITING, Session};
use crate::callgraph::{Guarded, Invoker, Occasion, Requests};

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
        let file = match ClassFile::parse(bytes) {
            Ok(file) => file,
            // One that is being loaded is the JVM's to refuse, or to accept; either way we leave it alone.
            Err(error) => {
                if class.is_some() {
                    self.remark(format!("the class file of {name} could not be read: {error}"));
                }
                return None;
            }
        };
        let by_graph = thread.is_some_and(|thread| self.inside.contains_key(&thread));
        let occasion = class.map_or(Occasion::Loading { by_graph }, Occasion::Retransforming);
        let Requests { mut guards, others: mut requests } = self.graph.requests(occasion, loader, name, &file);
        self.mark_roots();
        let mut without_guards = requests.len();
        requests.extend(guards.iter().map(Guarded::request));
        if requests.is_empty() {
            return None;
        }
        let probes = &probes(self.probed);
        let mut rewritten = instrument_class(&file, probes, &requests);
        // What is only counted gives way first.
        let takes_room = |it: &Request| takes_room(it, &rewritten.refused);
        let (crowding, others): (Vec<Request>, Vec<Request>) = requests.iter().partition(|it| takes_room(it));
        if !crowding.is_empty() {
            self.graph.objects_refused(name, "their probes would make methods too large");
            without_guards -= crowding.len();
            requests = others;
            rewritten = instrument_class(&file, probes, &requests);
        }
        // Perhaps there is room without them. Other methods keep theirs: they may be running.
        while let (crowded, fit) =
            guards.iter().partition::<Vec<Guarded>, _>(|guard| is_in_the_way(guard, &rewritten.refused))
            && !crowded.is_empty()
        {
            self.graph.refuse_guards(&crowded);
            guards = fit;
            requests.truncate(without_guards);
            requests.extend(guards.iter().map(Guarded::request));
            rewritten = instrument_class(&file, probes, &requests);
        }
        let full = crowded(&rewritten.refused);
        let is_crowding = |it: &Request| is_call(it.place) && full.contains(&it.method_index);
        let (crowding, others): (Vec<Request>, Vec<Request>) = requests.iter().partition(|it| is_crowding(it));
        if !crowding.is_empty() {
            for call in crowding {
                let reason = "the method that makes it is too large for probes around it";
                match call.place {
                    ProbeSite::Wait { .. } => self.graph.wait_refused(name, reason),
                    _ => self.graph.native_call_refused(MethodId(call.id), reason),
                }
            }
            requests = others;
            rewritten = instrument_class(&file, probes, &requests);
        }
        for refused in &rewritten.refused {
            let Request { method_index, id, place } = refused.request;
            let reason = refused.refusal.to_string();
            match place {
                ProbeSite::FirstArgument => self.graph.invoker_refused(Invoker { method_index, kind: id }, &reason),
                ProbeSite::Call { .. } => self.graph.native_call_refused(MethodId(id), &reason),
                ProbeSite::Argument { .. } | ProbeSite::Around { .. } => self.graph.passage_refused(name, &reason),
                ProbeSite::Wait { .. } | ProbeSite::Constructed => self.graph.wait_refused(name, &reason),
                ProbeSite::Allocation { .. } => self.graph.objects_refused(name, &reason),
                _ if refused.refusal == Refusal::NoSuchPlace => self.graph.no_such_lines(MethodId(id)),
                _ => self.graph.refused(MethodId(id), reason),
            }
        }
        for Refused { request, refusal } in rewritten.uncounted {
            self.not_counted(MethodId(request.id), &refusal);
        }
        (rewritten.refused.len() < requests.len()).then_some(rewritten.bytes)
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

/// Whether an object that is told of takes room that something has been refused for.
fn takes_room(request: &Request, refused: &[Refused]) -> bool {
    let is_in_the_way = |it: &Refused| {
        let in_method = it.request.method_index == request.method_index && it.refusal.is_for_room();
        in_method || it.refusal == Refusal::ConstantPoolFull
    };
    matches!(request.place, ProbeSite::Allocation { .. }) && refused.iter().any(is_in_the_way)
}

/// Whether something was refused that might not be without a guard.
fn is_in_the_way(guard: &Guarded, refused: &[Refused]) -> bool {
    refused.iter().any(|it| it.request.method_index == guard.method_index || it.refusal == Refusal::ConstantPoolFull)
}

fn is_call(place: ProbeSite) -> bool {
    matches!(place, ProbeSite::Call { .. } | ProbeSite::Wait { call: Some(_) })
}

/// Methods that are refused as wholes.
fn crowded(refused: &[Refused]) -> Vec<usize> {
    refused.iter().filter(|it| it.request.place == ProbeSite::Method).map(|it| it.request.method_index).collect()
}
