//! Why there is no profile.

use std::io;
use std::time::Duration;

use headwater_protocol::segment::SegmentError;

use crate::attach::AttachError;
use crate::callgraph::NoMechanism;
use crate::clock_source::ClockSourceError;
use crate::connection::ConnectionError;
use crate::session::SessionError;

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The agent could not be brought into the target.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The agent did not come up.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The conversation broke down before there was anything to report.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The clock that was asked for cannot be had.
    #[error(transparent)]
    ClockSource(#[from] ClockSourceError),
    /// What is to be left out is not known.
    #[error(transparent)]
    Without(#[from] NoMechanism),
    /// No shared memory.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// A thread of ours could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(io::Error),
    /// The agent was loaded and did not connect.
    #[error("the agent was loaded but did not connect within {0:?}. Is the target stopped, or out of CPU time?")]
    Silent(Duration),
    /// A root pattern matches no method.
    #[error("{}", sought.in_its_words(&no_root(pattern, classes, near)))]
    NoRoot {
        /// What it was to be.
        sought: Sought,
        /// As the user gave it.
        pattern: String,
        /// How many loaded classes match its class part.
        classes: usize,
        /// Names that are like it.
        near: Vec<String>,
    },
    /// A root pattern names methods only of classes that must not contain probes.
    #[error("{}", sought.in_its_words(&left_alone(*sought, pattern, class, *unless_jdk)))]
    LeftAlone {
        /// What it was to be.
        sought: Sought,
        /// As the user gave it.
        pattern: String,
        /// One of these classes.
        class: String,
        /// It can be instrumented where methods of the JDK are.
        unless_jdk: bool,
    },
    /// A thread runs a loop in the only class that a root pattern names.
    #[error("{}", sought.in_its_words(&format!(
        "a thread runs a loop in {class}, where the root {pattern} is: that would be interpreted for as long as it goes on, tens of times as \
         slow. Name a method of another class, or profile with --gentle off"
    )))]
    Looping {
        /// What it was to be.
        sought: Sought,
        /// As the user gave it.
        pattern: String,
        /// The class.
        class: String,
    },
    /// A class has no code of the lines that are a root.
    #[error("{}", no_lines(region, *classes, reason.as_deref()))]
    NoLines {
        /// As the user gave it.
        region: String,
        /// How many loaded classes match its class part.
        classes: usize,
        /// Why they are not instrumented, if they are there.
        reason: Option<String>,
    },
    /// The user wanted an end before there was anything to report.
    #[error(
        "interrupted before anything was recorded. The target runs on as before; a program that `headwater run` started is ended"
    )]
    Interrupted,
    /// The program to be started cannot be.
    #[error("cannot start {command}: {error}")]
    Spawn {
        /// The program.
        command: String,
        /// The operating system's reason.
        error: io::Error,
    },
    /// The program ended without a sign of the agent.
    #[error("the program ended ({status}) before Headwater's agent came up. Is it a Java program, of JDK 11 or later?")]
    NoAgent {
        /// How it ended.
        status: String,
    },
}

/// The suggestions, each on a line of its own behind what is wrong.
pub(super) fn did_you_mean(near: &[String]) -> String {
    let mut text = String::new();
    if !near.is_empty() {
        text.push_str("\nDid you mean one of these?");
        near.iter().for_each(|name| text.push_str(&format!("\n  {name}")));
    }
    text
}

/// What a pattern is given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sought {
    /// The root of a profile.
    Root,
    /// A method to be timed.
    Region,
}

impl Sought {
    /// What is said of roots, said of regions where it is one.
    fn in_its_words(self, text: &str) -> String {
        match self {
            Sought::Root => text.to_owned(),
            Sought::Region => text.replace("the root ", "the region ").replace("--await-root", "--await-region"),
        }
    }
}

impl ProfileError {
    /// The exit code of the contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            ProfileError::Attach(error) => error.exit_code(),
            ProfileError::NoRoot { .. }
            | ProfileError::LeftAlone { .. }
            | ProfileError::Looping { .. }
            | ProfileError::NoLines { .. } => 4,
            ProfileError::Session(SessionError::TargetEnded) => 5,
            // As a shell has it of a process that SIGINT ended.
            ProfileError::Interrupted => 130,
            _ => 1,
        }
    }
}

fn no_root(pattern: &str, classes: &usize, near: &[String]) -> String {
    let text = match classes {
        0 => format!("no loaded class matches the root {pattern}. If its class is loaded only later, say --await-root"),
        1 => format!("the class of the root {pattern} is loaded, but has no such method with code"),
        n => format!("{n} loaded classes match the root {pattern}, but none has such a method with code"),
    };
    text + &did_you_mean(near)
}

fn left_alone(sought: Sought, pattern: &str, class: &str, unless_jdk: bool) -> String {
    if unless_jdk {
        let advice = match sought {
            Sought::Root => ". Say --jdk edge or --jdk all: then another clock is read",
            Sought::Region => ". Name the methods that call it",
        };
        format!("the root {pattern} is in {class}, which the probes' clock runs{advice}")
    } else {
        format!("the root {pattern} is in {class}, which Headwater never instruments. Name the methods that call it")
    }
}

fn no_lines(region: &str, classes: usize, reason: Option<&str>) -> String {
    match (classes, reason) {
        (0, _) => format!(
            "no loaded class matches the region {region}. Write a.b.C:120-148, with the class that has the lines"
        ),
        (_, Some(reason)) => format!("the region {region} cannot be timed: {reason}"),
        _ => format!(
            "the class of the region {region} has no code of these lines. Lines of a nested class are its own: \
             a.b.C$Nested:120-148. A class compiled with -g:none has none"
        ),
    }
}
