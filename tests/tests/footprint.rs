//! What a profile takes of the target's heap, and where its objects' fields are there.

use std::collections::BTreeMap;
use std::process::Command;

use headwater_tests::{Jdk, Launched, Process, Profile, Scratch, compile_text, java, run};

headwater_tests::trials! {
    each_jdk {
        the_targets_heap_holds_little_of_ours,
        what_other_threads_read_shares_no_cache_line_with_what_is_written_in_events,
    }
}

/// The bound: so many bytes, and so many a thread that has been inside the root.
const BYTES: u64 = 64 * 1024;
const BYTES_A_THREAD: u64 = 200;
/// What objects of our classes take that there are once: one for each source of events.
const ONCE: u64 = 1024;

/// Bytes of live objects of our classes, and of arrays of them.
fn live_bytes(jdk: &headwater_tests::Jdk, target: &Process) -> u64 {
    let pid = target.pid().to_string();
    let output = run(Command::new(jdk.program("jcmd")).args([&pid, "GC.class_histogram"]));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let histogram = String::from_utf8_lossy(&output.stdout).into_owned();
    // num: #instances #bytes class (module)
    let bytes = |line: &str| line.split_whitespace().nth(2)?.parse::<u64>().ok();
    let ours: Vec<&str> = histogram.lines().filter(|line| line.contains("java.lang.HeadwaterV1")).collect();
    assert!(!ours.is_empty(), "{histogram}");
    ours.into_iter().filter_map(bytes).sum()
}

fn the_targets_heap_holds_little_of_ours(jdk: &Jdk) {
    const THREADS: u64 = 1000;
    let main = ["ManyThreads", &THREADS.to_string()];
    let mut target = Launched::of_files(jdk, &["ManyThreads.java"], &["-Xss256k"], &main);
    let mut profile = Profile::start(&target, &["--root", "ManyThreads::root"]);
    for _ in 0..3 {
        target.say("go");
        target.await_line("ROUND");
    }
    let bytes = live_bytes(jdk, &target);
    assert!(bytes > 40 * THREADS, "JDK {}: {bytes} bytes cannot be all", jdk.version);
    let bound = BYTES + BYTES_A_THREAD * THREADS;
    assert!(bytes <= bound, "JDK {}: {bytes} bytes of {THREADS} threads, more than {bound}", jdk.version);
    // The bytes of a thread itself, without the table, and the few objects that there are once.
    assert!(bytes <= BYTES_A_THREAD * THREADS + ONCE, "JDK {}: {bytes} bytes of {THREADS} threads", jdk.version);
    assert!(profile.tool.is_alive());
    assert_eq!(profile.interrupted()["events"]["lost"], 0);
    target.quit();
}

/// Says where the fields of a thread's state are, by name.
const LAYOUT: &str = r#"
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;

class Layout {
    @SuppressWarnings("removal")
    public static void main(String[] args) throws Exception {
        Field theUnsafe = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
        theUnsafe.setAccessible(true);
        sun.misc.Unsafe unsafe = (sun.misc.Unsafe) theUnsafe.get(null);
        for (Class<?> type = Class.forName("java.lang.HeadwaterV1Thread", false, null); type != Object.class; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (!Modifier.isStatic(field.getModifiers())) {
                    System.out.println(field.getName() + " " + unsafe.objectFieldOffset(field));
                }
            }
        }
    }
}
"#;

/// Which threads share a cache line is seen in times only, which no test asserts.
fn what_other_threads_read_shares_no_cache_line_with_what_is_written_in_events(jdk: &Jdk) {
    const LINE: u64 = 64;
    let classes = compile_text(jdk, LAYOUT);
    let patch = Scratch::new("patch");
    std::fs::create_dir_all(patch.file("java/lang")).unwrap();
    for class in headwater_runtime_java::CLASSES {
        std::fs::write(patch.file(&format!("{}.class", class.name)), class.bytes).unwrap();
    }
    let patched = format!("--patch-module=java.base={}", patch.path().display());
    let layout = java(jdk, &classes, &[&patched], &["Layout"]).finish();
    assert!(layout.status.success(), "JDK {}: {:?}", jdk.version, layout.stderr);
    let offsets: BTreeMap<&str, u64> = layout
        .stdout
        .iter()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, offset)| (name, offset.parse().expect("an offset")))
        .collect();
    // Objects are a multiple of eight bytes long, and the last field is no longer than four.
    let size = (offsets.values().max().expect("fields") + 1).next_multiple_of(8);
    for written in ["position", "depth"] {
        // What a thread outside reads of its own in each call.
        for read in ["owner", "depth", "comesInByAny"] {
            let (at, from) = (offsets[written] / 8 * 8, offsets[read] / 8 * 8);
            assert!(size + at >= from + LINE, "JDK {}: {read}, the next {written} in {offsets:?}", jdk.version);
        }
        for read in ["tid", "displaced"] {
            let (at, from) = (offsets[written] / 8 * 8, offsets[read] / 8 * 8);
            assert!(from >= at + LINE, "JDK {}: {written}, {read} in {offsets:?}", jdk.version);
            assert!(size + at >= from + LINE, "JDK {}: {read}, the next {written} in {offsets:?}", jdk.version);
        }
    }
}
