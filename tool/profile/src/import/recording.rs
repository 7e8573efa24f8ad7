//! The JDK's flight recorder: its execution samples.

use std::time::Duration;

use headwater_jfr::Samples;
use headwater_terms::pattern;

use super::Builder;
use super::build::SAMPLES;
use crate::profile::{MethodIndex, Unit};

pub(super) fn read(bytes: &[u8]) -> Result<Builder, String> {
    let samples = headwater_jfr::samples(bytes).map_err(|error| error.to_string())?;
    if samples.stacks.is_empty() {
        return Err("it has no execution samples (jdk.ExecutionSample), and nothing else of it is read".to_owned());
    }
    let mut builder = Builder::default();
    let metric = builder.metric(SAMPLES, Unit::Count);
    let methods = methods(&mut builder, &samples);
    let cut = cut(&mut builder);
    for sample in &samples.stacks {
        let thread = builder.thread(Some(&format!("tid={}", sample.thread)));
        let frames = sample.frames.iter().filter_map(|frame| methods.get(frame.0 as usize).copied());
        builder.add_stack(thread, sample.is_cut.then_some(cut).into_iter().chain(frames), [(metric, 1)]);
    }
    let times = || samples.stacks.iter().map(|sample| sample.at_ns);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let positive = |ns: i64| u64::try_from(ns).unwrap_or(0);
    builder.recorded = (positive(first) / 1_000_000_000, Duration::from_nanos(positive(last.saturating_sub(first))));
    Ok(builder)
}

/// The methods of samples, in their order.
pub fn methods(builder: &mut Builder, samples: &Samples) -> Vec<MethodIndex> {
    let method = |machine: &String| match machine.as_str() {
        "" => builder.method("[unknown]", "[unknown]"),
        machine => builder.method(machine, &display_name(machine)),
    };
    samples.methods.iter().map(method).collect()
}

/// What is above a stack that is cut.
pub fn cut(builder: &mut Builder) -> MethodIndex {
    builder.method("[deeper than was recorded]", "[deeper than was recorded]")
}

/// A method's name for people.
fn display_name(machine: &str) -> String {
    let (name, descriptor) = machine.split_at(machine.find('(').unwrap_or(machine.len()));
    match name.rsplit_once('.') {
        Some((class, method)) => pattern::display_name(&class.replace('.', "/"), method, descriptor),
        None => machine.to_owned(),
    }
}
