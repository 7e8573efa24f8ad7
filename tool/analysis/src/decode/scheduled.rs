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

    /// How long it wanted a processor.
    pub fn wanted_ns(self) -> u64 {
        self.ran_ns + self.queued_ns
    }

    /// The part of that in which it stood in line; `None` if nothing is known.
    pub fn queued(self) -> Option<f64> {
        let wanted_ns = self.wanted_ns();
        (wanted_ns > 0).then(|| self.queued_ns as f64 / wanted_ns as f64)
    }

    /// The same part, of half as long.
    pub fn halved(self) -> Scheduled {
        Scheduled { ran_ns: self.ran_ns / 2, queued_ns: self.queued_ns / 2 }
    }

    /// What it had since then.
    pub fn since(self, before: Scheduled) -> Scheduled {
        Scheduled {
            ran_ns: self.ran_ns.saturating_sub(before.ran_ns),
            queued_ns: self.queued_ns.saturating_sub(before.queued_ns),
        }
    }
}
