//! How busy the target's JIT compilers are: while they are, its code is still becoming faster.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::profile::Profile;

/// What HotSpot's compiler threads are called, as far as the kernel keeps names.
const NAMES: [&str; 3] = ["C1 Compiler", "C2 Compiler", "JVMCI"];
/// The threads are looked for again every so many readings: there are fewer or more of them as there is work.
const SEARCH: u32 = 10;

/// Who took so much of the time while it was recorded was at work all the while: compilers, of one processor, or roots.
const BUSY: f64 = 0.5;
/// In a shorter profile it always is.
const SHORTEST: Duration = Duration::from_secs(5);

/// The compiler threads of a process.
#[derive(Debug)]
pub(super) struct Compilers {
    tasks: PathBuf,
    /// With what each has had of the processors, or waited for them.
    threads: Vec<(PathBuf, Duration)>,
    readings: u32,
    total: Duration,
}

impl Compilers {
    /// Those of a process, by its pid as we see it.
    pub(super) fn of(pid: u32) -> Compilers {
        Compilers {
            tasks: PathBuf::from(format!("/proc/{pid}/task")),
            threads: Vec::new(),
            readings: 0,
            total: Duration::ZERO,
        }
    }

    /// What they have had of the processors since the first reading, or would have if nobody else had them. Nothing, where the kernel does not tell.
    pub(super) fn used(&mut self) -> Duration {
        if self.readings.is_multiple_of(SEARCH) {
            self.search();
        }
        self.readings += 1;
        for (task, before) in &mut self.threads {
            if let Some(now) = work_time(task) {
                self.total += now.saturating_sub(*before);
                *before = now;
            }
        }
        self.total
    }

    /// What they have had since the process began, as far as they are still there; `None` where the kernel does not tell.
    pub(super) fn so_far(&self) -> Option<Duration> {
        let all = self.tasks();
        // One of them may end meanwhile.
        let known: Vec<Duration> = all.iter().filter_map(|task| Some(schedule(task)?.0)).collect();
        (all.is_empty() || !known.is_empty()).then(|| known.iter().sum())
    }

    /// How many there are of those that compile what is hot.
    pub(super) fn of_hot_code(&self) -> usize {
        self.tasks().iter().filter(|task| is_compiler(task, &NAMES[1..])).count()
    }

    fn tasks(&self) -> Vec<PathBuf> {
        let tasks = std::fs::read_dir(&self.tasks).into_iter().flatten().flatten();
        tasks.map(|task| task.path()).filter(|task| is_compiler(task, &NAMES)).collect()
    }

    fn search(&mut self) {
        let is_first = self.readings == 0;
        for task in self.tasks() {
            if !self.threads.iter().any(|(known, _)| *known == task) {
                // What those did that were there at first may be long ago.
                let before = if is_first { work_time(&task).unwrap_or_default() } else { Duration::ZERO };
                self.threads.push((task, before));
            }
        }
    }
}

fn is_compiler(task: &Path, names: &[&str]) -> bool {
    std::fs::read_to_string(task.join("comm")).is_ok_and(|name| names.iter().any(|known| name.starts_with(known)))
}

/// `schedstat`: time on a processor, time ready for one, both in ns, and how often. Who waits for a processor has work too.
pub(super) fn work_time(task: &Path) -> Option<Duration> {
    let (running, ready) = schedule(task)?;
    Some(running + ready)
}

fn schedule(task: &Path) -> Option<(Duration, Duration)> {
    let text = std::fs::read_to_string(task.join("schedstat")).ok()?;
    let mut times = text.split_whitespace().map(|time| time.parse().map(Duration::from_nanos));
    Some((times.next()?.ok()?, times.next()?.ok()?))
}

/// What they have while something is recorded.
#[derive(Debug)]
pub(crate) struct Compiling {
    compilers: Compilers,
    before: Duration,
    /// What they had had when recording began, or went on.
    since: Option<Duration>,
}

impl Compiling {
    /// Recording begins now, in the process with this pid, as we see it.
    pub(crate) fn begun(pid: u32) -> Compiling {
        let mut compiling = Compiling { compilers: Compilers::of(pid), before: Duration::ZERO, since: None };
        compiling.begin();
        compiling
    }

    /// It goes on.
    pub(crate) fn begin(&mut self) {
        let used = self.used();
        self.since.get_or_insert(used);
    }

    /// It is interrupted.
    pub(crate) fn interrupt(&mut self) {
        self.before = self.so_far();
        self.since = None;
    }

    /// What was recorded is forgotten.
    pub(crate) fn clear(&mut self) {
        let used = self.used();
        self.before = Duration::ZERO;
        self.since = self.since.map(|_| used);
    }

    /// What they had.
    pub(crate) fn so_far(&mut self) -> Duration {
        let used = self.used();
        self.before + self.since.map_or(Duration::ZERO, |since| used - since)
    }

    /// The compilers, for whoever goes on watching them.
    pub(super) fn into_compilers(self) -> Compilers {
        self.compilers
    }

    /// The reading before may be long ago: threads are looked for anew.
    fn used(&mut self) -> Duration {
        self.compilers.search();
        self.compilers.used()
    }
}

/// Whether those who took so much time were at work all the while that was recorded.
pub(super) fn is_busy(took: Duration, recorded: Duration) -> bool {
    took >= recorded.mul_f64(BUSY)
}

/// What there is to be said of a profile whose calls were not compiled yet as they were recorded, if nothing says what they take and
/// roots ran for most of it: the compilers had so much time meanwhile.
pub(crate) fn not_compiled(compiling: Duration, profile: &Profile) -> Option<String> {
    // What runs now and then is often not compiled without a profile either.
    let in_roots = Duration::from_nanos(profile.merged.total_ns());
    let are_busy = is_busy(compiling, profile.duration) && is_busy(in_roots, profile.duration);
    if profile.basis.is_settled == Some(true) || profile.duration < SHORTEST || !are_busy {
        return None;
    }
    let share = compiling.div_duration_f64(profile.duration);
    let timed = match profile.basis.is_settled {
        Some(_) => "the root's calls had not settled when they were timed without it",
        None => "few of the root's calls or none were timed without it",
    };
    Some(format!(
        "the JIT compilers had or wanted {share:.1} of a processor while this was recorded, and {timed}: times are what they took meanwhile, which may be many times what they take compiled. \
         Calls are timed after a profile that ends by itself (-d 10s), and for longer by --bare 60s"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile_of;
    use crate::profile::{MethodIndex, Node, OpenCalls, Root, Tree};

    #[test]
    fn only_compilers_are_counted_and_from_the_first_reading_on() {
        let tasks = headwater_tests::Scratch::new("compilers");
        let thread = |number: u32, name: &str, ns: u64| {
            let task = tasks.path().join(number.to_string());
            std::fs::create_dir_all(&task).expect("a thread's directory");
            std::fs::write(task.join("comm"), format!("{name}\n")).expect("its name");
            std::fs::write(task.join("schedstat"), format!("{ns} 17 4\n")).expect("its time");
        };
        thread(1, "main", 5_000);
        thread(2, "C1 CompilerThre", 1_000);
        let mut compilers = Compilers { tasks: tasks.path().to_owned(), ..Compilers::of(0) };
        assert_eq!(compilers.used(), Duration::ZERO);
        thread(1, "main", 9_000);
        thread(2, "C1 CompilerThre", 1_250);
        thread(3, "C2 CompilerThre", 100);
        (1..SEARCH).for_each(|_| assert_eq!(compilers.used(), Duration::from_nanos(250)));
        assert_eq!(compilers.used(), Duration::from_nanos(250 + 100 + 17));
        thread(3, "C2 CompilerThre", 600);
        assert_eq!(compilers.used(), Duration::from_nanos(250 + 600 + 17));
        assert_eq!(compilers.so_far(), Some(Duration::from_nanos(1_250 + 600)));
        assert_eq!(compilers.of_hot_code(), 1);
        std::fs::remove_dir_all(tasks.path().join("2")).expect("it ends");
        assert_eq!(compilers.used(), Duration::from_nanos(250 + 600 + 17));
    }

    #[test]
    fn what_is_compiled_while_nothing_is_recorded_does_not_count() {
        let tasks = headwater_tests::Scratch::new("compiling");
        let task = tasks.path().join("2");
        std::fs::create_dir_all(&task).expect("a thread's directory");
        std::fs::write(task.join("comm"), "C2 CompilerThre\n").expect("its name");
        let at = |ns: u64| std::fs::write(task.join("schedstat"), format!("{ns} 17 4\n")).expect("its time");
        at(1_000);
        let compilers = Compilers { tasks: tasks.path().to_owned(), ..Compilers::of(0) };
        let mut compiling = Compiling { compilers, before: Duration::ZERO, since: None };
        compiling.begin();
        at(1_100);
        assert_eq!(compiling.so_far(), Duration::from_nanos(100));
        compiling.interrupt();
        at(1_900);
        assert_eq!(compiling.so_far(), Duration::from_nanos(100));
        compiling.begin();
        at(1_920);
        assert_eq!(compiling.so_far(), Duration::from_nanos(120));
        compiling.clear();
        at(1_950);
        assert_eq!(compiling.so_far(), Duration::from_nanos(30));
        compiling.interrupt();
        compiling.clear();
        at(2_000);
        assert_eq!(compiling.so_far(), Duration::ZERO);
    }

    #[test]
    fn a_profile_says_that_its_calls_were_not_compiled_unless_it_knows_what_they_take() {
        let mut profile = profile_of(Tree::default(), Vec::new(), 1);
        profile.duration = Duration::from_secs(8);
        profile.basis.is_settled = Some(false);
        let root =
            Root { pattern: "a.B::m".to_owned(), methods: vec![MethodIndex(0)], calls: 11, open: OpenCalls::default() };
        profile.roots = vec![root];
        profile.merged = Tree::of(vec![Node { calls: 11, total_ns: 7_500_000_000, ..Node::empty(MethodIndex(0)) }]);
        let (busy, idle) = (Duration::from_secs(7), Duration::from_secs(2));
        assert!(
            not_compiled(busy, &profile).is_some_and(|warning| warning.contains("had or wanted 0.9 of a processor"))
        );
        assert_eq!(not_compiled(idle, &profile), None);
        profile.basis.is_settled = Some(true);
        assert_eq!(not_compiled(busy, &profile), None);
        profile.basis.is_settled = Some(false);
        profile.duration = Duration::from_secs(4);
        assert_eq!(not_compiled(busy, &profile), None, "too short");
        profile.duration = Duration::from_secs(8);
        assert!(not_compiled(busy, &profile).is_some());
        profile.merged.nodes[0].total_ns /= 10;
        assert_eq!(not_compiled(busy, &profile), None, "called now and then");
    }

    #[test]
    fn a_process_that_is_not_there_compiles_nothing() {
        assert_eq!(Compilers::of(u32::MAX).used(), Duration::ZERO);
    }
}
