//! Class file in, class file out: method entry and exit probes, relocated exactly.
//!
//! Pure: no I/O, no JVM, no unsafe code. [`ClassFile::parse`] reads the structure of a class file, [`call_sites`] tells
//! what a method calls, [`instrument`] inserts probes. Bytes that need not change come out the same; the constant pool is only
//! ever appended to; what cannot be instrumented is refused by method, with a [`Refusal`].
//!
//! Reader and writer follow the sections of the class file format (JVMS 4):
//! [`ClassFile`] 4.1, constant pool 4.4, methods 4.6, attributes 4.7, and, within the Code attribute, instructions,
//! exception table, stack map frames and the tables for debuggers.
#![forbid(unsafe_code)]

mod allocations;
mod attributes;
mod call_sites;
mod class_file;
mod code;
mod constant_pool;
mod constructor;
mod error;
mod executed;
mod frame_writer;
mod frames;
mod instructions;
mod instrument;
mod lambdas;
mod layout;
mod likelihood;
mod paths;
mod places;
mod probes;
mod reader;
mod regions;
mod signatures;
mod type_annotations;
mod types;
mod walk;

pub use allocations::{AllocationSite, allocation_sites};
pub use call_sites::{
    CallKind, CallSite, CallSites, DynamicSite, call_sites, constant_sites, descriptor_classes, parameters, returned,
};
pub use class_file::{ClassFile, Method};
pub use code::{Code, ExceptionRange, Line, Variable};
pub use error::{Error, Refusal};
pub use instructions::Instruction;
pub use instrument::{Rewritten, instrument, instrument_class, reassemble};
pub use lambdas::{Lambda, lambdas};
pub use likelihood::Likelihood;
pub use probes::{Around, Exceptions, Instructions, ProbeSite, Probes, Refused, Request};
