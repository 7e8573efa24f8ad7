//! Taken apart and put together, a class file is the same bytes.
#![no_main]

use headwater_rewriter::reassemble;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(again) = reassemble(bytes) {
        assert!(again == bytes, "not the same bytes");
    }
});
