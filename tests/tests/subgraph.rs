//! How the subgraph is found: schemes, revealing in the background, filters, trivial methods, and how precisely.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Launched, Profile, calls_by_method, counting, counting_while};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        every_scheme_sees_every_call,
        few_methods_are_instrumented_that_are_never_called,
        in_the_background_nobody_waits_and_the_report_says_so,
        what_an_excluded_method_calls_hangs_on_its_caller,
        the_handler_behind_a_proxy_is_found,
        trivial_methods_can_be_left_alone,
        every_kind_of_root_is_counted_from_its_entry,
        a_root_with_wildcards_stands_for_all_that_match_also_in_classes_that_come_later,
    }
    since(17) {
        what_is_returned_to_the_jdk_or_given_to_an_inherited_method_is_called_back,
    }
}

/// How often the root runs.
const ROOTS: usize = 3;

/// Profiles the counting program, whose root runs so often; the report, and the program's own counts.
fn some_runs(jdk: &Jdk, options: &[&str]) -> (Value, BTreeMap<String, u64>) {
    counting(jdk, &[&["--calls", &ROOTS.to_string()], options].concat(), &["go"; ROOTS])
}

fn ratio(report: &Value) -> f64 {
    let count = |name: &str| report["methods"][name].as_f64().expect("a number");
    count("instrumented") / count("called")
}

fn every_scheme_sees_every_call(jdk: &Jdk) {
    let mut instrumented = Vec::new();
    for scheme in ["b", "a", "total"] {
        let (report, theirs) = some_runs(jdk, &["--scheme", scheme]);
        let ours = calls_by_method(&report);
        for (method, count) in &theirs {
            assert_eq!(ours.get(method), Some(count), "JDK {}, scheme {scheme}: {method}", jdk.version);
        }
        assert_eq!(report["scheme"], scheme);
        instrumented.push(report["methods"]["instrumented"].as_u64().expect("a number"));
    }
    assert!(instrumented.is_sorted(), "lazily the fewest, in total the most: {instrumented:?}");
}

fn few_methods_are_instrumented_that_are_never_called(jdk: &Jdk) {
    let (report, _) = some_runs(jdk, &[]);
    assert!(ratio(&report) <= 1.3, "JDK {}: {}", jdk.version, report["methods"]);
}

fn in_the_background_nobody_waits_and_the_report_says_so(jdk: &Jdk) {
    let options = ["--calls", &ROOTS.to_string(), "--reveal", "background"];
    let (report, theirs) = counting_while(jdk, &options, |target, tool| {
        // While it is stopped the tool instruments nothing: what is called then is called without it.
        tool.stop();
        target.say("go");
        target.await_line("RESULT");
        tool.signal(Signal::CONT);
        (1..ROOTS).for_each(|_| target.say("go"));
    });
    let ours = calls_by_method(&report);
    assert_eq!(ours.get("Counting.root(I)V"), Some(&(ROOTS as u64)), "{ours:#?}");
    for (method, count) in &theirs {
        let seen = ours.get(method).copied().unwrap_or(0);
        assert!(seen <= *count, "JDK {}: {method}: {seen} of {count}", jdk.version);
    }
    assert_eq!(report["reveal"], "background");
    assert!(report["methods"]["late"].as_u64().is_some_and(|late| late > 0), "{}", report["methods"]);
    let warning = report["warnings"][0].as_str().expect("a warning");
    assert!(warning.contains("did not wait"), "{warning}");
}

/// What a source's `Start.root` calls, profiled with these options: `Main` initialises its class, and runs it for each line of input.
fn calls(jdk: &Jdk, source: &str, options: &[&str]) -> (Value, BTreeMap<String, u64>) {
    calls_of(jdk, source, &[&["--root", "Start::root"], options].concat())
}

/// The same with other roots, which are among the options.
fn calls_of(jdk: &Jdk, source: &str, options: &[&str]) -> (Value, BTreeMap<String, u64>) {
    let text = format!(
        "{source}
        class Main {{
            static Object result;
            public static void main(String[] args) throws Exception {{
                Class.forName(\"Start\");
                System.out.println(\"READY\");
                while (System.in.read() != 'q') {{ result = Start.root(); System.out.println(\"RESULT\"); }}
            }}
        }}"
    );
    let mut target = Launched::of_text(jdk, &text, &[], &["Main"]);
    let profile = Profile::start(&target, &[&["--await-root"], options].concat());
    // The line and its end.
    target.say("1");
    target.await_line("RESULT");
    target.await_line("RESULT");
    target.quit_by("q");
    let report = profile.of_the_end();
    let calls = calls_by_method(&report);
    (report, calls)
}

fn what_an_excluded_method_calls_hangs_on_its_caller(jdk: &Jdk) {
    let source = "
        class Start { static Object root() { return Hidden.first(); } static int counted; }
        class Hidden {
            static Object first() { return second(new Shown()); }
            static Object second(Shown shown) { return shown.toString() + shown.own(); }
        }
        class Shown {
            public String toString() { return deeper(); }
            String deeper() { return \"\"; }
            int own() { return 1; }
        }";
    let (report, found) = calls(jdk, source, &["--exclude", "Hidden"]);
    let shown: Vec<&str> = found.keys().map(String::as_str).collect();
    let expected = [
        "Shown.<init>()V",
        "Shown.deeper()Ljava/lang/String;",
        "Shown.own()I",
        "Shown.toString()Ljava/lang/String;",
        "Start.root()Ljava/lang/Object;",
    ];
    assert_eq!(shown, expected, "JDK {}", jdk.version);
    assert!(found.values().all(|calls| *calls == 2), "{found:#?}");
    let own = report["nodes"].as_array().expect("nodes").iter().find(|node| node["method"] == "Shown.own()I");
    assert_eq!(own.expect("it is there")["parent"], 0, "the nearest shown ancestor is the root");
}

fn the_handler_behind_a_proxy_is_found(jdk: &Jdk) {
    let source = "
        interface Service { int run(); }
        class Handler implements java.lang.reflect.InvocationHandler {
            public Object invoke(Object proxy, java.lang.reflect.Method method, Object[] arguments) { return inner(); }
            int inner() { return 1; }
        }
        class Start {
            static Service service = (Service) java.lang.reflect.Proxy.newProxyInstance(
                    Start.class.getClassLoader(), new Class<?>[] {Service.class}, new Handler());
            static Object root() { return service.run(); }
        }";
    let (_, found) = calls(jdk, source, &[]);
    assert_eq!(found.get("Handler.inner()I"), Some(&2), "JDK {}: {found:#?}", jdk.version);
}

/// What leaves the application's code other than as an argument of a call that says so.
fn what_is_returned_to_the_jdk_or_given_to_an_inherited_method_is_called_back(jdk: &Jdk) {
    let source = "
        import java.util.Comparator;
        import java.util.stream.Stream;
        class Three extends java.util.AbstractCollection<Integer> {
            public java.util.Iterator<Integer> iterator() { return new Steps(); }
            public int size() { return 3; }
        }
        class Steps implements java.util.Iterator<Integer> {
            int at;
            public boolean hasNext() { return at < 3; }
            public Integer next() { return at++; }
        }
        class Meals extends java.util.ArrayList<Object> { }
        class Eater implements java.util.function.Consumer<Object> {
            int eaten;
            public void accept(Object meal) { eaten++; }
        }
        class Key {
            public int hashCode() { return 1; }
            public boolean equals(Object other) { return other instanceof Key; }
        }
        record Pair(Key key) { }
        class Fruit { public int hashCode() { return 4; } }
        class Basket {
            java.util.Map<Object, Object> all = new java.util.HashMap<>();
            void keep(Object it) { all.put(it, it); }
        }
        class Tray {
            Object kept;
            static Object[] shelf = { new Peach() };
            void keep() { kept = shelf(); }
            static Peach shelf() { return (Peach) shelf[0]; }
            int count() { return java.util.Objects.hashCode(kept); }
        }
        class Peach { public int hashCode() { return 5; } }
        class Event implements Comparable<Event> {
            public int compareTo(Event other) { return 0; }
            Event fire() { return this; }
        }
        class Lamp implements Comparable<Lamp> { public int compareTo(Lamp other) { return 0; } }
        class Bulb implements Comparable<Object> { public int compareTo(Object other) { return 0; } }
        class Named { public String toString() { return \"me\"; } }
        class Start {
            static Three three = new Three();
            static Steps steps = new Steps();
            static Meals meals = new Meals();
            static Eater eater = new Eater();
            static Named named = new Named();
            static { meals.add(1); meals.add(2); eater.eaten++; }
            static Pair pair = new Pair(new Key());
            static Lamp lamp = new Lamp();
            static Bulb bulb = new Bulb();
            static Object root() {
                return returned(three) + inherited(meals, eater) + joined(named).length() + pair.hashCode() + supplied() + made() + kept(fruit) + taken();
            }
            static java.util.PriorityQueue<Event> queue =
                    new java.util.PriorityQueue<>(java.util.List.of(new Event(), new Event(), new Event()));
            static int taken() { return queue.add(queue.poll().fire()) ? 1 : 0; }
            static Fruit fruit = new Fruit();
            static Basket basket = new Basket();
            static Tray tray = new Tray();
            static int kept(Fruit fruit) { basket.keep(fruit); tray.keep(); return tray.count(); }
            static Lamp lamp() { return lamp; }
            static int supplied() { return Stream.generate(Start::lamp).limit(2).max(Comparator.naturalOrder()).isEmpty() ? 1 : 0; }
            static int made() {
                return Stream.<Comparable<Object>>generate(() -> bulb).limit(2).max(Comparator.naturalOrder()).isEmpty() ? 1 : 0;
            }
            static int returned(Three three) { return new java.util.ArrayList<Object>(three).size(); }
            static int inherited(Meals meals, Eater eater) { meals.forEach(eater); return eater.eaten; }
            static String joined(Named named) { return \"it is \" + named; }
        }";
    let (_, found) = calls(jdk, source, &[]);
    let expected = [
        ("Steps.hasNext()Z", 8),
        ("Steps.next()Ljava/lang/Object;", 6),
        ("Steps.next()Ljava/lang/Integer;", 6),
        ("Eater.accept(Ljava/lang/Object;)V", 4),
        ("Named.toString()Ljava/lang/String;", 2),
        ("Key.hashCode()I", 2),
        ("Event.compareTo(LEvent;)I", 4),
        ("Fruit.hashCode()I", 2),
        ("Peach.hashCode()I", 2),
        ("Lamp.compareTo(LLamp;)I", 2),
        ("Bulb.compareTo(Ljava/lang/Object;)I", 2),
    ];
    for (method, calls) in expected {
        assert_eq!(found.get(method), Some(&calls), "JDK {}: {method} of {found:#?}", jdk.version);
    }
}

fn trivial_methods_can_be_left_alone(jdk: &Jdk) {
    let source = "
        class Start {
            int value;
            int get() { return value; }
            void set(int value) { this.value = value; }
            void nothing() { }
            static int constant() { return 42; }
            synchronized int locked() { return value; }
            int calls() { return get(); }
            int chooses() { return value > 0 ? 1 : 2; }
            static Object root() {
                Start it = new Start();
                it.set(constant());
                it.nothing();
                return it.locked() + it.calls() + it.chooses() + it.get();
            }
        }";
    let (report, found) = calls(jdk, source, &["--skip-trivial"]);
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["Start.<init>()V", "Start.calls()I", "Start.chooses()I", "Start.locked()I", "Start.root()Ljava/lang/Object;"],
        "JDK {}",
        jdk.version
    );
    assert_eq!(report["methods"]["trivial"], 4, "{}", report["methods"]);
    let (_, all) = calls(jdk, source, &[]);
    assert_eq!(all.len(), 9, "{all:#?}");
}

fn every_kind_of_root_is_counted_from_its_entry(jdk: &Jdk) {
    let source = "
        interface Service { int serve(); }
        abstract class Half implements Service { public int serve() { return twice(); } abstract int twice(); }
        class One implements Service { public int serve() { return Callee.called(); } }
        class Two extends Half { int twice() { return Callee.called(); } }
        class Callee { static int called() { return 1; } }
        class Item { Item() { Callee.called(); } Item(int n) { this(); } }
        class Later { static int value = Callee.called(); }
        class Nested {
            static int outer() { return inner() + Callee.called(); }
            static int inner() { return Callee.called(); }
            static int again(int n) { return n == 0 ? Callee.called() : again(n - 1); }
        }
        class Start {
            static Object root() {
                int sum = new One().serve() + new Two().serve() + Later.value;
                sum += Nested.outer() + Nested.inner() + Nested.again(3);
                return new Item(sum);
            }
        }";
    let roots =
        ["Service::serve", "Item::<init>", "Later::<clinit>", "Nested::outer", "Nested::inner", "Nested::again"];
    let options: Vec<&str> = roots.iter().flat_map(|root| ["--root", root]).collect();
    let (report, _) = calls_of(jdk, source, &options);
    let entered: Vec<u64> =
        report["roots"].as_array().expect("roots").iter().filter_map(|root| root["calls"].as_u64()).collect();
    // Of a nested root the calls from outside count as its own; the others are its caller's. The program runs it all twice.
    assert_eq!(entered, [4, 2, 1, 2, 2, 2], "JDK {}: {}", jdk.version, report["roots"]);
    let nodes = report["nodes"].as_array().expect("nodes");
    let below = |path: &[&str]| -> u64 {
        let mut parent = Value::Null;
        let mut calls = 0;
        for name in path {
            let is_it = |node: &&Value| {
                node["parent"] == parent && node["method"].as_str().is_some_and(|method| method.starts_with(name))
            };
            let Some(node) = nodes.iter().find(is_it) else { panic!("JDK {}: {path:?}: {nodes:#?}", jdk.version) };
            parent = node["id"].clone();
            calls = node["calls"].as_u64().expect("a number");
        }
        calls
    };
    for (path, calls) in [
        (&["One.serve", "Callee.called"][..], 2),
        (&["Half.serve", "Two.twice", "Callee.called"], 2),
        (&["Item.<init>(I)", "Item.<init>()", "Callee.called"], 2),
        (&["Later.<clinit>", "Callee.called"], 1),
        (&["Nested.outer", "Nested.inner", "Callee.called"], 2),
        (&["Nested.outer", "Callee.called"], 2),
        (&["Nested.inner", "Callee.called"], 2),
        (&["Nested.again", "Nested.again", "Nested.again", "Nested.again", "Callee.called"], 2),
    ] {
        assert_eq!(below(path), calls, "JDK {}: {path:?}", jdk.version);
    }
}

fn a_root_with_wildcards_stands_for_all_that_match_also_in_classes_that_come_later(jdk: &Jdk) {
    let source = "
        class WildFirst {
            static int runOne() { return Callee.called(); }
            static int runOne(int n) { return n; }
            static int other() { return Callee.called(); }
        }
        class WildLate { int runTwo() { return WildFirst.runOne(1); } }
        class Tame { static int runThree() { return 1; } }
        class Callee { static int called() { return 1; } }
        class Start {
            static Object root() {
                return WildFirst.runOne() + WildFirst.other() + new WildLate().runTwo() + Tame.runThree();
            }
        }";
    let (report, found) = calls_of(jdk, source, &["--root", "Wild*::run*"]);
    // The inner one of two roots is its caller's; what no root calls is not there.
    let expected =
        [("Callee.called()I", 2), ("WildFirst.runOne()I", 2), ("WildFirst.runOne(I)I", 2), ("WildLate.runTwo()I", 2)];
    let expected: BTreeMap<String, u64> = expected.map(|(method, calls)| (method.to_owned(), calls)).into();
    assert_eq!(found, expected, "JDK {}", jdk.version);
    let root = &report["roots"][0];
    assert_eq!(root["calls"], 4, "JDK {}: {root}", jdk.version);
    assert_eq!(root["methods"].as_array().map(Vec::len), Some(3), "JDK {}: {root}", jdk.version);
}
