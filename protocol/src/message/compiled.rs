//! What is compiled in the target.

use serde::{Deserialize, Serialize};

use super::MethodRef;

/// All code that is compiled at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledCode {
    /// The methods that are in it, each once.
    pub methods: Vec<MethodRef>,
    /// A piece for each of them that is compiled by itself, or several.
    pub pieces: Vec<CompiledPiece>,
}

/// What was compiled in one go. Its methods are indices into [`CompiledCode::methods`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledPiece {
    /// How large it is.
    pub bytes: u32,
    /// Whose code it is; `None` where that is not known.
    pub method: Option<u32>,
    /// The methods that are inlined in it, each once.
    pub inlined: Vec<u32>,
}
