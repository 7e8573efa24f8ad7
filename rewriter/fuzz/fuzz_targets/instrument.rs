//! What is instrumented can be read, taken apart and put together; and instrumented once more.
#![no_main]

use headwater_rewriter::{ClassFile, Probes, Request, instrument, reassemble};
use libfuzzer_sys::fuzz_target;

const PROBES: Probes<'static> = Probes::of_methods("java/lang/HwProbe");

fuzz_target!(|bytes: &[u8]| {
    let Ok(class) = ClassFile::parse(bytes) else { return };
    let requests: Vec<_> = class
        .methods()
        .iter()
        .map(|method| Request::method(method.index, method.index as u32 * 700))
        .collect();
    let Ok(rewritten) = instrument(bytes, &PROBES, &requests) else { return };
    ClassFile::parse(&rewritten.bytes).expect("what we write can be read");
    if rewritten.refused.is_empty() {
        let again = reassemble(&rewritten.bytes).expect("what we write can be taken apart");
        assert!(again == rewritten.bytes, "not the same bytes");
        instrument(&rewritten.bytes, &PROBES, &requests).expect("what we write can be instrumented");
    }
});
