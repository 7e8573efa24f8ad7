//! pprof: samples with any number of values, of stacks whose leaf comes first.

use std::time::Duration;

use prost::Message;
use rustc_hash::FxHashMap;

use super::Builder;
use crate::build::{scaled, unit};
use crate::pprof;
use crate::profile::MethodIndex;

pub(super) fn read(bytes: &[u8]) -> Result<Builder, String> {
    let file = pprof::Profile::decode(bytes).map_err(|error| format!("its messages are malformed ({error})"))?;
    let text = |index: i64| usize::try_from(index).ok().and_then(|index| file.string_table.get(index));
    let text = |index: i64| text(index).map(String::as_str).ok_or_else(|| format!("it has no text number {index}"));
    let mut builder = Builder::default();

    // What a reader sees first, leads.
    let mut order: Vec<usize> = (0..file.sample_type.len()).collect();
    order.sort_by_key(|index| {
        let kind = file.sample_type[*index].r#type;
        if file.default_sample_type == 0 {
            file.sample_type.len() - index
        } else {
            usize::from(kind != file.default_sample_type)
        }
    });
    let mut metrics = vec![None; file.sample_type.len()];
    for index in order {
        let kind = file.sample_type[index];
        let (unit, factor) = unit(text(kind.unit)?);
        let metric = builder.metric(text(kind.r#type)?, unit);
        // Of so much, each stack is one sample.
        if file.period_type == Some(kind) && file.period > 1 {
            builder.grain(metric, scaled(file.period as f64, factor));
        }
        metrics[index] = Some((metric, factor));
    }

    let functions: FxHashMap<u64, &pprof::Function> =
        file.function.iter().map(|function| (function.id, function)).collect();
    let mut locations: FxHashMap<u64, Vec<MethodIndex>> = FxHashMap::default();
    for location in &file.location {
        let mut frames = Vec::with_capacity(location.line.len());
        for line in &location.line {
            let function = functions.get(&line.function_id);
            let function = function.ok_or_else(|| format!("it has no function number {}", line.function_id))?;
            let (name, system_name) = (text(function.name)?, text(function.system_name)?);
            frames.push(builder.method(if system_name.is_empty() { name } else { system_name }, name));
        }
        if frames.is_empty() {
            let name = format!("[unknown {}]", location.id);
            frames.push(builder.method(&name, &name));
        }
        locations.insert(location.id, frames);
    }
    for sample in &file.sample {
        let label = |wanted: &str| {
            let found = sample.label.iter().find(|label| text(label.key) == Ok(wanted) && label.str != 0);
            found.and_then(|label| text(label.str).ok())
        };
        let thread = builder.thread(label("thread").or_else(|| label("thread_name")));
        let mut stack = Vec::new();
        for location in sample.location_id.iter().rev() {
            let frames = locations.get(location).ok_or_else(|| format!("it has no location number {location}"))?;
            // Of what is inlined, the innermost comes first.
            stack.extend(frames.iter().rev());
        }
        if sample.value.len() != metrics.len() {
            return Err(format!("a sample has {} values, and there are {} kinds", sample.value.len(), metrics.len()));
        }
        let values = metrics.iter().zip(&sample.value).filter_map(|(metric, value)| {
            let (metric, factor) = (*metric)?;
            Some((
                metric,
                if factor == 1.0 { u64::try_from(*value).unwrap_or(0) } else { scaled(*value as f64, factor) },
            ))
        });
        builder.add_stack(thread, stack, values.collect::<Vec<_>>());
    }
    let positive = |value: i64| u64::try_from(value).unwrap_or(0);
    builder.recorded = (positive(file.time_nanos) / 1_000_000_000, Duration::from_nanos(positive(file.duration_nanos)));
    Ok(builder)
}
