//! What a tool leaves that is killed, at each stage of attaching: played by this test program, started again.

use std::os::unix::process::ExitStatusExt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use headwater_tests::PATIENCE;

use super::*;
use crate::leftovers;
use headwater_agent as agent;

/// What one test has left, another one must not remove.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const STAGE: &str = "HEADWATER_TEST_STAGE";
const TARGET: &str = "HEADWATER_TEST_TARGET";

/// The tool that is killed: no test by itself.
#[test]
fn played_tool() {
    let (Ok(stage), Ok(pid)) = (env::var(STAGE), env::var(TARGET)) else { return };
    let host = host(pid.parse().expect("a pid"));
    let die = || rustix::process::kill_process(rustix::process::getpid(), Signal::KILL).expect("we may");
    let name = agent::directory(host.pid());
    if stage == "trigger" {
        let _trigger = trigger::play(&host);
        die();
    }
    let shared = host.create_dir(&name).expect("created");
    if stage == "directory" {
        die();
    }
    shared.write_executable(agent::FILE, agent::LIBRARY).expect("written");
    if stage == "library" {
        die();
    }
    let socket = shared.listen(agent::SOCKET).expect("made");
    if stage == "socket" {
        die();
    }
    let (library, options) =
        (format!("{}/{}", shared.there(), agent::FILE), format!("{}/{}", shared.there(), agent::SOCKET));
    std::thread::scope(|scope| {
        scope.spawn(|| load_agent(&host, &library, &options));
        let _agent = socket.accept().expect("it connects");
        die();
    });
}

/// A tool that is killed at a stage.
fn play(stage: &str, pid: u32) {
    let mut tool = Command::new(env::current_exe().expect("ourselves"));
    tool.args(["--exact", "attach::tests::left::played_tool", "--nocapture"]);
    let ended = tool.env(STAGE, stage).env(TARGET, pid.to_string()).output().expect("it starts");
    assert_eq!(ended.status.signal(), Some(9), "{stage}: {}", String::from_utf8_lossy(&ended.stdout));
}

#[test]
fn what_a_killed_tool_has_left_is_removed() {
    let _alone = alone();
    for jdk in jdks() {
        let target = Target::start(&jdk, &[], &[]);
        let host = host(target.pid());
        let directory = env::temp_dir().join(agent::directory(target.pid()));
        let trigger = target.directory().join(format!(".attach_pid{}", target.pid()));
        for (stage, path) in
            [("trigger", &trigger), ("directory", &directory), ("library", &directory), ("socket", &directory)]
        {
            play(stage, target.pid());
            assert!(path.exists(), "{stage}: nothing is left, and so nothing tested");
            // Another process that looks whether it has been left holds it for a moment.
            let deadline = Instant::now() + PATIENCE;
            let mut removed = leftovers::remove(&host);
            while path.exists() {
                assert!(Instant::now() < deadline, "{stage}");
                removed.extend(leftovers::remove(&host));
            }
            let name = path.file_name().expect("a file").to_str().expect("ASCII");
            assert!(removed.iter().any(|removed| removed.ends_with(name)), "{stage}: {removed:?}");
        }
        play("socket", target.pid());
        drop(target);
        assert!(leftovers::remove_here().iter().any(|removed| directory == Path::new(removed)), "its target is gone");
        assert!(!directory.exists());
    }
}

/// Once the agent is there, it removes the files itself.
#[test]
fn the_agent_removes_its_files() {
    let _alone = alone();
    for jdk in jdks() {
        let target = Target::start(&jdk, &[], &[]);
        let directory = env::temp_dir().join(agent::directory(target.pid()));
        play("loaded", target.pid());
        let deadline = Instant::now() + PATIENCE;
        while directory.exists() {
            assert!(Instant::now() < deadline, "{jdk:?}: the agent has left {}", directory.display());
            std::thread::yield_now();
        }
        assert!(agent::loaded_directory(target.pid()).is_some(), "it was loaded");
    }
}

#[test]
fn what_a_tool_holds_that_lives_or_another_client_has_made_is_not_left() {
    let _alone = alone();
    let target = Target::start(&jdks()[0], &[], &[]);
    let host = host(target.pid());
    let shared = host.create_dir(&agent::directory(target.pid())).expect("created");
    let ours = trigger::play(&host);
    assert_eq!(leftovers::remove(&host), Vec::<String>::new());
    assert!(shared.here().exists());
    drop(ours);
    // As jcmd makes it.
    let trigger = target.directory().join(format!(".attach_pid{}", target.pid()));
    fs::write(&trigger, "").expect("made");
    assert_eq!(leftovers::remove(&host), Vec::<String>::new());
    fs::remove_file(&trigger).expect("still there");
}

/// A script that `headwater run` has started may start further JVMs, which do not start without their agent.
#[test]
fn what_a_program_was_started_with_is_not_left() {
    let _alone = alone();
    let target = Target::start(&jdks()[0], &[], &[]);
    let host = host(target.pid());
    let directory = env::temp_dir().join(agent::directory(target.pid()));
    play("library", target.pid());
    let option = format!("-agentpath:{}/{}=x", directory.display(), agent::FILE);
    let mut command = Command::new("cat");
    let mut program = Child::spawn(command.env("JAVA_TOOL_OPTIONS", option).stdin(std::process::Stdio::piped()));
    assert_eq!(leftovers::remove(&host), Vec::<String>::new());
    program.kill();
    assert_eq!(leftovers::remove(&host), [directory.to_string_lossy()]);
}
