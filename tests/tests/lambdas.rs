//! Lambdas that were made before the profile, or by code that is not below the root: their bodies are found when they are called.

use std::collections::BTreeMap;
use std::path::PathBuf;

use headwater_tests::{
    Jdk, Launched, Process, Profile, Scratch, calls_by_method, compile_text, java, profile, read_report,
};
use rustix::process::Signal;

headwater_tests::trials! {
    each_jdk {
        a_lambda_that_somebody_else_made_is_below_who_calls_it,
        lambdas_of_other_interfaces_are_not_taken_for_called,
        profiles_of_lambdas_that_are_gone_are_forgotten_but_where_a_thread_stays,
        lambdas_since_the_profile_are_not_forgotten_because_somebody_remembers_old_ones,
        code_is_given_back_when_no_call_goes_on_with_its_lambdas,
    }
}

const SOURCE: &str = "
    import java.util.*;
    import java.util.function.*;
    class Main {
        static final Handlers HANDLERS = new Handlers();
        static IntSupplier late;
        public static void main(String[] args) throws Exception {
            int expected = root();
            System.out.println(\"READY\");
            Scanner input = new Scanner(System.in);
            while (input.hasNextLine() && !input.nextLine().equals(\"quit\")) {
                System.out.println(\"RESULT \" + (root() - expected));
                late = () -> Late.body();
            }
        }
        static int root() {
            int sum = HANDLERS.run.getAsInt() + HANDLERS.reference.applyAsInt(3) + smallest(new ArrayList<>(List.of(3, 1, 2)));
            return late == null ? sum : sum + late.getAsInt();
        }
        static int smallest(List<Integer> numbers) {
            numbers.sort(Orders.ORDER);
            return numbers.get(0);
        }
    }
    class Handlers {
        final int base = 4;
        final IntSupplier run = () -> body();
        final IntUnaryOperator reference = Handlers::twice;
        final Other other = () -> never();
        int body() { return base; }
        static int twice(int x) { return 2 * x; }
        static void never() { }
    }
    interface Other { void go(); }
    class Orders {
        static final Comparator<Integer> ORDER = (a, b) -> order(a, b);
        static int order(int a, int b) { return a - b; }
    }
    class Late { static int body() { return 0; } }
    class Elsewhere {
        static final IntUnaryOperator SAME_INTERFACE_ANOTHER_CLASS = x -> unrelated(x);
        static int unrelated(int x) { return x; }
    }";

/// The calls of three root calls, by method.
fn check(jdk: &Jdk, options: &[&str]) -> BTreeMap<String, u64> {
    let mut target = Launched::of_text(jdk, SOURCE, &[], &["Main"]);
    let profile = Profile::start(&target, &[&["--root", "Main::root", "--calls", "3"], options].concat());
    for _ in 0..3 {
        target.say("go");
        assert_eq!(target.await_line("RESULT"), "RESULT 0", "JDK {}", jdk.version);
    }
    let report = profile.report();
    target.quit();
    calls_by_method(&report)
}

fn a_lambda_that_somebody_else_made_is_below_who_calls_it(jdk: &Jdk) {
    for scheme in ["b", "a"] {
        let found = check(jdk, &["--scheme", scheme]);
        let calls = |method: &str| found.get(method).copied().unwrap_or(0);
        let context = format!("JDK {}, {scheme}: {found:#?}", jdk.version);
        assert_eq!((calls("Handlers.body()I"), calls("Handlers.twice(I)I")), (3, 3), "{context}");
        let lambda = |class: &str| found.iter().find(|(name, _)| name.starts_with(&format!("{class}.lambda$")));
        assert_eq!(lambda("Handlers").map(|(_, calls)| *calls), Some(3), "{context}");
        // By the JDK's own code, which is not looked through.
        let compared = calls("Orders.order(II)I");
        assert!(compared >= 6 && lambda("Orders").map(|(_, calls)| *calls) == Some(compared), "{context}");
        // Made while the profile ran, by code that is not below the root.
        assert_eq!(calls("Late.body()I"), 2, "{context}");
    }
}

fn lambdas_of_other_interfaces_are_not_taken_for_called(jdk: &Jdk) {
    let classes = compile_text(jdk, SOURCE);
    let mut target = java(jdk, &classes, &[], &["Main"]);
    target.await_line("READY");
    let out = Scratch::new("report");
    let file = out.file("profile.json");
    let file_name = file.to_string_lossy().into_owned();
    let tool = profile(&target, &["--root", "Main::root", "--calls", "1", "-o", &file_name]);
    target.say("go");
    assert!(tool.finish().status.success());
    target.say("quit");
    assert!(target.finish().status.success());
    let report = read_report(&file);
    // root, smallest, two bodies of lambdas, what they call, and the method referred to.
    assert_eq!((&report["methods"]["instrumented"], &report["methods"]["called"]), (&7.into(), &7.into()));
}

/// A thread of its own stays in a walk through a list until the end.
const STAYING: &str = "
    class Staying {
        static final CountDownLatch end = new CountDownLatch(1);
        static final Thread staying = new Thread(Staying::walk);
        static final CountDownLatch inside = new CountDownLatch(1);
        static void begin() throws InterruptedException {
            staying.start();
            inside.await();
        }
        static void walk() {
            new ArrayList<>(List.of(1)).forEach(number -> {
                inside.countDown();
                try {
                    end.await();
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            });
        }
        static void end() throws InterruptedException {
            end.countDown();
            staying.join();
        }
    }";

/// The program, with a thread that stays, and the JVM's log of what is redefined.
fn start_logging(jdk: &Jdk, source: &str) -> (Process, Scratch, PathBuf) {
    let classes = compile_text(jdk, &[source, STAYING].concat());
    let log = classes.file("redefined.log");
    let logging = format!("-Xlog:redefine+class+load=info,redefine+class+timer=info:file={}", log.display());
    // In the foreground: what has run so often is compiled, and so profiled.
    let target = java(jdk, &classes, &["-Xbatch", &logging], &["Main"]);
    (target, classes, log)
}

/// Sorts below the root, and walks a list, while a thread stays in one.
const CALLED_BY_THE_JDK: &str = "
    import java.util.*;
    import java.util.concurrent.CountDownLatch;
    class Main {
        static long walked;
        public static void main(String[] args) throws Exception {
            System.out.println(\"READY \" + many());
            Staying.begin();
            Scanner input = new Scanner(System.in);
            while (input.hasNextLine() && !input.nextLine().equals(\"quit\")) {
                System.out.println(\"RESULT \" + many());
            }
            Staying.end();
        }
        static int many() {
            int sum = 0;
            for (int i = 0; i < 3000; i++) {
                sum += root();
            }
            return sum;
        }
        static int root() {
            List<Integer> numbers = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                numbers.add(i * 37 % 50);
            }
            numbers.sort((a, b) -> a - b);
            numbers.forEach(number -> walked += number);
            return numbers.get(7);
        }
    }";

fn profiles_of_lambdas_that_are_gone_are_forgotten_but_where_a_thread_stays(jdk: &Jdk) {
    let (mut target, _classes, log) = start_logging(jdk, CALLED_BY_THE_JDK);
    target.await_line("READY 21000");
    let tool = profile(&target, &["--root", "Main::root", "--calls", "3000"]);
    target.say("go");
    assert_eq!(target.await_line("RESULT"), "RESULT 21000", "JDK {}", jdk.version);
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    let redefined = std::fs::read_to_string(&log).expect("the JVM's log");
    let is_redefined = |log: &str, class: &str| log.contains(&format!("redefined name={class},"));
    target.say("go");
    assert_eq!(target.await_line("RESULT"), "RESULT 21000", "JDK {}", jdk.version);
    target.say("quit");
    assert!(target.finish().status.success());
    for (class, expected) in [("Main", true), ("java.util.TimSort", true), ("java.util.ArrayList", false)] {
        assert_eq!(is_redefined(&redefined, class), expected, "JDK {}: {class}\n{redefined}", jdk.version);
    }
    // Between two operations the program would run, and be compiled, with the one and without the other.
    let forgetting = redefined.split("vm_op:").find(|operation| is_redefined(operation, "java.util.TimSort"));
    assert!(forgetting.is_some_and(|operation| is_redefined(operation, "Main")), "JDK {}\n{redefined}", jdk.version);
}

/// The root is called all the time. What sorts and walks below it has lambdas; the root's class has none, and keeps its probes longest. A thread
/// stays in a walk until the end.
const SORTED_BELOW: &str = "
    import java.util.*;
    import java.util.concurrent.CountDownLatch;
    class Main {
        static volatile boolean over;
        static volatile int wrong;
        public static void main(String[] args) throws Exception {
            Staying.begin();
            CountDownLatch warm = new CountDownLatch(20_000);
            Thread calling = new Thread(() -> {
                while (!over) {
                    wrong += Root.root() == 7 ? 0 : 1;
                    warm.countDown();
                }
            });
            calling.start();
            warm.await();
            System.out.println(\"READY\");
            Scanner input = new Scanner(System.in);
            while (input.hasNextLine() && !input.nextLine().equals(\"quit\"));
            over = true;
            calling.join();
            Staying.end();
            System.out.println(\"WRONG \" + wrong);
        }
    }
    class Root {
        static int root() { return Sorter.sorted(); }
    }
    class Sorter {
        static long walked;
        static int sorted() {
            List<Integer> numbers = new ArrayList<>();
            for (int i = 0; i < 50; i++) {
                numbers.add(i * 37 % 50);
            }
            numbers.sort((a, b) -> a - b);
            numbers.forEach(number -> walked += number);
            return numbers.get(7);
        }
    }";

fn lambdas_since_the_profile_are_not_forgotten_because_somebody_remembers_old_ones(jdk: &Jdk) {
    let (mut target, _classes, log) = start_logging(jdk, SORTED_BELOW);
    target.await_line("READY");
    let tool = profile(&target, &["--root", "Root::root", "--calls", "3000", "--bare", "2s"]).finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    assert!(tool.stderr.iter().any(|line| line.contains("without probes")), "{:#?}", tool.stderr);
    let redefined = std::fs::read_to_string(&log).expect("the JVM's log");
    target.say("quit");
    assert_eq!(target.finish().stdout, ["WRONG 0"], "JDK {}", jdk.version);
    let times = |class: &str| redefined.matches(&format!("redefined name={class},")).count();
    // With probes and without, twice; the root's class at the end only, as is what remembers nothing that is gone.
    let expected = [("Root", 2), ("Sorter", 2), ("java.util.TimSort", 1), ("java.util.ArrayList", 0)];
    for (class, expected) in expected {
        assert_eq!(times(class), expected, "JDK {}: {class}\n{redefined}", jdk.version);
    }
}

/// A thread is in the root all the time, which notices when code changes under it. A call that waited for the machine does not count.
const NEVER_OUTSIDE: &str = "
    import java.util.*;
    import java.util.function.IntSupplier;
    class Main {
        static volatile int calls;
        static volatile int torn;
        static volatile boolean over;
        public static void main(String[] args) throws Exception {
            Thread worker = new Thread(() -> {
                while (!over) {
                    long start = System.nanoTime();
                    boolean same = root();
                    if (!same && System.nanoTime() - start < 30_000_000) {
                        torn++;
                    }
                    calls++;
                }
            });
            worker.start();
            System.out.println(\"READY\");
            Scanner input = new Scanner(System.in);
            while (input.hasNextLine() && !input.nextLine().equals(\"quit\")) {
                int end = calls + 20;
                while (calls < end) {
                    Thread.sleep(1);
                }
                System.out.println(\"TORN \" + torn);
            }
            over = true;
            worker.join();
        }
        static boolean root() {
            Class<?> before = made();
            try {
                Thread.sleep(1);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
            return made() == before;
        }
        static Class<?> made() {
            IntSupplier lambda = () -> 3;
            return lambda.getClass();
        }
    }";

fn code_is_given_back_when_no_call_goes_on_with_its_lambdas(jdk: &Jdk) {
    let classes = compile_text(jdk, NEVER_OUTSIDE);
    let mut target = java(jdk, &classes, &[], &["Main"]);
    target.await_line("READY");
    let tool = profile(&target, &["--root", "Main::root"]);
    target.say("go");
    let before = target.await_line("TORN");
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    target.say("go");
    assert_eq!(target.await_line("TORN"), before, "JDK {}", jdk.version);
    target.say("quit");
    assert!(target.finish().status.success());
}
