//! Collapsed stacks: frames joined by semicolons, the root first, a space, and a number.

use super::{Builder, method_names};
use crate::build::{SAMPLES, Whole};
use crate::profile::Unit;

/// What the kinds of frames are marked by, where they are.
const MARKS: [&str; 5] = ["_[j]", "_[i]", "_[k]", "_[0]", "_[1]"];

/// If no stack has fewer, none of them is counted in samples.
const LARGE: u64 = 1_024;
/// Nobody takes so many samples: then weights are of something else,
const MOST_SAMPLES: u64 = 1_000_000_000;
/// which is called so.
const WEIGHT: &str = "weight";

/// Whether a text, which may be cut, begins with a stack and its weight; with what can be one, if it is cut before the weight.
pub(super) fn begins_with(text: &str, is_cut: bool) -> bool {
    let Some(first) = text.split_inclusive('\n').find(|line| !is_none(line)) else { return is_cut };
    match is_cut && !first.ends_with('\n') {
        true => first.contains(';') && !first.contains(char::is_control),
        false => is_line(first),
    }
}

/// Whether it is a stack with a weight.
fn is_line(line: &str) -> bool {
    line.trim_end().rsplit_once(' ').is_some_and(|(stack, weight)| !stack.is_empty() && weight.parse::<f64>().is_ok())
}

/// Whether a line is empty, or a comment.
fn is_none(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

pub(super) fn read(bytes: &[u8]) -> Result<Builder, String> {
    let text = str::from_utf8(bytes).map_err(|error| format!("it is no UTF-8 from byte {} on", error.valid_up_to()))?;
    let mut builder = Builder::default();
    let mut least = u64::MAX;
    let mut stacks = Vec::new();
    let mut whole = Whole::default();
    for (line, number) in text.lines().zip(1..) {
        if is_none(line) {
            continue;
        }
        let line = line.trim_end();
        let parts = line.rsplit_once(' ').and_then(|(stack, weight)| Some((stack, weight.parse::<f64>().ok()?)));
        let Some((stack, weight)) = parts.filter(|(_, weight)| *weight >= 0.0) else {
            return Err(format!("line {number} does not end in a space and a number"));
        };
        let mut frames: Vec<&str> = stack.split(';').collect();
        let thread = frames.first().and_then(|first| thread(first));
        if thread.is_some() {
            frames.remove(0);
        }
        let thread = builder.thread(thread);
        let stack: Vec<_> = frames
            .into_iter()
            .map(|frame| {
                let frame = MARKS.iter().find_map(|mark| frame.strip_suffix(mark)).unwrap_or(frame);
                let (machine, display) = method_names(frame);
                builder.method(&machine, &display)
            })
            .collect();
        let weight = whole.of(weight);
        least = if weight > 0 { least.min(weight) } else { least };
        stacks.push((thread, stack, weight));
    }
    // What a weight is of, nobody says: of samples, or as many bytes or ns as some stand for.
    let sum = stacks.iter().map(|(_, _, weight)| weight).fold(0_u64, |sum, weight| sum.saturating_add(*weight));
    let metric = match sum {
        MOST_SAMPLES.. => builder.metric(WEIGHT, Unit::Count),
        _ => {
            let samples = builder.metric(SAMPLES, Unit::Count);
            builder.grain(samples, if (LARGE..u64::MAX).contains(&least) { least } else { 1 });
            samples
        }
    };
    for (thread, stack, weight) in stacks {
        builder.add_stack(thread, stack, [(metric, weight)]);
    }
    Ok(builder)
}

/// Of a frame that stands for a thread: `[main tid=31]`.
fn thread(frame: &str) -> Option<&str> {
    let inner = frame.strip_prefix('[')?.strip_suffix(']')?;
    inner.contains("tid=").then_some(inner)
}
