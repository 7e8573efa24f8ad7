//! Calls that threads are in when we come.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use headwater_jfr::Samples;
use headwater_protocol::message::{Command, Reply, Walked};
use headwater_protocol::{ClassId, MethodId};

use super::allowance::Taking;
use super::loops::{Calls, Look, Owner, Series};
use super::{Session, SessionError, unexpected};
use crate::callgraph::{Mechanism, OpenThread};
use crate::decode::Returned;
use crate::jvm::process;

/// How often the stacks of threads inside the roots are looked at, at most, while methods found there are being instrumented.
const MOST_LOOKS: usize = 8;
/// After each of these times it is looked once more whether calls of roots that return soon, and were open when we came, still are. A look
/// is a safepoint.
const PASSING: [Duration; 4] =
    [Duration::from_millis(3), Duration::from_millis(6), Duration::from_millis(12), Duration::from_millis(20)];

/// What has not run while roots were called so often is not expected to.
const ENOUGH_CALLS: u32 = 10;
/// So long it is waited for them.
const COMING: [Duration; 4] =
    [Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(400)];
/// ... in all.
const LONGEST: Duration = Duration::from_millis(750);
/// A call that a thread is in for longer is taken for one that lasts.
const STAYING: Duration = Duration::from_millis(20);
/// The agent looks where threads run for no longer, whoever has asked for it.
const LONGEST_WALK: Duration = Duration::from_secs(120);
/// All stacks are looked at so often, a few times in a row and then again after a while: classes that are on one in twenty are found then.
const ROUNDS: u32 = 10;
const LOOKS: u32 = 4;
const BETWEEN: Duration = Duration::from_millis(30);
/// Where threads are many, looks take long: no more are made then.
const LOOKING: Duration = Duration::from_millis(40);

/// How often it was looked where threads are below the roots.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looks {
    rounds: u32,
    took: Duration,
    have_seen: bool,
}

impl Looks {
    /// Where hardly ever anybody is there, waiting a little longer shows nobody.
    fn are_worth_while(self) -> bool {
        let enough = if self.have_seen { ROUNDS } else { ROUNDS / 3 + 1 };
        self.rounds < enough && self.took < LOOKING
    }
}

/// In which time roots that had so many calls since the program's start have enough more, as far as they go on being called as often; `None` if that is
/// too long to be waited for.
fn time_of_calls(calls: u32, age: Duration) -> Option<Duration> {
    (calls > 0).then(|| age.mul_f64(f64::from(ENOUGH_CALLS) / f64::from(calls))).filter(|time| *time <= LONGEST)
}

impl Session {
    /// Finds the threads that are inside the roots already, and instruments what they can call next: the threads, with the
    /// methods that they are in.
    pub async fn find_open_calls(&mut self) -> Result<Vec<OpenThread>, SessionError> {
        let roots = self.graph.instrumented_roots();
        if roots.is_empty() {
            return Ok(Vec::new());
        }
        let mut looks = 0;
        let mut passing = if self.graph.roots_return_soon() { &PASSING[..] } else { &[] }.iter();
        loop {
            let command = Command::ListStacks { roots: roots.clone() };
            let reply = self.command(command, "list the threads' stacks").await?;
            let Reply::Stacks(stacks) = reply else { return Err(unexpected("list the threads' stacks", &reply)) };
            // What an open call may come to has to be instrumented without any guard. One that is over by then took no part.
            if !stacks.is_empty()
                && let Some(time) = passing.next()
            {
                self.serve_for(*time).await?;
                continue;
            }
            let step = self.graph.open_calls(&stacks);
            let classes = self.settle(step).await?;
            looks += 1;
            // Where the limits are reached, what they can call next is left over like anything else.
            if self.is_in_background {
                self.nobody_waits_for(&classes);
            }
            // While methods are instrumented, threads may come into others: those are looked for once more.
            if classes.is_empty() || looks == MOST_LOOKS || self.is_in_background {
                self.left_over.extend(classes);
                self.turn_if_waited_for().await?;
                let threads = self.graph.open_threads(&stacks);
                self.threads.extend(threads.iter().map(|open| (open.thread, open.name.clone())));
                return Ok(threads);
            }
            self.hotswap_by_agent(classes).await?;
            self.turn_if_waited_for().await?;
        }
    }

    /// Serves what comes, for so long.
    async fn serve_for(&mut self, time: Duration) -> Result<(), SessionError> {
        self.spent.add("wait", time);
        self.serve_until(tokio::time::sleep(time)).await
    }

    /// Serves what comes, until something else is over.
    pub async fn serve_until<T>(&mut self, over: impl Future<Output = T>) -> Result<T, SessionError> {
        tokio::pin!(over);
        loop {
            let event = tokio::select! {
                value = &mut over => return Ok(value),
                event = self.next_event() => event?,
            };
            self.serve(event).await?;
        }
    }

    /// Selects what samples have seen below the roots, with what that will probably call: the classes to be changed for it.
    pub async fn select_sampled(&mut self, samples: &Samples) -> Result<Vec<ClassId>, SessionError> {
        let stacks = samples.stacks.iter().map(|sample| sample.frames.iter().map(|frame| frame.0 as usize));
        self.graph.ran_in_samples(&samples.methods, stacks);
        self.learn_what_is_compiled(Duration::ZERO).await?;
        self.select_seen().await
    }

    /// Selects what was seen to run below the roots: the classes to be changed for it.
    pub(super) async fn select_seen(&mut self) -> Result<Vec<ClassId>, SessionError> {
        let step = self.graph.select_seen();
        self.settle(step).await
    }

    /// Has the target record what these threads call from now on, and tell when they have returned.
    pub async fn follow_open_calls(
        &mut self,
        threads: &[OpenThread],
        returns: Sender<Returned>,
    ) -> Result<(), SessionError> {
        self.returns = Some(returns);
        let mut methods: Vec<MethodId> = threads.iter().flat_map(|open| open.calls.iter().copied()).collect();
        methods.sort_unstable();
        methods.dedup();
        let methods = methods.into_iter().filter_map(|id| Some((id, self.graph.reference(id)?))).collect();
        let threads = threads.iter().map(|open| (open.thread, open.calls.clone())).collect();
        self.command(Command::FollowOpen { methods, threads }, "follow threads that are inside a root").await?;
        self.turn_if_waited_for().await
    }

    /// Learns which methods have run, and not while the roots did: at the program's start, say.
    pub(super) async fn learn_what_is_stale(&mut self, looks: Looks) -> Result<(), SessionError> {
        if self.allowance.is_none() || self.graph.without().has(Mechanism::Stale) {
            return Ok(());
        }
        let listed = Instant::now();
        let (classes, before) = self.graph.calls_of_roots();
        let are_seen = self.sample_below_roots(looks).await?;
        let mut waits = COMING.iter();
        loop {
            self.list_methods(classes.clone()).await?;
            let (_, now) = self.graph.calls_of_roots();
            if now.saturating_sub(before) >= ENOUGH_CALLS {
                break;
            }
            // Threads are in a root, and its calls are not counted: it is compiled for good.
            if are_seen && now == before {
                let age = self.peer_pid().and_then(process::age);
                let Some(time) = age.and_then(|age| time_of_calls(before, age)) else { return Ok(()) };
                self.serve_for(time.saturating_sub(listed.elapsed())).await?;
                break;
            }
            // One that is called no more says nothing either.
            let Some(wait) = waits.next().filter(|_| before > 0) else { return Ok(()) };
            self.serve_for(*wait).await?;
        }
        let reply = self.command(Command::ListStale, "list methods that run no more").await?;
        let Reply::Methods(stale) = reply else { return Err(unexpected("list methods that run no more", &reply)) };
        stale.into_iter().for_each(|(class, methods)| self.graph.add_stale(class, &methods));
        Ok(())
    }

    /// Looks where threads are below the roots, after what was seen already: the limits allow so many hotswaps only, and what runs most is to be
    /// among the first. Whether any was there.
    async fn sample_below_roots(&mut self, mut looks: Looks) -> Result<bool, SessionError> {
        if looks.rounds == 0 {
            self.look_once_more(&mut looks).await?;
        }
        while looks.are_worth_while() {
            self.serve_for(BETWEEN).await?;
            self.look_once_more(&mut looks).await?;
        }
        Ok(looks.have_seen)
    }

    /// Looks a few times in a row, if that is still worth while.
    pub(super) async fn look_once_more(&mut self, looks: &mut Looks) -> Result<(), SessionError> {
        if looks.are_worth_while() {
            let (has_seen, took) = self.look_below_roots().await?;
            looks.rounds += 1;
            looks.took += took;
            looks.have_seen |= has_seen;
        }
        Ok(())
    }

    /// Looks once more; whether a thread was below a root, and what that took.
    pub(super) async fn look_below_roots(&mut self) -> Result<(bool, Duration), SessionError> {
        let roots = self.graph.root_methods();
        if roots.is_empty() {
            return Ok((false, Duration::ZERO));
        }
        let reply = self.command(Command::Sample { roots, looks: LOOKS }, "look at its threads' stacks").await?;
        let Reply::Sampled(seen) = reply else { return Err(unexpected("look at its threads' stacks", &reply)) };
        let took = Duration::from_nanos(seen.paused_ns);
        if let Some(allowance) = &mut self.allowance {
            allowance.take(Taking { pause: took, code: 0.0 }, Instant::now());
        }
        self.graph.ran_below_roots(&seen);
        Ok((!seen.classes.is_empty(), took))
    }

    /// Has the agent look where threads run, so often in the mean.
    pub async fn walk(&mut self, period: Duration) -> Result<(), SessionError> {
        let [period_us, longest_ms] = [period.as_micros(), LONGEST_WALK.as_millis()].map(|time| time as u32);
        self.command(Command::Walk { period_us, longest_ms }, "look where its threads run").await?;
        Ok(())
    }

    /// What it has seen since then.
    pub async fn walked(&mut self) -> Result<Walked, SessionError> {
        match self.command(Command::EndWalk, "tell where its threads ran").await? {
            Reply::Walked(walked) => Ok(walked),
            other => Err(unexpected("tell where its threads ran", &other)),
        }
    }

    /// Finds the classes in whose code threads stay, and those in which they run a loop.
    pub(super) async fn find_running(&mut self) -> Result<(), SessionError> {
        let before = self.look().await?;
        // A program that has not begun has nobody to wait for.
        if before.is_empty() {
            return Ok(());
        }
        self.serve_for(STAYING).await?;
        let now = self.look().await?;
        self.graph.set_running(now.same_as(&before).collect());
        // Who waits for everything waits for this, too.
        if self.allowance.is_none() {
            return Ok(());
        }
        let mut looks = Series::default();
        [before, now].into_iter().for_each(|look| looks.add(look));
        while looks.is_worth_another() {
            self.serve_for(STAYING / 2).await?;
            looks.add(self.look().await?);
        }
        let looping = looks.looping();
        if !looping.is_empty() {
            log::debug!("threads run loops in {} classes", looping.len());
        }
        self.graph.set_looping(looping);
        Ok(())
    }

    async fn look(&mut self) -> Result<Look, SessionError> {
        let calls = self.list_calls().await?;
        let owner = |class| match self.graph.is_of_application(class) {
            true => Owner::Application,
            false if self.graph.is_thread(class) => Owner::Thread,
            false => Owner::Other,
        };
        Ok(Look::of(calls, owner))
    }

    /// The calls that all threads are in, the outermost first.
    async fn list_calls(&mut self) -> Result<Calls, SessionError> {
        match self.command(Command::ListCalls, "list its threads' calls").await? {
            Reply::Calls(threads) => Ok(threads),
            other => Err(unexpected("list its threads' calls", &other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_roots_whose_calls_are_counted_no_more_it_is_reckoned_how_often_they_are_called() {
        let minute = Duration::from_secs(60);
        assert_eq!(time_of_calls(6_000, minute), Some(Duration::from_millis(100)));
        assert_eq!(time_of_calls(600, minute), None, "ten calls take a second");
        assert_eq!(time_of_calls(0, minute), None);
    }

    #[test]
    fn it_is_looked_often_where_somebody_is_and_looks_are_short() {
        let often = Looks { rounds: ROUNDS - 1, have_seen: true, ..Looks::default() };
        assert!(often.are_worth_while());
        assert!(!Looks { rounds: ROUNDS, ..often }.are_worth_while());
        assert!(!Looks { have_seen: false, ..often }.are_worth_while(), "nobody is there");
        assert!(!Looks { took: LOOKING, ..often }.are_worth_while(), "there are too many threads");
        assert!(Looks::default().are_worth_while());
    }
}
