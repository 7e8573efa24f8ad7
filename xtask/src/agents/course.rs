//! One course: the program, the other agent, a profile or none, and what was seen.

use std::process::Command;

use headwater_tests::{Process, calls_by_method, read_report};
use rustix::process::Signal;

use super::other::{Beside, Other};
use super::{Order, Place};

/// Calls of the root at a time,
const GO: u64 = 20;
/// and so often while it is profiled.
const TIMES: u64 = 3;
/// What a profile is to say of them: calls of the root, and of what is called three times and six times by it.
pub(crate) const EXPECTED: [u64; 3] = [TIMES * GO, 3 * TIMES * GO, 6 * TIMES * GO];
const METHODS: [&str; 3] = ["Work.root(I)I", "Work.step(I)I", "Work.leaf(I)I"];

/// What is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course<'p> {
    pub(crate) place: &'p Place,
    pub(crate) other: Other,
    pub(crate) order: Order,
    pub(crate) with_us: bool,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// What the program answered.
    pub(crate) results: Vec<String>,
    /// By the profile.
    pub(crate) calls: [u64; 3],
    /// Why it has none.
    pub(crate) skipped: Vec<String>,
    /// By the other agent.
    pub(crate) witness: String,
    /// How many classes have other code than before the profile.
    pub(crate) changed: String,
}

impl Course<'_> {
    pub(crate) fn run(self) -> Result<Seen, String> {
        let mut beside = Beside::start(self.place, self.other, self.order)?;
        let mut seen = Seen::default();
        let mut go = |beside: &mut Beside<'_>| seen.results.push(beside.told(&format!("go {GO}")));
        go(&mut beside);
        if self.order.is_there_before() {
            beside.come()?;
        }
        beside.told("baseline");
        let tool = self.with_us.then(|| self.profile(&beside));
        go(&mut beside);
        if !self.order.is_there_before() {
            beside.come()?;
        }
        go(&mut beside);
        if !self.order.stays() {
            beside.leave()?;
        }
        go(&mut beside);
        if let Some(tool) = tool {
            tool.signal(Signal::INT);
            let tool = tool.finish();
            if !tool.status.success() {
                return Err(format!("the profile failed: {:#?}", tool.stderr));
            }
            let report = read_report(&self.place.classes.file("profile.json"));
            let calls = calls_by_method(&report);
            seen.calls = METHODS.map(|method| calls.get(method).copied().unwrap_or(0));
            let skipped = report["methods"]["skipped"].as_array().cloned().unwrap_or_default();
            let ours = skipped.iter().filter(|it| it["method"].as_str().is_some_and(|name| name.starts_with("Work.")));
            seen.skipped = ours.filter_map(|it| it["reason"].as_str()).map(str::to_owned).collect();
            seen.skipped.dedup();
        }
        let mut go = |beside: &mut Beside<'_>| seen.results.push(beside.told(&format!("go {GO}")));
        seen.changed = beside.told("changed");
        go(&mut beside);
        if self.order.stays() && !matches!(self.other, Other::ByteBuddy) {
            beside.leave()?;
        }
        // One more is made before anybody counts; what comes late sees what is called from then on.
        let calls = if self.order.is_there_before() { 5 * GO + 1 } else { 3 * GO };
        seen.witness = beside.witness(calls);
        let end = beside.target.finish();
        if end.status.success() { Ok(seen) } else { Err(format!("the program failed: {:#?}", end.stderr)) }
    }

    fn profile(self, beside: &Beside<'_>) -> Process {
        let mut tool = Command::new(&self.place.binary);
        tool.args(["profile", &beside.target.pid().to_string(), "--root", "Work::root", "--bare", "off"]);
        tool.args(["--gentle", "off", "-o"]).arg(self.place.classes.file("profile.json"));
        let mut tool = Process::spawn(&mut tool);
        tool.await_error_line("instrumented");
        tool
    }
}
