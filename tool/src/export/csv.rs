//! Comma-separated values (RFC 4180): a header, then one row a node, parents before their children.

use std::io::{self, Write};

use serde::Serialize;

use super::Part;
use crate::profile::Profile;

#[derive(Serialize)]
struct Row<'a> {
    id: usize,
    parent: Option<usize>,
    thread_id: Option<u64>,
    thread: Option<&'a str>,
    level: usize,
    name: &'a str,
    method: &'a str,
    calls: u64,
    thrown: u64,
    self_ns: u64,
    total_ns: u64,
    error_ns: u64,
    total_error_ns: u64,
    cpu_samples: u32,
    cpu_share: Option<f64>,
    /// Calls may be missing.
    at_least: bool,
}

/// For a tree without nodes; the writer takes it from the first row otherwise.
const HEADER: &str = "id,parent,thread_id,thread,level,name,method,calls,thrown,self_ns,total_ns,error_ns,total_error_ns,\
                      cpu_samples,cpu_share,at_least";

pub(super) fn write(profile: &Profile, parts: &[Part<'_>], out: &mut impl Write) -> io::Result<()> {
    if parts.iter().all(|part| part.tree.nodes.is_empty()) {
        return write!(out, "{HEADER}\r\n");
    }
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(out);
    let mut first = 0;
    for part in parts {
        let mut levels = Vec::with_capacity(part.tree.nodes.len());
        let incomplete = profile.incomplete_nodes(part.tree);
        for (index, node) in part.tree.nodes.iter().enumerate() {
            let level = node.parent.map_or(1, |parent| levels[parent.0] + 1);
            levels.push(level);
            let names = profile.method_of(node);
            writer.serialize(Row {
                id: first + index,
                parent: node.parent.map(|parent| first + parent.0),
                thread_id: part.thread.map(|thread| thread.id.0),
                thread: part.thread.map(|thread| thread.name.as_str()),
                level,
                name: &names.display,
                method: &names.machine,
                calls: node.calls,
                thrown: node.thrown,
                self_ns: node.self_ns,
                total_ns: node.total_ns,
                error_ns: node.error_ns,
                total_error_ns: node.total_error_ns,
                cpu_samples: node.cpu.samples,
                cpu_share: node.cpu.share(),
                at_least: incomplete[index],
            })?;
        }
        first += part.tree.nodes.len();
    }
    writer.flush()
}
