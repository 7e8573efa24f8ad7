//! What it costs a program to be sampled: its calls a second while `headwater sample` does, and the JVM's recorder, and async-profiler, each between two
//! windows in which nobody does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::async_profiler;
use super::flight::Recorder;
use super::program::Root;
use super::run::Work;
use super::setting::Setting;
use super::table::Table;
use crate::process;

/// How long calls are counted.
const WINDOW: Duration = Duration::from_secs(6);
/// What a sampler does at its start is over by then, and so is what the one before did at its end.
const SETTLING: Duration = Duration::from_secs(3);
/// A sampler that is told to end has ended after so long.
const LIMIT: Duration = Duration::from_secs(120);

/// Who samples, each a hundred times a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sampler {
    Headwater,
    Jfr,
    AsyncCpu,
    AsyncWall,
}

impl Sampler {
    const ALL: [Sampler; 4] = [Sampler::Headwater, Sampler::Jfr, Sampler::AsyncCpu, Sampler::AsyncWall];

    fn title(self) -> &'static str {
        match self {
            Sampler::Headwater => "headwater sample",
            Sampler::Jfr => "JFR, execution samples",
            Sampler::AsyncCpu => "async-profiler, ctimer",
            Sampler::AsyncWall => "async-profiler, wall",
        }
    }
}

/// What a program made of its calls.
#[derive(Debug)]
pub(crate) struct Sampled {
    of: String,
    threads: usize,
    /// Of each sampler, by round: calls a second, as a part of those in the windows around it.
    ratios: Vec<(Sampler, Vec<f64>)>,
    /// The same of windows in which nobody sampled: how far chance goes.
    nobody: Vec<f64>,
}

/// Has a program sampled in so many rounds.
pub(crate) fn run(
    setting: &Setting<'_>,
    binary: &Path,
    root: &Root,
    rounds: usize,
    directory: &Path,
) -> Result<Sampled, String> {
    let mut work = setting.start(directory)?;
    work.warm_up(root, &setting.pace)?;
    let recorder = Recorder { jdk: setting.jdk, pid: work.program.pid, directory };
    recorder.warm_up()?;
    let libraries = async_profiler::prepare()?;
    let threads = std::fs::read_dir(format!("/proc/{}/task", work.program.pid)).map_err(|error| error.to_string())?;
    let mut sampled = Sampled {
        of: format!("{}, {}, {}", setting.program.name, setting.jdk.version, root.method),
        threads: threads.count(),
        ratios: Sampler::ALL.map(|sampler| (sampler, Vec::new())).to_vec(),
        nobody: Vec::new(),
    };
    let mut before = rate(&mut work, root)?;
    for _ in 0..rounds {
        for index in 0..Sampler::ALL.len() {
            let during =
                beside(setting, binary, (&recorder, &libraries), Sampler::ALL[index], || rate(&mut work, root))?;
            std::thread::sleep(SETTLING);
            let after = rate(&mut work, root)?;
            sampled.ratios[index].1.push(2.0 * during / (before + after));
            before = after;
        }
        let [first, second] = [rate(&mut work, root)?, rate(&mut work, root)?];
        sampled.nobody.push(2.0 * first / (before + second));
        before = second;
    }
    Ok(sampled)
}

/// Calls a second, for a while.
fn rate(work: &mut Work, root: &Root) -> Result<f64, String> {
    work.rate(root, WINDOW)
}

/// Measures while one of them samples.
fn beside(
    setting: &Setting<'_>,
    binary: &Path,
    (recorder, libraries): (&Recorder<'_>, &PathBuf),
    sampler: Sampler,
    measure: impl FnOnce() -> Result<f64, String>,
) -> Result<f64, String> {
    let pid = recorder.pid.to_string();
    let duration = (2 * SETTLING + WINDOW).as_secs();
    let mut command = match sampler {
        Sampler::Headwater => {
            let mut command = Command::new(binary);
            command.args(["sample", &pid, "-d", &format!("{duration}s"), "--every", "10ms", "-o"]);
            command.arg(recorder.directory.join("sampled.txt"));
            command
        }
        Sampler::Jfr => {
            recorder.start()?;
            std::thread::sleep(SETTLING);
            let rate = measure();
            recorder.stop()?;
            return rate;
        }
        Sampler::AsyncCpu => async_profiler::command(libraries, setting.jdk, async_profiler::CPU, duration),
        Sampler::AsyncWall => async_profiler::command(libraries, setting.jdk, async_profiler::WALL, duration),
    };
    if sampler != Sampler::Headwater {
        command.arg("-f").arg(recorder.directory.join("sampled.collapsed")).arg(&pid);
    }
    std::thread::scope(|scope| {
        let sampling = scope.spawn(move || process::run(&mut command, LIMIT));
        std::thread::sleep(SETTLING);
        let rate = measure();
        match sampling.join() {
            Ok(said) => said.and(rate),
            Err(_) => Err("the sampler's thread panicked".to_owned()),
        }
    })
}

/// What all programs made of their calls.
pub(crate) fn table(all: &[Sampled]) -> String {
    let mut table = Table::new(&[
        "program, JDK, root",
        "threads",
        "sampler",
        "rounds",
        "calls a second, of those around: median, least, most",
    ]);
    for sampled in all {
        let rows = sampled.ratios.iter().map(|(sampler, ratios)| (sampler.title(), ratios));
        for (title, ratios) in rows.chain([("nobody", &sampled.nobody)]) {
            let mut ratios = ratios.clone();
            ratios.sort_by(f64::total_cmp);
            let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else { continue };
            let median = (ratios[(ratios.len() - 1) / 2] + ratios[ratios.len() / 2]) / 2.0;
            table.row(vec![
                sampled.of.clone(),
                sampled.threads.to_string(),
                title.to_owned(),
                ratios.len().to_string(),
                format!("{median:.3}, {least:.3}, {most:.3}"),
            ]);
        }
    }
    table.render()
}
