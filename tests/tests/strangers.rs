//! Who else is on the machine: strangers at the control socket, other users' files, limits of threads, and tools that were killed.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headwater_tests::counting::{Target, root_calls, undisturbed};
use headwater_tests::{
    Jdk, Launched, Patience, Process, Profile, Scratch, await_that, compile, headwater, profile, read_report, run,
    run_headwater,
};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        a_stranger_at_the_control_socket_does_not_keep_the_agent_out,
        an_interruption_is_heard_whoever_holds_the_socket,
        a_jvm_that_may_start_no_more_threads_is_left_alone,
        a_tool_that_is_killed_while_it_attaches_leaves_nothing_for_long,
        an_agent_is_found_again_though_another_user_has_its_name,
        whoever_calls_the_probes_himself_gets_nowhere,
    }
}

/// Calls the probes with numbers that are no method's, inside its root or beside it.
const PROBING: &str = "
class Main {
    static int root(boolean isProbing) { if (isProbing) probe(); return 1; }
    static void probe() {
        for (String name : new String[] { \"enter\", \"approached\" }) {
            for (int id : new int[] { Integer.MIN_VALUE, -4096, -1, 1 << 20, Integer.MAX_VALUE }) {
                try {
                    Class.forName(\"java.lang.HeadwaterV1\").getMethod(name, int.class).invoke(null, id);
                } catch (ReflectiveOperationException thrown) {
                    System.out.println(\"THROWN \" + thrown);
                }
            }
        }
    }
    public static void main(String[] args) throws Exception {
        root(false);
        System.out.println(\"READY\");
        var in = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null && !line.equals(\"quit\"); ) {
            if (line.equals(\"beside\")) probe();
            System.out.println(\"RESULT \" + root(line.equals(\"inside\")));
        }
    }
}
";

fn whoever_calls_the_probes_himself_gets_nowhere(jdk: &Jdk) {
    let mut target = Launched::of_text(jdk, PROBING, &[], &["Main"]);
    let profile = Profile::start(&target, &["--root", "Main::root"]);
    for line in ["beside", "inside", "plain"] {
        target.say(line);
        target.await_line("RESULT 1");
    }
    let report = profile.interrupted();
    assert_eq!(root_calls(&report), 3, "JDK {}", jdk.version);
    for line in ["beside", "inside", "plain"] {
        target.say(line);
        target.await_line("RESULT 1");
    }
    target.quit();
}

/// What tools have put into /tmp for a target.
fn files_for(pid: u32) -> Vec<PathBuf> {
    let begins = format!("headwater-{pid}-");
    let entries = fs::read_dir("/tmp").expect("readable").flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&begins)).map(|entry| entry.path()).collect()
}

fn trigger_of(pid: u32) -> PathBuf {
    // The target's working directory is ours.
    PathBuf::from(format!(".attach_pid{pid}"))
}

/// Waits for something to be there; `None` if the tool has ended before.
fn await_there<T>(tool: &mut Process, find: impl Fn() -> Option<T>) -> Option<T> {
    let mut patience = Patience::default();
    loop {
        if let Some(found) = find() {
            return Some(found);
        }
        assert!(patience.lasts(), "it never came");
        if !tool.is_alive() {
            return None;
        }
    }
}

fn control_of(pid: u32) -> Option<PathBuf> {
    files_for(pid).into_iter().map(|directory| directory.join("control")).find(|control| control.exists())
}

/// What ends a stranger, also when the test fails: its thread is waited for.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Keeps a connection busy without ever saying anything, until the tool has closed it or is gone.
fn dribble(mut stream: UnixStream, over: &AtomicBool) {
    // The announced length is that of a greeting.
    let _ = stream.write_all(&60_000u32.to_le_bytes());
    stream.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
    while !over.load(Ordering::Acquire) {
        if stream.write_all(&[1]).is_err() || stream.read(&mut [0]).is_ok() {
            return;
        }
    }
}

fn a_stranger_at_the_control_socket_does_not_keep_the_agent_out(jdk: &Jdk) {
    /// So often may the stranger come too late.
    const ATTEMPTS: usize = 20;
    let mut target = Target::start(jdk);
    let pid = target.process.pid();
    let over = AtomicBool::new(false);
    let was_there = (0..ATTEMPTS).any(|_| {
        let arguments = ["profile", &pid.to_string(), "--root", "Counting::root", "--calls", "1", "--gentle", "off"];
        let mut tool = Process::spawn(headwater().args(arguments).args(["--bare", "off"]));
        let stranger = await_there(&mut tool, || UnixStream::connect(control_of(pid)?).ok());
        std::thread::scope(|scope| {
            let _over = Over(&over);
            let was_there = stranger.map(|stream| scope.spawn(|| dribble(stream, &over))).is_some();
            tool.await_error_line("instrumented");
            target.go();
            let tool = tool.finish();
            assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
            was_there
        })
    });
    assert!(was_there, "no stranger has ever connected");
    target.quit();
}

/// The JVM never answers, and a stranger dribbles: Ctrl-C ends the tool, and nothing is left.
fn an_interruption_is_heard_whoever_holds_the_socket(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let pid = target.process.pid();
    let attach_socket = PathBuf::from(format!("/tmp/.java_pid{pid}"));
    // It takes connections, and never says anything.
    let _mute = UnixListener::bind(&attach_socket).expect("the JVM has made none yet");
    let over = AtomicBool::new(false);
    let arguments = ["profile", &pid.to_string(), "--root", "Counting::root"];
    let mut tool = Process::spawn(headwater().args(arguments));
    let stranger = await_there(&mut tool, || UnixStream::connect(control_of(pid)?).ok()).expect("it waits");
    std::thread::scope(|scope| {
        let _over = Over(&over);
        scope.spawn(|| dribble(stranger, &over));
        tool.signal(Signal::INT);
        let tool = tool.finish();
        assert_eq!(tool.status.code(), Some(130), "JDK {}: {:#?}", jdk.version, tool.stderr);
    });
    assert_eq!(files_for(pid), Vec::<PathBuf>::new());
    fs::remove_file(&attach_socket).expect("still there");
    target.go();
    target.quit();
}

/// HotSpot ends a JVM that cannot start its attach listener.
fn a_jvm_that_may_start_no_more_threads_is_left_alone(jdk: &Jdk) {
    /// A user id that nobody else has.
    const USER: u32 = 54321;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can start another user's JVM");
        return;
    }
    let classes = compile(jdk, &["Counter.java", "Counting.java"]);
    let mut java = Command::new(jdk.program("java"));
    java.args(["-Xverify:all", "-cp"]).arg(classes.path()).arg("Counting").uid(USER).gid(USER).current_dir("/");
    let mut target = Process::spawn(&mut java);
    target.await_line("READY");
    let pid = target.pid().to_string();
    // The target's user may do that in any container; root needs a capability for it.
    let limit = |most: u64| {
        let mut prlimit = Command::new("prlimit");
        prlimit.args(["--pid", &pid, &format!("--nproc={most}:")]).uid(USER).gid(USER);
        assert!(run(&mut prlimit).status.success());
    };
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("its threads").count() as u64;
    limit(threads);
    let arguments = ["profile", &pid, "--root", "Counting::root", "--calls", "1"];
    let refused = run_headwater(&arguments);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "JDK {}: {errors}", jdk.version);
    assert!(errors.contains(&format!("RLIMIT_NPROC of user id {USER} allows {threads} threads")), "{errors}");
    let doctor = run_headwater(&["doctor", &pid, "--format", "json"]);
    let diagnosis: Value = serde_json::from_slice(&doctor.stdout).expect("JSON");
    let checks = diagnosis["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == "threads").expect("it is looked at");
    assert_eq!((doctor.status.code(), &check["verdict"]), (Some(3), &Value::from("failure")), "{diagnosis:#}");
    assert!(target.is_alive());

    limit(threads + 64);
    let out = Scratch::new("report");
    let file = out.file("profile.json");
    let tool = profile(&target, &["--root", "Counting::root", "--calls", "1", "-o", &file.to_string_lossy()]);
    target.say("go");
    target.await_line("RESULT ");
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    target.say("quit");
    assert!(target.finish().status.success(), "JDK {}", jdk.version);
}

fn a_tool_that_is_killed_while_it_attaches_leaves_nothing_for_long(jdk: &Jdk) {
    type Sight = fn(u32) -> bool;
    let sights: [(&str, Sight); 3] = [
        ("trigger", |pid| trigger_of(pid).exists()),
        ("directory", |pid| !files_for(pid).is_empty()),
        ("control", |pid| control_of(pid).is_some()),
    ];
    let expected = undisturbed(jdk, 1);
    for (sight, is_there) in sights {
        for remover in ["detach", "list", "profile"] {
            let mut target = Target::start(jdk);
            let pid = target.process.pid();
            // It ends by itself where the sight was too short to be seen.
            let arguments = ["profile", &pid.to_string(), "--root", "Counting::root", "-d", "10ms", "--bare", "off"];
            let mut tool = Process::spawn(headwater().args(arguments));
            await_there(&mut tool, || is_there(pid).then_some(()));
            drop(tool);
            let name = pid.to_string();
            let arguments: &[&str] = match remover {
                "list" => &["list"],
                "detach" => &["detach", &name],
                _ => &["profile", &name, "--root", "Counting::root", "-d", "10ms", "--bare", "off"],
            };
            let removed = run_headwater(arguments);
            let errors = String::from_utf8_lossy(&removed.stderr);
            assert!(removed.status.success(), "JDK {}, {sight}, {remover}: {errors}", jdk.version);
            // One that was not left is the agent's, which removes it itself.
            let context = format!("JDK {}, {sight}, {remover}: its files are removed", jdk.version);
            await_that(&context, || files_for(pid).is_empty() && !trigger_of(pid).exists());
            assert_eq!(vec![target.go()], expected, "JDK {}, {sight}, {remover}", jdk.version);
            target.quit();
        }
    }
}

/// The agent is known by its path. Where that is another user's now, it needs no file.
fn an_agent_is_found_again_though_another_user_has_its_name(jdk: &Jdk) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can make another user's directory");
        return;
    }
    let mut target = Target::start(jdk);
    let pid = target.process.pid();
    let maps = || fs::read_to_string(format!("/proc/{pid}/maps")).expect("our own");
    let mut taken = None;
    for round in 0..2 {
        let out = Scratch::new("report");
        let file = out.file("profile.json");
        let arguments = ["--root", "Counting::root", "--calls", "1", "-o", &file.to_string_lossy()];
        let tool = profile(&target.process, &arguments);
        target.go();
        let tool = tool.finish();
        assert!(tool.status.success(), "JDK {}, {round}: {:#?}", jdk.version, tool.stderr);
        assert_eq!(root_calls(&read_report(&file)), 1);
        let maps = maps();
        let mut paths: Vec<&str> = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .filter(|path| path.ends_with("/agent.so"))
            .collect();
        paths.dedup();
        assert_eq!(paths.len(), 1, "JDK {}: one agent is loaded", jdk.version);
        if taken.is_none() {
            let directory = Path::new(paths[0]).parent().expect("a directory").to_owned();
            fs::create_dir(&directory).expect("it was removed");
            std::os::unix::fs::chown(&directory, Some(12345), Some(12345)).expect("we are root");
            taken = Some(directory);
        }
    }
    // Root's tools remove what any user's tool may have left, and this could be such a directory.
    let taken = taken.expect("taken");
    let detached = run_headwater(&["detach", &pid.to_string()]);
    assert!(detached.status.success(), "{}", String::from_utf8_lossy(&detached.stderr));
    let _ = fs::remove_dir(taken);
    target.quit();
}
