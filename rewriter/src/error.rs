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
    /// There is no room for the operands of the probes.
    #[error("its operand stack is full (65,535 slots)")]
    StackFull,
    /// There are no more local variables.
    #[error("its local variables are full (65,535 slots)")]
    LocalsFull,
    /// There is no room for the rows that the probes need.
    #[error("its exception table is full (65,535 rows)")]
    ExceptionTableFull,
    /// There is no room for the frames that the probes need.
    #[error("its stack map would grow past what a JVM reads")]
    StackMapFull,
    /// Its types cannot be followed with bearable effort.
    #[error("its control flow is too complex to be followed")]
    TooComplex,
    /// A region of lines begins or ends inside a subroutine (jsr/ret).
    #[error("the lines divide a subroutine (jsr/ret)")]
    Subroutines,
    /// Two regions of lines overlap without one lying in the other.
    #[error("the lines overlap with other lines that are probed")]
    RegionsCross,
    /// The method has no such line, call or allocation.
    #[error("there is no such place in its code")]
    NoSuchPlace,
    /// Allocations are to be probed without a method to call.
    #[error("there is no probe for allocations")]
    NoProbe,
    /// HotSpot takes objects for finalizable unless their `finalize` does nothing but return.
    #[error("it is an empty finalizer: with probes in it, its class's objects would become finalizable")]
    EmptyFinalizer,
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
    /// Whether something was too large: with fewer probes there may be room.
    pub fn is_for_room(&self) -> bool {
        matches!(
            self,
            Refusal::CodeTooLarge
                | Refusal::ConstantPoolFull
                | Refusal::StackFull
                | Refusal::LocalsFull
                | Refusal::ExceptionTableFull
                | Refusal::StackMapFull
        )
    }

    /// A stable short name.
    pub fn code(&self) -> &'static str {
        match self {
            Refusal::CodeTooLarge => "code-too-large",
            Refusal::ConstantPoolFull => "constant-pool-full",
            Refusal::StackFull => "stack-full",
            Refusal::LocalsFull => "locals-full",
            Refusal::ExceptionTableFull => "exception-table-full",
            Refusal::StackMapFull => "stack-map-full",
            Refusal::TooComplex => "too-complex",
            Refusal::Subroutines => "subroutines",
            Refusal::RegionsCross => "regions-cross",
            Refusal::NoSuchPlace => "no-such-place",
            Refusal::NoProbe => "no-probe",
            Refusal::EmptyFinalizer => "empty-finalizer",
            Refusal::NoCode => "no-code",
            Refusal::NoSuchMethod => "no-such-method",
            Refusal::Malformed(_) => "malformed",
        }
    }
}
