//! Why can't I attach? Each precondition of attaching, with its verdict and the remedy. Only looks: nothing is sent to the
//! target and no file is written.

use std::io::{self, Write};

use headwater_protocol::message::Internal;
use rustix::fs::StatVfsMountFlags;
use serde::Serialize;

use crate::agent;
use crate::attach::{self, AttachError, TargetHost};
use crate::flight_recorder;
use crate::jvm::{self, Jvm};

mod archive;
mod counters;

/// The oldest JDK whose attach protocol and JVMTI are known to be what the agent needs.
const OLDEST_JDK: u32 = 11;
/// From this JDK on, loading an agent late is warned about in the target's standard error.
const WARNING_JDK: u32 = 21;
/// Up to this JDK, HotSpot records what compiled code depends on only once something has been redefined: it then throws all
/// of it away.
const FLUSHING_JDK: u32 = 22;

/// How a precondition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    /// Nothing is in the way.
    Ok,
    /// Attaching works; the user should know this.
    Warning,
    /// Attaching will fail.
    Failure,
}

/// One precondition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    /// Which.
    pub(crate) name: &'static str,
    /// How it stands.
    pub(crate) verdict: Verdict,
    /// What was found.
    pub(crate) finding: String,
    /// What to do about it; empty when there is nothing to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) remedy: String,
}

/// All of them.
#[derive(Debug, Serialize)]
pub(crate) struct Diagnosis {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Target>,
    checks: Vec<Check>,
}

#[derive(Debug, Serialize)]
struct Target {
    pid: u32,
    main: String,
    jdk: Option<String>,
}

fn ok(name: &'static str, finding: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Ok, finding: finding.into(), remedy: String::new() }
}

fn warning(name: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Warning, finding: finding.into(), remedy: remedy.into() }
}

fn failure(name: &'static str, finding: impl Into<String>, remedy: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Failure, finding: finding.into(), remedy: remedy.into() }
}

/// A message of the tool's has its remedy behind a semicolon.
fn failed(name: &'static str, message: &str) -> Check {
    match message.split_once("; ") {
        Some((finding, remedy)) => failure(name, finding, remedy),
        None => failure(name, message, ""),
    }
}

/// Examines a target, named as on the command line.
pub(crate) fn examine(target: &str) -> Diagnosis {
    const SCHEMA: &str = "headwater-doctor/1";
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => {
            return Diagnosis { schema: SCHEMA, target: None, checks: vec![failed("target", &error.to_string())] };
        }
    };
    let mut checks = vec![ok("target", format!("pid {}, {}", jvm.pid, jvm.main))];
    let options = jvm::vm_options(jvm.pid);
    let files = jvm::mapped_files(jvm.pid);
    match TargetHost::of(&jvm) {
        Ok(host) => {
            checks.push(permissions(&host));
            checks.push(state(&host));
            checks.push(namespaces(&host));
            checks.push(attach_mechanism(&host));
            checks.push(threads(&host));
            checks.push(temporary_directory(&host));
            checks.push(counters::counters(&host));
        }
        Err(error) => {
            let name = match &error {
                AttachError::NotPermitted { .. } => "permissions",
                AttachError::NoTmp { .. } => "temporary directory",
                _ => "target",
            };
            checks.push(failed(name, &error.to_string()));
        }
    }
    let version = feature_version(jvm.java_version.as_deref());
    checks.push(jdk(&jvm, version));
    checks.extend(internals(version));
    checks.push(c_library(&files));
    checks.push(agent_loading(version, &options, &files));
    checks.push(other_agents(&options, &files));
    checks.push(archive::archive(&options));
    checks.push(session(&jvm));
    let recorder_used = flight_recorder::was_used(jvm.pid);
    checks.push(compiled_code(version, &options, &files, recorder_used));
    checks.push(recorder(version, &options, &files, recorder_used));
    let target = Target { pid: jvm.pid, main: jvm.main, jdk: jvm.java_version };
    Diagnosis { schema: SCHEMA, target: Some(target), checks }
}

/// 17 of `17.0.15+6`; 8 of `1.8.0_292`.
fn feature_version(version: Option<&str>) -> Option<u32> {
    let mut numbers = version?.split(['.', '-', '+', '_']).map(|number| number.parse().ok());
    match numbers.next()?? {
        1 => numbers.next()?,
        feature => Some(feature),
    }
}

fn permissions(host: &TargetHost) -> Check {
    let us = rustix::process::geteuid().as_raw();
    // Who may not look into the target does not get here.
    ok("permissions", format!("the JVM runs as user id {}, we are user id {us}", host.uid()))
}

fn state(host: &TargetHost) -> Check {
    match host.status() {
        Ok(status) if status.is_stopped() => failed("state", &AttachError::Stopped { pid: host.pid() }.to_string()),
        Ok(_) => ok("state", "running"),
        Err(error) => failed("state", &error.to_string()),
    }
}

fn namespaces(host: &TargetHost) -> Check {
    const NAME: &str = "namespaces";
    let same = |kind: &str| {
        let of = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/{kind}"));
        of("self").ok() == of(&host.pid().to_string()).ok()
    };
    match (same("pid"), same("mnt")) {
        (true, true) => ok(NAME, "the same as ours"),
        _ => ok(
            NAME,
            format!(
                "its own, as in a container: there its pid is {}, and its /tmp is reached by {}",
                host.vm_pid(),
                host.tmp_here().display()
            ),
        ),
    }
}

fn attach_mechanism(host: &TargetHost) -> Check {
    const NAME: &str = "attach";
    if host.attach_disabled() {
        return failed(NAME, &AttachError::Disabled { pid: host.pid() }.to_string());
    }
    if let Err(error) = attach::check_trigger(host) {
        return failed(NAME, &error.to_string());
    }
    match (attach::has_socket(host), host.status()) {
        (Ok(true), _) => ok(NAME, "the JVM's attach socket is there"),
        (Err(error), _) => failed(NAME, &error.to_string()),
        (Ok(false), Ok(status)) if !status.catches_quit => {
            failed(NAME, &AttachError::SignalUnsafe { pid: host.pid() }.to_string())
        }
        (Ok(false), _) => ok(NAME, "the JVM opens its attach socket when it is asked to"),
    }
}

fn threads(host: &TargetHost) -> Check {
    const NAME: &str = "threads";
    let checked = attach::threads_needed(host).and_then(|needed| attach::room::check(host.pid(), needed));
    match (checked, attach::room::tightest(host.pid())) {
        (Err(error @ AttachError::NoThreads { .. }), _) => failed(NAME, &error.to_string()),
        (_, Some(limit)) => ok(NAME, format!("{} more can be started: {limit}", limit.left())),
        (_, None) => ok(NAME, "not limited"),
    }
}

fn temporary_directory(host: &TargetHost) -> Check {
    const NAME: &str = "temporary directory";
    let path = host.tmp_here().display();
    let needed = agent::LIBRARY.len() as u64;
    let stat = match rustix::fs::fstatvfs(host.tmp()) {
        Ok(stat) => stat,
        Err(error) => return failure(NAME, format!("{path} cannot be looked at: {error}"), ""),
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if stat.f_flag.contains(StatVfsMountFlags::RDONLY) {
        failed(NAME, &AttachError::ReadOnly { path: path.to_string() }.to_string())
    } else if stat.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        failed(NAME, &AttachError::NoExec { path: "the agent".to_owned() }.to_string())
    } else if free < needed {
        let finding = format!("{path} has {} KiB left, and the agent needs {} KiB", free >> 10, needed >> 10);
        failure(NAME, finding, "free some space on that file system")
    } else {
        ok(NAME, format!("{path}, {} MiB free; the agent needs {} KiB for a moment", free >> 20, needed >> 10))
    }
}

fn jdk(jvm: &Jvm, version: Option<u32>) -> Check {
    const NAME: &str = "JVM version";
    match (version, &jvm.java_version) {
        (Some(feature), Some(version)) if feature < OLDEST_JDK => {
            failure(NAME, format!("JDK {version}"), format!("run the program on JDK {OLDEST_JDK} or later"))
        }
        (Some(_), Some(version)) => ok(NAME, format!("JDK {version}")),
        _ => warning(
            NAME,
            "unknown: the JVM publishes no performance data (-XX:-UsePerfData)",
            format!("make sure that it is JDK {OLDEST_JDK} or later"),
        ),
    }
}

/// What the agent will try of HotSpot beyond its documented interfaces.
fn internals(version: Option<u32>) -> Option<Check> {
    const NAME: &str = "JVM internals";
    let version = version.filter(|version| *version >= OLDEST_JDK)?;
    Some(if Internal::KNOWN_JDKS.contains(&version) {
        let names: Vec<&str> = Internal::ALL.into_iter().map(Internal::name).collect();
        ok(NAME, format!("JDK {version} is known: tested when the agent is there: {}", names.join(", ")))
    } else {
        let known = Internal::KNOWN_JDKS.end();
        warning(
            NAME,
            format!("JDK {version} is newer than {known}: documented interfaces alone are used"),
            "expect more methods that are instrumented in vain; counts are as complete as ever",
        )
    })
}

fn c_library(files: &[String]) -> Check {
    const NAME: &str = "C library";
    if files.iter().any(|file| file.contains("/ld-musl-") || file.contains("/libc.musl-")) {
        failure(NAME, "musl, and the agent is built for glibc", "run the program on an image with glibc")
    } else {
        ok(NAME, "glibc")
    }
}

/// The last word on a `-XX:` switch.
fn switch(options: &[String], name: &str) -> Option<bool> {
    options.iter().rev().find_map(|option| match option.strip_prefix("-XX:")?.split_at_checked(1)? {
        ("+", switch) if switch == name => Some(true),
        ("-", switch) if switch == name => Some(false),
        _ => None,
    })
}

fn is_headwater(file: &str) -> bool {
    file.ends_with(agent::FILE) && file.contains(agent::DIRECTORY_PREFIX)
}

fn agent_loading(version: Option<u32>, options: &[String], files: &[String]) -> Check {
    const NAME: &str = "dynamic agent loading";
    match switch(options, "EnableDynamicAgentLoading") {
        Some(false) => failure(
            NAME,
            "switched off by -XX:-EnableDynamicAgentLoading",
            "start the program with -XX:+EnableDynamicAgentLoading, or by `headwater run`",
        ),
        None if version >= Some(WARNING_JDK) && !files.iter().any(|file| is_headwater(file)) => warning(
            NAME,
            "allowed; the JVM prints a warning about it to the target's standard error, once",
            "-XX:+EnableDynamicAgentLoading keeps it quiet",
        ),
        _ => ok(NAME, "allowed"),
    }
}

/// Agents that came with the JVM's start, and libraries of those that came later, but for our own.
fn other_agents(options: &[String], files: &[String]) -> Check {
    const NAME: &str = "other agents";
    let mut found: Vec<&str> = options
        .iter()
        .filter(|option| ["-javaagent:", "-agentpath:", "-agentlib:"].iter().any(|kind| option.starts_with(kind)))
        .filter(|option| !option.contains(agent::DIRECTORY_PREFIX))
        .map(String::as_str)
        .collect();
    found.sort_unstable();
    found.dedup();
    if found.is_empty() && files.iter().any(|file| file.ends_with("/libinstrument.so")) {
        found.push("a Java agent that was loaded later (libinstrument)");
    }
    let has_debugger = files.iter().any(|file| jvm::is_debugger(file));
    let debugger = has_debugger || found.iter().any(|agent| agent.contains("jdwp"));
    if debugger && found.is_empty() {
        found.push("a debugger's agent that was loaded later (libjdwp)");
    }
    match found.is_empty() {
        true => ok(NAME, "none"),
        false if debugger => warning(
            NAME,
            found.join(", "),
            "the JVM clears a debugger's breakpoints in each class that is instrumented, and again when the class gets its original code back: set \
             them anew afterwards. A debugger that stops threads stops the profile, too; numbers under a debugger mean little",
        ),
        false => warning(
            NAME,
            found.join(", "),
            "their changes to classes stay in place, and their code in the target's methods counts as the target's",
        ),
    }
}

fn session(jvm: &Jvm) -> Check {
    const NAME: &str = "other sessions";
    if is_profiled(jvm) {
        let remedy = format!("end it, or, if its process is gone, `headwater detach {}`", jvm.pid);
        failure(NAME, "a headwater is attached to this JVM", remedy)
    } else {
        ok(NAME, "none")
    }
}

/// Whether a tool is attached to a JVM.
pub(crate) fn is_profiled(jvm: &Jvm) -> bool {
    agent::loaded_directory(jvm.pid).is_some() && has_live_segment(jvm.pid)
}

/// The event buffer is mapped as long as a session lasts.
fn has_live_segment(pid: u32) -> bool {
    jvm::mapped_files(pid).iter().any(|file| file.starts_with(headwater_protocol::layout::MAPPED_AS))
}

/// Whether a JVM of this version throws compiled code away when the first method in it is redefined, and none has been by those that show.
pub(crate) fn discards_compiled_code(version: Option<&str>, options: &[String], files: &[String]) -> bool {
    will_discard(feature_version(version), options, files)
}

fn will_discard(version: Option<u32>, options: &[String], files: &[String]) -> bool {
    let is_redefined =
        files.iter().any(|file| is_headwater(file)) || options.iter().any(|option| option.starts_with("-javaagent:"));
    version <= Some(FLUSHING_JDK) && !is_redefined
}

fn compiled_code(version: Option<u32>, options: &[String], files: &[String], recorder_used: bool) -> Check {
    const NAME: &str = "compiled code";
    if files.iter().any(|file| is_headwater(file)) {
        ok(NAME, "stays: Headwater has been in this JVM before")
    } else if recorder_used {
        ok(NAME, "stays: the flight recorder has been used in this JVM before")
    } else if !will_discard(version, options, files) {
        ok(NAME, "stays")
    } else {
        warning(
            NAME,
            "all of it is thrown away when the first method is instrumented, once in this JVM's life: the program is slow \
             for some seconds",
            "profile for longer than that, or start the program by `headwater run`",
        )
    }
}

/// What `sample`, `roots` and `locks` cost when they begin.
fn recorder(version: Option<u32>, options: &[String], files: &[String], recorder_used: bool) -> Check {
    const NAME: &str = "flight recorder";
    if recorder_used {
        ok(NAME, "has been used in this JVM before: starting it costs little")
    } else if will_discard(version, options, files) {
        warning(
            NAME,
            "its first start throws all compiled code away, once in this JVM's life: `sample`, `roots` and `locks` start it",
            "`sample` and `roots` do without by --recorder off, and know less of places",
        )
    } else {
        ok(NAME, "its first start takes a processor for a second: `sample`, `roots` and `locks` start it")
    }
}

impl Diagnosis {
    /// Whether attaching will fail.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.checks.iter().any(|check| check.verdict == Verdict::Failure)
    }

    /// For people: a line a check, with the remedy below.
    pub(crate) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        let width = self.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
        for check in &self.checks {
            let verdict = match check.verdict {
                Verdict::Ok => "ok",
                Verdict::Warning => "note",
                Verdict::Failure => "FAIL",
            };
            let mut finding = check.finding.lines();
            writeln!(out, "{verdict:4}  {:width$}  {}", check.name, finding.next().unwrap_or_default())?;
            for line in finding.chain(check.remedy.lines()) {
                writeln!(out, "{:4}  {:width$}  {line}", "", "")?;
            }
        }
        let verdict = if self.is_hopeless() { "headwater cannot attach" } else { "nothing is in the way of attaching" };
        writeln!(out, "\n{verdict}")
    }

    /// For programs: one object.
    pub(crate) fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, self)?;
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn versions() {
        for (text, feature) in [("17.0.15+6-Debian", Some(17)), ("25", Some(25)), ("1.8.0_292", Some(8)), ("x", None)] {
            assert_eq!(feature_version(Some(text)), feature, "{text}");
        }
        assert_eq!(feature_version(None), None);
    }

    #[test]
    fn dynamic_agent_loading_by_version_and_switch() {
        for (version, given, verdict) in [
            (17, "", Verdict::Ok),
            (21, "", Verdict::Warning),
            (21, "-XX:+EnableDynamicAgentLoading", Verdict::Ok),
            (17, "-XX:-EnableDynamicAgentLoading", Verdict::Failure),
            (25, "-XX:-EnableDynamicAgentLoading -XX:+EnableDynamicAgentLoading", Verdict::Ok),
        ] {
            assert_eq!(agent_loading(Some(version), &options(given), &[]).verdict, verdict, "{version} {given}");
        }
    }

    #[test]
    fn other_agents_are_named_and_ours_is_none() {
        let found = other_agents(&options("-javaagent:a.jar=x -agentpath:/tmp/headwater-1-ab/agent.so=y -Xmx1g"), &[]);
        assert_eq!((found.verdict, found.finding.as_str()), (Verdict::Warning, "-javaagent:a.jar=x"));
        assert_eq!(other_agents(&[], &[]).verdict, Verdict::Ok);
        let late = other_agents(&[], &["/usr/lib/jvm/17/lib/libinstrument.so".to_owned()]);
        assert_eq!(late.verdict, Verdict::Warning);
    }

    #[test]
    fn compiled_code_is_lost_once_and_on_older_jdks() {
        let ours = ["/tmp/headwater-12-ab/agent.so".to_owned()];
        let agent = options("-javaagent:a.jar");
        for (version, options, files, recorder_used, verdict) in [
            (17, &[][..], &[][..], false, Verdict::Warning),
            (17, &[], &ours, false, Verdict::Ok),
            (17, &agent, &[], false, Verdict::Ok),
            (17, &[], &[], true, Verdict::Ok),
            (25, &[], &[], false, Verdict::Ok),
        ] {
            assert_eq!(compiled_code(Some(version), options, files, recorder_used).verdict, verdict, "{version}");
            assert_eq!(recorder(Some(version), options, files, recorder_used).verdict, verdict, "{version}");
        }
    }

    #[test]
    fn the_text_has_the_remedy_below_the_finding() {
        let checks = vec![ok("state", "running"), failed("attach", "it is off; switch it on")];
        let diagnosis = Diagnosis { schema: "", target: None, checks };
        let mut text = Vec::new();
        diagnosis.write_text(&mut text).unwrap();
        let expected =
            "ok    state   running\nFAIL  attach  it is off\n              switch it on\n\nheadwater cannot attach\n";
        assert_eq!(String::from_utf8_lossy(&text), expected);
    }
}
