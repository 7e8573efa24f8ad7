//! How fast class files are read and instrumented, on every class of java.base; and other parsers on the same classes in
//! the same run. On one core, from memory to memory.

use std::alloc::System;
use std::hint::black_box;

use headwater_benches::{fastest, rate};
use headwater_rewriter::{ClassFile, Probes, Refusal, Request, instrument};
use headwater_tests::{Jdk, class_files, jdks, modules};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

const ROUNDS: usize = 7;
const PROBES: Probes<'static> = Probes::of_methods("java/lang/HwProbe");

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() {
    println!("one method of so many branches, every tenth of them a return's; MB/s of instrumenting");
    for branches in [100, 1_000, 8_000] {
        for far in [false, true] {
            let class = branching(branches, far);
            let time = fastest(ROUNDS * 3, || assert!(instrument_all(&class)));
            let kind = if far { "far" } else { "near" };
            println!("  {branches:5} {kind:4} {:6.1} kB {:7.0}", class.len() as f64 / 1e3, rate(class.len(), time));
        }
    }
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
    let modules = modules(jdk, Some("java.base"));
    class_files(modules.path()).iter().map(|file| std::fs::read(file).expect("a class file")).collect()
}

/// A class with one large method; far branches go to its end, past what a short branch reaches once it is instrumented.
fn branching(branches: usize, far: bool) -> Vec<u8> {
    let mut text = String::from(
        ".version 52 0\n.class public super Branches\n.super java/lang/Object\n\
         .method public static run : (I)I\n.code stack 2 locals 1\n",
    );
    for number in 0..branches {
        let target = if far && number > branches / 2 { "LEND".to_owned() } else { format!("LNEXT{number}") };
        text.push_str(&format!("iload_0\nifeq {target}\n"));
        if number % 10 == 0 {
            text.push_str("iload_0\nireturn\n");
        } else {
            text.push_str("iinc 0 1\n");
        }
        text.push_str(&format!("LNEXT{number}:\n.stack same\n"));
    }
    text.push_str("iinc 0 1\nLEND:\n.stack same\niload_0\nireturn\n.end code\n.end method\n.end class\n");
    let classes = krakatau2::assemble(&text, krakatau2::AssemblerOptions {}).expect("it is sound");
    classes.into_iter().next().expect("a class").data
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
    instrument(black_box(bytes), &PROBES, &requests)
        .is_ok_and(|rewritten| rewritten.refused.iter().all(|refused| refused.refusal == Refusal::EmptyFinalizer))
}
