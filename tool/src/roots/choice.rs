//! Which of the methods that were timed are good roots, and in which order.

use super::cost::{self, Cost, Looked, Unknown};
use super::held::Held;
use super::names::{Names, Whose, is_generic, worth};
use super::seen::{Method, Seen};
use super::timed::{LEAST_CALLS, Timed};

/// So many are shown.
const MOST: usize = 10;
/// Methods that hold so much of each other, and are entered as often, are one to choose from.
const SAME: f64 = 0.9;
const SAME_RATE: f64 = 1.25;
/// What takes so long is a request or a step of work; what is shorter is more and more a part of one.
const STEP_NS: f64 = 20_000.0;

/// A method that could be a root.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its name for machines.
    pub machine: String,
    /// Its name for people.
    pub display: String,
    /// As `--root` takes it.
    pub pattern: String,
    /// What it holds, with what it calls.
    pub held: Held,
    /// How often it is entered, and how long that takes.
    pub timed: Timed,
    /// Others that hold the same, and are entered as often; names for people, the outermost first.
    pub same: Vec<String>,
    /// What an exact profile of it is likely to cost.
    pub cost: Result<Cost, Unknown>,
}

/// The best roots first.
pub(super) fn candidates(seen: &Seen, names: &Names, timed: &[Timed], looked: Looked) -> Vec<Candidate> {
    let methods = &seen.methods;
    let mut entered: Vec<&Timed> = timed.iter().filter(|it| it.calls >= LEAST_CALLS).collect();
    entered.sort_by(|a, b| methods[b.method].share.total_cmp(&methods[a.method].share));
    let mut groups: Vec<Vec<&Timed>> = Vec::new();
    for it in entered.iter().copied() {
        let is_same = |group: &&mut Vec<&Timed>| {
            let rates = [group[0].per_second, it.per_second];
            holds_the_same(seen, group[0].method, it.method)
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
            let best = best_of(methods, names, &group);
            let method = &methods[best.method];
            let others = group.iter().filter(|it| it.method != best.method);
            let is_below = |it: &&&Timed| {
                let all = seen.together(it.method, it.method);
                methods[it.method].depth > method.depth && seen.together(best.method, it.method) >= SAME * all
            };
            let below: f64 = entered.iter().filter(is_below).map(|it| it.per_second).sum();
            let candidate = Candidate {
                machine: method.name.machine.clone(),
                display: method.name.display.clone(),
                pattern: method.pattern(),
                held: method.held,
                timed: *best,
                same: others.map(|it| methods[it.method].name.display.clone()).collect(),
                cost: cost::cost(method, best, below, looked),
            };
            (method.share * worth(names, &method.name.machine, &method.held) * as_step(best), candidate)
        })
        .collect();
    candidates.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    candidates.into_iter().map(|(_, candidate)| candidate).take(MOST).collect()
}

fn holds_the_same(seen: &Seen, a: usize, b: usize) -> bool {
    seen.together(a, b) >= SAME * seen.together(a, a).max(seen.together(b, b))
}

/// The one that says most, of methods that are entered together: the program's outermost, else the outermost with a name of its own.
fn best_of<'t>(methods: &[Method], names: &Names, group: &[&'t Timed]) -> &'t Timed {
    let machine = |it: &Timed| methods[it.method].name.machine.as_str();
    let is_whose = |it: &Timed, whose: Whose| names.whose(machine(it)) == whose;
    let named = |whose: Whose| group.iter().find(|it| is_whose(it, whose) && !is_generic(machine(it)));
    let not_librarys = || group.iter().find(|it| !is_whose(it, Whose::Library));
    let best = named(Whose::Own).or_else(|| named(Whose::Unknown)).or_else(not_librarys);
    best.or_else(|| named(Whose::Library)).unwrap_or(&group[0])
}

fn as_step(timed: &Timed) -> f64 {
    if timed.mean_ns >= STEP_NS { 1.0 } else { 1.0 / (1.0 + (STEP_NS / timed.mean_ns.max(1.0)).log10()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::held::By;
    use crate::roots::seen::testing::{Stack, seen};

    /// The candidates where methods were entered so often, for so long; those of no account are not timed.
    fn found(seen: &Seen, timed: &[(&str, u64, f64)]) -> Vec<Candidate> {
        let timed = timed.iter().filter_map(|(name, calls, mean_ns)| {
            let method = seen.methods.iter().position(|method| method.name.display == format!("{name}()"))?;
            let p99_ns = *mean_ns as u64;
            Some(Timed { method, calls: *calls, per_second: *calls as f64, mean_ns: *mean_ns, p99_ns })
        });
        let timed: Vec<Timed> = timed.collect();
        candidates(
            seen,
            &Names::of("com.acme.Main"),
            &timed,
            Looked { pair_ns: 40.0, seconds: 5.0, is_compiled: true, processors: 2 },
        )
    }

    fn named(found: &[Candidate]) -> Vec<&str> {
        found.iter().map(|it| it.display.as_str()).collect()
    }

    const WORKER: &str = "org.apache.tomcat.Worker.run";
    const DISPATCH: &str = "org.springframework.Dispatcher.doDispatch";

    #[test]
    fn a_server_offers_its_handlers_and_not_the_loop_around_them() {
        let main = "com.acme.Main.main";
        let seen = seen(
            By::Cpu,
            &[
                (&[main], [1, 0, 0, 0]),
                (&[main, WORKER], [5, 0, 0, 0]),
                (&[main, WORKER, DISPATCH, "com.acme.Api.totals"], [30, 0, 0, 0]),
                (&[main, WORKER, DISPATCH, "com.acme.Api.totals", "com.acme.Row.value"], [30, 0, 0, 0]),
                (&[main, WORKER, DISPATCH, "com.acme.Api.orders"], [24, 0, 0, 0]),
                (&[main, WORKER, DISPATCH, "com.acme.Api.orders", "com.acme.Row.value"], [10, 0, 0, 0]),
            ],
        );
        let found = found(
            &seen,
            &[
                (main, 0, 0.0),
                (WORKER, 100, 5e6),
                (DISPATCH, 100, 5e6),
                ("com.acme.Api.totals", 40, 7e6),
                ("com.acme.Api.orders", 60, 3e6),
                ("com.acme.Row.value", 4_000_000, 20.0),
            ],
        );
        let handlers =
            [format!("{DISPATCH}()"), "com.acme.Api.totals()".to_owned(), "com.acme.Api.orders()".to_owned()];
        assert_eq!(named(&found)[..3], handlers);
        assert_eq!(found[0].same, [format!("{WORKER}()")]);
        assert_eq!(found[1].pattern, "com.acme.Api::totals()");
        assert_eq!(found.last().map(|it| it.display.as_str()), Some("com.acme.Row.value()"));
    }

    #[test]
    fn of_a_chain_that_is_entered_together_the_programs_own_is_named() {
        let chain = ["org.eclipse.jetty.Handler.handle", "com.acme.Filter.doFilter", "com.acme.Shop.checkout"];
        let seen = seen(By::Cpu, &[(&chain[..], [99, 0, 0, 0]), (&chain[..2], [1, 0, 0, 0])]);
        let found = found(&seen, &[(chain[0], 50, 1e6), (chain[1], 50, 1e6), (chain[2], 51, 1e6)]);
        assert_eq!(named(&found), ["com.acme.Shop.checkout()"]);
    }

    #[test]
    fn what_is_entered_once_is_no_root() {
        let seen = seen(By::Cpu, &[(&["com.acme.Main.main"], [100, 0, 0, 0])]);
        assert_eq!(found(&seen, &[("com.acme.Main.main", 1, 1e9)]), []);
    }

    #[test]
    fn requests_that_wait_are_found_beside_work_that_burns() {
        let (query, burn) = ("com.acme.Api.query", "com.acme.Index.merge");
        let next = "com.acme.Worker.nextJob";
        let stacks: &[Stack<'_>] = &[
            (&[WORKER, query, "com.acme.Db.call"], [5_000, 2_000_000, 0, 10]),
            (&[WORKER, next], [10, 9_000_000, 0, 0]),
            (&["com.acme.Merger.run", burn], [90_000, 0, 0, 90]),
        ];
        let timed = [(query, 500, 4e6), (burn, 20, 5e7), (next, 500, 2e7)];
        assert_eq!(named(&found(&seen(By::Cpu, stacks), &timed))[0], format!("{burn}()"));
        // Who waits for jobs does nothing; by the name nobody knows it.
        assert_eq!(named(&found(&seen(By::Wait, stacks), &timed))[0], format!("{query}()"));
        assert_eq!(named(&found(&seen(By::Alloc, stacks), &timed))[0], format!("{burn}()"));
        let all = found(&seen(By::All, stacks), &timed);
        assert!(named(&all)[..2].contains(&format!("{query}()").as_str()), "{all:#?}");
    }

    #[test]
    fn a_loop_that_waits_for_work_comes_behind_the_work() {
        let (job, handle) = ("org.eclipse.jetty.Pool.doJob", "com.acme.Api.handle");
        let stacks: &[Stack<'_>] = &[(&[job, handle], [60, 0, 0, 0]), (&[job], [40, 0, 10_000, 0])];
        let found = found(&seen(By::All, stacks), &[(job, 30, 1e7), (handle, 100, 1e6)]);
        assert_eq!(named(&found), ["com.acme.Api.handle()", "org.eclipse.jetty.Pool.doJob()"]);
    }
}
