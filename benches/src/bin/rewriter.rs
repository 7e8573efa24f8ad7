//! How fast class files are read and instrumented, on every class of java.base; and other parsers on the same classes in
//! the same run. On one core, from memory to memory.

use std::alloc::System;
use std::hint::black_box;
use std::process::Command;

use headwater_benches::{fastest, rate};
use headwater_rewriter::{ClassFile, Probes, Request, instrument};
use headwater_tests::{Jdk, Scratch, class_files, jdks};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

const ROUNDS: usize = 7;
const PROBES: Probes<'static> =
    Probes { class: "java/lang/HwProbe", enter: "enter", exit: "exit", throw: "thrown", allocate: None };

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    for jdk in jdks() {
        let classes = java_base(&jdk);
        let bytes: usize = classes.iter().map(Vec::len).sum();
        println!("java.base of JDK {}: {} classes, {:.1} MB; MB/s", jdk.version, classes.len(), bytes as f64 / 1e6);
        let measure = |name: &str, run: &dyn Fn(&[u8]) -> bool| {
            let failed = std::cell::Cell::new(0);
            let before = ALLOCATOR.stats().allocations;
            let time = fastest(ROUNDS, || {
                failed.set(classes.iter().filter(|class| !run(class)).count());
            });
            let allocations = (ALLOCATOR.stats().allocations - before) as f64 / (ROUNDS * classes.len()) as f64;
            println!(
                "  {name:<52} {:7.0}   {allocations:7.1} allocations a class, {} failed",
                rate(bytes, time),
                failed.get()
            );
        };
        measure("read: structure", &|class| ClassFile::parse(black_box(class)).is_ok());
        measure("read: structure and all code", &read_code);
        measure("instrument one method", &|class| instrument(black_box(class), &PROBES, &first_method(class)).is_ok());
        measure("instrument every method", &instrument_all);
        measure("cafebabe: structure", &|class| {
            let mut options = cafebabe::ParseOptions::default();
            cafebabe::parse_class_with_options(black_box(class), options.parse_bytecode(false)).is_ok()
        });
        measure("cafebabe: structure and all code", &|class| cafebabe::parse_class(black_box(class)).is_ok());
        measure("classfile-parser: structure", &|class| classfile_parser::class_parser(black_box(class)).is_ok());
        measure("krakatau2: structure and all code, disassembled", &|class| {
            let options = krakatau2::ParserOptions { no_short_code_attr: true };
            let text = krakatau2::DisassemblerOptions { roundtrip: true };
            krakatau2::disassemble(black_box(class), options, text).is_ok()
        });
    }
}

fn java_base(jdk: &Jdk) -> Vec<Vec<u8>> {
    let modules = Scratch::new("modules");
    let status = Command::new(jdk.program("jimage"))
        .args(["extract", "--include", "regex:/java.base/.*", "--dir"])
        .arg(modules.path())
        .arg(jdk.home.join("lib/modules"))
        .status();
    assert!(status.expect("jimage starts").success());
    class_files(modules.path()).iter().map(|file| std::fs::read(file).expect("a class file")).collect()
}

fn read_code(bytes: &[u8]) -> bool {
    let Ok(class) = ClassFile::parse(black_box(bytes)) else { return false };
    class
        .methods()
        .iter()
        .all(|method| class.code(method).is_ok_and(|code| black_box(code).is_some() == method.has_code()))
}

fn first_method(bytes: &[u8]) -> Vec<Request> {
    let class = ClassFile::parse(bytes).expect("a sound class file");
    let first = class.methods().iter().find(|method| method.has_code());
    first.map(|method| Request::method(method.index, 1)).into_iter().collect()
}

fn instrument_all(bytes: &[u8]) -> bool {
    let class = ClassFile::parse(bytes).expect("a sound class file");
    let with_code = class.methods().iter().filter(|method| method.has_code());
    let requests: Vec<Request> = with_code.map(|method| Request::method(method.index, 40_000)).collect();
    instrument(black_box(bytes), &PROBES, &requests).is_ok_and(|rewritten| rewritten.refused.is_empty())
}
