//! A JVM from outside: which there are ([`jvm`]), its attach protocol ([`attach`]), its flight recorder ([`flight_recorder`]), what tools that are gone have left ([`leftovers`]).

pub mod attach;
pub mod flight_recorder;
pub mod jvm;
pub mod leftovers;
mod rights;
