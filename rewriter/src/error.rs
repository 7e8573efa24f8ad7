//! What can be wrong with a class file, and why a method is refused.

/// A class file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at offset {offset}: expected {expected}")]
pub struct Error {
    /// Absolute, in the class file.
    pub offset: usize,
    /// What should have been there.
    pub expected: &'static str,
}

impl Error {
    #[cold]
    pub(crate) fn new(offset: usize, expected: &'static str) -> Error {
        Error { offset, expected }
    }
}

/// Why a method is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// JVMS 4.7.3 limits a method's code to 65,535 bytes.
    #[error("its code would grow past 65,535 bytes")]
    CodeTooLarge,
    /// The class has no room for the probes' constants.
    #[error("its class's constant pool is full")]
    ConstantPoolFull,
    /// `jsr` and `ret`, of compilers before Java 6.
    #[error("its code uses subroutines (jsr/ret)")]
    Subroutines,
    /// A conditional branch would need more than 16 bits.
    #[error("a conditional branch would span more than 32 KiB")]
    BranchTooFar,
    /// The call of `super(...)` or `this(...)` could not be told with certainty.
    #[error("its call of the super constructor cannot be told with certainty")]
    SuperCallUnclear,
    /// There is nothing to instrument.
    #[error("it has no code")]
    NoCode,
    /// The method asked for does not exist.
    #[error("its class file has no such method")]
    NoSuchMethod,
    /// Its code cannot be read.
    #[error("its code is malformed: {0}")]
    Malformed(#[from] Error),
}

impl Refusal {
    /// A stable short name.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::CodeTooLarge => "code-too-large",
            Refusal::ConstantPoolFull => "constant-pool-full",
            Refusal::Subroutines => "subroutines",
            Refusal::BranchTooFar => "branch-too-far",
            Refusal::SuperCallUnclear => "super-call-unclear",
            Refusal::NoCode => "no-code",
            Refusal::NoSuchMethod => "no-such-method",
            Refusal::Malformed(_) => "malformed",
        }
    }
}
