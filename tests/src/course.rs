//! The usual course of a test: a Java program is started, a profile of it begins, it is told what to do, the profile ends, the program ends unharmed.

use std::ops::{Deref, DerefMut};

use rustix::process::Signal;
use serde_json::Value;

use crate::{Finished, Jdk, Process, Scratch, compile, compile_text, java, profile, read_report};

/// The exit code of a profile whose target has ended.
const TARGET_ENDED: i32 = 5;

/// A Java program that has said `READY`, and what it was compiled to.
#[derive(Debug)]
pub struct Launched {
    process: Process,
    classes: Scratch,
}

impl Launched {
    /// Starts a program of these sources in `tests/targets`. `main` are its class and arguments, `options` those of the JVM.
    pub fn of_files(jdk: &Jdk, sources: &[&str], options: &[&str], main: &[&str]) -> Launched {
        Launched::of_classes(jdk, compile(jdk, sources), options, main)
    }

    /// The same of a source text.
    pub fn of_text(jdk: &Jdk, text: &str, options: &[&str], main: &[&str]) -> Launched {
        Launched::of_classes(jdk, compile_text(jdk, text), options, main)
    }

    /// The same of classes.
    pub fn of_classes(jdk: &Jdk, classes: Scratch, options: &[&str], main: &[&str]) -> Launched {
        let mut process = java(jdk, &classes, options, main);
        process.await_line("READY");
        Launched { process, classes }
    }

    /// Where its classes are.
    pub fn classes(&self) -> &Scratch {
        &self.classes
    }

    /// Tells it to quit; it must be unharmed.
    pub fn quit(self) -> Finished {
        self.quit_by("quit")
    }

    /// The same, by this word.
    pub fn quit_by(mut self, word: &str) -> Finished {
        self.process.say(word);
        self.ended()
    }

    /// Waits for its end; it must be unharmed.
    pub fn ended(self) -> Finished {
        let finished = self.process.finish();
        assert!(finished.status.success(), "the program: {:#?}", finished.stderr);
        finished
    }
}

impl Deref for Launched {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Launched {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

/// A profile that writes its report to a file.
#[derive(Debug)]
pub struct Profile {
    /// The tool.
    pub tool: Process,
    scratch: Scratch,
    options: String,
}

impl Profile {
    /// Begins it with these options; the roots are instrumented when this returns.
    pub fn start(target: &Process, options: &[&str]) -> Profile {
        let scratch = Scratch::new("report");
        let file = scratch.file("profile.json");
        let tool = profile(target, &[options, &["-o", &file.to_string_lossy()]].concat());
        Profile { tool, scratch, options: options.join(" ") }
    }

    /// Waits until it has what it wants; the report.
    pub fn report(self) -> Value {
        self.report_with(0)
    }

    /// Interrupts it; the report.
    pub fn interrupted(self) -> Value {
        self.tool.signal(Signal::INT);
        self.report()
    }

    /// The report on a target that has ended before the profile did.
    pub fn of_the_end(self) -> Value {
        self.report_with(TARGET_ENDED)
    }

    fn report_with(self, code: i32) -> Value {
        let Profile { tool, scratch, options } = self;
        let tool = tool.finish();
        assert_eq!(tool.status.code(), Some(code), "the profile, {options}: {:#?}", tool.stderr);
        read_report(&scratch.file("profile.json"))
    }
}
