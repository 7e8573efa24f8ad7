//! A JVM from outside: which there are ([`jvm`]), its attach protocol ([`attach`]), its flight recorder ([`flight_recorder`]).

pub mod attach;
pub mod flight_recorder;
pub mod jvm;
mod rights;
