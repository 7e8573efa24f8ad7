//! Exceptions are seen where they are made, where handlers of probed methods begin, and where they leave these, verified on every JDK.

use headwater_rewriter::{ClassFile, Exceptions, Instructions, ProbeSite, Probes, Request, instrument};
use headwater_tests::{compile_text, jdks};

const PROBES: Probes<'static> =
    Probes { exceptions: Some(Exceptions { seen: "seen", passing: 1, caught: 2 }), ..Probes::of_methods("Told") };

const SOURCE: &str = "
class Told {
    static StringBuilder trace = new StringBuilder();
    static Object enter(int id) { return id; }
    static void exit(Object token, int id) { }
    static void exit(Object token, long executed, int id) { }
    static void thrown(Object exception, Object token, int id) { seen(exception, id); }
    static void thrown(Object exception, Object token, long executed, int id) { seen(exception, id); }
    static void seen(Object exception, int what) { trace.append(' ').append(exception).append(what); }
}
class Bad extends RuntimeException {
    final String name;
    Bad(String name) {
        this.name = name;
        if (name.isEmpty()) throw new IllegalArgumentException();
    }
    Bad(int n) { this(\"n\" + n); if (n > 5) return; Told.trace.append(' '); }
    public String toString() { return String.valueOf(name); }
}
class Main {
    static final Bad READY = new Bad(\"ready\");
    static void raise(int how) {
        int[] none = {};
        long wide = how;
        try {
            try {
                if (how == 1) throw new Bad(\"one\");
                if (how == 2) throw READY;
                if (how == 3) throw new Error() { public String toString() { return \"three\"; } };
                if (how == 4) none[0] = 1;
                synchronized (none) { if (how == 5) throw new Bad(6); }
            } finally {
                wide++;
            }
        } catch (Bad bad) {
            if (how == 2) throw bad;
        } catch (ArrayIndexOutOfBoundsException | NullPointerException e) {
            how += wide;
        }
    }
    public static void main(String[] arguments) {
        for (int how = 0; how < 6; how++) {
            Told.trace.setLength(0);
            try { raise(how); } catch (Throwable thrown) { }
            System.out.println(how + \":\" + Told.trace);
        }
    }
}";

/// What the program prints when these methods have probes.
fn traced(instructions: Instructions) {
    for jdk in jdks() {
        let classes = compile_text(&jdk, SOURCE);
        for (name, requested) in
            [("Main", &[("raise", ProbeSite::Method)][..]), ("Bad", &[("<init>", ProbeSite::Constructed)])]
        {
            let file = classes.path().join(name).with_extension("class");
            let bytes = std::fs::read(&file).expect("a class file");
            let class = ClassFile::parse(&bytes).expect("javac's class files are sound");
            let request = |(name, place): &(&str, ProbeSite)| {
                let methods = class.methods().iter().filter(|method| *method.name() == **name);
                methods.map(|it| Request { method_index: it.index, id: 0, place: *place }).collect::<Vec<_>>()
            };
            let requests: Vec<Request> = requested.iter().flat_map(request).collect();
            let rewritten = instrument(&bytes, &Probes { instructions, ..PROBES }, &requests).expect("readable");
            assert_eq!((rewritten.refused, rewritten.uncounted), (Vec::new(), Vec::new()));
            std::fs::write(&file, &rewritten.bytes).expect("a class file");
        }
        let output = jdk.verifying().arg("-cp").arg(classes.path()).arg("Main").output();
        let output = output.expect("java starts");
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = lines.lines().collect();
        let expected = ["0:", "1: one0 one1 one2", "2: ready1 ready2 ready0", "3: three1 three0"];
        assert_eq!(lines[..4], expected, "JDK {}: {}", jdk.version, String::from_utf8_lossy(&output.stderr));
        assert!(lines[4].ends_with("2") && lines[4].matches("ArrayIndexOutOfBounds").count() == 2, "{}", lines[4]);
        // By two constructors; the end of `synchronized`, the `finally` block, the handler.
        assert_eq!(lines[5], "5: n60 n60 n61 n61 n62", "JDK {}", jdk.version);
    }
}

#[test]
fn exceptions_are_seen_where_they_are_made_handled_and_leave() {
    traced(Instructions::Ignored);
}

#[test]
fn also_where_instructions_are_counted() {
    traced(Instructions::Counted);
}

#[test]
fn what_is_no_constructor_constructs_nothing() {
    let classes = compile_text(&jdks()[0], SOURCE);
    let bytes = std::fs::read(classes.path().join("Main.class")).expect("a class file");
    let class = ClassFile::parse(&bytes).expect("javac's class files are sound");
    let raise = class.methods().iter().find(|method| *method.name() == *"raise").expect("is there");
    let request = Request { method_index: raise.index, id: 0, place: ProbeSite::Constructed };
    let rewritten = instrument(&bytes, &PROBES, &[request]).expect("readable");
    assert_eq!(rewritten.refused.len(), 1);
    assert_eq!(rewritten.bytes, bytes);
}
