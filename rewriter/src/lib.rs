//! Class file in, class file out: method entry and exit probes, relocated exactly.
//!
//! Pure: no I/O, no JVM, no unsafe code.
#![forbid(unsafe_code)]
