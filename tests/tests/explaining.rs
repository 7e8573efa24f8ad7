//! `explain`: why methods of a real program have probes, or none.

use headwater_tests::{Jdk, Launched, Process, Scratch, headwater, read_report, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    // Hidden classes came with 15.
    since(17) {
        each_method_is_explained_by_its_way_or_by_what_kept_it_from_probes,
    }
}

const SOURCE: &str = r#"
import java.io.*;
import java.lang.invoke.MethodHandles;
import java.util.*;

class Explained {
    interface Shape { int area(); }
    static class Square implements Shape { public int area() { return 4; } }
    static class Order implements Comparator<Integer> { public int compare(Integer a, Integer b) { return a - b; } }
    static class Out { static void pass() { behind(); } }
    public static class Kept implements Runnable { public void run() { } }
    static int sum;

    static void root(Shape shape, List<Integer> list, Order order, Runnable task, Runnable hidden, boolean odd) {
        helper();
        sum += shape.area();
        Collections.sort(list, order);
        task.run();
        hidden.run();
        Out.pass();
        if (odd) seldom();
    }

    static void helper() { }
    static void behind() { }
    static void seldom() { }
    static void never() { }

    public static void main(String[] args) throws Throwable {
        byte[] kept = Explained.class.getResourceAsStream("Explained$Kept.class").readAllBytes();
        Class<?> hidden = MethodHandles.lookup().defineHiddenClass(kept, true).lookupClass();
        Runnable object = (Runnable) hidden.getDeclaredConstructor().newInstance();
        Runnable task = () -> sum++;
        List<Integer> list = new ArrayList<>(List.of(2, 1));
        Shape shape = new Square();
        Order order = new Order();
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine().equals("go")) root(shape, list, order, task, object, false);
    }
}
"#;

const SCRIPT: &str = "
profile Explained::root --calls 1 --exclude 'Explained$Out' --bare off --gentle off
echo recording
wait done 5m
explain Explained > ${OUT}.json
snapshot ${OUT}.hw
";

/// The explanation of the method whose name begins so.
#[track_caller]
fn explained<'a>(report: &'a Value, method: &str) -> &'a Value {
    let methods = report["methods"].as_array().expect("methods");
    let found = methods.iter().find(|it| it["method"].as_str().is_some_and(|name| name.starts_with(method)));
    found.unwrap_or_else(|| panic!("{method} is not in {report:#}"))
}

#[track_caller]
fn check(report: &Value, method: &str, expected: (&str, u64, Value), way: (&str, Value)) {
    let found = explained(report, method);
    let is_it = (&found["standing"], &found["calls"], &found["obstacle"]);
    assert_eq!(is_it, (&expected.0.into(), &expected.1.into(), &expected.2), "{found:#}");
    let steps = found["way"].as_array().expect("a way");
    let (first, last) = (steps.first().expect("the root"), steps.last().expect("itself"));
    assert_eq!((&first["way"], &found["roots"][0]), (&"root".into(), &"Explained::root".into()), "{found:#}");
    assert_eq!((&last["way"], &last["through"]), (&way.0.into(), &way.1), "{found:#}");
}

fn each_method_is_explained_by_its_way_or_by_what_kept_it_from_probes(jdk: &Jdk) {
    let mut target = Launched::of_text(jdk, SOURCE, &[], &["Explained"]);
    let scratch = Scratch::new("explain");
    let script = scratch.file("explain.hws");
    std::fs::write(&script, SCRIPT).expect("the script");
    let out = scratch.file("out");
    let mut command = headwater();
    command.arg("session").arg(&script).arg(target.pid().to_string());
    let mut tool = Process::spawn(command.args(["--set", &format!("OUT={}", out.display())]));
    tool.await_line("recording");
    target.say("go");
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    target.quit();

    let report = read_report(&out.with_extension("json"));
    let none = Value::Null;
    let probed = |calls| ("probed", calls, Value::Null);
    let unprobed = |why: &str| ("unprobed", 0, Value::from(why));
    check(&report, "Explained.helper()V", probed(1), ("direct", none.clone()));
    check(&report, "Explained$Square.area()I", probed(1), ("virtual", "Explained$Shape".into()));
    check(&report, "Explained.lambda$main$", probed(1), ("lambda", "java.lang.Runnable".into()));
    check(&report, "Explained.behind()V", probed(1), ("hidden", "Explained$Out".into()));
    check(&report, "Explained.seldom()V", probed(0), ("direct", none.clone()));
    check(&report, "Explained$Out.pass()V", unprobed("filtered"), ("direct", none));
    check(&report, "Explained$Kept", unprobed("unmodifiable"), ("virtual", "java.lang.Runnable".into()));
    let compare = explained(&report, "Explained$Order.compare(Ljava/lang/Integer;");
    assert_eq!(compare["standing"], "probed", "{compare:#}");
    let bridge = explained(&report, "Explained$Order.compare(Ljava/lang/Object;");
    assert_eq!(bridge["way"][1]["way"], "callback", "{bridge:#}");

    let snapshot = out.with_extension("hw").display().to_string();
    let explain = |method: &str| run_headwater(&["explain", &snapshot, method, "--format", "json"]);
    for (method, standing, obstacle) in [
        ("java.util.Collections::sort", "unprobed", Value::from("jdk")),
        ("Explained::never", "unreached", Value::Null),
        ("Explained::helper", "probed", Value::Null),
    ] {
        let output = explain(method);
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let found = &report["methods"][0];
        assert_eq!((&found["standing"], &found["obstacle"]), (&standing.into(), &obstacle), "{method}: {found:#}");
    }
    let unknown = explain("nowhere.Class::method");
    let complaint = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert_eq!(unknown.status.code(), Some(1), "{complaint}");
    assert!(complaint.contains("no class of that name was loaded"), "{complaint}");
}
