//! `headwater list`: the JVMs that can be attached to.

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use super::arguments::ListFormat;
use super::fail;
use crate::attach::TargetHost;
use crate::jvm::{self, Jvm};
use crate::leftovers;
use crate::printable::printable;

pub(super) fn run(format: ListFormat) -> ExitCode {
    let jvms = jvm::list();
    super::say_removed(&remove_left(&jvms));
    let written = match format {
        ListFormat::Text => write_text(&jvms, &mut io::stdout().lock()),
        ListFormat::Json => write_json(&jvms, &mut io::stdout().lock()),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("cannot write the list: {error}")),
    }
}

/// Removes what tools that are gone have left, here and where these JVMs are.
fn remove_left(jvms: &[Jvm]) -> Vec<String> {
    let hosts = jvms.iter().filter_map(|jvm| TargetHost::of(jvm).ok());
    let mut removed: Vec<String> = hosts.flat_map(|host| leftovers::remove_beside(&host)).collect();
    removed.extend(leftovers::remove_here());
    removed
}

fn write_text(jvms: &[Jvm], out: &mut impl Write) -> io::Result<()> {
    if jvms.is_empty() {
        return writeln!(out, "no JVM is running that this user may see");
    }
    let widths = jvms.iter().fold((3, 4, 4), |(pid, java, main), jvm| {
        (pid.max(jvm.pid.to_string().len()), java.max(version(jvm).len()), main.max(shown(jvm).chars().count()))
    });
    writeln!(
        out,
        "{:>pid$}  {:java$}  {:main$}  ARGUMENTS",
        "PID",
        "JAVA",
        "MAIN",
        pid = widths.0,
        java = widths.1,
        main = widths.2
    )?;
    for jvm in jvms {
        let arguments: String = printable(&jvm.arguments).chars().take(80).collect();
        let line = format!(
            "{:>pid$}  {:java$}  {:main$}  {arguments}",
            jvm.pid,
            version(jvm),
            shown(jvm),
            pid = widths.0,
            java = widths.1,
            main = widths.2
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn shown(jvm: &Jvm) -> Cow<'_, str> {
    printable(&jvm.main)
}

fn version(jvm: &Jvm) -> &str {
    jvm.java_version.as_deref().unwrap_or("?")
}

/// `headwater list --format json`: an array of objects.
fn write_json(jvms: &[Jvm], out: &mut impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Row<'a> {
        pid: u32,
        main: &'a str,
        arguments: &'a str,
        java: Option<&'a str>,
        uid: u32,
    }
    let rows: Vec<Row<'_>> = jvms
        .iter()
        .map(|jvm| Row {
            pid: jvm.pid,
            main: &jvm.main,
            arguments: &jvm.arguments,
            java: jvm.java_version.as_deref(),
            uid: jvm.uid,
        })
        .collect();
    serde_json::to_writer_pretty(&mut *out, &rows)?;
    writeln!(out)
}
