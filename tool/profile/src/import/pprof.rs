//! pprof: samples with any number of values, of stacks whose leaf comes first.

use std::time::Duration;

use prost::Message;
use rustc_hash::FxHashMap;

use super::{Builder, apart, method_names};
use crate::build::{Whole, unit};
use crate::pprof;
use crate::profile::{MethodIndex, Unit};
use crate::report::units::plural;

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
        let (title, name) = (text(kind.r#type)?, text(kind.unit)?);
        let (metric, factor) = match unit(name) {
            Some((unit, factor)) => (builder.metric(title, unit), factor),
            None => (builder.metric(&format!("{title} ({name})"), Unit::Count), 1.0),
        };
        // Of so much, each stack is one sample.
        if file.period_type == Some(kind) && file.period > 1 {
            builder.grain(metric, Whole::default().of(file.period as f64 * factor));
        }
        metrics[index] = Some((metric, factor, Whole::default()));
    }

    let named = |function: &pprof::Function| Ok::<_, String>((text(function.name)?, text(function.filename)?));
    let names = apart(&file.function.iter().map(named).collect::<Result<Vec<_>, _>>()?);
    let functions: FxHashMap<u64, (&pprof::Function, &String)> =
        file.function.iter().zip(&names).map(|(function, name)| (function.id, (function, name))).collect();
    let mut locations: FxHashMap<u64, Vec<MethodIndex>> = FxHashMap::default();
    for location in &file.location {
        let mut frames = Vec::with_capacity(location.line.len());
        for line in &location.line {
            let function = functions.get(&line.function_id);
            let (function, name) = function.ok_or_else(|| format!("it has no function number {}", line.function_id))?;
            let system_name = text(function.system_name)?;
            // Of most tools' files it is the same name once more.
            let (machine, display) = match system_name.is_empty() || system_name == text(function.name)? {
                true => method_names(name),
                false => (system_name.to_owned(), (*name).clone()),
            };
            frames.push(builder.method(&machine, &display));
        }
        if frames.is_empty() {
            let name = format!("[unknown {}]", location.id);
            frames.push(builder.method(&name, &name));
        }
        locations.insert(location.id, frames);
    }
    let mut negative = 0;
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
        negative += sample.value.iter().filter(|value| **value < 0).count() as u64;
        let values = metrics.iter_mut().zip(&sample.value).filter_map(|(metric, value)| {
            let (metric, factor, whole) = metric.as_mut()?;
            let value = u64::try_from(*value).unwrap_or(0);
            Some((*metric, if *factor == 1.0 { value } else { whole.of(value as f64 * *factor) }))
        });
        builder.add_stack(thread, stack, values.collect::<Vec<_>>());
    }
    if negative > 0 {
        let values = plural(negative, "value is", "values are");
        builder.notes.push(format!("{values} negative, and left out: the file is of a difference"));
    }
    let positive = |value: i64| u64::try_from(value).unwrap_or(0);
    builder.recorded = (positive(file.time_nanos) / 1_000_000_000, Duration::from_nanos(positive(file.duration_nanos)));
    Ok(builder)
}
