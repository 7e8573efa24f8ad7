//! The committed class files are what the sources compile to, and the sources repeat the protocol's constants.

use std::path::{Path, PathBuf};
use std::process::Command;

use headwater_protocol::{layout, word};
use headwater_runtime_java::{
    CLASSES, OF_CONSTRUCTOR, OF_HANDLE, OF_JDK_TOO, RECEIVING_CALLS, exception, handover, javac_arguments,
};

fn javac() -> PathBuf {
    let homes = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter();
    let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path());
    homes
        .chain(installed)
        .map(|home| home.join("bin/javac"))
        .find(|javac| javac.exists())
        .expect("a JDK under JAVA_HOME or /usr/lib/jvm (apt-get install openjdk-17-jdk-headless)")
}

#[test]
fn classes_are_fresh() {
    let output = std::env::temp_dir().join(format!("headwater-fresh-{}", std::process::id()));
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/java");
    let status = Command::new(javac()).args(javac_arguments(sources, &output.to_string_lossy())).status();
    assert!(status.expect("javac starts").success());
    for class in CLASSES {
        let compiled = std::fs::read(output.join(format!("{}.class", class.name))).expect("a compiled class");
        assert!(compiled == class.bytes, "{} is stale: run cargo xtask runtime", class.name);
    }
    std::fs::remove_dir_all(output).expect("removing our own output");
}

#[test]
fn constants_are_the_protocols() {
    let sources = CLASSES.map(|class| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("java/{}.java", class.name));
        std::fs::read_to_string(source).expect("the source")
    });
    let constant = |name: &str| -> u64 {
        let definition = format!(" {name} = ");
        let mut lines = sources.iter().flat_map(|source| source.lines()).filter(|line| line.contains(&definition));
        let line = lines.next().unwrap_or_else(|| panic!("{name}"));
        assert_eq!(lines.next(), None, "{name} is defined twice");
        let value = line.split(" = ").nth(1).expect("a value").trim_end_matches(';');
        evaluate(value)
    };
    let expected = [
        ("ID_SHIFT", u64::from(word::ID_SHIFT)),
        ("KIND_SHIFT", u64::from(word::KIND_SHIFT)),
        ("MAX_PAYLOAD", word::MAX_PAYLOAD),
        ("MAX_ID", (1 << word::ID_BITS) - 1),
        ("MAX_THREAD", word::MAX_THREAD),
        ("MAX_RUN", (1 << word::RUN_BITS) - 1),
        ("THREAD_BITS", u64::from(word::THREAD_BITS)),
        ("KIND_ENTER", word::KIND_ENTER),
        ("KIND_EXIT", word::KIND_EXIT),
        ("KIND_THROW", word::KIND_THROW),
        ("KIND_ROOT", word::KIND_ROOT),
        ("KIND_PAUSE", word::KIND_PAUSE),
        ("KIND_CONTROL", word::KIND_CONTROL),
        ("KIND_THREAD", word::KIND_THREAD),
        ("PAUSE_HOTSWAP", word::PauseReason::Hotswap.number().into()),
        ("PAUSE_BUFFER", word::PauseReason::Buffer.number().into()),
        ("PAUSE_OPEN_CALLS", word::PauseReason::OpenCalls.number().into()),
        ("COUNTER_BYTECODES", word::Counter::Bytecodes.number().into()),
        ("WAIT_BEGINS", word::WAIT_BEGINS.into()),
        ("WAIT_ENDS", word::WAIT_ENDS.into()),
        ("WAIT_LOADING", word::ProbedWait::Loading.number().into()),
        ("WAIT_MONITOR", word::ProbedWait::ALL.len() as u64),
        ("HANDOVER_SUBMIT", word::Handover::Submit.number().into()),
        ("HANDOVER_RUN", word::Handover::Run.number().into()),
        ("HANDOVER_END", word::Handover::End.number().into()),
        ("HANDOVER_DROP", word::Handover::Drop.number().into()),
        ("COUNTER_ALLOCATED", word::Counter::Allocated.number().into()),
        ("COUNTER_INSTRUCTIONS", word::Counter::Instructions.number().into()),
        ("BY_KERNEL", word::Counter::BY_KERNEL.len() as u64),
        ("COUNTER_EXCEPTIONS", word::Counter::Exceptions.number().into()),
        ("COUNTER_OBJECTS", word::Counter::Objects.number().into()),
        ("COUNTER_OBJECT_BYTES", word::Counter::ObjectBytes.number().into()),
        ("SITE_BITS", word::SITE_BITS.into()),
        ("SIZE_BITS", word::SIZE_BITS.into()),
        ("UNIT_SHIFT", word::SIZE_UNIT.trailing_zeros().into()),
        ("EXCEPTION_MADE", exception::MADE.into()),
        ("EXCEPTION_PASSING", exception::PASSING.into()),
        ("EXCEPTION_CAUGHT", exception::CAUGHT.into()),
        ("START", handover::START.into()),
        ("TASK", handover::TASK.into()),
        ("STAGE", handover::STAGE.into()),
        ("REJECTED", handover::REJECTED.into()),
        ("NEXT", handover::NEXT.into()),
        ("RAN", handover::RAN.into()),
        ("ANYWHERE", handover::ANYWHERE.into()),
        ("OWN", handover::OWN.into()),
        ("OFFSET_LOST", layout::OFFSET_LOST as u64),
        ("OFFSET_CLOCK_PERIOD", layout::OFFSET_CLOCK_PERIOD as u64),
        ("OFFSET_CLOCK_SOURCE", layout::OFFSET_CLOCK_SOURCE as u64),
        ("SOURCE_NANO_TIME", layout::SOURCE_NANO_TIME.into()),
        ("SOURCE_TSC", layout::SOURCE_TSC.into()),
        ("SOURCE_THREAD_CPU", layout::SOURCE_THREAD_CPU.into()),
        ("OFFSET_CONTROL", layout::OFFSET_CONTROL as u64),
        ("OFFSET_OVERFLOW", layout::OFFSET_OVERFLOW as u64),
        ("OFFSET_CLOCK", layout::OFFSET_CLOCK as u64),
        ("OFFSET_CLAIMS", layout::OFFSET_CLAIMS as u64),
        ("FLAGS", layout::FLAGS as u64),
        ("FLAG_ENTERED", layout::FLAG_ENTERED.into()),
        ("FLAG_ROOT", layout::FLAG_ROOT.into()),
        ("CHUNK_HEADS", layout::CHUNK_HEADS as u64),
        ("CHUNK_HEAD_BYTES", layout::CHUNK_HEAD_BYTES as u64),
        ("HEAD_STATE", layout::HEAD_STATE as u64),
        ("HEAD_CLAIM", layout::HEAD_CLAIM as u64),
        ("HEAD_THREAD", layout::HEAD_THREAD as u64),
        ("HEAD_BASE_NS", layout::HEAD_BASE_NS as u64),
        ("STATE_FREE", layout::STATE_FREE.into()),
        ("STATE_CLAIMED", layout::STATE_CLAIMED.into()),
        ("STATE_OWNED", layout::STATE_OWNED.into()),
        ("STATE_FULL", layout::STATE_FULL.into()),
        ("CHUNK_BYTES", layout::CHUNK_BYTES as u64),
        ("CALLS", RECEIVING_CALLS.into()),
        ("OF_CONSTRUCTOR", OF_CONSTRUCTOR.into()),
        ("OF_HANDLE", OF_HANDLE.into()),
        ("OF_JDK_TOO", OF_JDK_TOO.into()),
    ];
    for (name, value) in expected {
        assert_eq!(constant(name), value, "{name}");
    }
}

/// The constants' notation: sums, products, differences and shifts of literals.
fn evaluate(expression: &str) -> u64 {
    let expression = expression.trim();
    for (operator, apply) in [
        (" + ", (|a, b| a + b) as fn(u64, u64) -> u64),
        (" - ", |a, b| a - b),
        (" * ", |a, b| a * b),
        (" << ", |a, b| a << b),
    ] {
        // The operators stand in the order of rising precedence, but for a shift, which the sources put in parentheses.
        if let Some((left, right)) = split_outside_parentheses(expression, operator) {
            return apply(evaluate(left), evaluate(right));
        }
    }
    if let Some(inner) = expression.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        return evaluate(inner);
    }
    expression.trim_end_matches('L').parse().unwrap_or_else(|_| panic!("a number: {expression}"))
}

fn split_outside_parentheses<'a>(text: &'a str, operator: &str) -> Option<(&'a str, &'a str)> {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && text[at..].starts_with(operator) => {
                return Some((&text[..at], &text[at + operator.len()..]));
            }
            _ => {}
        }
    }
    None
}
