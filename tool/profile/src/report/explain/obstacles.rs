//! What keeps a method from having probes, and what can be done about it.

use super::{Known, listed};
use crate::profile::reach::{Cause, ReachOptions};
use crate::profile::{Limit, MethodIndex};
use crate::report::units::time;
use headwater_terms::pattern::ClassPattern;
use headwater_terms::reach::Obstacle;

/// So many implementations of an abstract method are named.
const MOST_IMPLEMENTATIONS: usize = 5;

/// What to do about methods that were dropped.
fn keep_all() -> &'static str {
    "--budget off keeps all"
}

/// It, in words.
pub(super) struct Said {
    pub(super) says: String,
    pub(super) advice: Option<String>,
}

impl Said {
    pub(super) fn new(says: impl Into<String>, advice: impl Into<String>) -> Said {
        Said { says: says.into(), advice: Some(advice.into()) }
    }

    fn only(says: impl Into<String>) -> Said {
        Said { says: says.into(), advice: None }
    }
}

/// How methods of the JDK get probes.
pub(super) fn of_jdk(wanted: &ReachOptions) -> Option<String> {
    let advice = match wanted.jdk.as_str() {
        "all" => return None,
        "edge" => "--jdk all gives probes to those that the JDK itself calls, too",
        _ => "--jdk edge gives probes to those that the application calls, --jdk all to all",
    };
    Some(advice.to_owned())
}

impl Known<'_> {
    /// Why a method has no probes.
    pub(super) fn obstacle(&self, machine: &str, why: Obstacle, cause: Cause) -> Said {
        let by = cause.by.map_or("a method below a root", |by| self.profile.methods[by.0].display.as_str());
        match why {
            Obstacle::Jdk => {
                let wanted = self.reach.map(|reach| &reach.wanted);
                let says = "it is the JDK's: its time counts into those that call it".to_owned();
                Said { says, advice: wanted.and_then(of_jdk) }
            }
            Obstacle::Filtered => self.filtered(machine),
            Obstacle::Trivial => Said::new(
                "it only hands a value on: its time counts into those that call it",
                "without --skip-trivial it has probes",
            ),
            Obstacle::Native => self.native(),
            Obstacle::Abstract => self.implementations(machine),
            Obstacle::Unmodifiable => Said::only(
                "its class cannot be changed: the JVM does not let it, or the probes themselves run it. What it calls is found all the same",
            ),
            Obstacle::Refused => {
                let skipped = self.profile.skipped.iter().find(|skipped| skipped.method == machine);
                Said::only(skipped.map_or("it was refused", |skipped| skipped.reason.as_str()))
            }
            Obstacle::Numbers => Said::new(
                "there were no more method numbers",
                "a root with less below it, or --include and --exclude, leave more of them",
            ),
            Obstacle::Watched => Said::new(
                "it has never run, by the JVM's own counter, and only code without probes may call it: its counter was looked at, \
                 and it would have got probes after its first calls",
                "--gentle off gives such methods probes from the beginning",
            ),
            Obstacle::Withheld => Said::only(
                "it had never run, and no class of the JDK that is loaded names it, so that nothing can call it back",
            ),
            Obstacle::Guarded | Obstacle::Spared if cause.by.is_some_and(|by| self.lacks(by.0).is_some()) => Said::new(
                format!("the call in {by} that leads to it would tell when it is made, but that has no probes itself"),
                format!("ask for {by}"),
            ),
            Obstacle::Guarded => Said::only(format!(
                "it is behind an unlikely call in {by} that no thread has come to while that had probes: where an exception is thrown or \
                 caught, or that was never made before"
            )),
            Obstacle::Spared => Said::only(format!(
                "it had never run, and while {by} had probes no virtual call in that was made on an object that has it: it would have told \
                 so before"
            )),
            Obstacle::Running => Said::new(
                "a thread was in its class's code all the time, and nothing but objects that nobody names leads to it",
                "name it as a --root",
            ),
            Obstacle::NotLoaded => {
                Said::only("no class of that name was loaded: it would have had probes before its first call")
            }
            Obstacle::NotLinked => Said::only("its class was loaded, and never used"),
            Obstacle::Limits => Said::new(
                "recording ended before its turn came: for the program's sake the JVM is stopped for a small part of the time only",
                "record for longer (-d), or, where the program may be held up, with --gentle off",
            ),
            Obstacle::Dropped => Said::new("its probes cost more than was allowed, and were taken out", keep_all()),
            Obstacle::Unknown => Said::only("for a reason that a later Headwater knows"),
        }
    }

    /// Why a method lost its probes, and when.
    pub(super) fn dropped(&self, method: MethodIndex) -> Said {
        let budget = self.profile.budget.as_ref();
        let dropped = budget.and_then(|it| Some((it, it.dropped.iter().find(|dropped| dropped.method == method)?)));
        let Some((budget, dropped)) = dropped else { return self.obstacle("", Obstacle::Dropped, Cause::default()) };
        let since = match dropped.at.is_zero() {
            true => "before what was recorded here".to_owned(),
            false => format!("at {:.2} s", dropped.at.as_secs_f64()),
        };
        let cost = format!("{:.1}%", 100.0 * dropped.overhead);
        let (limit, advice) = match budget.limit {
            Limit::Part(_) => (format!("to keep to --budget {}", budget.limit), "a larger --budget keeps them"),
            Limit::Call { longer_ns } => {
                (format!("because calls of its root were made longer by more than {}", time(longer_ns)), keep_all())
            }
        };
        Said::new(
            format!(
                "its probes were taken out {since} {limit}; they alone cost {cost} of what its root's calls take without. Its time counts into \
                 those that call it since"
            ),
            advice,
        )
    }

    fn filtered(&self, machine: &str) -> Said {
        let name = machine.split('(').next().unwrap_or(machine);
        let (class, method) = name.rsplit_once('.').unwrap_or((name, ""));
        let class = class.replace('.', "/");
        let wanted = self.reach.map(|reach| &reach.wanted);
        let is_meant = |text: &&String| text.parse::<ClassPattern>().is_ok_and(|it| it.matches(&class, method));
        let says = match wanted.and_then(|wanted| wanted.exclude.iter().find(is_meant)) {
            Some(pattern) => format!("--exclude {pattern} leaves it out"),
            None => {
                let include = wanted.map(|wanted| wanted.include.join(" and ")).unwrap_or_default();
                format!("--include {include} leaves it out")
            }
        };
        Said::new(
            format!("{says}: its time counts into those that call it, and what it calls is found all the same"),
            "change the filters",
        )
    }

    fn native(&self) -> Said {
        if self.reach.is_some_and(|reach| reach.wanted.natives) {
            return Said::only(
                "it is native, and calls that may run other methods as well, by their object's class, have no probes",
            );
        }
        Said::new(
            "it is native: there is no code that probes could be put into",
            "--natives puts them around calls of it",
        )
    }

    /// Of an abstract method, what implements it and was found because of it.
    fn implementations(&self, machine: &str) -> Said {
        let none = Said::only("it is abstract, and nothing that implements it was found");
        let Some(reach) = self.reach else { return none };
        let (name, descriptor) = machine.split_at(machine.find('(').unwrap_or(machine.len()));
        let Some((class, method)) = name.rsplit_once('.') else { return none };
        let Some(class) = reach.types.iter().position(|known| known == class) else { return none };
        let end = format!(".{method}{descriptor}");
        let methods = reach.methods.iter().zip(&self.profile.methods);
        let found = methods.filter(|(it, name)| it.cause.through == Some(class) && name.machine.ends_with(&end));
        let mut names: Vec<&str> = found.map(|(_, name)| name.display.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        match names.is_empty() {
            true => none,
            false => Said::new(
                format!("it is abstract; found because of it: {}", listed(&names, MOST_IMPLEMENTATIONS)),
                "ask for one of these",
            ),
        }
    }
}
