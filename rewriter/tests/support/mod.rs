//! What the tests share: class files, and the probes they are given.

use headwater_rewriter::{ClassFile, Probes, Request};

/// Of `java/java/lang/HwProbe.java`.
pub const PROBES: Probes<'static> =
    Probes { class: "java/lang/HwProbe", enter: "enter", exit: "exit", throw: "thrown", allocate: Some("allocated") };

/// All methods with code, with ids of every size.
pub fn all_methods(class: &ClassFile<'_>) -> Vec<Request> {
    const SPREAD: u32 = 700;
    let with_code = class.methods().iter().filter(|method| method.has_code());
    with_code.map(|method| Request::method(method.index, method.index as u32 * SPREAD)).collect()
}
