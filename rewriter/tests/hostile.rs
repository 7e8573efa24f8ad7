//! Class files from hell: whatever the bytes, there is an error or a result, never a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headwater_rewriter::{ClassFile, Rewritten, call_sites, constant_sites, instrument, reassemble};
use headwater_tests::mutation::Sample;
use headwater_tests::random::Random;
use headwater_tests::{class_files, compile, jdks};

#[path = "support/assembly.rs"]
mod assembly;
mod support;

use assembly::assembled;
use support::{PROBES, all_methods, all_places};

/// Everything that the product does with a class file. True when it could be read.
fn exercise(bytes: &[u8]) -> bool {
    let class = match ClassFile::parse(bytes) {
        Ok(class) => class,
        Err(error) => {
            assert!(error.offset <= bytes.len(), "{error}");
            return false;
        }
    };
    let _ = (class.name(), class.super_name(), class.interfaces());
    match reassemble(bytes) {
        Ok(again) => assert!(again == bytes, "taken apart and put together it is not the same"),
        Err(error) => assert!(error.offset <= bytes.len(), "{error}"),
    }
    let sites = class.methods().iter().map(|method| call_sites(&class, method.index));
    for error in sites.chain([constant_sites(&class)]).filter_map(Result::err) {
        assert!(error.offset <= bytes.len(), "{error}");
    }
    for requests in [all_methods(&class), all_places(&class)] {
        let Ok(rewritten) = instrument(bytes, &PROBES, &requests) else { continue };
        ClassFile::parse(&rewritten.bytes).expect("what we write can be read");
        if is_complete(&rewritten) {
            let again = reassemble(&rewritten.bytes).expect("what we write can be taken apart");
            assert!(again == rewritten.bytes, "instrumented, taken apart and put together it is not the same");
        }
    }
    true
}

/// Whether no method was refused.
fn is_complete(rewritten: &Rewritten) -> bool {
    rewritten.refused.is_empty()
}

fn samples() -> Vec<Vec<u8>> {
    let classes = compile(&jdks()[0], &["Counter.java", "Counting.java", "CompileLoop.java"]);
    class_files(classes.path()).iter().map(|file| std::fs::read(file).expect("a class file")).collect()
}

#[test]
fn every_truncation_is_an_error() {
    for bytes in samples() {
        for length in 0..bytes.len() {
            assert!(ClassFile::parse(&bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
        }
    }
}

#[test]
fn changed_bytes_never_panic() {
    const ROUNDS: usize = 400;
    let mut random = Random(0x4865_6164);
    let mut readable = 0;
    for bytes in samples() {
        for _ in 0..ROUNDS {
            let mut changed = bytes.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(changed.len());
                changed[at] = match random.below(4) {
                    0 => 0,
                    1 => 0xFF,
                    _ => random.below(256) as u8,
                };
            }
            readable += usize::from(exercise(&changed));
        }
    }
    assert!(readable > ROUNDS, "the changes do not get past the parser");
}

/// Where changed class files that showed a bug are kept.
fn found() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found")
}

#[test]
fn what_was_found_stays_fixed() {
    for entry in std::fs::read_dir(found()).expect("the directory is there") {
        let path = entry.expect("an entry").path();
        println!("{}", path.display());
        if path.extension().is_some_and(|extension| extension == "class") {
            exercise(&std::fs::read(path).expect("a file"));
        }
    }
}

/// Classes of javac and of other minds.
fn sound() -> Vec<Sample> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut sound: Vec<_> = samples().into_iter().map(Sample::new).collect();
    let mut files: Vec<_> =
        std::fs::read_dir(fixtures).expect("the fixtures").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "j")) {
        let text = std::fs::read_to_string(file).expect("text");
        sound.extend(assembled("a fixture", &text).into_iter().map(|(_, bytes)| Sample::new(bytes)));
    }
    sound
}

/// `HEADWATER_MUTATIONS` says how many there are; `HEADWATER_MUTATIONS_SEED` makes them others.
#[test]
fn changed_structures_never_panic() {
    const THREADS: usize = 2;
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<usize>().expect("a number"));
    let rounds = number("HEADWATER_MUTATIONS").unwrap_or(100_000);
    let seed = number("HEADWATER_MUTATIONS_SEED").unwrap_or(0);
    let sound = &sound();
    let readable: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let seed = (seed * THREADS + thread + 1) as u64;
                scope.spawn(move || mutate(sound, rounds / THREADS, seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no input failed")).sum()
    });
    println!("{rounds} inputs, {readable} of them could be read");
    assert!(readable > rounds / 10, "the changes do not get past the parser");
}

/// How many could be read.
fn mutate(sound: &[Sample], rounds: usize, seed: u64) -> usize {
    // A reading that is not linear shows; a busy machine does not.
    const LONGEST: Duration = Duration::from_secs(5);
    let mut random = Random(seed);
    let mut readable = 0;
    for round in 0..rounds {
        let sample = &sound[random.below(sound.len())];
        let bytes = sample.changed(&sound[random.below(sound.len())], &mut random);
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| exercise(&bytes)));
        let duration = start.elapsed();
        match outcome {
            Ok(could_be_read) if duration < LONGEST => readable += usize::from(could_be_read),
            _ => {
                let file = found().join(format!("{seed:016x}-{round}.class"));
                std::fs::write(&file, &bytes).expect("a file");
                panic!("after {duration:?}: kept as {}", file.display());
            }
        }
    }
    readable
}

#[test]
fn a_class_with_a_full_constant_pool_is_refused_by_method() {
    // The largest pool there is, of entries that nobody uses, spliced in behind the last one.
    for bytes in samples().into_iter().take(3) {
        let class = ClassFile::parse(&bytes).expect("javac's");
        let requests = all_methods(&class);
        let count = u16::from_be_bytes([bytes[8], bytes[9]]);
        // Constants are appended to the pool: there the two files part.
        let appended = instrument(&bytes, &PROBES, &requests).expect("javac's").bytes;
        let end = (10..bytes.len()).find(|at| bytes[*at] != appended[*at]).expect("it was instrumented");
        let mut full = bytes[..end].to_vec();
        full[8..10].copy_from_slice(&u16::MAX.to_be_bytes());
        for _ in count..u16::MAX {
            full.extend([3, 0, 0, 0, 0]);
        }
        full.extend(&bytes[end..]);
        let rewritten = instrument(&full, &PROBES, &requests).expect("it can be read");
        assert_eq!(rewritten.refused.len(), requests.len());
        assert!(rewritten.refused.iter().all(|refused| refused.refusal.code() == "constant-pool-full"));
        assert!(rewritten.bytes == full);
    }
}

#[test]
fn states_of_too_many_variables_at_too_many_places_are_not_kept() {
    // Each branch's target would keep 65,535 slots.
    let branches: String = (0..100).map(|n| format!("    iload_1\n    ifeq L{n}\nL{n}:\n")).collect();
    let text = format!(
        ".version 49 0\n.class public super C\n.super java/lang/Object\n.method public <init> : (I)V\n.code stack 2 locals 65535\n    \
         iconst_0\n    wide istore 65534\n    aload_0\n    invokespecial Method java/lang/Object <init> ()V\n\
         {branches}    return\n.end code\n.end method\n.end class\n"
    );
    let (_, bytes) = assembled("too many", &text).remove(0);
    let class = ClassFile::parse(&bytes).expect("it can be read");
    let rewritten = instrument(&bytes, &PROBES, &all_places(&class)).expect("it can be read");
    let refusals: Vec<_> = rewritten.refused.iter().map(|refused| refused.refusal.code()).collect();
    assert!(refusals.contains(&"too-complex"), "{refusals:?}");
}

#[test]
fn a_variable_that_the_method_does_not_have_is_an_error() {
    let text = ".version 52 0\n.class public super C\n.super java/lang/Object\n.method public <init> : ()V\n.code stack 2 locals 1\n    \
                iconst_0\n    wide istore 65534\n    aload_0\n    invokespecial Method java/lang/Object <init> ()V\n    return\n.end code\n.end method\n.end class\n";
    let (_, bytes) = assembled("none", text).remove(0);
    let class = ClassFile::parse(&bytes).expect("it can be read");
    let rewritten = instrument(&bytes, &PROBES, &all_places(&class)).expect("it can be read");
    let refusals: Vec<_> = rewritten.refused.iter().map(|refused| refused.refusal.to_string()).collect();
    assert!(refusals.iter().any(|refusal| refusal.contains("a local variable that the method has")), "{refusals:?}");
}
