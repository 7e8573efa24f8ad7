//! Contended locks.

use serde::Serialize;

use crate::profile::{self, Blocked, Contention, Leaver, WaitPlace};

#[derive(Serialize)]
pub(super) struct Locks<'a> {
    over_ns: u64,
    #[serde(flatten)]
    blocked: Waits,
    other_parks: Waits,
    looks: u64,
    contended: Vec<Lock<'a>>,
    unfinished: Vec<Unfinished<'a>>,
    limits: &'a [String],
}

#[derive(Serialize)]
struct Waits {
    waits: u64,
    blocked_ns: u64,
    longest_ns: u64,
}

#[derive(Serialize)]
struct Lock<'a> {
    kind: &'static str,
    class: &'a str,
    /// As text: not every reader of JSON has integers of 64 bits.
    address: String,
    #[serde(flatten)]
    blocked: Waits,
    places: Vec<Place<'a>>,
}

#[derive(Serialize)]
struct Place<'a> {
    #[serde(flatten)]
    blocked: Waits,
    threads: usize,
    /// The innermost method first.
    stack: Vec<&'a str>,
    cut: bool,
    /// The method of the tree's node in which it was waited.
    method: Option<&'a str>,
    /// That node, of the tree of all threads as the tree view has it.
    node: Option<usize>,
    left_by: Vec<Left<'a>>,
    seen: u64,
    holders: Vec<Holder<'a>>,
}

#[derive(Serialize)]
struct Left<'a> {
    thread: &'a str,
    #[serde(flatten)]
    blocked: Waits,
}

#[derive(Serialize)]
struct Holder<'a> {
    thread: &'a str,
    seen: u64,
    stack: &'a [String],
}

#[derive(Serialize)]
struct Unfinished<'a> {
    kind: &'static str,
    lock: &'a str,
    thread: &'a str,
    seen_ns: u64,
    stack: &'a [String],
    holder: Option<Holder<'a>>,
}

impl<'a> Locks<'a> {
    pub(super) fn of(profile: &'a profile::Profile, contention: &'a Contention) -> Locks<'a> {
        let lock = |lock: &'a profile::ContendedLock| Lock {
            kind: lock.kind.name(),
            class: &lock.class,
            address: format!("0x{:x}", lock.address),
            blocked: lock.blocked().into(),
            places: lock.waits.iter().map(|wait| Place::of(profile, contention, wait)).collect(),
        };
        let unfinished = |it: &'a profile::Unfinished| Unfinished {
            kind: it.kind.name(),
            lock: &it.lock,
            thread: &it.thread,
            seen_ns: it.seen_ns,
            stack: &it.stack,
            holder: it.holder.as_ref().map(Holder::of),
        };
        Locks {
            over_ns: contention.over_ns,
            blocked: contention.blocked().into(),
            other_parks: contention.other_parks.into(),
            looks: contention.looks,
            contended: contention.locks.iter().map(lock).collect(),
            unfinished: contention.unfinished.iter().map(unfinished).collect(),
            limits: &contention.limits,
        }
    }
}

impl<'a> Place<'a> {
    fn of(profile: &'a profile::Profile, contention: &'a Contention, wait: &'a WaitPlace) -> Place<'a> {
        let names = wait.stack.iter().rev().filter_map(|method| contention.methods.get(*method));
        let node = wait.node.and_then(|node| profile.merged.nodes.get(node));
        let left = |left: &'a Leaver| Left { thread: &left.thread, blocked: left.blocked.into() };
        Place {
            blocked: wait.blocked.into(),
            threads: wait.threads.len(),
            stack: names.map(|name| name.machine.as_str()).collect(),
            cut: wait.is_cut,
            method: node.map(|node| profile.method_of(node).machine.as_str()),
            node: wait.node,
            left_by: wait.left_by.iter().map(left).collect(),
            seen: wait.seen,
            holders: wait.holders.iter().map(Holder::of).collect(),
        }
    }
}

impl Holder<'_> {
    fn of(holder: &profile::Holder) -> Holder<'_> {
        Holder { thread: &holder.thread, seen: holder.seen, stack: &holder.stack }
    }
}

impl From<Blocked> for Waits {
    fn from(blocked: Blocked) -> Waits {
        Waits { waits: blocked.count, blocked_ns: blocked.total_ns, longest_ns: blocked.longest_ns }
    }
}
