//! What the benchmarks share: timing, and targets.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headwater::profile::{Clock, MethodName, Profile, Target, ThreadProfile, Tree};
use headwater_tests::{Jdk, Scratch};
use rustix::time::{ClockId, clock_gettime};

pub mod recording;
pub mod workload;

/// The fastest of several rounds: what the code takes when nothing else gets in its way.
pub fn fastest(rounds: usize, mut run: impl FnMut()) -> Duration {
    let mut times = (0..rounds).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    let first = times.next().unwrap_or_default();
    times.fold(first, Duration::min)
}

/// What this process has had of the processors.
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// A profile of these trees, with so many methods, eight of a class.
pub fn profile_of(methods: usize, merged: Tree, threads: Vec<ThreadProfile>) -> Profile {
    let name = |index: usize| {
        let class = index / 8;
        MethodName {
            machine: format!("com.acme.p{}.Class{class}.method{index}(ILjava/lang/String;)V", class / 20),
            display: format!("com.acme.p{}.Class{class}.method{index}(int, String)", class / 20),
        }
    };
    Profile {
        target: Target { pid: 1, main: "bench".into(), jdk: "25".into(), ..Target::default() },
        clock: Clock { inner_ns: 24.0, inner_spread_ns: 0.5, outer_ns: 25.0, outer_spread_ns: 0.5, ..Clock::default() },
        duration: Duration::from_secs(60),
        methods: (0..methods).map(name).collect(),
        instrumented: methods,
        called: methods,
        threads,
        merged,
        ..Profile::default()
    }
}

/// Megabytes (10^6) a second.
pub fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Compiles one of the targets in `java/`, and what it uses of others.
pub fn compile(jdk: &Jdk, source: &str) -> Scratch {
    let classes = Scratch::new("classes");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("java");
    let source = sources.join(source);
    let status = jdk.javac().arg("-d").arg(classes.path()).arg("-sourcepath").arg(sources).arg(source).status();
    assert!(status.expect("javac starts").success());
    classes
}

/// The tool's binary, of the same build.
pub fn headwater() -> PathBuf {
    let own = std::env::current_exe().expect("our own path");
    let binary = own.with_file_name("headwater");
    assert!(binary.exists(), "{} is missing: run by `cargo xtask bench`", binary.display());
    binary
}

/// xorshift64*: the same numbers in every run.
#[derive(Debug)]
pub struct Random(u64);

impl Default for Random {
    fn default() -> Random {
        Random(0x4865_6164)
    }
}

impl Random {
    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.number() >> 33) % limit
    }
}

/// Whether this one of these is among the choices; all are, where none is.
pub fn is_chosen(choices: &[String], of: &[impl AsRef<str>], this: &str) -> bool {
    !choices.iter().any(|choice| of.iter().any(|one| one.as_ref() == choice))
        || choices.iter().any(|choice| choice == this)
}
