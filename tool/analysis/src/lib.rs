//! From events to a profile's trees.
//!
//! [`decode`] makes calling context trees ([`cct`]) of the event words that threads wrote, [`cpu_share`] says when these ran or waited,
//! [`timing`] times root calls as wholes, [`correction`] turns what was measured into what the program takes without probes, and
//! [`budget`] decides which methods lose theirs.

pub mod budget;
pub mod cct;
pub mod correction;
pub mod cpu_share;
pub mod decode;
pub mod timing;
