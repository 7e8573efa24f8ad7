//! `cargo xtask tutorial`: goes through docs/TUTORIAL.md, and makes its pictures of what really appears.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use headwater_tests::terminal::Terminal;

use crate::class_tree;
use crate::machine::{call, cargo, ensure, jdk, root};
use crate::picture;
use crate::process;

/// What is slow, and whose calls are looked at.
const MAIN: &str = "shop.Shop";
const ROOT: &str = "shop.Shop::handle";
const WORKERS: &str = "4";
/// How long is recorded for each picture, in seconds.
const RECORDED: f64 = 10.0;
/// Of the pictures.
const COLUMNS: u16 = 100;
const PROMPT: &str = "headwater> ";

pub(crate) fn run() -> Result<(), String> {
    let jdk = jdk()?;
    ensure("/usr/bin/chromium", "chromium")?;
    call(cargo().args(["build", "--release", "--package", "headwater"]))?;
    let work = root().join("target/tutorial");
    let pictures = root().join("docs/tutorial");
    class_tree::empty(&work)?;
    std::fs::create_dir_all(&pictures).map_err(|error| format!("{}: {error}", pictures.display()))?;
    let tutorial = Tutorial { binary: root().join("target/release/headwater"), pictures, work };

    let slow = Shop::start(&jdk, &tutorial.work.join("slow"), &["shop"])?;
    tutorial.prompt()?;
    tutorial.live_view()?;
    tutorial.record("before.hw")?;
    tutorial.page()?;
    drop(slow);
    let _fixed = Shop::start(&jdk, &tutorial.work.join("fixed"), &["shop", "shop-fixed"])?;
    tutorial.record("after.hw")?;
    tutorial.compare()?;
    println!("the pictures are in {}", tutorial.pictures.display());
    Ok(())
}

struct Tutorial {
    binary: PathBuf,
    pictures: PathBuf,
    /// Where the profiles are written.
    work: PathBuf,
}

impl Tutorial {
    fn headwater(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.env("LC_ALL", "C.UTF-8").env("XDG_STATE_HOME", &self.work);
        command
    }

    fn save(&self, terminal: &Terminal, title: &str, name: &str) -> Result<(), String> {
        picture::save(terminal, &format!("$ {title}"), &self.pictures, name)
    }

    fn prompt(&self) -> Result<(), String> {
        let mut terminal = Terminal::sized(self.headwater().args(["attach", MAIN]), COLUMNS, 40);
        terminal.expect(PROMPT);
        for line in [format!("profile {ROOT}"), format!("wait {RECORDED}s"), "tree --min 1".to_owned()] {
            terminal.say(&line);
            // The editor shows the line; then comes what it says.
            terminal.expect("\n");
            terminal.expect(PROMPT);
        }
        self.save(&terminal, &format!("headwater attach {MAIN}"), "prompt")?;
        terminal.say("quit");
        ended(terminal)
    }

    fn live_view(&self) -> Result<(), String> {
        let title = format!("headwater top {MAIN} --root {ROOT}");
        let mut terminal = Terminal::sized(self.headwater().args(["top", MAIN, "--root", ROOT]), COLUMNS, 26);
        terminal.await_screen("enough results", |lines| {
            let seconds = lines[0].split_once(" recording ").and_then(|(_, rest)| rest.split(' ').next());
            seconds.and_then(|seconds| seconds.parse().ok()).is_some_and(|seconds: f64| seconds >= RECORDED)
        });
        // What was shown stays while it is looked at.
        for (keys, text, name) in [
            ("f", "FROZEN", "top-tree"),
            ("/find\r", "match", "top-search"),
            ("c", "callers and callees", "top-callers"),
            ("\x7f\t", "flat, all threads", "top-flat"),
        ] {
            terminal.press(keys);
            terminal.await_text(text);
            self.save(&terminal, &title, name)?;
        }
        terminal.press("q");
        ended(terminal)
    }

    /// Writes a snapshot of the program as it is now.
    fn record(&self, name: &str) -> Result<(), String> {
        let mut command = self.headwater();
        command.args(["profile", MAIN, "--root", ROOT, "-d", &format!("{RECORDED}s"), "-o"]).arg(self.work.join(name));
        call(&mut command)
    }

    /// The HTML report, as a browser shows it.
    fn page(&self) -> Result<(), String> {
        let page = self.work.join("before.html");
        call(self.headwater().arg("report").arg(self.work.join("before.hw")).arg("-o").arg(&page))?;
        screenshot(&page, &self.pictures.join("page.png"), (1280, 860))
    }

    fn compare(&self) -> Result<(), String> {
        let arguments = ["diff", "before.hw", "after.hw"];
        let mut command = Command::new("env");
        command.arg("-C").arg(&self.work).arg(&self.binary).args(arguments).env("LC_ALL", "C.UTF-8");
        let mut terminal = Terminal::sized(&command, COLUMNS, 60);
        let status = terminal.await_end();
        if !status.success() {
            return Err(format!("diff ended with {status}:\n{}", terminal.lines().join("\n")));
        }
        self.save(&terminal, &format!("headwater {}", arguments.join(" ")), "diff")
    }
}

fn ended(terminal: Terminal) -> Result<(), String> {
    match terminal.finish() {
        (status, _) if status.success() => Ok(()),
        (status, rest) => Err(format!("headwater ended with {status}:\n{rest}")),
    }
}

/// A picture of a page in a window of so many pixels.
fn screenshot(page: &Path, picture: &Path, (width, height): (u16, u16)) -> Result<(), String> {
    const LIMIT: Duration = Duration::from_secs(60);
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000"]);
    browser.arg(format!("--window-size={width},{height}")).arg(format!("--screenshot={}", picture.display()));
    browser.arg(format!("file://{}", page.display()));
    process::run(&mut browser, LIMIT).map(drop)
}

/// The program, which is ended when it is no longer looked at.
struct Shop(Child);

impl Shop {
    /// Compiles and starts it; later directories of sources have better versions of what is in earlier ones.
    fn start(jdk: &Path, classes: &Path, directories: &[&str]) -> Result<Shop, String> {
        class_tree::empty(classes)?;
        let mut sources: Vec<PathBuf> = Vec::new();
        for directory in directories {
            let directory = root().join("tests/targets").join(directory);
            let files = std::fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
            for file in files.flatten().map(|entry| entry.path()) {
                sources.retain(|earlier| earlier.file_name() != file.file_name());
                sources.push(file);
            }
        }
        call(Command::new(jdk.join("bin/javac")).arg("-d").arg(classes).args(sources))?;
        let mut command = Command::new(jdk.join("bin/java"));
        command.arg("-cp").arg(classes).args([MAIN, WORKERS]).stdin(Stdio::piped()).stdout(Stdio::null());
        Ok(Shop(command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?))
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
