//! Virtual calls that have run on objects of one class, and then are made on others: what runs on these is instrumented when the first
//! comes, and every call of it is counted, the first one too.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Launched, Profile, calls_by_method, compile_text, java, profile_while_told};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        every_call_on_an_object_that_was_not_expected_is_counted,
        what_no_object_asks_for_is_not_instrumented,
        a_call_in_code_from_before_the_profile_misses_nothing,
    }
}

/// Calls its root for each line that it is told, by four threads at once where that begins with `4`: the root uses an object of each kind that the
/// line names. Before, it has called it so often as its argument says, with the first kind only.
const SOURCE: &str = "
import java.util.Iterator;
class Main {
    public static void main(String[] args) throws Exception {
        for (int i = 0; i < Integer.parseInt(args[0]); i++) Start.root(\"a\");
        if (args.length > 1) Start.told();
        System.out.println(\"READY\");
        for (String line; (line = line()) != null;) {
            boolean four = line.startsWith(\"4\");
            String kinds = four ? line.substring(1) : line;
            Thread[] threads = new Thread[four ? 4 : 1];
            for (int i = 0; i < threads.length; i++) (threads[i] = new Thread(() -> Start.root(kinds))).start();
            for (Thread thread : threads) thread.join();
            System.out.println(\"RESULT\");
        }
    }
    static String line() throws java.io.IOException {
        StringBuilder text = new StringBuilder();
        for (int c; (c = System.in.read()) != '\\n';) {
            if (c < 0) return null;
            text.append((char) c);
        }
        return text.toString();
    }
}
class Start {
    static final Shape A = new Plain(), B = new Wide(), C = new Narrow(), D = new Other();
    static final Shape E = new Shape() {
        public long all(int i, long l, double d, Object o, float f) { return inner(); }
        long inner() { return 1; }
    };
    static long sum;
    static long root(String kinds) {
        for (int i = 0; i < kinds.length(); i++) one(kinds.charAt(i));
        return sum;
    }
    /** As the root, but it says that it is in it, and is told kinds while it is. */
    static void told() throws Exception {
        System.out.println(\"INSIDE\");
        for (String kinds; !(kinds = Main.line()).isEmpty(); System.out.println(\"RESULT\")) {
            for (int i = 0; i < kinds.length(); i++) one(kinds.charAt(i));
        }
    }
    static void one(char kind) {
        Shape shape = kind == 'a' ? A : kind == 'b' ? B : kind == 'c' ? C : kind == 'd' ? D : E;
        sum += shape.all(1, 2L, 3.0, shape, 4f) + shape.named(kind) + shape.none();
        for (Iterator<Integer> it = shape.numbers(); it.hasNext();) sum += it.next();
    }
}
interface Shape {
    long all(int i, long l, double d, Object o, float f);
    default int named(char c) { return none() + c; }
    default int none() { return 1; }
    default Iterator<Integer> numbers() { return new Numbers(1); }
}
class Numbers implements Iterator<Integer> {
    int left;
    Numbers(int left) { this.left = left; }
    public boolean hasNext() { return left > 0; }
    public Integer next() { return left--; }
}
class Twice extends Numbers {
    Twice(int left) { super(left); }
    public Integer next() { left -= 2; return half(); }
    Integer half() { return left / 2; }
}
class Plain implements Shape { public long all(int i, long l, double d, Object o, float f) { return i + l; } }
class Wide implements Shape {
    public long all(int i, long l, double d, Object o, float f) {
        if (i != 1 || l != 2 || d != 3 || o != this || f != 4) throw new IllegalStateException();
        return part(l);
    }
    private long part(long l) { return l; }
    public int none() { return 2; }
}
class Narrow extends Wide {
    private long part(long l) { return -l; }
    public int named(char c) { return super.named(c); }
}
class Other extends Narrow { public Iterator<Integer> numbers() { return new Twice(4); } }
";

/// So often each method is called by a `one` of each kind.
fn expected(kinds: &str) -> BTreeMap<String, u64> {
    const ALL: &str = "all(IJDLjava/lang/Object;F)J";
    let mut calls: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |method: String, count: u64| *calls.entry(method).or_default() += count;
    for kind in kinds.chars() {
        add("Start.one(C)V".into(), 1);
        let (class, inherited) = match kind {
            'a' => ("Plain", false),
            'b' => ("Wide", true),
            'c' => ("Narrow", true),
            'd' => ("Other", true),
            _ => ("Start$1", false),
        };
        add(format!("{}.{ALL}", if inherited { "Wide" } else { class }), 1);
        match class {
            "Start$1" => add("Start$1.inner()J".into(), 1),
            "Plain" => {}
            _ => add("Wide.part(J)J".into(), 1),
        }
        add("Shape.named(C)I".into(), 1);
        if matches!(class, "Narrow" | "Other") {
            add("Narrow.named(C)I".into(), 1);
        }
        add(if inherited { "Wide.none()I".into() } else { "Shape.none()I".into() }, 2);
        if class == "Other" {
            add("Other.numbers()Ljava/util/Iterator;".into(), 1);
            add("Twice.<init>(I)V".into(), 1);
            add("Numbers.<init>(I)V".into(), 1);
            add("Numbers.hasNext()Z".into(), 3);
            for method in
                ["Twice.next()Ljava/lang/Integer;", "Twice.next()Ljava/lang/Object;", "Twice.half()Ljava/lang/Integer;"]
            {
                add(method.into(), 2);
            }
        } else {
            add("Shape.numbers()Ljava/util/Iterator;".into(), 1);
            add("Numbers.<init>(I)V".into(), 1);
            add("Numbers.hasNext()Z".into(), 2);
            add("Numbers.next()Ljava/lang/Integer;".into(), 1);
            add("Numbers.next()Ljava/lang/Object;".into(), 1);
        }
    }
    calls
}

/// What a profile says of these lines, told after so many other calls of the root.
fn told(jdk: &Jdk, before: &str, lines: &[&str]) -> Value {
    // The compiler is waited for: what was called so often is compiled.
    let target = Launched::of_text(jdk, SOURCE, &["-Xbatch"], &["Main", before]);
    profile_while_told(target, &["--root", "Start::root"], lines)
}

fn every_call_on_an_object_that_was_not_expected_is_counted(jdk: &Jdk) {
    for before in ["1", "50000"] {
        for lines in [["aab", "4c", "d", "4de", "abcde"], ["4e", "4d", "ab", "c", "eeee"]] {
            let report = told(jdk, before, &lines);
            let run = |line: &&str| line.strip_prefix('4').map_or((*line).to_owned(), |kinds| kinds.repeat(4));
            let mut expected = expected(&lines.iter().map(run).collect::<String>());
            let threads: usize = lines.iter().map(|line| if line.starts_with('4') { 4 } else { 1 }).sum();
            expected.insert("Start.root(Ljava/lang/String;)J".into(), threads as u64);
            assert_eq!(calls_by_method(&report), expected, "JDK {}, after {before} calls, {lines:?}", jdk.version);
            assert_eq!(report["events"]["lost"], 0);
        }
    }
}

fn what_no_object_asks_for_is_not_instrumented(jdk: &Jdk) {
    for before in ["1", "50000"] {
        let report = told(jdk, before, &["a", "4a"]);
        let methods = &report["methods"];
        assert_eq!(methods["called"], methods["instrumented"], "JDK {}, after {before} calls", jdk.version);
        let called = expected("a").len() + 1;
        assert_eq!(methods["called"], called, "JDK {}, after {before} calls", jdk.version);
    }
}

fn a_call_in_code_from_before_the_profile_misses_nothing(jdk: &Jdk) {
    let classes = compile_text(jdk, SOURCE);
    let mut target = java(jdk, &classes, &[], &["Main", "100", "inside"]);
    target.await_line("INSIDE");
    let profile = Profile::start(&target, &["--root", "Start::told"]);
    for line in ["ab", "cde"] {
        target.say(line);
        target.await_line("RESULT");
    }
    let report = profile.interrupted();
    target.say("");
    target.await_line("READY");
    assert!(target.finish().status.success(), "JDK {}", jdk.version);
    let mut calls = calls_by_method(&report);
    calls.retain(|method, _| !method.starts_with("Main.") && !method.starts_with("Start.told"));
    assert_eq!(calls, expected("abcde"), "JDK {}", jdk.version);
}
