//! What the tests share: class files, and the probes they are given.

use headwater_rewriter::{ClassFile, Instructions, ProbeSite, Probes, Request};

/// Of `java/java/lang/HwProbe.java`.
pub const PROBES: Probes<'static> = Probes {
    allocate: Some("allocated"),
    before: Some("before"),
    receiver: Some("allocated"),
    ..Probes::of_methods("java/lang/HwProbe")
};

/// The same, where instructions are counted.
#[allow(dead_code, reason = "not by every test")]
pub const COUNTING: Probes<'static> = Probes { instructions: Instructions::Counted, ..PROBES };

/// All methods with code, with ids of every size.
pub fn all_methods(class: &ClassFile<'_>) -> Vec<Request> {
    const SPREAD: u32 = 700;
    let with_code = class.methods().iter().filter(|method| method.has_code());
    with_code.map(|method| Request::method(method.index, method.index as u32 * SPREAD)).collect()
}

/// Everything that can be probed: methods, two lines of each, calls, allocations.
#[allow(dead_code, reason = "not by every test")]
pub fn all_places(class: &ClassFile<'_>) -> Vec<Request> {
    const CALLS: std::ops::RangeInclusive<u8> = 0xb6..=0xba;
    const ALLOCATIONS: [u8; 4] = [0xbb, 0xbc, 0xbd, 0xc5];
    let mut requests = all_methods(class);
    for method in class.methods() {
        let Ok(Some(code)) = class.code(method) else { continue };
        let mut add = |place| {
            let id = requests.len() as u32;
            requests.push(Request { method_index: method.index, id, place });
        };
        if let Some(line) = code.lines(class).ok().and_then(|lines| lines.first().copied()) {
            add(ProbeSite::Lines { first: line.line, last: line.line.saturating_add(1) });
        }
        for instruction in code.instructions() {
            let offset = instruction.offset;
            if CALLS.contains(&instruction.opcode) {
                add(ProbeSite::Call { offset });
                add(ProbeSite::Before { offset });
                add(ProbeSite::Receiver { offset });
            } else if ALLOCATIONS.contains(&instruction.opcode) {
                add(ProbeSite::Allocation { offset });
            }
        }
    }
    requests
}
