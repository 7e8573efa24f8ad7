//! Names for what threads of the target have left as numbers.

use std::collections::HashMap;

use headwater_protocol::message::events::{Happened, Named, StackFrame, What};
use jni::sys::jmethodID;

use super::buffer::{Frame, Raw, Taken};
use crate::jni_env::Jni;
use crate::jvmti::{Error, Jvmti};

/// What is shown of a name: programs make them as long as they like.
const LONGEST_NAME: usize = 512;

/// The events as they are sent. On the agent's own thread.
pub fn named(jvmti: Jvmti, jni: Jni, Taken { events, left_out }: Taken) -> Happened {
    let mut methods = Methods { jvmti, jni, places: HashMap::new(), lines: HashMap::new(), named: Vec::new() };
    let events = events.into_iter().map(|Raw { mut event, stack: frames, owner_stack }| {
        match &mut event.what {
            What::ClassLoad { stack, .. } => *stack = methods.stack(&frames),
            What::Wait { stack, owner, .. } => {
                *stack = methods.stack(&frames);
                if let Some(owner) = owner {
                    owner.stack = methods.stack(&owner_stack);
                }
            }
            What::Compilation { method, .. } | What::Discard { method } => {
                if let Some(frame) = frames.first() {
                    *method = methods.number(frame.method());
                }
            }
            What::Collection { .. } | What::ClassUnload { .. } | What::ThreadStart { .. } | What::ThreadEnd { .. } => {}
        }
        event
    });
    let events = events.collect();
    Happened { methods: methods.named, events, left_out }
}

/// The methods of these events. Not kept beyond them: an id may come to mean another method when a class is unloaded.
struct Methods {
    jvmti: Jvmti,
    jni: Jni,
    places: HashMap<jmethodID, u32>,
    lines: HashMap<jmethodID, Vec<(u16, u16)>>,
    named: Vec<Named>,
}

impl Methods {
    fn number(&mut self, method: jmethodID) -> u32 {
        *self.places.entry(method).or_insert_with(|| {
            let named = name(self.jvmti, self.jni, method);
            // Of a class that has been unloaded meanwhile there is no name any more.
            self.named.push(named.unwrap_or(Named { class: String::new(), name: "?".to_owned() }));
            self.named.len() as u32 - 1
        })
    }

    fn stack(&mut self, frames: &[Frame]) -> Vec<StackFrame> {
        frames.iter().map(|frame| StackFrame { method: self.number(frame.method()), line: self.line(*frame) }).collect()
    }

    fn line(&mut self, frame: Frame) -> Option<u16> {
        let at = frame.at?;
        let method = frame.method();
        let lines = self.lines.entry(method).or_insert_with(|| self.jvmti.line_numbers(method).unwrap_or_default());
        line_at(lines, at)
    }
}

/// The line of an instruction: the last that begins before it, wherever in the table that stands.
fn line_at(lines: &[(u16, u16)], at: usize) -> Option<u16> {
    let before = lines.iter().filter(|(start, _)| usize::from(*start) <= at);
    before.max_by_key(|(start, _)| *start).map(|(_, line)| *line)
}

fn name(jvmti: Jvmti, jni: Jni, method: jmethodID) -> Result<Named, Error> {
    let (name, _) = jvmti.method_name(method)?;
    let class = jvmti.declaring_class(method)?;
    let signature = jvmti.class_signature(class);
    jni.delete_local(class);
    Ok(Named { class: java_name(&signature?), name: shortened(name) })
}

/// A class as Java writes it, by its signature.
pub fn java_name(signature: &str) -> String {
    let array = signature.len() - signature.trim_start_matches('[').len();
    let element = match &signature[array..] {
        "Z" => "boolean",
        "B" => "byte",
        "C" => "char",
        "S" => "short",
        "I" => "int",
        "J" => "long",
        "F" => "float",
        "D" => "double",
        class => class.strip_prefix('L').and_then(|class| class.strip_suffix(';')).unwrap_or(class),
    };
    shortened(element.replace('/', ".") + &"[]".repeat(array))
}

/// A name with its end cut off, if it is all too long.
pub fn shortened(mut name: String) -> String {
    if name.len() > LONGEST_NAME {
        name.truncate(name.floor_char_boundary(LONGEST_NAME));
        name.push_str("...");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_called_as_java_calls_them() {
        let names = ["Ljava/lang/String;", "[[I", "[La/B$C;", "LA$$Lambda.0x12;"].map(java_name);
        assert_eq!(names, ["java.lang.String", "int[][]", "a.B$C[]", "A$$Lambda.0x12"]);
    }

    #[test]
    fn a_name_is_cut_between_letters() {
        assert_eq!(shortened("short".into()), "short");
        let long = shortened("ä".repeat(400));
        assert_eq!(long, "ä".repeat(256) + "...");
        assert_eq!(shortened(format!("x{}", "ä".repeat(400))).chars().count(), 256 + 3);
    }

    #[test]
    fn a_line_is_that_which_begins_last_before_the_instruction() {
        let lines = [(0, 10), (8, 12), (4, 11)];
        assert_eq!([0, 3, 4, 7, 8, 99].map(|at| line_at(&lines, at)), [10, 10, 11, 11, 12, 12].map(Some));
        assert_eq!(line_at(&[], 3), None);
    }
}
