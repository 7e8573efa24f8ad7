use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::*;

const INSTRUCTIONS: u32 = 1;
const CYCLES: u32 = 2;
const PAGE_FAULTS: u32 = 4;
const CONTEXT_SWITCHES: u32 = 8;

/// A kernel that says what it is told to.
#[derive(Default)]
struct Played {
    /// The error at each opening; none once these are used up.
    opening: RefCell<VecDeque<Option<i32>>>,
    /// What each reading says.
    readings: RefCell<VecDeque<Vec<u64>>>,
    opened: RefCell<Vec<(Attributes, bool)>>,
    open: std::rc::Rc<Cell<usize>>,
}

struct File(std::rc::Rc<Cell<usize>>);

impl Drop for File {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Kernel for Played {
    type File = File;

    fn open(&self, attributes: &Attributes, leader: Option<&File>) -> Result<File, i32> {
        if let Some(Some(errno)) = self.opening.borrow_mut().pop_front() {
            return Err(errno);
        }
        self.opened.borrow_mut().push((*attributes, leader.is_some()));
        self.open.set(self.open.get() + 1);
        Ok(File(self.open.clone()))
    }

    fn read(&self, _: &File, into: &mut [u64]) -> Result<usize, i32> {
        let said = self.readings.borrow_mut().pop_front().unwrap_or_else(|| vec![into.len() as u64 - 3; into.len()]);
        let length = said.len().min(into.len());
        into[..length].copy_from_slice(&said[..length]);
        Ok(8 * length)
    }

    fn usage(&self) -> [u64; 2] {
        [70, 8]
    }

    fn paranoid(&self) -> String {
        "4".to_owned()
    }
}

/// Why counters are refused, if the kernel has these errors.
fn refused(kinds: u32, opening: &[Option<i32>]) -> (Refused, usize) {
    let kernel = Played { opening: RefCell::new(opening.iter().copied().collect()), ..Played::default() };
    let Err(refused) = Group::open(&kernel, kinds) else { panic!("opened") };
    (refused, kernel.open.get())
}

#[test]
fn one_group_counts_in_user_mode_what_the_processor_counts() {
    let kernel = Played::default();
    let group = Group::open(&kernel, INSTRUCTIONS | CYCLES | PAGE_FAULTS | CONTEXT_SWITCHES).expect("a group");
    let opened = kernel.opened.borrow();
    let kinds: Vec<_> = opened.iter().map(|(of, is_member)| (of.kind, of.config, *is_member)).collect();
    assert_eq!(kinds, [(0, 1, false), (0, 0, true)]);
    assert!(opened.iter().all(|(of, _)| of.size == 64 && of.read_format == 11 && of.flags & EXCLUDE_KERNEL != 0));
    kernel.readings.borrow_mut().push_back(vec![2, 10, 10, 5_000, 6_000]);
    assert_eq!(group.read(&kernel).expect("a reading").values, [5_000, 6_000, 70, 8]);
    drop(group);
    assert_eq!(kernel.open.get(), 0);
}

#[test]
fn what_the_kernel_counts_itself_needs_no_file() {
    let kernel = Played { opening: RefCell::new(VecDeque::from([Some(libc::EPERM)])), ..Played::default() };
    let group = Group::open(&kernel, PAGE_FAULTS | CONTEXT_SWITCHES).expect("nothing is opened");
    assert_eq!((group.read(&kernel).expect("a reading").values, kernel.open.get()), ([0, 0, 70, 8], 0));
}

#[test]
fn each_refusal_has_its_reason_and_leaves_nothing_open() {
    let forbidden = Refused::Forbidden("instructions", "4".to_owned());
    assert_eq!(refused(INSTRUCTIONS, &[Some(libc::EACCES)]), (forbidden.clone(), 0));
    assert_eq!(refused(INSTRUCTIONS | PAGE_FAULTS, &[Some(libc::EPERM)]), (forbidden, 0));
    assert_eq!(refused(CYCLES, &[Some(libc::ENOENT)]), (Refused::Absent("cycles"), 0));
    assert_eq!(refused(INSTRUCTIONS | CYCLES, &[None, Some(libc::EOPNOTSUPP)]), (Refused::Absent("cycles"), 0));
    assert_eq!(refused(CYCLES, &[Some(libc::ENOSYS)]), (Refused::NoCall, 0));
    assert_eq!(refused(INSTRUCTIONS | CYCLES, &[None, Some(libc::EMFILE)]), (Refused::Files, 0));
    let (other, open) = refused(CYCLES, &[Some(libc::EINVAL)]);
    assert!(matches!(other, Refused::Other("cycles", _)) && open == 0, "{other}");
}

#[test]
fn a_reading_that_is_too_short_is_none() {
    let kernel = Played::default();
    let group = Group::open(&kernel, INSTRUCTIONS | CYCLES).expect("a group");
    for said in [vec![], vec![2, 10, 10, 7], vec![1, 10, 10, 7, 7]] {
        kernel.readings.borrow_mut().push_back(said);
        assert!(matches!(group.read(&kernel), Err(Refused::Other("instructions", _))));
    }
}

fn reading(kinds: u32, said: &[u64]) -> Reading {
    let kernel = Played::default();
    let group = Group::open(&kernel, kinds).expect("a group");
    kernel.readings.borrow_mut().push_back([&[u64::from(kinds.count_ones())], said].concat());
    group.read(&kernel).expect("a reading")
}

#[test]
fn what_moved_is_that_of_each_kind_and_is_scaled_when_counters_took_turns() {
    let kinds = INSTRUCTIONS | CYCLES;
    let before = reading(kinds, &[100, 100, 5_000, 3]);
    assert_eq!(reading(kinds, &[200, 200, 6_000, 4]).since(&before), [1_000, 1, 0, 0]);
    assert_eq!(reading(kinds, &[300, 150, 6_000, 5]).since(&before), [4_000, 8, 0, 0]);
    // None of them has run since.
    assert_eq!(reading(kinds, &[300, 100, 5_000, 3]).since(&before), [0; 4]);
    // Nobody takes turns for what the kernel counts.
    let [before, now] = [(100, 50), (300, 150)].map(|(wanted_ns, values)| Reading {
        wanted_ns,
        ran_ns: wanted_ns / 2,
        values: [values; 4],
    });
    assert_eq!(now.since(&before), [200, 200, 100, 100]);
}

#[test]
fn what_the_profiler_did_is_not_in_it() {
    let of = |count| reading(CYCLES, &[100 + count, 100 + count, count]);
    let before = of(10).without(&of(12), &of(40));
    assert_eq!(of(43).since(&before), [0, 5, 0, 0]);
}

#[test]
fn the_real_kernel_counts_page_faults() {
    const PAGES: usize = 64;
    const PAGE: usize = 4096;
    let group = Group::open(&Linux, PAGE_FAULTS).expect("no file is needed");
    let mut memory = memmap2::MmapMut::map_anon(PAGES * PAGE).expect("memory");
    let _ = memory.advise(memmap2::Advice::NoHugePage);
    let before = group.read(&Linux).expect("a reading");
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    let [_, _, faults, _] = group.read(&Linux).expect("a reading").since(&before);
    assert!((PAGES as u64..PAGES as u64 + 8).contains(&faults), "{faults}");
}
