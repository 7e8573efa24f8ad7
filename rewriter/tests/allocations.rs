//! Behind each allocation a probe is told what was made, without getting it, before its constructor is called; verified on every JDK.

use headwater_rewriter::{
    AllocationSite, ClassFile, Instructions, ProbeSite, Probes, Refusal, Request, allocation_sites, instrument,
};
use headwater_tests::{Scratch, compile_text, jdks};

const PROBES: Probes<'static> = Probes { allocate: Some("made"), ..Probes::of_methods("Told") };

const SOURCE: &str = "
class Told {
    static StringBuilder trace = new StringBuilder();
    static Object enter(int id) { trace.append(\" +\").append(id); return id; }
    static void exit(Object token, int id) { trace.append(\" -\").append(token); }
    static void exit(Object token, long executed, int id) { exit(token, id); }
    static void thrown(Object token, int id) { trace.append(\" !\").append(token); }
    static void thrown(Object token, long executed, int id) { thrown(token, id); }
    static void made(Class<?> type, int id) { trace.append(' ').append(id).append('=').append(type.getSimpleName()); }
    static void made(int length, int type, int id) { trace.append(' ').append(id).append('=').append(type).append('*').append(length); }
    static void made(Object arrays, int dimensions, int id) {
        trace.append(' ').append(id).append('=').append(arrays.getClass().getSimpleName()).append('/').append(dimensions);
    }
}
class Base {
    final String value;
    Base(String value) { this.value = value; if (value.equals(\"bad\")) throw new IllegalStateException(value); }
}
class Derived extends Base {
    Derived(int n) { super(new String(n > 1 ? Main.name(n) : \"small\")); Told.trace.append(\" derived\"); }
}
class Main {
    static String name(int n) { if (n > 5) throw new ArithmeticException(); return \"n\" + n; }
    static Object all(int n) {
        int[] one = new int[n];
        boolean[] two = {true};
        String[] three = new String[2];
        long[][] four = new long[2][n];
        Object[][] five = new Object[1][];
        char[][][] six = new char[2][1][];
        new Base(\"dropped\");
        Base nested = new Base(new Base(n > 1 ? \"yes\" : \"no\").value + one.length + two.length + three.length);
        for (int i = 0; i < 2; i++) {
            try {
                new Base(i > 0 ? \"bad\" : \"good\");
            } catch (IllegalStateException e) {
                Told.trace.append(\" caught\");
            }
        }
        try { int[] none = new int[-n]; } catch (NegativeArraySizeException e) { Told.trace.append(\" none\"); }
        return n > 1 ? nested : new StringBuilder(four.length + five.length + six.length);
    }
    public static void main(String[] arguments) {
        for (int n = 1; n < 3; n++) { all(n); say(); }
        for (int n : new int[] {1, 2, 6}) {
            try { new Derived(n); } catch (ArithmeticException e) { Told.trace.append(\" failed\"); }
            say();
        }
    }
    static void say() { System.out.println(Told.trace.toString().trim()); Told.trace.setLength(0); }
}";

/// Requests for a method and all that it allocates, numbered from 1 on.
fn requests(class: &ClassFile<'_>, name: &str) -> Vec<Request> {
    let method_index = class.methods().iter().find(|method| method.name() == name).expect("it is there").index;
    let sites = allocation_sites(class, method_index).expect("javac's").into_iter().zip(1..);
    let sites = sites.map(|(AllocationSite { offset, .. }, id)| Request {
        method_index,
        id,
        place: ProbeSite::Allocation { offset },
    });
    sites.chain([Request::method(method_index, 20)]).collect()
}

fn rewrite(classes: &Scratch, name: &str, method: &str, probes: &Probes<'_>, change: impl FnOnce(&mut Vec<u8>)) {
    let file = classes.file(name);
    let mut bytes = std::fs::read(&file).expect("a class file");
    change(&mut bytes);
    let class = ClassFile::parse(&bytes).expect("javac's");
    let rewritten = instrument(&bytes, probes, &requests(&class, method)).expect("javac's");
    assert_eq!((rewritten.refused, rewritten.uncounted), (Vec::new(), Vec::new()));
    std::fs::write(&file, &rewritten.bytes).expect("a file");
}

#[test]
fn what_is_made_is_told_before_it_is_constructed() {
    let counting = Probes { instructions: Instructions::Counted, ..PROBES };
    for (jdk, probes) in jdks().iter().flat_map(|jdk| [(jdk, PROBES), (jdk, counting)]) {
        let classes = compile_text(jdk, SOURCE);
        rewrite(&classes, "Main.class", "all", &probes, |_| {});
        rewrite(&classes, "Derived.class", "<init>", &probes, |_| {});
        let output = jdk.verifying().arg("-cp").arg(classes.path()).arg("Main").output();
        let output = output.expect("java starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let arrays =
            |n: u32| format!("+20 1=10*{n} 2=4*1 3=0*2 4=long[][]/2 5=0*1 6=char[][][]/2 7=Base 8=Base 9=Base 10=Base");
        let expected = [
            arrays(1) + " 10=Base caught none 12=StringBuilder -20",
            arrays(2) + " 10=Base caught none -20",
            "+20 1=String derived -20".to_owned(),
            "+20 1=String derived -20".to_owned(),
            "+20 1=String !20 failed".to_owned(),
        ];
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, expected, "JDK {}: {}", jdk.version, String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn sites_have_classes_and_lines() {
    let classes = compile_text(&jdks()[0], SOURCE);
    let bytes = std::fs::read(classes.file("Main.class")).expect("a class file");
    let class = ClassFile::parse(&bytes).expect("javac's");
    let all = class.methods().iter().find(|method| method.name() == "all").expect("it is there").index;
    let sites = allocation_sites(&class, all).expect("javac's");
    let line = |part: &str| SOURCE.lines().position(|line| line.contains(part)).map(|line| line as u16 + 1);
    let found: Vec<_> = sites.iter().map(|site| (&*site.class, site.line, site.dimensions)).collect();
    let expected = [
        ("[I", line("one ="), 1),
        ("[Z", line("two ="), 1),
        ("[Ljava/lang/String;", line("three ="), 1),
        ("[[J", line("four ="), 2),
        ("[[Ljava/lang/Object;", line("five ="), 1),
        ("[[[C", line("six ="), 2),
        ("Base", line("dropped"), 0),
        ("Base", line("nested ="), 0),
        ("Base", line("nested ="), 0),
        ("Base", line("good"), 0),
        ("[I", line("none ="), 1),
        ("java/lang/StringBuilder", line("return n > 1"), 0),
    ];
    assert_eq!(found, expected);
}

#[test]
fn where_nothing_is_made_or_nothing_is_called_requests_are_refused() {
    let classes = compile_text(&jdks()[0], SOURCE);
    let bytes = std::fs::read(classes.file("Derived.class")).expect("a class file");
    let class = ClassFile::parse(&bytes).expect("javac's");
    let [made, method] = requests(&class, "<init>")[..] else { panic!("one allocation") };
    let nowhere = Request { id: 3, place: ProbeSite::Allocation { offset: 0 }, ..made };
    let behind = Request { id: 4, place: ProbeSite::Allocation { offset: 99_999 }, ..made };
    let refused = |probes: &Probes<'_>| {
        let rewritten = instrument(&bytes, probes, &[made, nowhere, behind, method]).expect("javac's");
        rewritten.refused.into_iter().map(|refused| (refused.request.id, refused.refusal)).collect::<Vec<_>>()
    };
    assert_eq!(refused(&PROBES), [(3, Refusal::NoSuchPlace), (4, Refusal::NoSuchPlace)]);
    let without = refused(&Probes { allocate: None, ..PROBES });
    assert!(without.contains(&(1, Refusal::NoProbe)) && without.len() == 3, "{without:?}");
}
