//! speedscope's JSON, by its `file-format-schema.json`: sampled and evented profiles. Those of one unit are threads.

use serde::Deserialize;

use super::{Builder, apart, method_names};
use crate::build::{SAMPLES, Whole, unit};
use crate::profile::{MethodIndex, NodeIndex, Unit};

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    exporter: Option<String>,
    shared: Shared,
    profiles: Vec<Part>,
    /// Of ours, which have as many profiles of each, one after the other.
    #[serde(default)]
    metrics: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
    title: String,
}

#[derive(Deserialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    name: String,
    #[serde(default)]
    file: Option<String>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Part {
    Sampled {
        name: String,
        unit: String,
        samples: Vec<Vec<usize>>,
        weights: Vec<f64>,
    },
    #[serde(rename_all = "camelCase")]
    Evented {
        name: String,
        unit: String,
        start_value: f64,
        #[serde(default)]
        end_value: Option<f64>,
        events: Vec<Event>,
    },
}

#[derive(Deserialize)]
struct Event {
    r#type: char,
    frame: usize,
    at: f64,
}

pub(super) fn read(bytes: &[u8]) -> Result<Builder, String> {
    let file: File = serde_json::from_slice(bytes).map_err(|error| format!("it is malformed ({error})"))?;
    let mut builder = Builder::default();
    let named = |frame: &'_ Frame| (frame.name.clone(), frame.file.clone().unwrap_or_default());
    let named: Vec<(String, String)> = file.shared.frames.iter().map(named).collect();
    let named: Vec<(&str, &str)> = named.iter().map(|(name, file)| (&**name, &**file)).collect();
    let mut method = |name: &String| {
        let (machine, display) = method_names(name);
        builder.method(&machine, &display)
    };
    let methods: Vec<MethodIndex> = apart(&named).iter().map(&mut method).collect();
    let method = |frame: usize| methods.get(frame).copied().ok_or_else(|| format!("it has no frame number {frame}"));
    let is_ours = file.exporter.is_some_and(|exporter| exporter.starts_with("headwater"));
    let several = file.profiles.len() > 1;
    let of_each = file.profiles.len().checked_div(file.metrics.len()).unwrap_or_default().max(1);
    for (at, part) in file.profiles.iter().enumerate() {
        let (Part::Sampled { name, unit: of, .. } | Part::Evented { name, unit: of, .. }) = part;
        let (unit, factor) = unit(of).unwrap_or((Unit::Count, 1.0));
        let mut whole = Whole::default();
        // Ours have a profile of each metric, named `[thread]: metric`.
        let (name, title) = match name.rsplit_once("]: ").filter(|_| is_ours) {
            Some((name, title)) => (format!("{name}]"), title),
            None => (name.clone(), usual_title(unit)),
        };
        let metric = match file.metrics.get(at / of_each).filter(|_| is_ours) {
            Some(Named { id, title }) => builder.metric_called(id, title, unit),
            None => builder.metric(title, unit),
        };
        let is_whole = !several || name == "[all threads]";
        let thread = builder.thread((!is_whole).then_some(&*name));
        match part {
            Part::Sampled { samples, weights, .. } => {
                if samples.len() != weights.len() {
                    return Err(format!("{name} has {} samples and {} weights", samples.len(), weights.len()));
                }
                for (stack, weight) in samples.iter().zip(weights) {
                    let stack = stack.iter().map(|frame| method(*frame)).collect::<Result<Vec<_>, _>>()?;
                    builder.add_stack(thread, stack, [(metric, whole.of(*weight * factor))]);
                }
            }
            Part::Evented { start_value, end_value, events, .. } => {
                let mut open: Vec<(MethodIndex, NodeIndex)> = Vec::new();
                let mut last = *start_value;
                let mut give = |open: &[(MethodIndex, NodeIndex)], at: f64, builder: &mut Builder| {
                    if let Some((_, node)) = open.last() {
                        builder.add(thread, *node, metric, whole.of((at - last) * factor));
                    }
                    last = at;
                };
                for Event { r#type, frame, at } in events {
                    give(&open, *at, &mut builder);
                    let method = method(*frame)?;
                    match r#type {
                        'O' => {
                            let node = builder.child(thread, open.last().map(|(_, node)| *node), method);
                            open.push((method, node));
                        }
                        'C' if open.last().is_some_and(|(top, _)| *top == method) => {
                            open.pop();
                        }
                        _ => return Err(format!("an event of {name} closes what is not open")),
                    }
                }
                // What is never closed goes on to the end.
                if let Some(end) = end_value {
                    give(&open, *end, &mut builder);
                }
            }
        }
    }
    Ok(builder)
}

fn usual_title(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "wall time",
        Unit::Bytes => "bytes",
        Unit::Count | Unit::Bytecodes | Unit::Share => SAMPLES,
    }
}
