//! Threads that wait for each other in a circle.

use super::ThreadIndex;
use super::waits::{Certainty, Edge, WaitGraph};

/// Threads of which each waits for the next, and the last for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// In this order, from the first thread of the dump on.
    pub waits: Vec<Edge>,
    /// That of its least certain wait.
    pub certainty: Certainty,
}

/// All of them; in time proportional to the number of threads.
pub fn deadlocks(graph: &WaitGraph) -> Vec<Deadlock> {
    // By thread: the walk that first came there.
    let mut seen: Vec<Option<usize>> = vec![None; graph.len()];
    let mut found = Vec::new();
    for begin in 0..graph.len() {
        let mut at = ThreadIndex(begin);
        while seen[at.0].is_none() {
            seen[at.0] = Some(begin);
            let Some(edge) = graph.blocker(at) else { break };
            at = edge.to;
            if seen[at.0] == Some(begin) {
                found.extend(circle(graph, at));
                break;
            }
        }
    }
    found
}

/// The circle that goes through a thread, which is in one.
fn circle(graph: &WaitGraph, through: ThreadIndex) -> Option<Deadlock> {
    let mut waits = Vec::new();
    let mut at = through;
    loop {
        let edge = graph.blocker(at)?;
        waits.push(edge);
        at = edge.to;
        if at == through {
            break;
        }
    }
    let first = waits.iter().enumerate().min_by_key(|(_, edge)| edge.from).map_or(0, |(at, _)| at);
    waits.rotate_left(first);
    let certainty = waits.iter().map(|edge| edge.certainty).max()?;
    Some(Deadlock { waits, certainty })
}
