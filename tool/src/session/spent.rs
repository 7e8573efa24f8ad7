//! Where the time goes until the roots are instrumented, and after.

use std::time::Duration;

use super::Session;

/// What took time, how often, and how long together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// What it was for, as an infinitive.
    pub on: &'static str,
    /// How often.
    pub times: u32,
    /// All of them together.
    pub time: Duration,
}

/// Everything that took time so far, in the order in which it came first.
#[derive(Clone, Debug, Default)]
pub(super) struct Account(Vec<Spent>);

impl Account {
    pub(super) fn add(&mut self, on: &'static str, time: Duration) {
        match self.0.iter_mut().find(|spent| spent.on == on) {
            Some(spent) => {
                spent.times += 1;
                spent.time += time;
            }
            None => self.0.push(Spent { on, times: 1, time }),
        }
    }

    /// How much of it is for this.
    pub(super) fn on(&self, on: &str) -> Duration {
        self.0.iter().find(|spent| spent.on == on).map_or(Duration::ZERO, |spent| spent.time)
    }
}

impl Session {
    /// What took time so far: commands of the agent, without what the tool did meanwhile; that; and waiting.
    pub fn spent(&self) -> &[Spent] {
        &self.spent.0
    }

    /// Something else took time.
    pub fn spend(&mut self, on: &'static str, time: Duration) {
        self.spent.add(on, time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_added_up() {
        let mut account = Account::default();
        account.add("wait", Duration::from_millis(30));
        account.add("list classes", Duration::from_millis(5));
        account.add("wait", Duration::from_millis(20));
        assert_eq!(account.on("wait"), Duration::from_millis(50));
        assert_eq!(
            account.0.iter().map(|spent| (spent.on, spent.times)).collect::<Vec<_>>(),
            [("wait", 2), ("list classes", 1)]
        );
    }
}
