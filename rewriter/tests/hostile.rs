//! Class files from hell: whatever the bytes, there is an error or a result, never a panic.

use headwater_rewriter::{ClassFile, call_sites, instrument, reassemble};
use headwater_tests::{class_files, compile, jdks};

mod support;

use support::{PROBES, all_methods};

/// xorshift64*: the same bytes in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % limit
    }
}

/// Everything that the product does with a class file. True when it could be read.
fn exercise(bytes: &[u8]) -> bool {
    let Ok(class) = ClassFile::parse(bytes) else { return false };
    let _ = (class.name(), class.super_name(), class.interfaces(), reassemble(bytes));
    for method in class.methods() {
        let _ = call_sites(&class, method.index);
    }
    if let Ok(rewritten) = instrument(bytes, &PROBES, &all_methods(&class)) {
        ClassFile::parse(&rewritten.bytes).expect("what we write can be read");
    }
    true
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
