//! What waits in the JDK's own methods (`--count waits`): threads that are parked or asleep, or read and write. These methods are probed, so each
//! wait is told of, whoever calls them. So are those by which the JVM and programs have class loaders find classes (`--count classes`), and those in which
//! exceptions are made (`--count exceptions`).
//!
//! Those that wait are the innermost ones that have code: the JVM's park and sleep and the operating system's calls are native. Nothing of the program's
//! runs inside them, so what passes there is waiting.
//!
//! Why so, and at what cost: docs/decisions/waits.md.

use headwater_protocol::word::{Counting, ProbedWait};
use headwater_protocol::{ClassId, LoaderId};
use headwater_rewriter::{ClassFile, ProbeSite, call_sites};

use super::known::{Known, Rewritten};
use super::methods::Methods;
use super::plan::Plan;
use super::record::MethodRecord;
use super::requests::Selected;

/// What waits in a method.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    /// All of it.
    Whole,
    /// Its calls of this method, by class and name: other parts of it run the program's code.
    Calls(&'static str, &'static str),
}

use ProbedWait::{Asleep, File, Loading, Parked, Socket};
use Waiting::{Calls, Whole};

const THREAD: &str = "java/lang/Thread";
const DESCRIPTOR: &str = "java/io/FileDescriptor";
/// Each of its constructors is called for some exception, and one for each.
const THROWABLE: &str = "java/lang/Throwable";

/// What is native up to some JDK (18, and 20): nothing can be probed there but calls, in methods that are instrumented. Later ones have such a wait twice,
/// which counts as one.
const NATIVE: [(Waiting, ProbedWait); 2] = [(Calls(THREAD, "sleep"), Asleep), (Calls(DESCRIPTOR, "sync"), File)];

/// Class, methods, what waits there, and in what. A JDK has some of them.
const PLACES: [(&str, &[&str], Waiting, ProbedWait); 19] = [
    ("java/util/concurrent/locks/LockSupport", &["park", "parkNanos", "parkUntil"], Whole, Parked),
    ("sun/misc/Unsafe", &["park"], Whole, Parked),
    (THREAD, &["sleep"], Whole, Asleep),
    ("java/io/FileInputStream", &["read"], Whole, File),
    ("java/io/FileOutputStream", &["write"], Whole, File),
    ("java/io/RandomAccessFile", &["read", "write", "writeBytes"], Whole, File),
    (DESCRIPTOR, &["sync"], Whole, File),
    ("sun/nio/ch/FileChannelImpl", &["read", "write", "force"], Whole, File),
    ("sun/nio/ch/NioSocketImpl", &["read", "write", "accept", "connect"], Whole, Socket),
    (
        "sun/nio/ch/SocketChannelImpl",
        &["read", "write", "connect", "finishConnect", "blockingRead", "blockingWriteFully", "blockingConnect"],
        Whole,
        Socket,
    ),
    ("sun/nio/ch/ServerSocketChannelImpl", &["accept", "blockingAccept"], Whole, Socket),
    (
        "sun/nio/ch/DatagramChannelImpl",
        &["receive", "send", "read", "write", "blockingReceive", "blockingSend"],
        Whole,
        Socket,
    ),
    // The rest of a selection calls back what it is given.
    ("sun/nio/ch/EPollSelectorImpl", &["doSelect"], Calls("sun/nio/ch/EPoll", "wait"), Socket),
    // The JVM calls this one. Whoever calls the others has what is within it, too, and that once.
    ("java/lang/ClassLoader", &["loadClass"], Whole, Loading),
    // JDK 11.
    ("java/net/SocketInputStream", &["read"], Whole, Socket),
    ("java/net/SocketOutputStream", &["socketWrite"], Whole, Socket),
    ("java/net/AbstractPlainSocketImpl", &["accept", "connect"], Whole, Socket),
    ("java/net/AbstractPlainDatagramSocketImpl", &["receive", "send"], Whole, Socket),
    ("java/net/PlainDatagramSocketImpl", &["receive", "send"], Whole, Socket),
];

/// A place where a thread may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitPlace {
    /// Of the method, in the class file's order.
    pub method_index: usize,
    /// All of it, or a call.
    pub place: ProbeSite,
    /// In what.
    pub wait: ProbedWait,
}

impl Known {
    /// The JDK's classes that are probed for what they tell.
    pub(super) fn telling(&self) -> impl Iterator<Item = &'static str> + '_ {
        let waiting = PLACES.iter().filter(move |(.., wait)| self.are_told(*wait)).map(|(class, ..)| *class);
        waiting.chain(self.options.exceptions.then_some(THROWABLE))
    }

    /// Whether a class of the JDK's is one of them.
    pub(super) fn tells(&self, class: &str) -> bool {
        self.telling().any(|name| name == class)
    }

    fn are_told(&self, wait: ProbedWait) -> bool {
        if wait == Loading { self.options.loading } else { self.options.waits }
    }

    /// Whether a method calls something that waits and may be native.
    fn has_native_wait(&self, method: &MethodRecord) -> bool {
        let is_one = |owner: &str, name: &str| {
            NATIVE.iter().any(|(waiting, _)| matches!(waiting, Calls(of, called) if *of == owner && *called == name))
        };
        let sites = self.code.sites(method.key, &method.name, &method.descriptor);
        sites.is_some_and(|sites| sites.calls.iter().any(|call| is_one(&call.owner, &call.name)))
    }
}

impl Plan {
    /// From now on this is told of as well, as far as probes tell of it; the classes to be retransformed for that: the JDK's, and of instrumented methods those
    /// that the probes are in.
    pub(super) fn tell(&mut self, known: &mut Known, methods: &Methods, what: Counting) -> Vec<ClassId> {
        let options = &mut known.options;
        let (waits, exceptions) = (what.probed_waits && !options.waits, what.exceptions && !options.exceptions);
        options.waits |= what.probed_waits;
        options.loading |= what.classes;
        options.exceptions |= what.exceptions;
        options.objects = what.objects;
        self.probe_passages(known);
        self.probe_again(known, methods, |known, method| exceptions || waits && known.has_native_wait(method))
    }

    /// The classes with instrumented methods that are to get other probes.
    pub(super) fn probe_again(
        &mut self,
        known: &mut Known,
        methods: &Methods,
        is_meant: impl Fn(&Known, &MethodRecord) -> bool,
    ) -> Vec<ClassId> {
        let is_instrumented = |method: &&MethodRecord| {
            method.submitted && method.refused.is_none() && !method.is_native && !method.is_dropped()
        };
        let again = methods.all().iter().filter(is_instrumented).filter(|method| is_meant(known, method));
        self.to_hotswap.extend(again.map(|method| method.key));
        self.hotswap(known)
    }

    /// The places in a class file where threads may wait: in the JDK's methods, and where selected ones sleep.
    pub(super) fn wait_places(&self, known: &Known, rewritten: Rewritten<'_>, selected: &[Selected]) -> Vec<WaitPlace> {
        let Rewritten { class, loader, name, file } = rewritten;
        let is_jdks = loader == LoaderId::BOOT && known.tells(name);
        let are_calls_told = known.options.waits && !selected.is_empty();
        if known.roots_only || !(is_jdks || are_calls_told) {
            return Vec::new();
        }
        let mut methods: Vec<usize> = selected.iter().map(|method| method.method_index).collect();
        methods.dedup();
        let native = |method| NATIVE.into_iter().map(move |(calls, wait)| (method, calls, wait));
        let calls = methods.into_iter().filter(|_| are_calls_told).flat_map(native);
        let mut places: Vec<WaitPlace> =
            calls.flat_map(|(method, calls, wait)| places_in(file, method, calls, wait)).collect();
        if is_jdks && self.is_passing(known, class) {
            let of_class = PLACES.iter().filter(|(class, _, _, wait)| *class == name && known.are_told(*wait));
            for (_, names, waiting, wait) in of_class {
                let named =
                    file.methods().iter().filter(|it| it.has_code() && names.iter().any(|name| *it.name() == **name));
                places.extend(named.flat_map(|method| places_in(file, method.index, *waiting, *wait)));
            }
        }
        places
    }

    /// The constructors in a class file, by their indices, in which exceptions are made that are to tell so.
    pub(super) fn exception_constructors(&self, known: &Known, rewritten: Rewritten<'_>) -> Vec<usize> {
        let Rewritten { class, loader, name, file } = rewritten;
        let is_wanted = known.options.exceptions && !known.roots_only;
        if !is_wanted || loader != LoaderId::BOOT || name != THROWABLE || !self.is_passing(known, class) {
            return Vec::new();
        }
        file.methods().iter().filter(|it| it.has_code() && *it.name() == *"<init>").map(|it| it.index).collect()
    }
}

impl Methods {
    /// What a class of the JDK's would tell, or a call in another, cannot be told of.
    pub(super) fn wait_refused(&mut self, class: &str, reason: &str) {
        let what = match class {
            THROWABLE => "exceptions are counted only where instrumented methods throw or catch them",
            "java/lang/ClassLoader" => "how long it loads classes is not told",
            _ => "how long it waits is not told",
        };
        self.skip(class.replace('/', "."), format!("{what}: {reason}"));
    }
}

fn places_in(file: &ClassFile<'_>, method_index: usize, waiting: Waiting, wait: ProbedWait) -> Vec<WaitPlace> {
    let place = |call| WaitPlace { method_index, place: ProbeSite::Wait { call }, wait };
    let (owner, name) = match waiting {
        Whole => return vec![place(None)],
        Calls(owner, name) => (owner, name),
    };
    let Ok(sites) = call_sites(file, method_index) else { return Vec::new() };
    let calls = sites.calls.iter().filter(|call| *call.owner == *owner);
    calls.filter(|call| *call.name == *name).map(|call| place(Some(call.offset))).collect()
}
