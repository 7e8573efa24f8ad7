//! The Java classes that instrumented methods call, compiled.
//!
//! The sources are in `java/`; the class files in `classes/` are committed, so that building Headwater needs no JDK.
//! `cargo xtask runtime` compiles them again, and a test demands that they are fresh.

mod constants;

/// Internal name of the class whose methods the probes call.
pub const PROBE_CLASS: &str = "java/lang/HeadwaterV1";
/// Internal name of the class whose methods the agent calls.
pub const SESSION_CLASS: &str = "java/lang/HeadwaterV1Session";
/// `(I)Ljava/lang/Object;`: first instruction of an instrumented method, or part of one. Returns the call's token.
pub const ENTER: &str = "enter";
/// `(Ljava/lang/Object;I)V`: before a return, with the token; `(I)V`: where control leaves a part of a method. Where instructions are
/// counted, with their number: `(Ljava/lang/Object;JI)V` and `(JI)V`.
pub const EXIT: &str = "exit";
/// The same, when an exception leaves the method or the part. Where exceptions are counted, a method's has the exception before the token.
pub const THROWN: &str = "thrown";
/// `(I)V`: before a call that is not expected to be made.
pub const APPROACHED: &str = "approached";
/// `(Ljava/lang/Object;I)V`: before a virtual call, with what it is made on, and a number below [`RECEIVING_CALLS`].
pub const RECEIVED: &str = "received";
/// So many numbers there are for such calls.
pub const RECEIVING_CALLS: u32 = 2048;
/// `(Ljava/lang/Object;I)V`: in what runs a method by reflection or by a handle, with the object that stands for that method, and
/// its kind: a sum of [`OF_CONSTRUCTOR`], [`OF_HANDLE`] and [`OF_JDK_TOO`].
pub const REFLECTED: &str = "reflected";
/// The object stands for a constructor, not for another method.
pub const OF_CONSTRUCTOR: u32 = 1;
/// The object is a direct method handle, not a `Method` or `Constructor`.
pub const OF_HANDLE: u32 = 2;
/// Handles of methods of the bootstrap loader's classes count too.
pub const OF_JDK_TOO: u32 = 4;

/// `(Ljava/lang/Object;I)V`: where work is handed to another thread, with the object that stands for it, and one of [`handover`].
pub const HANDED_OVER: &str = "handedOver";
/// `(Ljava/lang/Object;I)V`: before such work is done.
pub const BEGUN: &str = "begun";
/// `(Ljava/lang/Object;I)V`: when it has been done; with `null` when an exception left it.
pub const DONE: &str = "done";

/// `(I)V`: before what may wait, with the number of what it waits in, as the protocol has it.
pub const WAIT_BEGINS: &str = "waitBegins";
/// `(I)V`: behind it, also when an exception leaves it.
pub const WAIT_ENDS: &str = "waitEnds";

/// `(Ljava/lang/Object;I)V`: with an exception, where it is made or a handler for it begins, and what becomes of it: one of [`exception`].
pub const EXCEPTIONAL: &str = "exceptional";

/// What becomes of an exception.
pub mod exception {
    /// It is made.
    pub const MADE: u32 = 0;
    /// It comes to a handler that is for any exception, and is thrown on.
    pub const PASSING: u32 = 1;
    /// It is caught.
    pub const CAUGHT: u32 = 2;
}

/// Behind an allocation: `(Ljava/lang/Class;I)V` with an object's class, `(III)V` with an array's length and its elements' type as `newarray` has it,
/// `(Ljava/lang/Object;II)V` with an array and how many dimensions were made; last the number of the site.
pub const ALLOCATED: &str = "allocated";

/// All that instrumented methods call, by name and descriptor.
pub const PROBES: [(&str, &str); 23] = [
    (ENTER, "(I)Ljava/lang/Object;"),
    (EXIT, "(Ljava/lang/Object;I)V"),
    (THROWN, "(Ljava/lang/Object;I)V"),
    (EXIT, "(I)V"),
    (THROWN, "(I)V"),
    (EXIT, "(Ljava/lang/Object;JI)V"),
    (THROWN, "(Ljava/lang/Object;JI)V"),
    (EXIT, "(JI)V"),
    (THROWN, "(JI)V"),
    (THROWN, "(Ljava/lang/Object;Ljava/lang/Object;I)V"),
    (THROWN, "(Ljava/lang/Object;Ljava/lang/Object;JI)V"),
    (EXCEPTIONAL, "(Ljava/lang/Object;I)V"),
    (ALLOCATED, "(Ljava/lang/Class;I)V"),
    (ALLOCATED, "(III)V"),
    (ALLOCATED, "(Ljava/lang/Object;II)V"),
    (APPROACHED, "(I)V"),
    (RECEIVED, "(Ljava/lang/Object;I)V"),
    (REFLECTED, "(Ljava/lang/Object;I)V"),
    (HANDED_OVER, "(Ljava/lang/Object;I)V"),
    (BEGUN, "(Ljava/lang/Object;I)V"),
    (DONE, "(Ljava/lang/Object;I)V"),
    (WAIT_BEGINS, "(I)V"),
    (WAIT_ENDS, "(I)V"),
];

/// What a place where work is handed over does with its object.
pub mod handover {
    /// A thread, which is the object, is started.
    pub const START: u32 = 0;
    /// The object will be run.
    pub const TASK: u32 = 1;
    /// The object will be handed over to be run when something else is done.
    pub const STAGE: u32 = 2;
    /// The object will not be run after all, not by another thread at least.
    pub const REJECTED: u32 = 3;
    /// The object is what the thread, an executor's, runs next.
    pub const NEXT: u32 = 4;
    /// The object has been run by such a thread.
    pub const RAN: u32 = 5;
    /// Of what is run: the object is the thread that does it, from its beginning to its end.
    pub const OWN: u32 = 1;
    /// Of what is run: on whatever thread, perhaps one that was started for it.
    pub const ANYWHERE: u32 = 2;
}

/// A class to be defined with the bootstrap loader.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeClass {
    /// Internal name.
    pub name: &'static str,
    /// The class file, version 55 (Java 11).
    pub bytes: &'static [u8],
}

/// Internal name of the class whose methods have other names in JDK 11: see [`FORMER_NAMES`].
pub const UNSAFE_CLASS: &str = "jdk/internal/misc/Unsafe";
/// What its methods are called since JDK 12, and what they were called before.
pub const FORMER_NAMES: [(&str, &str); 2] =
    [("getReference", "getObject"), ("compareAndSetReference", "compareAndSetObject")];

impl RuntimeClass {
    /// The class file for a JDK whose `Unsafe` has the [`FORMER_NAMES`].
    pub fn with_former_names(&self) -> Vec<u8> {
        constants::renamed(self.bytes, &FORMER_NAMES)
    }
}

macro_rules! class {
    ($name:literal) => {
        RuntimeClass {
            name: concat!("java/lang/", $name),
            bytes: include_bytes!(concat!("../classes/", $name, ".class")),
        }
    };
}

/// The runtime's classes, in the order in which they must be defined: a superclass before its subclass, and last the one by
/// which the others are known to be there.
pub const CLASSES: [RuntimeClass; 25] = [
    class!("HeadwaterV1Cursor"),
    class!("HeadwaterV1Task"),
    class!("HeadwaterV1Open"),
    class!("HeadwaterV1Thread"),
    class!("HeadwaterV1Tsc"),
    class!("HeadwaterV1Clock"),
    class!("HeadwaterV1Chunks"),
    class!("HeadwaterV1Threads"),
    class!("HeadwaterV1Receivers"),
    class!("HeadwaterV1Revealed"),
    class!("HeadwaterV1Handles"),
    class!("HeadwaterV1Entry"),
    class!("HeadwaterV1Leaving"),
    class!("HeadwaterV1Bucket"),
    class!("HeadwaterV1Allocation"),
    class!("HeadwaterV1Counters"),
    class!("HeadwaterV1Waits"),
    class!("HeadwaterV1Exceptions"),
    class!("HeadwaterV1Sites"),
    class!("HeadwaterV1HandedOver"),
    class!("HeadwaterV1Handover"),
    class!("HeadwaterV1Outermost"),
    class!("HeadwaterV1Calibration"),
    class!("HeadwaterV1Session"),
    class!("HeadwaterV1"),
];

/// How `javac` (17 or later) compiles the sources, given the source and the output directory.
pub fn javac_arguments(sources: &str, output: &str) -> Vec<String> {
    let fixed =
        ["-Xlint:-options", "-source", "11", "-target", "11", "-g:source,lines", "--limit-modules", "java.base"];
    let mut arguments: Vec<String> = fixed.map(String::from).to_vec();
    arguments.extend(["--patch-module".into(), format!("java.base={sources}"), "-d".into(), output.into()]);
    arguments.extend(CLASSES.map(|class| format!("{sources}/{}.java", class.name)));
    arguments
}
