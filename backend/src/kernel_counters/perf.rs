//! The kernel's counters of one thread: instructions and cycles by `perf_event_open(2)`, in a group, so that one read gives both; page faults and context switches by
//! `getrusage(2)`, which needs no rights, no files and less time.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use headwater_protocol::word::Counter;

/// How many kinds there are.
pub const KINDS: usize = Counter::BY_KERNEL.len();
/// The first of them are the processor's, the others the kernel's own: page faults and context switches.
const COUNTED_BY_PROCESSOR: usize = 2;
/// Before the values a group's reading has how many they are, how long they were wanted, and how long they ran, both in ns.
const HEAD: usize = 3;
/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_GROUP`.
const READ_FORMAT: u64 = 1 | 2 | 8;
/// Flags of `perf_event_attr`.
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// Why a counter cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Nothing counts it.
    #[error(
        "this machine's processor has no counter of {0} that can be read, as most virtual machines. Leave it out of --count: page-faults and \
         context-switches are counted by the kernel itself"
    )]
    Absent(&'static str),
    /// The process may not.
    #[error(
        "the kernel does not let the target count {0} (kernel.perf_event_paranoid is {1}): a lower value lets it, as does CAP_PERFMON; in a container \
         its seccomp profile must let perf_event_open through"
    )]
    Forbidden(&'static str, String),
    /// There is no such call.
    #[error(
        "there is no perf_event_open in the target's kernel, or a container's seccomp profile keeps it away: leave instructions and cycles out of \
         --count"
    )]
    NoCall,
    /// The process has too many files.
    #[error(
        "the target may not open more files (ulimit -n), of which an eighth at most is for the kernel's counters, one for each thread and kind"
    )]
    Files,
    /// Something else.
    #[error("the kernel's counter of {0} could not be opened or read: {1}")]
    Other(&'static str, String),
}

impl Refused {
    fn of(kernel: &impl Kernel, counter: Counter, errno: i32) -> Refused {
        let name = name(counter);
        match errno {
            libc::EACCES | libc::EPERM => Refused::Forbidden(name, kernel.paranoid()),
            libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO => Refused::Absent(name),
            libc::ENOSYS => Refused::NoCall,
            libc::EMFILE | libc::ENFILE => Refused::Files,
            _ => Refused::Other(name, std::io::Error::from_raw_os_error(errno).to_string()),
        }
    }
}

/// As users write it.
fn name(counter: Counter) -> &'static str {
    if counter == Counter::Instructions { "instructions" } else { "cycles" }
}

/// What is asked of the kernel.
pub trait Kernel {
    /// A counter's descriptor: closed when it is dropped.
    type File;

    /// A counter of the current thread's, in a group if there is a `leader`; an error's number if it cannot be had.
    fn open(&self, attributes: &Attributes, leader: Option<&Self::File>) -> Result<Self::File, i32>;

    /// Reads a group: how many bytes were read.
    fn read(&self, leader: &Self::File, into: &mut [u64]) -> Result<usize, i32>;

    /// Page faults and context switches of the current thread so far, those in the kernel on its behalf among them.
    fn usage(&self) -> [u64; 2];

    /// What `kernel.perf_event_paranoid` is.
    fn paranoid(&self) -> String;
}

/// `struct perf_event_attr` in its first version (`PERF_ATTR_SIZE_VER0`), which every kernel takes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
}

impl Attributes {
    fn of(counter: Counter) -> Attributes {
        // PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS and PERF_COUNT_HW_CPU_CYCLES.
        let (kind, config) = (0, u64::from(counter == Counter::Instructions));
        let (size, flags) = (size_of::<Attributes>() as u32, EXCLUDE_HV | EXCLUDE_KERNEL);
        Attributes { kind, size, config, read_format: READ_FORMAT, flags, ..Attributes::default() }
    }
}

/// The real one.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

impl Kernel for Linux {
    type File = OwnedFd;

    fn open(&self, attributes: &Attributes, leader: Option<&OwnedFd>) -> Result<OwnedFd, i32> {
        const THIS_THREAD: libc::pid_t = 0;
        const ANY_PROCESSOR: libc::c_int = -1;
        let group = leader.map_or(-1, AsRawFd::as_raw_fd);
        // SAFETY: the structure has the size that it says; the kernel writes into it at most that.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(attributes),
                THIS_THREAD,
                ANY_PROCESSOR,
                group,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if opened < 0 {
            return Err(errno());
        }
        // SAFETY: the kernel has just opened it, for nobody else.
        Ok(unsafe { OwnedFd::from_raw_fd(opened as i32) })
    }

    fn read(&self, leader: &OwnedFd, into: &mut [u64]) -> Result<usize, i32> {
        // SAFETY: the memory is ours, and as long as is said.
        let read = unsafe { libc::read(leader.as_raw_fd(), into.as_mut_ptr().cast(), size_of_val(into)) };
        usize::try_from(read).map_err(|_| errno())
    }

    fn usage(&self) -> [u64; 2] {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the memory is ours, and a `rusage`; zeros are one, should the kernel not write it.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        [usage.ru_minflt + usage.ru_majflt, usage.ru_nvcsw + usage.ru_nivcsw].map(|count| count as u64)
    }

    fn paranoid(&self) -> String {
        let read = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        read.map_or_else(|_| "not known".to_owned(), |value| value.trim().to_owned())
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or_default()
}

/// What a thread's counters say at a moment, and for how long the processor's were to count, and did, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    wanted_ns: u64,
    ran_ns: u64,
    values: [u64; KINDS],
}

impl Reading {
    /// By how much they have moved since another. Where the processor has fewer counters than are wanted, the kernel has them take turns: what was
    /// not counted is as what was.
    pub fn since(&self, before: &Reading) -> [u64; KINDS] {
        let wanted = self.wanted_ns.saturating_sub(before.wanted_ns);
        let ran = self.ran_ns.saturating_sub(before.ran_ns);
        std::array::from_fn(|kind| {
            let moved = self.values[kind].saturating_sub(before.values[kind]);
            if ran == 0 || ran >= wanted || kind >= COUNTED_BY_PROCESSOR {
                return moved;
            }
            u64::try_from(u128::from(moved) * u128::from(wanted) / u128::from(ran)).unwrap_or(u64::MAX)
        })
    }

    /// This one, as if what was between two others had not been.
    pub fn without(&self, from: &Reading, to: &Reading) -> Reading {
        let after = |at: u64, from: u64, to: u64| at + to.saturating_sub(from);
        Reading {
            wanted_ns: after(self.wanted_ns, from.wanted_ns, to.wanted_ns),
            ran_ns: after(self.ran_ns, from.ran_ns, to.ran_ns),
            values: std::array::from_fn(|kind| after(self.values[kind], from.values[kind], to.values[kind])),
        }
    }
}

/// The counters of one thread.
#[derive(Debug)]
pub struct Group<File> {
    kinds: u32,
    /// The processor's. The leader first: the other counts only beside it.
    files: Vec<File>,
}

impl<File> Group<File> {
    /// Those of the current thread, a bit for each of [`Counter::BY_KERNEL`]. They count from now on.
    pub fn open(kernel: &impl Kernel<File = File>, kinds: u32) -> Result<Group<File>, Refused> {
        let mut files = Vec::new();
        for (_, counter) in in_files(kinds) {
            let file = kernel.open(&Attributes::of(counter), files.first());
            files.push(file.map_err(|errno| Refused::of(kernel, counter, errno))?);
        }
        let group = Group { kinds, files };
        group.read(kernel)?;
        Ok(group)
    }

    /// What they say.
    pub fn read(&self, kernel: &impl Kernel<File = File>) -> Result<Reading, Refused> {
        let mut reading = Reading::default();
        if self.kinds >> COUNTED_BY_PROCESSOR != 0 {
            reading.values[COUNTED_BY_PROCESSOR..].copy_from_slice(&kernel.usage());
        }
        let (Some(leader), Some((_, first))) = (self.files.first(), in_files(self.kinds).next()) else {
            return Ok(reading);
        };
        let mut said = [0; HEAD + KINDS];
        let length = HEAD + self.files.len();
        let read = kernel.read(leader, &mut said[..length]).map_err(|errno| Refused::of(kernel, first, errno))?;
        if read != size_of_val(&said[..length]) || said[0] != self.files.len() as u64 {
            // The end of the file: the group does not fit onto the processor.
            return Err(Refused::Other(
                name(first),
                std::io::Error::from(std::io::ErrorKind::UnexpectedEof).to_string(),
            ));
        }
        (reading.wanted_ns, reading.ran_ns) = (said[1], said[2]);
        for ((kind, _), value) in in_files(self.kinds).zip(&said[HEAD..]) {
            reading.values[kind] = *value;
        }
        Ok(reading)
    }
}

/// Those that are in files.
pub fn in_files(kinds: u32) -> impl Iterator<Item = (usize, Counter)> {
    let counters = Counter::BY_KERNEL.into_iter().enumerate().take(COUNTED_BY_PROCESSOR);
    counters.filter(move |(kind, _)| kinds >> kind & 1 == 1)
}

#[cfg(test)]
mod tests;
