//! Recordings of the JVM's flight recorder, as small as can be: the types that events with stacks need, and some events.

/// Of a class with such fields: number, name, and for each field its name, its class, whether it is a constant, whether an array.
type Class = (i64, &'static str, &'static [(&'static str, i64, bool, bool)]);

const CLASSES: [Class; 10] = [
    (1, "boolean", &[]),
    (2, "int", &[]),
    (3, "long", &[]),
    (20, "java.lang.String", &[]),
    (30, "jdk.types.Symbol", &[("string", 20, false, false)]),
    (31, "java.lang.Class", &[("name", 30, true, false), ("modifiers", 2, false, false)]),
    (32, "jdk.types.Method", &[("type", 31, true, false), ("name", 30, true, false), ("descriptor", 30, true, false)]),
    (33, "jdk.types.StackFrame", &[("method", 32, true, false), ("lineNumber", 2, false, false)]),
    (34, "jdk.types.StackTrace", &[("truncated", 1, false, false), ("frames", 33, false, true)]),
    (35, "java.lang.Thread", &[("osName", 20, false, false), ("osThreadId", 3, false, false)]),
];
/// The first class of events.
const FIRST_EVENT: usize = 101;
const SAMPLE: &str = "jdk.ExecutionSample";
const HEADER_BYTES: usize = 68;
/// Ticks at the chunk's beginning, and in a second.
const TICKS: [i64; 2] = [1_000, 1_000_000];

/// Something that happened at a place in the code.
#[derive(Clone, Copy, Debug)]
pub struct Happened<'a> {
    /// The type of the event.
    pub kind: &'a str,
    /// When, in ns since 1970.
    pub at_ns: i64,
    /// For how long, in ns.
    pub duration_ns: i64,
    /// Of how much: a field of the event, and its value.
    pub amount: (&'a str, i64),
    /// The methods (class, name, descriptor), the innermost first.
    pub stack: &'a [[&'a str; 3]],
    /// What was waited for: the field of its class, its class and its address. Who left a monitor last is the thread `other`.
    pub lock: Option<(&'a str, &'a str, i64)>,
}

/// A recording of one chunk: samples of the thread `main` (by the operating system's number), each with its time in ns since 1970 and its methods
/// (class, name, descriptor), the innermost first. All of them have stacks of their own.
pub fn recording(thread: u32, samples: &[(i64, &[[&str; 3]])]) -> Vec<u8> {
    let sample = |(at_ns, stack): &(i64, _)| (*at_ns, *stack);
    let samples = samples.iter().map(sample);
    let happened = samples.map(|(at_ns, stack)| Happened {
        kind: SAMPLE,
        at_ns,
        duration_ns: 0,
        amount: ("none", 0),
        stack,
        lock: None,
    });
    recording_of(thread, &happened.collect::<Vec<_>>())
}

/// The same of events of any kinds.
pub fn recording_of(thread: u32, happened: &[Happened<'_>]) -> Vec<u8> {
    let (mut symbols, mut methods, mut stacks, mut events) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // A type that may always be asked for.
    let mut kinds = vec![(SAMPLE, "none", None)];
    for (key, Happened { kind, at_ns, duration_ns, amount, stack, lock }) in happened.iter().enumerate() {
        let frames = stack.iter().map(|parts| {
            let [class, name, descriptor] = parts.map(|part| place(&mut symbols, part.to_owned()));
            place(&mut methods, [class, name, descriptor])
        });
        let frames: Vec<usize> = frames.collect();
        stacks.push(frames);
        let ticks = |ns: i64| ns / (1_000_000_000 / TICKS[1]);
        let class = (FIRST_EVENT + place(&mut kinds, (*kind, amount.0, lock.map(|(field, ..)| field)))) as i64;
        let mut values = vec![TICKS[0] + ticks(*at_ns), ticks(*duration_ns), 1, key as i64, amount.1];
        if let Some((_, class, address)) = lock {
            // The class has its name's key, and the other thread is the first.
            values.extend([place(&mut symbols, (*class).to_owned()) as i64, *address, 0]);
        }
        let values: Vec<Vec<u8>> = values.into_iter().map(number).collect();
        events.push(event(class, &values.concat()));
    }
    let named = |pool: i64, values: Vec<Vec<u8>>| {
        let values = values.into_iter().enumerate().map(|(key, value)| [number(key as i64), value].concat());
        let values: Vec<Vec<u8>> = values.collect();
        [number(pool), number(values.len() as i64), values.concat()].concat()
    };
    let keys = |keys: &[usize]| keys.iter().flat_map(|key| number(*key as i64)).collect::<Vec<u8>>();
    let frames = |stack: &Vec<usize>| {
        let frames = stack.iter().flat_map(|method| [number(*method as i64), number(7)].concat());
        [number(0), number(stack.len() as i64), frames.collect()].concat()
    };
    let pools = [
        named(30, symbols.iter().map(|symbol: &String| text(symbol)).collect()),
        // A class has its name's key.
        named(31, (0..symbols.len()).map(|key| keys(&[key, 1])).collect()),
        named(32, methods.iter().map(|method: &[usize; 3]| keys(method)).collect()),
        named(34, stacks.iter().map(frames).collect()),
        named(35, vec![[text("other"), number(1)].concat(), [text("main"), number(i64::from(thread))].concat()]),
    ];
    let constants = event(1, &[vec![0; 3], vec![1], number(pools.len() as i64), pools.concat()].concat());
    let metadata = metadata(&kinds);
    let metadata_at = HEADER_BYTES + constants.len();
    let body = [constants, metadata, events.concat()].concat();
    let mut chunk = b"FLR\0\0\x02\0\x01".to_vec();
    let size = HEADER_BYTES + body.len();
    for field in [size as i64, HEADER_BYTES as i64, metadata_at as i64, 0, 1, TICKS[0], TICKS[1]] {
        chunk.extend(field.to_be_bytes());
    }
    chunk.extend([0, 0, 0, 1]);
    chunk.extend(body);
    chunk
}

/// Where it is among the others, from now on at least.
fn place<T: PartialEq>(among: &mut Vec<T>, one: T) -> usize {
    among.iter().position(|other| *other == one).unwrap_or_else(|| {
        among.push(one);
        among.len() - 1
    })
}

fn number(number: i64) -> Vec<u8> {
    let mut rest = number as u64;
    let mut bytes = Vec::new();
    while rest >= 0x80 && bytes.len() < 8 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
    bytes
}

fn text(text: &str) -> Vec<u8> {
    [vec![3], number(text.len() as i64), text.into()].concat()
}

/// Its length is padded to four bytes, as the JVM does it.
fn event(kind: i64, content: &[u8]) -> Vec<u8> {
    let rest = [number(kind), content.to_vec()].concat();
    let size = rest.len() + 4;
    let size = (0..4).map(|place| (size >> (7 * place)) as u8 & 0x7F | if place < 3 { 0x80 } else { 0 });
    [size.collect(), rest].concat()
}

/// The classes, as a tree of elements whose words are numbers of strings. Events have a name, and a field of their own.
fn metadata(events: &[(&str, &str, Option<&str>)]) -> Vec<u8> {
    let mut strings = Vec::new();
    let mut element = |name: &str, attributes: &[(&str, &str)], children: Vec<Vec<u8>>| {
        let mut word = |text: &str| number(place(&mut strings, text.to_owned()) as i64);
        let mut bytes = [word(name), number(attributes.len() as i64)].concat();
        attributes.iter().for_each(|(key, value)| bytes.extend([word(key), word(value)].concat()));
        bytes.extend(number(children.len() as i64));
        bytes.extend(children.concat());
        bytes
    };
    let mut classes = Vec::new();
    let known = CLASSES.into_iter().map(|(id, name, fields)| (id, name, fields.to_vec()));
    let events = events.iter().enumerate().map(|(at, (name, amount, lock))| {
        let thread = if *name == SAMPLE { "sampledThread" } else { "eventThread" };
        let numbers = ["startTime", "duration"].map(|name| (name, 3, false, false));
        let constants = [(thread, 35, true, false), ("stackTrace", 34, true, false), (*amount, 3, false, false)];
        let lock = lock
            .map(|class| [(class, 31, true, false), ("address", 3, false, false), ("previousOwner", 35, true, false)]);
        let lock = lock.into_iter().flatten().collect::<Vec<_>>();
        ((FIRST_EVENT + at) as i64, *name, [&numbers[..], &constants, &lock].concat())
    });
    for (id, name, fields) in known.chain(events) {
        let mut children = Vec::new();
        for (name, class, is_constant, is_array) in fields {
            let class = class.to_string();
            let mut attributes = vec![("name", name), ("class", class.as_str())];
            attributes.extend(is_constant.then_some(("constantPool", "true")));
            attributes.extend(is_array.then_some(("dimension", "1")));
            children.push(element("field", &attributes, Vec::new()));
        }
        classes.push(element("class", &[("id", &id.to_string()), ("name", name)], children));
    }
    let metadata = element("metadata", &[], classes);
    let region = element("region", &[("locale", "en_US"), ("gmtOffset", "0")], Vec::new());
    let root = element("root", &[], vec![metadata, region]);
    let strings: Vec<Vec<u8>> = strings.iter().map(|string| text(string)).collect();
    event(0, &[vec![0; 3], number(strings.len() as i64), strings.concat(), root].concat())
}
