//! `headwater top`: a profile on the whole screen while it is recorded.

use std::io::{self, IsTerminal};
use std::pin::pin;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;

use super::fail;
use super::profile::{conclude, verdict};
use crate::jvm::{self, Jvm};
use crate::pattern::MethodPattern;
use crate::profile::Quantity;
use crate::profiling::live::Live;
use crate::profiling::{self, BareTiming, Observer, ProfileError, Settings, Start};
use crate::report::{Options, SortBy, View};
use crate::request::output::{Output, wants_color};
use crate::request::profile::ProfileArgs;
use crate::request::progress::{Progress, Shown};
use crate::request::values::live_period;
use crate::top::column::{Column, Sort};
use crate::top::view::{self, Glyphs, Look, Palette};
use crate::top::{self, Pace};

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater top 4711 --root com.acme.Shop::checkout
  headwater top shop.jar --root 'com.acme.**::handle*' --view flat --sort calls
  headwater top 4711 --root com.acme.Shop::checkout -o checkout.hw --report

? shows the keys: arrows select, unfold and fold, Tab goes to the flat table, c to a method's callers, / searches, f freezes,
p pauses recording, s saves, q leaves. Where there is no terminal, `headwater profile --live` shows the same as text.

Exit codes: 0 done, 1 failed, 2 usage or no terminal, 3 no such target or no permission, 4 the root matched nothing,
5 the target ended first (its last results are shown and written), 130 Ctrl-C before anything was recorded.";

/// What is watched, and how.
#[derive(Debug, Args)]
pub(super) struct TopArgs {
    /// A pid, or a unique part of the main class or jar name
    target: String,
    /// The method whose calls are profiled: a.b.C::m, wildcards *, an optional parameter list. May be repeated
    #[arg(long = "root", required = true, value_name = "METHOD")]
    roots: Vec<MethodPattern>,
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
    fn settings(&self) -> Settings {
        let settings = self.options.settings(self.roots.clone());
        // What is written can be fitted to the roots' own times; who only looks need not wait for that.
        let bare = if self.is_written() { settings.bare } else { BareTiming::Off };
        Settings { await_roots: self.await_root, bare, ..settings }
    }

    fn is_written(&self) -> bool {
        self.report || self.output.is_asked_for()
    }

    fn view(&self, pid: u32, options: &Options) -> view::View {
        let shape = if options.view == View::Flat { View::Flat } else { View::Tree };
        let column = |sort: &SortBy| match sort {
            SortBy::Own => Column::SelfTime,
            SortBy::Quantity(quantity) if *quantity == Quantity::CALLS => Column::Calls,
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
        options.metrics.iter().take(1).for_each(|id| view.lead_by(id));
        view
    }
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
        let roots: Vec<String> = arguments.roots.iter().map(|root| format!("--root '{root}'")).collect();
        let target = &arguments.target;
        return fail(
            2,
            &format!(
                "top draws on a terminal, and standard input or output is none. Without one use\n  \
                 headwater profile {target} {} --live",
                roots.join(" ")
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
    let progress = Progress::new(if io::stderr().is_terminal() { Shown::Live } else { Shown::Milestones });
    let observer = |stage| progress.show(stage);
    let mut interrupt = pin!(interrupt);
    let started = profiling::unless(interrupt.as_mut(), start(&jvm, arguments.settings(), &observer)).await;
    progress.clear();
    let live = match started {
        Ok(live) => live,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    let options = arguments.output.options();
    let view = arguments.view(jvm.pid, &options);
    let pace = Pace { period: arguments.period, options };
    let watched = top::watch(live, view, pace, interrupt, &observer).await;
    progress.clear();
    let outcome = match watched {
        Ok(outcome) => outcome,
        Err(error) => return fail(1, &format!("the terminal cannot be drawn on: {error}")),
    };
    if arguments.report && arguments.output.is_asked_for() {
        // What goes wrong with it goes wrong with the file as well, and is said there.
        let _ = arguments.output.write_as_text(&outcome.profile);
    }
    if arguments.is_written() { conclude(Ok(outcome), &arguments.output) } else { verdict(&outcome, &arguments.output) }
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
