//! The Firefox Profiler's processed format. Its importer is no package, and its types are no schema; there is a writer by one of its
//! makers, though. So the tables are read as its documentation tells, and compared, key by key and type by type, with what that
//! writer writes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use fxprof_processed_profile as reference;
use headwater_profile::profile::{Profile, Tree};
use serde_json::Value;

/// The threads' trees, by the threads' names.
pub fn parts(profile: &Profile) -> Vec<(String, &Tree)> {
    profile.threads.iter().map(|thread| (super::made_up::one_line(&thread.name), &thread.tree)).collect()
}

/// A thread's self times by stack, read by its tables. Every index must be in its table's range, and every column of its length.
pub fn read(profile: &Value, thread: &Value) -> BTreeMap<Vec<String>, u64> {
    for table in ["frameTable", "funcTable", "stackTable", "samples", "resourceTable", "nativeSymbols", "markers"] {
        let length = index(&thread[table]["length"]).expect("a length");
        for (name, column) in thread[table].as_object().expect("a table") {
            if let Some(column) = column.as_array() {
                assert_eq!(column.len(), length, "{table}.{name}");
            }
        }
    }
    let strings = super::strings(&thread["stringArray"]);
    let column = |table: &str, name: &str| thread[table][name].as_array().expect("a column").clone();
    let categories = profile["meta"]["categories"].as_array().expect("categories");
    let packages: Vec<String> =
        column("resourceTable", "name").iter().map(|name| strings[index(name).expect("an index")].clone()).collect();

    let frames: Vec<String> = (0..column("frameTable", "func").len())
        .map(|frame| {
            let func = index(&thread["frameTable"]["func"][frame]).expect("an index");
            let name = strings[index(&thread["funcTable"]["name"][func]).expect("an index")].clone();
            let package = &packages[index(&thread["funcTable"]["resource"][func]).expect("an index")];
            let category = &categories[index(&thread["frameTable"]["category"][frame]).expect("an index")];
            let subcategory = index(&thread["frameTable"]["subcategory"][frame]).expect("an index");
            assert_eq!(&category["subcategories"][subcategory], package);
            assert!(package == "(unnamed package)" || name.starts_with(package.as_str()), "{name} is not in {package}");
            name
        })
        .collect();
    let mut stacks: Vec<Vec<String>> = Vec::new();
    for (prefix, frame) in column("stackTable", "prefix").iter().zip(column("stackTable", "frame")) {
        // A prefix comes before what it is a prefix of.
        let mut stack = index(prefix).map_or(Vec::new(), |prefix| stacks[prefix].clone());
        stack.push(frames[index(&frame).expect("an index")].clone());
        stacks.push(stack);
    }

    assert_eq!(thread["samples"]["weightType"], "tracing-ms");
    let mut found: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    let mut weight_before = 0.0;
    let samples = column("samples", "stack");
    for ((stack, weight), delta) in samples.iter().zip(column("samples", "weight")).zip(column("samples", "timeDeltas"))
    {
        let weight = weight.as_f64().expect("a weight");
        assert_eq!(delta.as_f64(), Some(weight_before), "a sample begins where the one before it ends");
        weight_before = weight;
        if let Some(stack) = index(stack) {
            *found.entry(stacks[stack].clone()).or_default() += (weight * 1e6).round() as u64;
        }
    }
    assert_eq!(samples.last(), Some(&Value::Null), "the last sample ends the one before it");
    found
}

fn index(value: &Value) -> Option<usize> {
    value.as_u64().map(|index| index as usize)
}

/// Compares the keys of all objects, and the types of all values, with those of a profile by the reference writer.
pub fn compare_with_reference(ours: &Value) {
    let (mut found, mut expected) = (BTreeMap::new(), BTreeMap::new());
    shape(ours, "", &mut found);
    shape(&reference_profile(), "", &mut expected);
    // It has no CPU time in it; nor does ours have what is optional and says nothing of Java.
    expected.retain(|path, _| !path.starts_with(".threads[].samples.threadCPUDelta"));
    // Documented in the profiler's types, and shown in its panel of a profile's properties.
    let documented = [".meta.importedFrom", ".meta.arguments"];
    found.retain(|path, _| !documented.contains(&path.as_str()) && !path.starts_with(".meta.extra"));
    let keys = |shape: &BTreeMap<String, BTreeSet<&str>>| -> BTreeSet<String> {
        // What arrays contain is compared where both contain something.
        shape.keys().filter(|path| !path.ends_with("[]")).cloned().collect()
    };
    assert_eq!(keys(&found), keys(&expected));
    for (path, types) in &found {
        let Some(expected) = expected.get(path) else { continue };
        let unlike: Vec<_> = types.difference(expected).filter(|kind| **kind != "null").collect();
        // A reference without values for something has null there.
        assert!(
            unlike.is_empty() || expected.iter().all(|kind| *kind == "null"),
            "{path}: {types:?}, not {expected:?}"
        );
    }
}

/// The types of the values at every path.
fn shape(value: &Value, path: &str, into: &mut BTreeMap<String, BTreeSet<&str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    into.entry(path.to_owned()).or_default().insert(kind);
    match value {
        Value::Array(values) => values.iter().for_each(|value| shape(value, &format!("{path}[]"), into)),
        Value::Object(entries) => entries.iter().for_each(|(key, value)| shape(value, &format!("{path}.{key}"), into)),
        _ => {}
    }
}

/// A small profile by the reference writer.
fn reference_profile() -> Value {
    let start = reference::Timestamp::from_millis_since_reference(0.0);
    let mut profile = reference::Profile::new(
        "product",
        reference::ReferenceTimestamp::from(SystemTime::UNIX_EPOCH),
        reference::SamplingInterval::from_millis(1),
    );
    let process = profile.add_process("process", 1, start);
    let thread = profile.add_thread(process, 1, start, true);
    let category = profile.add_category("Java", reference::CategoryColor::Blue);
    let pair = profile.add_subcategory(category, "package");
    let name = profile.intern_string("function");
    let frame = reference::FrameInfo {
        frame: reference::Frame::Label(name),
        category_pair: pair,
        flags: reference::FrameFlags::empty(),
    };
    let root = profile.intern_stack_frames(thread, [frame.clone()].into_iter());
    let leaf = profile.intern_stack_frames(thread, [frame.clone(), frame].into_iter());
    for (at, stack) in [(0.0, root), (1.0, leaf), (2.0, None)] {
        let at = reference::Timestamp::from_millis_since_reference(at);
        profile.add_sample(thread, at, stack, reference::CpuDelta::ZERO, 1);
    }
    profile.set_symbolicated(true);
    serde_json::to_value(&profile).expect("JSON")
}
