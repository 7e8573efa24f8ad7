//! What HotSpot keeps behind a method's code, and no interface tells: handlers of exceptions, parameters. It stands at the end of a method's
//! constant part, in front of the index of its generic signature, which JVMTI tells too, so that the place is known to be the right one.
//! And what call sites of its class are linked with.

use jni::sys::{jclass, jmethodID};

use super::vm_structs::{Description, Memory};
use crate::class_file::Pool;
use crate::constants::{CLASS, METHOD_HANDLE};
use crate::jvmti::Jvmti;

/// A word of the JVM's, in bytes.
const WORD: u64 = size_of::<u64>() as u64;
/// A number in the tables behind the code, in bytes.
const NUMBER: usize = size_of::<u16>();

/// More than what a class file of any size has of call sites and their arguments.
const MOST_NUMBERS: usize = 1 << 24;

/// Reads it.
#[derive(Clone, Debug)]
pub struct BehindCode {
    memory: Memory,
    layout: Layout,
}

/// Offsets, in bytes, and bits.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// In a `Method`: what never changes of it.
    constant_part: u64,
    /// In a `ConstMethod`: its length, in words.
    length: u64,
    /// In a `ConstMethod`: which tables it has.
    flags: u64,
    /// In a `ConstMethod`: its class's constants.
    constants: u64,
    has_signature: u16,
    has_parameters: u16,
    has_checked_exceptions: u16,
    has_exception_table: u16,
    /// Pointers to annotations, which stand at the very end.
    has_annotations: [u16; 4],
    /// In a `ConstantPool`: what call sites and computed constants are linked with; none where that stands elsewhere.
    operands: Option<u64>,
    /// In an array of two-byte numbers: the first.
    first: u64,
}

/// What stands there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// The index of its generic signature.
    pub signature: Option<u16>,
    /// Of its parameters the indexes of names, and flags.
    pub parameters: Option<Vec<[u16; 2]>>,
    /// Handlers of exceptions: from where to where, where they begin, and the index of the class, 0 for any.
    pub handlers: Vec<[u16; 4]>,
}

/// How call sites are linked: of each way the index of the method handle, and those of its arguments.
pub type Bootstraps = Vec<Vec<u16>>;

impl BehindCode {
    /// Finds out where it is; `None` if that is not known for sure.
    pub(super) fn find(
        memory: &Memory,
        described: &Description,
        (jvmti, class): (Jvmti, jclass),
    ) -> Option<BehindCode> {
        let behind = BehindCode { layout: Layout::find(described)?, memory: memory.clone() };
        behind.is_right(jvmti, class)?.then_some(behind)
    }

    /// Whether generic signatures and handlers are where they must be, in a class that has methods with and without, and with annotations.
    fn is_right(&self, jvmti: Jvmti, class: jclass) -> Option<bool> {
        let (count, pool) = jvmti.constant_pool(class).ok()?;
        let (pool, _) = Pool::parse(count, &pool)?;
        let mut seen = [0, 0];
        let mut handlers = 0;
        for method in jvmti.methods(class).ok()? {
            let tables = self.tables(method)?;
            let found = match tables.signature {
                Some(index) => Some(pool.text(index)?),
                None => None,
            };
            let length = jvmti.bytecodes(method).map_or(0, |code| code.len());
            let is_handler = |[start, end, handler, class]: &[u16; 4]| {
                let is_class = *class == 0 || pool.get(*class).is_some_and(|constant| constant.tag == CLASS);
                start < end && usize::from(*end) <= length && usize::from(*handler) < length && is_class
            };
            if jvmti.generic_signature(method).ok()?.as_deref() != found || !tables.handlers.iter().all(is_handler) {
                return Some(false);
            }
            seen[usize::from(found.is_some())] += 1;
            handlers += tables.handlers.len();
        }
        Some(handlers > 0 && seen.iter().all(|methods| *methods > 0))
    }

    /// What stands behind a method's code.
    pub fn tables(&self, method: jmethodID) -> Option<Tables> {
        let (memory, layout) = (&self.memory, &self.layout);
        let constant_part = self.constant_part(method)?;
        let flags = u16::from_ne_bytes(memory.read(constant_part + layout.flags)?);
        let has = |bit: u16| flags & bit != 0;
        let length = u32::from_ne_bytes(memory.read(constant_part + layout.length)?);
        let annotations = layout.has_annotations.iter().filter(|bit| has(**bit)).count();
        let end = constant_part + u64::from(length).checked_sub(annotations as u64)? * WORD;
        let mut reader = Backwards { memory, end };
        let mut tables = Tables::default();
        if has(layout.has_signature) {
            tables.signature = Some(reader.number()?);
        }
        if has(layout.has_parameters) {
            tables.parameters = Some(reader.table()?);
        }
        if has(layout.has_checked_exceptions) {
            reader.table::<1>()?;
        }
        if has(layout.has_exception_table) {
            tables.handlers = reader.table()?;
        }
        Some(tables)
    }

    /// How the call sites of a method's class are linked, by the numbers that its constants have; none where there are no such sites.
    pub fn bootstraps(&self, method: jmethodID, pool: &Pool<'_>) -> Option<Bootstraps> {
        /// The word of where one of them is, in two numbers.
        const PLACE: usize = 2;
        let constants = self.memory.word(self.constant_part(method)? + self.layout.constants)?;
        let array = self.memory.word(constants + self.layout.operands?)?;
        if array == 0 {
            return Some(Bootstraps::new());
        }
        let length = usize::try_from(u32::from_ne_bytes(self.memory.read(array)?)).ok()?;
        let bytes = self.memory.bytes(array + self.layout.first, (length <= MOST_NUMBERS).then_some(2 * length)?)?;
        let numbers: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_ne_bytes(*pair)).collect();
        let place = |at: usize| {
            let [low, high] = numbers.get(at..at + PLACE)? else { return None };
            Some(usize::from(*low) | usize::from(*high) << 16)
        };
        // The first one stands right behind all places.
        let behind = place(0)?;
        let bootstrap = |at: usize| {
            let at = place(at)?;
            let count = usize::from(*numbers.get(at + 1)?);
            let handle =
                *numbers.get(at).filter(|handle| pool.get(**handle).is_some_and(|it| it.tag == METHOD_HANDLE))?;
            Some([&[handle], numbers.get(at + 2..at + 2 + count)?].concat())
        };
        (0..behind).step_by(PLACE).map(bootstrap).collect()
    }

    fn constant_part(&self, method: jmethodID) -> Option<u64> {
        // A method's id is the address of a pointer to it.
        let method = self.memory.word(method as u64)?;
        self.memory.word(method + self.layout.constant_part)
    }
}

impl Layout {
    fn find(described: &Description) -> Option<Layout> {
        let bit = |name: &str| u16::try_from(described.constant(&format!("ConstMethod::_has_{name}"))?).ok();
        Some(Layout {
            constant_part: described.offset("Method", "_constMethod")?,
            length: described.offset("ConstMethod", "_constMethod_size")?,
            flags: described.offset("ConstMethod", "_flags")?,
            constants: described.offset("ConstMethod", "_constants")?,
            has_signature: bit("generic_signature")?,
            has_parameters: bit("method_parameters")?,
            has_checked_exceptions: bit("checked_exceptions")?,
            has_exception_table: bit("exception_table")?,
            has_annotations: [
                bit("method_annotations")?,
                bit("parameter_annotations")?,
                bit("type_annotations")?,
                bit("default_annotations")?,
            ],
            operands: described.offset("ConstantPool", "_operands"),
            first: described.offset("Array<u2>", "_data")?,
        })
    }
}

/// Tables that end where they are read from, each with its length behind it.
struct Backwards<'m> {
    memory: &'m Memory,
    end: u64,
}

impl Backwards<'_> {
    fn number(&mut self) -> Option<u16> {
        self.end -= NUMBER as u64;
        self.memory.read(self.end).map(u16::from_ne_bytes)
    }

    fn table<const N: usize>(&mut self) -> Option<Vec<[u16; N]>> {
        let bytes = usize::from(self.number()?) * N * NUMBER;
        self.end -= bytes as u64;
        let bytes = self.memory.bytes(self.end, bytes)?;
        let mut numbers = bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_ne_bytes(*pair));
        let entry = || Some(std::array::from_fn(|_| numbers.next().unwrap_or_default()));
        Some(std::iter::from_fn(entry).take(bytes.len() / (N * NUMBER)).collect())
    }
}
