//! What is to be probed, and what the probes call.

use crate::constant_pool::{Appended, Mark};
use crate::instructions::{INVOKESTATIC, LDC, LDC_W};
use crate::{Refusal, layout};

/// The methods that instrumented code calls: static, visible to every class.
#[derive(Clone, Copy, Debug)]
pub struct Probes<'p> {
    /// Internal name of their class.
    pub class: &'p str,
    /// Called when a method or region is entered, with its id: `(I)Ljava/lang/Object;`. What it returns is the call's token.
    pub enter: &'p str,
    /// Called when it is left. A method's is given the token, which was in a local variable meanwhile, and the id:
    /// `(Ljava/lang/Object;I)V`. A region may be entered in many places, and keeps none: `(I)V`. Where instructions are counted,
    /// their number comes before the id: `(Ljava/lang/Object;JI)V` and `(JI)V`.
    pub exit: &'p str,
    /// Called when an exception leaves it, in the same way.
    pub throw: &'p str,
    /// Called behind an allocation, with the id of the place. What it is given keeps no object from being none to the compiler: of an object its class
    /// (`null` in class files that have no constants for classes, before version 49), `(Ljava/lang/Class;I)V`; of an array its length, and its elements'
    /// type as `newarray` has it, 0 for references, `(III)V`. Of arrays in arrays the outer one and how many dimensions were made,
    /// `(Ljava/lang/Object;II)V`. `None` if allocations are not probed.
    pub allocate: Option<&'p str>,
    /// Called with the first argument of a method, and the id of the place: `(Ljava/lang/Object;I)V`. `None` if arguments are
    /// not passed.
    pub receive: Option<&'p str>,
    /// Called with an argument of a method, and the id of the place: `(Ljava/lang/Object;I)V`. `None` if arguments are not handed
    /// out.
    pub argument: Option<&'p str>,
    /// Called around what is done for an object: with it, or `null` when an exception ends that, and the id of the place:
    /// `(Ljava/lang/Object;I)V` both. `None` if such places are not probed.
    pub around: Option<Around<'p>>,
    /// Called around what may wait, with the id of the place: `(I)V` both. `None` if such places are not probed.
    pub waiting: Option<Around<'p>>,
    /// Called before an instruction, with the id of the place: `(I)V`. `None` if such places are not probed.
    pub before: Option<&'p str>,
    /// Called before a call, with the object that it is made on (perhaps `null`), and the id of the place:
    /// `(Ljava/lang/Object;I)V`. `None` if receivers are not passed.
    pub receiver: Option<&'p str>,
    /// Called with exceptions that probed methods come to see. `None` if nobody wants to.
    pub exceptions: Option<Exceptions<'p>>,
    /// Whether `exit` and `throw` are given the number of instructions that were executed.
    pub instructions: Instructions,
}

/// What is called with exceptions, and a number: `(Ljava/lang/Object;I)V`. An exception that leaves a method is given to `throw`, before the token:
/// `(Ljava/lang/Object;Ljava/lang/Object;I)V`, or `(Ljava/lang/Object;Ljava/lang/Object;JI)V`.
#[derive(Clone, Copy, Debug)]
pub struct Exceptions<'p> {
    /// Its name.
    pub seen: &'p str,
    /// The number where a handler begins that is for any exception: `finally`, and the end of `synchronized`.
    pub passing: u32,
    /// The number where another handler begins.
    pub caught: u32,
}

/// Whether the instructions that methods and regions execute are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Instructions {
    /// They are not.
    #[default]
    Ignored,
    /// Those of the class file, by blocks: each counts as a whole as soon as it is entered. No inserted ones.
    Counted,
}

impl<'p> Probes<'p> {
    /// Those of whole methods and regions only, by the names `enter`, `exit` and `thrown`.
    pub const fn of_methods(class: &'p str) -> Probes<'p> {
        Probes {
            class,
            enter: "enter",
            exit: "exit",
            throw: "thrown",
            allocate: None,
            receive: None,
            argument: None,
            around: None,
            waiting: None,
            before: None,
            receiver: None,
            exceptions: None,
            instructions: Instructions::Ignored,
        }
    }
}

/// What is called around something.
#[derive(Clone, Copy, Debug)]
pub struct Around<'p> {
    /// Before.
    pub begin: &'p str,
    /// Afterwards.
    pub end: &'p str,
}

/// What is probed in a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeSite {
    /// All of it: entry, and every exit.
    Method,
    /// A region of its code: all instructions that belong to lines of the source.
    Lines {
        /// The first line.
        first: u16,
        /// The last line.
        last: u16,
    },
    /// A call: the invoke instruction at an offset of the code.
    Call {
        /// Of the instruction.
        offset: u32,
    },
    /// An allocation: the `new`, `newarray`, `anewarray` or `multianewarray` at an offset of the code. An object's constructor has not been called then.
    Allocation {
        /// Of the instruction.
        offset: u32,
    },
    /// The receiver, when the method is entered; of a static method its first argument, which must be a reference. Not of a
    /// constructor, which has no receiver yet.
    FirstArgument,
    /// A reference among the method's parameters, when it is entered.
    Argument {
        /// The local variable that it comes in. Not a constructor's receiver.
        local: u16,
    },
    /// All of the method, or a single call: both ends are told which object it is done for.
    Around {
        /// Of the invoke instruction; `None` for the method.
        call: Option<u32>,
        /// The local variable that holds the object from the one end to the other.
        local: u16,
    },
    /// All of the method, within its own probes, or a single call: it may wait.
    Wait {
        /// Of the invoke instruction; `None` for the method.
        call: Option<u32>,
    },
    /// A constructor, when it returns: [`Exceptions::seen`] is called with what it has constructed.
    Constructed,
    /// An instruction: its probe is called on every way to it, and nothing when it is done.
    Before {
        /// Of the instruction.
        offset: u32,
    },
    /// What a call is made on, before it is made.
    Receiver {
        /// Of the `invokevirtual` or `invokeinterface` instruction.
        offset: u32,
    },
}

impl ProbeSite {
    /// Whether what is executed there can be counted for it. A single call's instruction counts as its method's.
    pub(crate) fn has_instructions(self) -> bool {
        matches!(self, ProbeSite::Method | ProbeSite::Lines { .. })
    }
}

/// Something to be probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which method, in the order of declaration.
    pub method_index: usize,
    /// What the probes are called with.
    pub id: u32,
    /// Where.
    pub place: ProbeSite,
}

impl Request {
    /// A method's entry and exits.
    pub fn method(method_index: usize, id: u32) -> Request {
        Request { method_index, id, place: ProbeSite::Method }
    }
}

/// A request that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which one.
    pub request: Request,
    /// Why.
    pub refusal: Refusal,
}

/// Which probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    Enter,
    Exit,
    Throw,
    ExitRegion,
    ThrowRegion,
    ExitCounted,
    ThrowCounted,
    ExitRegionCounted,
    ThrowRegionCounted,
    ThrowSeen,
    ThrowSeenCounted,
    Seen,
    Allocated,
    AllocatedArray,
    AllocatedArrays,
    Receive,
    Argument,
    Begin,
    End,
    Waits,
    Waited,
    Before,
    Receiver,
}

/// How many there are.
const PROBES: usize = Probe::Receiver as usize + 1;

/// Makes calls of the probes for one class.
#[derive(Debug)]
pub(crate) struct Caller<'p> {
    probes: &'p Probes<'p>,
    /// Whether instructions are counted in the method at hand.
    pub(crate) instructions: Instructions,
    /// Constant pool index of each probe that has been called.
    indexes: [Option<u16>; PROBES],
}

impl<'p> Caller<'p> {
    pub(crate) fn new(probes: &'p Probes<'p>) -> Caller<'p> {
        Caller { probes, instructions: probes.instructions, indexes: [None; PROBES] }
    }

    /// What is called with exceptions, if something is.
    pub(crate) fn exceptions(&self) -> Option<Exceptions<'p>> {
        self.probes.exceptions
    }

    /// Appends the code of a call to an arena; `operand` is the code that pushes what comes before the id.
    pub(crate) fn call(
        &mut self,
        probe: Probe,
        operand: &[u8],
        push: &Push,
        appended: &mut Appended,
        arena: &mut Vec<u8>,
    ) -> Result<layout::Piece, Refusal> {
        let index = match self.indexes[probe as usize] {
            Some(index) => index,
            None => {
                const WITH_OBJECT: &str = "(Ljava/lang/Object;I)V";
                let around = self.probes.around.ok_or(Refusal::NoProbe);
                let waiting = self.probes.waiting.ok_or(Refusal::NoProbe);
                let exceptions = self.probes.exceptions.ok_or(Refusal::NoProbe);
                let allocated = self.probes.allocate.ok_or(Refusal::NoProbe);
                let (name, descriptor) = match probe {
                    Probe::Enter => (self.probes.enter, "(I)Ljava/lang/Object;"),
                    Probe::Exit => (self.probes.exit, WITH_OBJECT),
                    Probe::Throw => (self.probes.throw, WITH_OBJECT),
                    Probe::ExitRegion => (self.probes.exit, "(I)V"),
                    Probe::ThrowRegion => (self.probes.throw, "(I)V"),
                    Probe::ExitCounted => (self.probes.exit, "(Ljava/lang/Object;JI)V"),
                    Probe::ThrowCounted => (self.probes.throw, "(Ljava/lang/Object;JI)V"),
                    Probe::ExitRegionCounted => (self.probes.exit, "(JI)V"),
                    Probe::ThrowRegionCounted => (self.probes.throw, "(JI)V"),
                    Probe::ThrowSeen => (self.probes.throw, "(Ljava/lang/Object;Ljava/lang/Object;I)V"),
                    Probe::ThrowSeenCounted => (self.probes.throw, "(Ljava/lang/Object;Ljava/lang/Object;JI)V"),
                    Probe::Seen => (exceptions?.seen, WITH_OBJECT),
                    Probe::Receive => (self.probes.receive.ok_or(Refusal::NoProbe)?, WITH_OBJECT),
                    Probe::Allocated => (allocated?, "(Ljava/lang/Class;I)V"),
                    Probe::AllocatedArray => (allocated?, "(III)V"),
                    Probe::AllocatedArrays => (allocated?, "(Ljava/lang/Object;II)V"),
                    Probe::Argument => (self.probes.argument.ok_or(Refusal::NoProbe)?, WITH_OBJECT),
                    Probe::Begin => (around?.begin, WITH_OBJECT),
                    Probe::End => (around?.end, WITH_OBJECT),
                    Probe::Waits => (waiting?.begin, "(I)V"),
                    Probe::Waited => (waiting?.end, "(I)V"),
                    Probe::Before => (self.probes.before.ok_or(Refusal::NoProbe)?, "(I)V"),
                    Probe::Receiver => (self.probes.receiver.ok_or(Refusal::NoProbe)?, WITH_OBJECT),
                };
                let index = appended.method(self.probes.class, name, descriptor)?;
                self.indexes[probe as usize] = Some(index);
                index
            }
        };
        let start = arena.len() as u32;
        arena.extend_from_slice(operand);
        arena.extend_from_slice(push.bytes());
        arena.push(INVOKESTATIC);
        arena.extend(index.to_be_bytes());
        Ok(start..arena.len() as u32)
    }

    /// Forgets what was appended to the constant pool since.
    pub(crate) fn rewind(&mut self, appended: &mut Appended, mark: Mark) {
        appended.rewind(mark);
        self.indexes = [None; PROBES];
    }
}

/// The shortest instruction that pushes a number, an id mostly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Push {
    bytes: [u8; 3],
    length: usize,
}

impl Push {
    pub(crate) fn new(id: u32, appended: &mut Appended) -> Result<Push, Refusal> {
        let [.., high, low] = id.to_be_bytes();
        let (bytes, length) = match id {
            0..=5 => ([0x03 + low, 0, 0], 1),
            6..=0x7f => ([0x10, low, 0], 2),
            0x80..=0x7fff => ([0x11, high, low], 3),
            _ => match appended.integer(id)?.to_be_bytes() {
                [0, low] => ([LDC, low, 0], 2),
                [high, low] => ([LDC_W, high, low], 3),
            },
        };
        Ok(Push { bytes, length })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
