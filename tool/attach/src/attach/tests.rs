//! Attaching to real JVMs, one of each JDK on this machine, and to processes that must be left alone.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::*;
use crate::jvm::testing::{Child, Target, free_pid, jdks};
use crate::jvm::{self, Jvm};
use crate::rights::Rights;

mod left;
mod places;

fn host(pid: u32) -> TargetHost {
    let jvm = jvm::resolve(&pid.to_string()).expect("a JVM");
    TargetHost::of(&jvm).expect("ours to attach to")
}

fn forged(pid: u32) -> Jvm {
    Jvm { pid, main: "Main".to_owned(), arguments: String::new(), java_version: None, uid: 0, vm_pid: pid }
}

const NOBODY: u32 = 65534;

fn we_are_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Stops a child and returns how its state changed: stopped, unless something else reached it before.
fn stop(pid: u32) -> WaitStatus {
    let pid = Pid::from_raw(i32::try_from(pid).expect("small"));
    rustix::process::kill_process(pid.expect("a pid"), Signal::STOP).expect("our own child");
    let (_, status) = rustix::process::waitpid(pid, WaitOptions::UNTRACED).expect("our child").expect("waited");
    status
}

fn version_of(host: &TargetHost) -> String {
    transport::execute(host, "jcmd", ["VM.version", "", ""]).expect("a JVM answers")
}

#[test]
fn commands_are_answered_and_leave_no_trigger_file() {
    for jdk in jdks() {
        let mut target = Target::start(&jdk, &[], &[]);
        let host = host(target.pid());
        assert!(version_of(&host).contains("JDK "), "{jdk:?}");
        let properties = transport::execute(&host, "properties", ["", "", ""]).expect("the socket is there now");
        assert!(properties.contains("java.vm.name="), "{properties}");
        for directory in [target.directory(), Path::new("/tmp")] {
            assert!(!directory.join(format!(".attach_pid{}", target.pid())).exists());
        }
        let error = transport::execute(&host, "nonsense", ["", "", ""]).expect_err("no such command");
        assert!(matches!(&error, AttachError::CommandFailed { .. }), "{error}");
        assert!(target.child().is_running());
    }
}

#[test]
fn a_process_that_is_no_jvm_gets_no_signal() {
    let cat = Child::waiting();
    let error = TargetHost::of(&forged(cat.pid())).expect_err("cat is no JVM");
    assert!(matches!(&error, AttachError::NotAJvm { command, .. } if command == "cat"), "{error}");
    assert_eq!(error.exit_code(), 3);
    assert!(stop(cat.pid()).stopped());
}

#[test]
fn a_process_that_has_ended_is_gone() {
    let error = TargetHost::of(&forged(free_pid())).expect_err("no such process");
    assert!(matches!(error, AttachError::Gone { .. }), "{error}");

    let mut target = Target::start(&jdks()[0], &[], &[]);
    let host = host(target.pid());
    assert!(host.is_alive());
    target.child().kill();
    assert!(!host.is_alive());
    let error = load_agent(&host, "/x.so", "").expect_err("it has ended");
    assert!(matches!(error, AttachError::Gone { .. }), "{error}");
}

/// With `-Xrs` HotSpot opens the socket at its start, and leaves SIGQUIT to the system, which ends the process.
#[test]
fn a_jvm_that_would_die_of_the_signal_gets_none() {
    for jdk in jdks() {
        let target = Target::start(&jdk, &["-Xrs"], &[]);
        let host = host(target.pid());
        assert!(version_of(&host).contains("JDK "));
        fs::remove_file(env::temp_dir().join(format!(".java_pid{}", target.pid()))).expect("there was a socket");
        let error = load_agent(&host, "/x.so", "").expect_err("no handler");
        assert!(matches!(error, AttachError::SignalUnsafe { .. }), "{error}");
        assert!(stop(target.pid()).stopped());
    }
}

/// A cleaner of /tmp may delete the socket of a JVM that has been attached to before.
#[test]
fn a_socket_that_was_deleted_is_opened_again() {
    for jdk in jdks() {
        let target = Target::start(&jdk, &[], &[]);
        let host = host(target.pid());
        let socket = env::temp_dir().join(format!(".java_pid{}", target.pid()));
        version_of(&host);
        fs::remove_file(&socket).expect("there was a socket");
        assert!(version_of(&host).contains("JDK "));
    }
}

#[test]
fn a_jvm_with_attaching_disabled_is_said_to_be_so() {
    for options in [&["-XX:+DisableAttachMechanism"][..], &["-XX:+DisableAttachMechanism", "-XX:-UsePerfData"]] {
        let target = Target::start(&jdks()[0], options, &[]);
        let error = load_agent(&host(target.pid()), "/x.so", "").expect_err("disabled");
        assert!(matches!(error, AttachError::Disabled { .. }), "{error}");
    }
}

#[test]
fn a_stopped_jvm_is_said_to_be_so() {
    let target = Target::start(&jdks()[0], &[], &[]);
    let host = host(target.pid());
    assert!(stop(target.pid()).stopped());
    let error = load_agent(&host, "/x.so", "").expect_err("stopped");
    assert!(matches!(error, AttachError::Stopped { .. }), "{error}");
}

#[test]
fn agents_that_cannot_be_loaded_are_errors_with_the_jvms_words() {
    for jdk in jdks() {
        let target = Target::start(&jdk, &[], &[]);
        let error = load_agent(&host(target.pid()), "/no/such/agent.so", "").expect_err("no such file");
        assert!(
            matches!(&error, AttachError::NotLoaded { message, .. } if message.contains("/no/such/agent.so")),
            "{error}"
        );
        assert_eq!(error.exit_code(), 1);

        let target = Target::start(&jdk, &["-XX:-EnableDynamicAgentLoading"], &[]);
        let error = load_agent(&host(target.pid()), "/no/such/agent.so", "").expect_err("disabled");
        assert!(matches!(error, AttachError::LoadingDisabled { .. }), "{error}");
    }
}

/// `libinstrument.so` is in every JDK and is an agent like ours. Without its jar it fails; with it, it succeeds.
#[test]
fn an_agent_is_loaded_again_and_again_from_the_same_path() {
    for jdk in jdks() {
        let target = Target::start(&jdk, &[], &[]);
        let host = host(target.pid());
        let library = jdk.join("lib/libinstrument.so");
        let library = library.to_str().expect("UTF-8");
        let jar = agent_jar(&jdk, target.directory());
        for _ in 0..3 {
            load_agent(&host, library, jar.to_str().expect("UTF-8")).expect("loaded");
        }
        let error = load_agent(&host, library, "/no/such.jar").expect_err("the agent refuses");
        assert!(matches!(error, AttachError::AgentFailed { code, .. } if code != 0), "{error}");
    }
}

fn agent_jar(jdk: &Path, directory: &Path) -> PathBuf {
    let source = directory.join("Agent.java");
    let manifest = directory.join("manifest");
    let jar = directory.join("agent.jar");
    fs::write(&source, "public class Agent { public static void agentmain(String options) {} }").expect("written");
    fs::write(&manifest, "Agent-Class: Agent\n").expect("written");
    let run = |tool: &str, arguments: &[&str]| {
        let ended = Command::new(jdk.join("bin").join(tool)).args(arguments).current_dir(directory).status();
        assert!(ended.expect("the JDK has its tools").success());
    };
    run("javac", &["Agent.java"]);
    run("jar", &["cfm", "agent.jar", "manifest", "Agent.class"]);
    jar
}

#[test]
fn what_the_jvm_says_to_load_decides() {
    let target = Target::start(&jdks()[0], &[], &[]);
    let host = host(target.pid());
    let pid = target.pid();
    let cases = [
        ("", Ok(())),
        ("0\n", Ok(())),
        ("return code: 0\n", Ok(())),
        ("a warning first\nreturn code: 0\n", Ok(())),
        ("return code: 100\n", Err(format!("the agent in JVM {pid} could not start (it returned 100)"))),
        ("-1\n", Err(format!("the agent in JVM {pid} could not start (it returned -1)"))),
        (
            "/x.so was not loaded.\n/x.so: no\n",
            Err("could not load the agent: /x.so was not loaded.; /x.so: no".to_owned()),
        ),
        ("Dynamic agent loading is not enabled. Use -XX\n", Err("does not accept agents while it runs".to_owned())),
    ];
    for (answer, expected) in cases {
        match (check_load_answer(&host, answer).map_err(|error| error.to_string()), expected) {
            (Ok(()), Ok(())) => {}
            (Err(message), Err(expected)) => assert!(message.contains(&expected), "{message}"),
            (found, expected) => panic!("{answer:?}: {found:?} is not {expected:?}"),
        }
    }
}

#[test]
fn root_attaches_to_another_users_jvm_also_with_that_users_rights() {
    if !we_are_root() {
        return;
    }
    for jdk in jdks() {
        let target = Target::start_with(&jdk, &[], &[], |command| {
            command.uid(NOBODY).gid(NOBODY);
        });
        let host = host(target.pid());
        assert_eq!((host.uid(), host.gid()), (NOBODY, NOBODY));
        assert!(version_of(&host).contains("JDK "));
        assert!(we_are_root(), "only the helper thread gave up its rights");

        let shared = host.create_dir(&format!("headwater-nobody-{}", target.pid())).expect("created");
        shared.write_executable("lib.so", b"x").expect("written");
        drop(shared.create_file("events").expect("created"));
        for (path, mode) in [("", 0o700), ("lib.so", 0o755), ("events", 0o600)] {
            let metadata = fs::metadata(shared.here().join(path)).expect("there");
            assert_eq!((metadata.uid(), metadata.mode() & 0o777), (NOBODY, mode), "{path}");
        }
    }
}

#[test]
fn another_users_jvm_is_listed_and_not_permitted() {
    if !we_are_root() {
        return;
    }
    let target = Target::start(&jdks()[0], &[], &[]);
    let pid = target.pid();
    Rights::of(NOBODY, NOBODY, &[])
        .exercise(|| {
            assert!(jvm::list().iter().any(|jvm| jvm.pid == pid && jvm.main == target.main()));
            for wanted in [pid.to_string(), target.unique_name().to_owned()] {
                let error = jvm::resolve(&wanted).expect_err("root's");
                assert!(matches!(error, jvm::TargetError::NotPermitted { owner: 0, us: NOBODY, .. }), "{error}");
            }
            let error = TargetHost::of(&forged(pid)).expect_err("root's");
            assert!(matches!(error, AttachError::NotPermitted { owner: 0, us: NOBODY, .. }), "{error}");
            assert_eq!(error.exit_code(), 3);
        })
        .expect("root can be anybody");
    assert!(stop(pid).stopped());
}

/// In a user namespace where our root is nobody at all, the JVM closes the connection, and only its own user is let in.
#[test]
fn a_jvm_that_refuses_root_is_attached_to_as_its_own_user() {
    let wrapper = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "-U", "-r", "-m"];
    let works = || Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").status().is_ok_and(|s| s.success());
    if !we_are_root() || !works() {
        return;
    }
    let script = "mount --bind \"$PWD\" /mnt && exec \"$0\" \"$@\"";
    for jdk in jdks() {
        let target = Target::start_wrapped(&jdk, &[&wrapper[..], &["sh", "-c", script]].concat());
        let host = host(target.pid());
        assert_eq!(host.uid(), NOBODY);
        assert!(version_of(&host).contains("JDK "));
        assert!(transport::refuses_us(&host).expect("it answers"), "otherwise this tests nothing");
    }
}

/// Process ids come again, and a JVM that was killed leaves its socket. One that runs as another user cannot remove it.
#[test]
fn a_socket_that_an_earlier_process_left_is_replaced() {
    for jdk in jdks() {
        let wrapper = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let others = [true, false].map(|other| other && we_are_root());
        for other in others {
            let target = if other {
                let script = "mount --bind \"$PWD\" /mnt && exec \"$0\" \"$@\"";
                Target::start_wrapped(&jdk, &[&["unshare", "-m", "sh", "-c", script], &wrapper[..]].concat())
            } else {
                Target::start(&jdk, &[], &[])
            };
            let path = env::temp_dir().join(format!(".java_pid{}", target.pid()));
            // There may be one already: of a process that really had this id.
            let _ = fs::remove_file(&path);
            drop(UnixListener::bind(&path).expect("there is no socket any more"));
            assert!(version_of(&host(target.pid())).contains("JDK "), "another user's: {other}");
            assert_eq!(
                fs::metadata(&path).expect("its own").uid(),
                if other { NOBODY } else { rustix::process::geteuid().as_raw() }
            );
        }
    }
}

/// Starts the target in its own mount namespace with a small /tmp of its own, and its own process ids.
fn contained(mount_options: &str) -> Option<Target> {
    if !we_are_root() || !Command::new("unshare").args(["-m", "-p", "-f", "true"]).status().is_ok_and(|s| s.success()) {
        return None;
    }
    Some(Target::start_wrapped(
        &jdks()[0],
        &[
            "unshare",
            "-m",
            "-p",
            "-f",
            "--mount-proc",
            "--kill-child",
            "sh",
            "-c",
            &format!(
                "mount --bind \"$PWD\" /mnt && mount -t tmpfs -o {mount_options} none /tmp && cd / && exec \"$0\" \"$@\""
            ),
        ],
    ))
}

#[test]
fn a_target_in_a_container_is_attached_to_through_its_own_root() {
    let Some(target) = contained("size=1m") else { return };
    let jvm = jvm::resolve(target.unique_name()).expect("found by name");
    assert_eq!(jvm.vm_pid, 1);
    assert!(jvm.java_version.is_some(), "performance data is read through its root");
    let host = TargetHost::of(&jvm).expect("attachable");
    assert!(version_of(&host).contains("JDK "));
    let shared = host.create_dir("headwater-contained").expect("created");
    assert_eq!(shared.here(), Path::new(&format!("/proc/{}/root/tmp/headwater-contained", jvm.pid)));
    assert_eq!(shared.there(), "/tmp/headwater-contained");
    assert!(!Path::new("/tmp/headwater-contained").exists());

    let error = shared.write_executable("big.so", &vec![1; 2 << 20]).expect_err("1 MiB is not enough");
    assert!(matches!(&error, AttachError::Full { path } if path == "/tmp/headwater-contained/big.so"), "{error}");
    assert_eq!(fs::read_dir(shared.here()).expect("readable").count(), 0, "nothing is left behind");
    shared.write_executable("small.so", b"x").expect("there is space again");
    drop(shared);
    assert!(!Path::new(&format!("/proc/{}/root/tmp/headwater-contained", jvm.pid)).exists());
}

#[test]
fn a_tmp_that_is_full_or_read_only_is_said_to_be_so() {
    let Some(target) = contained("size=1m") else { return };
    let host = TargetHost::of(&jvm::resolve(target.unique_name()).expect("found by name")).expect("attachable");
    fs::write(host.tmp_here().join("fill"), vec![1; 2 << 20]).expect_err("1 MiB is not enough");
    let shared = host.create_dir("headwater-full").expect("a directory takes nothing");
    let error = shared.write_executable("lib.so", b"x").expect_err("full");
    assert!(matches!(&error, AttachError::Full { path } if path == "/tmp/headwater-full/lib.so"), "{error}");

    let Some(target) = contained("size=1m,ro") else { return };
    let host = TargetHost::of(&jvm::resolve(target.unique_name()).expect("found by name")).expect("attachable");
    let error = host.create_dir("headwater-read-only").expect_err("read-only");
    assert!(matches!(&error, AttachError::ReadOnly { path } if path == "/tmp/headwater-read-only"), "{error}");
    // Its working directory is the root, where a trigger file may be made; whatever it does, no socket can be.
    assert!(load_agent(&host, "/x.so", "").is_err());
}

#[test]
fn a_tmp_that_runs_no_libraries_is_said_to_be_so() {
    let Some(target) = contained("size=1m,noexec") else { return };
    let jvm = jvm::resolve(target.unique_name()).expect("found by name");
    let shared = TargetHost::of(&jvm).expect("attachable").create_dir("headwater-noexec").expect("created");
    let error = shared.write_executable("lib.so", b"x").expect_err("noexec");
    assert!(matches!(error, AttachError::NoExec { .. }), "{error}");
}

#[test]
fn a_shared_directory_is_private_and_gone_when_dropped() {
    let target = Target::start(&jdks()[0], &[], &[]);
    let host = host(target.pid());
    let name = format!("headwater-test-dir-{}", target.pid());
    let path = env::temp_dir().join(&name);

    // What a killed tool left is removed, without following links.
    fs::create_dir_all(path.join("old/deep")).expect("created");
    fs::write(path.join("old/deep/file"), "x").expect("written");
    symlink(target.directory(), path.join("link")).expect("linked");
    let shared = host.create_dir(&name).expect("taken over");
    assert_eq!(shared.here(), path);
    assert_eq!(Path::new(shared.there()), path);
    assert_eq!(fs::read_dir(&path).expect("readable").count(), 0);
    assert!(target.directory().exists());
    assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o700);

    let error = host.create_dir(&name).expect_err("held");
    assert!(matches!(error, AttachError::InUse { .. }), "{error}");

    for bytes in [&b"first"[..], b"second"] {
        shared.write_executable("agent.so", bytes).expect("written");
        assert_eq!(fs::read(path.join("agent.so")).expect("readable"), bytes);
        assert_eq!(fs::metadata(path.join("agent.so")).expect("there").permissions().mode() & 0o777, 0o755);
    }
    assert_eq!(fs::read_dir(&path).expect("readable").count(), 1);
    for bad in ["", "..", "a/b"] {
        assert!(matches!(shared.write_executable(bad, b""), Err(AttachError::BadArgument { .. })), "{bad}");
    }
    drop(shared);
    assert!(!path.exists());
    drop(host.create_dir(&name).expect("the same name again"));
    assert!(!path.exists());
}

#[test]
fn a_name_taken_by_someone_else_is_refused() {
    let target = Target::start(&jdks()[0], &[], &[]);
    let host = host(target.pid());
    let name = format!("headwater-test-taken-{}", target.pid());
    let path = env::temp_dir().join(&name);
    let refused = |expected: &str| {
        let error = host.create_dir(&name).expect_err("taken");
        assert!(matches!(&error, AttachError::DirTaken { why, .. } if why.contains(expected)), "{error}");
    };

    symlink(target.directory(), &path).expect("linked");
    refused("symbolic link");
    assert!(fs::read_dir(target.directory()).expect("readable").count() > 0);
    fs::remove_file(&path).expect("removed");

    fs::write(&path, "x").expect("written");
    refused("or a file");
    fs::remove_file(&path).expect("removed");

    if we_are_root() {
        fs::create_dir(&path).expect("created");
        std::os::unix::fs::chown(&path, Some(12345), None).expect("we are root");
        refused("belongs to user id 12345");
        fs::remove_dir(&path).expect("removed");
    }
    for bad in ["", ".", "..", "a/b"] {
        assert!(matches!(host.create_dir(bad), Err(AttachError::BadArgument { .. })), "{bad}");
    }
}

#[test]
fn a_file_in_the_sockets_place_is_not_trusted() {
    let target = Target::start(&jdks()[0], &[], &[]);
    let host = host(target.pid());
    let path = env::temp_dir().join(format!(".java_pid{}", target.pid()));
    fs::write(&path, "x").expect("written");
    let error = load_agent(&host, "/x.so", "").expect_err("no socket");
    assert!(matches!(error, AttachError::WrongSocket { .. }), "{error}");
    fs::remove_file(&path).expect("removed");
}

/// A tool is killed between asking the JVM to write into its pipe and the JVM's doing so.
#[test]
fn who_opens_a_pipe_that_nobody_reads_any_more_is_let_go() {
    let host = TargetHost::ourselves().expect("that is us");
    let name = format!("headwater-threads-{}", std::process::id());
    let directory = host.create_dir(&name).expect("a directory");
    drop(directory.create_pipe("threads.json").expect("a pipe"));
    let path = directory.here().join("threads.json");
    let (told, heard) = std::sync::mpsc::channel();
    let (ended, over) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        told.send(rustix::thread::gettid().as_raw_nonzero()).expect("it is listened to");
        let written = fs::OpenOptions::new().write(true).open(path).and_then(|mut pipe| pipe.write_all(&[0; 1 << 20]));
        ended.send(written.is_err()).expect("it is listened to");
    });
    let thread = heard.recv().expect("it says its number");
    // It sleeps where it opens the pipe, and nowhere else.
    while !fs::read_to_string(format!("/proc/self/task/{thread}/stat")).expect("it is there").contains(") S ") {
        std::thread::yield_now();
    }
    drop(directory);
    assert_eq!(over.recv_timeout(Duration::from_secs(30)), Ok(true), "it neither waits nor writes");
}
