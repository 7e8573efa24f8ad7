//! Whatever the bytes, errors point into them, and nothing panics.
#![no_main]

use headwater_rewriter::{ClassFile, call_sites};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let class = match ClassFile::parse(bytes) {
        Ok(class) => class,
        Err(error) => return assert!(error.offset <= bytes.len(), "{error}"),
    };
    let _ = (class.name(), class.super_name(), class.interfaces());
    for method in class.methods() {
        if let Err(error) = call_sites(&class, method.index) {
            assert!(error.offset <= bytes.len(), "{error}");
        }
    }
});
