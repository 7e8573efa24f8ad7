//! Class files through the rewriter, on two threads: what came out, and the figures.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use headwater_rewriter::{
    CallKind, ClassFile, Instructions, Method, ProbeSite, Probes, Request, allocation_sites, call_sites, instrument,
    reassemble,
};

/// Of `rewriter/tests/java/java/lang/HwProbe.java`.
const PROBES: Probes<'static> = Probes::of_methods("java/lang/HwProbe");

/// The same, where instructions and objects are counted.
const COUNTING: Probes<'static> = Probes { allocate: Some("allocated"), instructions: Instructions::Counted, ..PROBES };

/// Methods with more allocations are left without probes at them: these alone could make one too large.
const MOST_ALLOCATIONS: usize = 500;

/// What HwProbe knows the constructors of `java.lang.Thread` by.
const THREAD_INIT: u32 = 1;

/// Of all calls of native methods: of no constructor.
const NATIVE_CALL: u32 = 1 << 24;

/// A class file in memory.
#[derive(Clone, Debug)]
pub(crate) struct ClassBytes {
    /// Path below its root: `a/b/C.class`.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// What is done with a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Every method with code gets its probes, and so does every call of a native method that is known.
    Instrument,
    /// The same, and instructions and objects are counted.
    Count,
    /// Everything is taken apart and put together again.
    Identity,
}

impl Pass {
    /// Probes, and a count of instructions if that is wanted.
    pub(crate) fn instrument(count: bool) -> Pass {
        if count { Pass::Count } else { Pass::Instrument }
    }
}

/// Native methods, by class, name and descriptor: calls of them are probed.
#[derive(Debug, Default)]
pub(crate) struct Natives(HashSet<(String, String, String)>);

impl Natives {
    /// Those that classes declare, as far as these can be read.
    pub(crate) fn add(&mut self, classes: &[ClassBytes]) {
        const ACC_NATIVE: u16 = 0x0100;
        for file in classes.iter().filter_map(|class| ClassFile::parse(&class.bytes).ok()) {
            let Ok(name) = file.name() else { continue };
            let natives = file.methods().iter().filter(|method| method.access & ACC_NATIVE != 0);
            let members = natives.map(|it| (name.to_string(), it.name().into_owned(), it.descriptor().into_owned()));
            self.0.extend(members);
        }
    }

    /// The calls of them in a method.
    fn calls(&self, class: &ClassFile<'_>, method: &Method<'_>) -> Outcome<Vec<u32>> {
        let mut offsets = Vec::new();
        if !self.0.is_empty() {
            for call in call_sites(class, method.index)?.calls {
                let instruction = matches!(call.kind, CallKind::Static | CallKind::Special | CallKind::Virtual);
                let member = (call.owner.to_string(), call.name.to_string(), call.descriptor.to_string());
                if instruction && self.0.contains(&member) {
                    offsets.push(call.offset);
                }
            }
        }
        Ok(offsets)
    }
}

/// A method that was left as it was, or has no instructions that are counted.
#[derive(Clone, Debug)]
pub(crate) struct RefusedMethod {
    /// `a/b/C.m(desc)`
    pub(crate) method: String,
    pub(crate) code: &'static str,
    pub(crate) reason: String,
}

/// What happened to a number of classes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) classes: usize,
    /// Those with code.
    pub(crate) methods: usize,
    /// Calls of native methods that were probed.
    pub(crate) calls: usize,
    pub(crate) refused: Vec<RefusedMethod>,
    /// Classes that could not be read, each with the error.
    pub(crate) unreadable: Vec<(String, String)>,
    /// Classes that came out of the identity pass different.
    pub(crate) different: Vec<String>,
    /// What went in.
    bytes: usize,
    /// Spent in the rewriter, the threads' times added.
    time: Duration,
}

impl Figures {
    pub(crate) fn add(&mut self, other: Figures) {
        self.classes += other.classes;
        self.methods += other.methods;
        self.calls += other.calls;
        self.refused.extend(other.refused);
        self.unreadable.extend(other.unreadable);
        self.different.extend(other.different);
        self.bytes += other.bytes;
        self.time += other.time;
    }

    /// Of one thread, in 10^6 bytes a second.
    pub(crate) fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.time.as_secs_f64().max(1e-9)
    }

    /// Refused methods' part of all, in percent.
    pub(crate) fn refused_percent(&self) -> f64 {
        percent(self.refused.len(), self.methods)
    }

    /// `3 (0.0012 %): code-too-large 3 (0.0012 %)`
    pub(crate) fn refusals(&self) -> String {
        let mut by_reason: BTreeMap<&str, usize> = BTreeMap::new();
        for refused in &self.refused {
            *by_reason.entry(refused.code).or_default() += 1;
        }
        let share = |count: usize| format!("{count} ({:.4} %)", percent(count, self.methods));
        let reasons: Vec<String> = by_reason.iter().map(|(code, count)| format!("{code} {}", share(*count))).collect();
        let all = share(self.refused.len());
        if reasons.is_empty() { all } else { format!("{all}: {}", reasons.join(", ")) }
    }
}

fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// The new bytes of each class, in their order; `None` where it stays as it is.
pub(crate) fn rewrite(classes: &[ClassBytes], pass: Pass, natives: &Natives) -> (Vec<Option<Vec<u8>>>, Figures) {
    let (first, second) = classes.split_at(classes.len() / 2);
    let ((mut bytes, mut figures), (more_bytes, more_figures)) = std::thread::scope(|scope| {
        let thread = scope.spawn(|| rewrite_part(first, 0, pass, natives));
        let second = rewrite_part(second, first.len(), pass, natives);
        (thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second)
    });
    bytes.extend(more_bytes);
    figures.add(more_figures);
    (bytes, figures)
}

fn rewrite_part(
    classes: &[ClassBytes],
    first_number: usize,
    pass: Pass,
    natives: &Natives,
) -> (Vec<Option<Vec<u8>>>, Figures) {
    let mut figures = Figures::default();
    let mut out = Vec::with_capacity(classes.len());
    for (number, class) in classes.iter().enumerate() {
        figures.classes += 1;
        if is_declaration_only(&class.name) {
            out.push(None);
            continue;
        }
        let rewritten = match pass {
            Pass::Instrument => instrument_class(class, first_number + number, &PROBES, natives, &mut figures),
            Pass::Count => instrument_class(class, first_number + number, &COUNTING, natives, &mut figures),
            Pass::Identity => check_identity(class, &mut figures).map(|()| None),
        };
        out.push(rewritten.unwrap_or_else(|error| {
            figures.unreadable.push((class.name.clone(), error.to_string()));
            None
        }));
    }
    (out, figures)
}

/// Of modules and packages: they have no code.
fn is_declaration_only(name: &str) -> bool {
    let simple_name = name.rsplit('/').next().unwrap_or(name);
    matches!(simple_name, "module-info.class" | "package-info.class")
}

type Outcome<T> = Result<T, headwater_rewriter::Error>;

fn instrument_class(
    class: &ClassBytes,
    number: usize,
    probes: &Probes<'_>,
    natives: &Natives,
    figures: &mut Figures,
) -> Outcome<Option<Vec<u8>>> {
    let parsed = ClassFile::parse(&class.bytes)?;
    let name = parsed.name()?;
    let mut requests = Vec::new();
    for method in parsed.methods().iter().filter(|method| method.has_code()) {
        requests.push(Request::method(method.index, id(&name, number, method)));
        figures.methods += 1;
        for offset in natives.calls(&parsed, method)? {
            requests.push(Request { method_index: method.index, id: NATIVE_CALL, place: ProbeSite::Call { offset } });
            figures.calls += 1;
        }
        if probes.allocate.is_some() {
            let sites = allocation_sites(&parsed, method.index)?;
            let sites = if sites.len() > MOST_ALLOCATIONS { Vec::new() } else { sites };
            requests.extend(sites.into_iter().zip(0..).map(|(site, id)| Request {
                method_index: method.index,
                id,
                place: ProbeSite::Allocation { offset: site.offset },
            }));
        }
    }
    let start = Instant::now();
    let rewritten = instrument(&class.bytes, probes, &requests)?;
    figures.time += start.elapsed();
    figures.bytes += class.bytes.len();
    for refused in rewritten.refused.iter().chain(&rewritten.uncounted) {
        let method = &parsed.methods()[refused.request.method_index];
        figures.refused.push(RefusedMethod {
            method: format!("{name}.{}{}", method.name(), method.descriptor()),
            code: refused.refusal.code(),
            reason: refused.refusal.to_string(),
        });
    }
    Ok(Some(rewritten.bytes))
}

/// Ids of all sizes, different within a class, and among most classes; odd for constructors.
fn id(class: &str, number: usize, method: &Method<'_>) -> u32 {
    const METHODS_PER_CLASS: usize = 64;
    let is_constructor = method.name() == "<init>";
    if is_constructor && class == "java/lang/Thread" {
        return THREAD_INIT;
    }
    (number * METHODS_PER_CLASS + method.index + 1) as u32 * 2 + u32::from(is_constructor)
}

fn check_identity(class: &ClassBytes, figures: &mut Figures) -> Outcome<()> {
    let parsed = ClassFile::parse(&class.bytes)?;
    for method in parsed.methods().iter().filter(|method| method.has_code()) {
        call_sites(&parsed, method.index)?;
        figures.methods += 1;
    }
    let start = Instant::now();
    let same = reassemble(&class.bytes)? == class.bytes;
    figures.time += start.elapsed();
    figures.bytes += class.bytes.len();
    if !same {
        figures.different.push(class.name.clone());
    }
    Ok(())
}
