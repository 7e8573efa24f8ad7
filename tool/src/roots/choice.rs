//! Which of the methods that were timed are good roots, and in which order.

use std::cmp::Reverse;

use super::seen::Method;

/// So many are shown.
const MOST: usize = 10;
/// Methods that hold so much of each other's CPU time, and are entered as often, are one to choose from.
const SAME_CPU: f64 = 0.9;
const SAME_RATE: f64 = 1.25;
/// What is called less often within the time is not "again and again".
const LEAST_CALLS: u64 = 2;
/// Up to so many calls a second a method is a request or a step of work; beyond, it is more and more a part of one.
const STEPS: f64 = 1_000.0;
/// How much less a library's method is worth than the program's own: who looks knows the program.
const LIBRARY: f64 = 0.8;

/// Packages of what programs are made of, rather than of programs. Only the order of equals depends on it.
const LIBRARIES: [&str; 24] = [
    "org.apache.",
    "org.springframework.",
    "org.hibernate.",
    "org.eclipse.",
    "org.glassfish.",
    "org.jboss.",
    "io.netty.",
    "io.undertow.",
    "io.vertx.",
    "io.micronaut.",
    "io.quarkus.",
    "com.fasterxml.",
    "com.google.",
    "com.zaxxer.",
    "org.h2.",
    "org.postgresql.",
    "com.mysql.",
    "kotlin.",
    "kotlinx.",
    "scala.",
    "clojure.",
    "groovy.",
    "akka.",
    "reactor.",
];
/// Names of methods that say nothing of what they do.
const GENERIC: [&str; 10] =
    ["run", "doRun", "call", "invoke", "apply", "accept", "get", "execute", "doFilter", "proceed"];

/// How often a method was entered, and how long its calls took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// Which.
    pub method: usize,
    /// Calls that ended, recursive ones counted once.
    pub calls: u64,
    /// The same.
    pub per_second: f64,
    /// Their mean duration.
    pub mean_ns: f64,
    /// 99 of 100 were not longer.
    pub p99_ns: u64,
}

/// A method that could be a root.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name for machines.
    pub machine: String,
    /// Its name for people.
    pub display: String,
    /// As `--root` takes it.
    pub pattern: String,
    /// The part of the CPU time seen in Java code that it holds, with what it calls.
    pub share: f64,
    /// How often it is entered, and how long that takes.
    pub timed: Timed,
    /// Others that hold the same, and are entered as often; names for people, the outermost first.
    pub same: Vec<String>,
}

/// Whether a method is a library's, as far as names tell.
pub(super) fn is_library(machine: &str) -> bool {
    LIBRARIES.iter().any(|package| machine.starts_with(package))
}

/// The best roots first. `together` is the CPU time that two methods hold both.
pub(super) fn candidates(
    methods: &[Method],
    whole_ns: u64,
    timed: &[Timed],
    together: &dyn Fn(usize, usize) -> u64,
) -> Vec<Candidate> {
    let mut entered: Vec<&Timed> = timed.iter().filter(|it| it.calls >= LEAST_CALLS).collect();
    entered.sort_by_key(|it| Reverse(methods[it.method].cpu_ns));
    let mut groups: Vec<Vec<&Timed>> = Vec::new();
    for it in entered {
        let is_same = |group: &&mut Vec<&Timed>| {
            let first = group[0];
            let larger = methods[first.method].cpu_ns.max(methods[it.method].cpu_ns) as f64;
            let rates = [first.per_second, it.per_second];
            together(first.method, it.method) as f64 >= SAME_CPU * larger
                && rates[0].max(rates[1]) <= SAME_RATE * rates[0].min(rates[1])
        };
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(it),
            None => groups.push(vec![it]),
        }
    }
    let mut candidates: Vec<(f64, Candidate)> = groups
        .into_iter()
        .map(|mut group| {
            group.sort_by(|a, b| methods[a.method].depth.total_cmp(&methods[b.method].depth));
            let best = best_of(methods, &group);
            let method = &methods[best.method];
            let share = method.cpu_ns as f64 / whole_ns.max(1) as f64;
            let others = group.iter().filter(|it| it.method != best.method);
            let candidate = Candidate {
                machine: method.name.machine.clone(),
                display: method.name.display.clone(),
                pattern: method.pattern(),
                share,
                timed: *best,
                same: others.map(|it| methods[it.method].name.display.clone()).collect(),
            };
            (share * worth(&method.name.machine, best.per_second), candidate)
        })
        .collect();
    candidates.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    candidates.into_iter().map(|(_, candidate)| candidate).take(MOST).collect()
}

/// The one that says most, of methods that are entered together: the program's outermost, else the outermost with a name of its own.
fn best_of<'t>(methods: &[Method], group: &[&'t Timed]) -> &'t Timed {
    let machine = |it: &Timed| methods[it.method].name.machine.as_str();
    let is_generic = |it: &Timed| {
        let name = machine(it).split('(').next().unwrap_or_default();
        name.rsplit('.').next().is_some_and(|name| GENERIC.contains(&name) || name.starts_with("lambda$"))
    };
    let own = group.iter().find(|it| !is_library(machine(it)) && !is_generic(it));
    let any_own = || group.iter().find(|it| !is_library(machine(it)));
    let named = || group.iter().find(|it| !is_generic(it));
    own.or_else(any_own).or_else(named).unwrap_or(&group[0])
}

fn worth(machine: &str, per_second: f64) -> f64 {
    let as_step = if per_second <= STEPS { 1.0 } else { 1.0 / (1.0 + (per_second / STEPS).log10()) };
    as_step * if is_library(machine) { LIBRARY } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::MethodName;

    /// Methods of a made-up program: names, parts of the CPU time, depths.
    fn methods(all: &[(&str, u64, f64)]) -> Vec<Method> {
        let method = |(name, cpu_ns, depth): &(&str, u64, f64)| Method {
            name: MethodName { machine: format!("{name}()V"), display: format!("{name}()") },
            cpu_ns: *cpu_ns,
            own_ns: 1,
            depth: *depth,
        };
        all.iter().map(method).collect()
    }

    fn timed(all: &[(usize, u64, f64)]) -> Vec<Timed> {
        let timed = |(method, calls, mean_ns): &(usize, u64, f64)| Timed {
            method: *method,
            calls: *calls,
            per_second: *calls as f64,
            mean_ns: *mean_ns,
            p99_ns: *mean_ns as u64,
        };
        all.iter().map(timed).collect()
    }

    #[test]
    fn a_server_offers_its_handlers_and_not_the_loop_around_them() {
        let methods = methods(&[
            ("com.acme.Main.main", 100, 0.0),
            ("org.apache.tomcat.Worker.run", 99, 2.0),
            ("org.springframework.Dispatcher.doDispatch", 95, 20.0),
            ("com.acme.Api.totals", 60, 30.0),
            ("com.acme.Api.orders", 35, 30.0),
            ("com.acme.Row.value", 40, 40.0),
        ]);
        // Everything is below what is above it; the two handlers have nothing in common.
        let together = |a: usize, b: usize| match (a.min(b), a.max(b)) {
            (3, 4) => 0,
            (4, 5) => 10,
            (a, b) => methods[a].cpu_ns.min(methods[b].cpu_ns),
        };
        let timed =
            timed(&[(0, 0, 0.0), (1, 100, 5e6), (2, 100, 5e6), (3, 40, 7e6), (4, 60, 3e6), (5, 4_000_000, 20.0)]);
        let found = candidates(&methods, 100, &timed, &together);
        let names: Vec<&str> = found.iter().map(|it| it.display.as_str()).collect();
        assert_eq!(
            names,
            [
                "org.springframework.Dispatcher.doDispatch()",
                "com.acme.Api.totals()",
                "com.acme.Api.orders()",
                "com.acme.Row.value()"
            ]
        );
        assert_eq!(found[0].same, ["org.apache.tomcat.Worker.run()"]);
        assert_eq!(found[1].pattern, "com.acme.Api::totals()");
    }

    #[test]
    fn of_a_chain_that_is_entered_together_the_programs_own_is_named() {
        let methods = methods(&[
            ("org.eclipse.jetty.Handler.handle", 90, 3.0),
            ("com.acme.Filter.doFilter", 90, 4.0),
            ("com.acme.Shop.checkout", 89, 5.0),
        ]);
        let together = |a: usize, b: usize| methods[a].cpu_ns.min(methods[b].cpu_ns);
        let found = candidates(&methods, 100, &timed(&[(0, 50, 1e6), (1, 50, 1e6), (2, 51, 1e6)]), &together);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].display, "com.acme.Shop.checkout()");
    }

    #[test]
    fn what_is_entered_once_is_no_root() {
        let methods = methods(&[("com.acme.Main.main", 100, 0.0)]);
        assert_eq!(candidates(&methods, 100, &timed(&[(0, 1, 1e9)]), &|_, _| 100), []);
    }
}
