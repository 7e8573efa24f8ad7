//! Where the probes are, as javap sees them, and what else of the method stays where it was.

use std::process::Command;

use headwater_rewriter::{ClassFile, instrument, reassemble};
use headwater_tests::{Scratch, class_files, compile_text, jdks};

mod support;

use support::{COUNTING, PROBES, all_methods};

const SOURCE: &str = "
class Sample {
    final int field;
    Sample(int n) { this(n > 0, n); }
    Sample(boolean positive, int n) { super(); field = positive ? n : -n; }
    static int loop(int n) { int sum = 0; for (int i = 0; i < n; i++) { sum += i; } return sum; }
    static int caught(String text) { try { return Integer.parseInt(text); } catch (NumberFormatException e) { return -1; } }
    static void nothing() { }
}
";

/// The sample's disassembly, instrumented, without addresses and constant pool numbers.
fn disassembled(method: &str) -> String {
    let jdk = &jdks()[0];
    let classes = compile_text(jdk, SOURCE);
    let file = &class_files(classes.path())[0];
    let bytes = std::fs::read(file).expect("a class file");
    let class = ClassFile::parse(&bytes).expect("javac's");
    let rewritten = instrument(&bytes, &PROBES, &all_methods(&class)).expect("javac's");
    assert_eq!(rewritten.refused, []);
    let out = Scratch::new("instrumented");
    std::fs::write(out.file("Sample.class"), rewritten.bytes).expect("a file");
    let javap = Command::new(jdk.program("javap")).args(["-c", "-p", "-l"]).arg(out.file("Sample.class")).output();
    let text = String::from_utf8(javap.expect("javap starts").stdout).expect("text");
    let start = text.find(method).unwrap_or_else(|| panic!("{method} in {text}"));
    text[start..].split("\n\n").next().unwrap_or_default().to_owned()
}

/// The names of the instructions, and what invoke instructions call.
fn instructions(disassembly: &str) -> Vec<String> {
    let code =
        disassembly.lines().take_while(|line| !line.contains("Exception table") && !line.contains("LineNumberTable"));
    code.filter_map(|line| {
        let (address, rest) = line.trim().split_once(": ")?;
        address.parse::<u32>().ok()?;
        let name = rest.split_whitespace().next()?;
        match rest.split_once("Method ") {
            Some((_, called)) => Some(format!("{name} {}", called.split(':').next().unwrap_or(called))),
            None => Some(name.to_owned()),
        }
    })
    .collect()
}

#[test]
fn entry_comes_first_and_exit_before_the_return() {
    let code = instructions(&disassembled("static void nothing()"));
    let expected = [
        "sipush",
        "invokestatic java/lang/HwProbe.enter",
        "astore_0",
        "aload_0",
        "sipush",
        "invokestatic java/lang/HwProbe.exit",
        "return",
    ];
    assert_eq!(code, expected, "and there is nothing that could throw");
}

#[test]
fn what_an_exception_leaves_is_rethrown() {
    let code = instructions(&disassembled("static int loop("));
    let end = &code[code.len() - 4..];
    assert_eq!(end, ["aload_3", "sipush", "invokestatic java/lang/HwProbe.thrown", "athrow"]);
}

#[test]
fn every_return_has_its_exit_and_existing_handlers_come_first() {
    let text = disassembled("static int caught(");
    let code = instructions(&text);
    let exits = code.iter().filter(|line| line.ends_with("HwProbe.exit")).count();
    assert_eq!((exits, code.iter().filter(|line| *line == "ireturn").count()), (2, 2), "{text}");
    let table: Vec<&str> =
        text.lines().skip_while(|line| !line.contains("Exception table")).skip(2).map(str::trim).collect();
    assert!(table[0].contains("NumberFormatException") && table[1].ends_with("any"), "{text}");
}

#[test]
fn a_constructor_is_covered_on_both_sides_of_the_super_call() {
    let text = disassembled("Sample(boolean, int)");
    let code = instructions(&text);
    assert_eq!(code[1], "invokestatic java/lang/HwProbe.enter", "{text}");
    let super_call =
        code.iter().position(|line| line.starts_with("invokespecial java/lang/Object")).expect("it is there");
    assert!(super_call > 1);
    assert_eq!(code.iter().filter(|line| line.ends_with("HwProbe.thrown")).count(), 2, "{text}");
}

#[test]
fn line_numbers_point_to_the_same_code() {
    let text = disassembled("static int loop(");
    let lines = text.lines().skip_while(|line| !line.contains("LineNumberTable"));
    let (line, address) = lines
        .skip(1)
        .find_map(|line| line.trim().strip_prefix("line ")?.split_once(": "))
        .expect("a line number table");
    assert_eq!((line, address), ("6", "0"), "a breakpoint on the line still stops before its first instruction");
}

#[test]
fn an_empty_finalizer_stays_one() {
    let source = "class Sample { protected void finalize() { } }
        class Other { protected void finalize() { System.gc(); } static void finalize(int n) { } }";
    let classes = compile_text(&jdks()[0], source);
    let refused = class_files(classes.path()).into_iter().flat_map(|file| {
        let bytes = std::fs::read(file).expect("a class file");
        let class = ClassFile::parse(&bytes).expect("javac's");
        instrument(&bytes, &PROBES, &all_methods(&class)).expect("javac's").refused
    });
    let refused: Vec<&str> = refused.map(|refused| refused.refusal.code()).collect();
    assert_eq!(
        refused,
        ["empty-finalizer"],
        "HotSpot takes objects for finalizable unless their finalizer only returns"
    );
}

#[test]
fn what_has_no_room_for_counting_is_instrumented_without() {
    let many: String = (0..6000).map(|number| format!("if (n == {}) s++;", 1000 + number)).collect();
    let source =
        format!("class Many {{ static int many(int n) {{ int s = 0; {many} return s; }} static void few() {{ }} }}");
    let classes = compile_text(&jdks()[0], &source);
    let bytes = std::fs::read(classes.file("Many.class")).expect("a class file");
    let class = ClassFile::parse(&bytes).expect("javac's");
    let rewritten = instrument(&bytes, &COUNTING, &all_methods(&class)).expect("javac's");
    assert_eq!(rewritten.refused, []);
    let uncounted = rewritten.uncounted.iter().map(|it| (it.request.method_index, it.refusal.code()));
    assert_eq!(uncounted.collect::<Vec<_>>(), [(1, "code-too-large")], "the others are counted");
    assert!(reassemble(&rewritten.bytes).is_ok_and(|again| again == rewritten.bytes));
    let has = |descriptor: &str| rewritten.bytes.windows(descriptor.len()).any(|it| it == descriptor.as_bytes());
    assert!(has("(Ljava/lang/Object;I)V") && has("(Ljava/lang/Object;JI)V"));
}
