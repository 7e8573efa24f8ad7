//! `headwater top`: a profile on the whole screen while it is recorded.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use headwater_jfr::Lines;

use super::profile::{conclude, verdict};
use super::{fail, fail_at, say_price, write_whole};
use crate::jvm::{self, Jvm};
use crate::pattern::MethodPattern;
use crate::profile::{Part, Quantity};
use crate::profiling::live::Live;
use crate::profiling::{self, BareTiming, Observer, Outcome, ProfileError, Settings, Start};
use crate::report::{Options, SortBy, View};
use crate::request::output::{Output, wants_color};
use crate::request::profile::ProfileArgs;
use crate::request::progress::{Progress, Shown};
use crate::request::values::live_period;
use crate::sampling::{Classes, SampleOptions, Waits};
use crate::top::column::{Column, Sort};
use crate::top::samples::{self, Next};
use crate::top::view::{self, Glyphs, Look, Palette};
use crate::top::{self, Pace};
use crate::whole_jvm::Recorder;

/// How often threads that run are sampled, without a root; and for how long, if nobody says.
const EVERY: Duration = Duration::from_millis(10);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater top 4711
  headwater top 4711 --root com.acme.Shop::checkout
  headwater top shop.jar --root 'com.acme.**::handle*' --view flat --sort calls
  headwater top 4711 --root com.acme.Shop::checkout -o checkout.hw --report

? shows the keys: arrows select, unfold and fold, Tab goes to the flat table, c to a method's callers, / searches, f freezes,
p pauses recording, s saves, q leaves. Without a root it shows samples of all threads: x on a method is its exact profile, q leads back.
Where there is no terminal, `headwater profile --live` and `headwater sample --live` show the same as text.

Exit codes: 0 done, 1 failed, 2 usage or no terminal, 3 no such target or no permission, 4 the root matched nothing,
5 the target ended first (its last results are shown and written), 130 Ctrl-C before anything was recorded.";

/// What is watched, and how.
#[derive(Debug, Args)]
pub(super) struct TopArgs {
    /// A pid, or a unique part of the main class or jar name
    target: String,
    /// The method whose calls are profiled: a.b.C::m, wildcards *, an optional parameter list. May be repeated. Without one all
    /// threads are sampled
    #[arg(long = "root", value_name = "METHOD")]
    roots: Vec<MethodPattern>,
    /// Without a root: use the JVM's flight recorder; in a JVM up to 22 its first start discards compiled code
    #[arg(long, value_enum, default_value_t = Recorder::On, conflicts_with = "roots")]
    recorder: Recorder,
    /// How often there are new results (500ms, 2s)
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = live_period)]
    period: Duration,
    /// Print the report to standard output when it is over
    #[arg(long)]
    report: bool,
    /// Wait for classes of roots that are not loaded yet, rather than fail
    #[arg(long)]
    await_root: bool,
    #[command(flatten)]
    options: ProfileArgs,
    #[command(flatten)]
    output: Output,
}

impl TopArgs {
    fn settings(&self, roots: &[MethodPattern]) -> Settings {
        let settings = self.options.settings(roots.to_vec());
        // What is written can be fitted to the roots' own times; who only looks need not wait for that.
        let bare = if self.is_written() { settings.bare } else { BareTiming::Off };
        Settings { await_roots: self.await_root, bare, ..settings }
    }

    /// What shows the same as text.
    fn without_terminal(&self) -> String {
        let roots: Vec<String> = self.roots.iter().map(|root| format!("--root '{root}'")).collect();
        match roots.is_empty() {
            true => format!("headwater sample {} --live", self.target),
            false => format!("headwater profile {} {} --live", self.target, roots.join(" ")),
        }
    }

    fn is_written(&self) -> bool {
        self.report || self.output.is_asked_for()
    }

    fn view(&self, pid: u32, options: &Options) -> view::View {
        let shape = if options.view == View::Flat { View::Flat } else { View::Tree };
        let column = |sort: &SortBy| match sort {
            SortBy::Quantity(quantity) if *quantity == Quantity::CALLS => Column::Calls,
            SortBy::Own | SortBy::Quantity(Quantity { part: Part::Own, .. }) => Column::SelfTime,
            SortBy::Total | SortBy::Quantity(_) => Column::Total,
        };
        let look = Look {
            shape,
            trees: options.trees,
            sort: options.sort.as_ref().map(|sort| Sort::by(column(sort))),
            glyphs: glyphs(&|name| std::env::var(name).ok()),
            palette: if wants_color() { Palette::Color } else { Palette::Monochrome },
        };
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let mut view = view::View::new(look, format!("headwater-{pid}-{seconds}.hw"));
        if let Some(id) = leading(options) {
            view.lead_by(id);
        }
        view
    }
}

/// The metric that is to stand in the place of time: what lines are sorted by, or else the first that is to be shown.
fn leading(options: &Options) -> Option<&str> {
    let sorted_by = match &options.sort {
        Some(SortBy::Quantity(quantity)) if !quantity.is_time() && *quantity != Quantity::CALLS => Some(&*quantity.id),
        _ => None,
    };
    sorted_by.or_else(|| options.metrics.first().map(|id| &**id))
}

/// What the locale's character set has: the first of these variables that is set decides (POSIX, 8.2).
pub(super) fn glyphs(environment: &dyn Fn(&str) -> Option<String>) -> Glyphs {
    let set =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().filter_map(|name| environment(name)).find(|value| !value.is_empty());
    let is_utf8 = set.is_some_and(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    if is_utf8 { Glyphs::Unicode } else { Glyphs::Ascii }
}

pub(super) async fn run(arguments: &TopArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return fail(
            2,
            &format!(
                "top draws on a terminal, and standard input or output is none. Without one use\n  {}",
                arguments.without_terminal()
            ),
        );
    }
    let jvm = match jvm::resolve(&arguments.target) {
        Ok(jvm) => jvm,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    if let Err(error) = arguments.output.check() {
        return fail(2, &error);
    }
    if arguments.roots.is_empty() {
        return sampled(arguments, &jvm, interrupt).await;
    }
    let mut interrupt = pin!(interrupt);
    let outcome = match exact(arguments, &jvm, arguments.settings(&arguments.roots), interrupt.as_mut()).await {
        Ok(outcome) => outcome,
        Err((code, error)) => return fail_at(jvm.pid, code, &error),
    };
    if arguments.report && arguments.output.is_asked_for() {
        // What goes wrong with it goes wrong with the file as well, and is said there.
        let _ = arguments.output.write_as_text(&outcome.profile);
    }
    if arguments.is_written() { conclude(outcome, &arguments.output) } else { verdict(&outcome, &arguments.output) }
}

/// Watches an exact profile until the user has enough; or an exit code, and why there is none.
async fn exact(
    arguments: &TopArgs,
    jvm: &Jvm,
    settings: Settings,
    mut interrupt: Pin<&mut impl Future<Output = ()>>,
) -> Result<Outcome, (u8, String)> {
    let progress = Progress::new(if io::stderr().is_terminal() { Shown::Live } else { Shown::Milestones });
    let observer = |stage| progress.show(stage);
    let started = profiling::unless(interrupt.as_mut(), start(jvm, settings, &observer)).await;
    progress.clear();
    let live = started.map_err(|error| (error.exit_code(), error.to_string()))?;
    let options = arguments.output.options();
    let view = arguments.view(jvm.pid, &options);
    let pace = Pace { period: arguments.period, options };
    let watched = top::watch(live, view, pace, interrupt, &observer).await;
    progress.clear();
    watched.map_err(|error| (1, format!("the terminal cannot be drawn on: {error}")))
}

/// Samples of all threads, and, as the user asks for them, exact profiles of methods that were seen.
async fn sampled(arguments: &TopArgs, jvm: &Jvm, interrupt: impl Future<Output = ()>) -> ExitCode {
    say_price(jvm, arguments.recorder);
    let is_over = Cell::new(false);
    let mut interrupt = pin!(async {
        interrupt.await;
        is_over.set(true);
    });
    let wanted = SampleOptions {
        duration: arguments.settings(&[]).duration.unwrap_or(LONGEST),
        every: EVERY,
        lines: Lines::Unknown,
        classes: Classes::Together,
        recorder: arguments.recorder,
        waits: Waits::On,
        live: None,
    };
    let mut message = None;
    loop {
        let options = arguments.output.options();
        let mut view = arguments.view(jvm.pid, &options);
        message.take().into_iter().for_each(|message| view.say(message));
        let pace = Pace { period: arguments.period, options };
        let (whole, next) = match samples::watch(jvm.clone(), wanted, view, pace, interrupt.as_mut()).await {
            Ok((Ok(whole), next)) => (whole, next),
            Ok((Err(error), _)) => return fail_at(jvm.pid, error.exit_code(), &error.to_string()),
            Err(error) => return fail(1, &format!("the terminal cannot be drawn on: {error}")),
        };
        let pattern = match next {
            Next::Exact(pattern) => pattern,
            Next::Nothing if arguments.is_written() => {
                let written = write_whole(&whole, &arguments.output);
                return written.unwrap_or_else(|error| fail(1, &format!("the samples could not be written: {error}")));
            }
            Next::Nothing if whole.target_ended => return fail(5, "the target ended before the time was over"),
            Next::Nothing => return ExitCode::SUCCESS,
        };
        let root = match pattern.parse::<MethodPattern>() {
            Ok(root) => root,
            Err(error) => {
                message = Some(error.to_string());
                continue;
            }
        };
        // It is looked at, and not kept but for what the user saves.
        let settings = Settings { bare: BareTiming::Off, ..arguments.settings(&[root]) };
        message = exact(arguments, jvm, settings, interrupt.as_mut()).await.err().map(|(_, error)| error);
        if is_over.get() {
            return ExitCode::SUCCESS;
        }
    }
}

async fn start(jvm: &Jvm, settings: Settings, observer: Observer<'_>) -> Result<Live, ProfileError> {
    observer(profiling::Stage::Attaching);
    let attached = profiling::connect(jvm, &settings).await?;
    attached.record(settings, observer, Start::Running).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_says_which_characters_there_are() {
        for (all, kind, lang, expected) in [
            ("", "", "de_DE.UTF-8", Glyphs::Unicode),
            ("", "C.utf8", "C", Glyphs::Unicode),
            ("C", "C.utf8", "de_DE.UTF-8", Glyphs::Ascii),
            ("", "", "de_DE", Glyphs::Ascii),
            ("", "", "", Glyphs::Ascii),
        ] {
            let environment = |name: &str| {
                let value = match name {
                    "LC_ALL" => all,
                    "LC_CTYPE" => kind,
                    _ => lang,
                };
                Some(value.to_owned())
            };
            assert_eq!(glyphs(&environment), expected, "{all}, {kind}, {lang}");
        }
    }
}
