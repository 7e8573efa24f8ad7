//! What users ask for, wherever they do, on the command line, at the prompt, in scripts: options and their values, where results go, and
//! what is told meanwhile.

pub(crate) mod count;
pub(crate) mod destination;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod locks;
pub(crate) mod output;
pub(crate) mod profile;
pub(crate) mod progress;
pub(crate) mod sample;
mod signals;
pub(crate) mod threads;
pub(crate) mod timing;
pub(crate) mod values;
pub(crate) mod view;

pub(crate) use profile::ProfileArgs;
pub(crate) use signals::interrupted;
pub(crate) use values::duration;
