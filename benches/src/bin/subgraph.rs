//! How precisely and how fast a subgraph is found: methods instrumented and called, batches, pauses, and how long it takes until
//! nothing more is found. In a synthetic program of 20,000 loaded classes, in one of 400, in javac compiling 200 files, and in Tomcat
//! under load. Arguments pick from all rows: versions of JDKs, programs (`large`, `small`, `javac`, `Tomcat`), schemes.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use headwater_benches::is_chosen;
use headwater_tests::load::Load;
use headwater_tests::{Jdk, Process, Scratch, jdks, tomcat};
use serde_json::Value;

const PROGRAMS: [&str; 4] = ["large", "small", JAVAC, TOMCAT];
const JAVAC: &str = "javac";
const TOMCAT: &str = "Tomcat";
const SCHEMES: [&str; 4] = ["b", "background", "a", "total"];
/// Classes of the large program, and of the small one.
const SYNTHETIC: [(&str, usize); 2] = [("large", 20_000), ("small", 400)];
/// Classes in a group that implements one interface; two of them are ever instantiated.
const GROUP: usize = 4;
/// Calls from the root go through so many layers of groups, of so many groups each.
const LAYERS: usize = 25;
const WIDTH: usize = 9;
/// Sources that javac compiles.
const SOURCES: usize = 200;
const PROFILE_SECONDS: u64 = 15;
/// Clients of Tomcat.
const CONNECTIONS: usize = 6;
/// What they have asked before we come.
const WARM_UP_REQUESTS: u64 = 2_000;

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "| JDK | program | scheme | instrumented | called | ratio | batches | classes | paused ms | longest ms | waits ms | quiet after s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let jdks = jdks();
    let versions: Vec<String> = jdks.iter().map(|jdk| jdk.version.to_string()).collect();
    let schemes: Vec<&str> = SCHEMES.into_iter().filter(|scheme| is_chosen(&chosen, &SCHEMES, scheme)).collect();
    for (jdk, _) in jdks.iter().zip(&versions).filter(|(_, version)| is_chosen(&chosen, &versions, version)) {
        for (name, classes) in SYNTHETIC.into_iter().filter(|(name, _)| is_chosen(&chosen, &PROGRAMS, name)) {
            measure_synthetic(jdk, name, classes, &schemes);
        }
        if is_chosen(&chosen, &PROGRAMS, JAVAC) {
            measure_javac(jdk, &schemes);
        }
        if is_chosen(&chosen, &PROGRAMS, TOMCAT) {
            measure_tomcat(jdk, &schemes);
        }
    }
}

fn measure_synthetic(jdk: &Jdk, name: &str, classes: usize, schemes: &[&str]) {
    let program = synthetic(jdk, classes);
    for scheme in schemes {
        let mut java = Command::new(jdk.program("java"));
        java.args(["-XX:+UseSerialGC", "-cp"]).arg(program.path()).args(["Main", &classes.to_string()]);
        let target = ready(&mut java, Duration::ZERO);
        measure(jdk, name, scheme, &target, &["--root", "Main::root"]);
    }
}

fn measure_javac(jdk: &Jdk, schemes: &[&str]) {
    let (program, output, sources) = (compile_loop(jdk), Scratch::new("output"), sources());
    let arguments = [
        "--root",
        "com.sun.tools.javac.api.JavacTaskImpl::call",
        "--include",
        "com.sun.tools.javac.**",
        "--await-root",
    ];
    for (name, warm_up) in [("javac, cold", 0), ("javac, warm", 20)] {
        for scheme in schemes.iter().filter(|scheme| **scheme != "total") {
            let mut java = Command::new(jdk.program("java"));
            java.arg("-cp").arg(program.path()).arg("CompileLoop").arg(output.path()).arg(sources.path());
            let target = ready(&mut java, Duration::from_secs(warm_up));
            measure(jdk, name, scheme, &target, &arguments);
        }
    }
}

fn measure_tomcat(jdk: &Jdk, schemes: &[&str]) {
    for scheme in schemes {
        let base = Scratch::new("tomcat");
        let (_classes, server, port) = tomcat::start(jdk, &base);
        let load = Load::start(port, CONNECTIONS);
        load.await_answers(WARM_UP_REQUESTS);
        let root = "org.apache.catalina.connector.CoyoteAdapter::service";
        measure(jdk, TOMCAT, scheme, &server, &["--root", root]);
        assert_eq!(load.stop(), Vec::<String>::new());
    }
}

fn ready(java: &mut Command, warm_up: Duration) -> Process {
    let mut target = Process::spawn(java);
    target.await_line("READY");
    std::thread::sleep(warm_up);
    target
}

fn measure(jdk: &Jdk, program: &str, scheme: &str, target: &Process, arguments: &[&str]) {
    let out = Scratch::new("report");
    let file = out.file("report.json");
    let options = if scheme == "background" { ["--reveal", "background"] } else { ["--scheme", scheme] };
    let output = Command::new(headwater())
        .args(["profile", &target.pid().to_string(), "-d", &format!("{PROFILE_SECONDS}s"), "--format", "json", "-o"])
        .arg(&file)
        .args(options)
        .args(arguments)
        .output()
        .expect("headwater starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read(&file).expect("the report");
    let report: Value = serde_json::from_slice(&text).expect("the report is JSON");
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let (methods, hotswap) = (&report["methods"], &report["hotswap"]);
    let waits: f64 = report["waits"].as_array().into_iter().flatten().map(|wait| number(&wait["duration_ns"])).sum();
    println!(
        "| {} | {program} | {scheme} | {} | {} | {:.2} | {} | {} | {:.0} | {:.0} | {:.0} | {:.1} |",
        jdk.version,
        methods["instrumented"],
        methods["called"],
        number(&methods["instrumented"]) / number(&methods["called"]),
        hotswap["batches"],
        hotswap["classes"],
        number(&hotswap["pause_ns_total"]) / 1e6,
        number(&hotswap["pause_ns_max"]) / 1e6,
        waits / 1e6,
        number(&hotswap["quiet_after_ns"]) / 1e9,
    );
}

fn headwater() -> PathBuf {
    let own = std::env::current_exe().expect("our own path");
    let binary = own.with_file_name("headwater");
    assert!(binary.exists(), "{} is missing: run by `cargo xtask bench`", binary.display());
    binary
}

fn compile_loop(jdk: &Jdk) -> Scratch {
    let classes = Scratch::new("classes");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/targets/CompileLoop.java");
    javac(jdk, &classes, &[source]);
    classes
}

fn javac(jdk: &Jdk, classes: &Scratch, sources: &[PathBuf]) {
    let status = jdk.javac().args(["-J-Xmx2g", "-nowarn", "-g:none", "-d"]).arg(classes.path()).args(sources).status();
    assert!(status.expect("javac starts").success());
}

/// A program with so many classes, all of which are loaded and initialised before it is ready; then it calls its root over and
/// over. The root reaches some of them.
///
/// A group's classes implement one interface. `enter` checks its argument, may call `side` of a neighbour, and calls the group's
/// interface on objects of two of its four classes, which call a group of the next layer.
fn synthetic(jdk: &Jdk, classes: usize) -> Scratch {
    const GROUPS_A_FILE: usize = 100;
    let sources = Scratch::new("sources");
    let groups: Vec<usize> = (0..classes / GROUP).collect();
    let layers = LAYERS.min(groups.len() / WIDTH);
    let mut files = Vec::new();
    for (number, part) in groups.chunks(GROUPS_A_FILE).enumerate() {
        let text: String = part.iter().map(|group| group_text(*group, layers)).collect();
        let file = sources.file(&format!("Groups{number}.java"));
        std::fs::write(&file, text).expect("a source file");
        files.push(file);
    }
    let file = sources.file("Main.java");
    let main = include_str!("../../java/Main.java").replace("ENTRIES", &entries());
    std::fs::write(&file, main).expect("a source file");
    files.push(file);
    let program = Scratch::new("classes");
    javac(jdk, &program, &files);
    program
}

/// The root's calls.
fn entries() -> String {
    (0..WIDTH).fold(String::new(), |mut text, group| {
        let _ = write!(text, "sum += K{}.enter(x + {group}); ", group * GROUP);
        text
    })
}

/// One group: its interface and its classes.
fn group_text(group: usize, layers: usize) -> String {
    let first = group * GROUP;
    let layer = group / WIDTH;
    let mut text = format!("interface S{group} {{ int step(int x); }}\n");
    for class in first..first + GROUP {
        let next = if layer + 1 < layers { format!("K{}.enter(x + 1)", first + WIDTH * GROUP) } else { "x".to_owned() };
        let _ = writeln!(
            text,
            "class K{class} implements S{group} {{
                public int step(int x) {{ return {next}; }}
                static int enter(int x) {{
                    if (x < 0) throw new IllegalArgumentException(why(x));
                    int y = through(x);
                    if (x % 3 == 0) y += K{}.side(x);
                    return y;
                }}
                static int through(int x) {{
                    S{group} s = (x & 1) == 0 ? new K{first}() : new K{}();
                    return s.step(x) + after(x);
                }}
                static int after(int x) {{ return twice(x) - x; }}
                static int twice(int x) {{ return 2 * x; }}
                static int side(int x) {{ return x + once(x); }}
                static int once(int x) {{ return 1; }}
                static String why(int x) {{ return text(x) + x; }}
                static String text(int x) {{ return \"negative: \"; }}
            }}",
            first + 2,
            first + 1,
        );
    }
    text
}

/// Small sources of several kinds.
fn sources() -> Scratch {
    const BODIES: [&str; 8] = [
        "int f(int x) { int s = 0; for (int i = 0; i < x; i++) s += i % 3 == 0 ? i : -i; return s; }",
        "String g(Object o) { switch (o.hashCode() % 4) { case 0: return \"a\" + o; case 1: return \"b\"; default: return null; } }",
        "java.util.List<String> h() { var l = new java.util.ArrayList<String>(); for (String s : new String[] {\"x\"}) l.add(s.trim()); return l; }",
        "<T extends Comparable<T>> T max(T a, T b) { return a.compareTo(b) > 0 ? a : b; } int u = max(3, 4);",
        "Runnable r(int n) { return () -> System.out.println(n); }",
        "static class In { int v; In(int v) { this.v = v; } int get() { return v; } } int q() { return new In(1).get(); }",
        "int u; int t() { try { return Integer.parseInt(\"1\"); } catch (NumberFormatException e) { throw new RuntimeException(e); } finally { u++; } }",
        "enum E { A, B; E next() { return values()[(ordinal() + 1) % 2]; } } interface J { default int d() { return 1; } } class K implements J { }",
    ];
    let directory = Scratch::new("sources");
    for (number, body) in BODIES.iter().cycle().take(SOURCES).enumerate() {
        std::fs::write(directory.file(&format!("C{number}.java")), format!("class C{number} {{ {body} }}\n"))
            .expect("a source file");
    }
    directory
}
