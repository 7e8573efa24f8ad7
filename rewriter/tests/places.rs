//! Probes elsewhere than at a method's entry and exits: around lines, around calls, with arguments. A program's trace
//! shows that a region is entered and left by every way there is, on every JDK, verified.

use std::path::Path;

use headwater_rewriter::{Around, ClassFile, ProbeSite, Probes, Refusal, Request, Rewritten, instrument};
use headwater_tests::{Jdk, Scratch, compile_text, jdks};

const PROBES: Probes<'static> = Probes {
    allocate: Some("made"),
    receive: Some("passed"),
    argument: Some("passed"),
    around: Some(Around { begin: "begin", end: "ended" }),
    waiting: Some(Around { begin: "waits", end: "waited" }),
    before: Some("before"),
    receiver: Some("passed"),
    ..Probes::of_methods("Trace")
};

/// The lines between the marks are the region.
const SOURCE: &str = "
class Trace {
    static StringBuilder trace = new StringBuilder();
    static Object enter(int id) { trace.append(\" +\").append(id); return id; }
    static void exit(int id) { trace.append(\" -\").append(id); }
    static void thrown(int id) { trace.append(\" !\").append(id); }
    static void exit(Object token, int id) { trace.append(\" -\").append(token); }
    static void thrown(Object token, int id) { trace.append(\" !\").append(token); }
    static void say(String text) { trace.append(' ').append(text); }
    static void end(String name) {
        System.out.println(name + ':' + trace);
        trace.setLength(0);
    }
}

class Base {
    final String value;
    Base(String value) { this.value = value; if (value.equals(\"bad\")) throw new IllegalStateException(value); }
}

class Derived extends Base {
    Derived(int n) { super(new String(n > 1 ? Places.name(n) : \"small\")); Trace.say(\"derived\"); }
}

class Places {
    static String name(int n) { if (n > 5) throw new ArithmeticException(); return \"n\" + n; }

    static int region(int how) {
        int sum = 0;
        for (int i = 0; i < 3; i++) {
            Trace.say(\"a\" + i);
            if (how == 1 && i == 1) continue;
            try {
                Trace.say(\"b\"); // first
                if (how == 2) break;
                if (how == 3 && i == 1) return -1;
                if (how == 4) throw new IllegalStateException();
                if (how == 5) throw new UnsupportedOperationException();
                if (how == 6) { try { name(9); } catch (ArithmeticException e) { Trace.say(\"inner\"); } }
                switch (how) {
                    case 7: sum += 7; break;
                    case 8: continue;
                    default: sum++;
                }
                while (how == 9 && sum < 3) sum++; // last
            } catch (IllegalStateException e) {
                Trace.say(\"caught\");
            }
        }
        return sum;
    }

    static int loop(int n) {
        do { n--; } while (n > 0); // loop
        return n;
    }

    static String calls(int n) {
        String text = null;
        try {
            text = name(n).trim();
            for (int i = 0; i < n; i++) text = text.concat(name(i));
        } catch (ArithmeticException e) {
            text = \"none\";
        } finally {
            Trace.say(\"finally\");
        }
        return text;
    }

    public static void main(String[] arguments) {
        for (int how = 0; how < 10; how++) {
            int result;
            try {
                result = region(how);
            } catch (UnsupportedOperationException e) {
                result = -2;
            }
            Trace.end(\"region \" + how + ' ' + result);
        }
        Trace.end(\"loop \" + loop(3));
        for (int n : new int[] {0, 2, 6}) Trace.end(\"calls \" + calls(n));
        for (int n : new int[] {1, 2, 6}) {
            String value;
            try {
                value = new Derived(n).value;
            } catch (ArithmeticException e) {
                value = \"none\";
            }
            Trace.end(\"derived \" + value);
        }
    }
}
";

fn line(mark: &str) -> u16 {
    SOURCE.lines().position(|line| line.ends_with(mark)).expect("the mark is there") as u16 + 1
}

fn method_index(class: &ClassFile<'_>, name: &str) -> usize {
    class.methods().iter().find(|method| method.name() == name).expect("it is there").index
}

/// Requests for every call of a kind, with ids from `first` on, in the order of the code.
fn at_opcodes(class: &ClassFile<'_>, name: &str, opcodes: &[u8], first: u32) -> Vec<Request> {
    let method_index = method_index(class, name);
    let code = class.code(&class.methods()[method_index]).expect("javac's").expect("it has code");
    let found = code.instructions().filter(|instruction| opcodes.contains(&instruction.opcode));
    let requests = found.zip(first..).map(|(instruction, id)| {
        let offset = instruction.offset;
        Request { method_index, id, place: ProbeSite::Call { offset } }
    });
    requests.collect()
}

/// Rewrites a class in place.
fn rewrite(classes: &Scratch, name: &str, requests: impl FnOnce(&ClassFile<'_>) -> Vec<Request>) -> Rewritten {
    let file = classes.file(name);
    let bytes = std::fs::read(&file).expect("a class file");
    let class = ClassFile::parse(&bytes).expect("javac's");
    let rewritten = instrument(&bytes, &PROBES, &requests(&class)).expect("javac's");
    std::fs::write(&file, &rewritten.bytes).expect("a file");
    rewritten
}

/// What the program prints, line by line.
fn run(jdk: &Jdk, classes: &Path) -> Vec<String> {
    let output = jdk
        .verifying()
        .args(["-XX:-StackTraceInThrowable", "-cp"])
        .arg(classes)
        .arg("Places")
        .output()
        .expect("java starts");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(str::to_owned).collect()
}

fn lines_starting<'l>(lines: &'l [String], beginning: &str) -> Vec<&'l str> {
    lines.iter().filter_map(|line| line.strip_prefix(beginning)).collect()
}

#[test]
fn a_region_of_lines_is_entered_and_left_by_every_way() {
    for jdk in jdks() {
        let classes = compile_text(&jdk, SOURCE);
        let rewritten = rewrite(&classes, "Places.class", |class| {
            let region = ProbeSite::Lines { first: line("// first"), last: line("// last") };
            let only = ProbeSite::Lines { first: line("// loop"), last: line("// loop") };
            let method = method_index(class, "region");
            vec![
                Request { method_index: method, id: 1, place: region },
                Request::method(method, 2),
                Request { method_index: method_index(class, "loop"), id: 3, place: only },
            ]
        });
        assert_eq!(rewritten.refused, []);
        let lines = run(&jdk, classes.path());
        let expected = [
            "0 3: +2 a0 +1 b -1 a1 +1 b -1 a2 +1 b -1 -2",
            "1 2: +2 a0 +1 b -1 a1 a2 +1 b -1 -2",
            "2 0: +2 a0 +1 b -1 -2",
            "3 -1: +2 a0 +1 b -1 a1 +1 b -1 -2",
            "4 0: +2 a0 +1 b !1 caught a1 +1 b !1 caught a2 +1 b !1 caught -2",
            "5 -2: +2 a0 +1 b !1 !2",
            "6 3: +2 a0 +1 b inner -1 a1 +1 b inner -1 a2 +1 b inner -1 -2",
            "7 21: +2 a0 +1 b -1 a1 +1 b -1 a2 +1 b -1 -2",
            "8 0: +2 a0 +1 b -1 a1 +1 b -1 a2 +1 b -1 -2",
            "9 5: +2 a0 +1 b -1 a1 +1 b -1 a2 +1 b -1 -2",
        ];
        assert_eq!(lines_starting(&lines, "region "), expected, "JDK {}", jdk.version);
        assert_eq!(lines_starting(&lines, "loop "), ["0: +3 -3"], "going round is not entering");
    }
}

#[test]
fn a_call_is_entered_and_left_also_by_an_exception() {
    const INVOKESTATIC: u8 = 0xb8;
    for jdk in jdks() {
        let classes = compile_text(&jdk, SOURCE);
        let rewritten = rewrite(&classes, "Places.class", |class| {
            let mut requests = at_opcodes(class, "calls", &[INVOKESTATIC], 1);
            requests.retain(|request| request.id <= 2);
            requests.push(Request::method(method_index(class, "calls"), 9));
            requests
        });
        assert_eq!(rewritten.refused, []);
        let lines = run(&jdk, classes.path());
        let expected =
            ["n0: +9 +1 -1 finally -9", "n2n0n1: +9 +1 -1 +2 -2 +2 -2 finally -9", "none: +9 +1 !1 finally -9"];
        assert_eq!(lines_starting(&lines, "calls "), expected, "JDK {}", jdk.version);
    }
}

#[test]
fn calls_in_a_constructor_before_this_is_constructed() {
    const CALLS: [u8; 2] = [0xb7, 0xb8];
    for jdk in jdks() {
        let classes = compile_text(&jdk, SOURCE);
        let rewritten = rewrite(&classes, "Derived.class", |class| {
            let mut requests = at_opcodes(class, "<init>", &CALLS, 1);
            requests.push(Request::method(0, 9));
            requests
        });
        assert_eq!(rewritten.refused, []);
        let lines = run(&jdk, classes.path());
        // Calls: name, new String, super, say.
        let expected = [
            "small: +9 +2 -2 +3 -3 +4 derived -4 -9",
            "n2: +9 +1 -1 +2 -2 +3 -3 +4 derived -4 -9",
            "none: +9 +1 !1 !9",
        ];
        assert_eq!(lines_starting(&lines, "derived "), expected, "JDK {}", jdk.version);
    }
}

#[test]
fn what_is_not_there_is_refused_and_the_rest_is_done() {
    let jdk = &jdks()[0];
    let classes = compile_text(jdk, SOURCE);
    let rewritten = rewrite(&classes, "Places.class", |class| {
        let method_index = method_index(class, "loop");
        let (first, last) = (line("// loop"), line("// loop") + 1);
        vec![
            Request { method_index, id: 1, place: ProbeSite::Lines { first: 60_000, last: 60_001 } },
            Request { method_index, id: 2, place: ProbeSite::Call { offset: 1 } },
            Request { method_index, id: 3, place: ProbeSite::Allocation { offset: 99_999 } },
            Request { method_index, id: 4, place: ProbeSite::Lines { first, last } },
            Request { method_index: 999, id: 5, place: ProbeSite::Method },
        ]
    });
    let refused: Vec<_> =
        rewritten.refused.iter().map(|refused| (refused.request.id, refused.refusal.clone())).collect();
    let expected =
        [(1, Refusal::NoSuchPlace), (2, Refusal::NoSuchPlace), (3, Refusal::NoSuchPlace), (5, Refusal::NoSuchMethod)];
    assert_eq!(refused, expected);
    let lines = run(jdk, classes.path());
    assert_eq!(lines_starting(&lines, "loop "), ["0: +4 -4"]);
}

#[test]
fn line_regions_that_cross_are_refused() {
    let jdk = &jdks()[0];
    let classes = compile_text(jdk, SOURCE);
    let (first, last) = (line("// first"), line("// last"));
    let rewritten = rewrite(&classes, "Places.class", |class| {
        let method_index = method_index(class, "region");
        vec![
            Request { method_index, id: 1, place: ProbeSite::Lines { first, last: last - 3 } },
            Request { method_index, id: 2, place: ProbeSite::Lines { first: first + 3, last } },
            Request { method_index, id: 3, place: ProbeSite::Lines { first: first + 1, last: first + 1 } },
        ]
    });
    let refused: Vec<_> =
        rewritten.refused.iter().map(|refused| (refused.request.id, refused.refusal.code())).collect();
    assert_eq!(refused, [(2, "regions-cross")]);
}

#[test]
fn a_first_argument_is_handed_out_when_its_method_is_entered() {
    let jdk = &jdks()[0];
    let text = "
        class Handed {
            static int seen;
            static void passed(Object object, int id) { System.out.println(id + \" \" + (object == Main.it)); }
        }
        class Main {
            static Main it = new Main();
            int loop(long n) { while (n-- > 0) { } return 1; }
            static void no() { }
            static void number(int n) { }
            static void of(Object object, long n) { while (n-- > 0) { } }
            static void all(Main[] them) { }
            public static void main(String[] args) { it.loop(3); no(); number(1); of(it, 2); all(null); }
        }";
    let probes = Probes { class: "Handed", ..PROBES };
    let classes = compile_text(jdk, text);
    let file = classes.path().join("Main.class");
    let bytes = std::fs::read(&file).expect("a class file");
    let class = ClassFile::parse(&bytes).expect("javac's class files are sound");
    let first = |name, id| Request { method_index: method_index(&class, name), id, place: ProbeSite::FirstArgument };
    let requests =
        [first("loop", 5), first("of", 6), first("all", 7), first("no", 8), first("<init>", 9), first("number", 10)];
    let rewritten = instrument(&bytes, &probes, &requests).expect("readable");
    let refused: Vec<u32> = rewritten.refused.iter().map(|refused| refused.request.id).collect();
    assert_eq!(refused, [9, 8, 10], "there is none, or none that is an object");
    std::fs::write(&file, &rewritten.bytes).expect("a class file");
    let output = jdk.verifying().arg("-cp").arg(classes.path()).arg("Main").output();
    assert_eq!(String::from_utf8_lossy(&output.expect("java starts").stdout).trim(), "5 true\n6 true\n7 false");
}

#[test]
fn arguments_are_handed_out_and_both_ends_of_what_is_done_for_an_object_and_of_waits_are_told_on_every_jdk() {
    for jdk in jdks() {
        let text = "
            class Told {
                static void passed(Object object, int id) { say(\"=\", object, id); }
                static void begin(Object object, int id) { say(\"+\", object, id); }
                static void ended(Object object, int id) { say(\"-\", object, id); }
                static void waits(int id) { System.out.print(\"<\" + id + ' '); }
                static void waited(int id) { System.out.print(\">\" + id + ' '); }
                static void say(String what, Object object, int id) {
                    System.out.print(what + id + (object == null ? \"null\" : object == Main.it ? \"it\" : object.toString()) + ' ');
                }
            }
            class Main {
                static Main it = new Main(); Main() { }
                int work(long wide, double wider, Object argument, int how) {
                    long sum = wide;
                    while (sum-- > 0) { if (how == 1) return 1; }
                    if (how == 2) throw new IllegalStateException();
                    return how;
                }
                static void call(Runnable first, Runnable second, boolean both) {
                    Runnable task = both ? second : first;
                    try { task.run(); } catch (ArithmeticException e) { System.out.print(\"caught \"); }
                }
                public static void main(String[] args) {
                    for (int how = 0; how < 3; how++) {
                        try { it.work(3, 1, \"arg\", how); } catch (IllegalStateException e) { System.out.print(\"thrown \"); }
                    }
                    Runnable good = new Runnable() { public void run() { } public String toString() { return \"good\"; } };
                    Runnable bad = new Runnable() { public void run() { int n = 1 / args.length; } public String toString() { return \"bad\"; } };
                    call(bad, good, true);
                    call(bad, good, false);
                }
            }";
        let probes = Probes { class: "Told", ..PROBES };
        let classes = compile_text(&jdk, text);
        let file = classes.path().join("Main.class");
        let bytes = std::fs::read(&file).expect("a class file");
        let class = ClassFile::parse(&bytes).expect("javac's class files are sound");
        let run = class.methods().iter().find(|method| &*method.name() == "call").expect("is there");
        let sites = headwater_rewriter::call_sites(&class, run.index).expect("readable").calls;
        let offset = sites.iter().find(|call| &*call.name == "run").expect("is there").offset;
        let code = class.code(run).expect("readable").expect("has code");
        let local = code.loaded_before(offset).expect("javac loads the receiver last");
        let at = |name, id, place| Request { method_index: method_index(&class, name), id, place };
        let requests = [
            at("work", 7, ProbeSite::Around { call: None, local: 0 }),
            at("work", 5, ProbeSite::Wait { call: None }),
            at("work", 8, ProbeSite::Argument { local: 5 }),
            at("call", 9, ProbeSite::Around { call: Some(offset), local }),
            at("call", 6, ProbeSite::Wait { call: Some(offset) }),
            at("<init>", 10, ProbeSite::Around { call: None, local: 0 }),
            at("<init>", 11, ProbeSite::Argument { local: 0 }),
            at("call", 12, ProbeSite::Argument { local: 99 }),
        ];
        let rewritten = instrument(&bytes, &probes, &requests).expect("readable");
        let mut refused: Vec<u32> = rewritten.refused.iter().map(|refused| refused.request.id).collect();
        refused.sort_unstable();
        assert_eq!(refused, [10, 11, 12], "there is no object, or none yet");
        std::fs::write(&file, &rewritten.bytes).expect("a class file");
        let output = jdk.verifying().arg("-cp").arg(classes.path()).arg("Main").output();
        let output = output.expect("java starts");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout).trim(),
            "=8arg +7it <5 >5 -7it =8arg +7it <5 >5 -7it =8arg +7it <5 >5 -7null thrown +9good <6 >6 -9good +9bad <6 >6 -9null caught",
            "JDK {}: {}",
            jdk.version,
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_probe_before_a_call_runs_on_every_way_to_it() {
    let jdk = &jdks()[0];
    let text = "
        class Told {
            static StringBuilder trace = new StringBuilder();
            static void before(int id) { trace.append(\" <\").append(id); }
            static Object enter(int id) { before(id); return id; }
            static void exit(Object token, int id) { trace.append(\" -\").append(token); }
            static void thrown(Object token, int id) { trace.append(\" !\").append(token); }
        }
        class Main {
            final int n;
            Main(int n) { this.n = n; }
            static int one(int n) { Told.trace.append(\" one\").append(n); return n; }
            static int many(int n) {
                int sum = 10 * one(n > 0 ? n : -n) + new Main(n > 1 ? one(7) : 8).n;
                for (int i = 0; i < n; i++) sum += one(i);
                try { if (sum > 20) throw new IllegalStateException(); } catch (IllegalStateException e) { one(9); }
                return sum;
            }
            public static void main(String[] args) { for (int n = -1; n < 3; n++) { many(n); Told.trace.append(\";\"); } System.out.println(Told.trace); }
        }";
    let probes = Probes { class: "Told", ..PROBES };
    let classes = compile_text(jdk, text);
    let file = classes.path().join("Main.class");
    let bytes = std::fs::read(&file).expect("a class file");
    let class = ClassFile::parse(&bytes).expect("javac's class files are sound");
    let index = method_index(&class, "many");
    let sites = headwater_rewriter::call_sites(&class, index).expect("readable").calls;
    let before = sites.iter().enumerate().map(|(number, site)| Request {
        method_index: index,
        id: number as u32 + 1,
        place: ProbeSite::Before { offset: site.offset },
    });
    let mut requests: Vec<Request> = before.collect();
    requests.push(Request { method_index: index, id: 0, place: ProbeSite::Method });
    requests.push(Request { method_index: index, id: 99, place: ProbeSite::Before { offset: 60_000 } });
    let rewritten = instrument(&bytes, &probes, &requests).expect("readable");
    let refused: Vec<u32> = rewritten.refused.iter().map(|refused| refused.request.id).collect();
    assert_eq!(refused, [99], "there is no such instruction");
    std::fs::write(&file, &rewritten.bytes).expect("a class file");
    let output = jdk.verifying().arg("-cp").arg(classes.path()).arg("Main").output();
    // one, one(7), <init>, one(i), <init> of the exception, one(9).
    assert_eq!(
        String::from_utf8_lossy(&output.expect("java starts").stdout).trim(),
        "<0 <1 one1 <3 -0; <0 <1 one0 <3 -0; <0 <1 one1 <3 <4 one0 -0; <0 <1 one2 <2 one7 <3 <4 one0 <4 one1 <5 <6 one9 -0;"
    );
}
