//! Places that another user can rearrange while root works there.

use std::os::unix::fs::lchown;
use std::sync::atomic::{AtomicBool, Ordering};

use headwater_tests::Scratch;

use super::*;
use crate::leftovers;

/// Starts the target as a user without rights.
fn of_nobody() -> Option<Target> {
    if !we_are_root() {
        eprintln!("skipped: only root can start another user's JVM");
        return None;
    }
    Some(Target::start_with(&jdks()[0], &[], &[], |command| {
        command.uid(NOBODY).gid(NOBODY);
    }))
}

/// What root has, and nobody else may look at or change.
fn treasure() -> (Scratch, PathBuf) {
    let place = Scratch::new("treasure");
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).expect("ours");
    let file = place.file("control");
    fs::write(&file, "secret").expect("written");
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("ours");
    (place, file)
}

fn is_untouched(file: &Path) -> bool {
    let metadata = fs::symlink_metadata(file).expect("still there");
    (metadata.uid(), metadata.mode() & 0o777, fs::read(file).expect("readable").as_slice()) == (0, 0o600, b"secret")
}

/// The owner of the directory exchanges the socket and the library for links, again and again, while root makes them.
#[test]
fn links_that_the_owner_puts_in_the_place_of_files_are_not_followed() {
    const TIMES: usize = 400;
    let Some(target) = of_nobody() else { return };
    let host = host(target.pid());
    let (_place, file) = treasure();
    let shared = host.create_dir(&format!("headwater-test-swap-{}", target.pid())).expect("created");
    let swapped = AtomicBool::new(false);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let swap = || {
                while !over.load(Ordering::Acquire) {
                    for name in ["control", "agent.so", ".agent.so.new"] {
                        let _ = fs::remove_file(shared.here().join(name));
                        if symlink(&file, shared.here().join(name)).is_ok() {
                            swapped.store(true, Ordering::Release);
                        }
                    }
                }
            };
            host.rights().exercise(swap).expect("root can be anybody");
        });
        for made in 0.. {
            // Whether it is made does not matter: he may be faster.
            let _ = shared.listen("control");
            let _ = shared.write_executable("agent.so", b"x");
            if made >= TIMES && swapped.load(Ordering::Acquire) {
                break;
            }
        }
        over.store(true, Ordering::Release);
    });
    assert!(is_untouched(&file));
}

#[test]
fn a_socket_of_ours_is_the_targets_and_nobody_elses() {
    let Some(target) = of_nobody() else { return };
    let host = host(target.pid());
    let shared = host.create_dir(&format!("headwater-test-socket-{}", target.pid())).expect("created");
    let _socket = shared.listen("control").expect("made");
    let metadata = fs::symlink_metadata(shared.here().join("control")).expect("there");
    assert_eq!((metadata.uid(), metadata.mode() & 0o777), (NOBODY, 0o600));
}

/// In a mount namespace of his own a user can have any directory that he sees stand for his /tmp, or for ours in it.
#[test]
fn a_mount_in_the_targets_place_gives_it_nothing() {
    let wrapper = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "unshare", "-U", "-r", "-m"];
    let works = || Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").status().is_ok_and(|s| s.success());
    if !we_are_root() || !works() {
        eprintln!("skipped: user namespaces and root are needed");
        return;
    }
    let (place, file) = treasure();
    let treasure = place.path().display();
    for (script, is_tmp) in [
        (format!("mkdir /tmp/headwater-test-mount-$$ && mount --bind {treasure} /tmp/headwater-test-mount-$$"), false),
        (format!("mount --bind {treasure} /tmp"), true),
    ] {
        let script = format!("mount --bind \"$PWD\" /mnt && {script} && exec \"$0\" \"$@\"");
        let target = Target::start_wrapped(&jdks()[0], &[&wrapper[..], &["sh", "-c", &script]].concat());
        let host = host(target.pid());
        let name = format!("headwater-test-mount-{}", target.pid());
        let error = host.create_dir(&name).expect_err("not its user's");
        assert!(is_tmp || matches!(error, AttachError::DirTaken { .. }), "{error}");
        if is_tmp {
            load_agent(&host, "/x.so", "").expect_err("the JVM can make no socket there");
        } else {
            // Another name is free.
            drop(host.create_dir_or_another(&name).expect("another name"));
        }
        leftovers::remove(&host);
        assert!(is_untouched(&file));
        assert_eq!(fs::read_dir(place.path()).expect("readable").count(), 1);
        assert_eq!(fs::metadata(place.path()).expect("there").uid(), 0);
        let _ = fs::remove_dir(env::temp_dir().join(&name));
    }
}

#[test]
fn a_link_in_the_place_of_the_attach_socket_is_not_followed() {
    let Some(target) = of_nobody() else { return };
    let host = host(target.pid());
    let place = Scratch::new("elsewhere");
    let other = UnixListener::bind(place.file("other")).expect("a socket");
    other.set_nonblocking(true).expect("set");
    let socket = env::temp_dir().join(format!(".java_pid{}", target.pid()));
    // Of a JVM that had this number before, and was killed.
    let _ = fs::remove_file(&socket);
    symlink(place.file("other"), &socket).expect("linked");
    lchown(&socket, Some(NOBODY), Some(NOBODY)).expect("we are root");
    let error = load_agent(&host, "/x.so", "").expect_err("no socket");
    assert!(matches!(error, AttachError::WrongSocket { .. }), "{error}");
    assert!(other.accept().is_err(), "nobody has called");
    fs::remove_file(&socket).expect("removed");
}

#[test]
fn another_users_files_in_the_place_of_hotspots_are_named_with_their_owner() {
    const STRANGER: u32 = 12345;
    let Some(target) = of_nobody() else { return };
    let host = host(target.pid());
    fs::set_permissions(target.directory(), PermissionsExt::from_mode(0o1777)).expect("ours");
    let trigger = target.directory().join(format!(".attach_pid{}", target.pid()));
    let in_tmp = env::temp_dir().join(format!(".attach_pid{}", target.pid()));
    let socket = env::temp_dir().join(format!(".java_pid{}", target.pid()));
    for path in [&trigger, &in_tmp, &socket] {
        if path == &in_tmp {
            // Where the JVM looks first, nothing can be made.
            fs::set_permissions(target.directory(), PermissionsExt::from_mode(0o755)).expect("ours");
        }
        let _ = fs::remove_file(path);
        fs::write(path, "").expect("made");
        std::os::unix::fs::chown(path, Some(STRANGER), None).expect("we are root");
        let error = load_agent(&host, "/x.so", "").expect_err("it is in the way");
        assert!(matches!(&error, AttachError::Squatted { owner: STRANGER, uid: NOBODY, .. }), "{error}");
        let name = path.file_name().expect("a file").to_str().expect("ASCII");
        assert!(error.to_string().contains(name), "{error}");
        assert!(path.exists());
        if path != &socket {
            let error = check_trigger(&host).expect_err("it is in the way");
            assert!(matches!(&error, AttachError::Squatted { owner: STRANGER, .. }), "{error}");
        }
        fs::remove_file(path).expect("removed");
    }
    assert!(version_of(&host).contains("JDK "));
}

#[test]
fn a_name_that_another_user_has_taken_is_left_to_him() {
    if !we_are_root() {
        eprintln!("skipped: only root can make another user's directory");
        return;
    }
    let target = Target::start(&jdks()[0], &[], &[]);
    let host = host(target.pid());
    let name = format!("headwater-test-other-{}", target.pid());
    let path = env::temp_dir().join(&name);
    fs::create_dir(&path).expect("created");
    std::os::unix::fs::chown(&path, Some(12345), None).expect("we are root");
    let shared = host.create_dir_or_another(&name).expect("another name");
    assert!(shared.name().starts_with(&name) && shared.name() != name, "{}", shared.name());
    let held = host.create_dir_or_another(shared.name()).expect_err("that is a tool's");
    assert!(matches!(held, AttachError::InUse { .. }), "{held}");
    let there = shared.here().to_owned();
    drop(shared);
    assert!(!there.exists());
    fs::remove_dir(&path).expect("still there, and empty");
}
