//! The JVM's own recorder, JFR, as a witness of where an undisturbed program is: its execution samples are taken without a bias towards
//! safepoints.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use headwater_tests::Jdk;
use jfrs::reader::JfrReader;
use jfrs::reader::event::Accessor;
use jfrs::reader::value_descriptor::{Primitive, ValueDescriptor};

use super::stacks::{Method, MethodIndex, Stacks};
use crate::class_tree::write_text;
use crate::process;

/// As often as JFR takes samples on every JDK. Of frames it keeps 64 unless told.
const SETTINGS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<configuration version="2.0">
  <event name="jdk.ExecutionSample"><setting name="enabled">true</setting><setting name="period">10 ms</setting></event>
</configuration>
"#;
const DEPTH: &str = "stackdepth=2048";
/// With so many samples two recordings differ by a point or two.
const ENOUGH: usize = 2000;
const ROUNDS: u32 = 4;
/// How long a command to the JVM may take.
const LIMIT: Duration = Duration::from_secs(300);
/// JVMS 4.6: a method without code of its own.
const ACC_NATIVE: i64 = 0x0100;

/// Commands to a JVM's recorder.
#[derive(Debug)]
pub(crate) struct Recorder<'r> {
    pub(crate) jdk: &'r Jdk,
    pub(crate) pid: u32,
    /// Where files are kept.
    pub(crate) directory: &'r Path,
}

impl Recorder<'_> {
    /// Starts it and stops it: what comes with its first start, as code that is thrown away, is over then.
    pub(crate) fn warm_up(&self) -> Result<(), String> {
        self.command(&["JFR.configure", DEPTH])?;
        self.start()?;
        self.stop()
    }

    /// Samples for so long, and on for a few times as long if the program had too little of the processors; how long it was.
    pub(crate) fn record(&self, round: Duration) -> Result<(Stacks, Duration), String> {
        let file = self.directory.join("truth.jfr");
        let (mut stacks, mut rounds) = (Stacks::default(), 0);
        self.start()?;
        while stacks.stacks.len() < ENOUGH && rounds < ROUNDS {
            std::thread::sleep(round);
            self.command(&["JFR.dump", "name=zoo", &format!("filename={}", file.display())])?;
            stacks = read(&file)?;
            rounds += 1;
        }
        self.stop()?;
        Ok((stacks, round * rounds))
    }

    pub(crate) fn start(&self) -> Result<(), String> {
        let settings = self.directory.join("truth.jfc");
        write_text(&settings, SETTINGS)?;
        self.command(&["JFR.start", "name=zoo", &format!("settings={}", settings.display())])
    }

    pub(crate) fn stop(&self) -> Result<(), String> {
        self.command(&["JFR.stop", "name=zoo"])
    }

    fn command(&self, arguments: &[&str]) -> Result<(), String> {
        let mut jcmd = Command::new(self.jdk.program("jcmd"));
        process::run(jcmd.arg(self.pid.to_string()).args(arguments), LIMIT).map(drop)
    }
}

/// The stacks of a recording.
fn read(file: &Path) -> Result<Stacks, String> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let mut reader = JfrReader::new(File::open(file).map_err(|error| fail(&error))?);
    let mut stacks = Stacks::default();
    let mut indices: HashMap<Method, MethodIndex> = HashMap::new();
    for chunk in reader.chunks() {
        let (mut events, chunk) = chunk.map_err(|error| fail(&error))?;
        // A chunk has its own numbers for methods.
        let mut of_chunk: HashMap<i64, MethodIndex> = HashMap::new();
        for event in events.events(&chunk) {
            let event = event.map_err(|error| fail(&error))?;
            if event.class.name() != "jdk.ExecutionSample" {
                continue;
            }
            let frames = event.value().get_field("stackTrace").and_then(|trace| trace.get_field("frames"));
            let Some(frames) = frames.and_then(Accessor::as_iter) else { continue };
            let mut stack: Vec<MethodIndex> = Vec::new();
            for frame in frames {
                let number = match frame.get_field_raw("method").map(|method| method.value) {
                    Some(ValueDescriptor::ConstantPool { constant_index, .. }) => *constant_index,
                    _ => continue,
                };
                let known = of_chunk.get(&number).copied();
                let index = known.or_else(|| {
                    let method = method(&frame.get_field("method")?)?;
                    Some(*indices.entry(method.clone()).or_insert_with(|| {
                        stacks.methods.push(method);
                        MethodIndex(stacks.methods.len() - 1)
                    }))
                });
                if let Some(index) = index {
                    of_chunk.insert(number, index);
                    stack.push(index);
                }
            }
            stack.reverse();
            stacks.stacks.push(stack);
        }
    }
    Ok(stacks)
}

fn method(method: &Accessor<'_>) -> Option<Method> {
    let class = method.get_field("type")?;
    let symbol = |accessor: &Accessor<'_>, field| {
        let symbol = accessor.get_field(field)?.get_field("string")?;
        Some(<&str>::try_from(symbol.value).ok()?.to_owned())
    };
    let class_name = symbol(&class, "name")?.replace('/', ".");
    let name = format!("{class_name}.{}{}", symbol(method, "name")?, symbol(method, "descriptor")?);
    let loader = class.get_field("classLoader");
    // Loaders of applications may have no name, but they have a class; so do those of the accessors that reflection generates.
    let is_jdk = class_name.starts_with("jdk.internal.reflect.Generated")
        || match loader.as_ref().and_then(|loader| symbol(loader, "name")) {
            Some(name) => name == "bootstrap" || name == "platform",
            None => {
                loader.and_then(|loader| loader.get_field("type")).and_then(|class| symbol(&class, "name")).is_none()
            }
        };
    let modifiers = match method.get_field("modifiers").map(|modifiers| modifiers.value) {
        Some(ValueDescriptor::Primitive(Primitive::Integer(modifiers))) => i64::from(*modifiers),
        _ => 0,
    };
    Some(Method { is_shown: !is_jdk && !is_hidden(&class_name) && modifiers & ACC_NATIVE == 0, name })
}

/// Whether a class is one without a name, as a lambda's: `a.B$$Lambda+0x7f01`, `a.B$$Lambda$3.7f01` or the like.
fn is_hidden(class: &str) -> bool {
    class.contains("$$Lambda") || class.contains("+0x") || class.contains(".0x")
}
