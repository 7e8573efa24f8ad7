/// What a thread that wanted a processor had of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    /// How long it ran.
    pub ran_ns: u64,
    /// How long it stood in line.
    pub queued_ns: u64,
}

impl Scheduled {
    /// Adds another thread's, or another time's.
    pub fn add(&mut self, other: Scheduled) {
        self.ran_ns += other.ran_ns;
        self.queued_ns += other.queued_ns;
    }

    /// The part of the time in which it stood in line; `None` if nothing is known.
    pub fn queued(self) -> Option<f64> {
        let wanted_ns = self.ran_ns + self.queued_ns;
        (wanted_ns > 0).then(|| self.queued_ns as f64 / wanted_ns as f64)
    }

    /// What it had since then.
    pub fn since(self, before: Scheduled) -> Scheduled {
        Scheduled {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            queued_ns: self.queued_ns.saturating_sub(before.queued_ns),
        }
    }
}
