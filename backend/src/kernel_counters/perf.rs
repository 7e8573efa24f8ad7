//! The kernel's counters of one thread, by `perf_event_open(2)`: a group of them, so that one read gives all.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use headwater_protocol::word::Counter;

/// How many kinds there are.
pub const KINDS: usize = Counter::BY_KERNEL.len();
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
        "there is no perf_event_open in the target's kernel, or a container's seccomp profile keeps it away: leave instructions, cycles, page-faults \
         and context-switches out of --count"
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
            libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO if is_hardware(counter) => {
                Refused::Absent(name)
            }
            libc::ENOSYS => Refused::NoCall,
            libc::EMFILE | libc::ENFILE => Refused::Files,
            _ => Refused::Other(name, std::io::Error::from_raw_os_error(errno).to_string()),
        }
    }
}

/// As users write it.
fn name(counter: Counter) -> &'static str {
    match counter {
        Counter::Instructions => "instructions",
        Counter::Cycles => "cycles",
        Counter::PageFaults => "page-faults",
        _ => "context-switches",
    }
}

fn is_hardware(counter: Counter) -> bool {
    matches!(counter, Counter::Instructions | Counter::Cycles)
}

/// What is asked of the kernel.
pub trait Kernel {
    /// A counter's descriptor: closed when it is dropped.
    type File;

    /// A counter of the current thread's, in a group if there is a `leader`; an error's number if it cannot be had.
    fn open(&self, attributes: &Attributes, leader: Option<&Self::File>) -> Result<Self::File, i32>;

    /// Reads a group: how many bytes were read.
    fn read(&self, leader: &Self::File, into: &mut [u64]) -> Result<usize, i32>;

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
        // PERF_TYPE_HARDWARE and PERF_TYPE_SOFTWARE, PERF_COUNT_HW_* and PERF_COUNT_SW_*.
        let (kind, config) = match counter {
            Counter::Cycles => (0, 0),
            Counter::Instructions => (0, 1),
            Counter::PageFaults => (1, 2),
            _ => (1, 3),
        };
        // A context switch is in the kernel, always.
        let is_in_kernel = counter == Counter::ContextSwitches;
        let flags = EXCLUDE_HV | if is_in_kernel { 0 } else { EXCLUDE_KERNEL };
        let size = size_of::<Attributes>() as u32;
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

    fn paranoid(&self) -> String {
        let read = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        read.map_or_else(|_| "not known".to_owned(), |value| value.trim().to_owned())
    }
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or_default()
}

/// What a group's counters say at a moment, and for how long they were to count, and did, in ns.
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
            if ran == 0 || ran >= wanted {
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
    /// The leader first: the others count only beside it.
    files: Vec<File>,
}

impl<File> Group<File> {
    /// Those of the current thread, a bit for each of [`Counter::BY_KERNEL`]. They count from now on.
    pub fn open(kernel: &impl Kernel<File = File>, kinds: u32) -> Result<Group<File>, Refused> {
        let mut files = Vec::new();
        for (_, counter) in of(kinds) {
            let file = kernel.open(&Attributes::of(counter), files.first());
            files.push(file.map_err(|errno| Refused::of(kernel, counter, errno))?);
        }
        let group = Group { kinds, files };
        group.read(kernel)?;
        Ok(group)
    }

    /// What they say.
    pub fn read(&self, kernel: &impl Kernel<File = File>) -> Result<Reading, Refused> {
        let (Some(leader), Some((_, first))) = (self.files.first(), of(self.kinds).next()) else {
            return Ok(Reading::default());
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
        let mut reading = Reading { wanted_ns: said[1], ran_ns: said[2], ..Reading::default() };
        for ((kind, _), value) in of(self.kinds).zip(&said[HEAD..]) {
            reading.values[kind] = *value;
        }
        Ok(reading)
    }
}

fn of(kinds: u32) -> impl Iterator<Item = (usize, Counter)> {
    Counter::BY_KERNEL.into_iter().enumerate().filter(move |(kind, _)| kinds >> kind & 1 == 1)
}

#[cfg(test)]
mod tests;
