//! Collapsed stacks: frames joined by semicolons, the root first, a space, and a number.

use headwater_terms::pattern;

use super::Builder;
use crate::build::SAMPLES;
use crate::profile::Unit;

/// What the kinds of frames are marked by, where they are.
const MARKS: [&str; 5] = ["_[j]", "_[i]", "_[k]", "_[0]", "_[1]"];

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
    let metric = builder.metric(SAMPLES, Unit::Count);
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
                let (machine, display) = names(frame);
                builder.method(&machine, &display)
            })
            .collect();
        builder.add_stack(thread, stack, [(metric, weight.round() as u64)]);
    }
    Ok(builder)
}

/// Of a frame that stands for a thread: `[main tid=31]`.
fn thread(frame: &str) -> Option<&str> {
    let inner = frame.strip_prefix('[')?.strip_suffix(']')?;
    inner.contains("tid=").then_some(inner)
}

/// A frame's names, for machines and for people, without a mark: of a class as Java writes it (`com/acme/Shop.checkout` is
/// `com.acme.Shop.checkout`), and where it has its signature (`(Ljava/lang/String|)V`), as everywhere here.
fn names(frame: &str) -> (String, String) {
    let frame = MARKS.iter().find_map(|mark| frame.strip_suffix(mark)).unwrap_or(frame);
    let (name, signature) = frame.split_at(frame.find('(').unwrap_or(frame.len()));
    let has_package = name.rfind('/').is_some_and(|slash| name[slash..].contains('.'));
    let is_java = !name.contains(' ') && (has_package || is_descriptor(signature));
    match name.rsplit_once('.').filter(|_| is_java) {
        Some((class, method)) if !signature.is_empty() => {
            let signature = signature.replace('|', ";");
            (format!("{}{signature}", name.replace('/', ".")), pattern::display_name(class, method, &signature))
        }
        Some(_) => (name.replace('/', "."), name.replace('/', ".")),
        None => (frame.to_owned(), frame.to_owned()),
    }
}

/// Whether a signature is Java's: it has a result behind its parameters.
fn is_descriptor(signature: &str) -> bool {
    let result = signature.rsplit_once(')').map_or("", |(_, result)| result);
    let element = result.trim_start_matches('[');
    matches!(element, "B" | "C" | "D" | "F" | "I" | "J" | "S" | "Z" | "V")
        || element.starts_with('L') && element.ends_with(['|', ';'])
}
