//! What class loading can do to a call graph: classes that come late, twice, hidden, broken, or while their loader is locked.

use std::collections::BTreeMap;

use headwater_tests::{
    Jdk, Launched, Profile, Scratch, calls_by_method, compile_text, java, profile, profile_while_told, read_report,
};

headwater_tests::trials! {
    each_jdk {
        an_overriding_class_that_comes_late_is_instrumented_while_it_loads,
        classes_of_one_name_and_two_loaders_are_both_found,
        classes_may_be_unloaded,
        arrays_have_no_methods_of_their_own,
        interfaces_have_initialisers_and_default_methods_or_nothing,
        a_class_that_fails_to_verify_fails_as_it_would,
        classes_are_loaded_while_classes_are_loaded,
        a_class_loader_that_another_thread_has_locked_deadlocks_nobody,
        a_loader_that_runs_code_of_its_own_classes_finds_what_it_is_asked_for,
        threads_that_cross_in_a_class_loaders_lock_and_in_a_first_call_both_come_through,
        what_a_retransformation_loads_on_the_way_is_loaded_as_it_is,
        a_program_that_starts_has_its_loaded_classes_linked_for_a_batch_that_is_due,
        what_a_class_inherits_is_seen_though_the_class_is_never_linked,
    }
    since(15) {
        what_hidden_classes_call_is_found_and_lambdas_are_in_their_hosts,
    }
}

/// Runs scenarios under a profile of `Loading::root`; the calls by method. The program's output must be what it is
/// without a profiler.
fn check(jdk: &Jdk, scenarios: &[&str], tool_options: &[&str]) -> BTreeMap<String, u64> {
    let launch = || Launched::of_files(jdk, &["Loading.java"], &[], &["Loading"]);
    let run = |mut target: Launched| {
        scenarios.iter().chain(&["quit"]).for_each(|line| target.say(line));
        target.ended().stdout
    };
    let expected = run(launch());

    let target = launch();
    let profile = Profile::start(&target, &[&["--root", "Loading::root"], tool_options].concat());
    assert_eq!(run(target), expected, "{scenarios:?}");
    calls_by_method(&profile.of_the_end())
}

fn calls(of: &BTreeMap<String, u64>, method: &str) -> u64 {
    of.get(method).copied().unwrap_or(0)
}

fn a_loader_that_runs_code_of_its_own_classes_finds_what_it_is_asked_for(jdk: &Jdk) {
    let launch = || Launched::of_files(jdk, &["Asking.java"], &[], &["Asking"]);
    let run = |mut target: Launched| {
        ["go", "go"].iter().for_each(|line| target.say(line));
        target.ended().stdout
    };
    let expected = run(launch());
    let target = launch();
    let profile = Profile::start(&target, &["--root", "Asking::root", "--gentle", "off"]);
    assert_eq!(run(target), expected);
    let found = calls_by_method(&profile.of_the_end());
    assert_eq!(calls(&found, "Asking.root(I)I"), 200, "{found:#?}");
    assert_eq!(calls(&found, "AskingHeard.of(Ljava/lang/String;)I"), 200, "{found:#?}");
}

fn an_overriding_class_that_comes_late_is_instrumented_while_it_loads(jdk: &Jdk) {
    let found = check(jdk, &["base", "override", "override"], &[]);
    assert_eq!(calls(&found, "Late.run()I"), 2, "{found:#?}");
    assert_eq!(calls(&found, "Base.run()I"), 3, "{found:#?}");
}

fn classes_of_one_name_and_two_loaders_are_both_found(jdk: &Jdk) {
    let found = check(jdk, &["twins", "twins"], &[]);
    assert_eq!(calls(&found, "Guest.getAsInt()I"), 4, "{found:#?}");
    assert_eq!(calls(&found, "Guest.inner()I"), 4, "{found:#?}");
}

fn classes_may_be_unloaded(jdk: &Jdk) {
    let found = check(jdk, &["unloaded", "base", "unloaded"], &[]);
    assert_eq!(calls(&found, "Guest.inner()I"), 6, "{found:#?}");
}

fn what_hidden_classes_call_is_found_and_lambdas_are_in_their_hosts(jdk: &Jdk) {
    let found = check(jdk, &["hidden", "hidden"], &[]);
    for method in ["Loading.seen()I", "Loading.seenByHidden()I", "Made.<init>()V", "Made.number()I"] {
        assert_eq!(calls(&found, method), 2, "{method}: {found:#?}");
    }
    assert!(found.keys().any(|method| method.contains("lambda$hidden$0")), "{found:#?}");
}

fn arrays_have_no_methods_of_their_own(jdk: &Jdk) {
    let found = check(jdk, &["arrays"], &[]);
    assert_eq!((calls(&found, "Loading.arrays([LBase;)I"), calls(&found, "Base.run()I")), (2, 2), "{found:#?}");
}

fn interfaces_have_initialisers_and_default_methods_or_nothing(jdk: &Jdk) {
    let found = check(jdk, &["interfaces"], &[]);
    for method in ["Constants.<clinit>()V", "Constants.compute()I", "WithCode.code()I"] {
        assert_eq!(calls(&found, method), 1, "{method}: {found:#?}");
    }
}

fn a_class_that_fails_to_verify_fails_as_it_would(jdk: &Jdk) {
    let found = check(jdk, &["broken", "base"], &[]);
    assert_eq!((calls(&found, "Loading.broken()Ljava/lang/String;"), calls(&found, "Base.run()I")), (1, 1));
}

fn classes_are_loaded_while_classes_are_loaded(jdk: &Jdk) {
    let found = check(jdk, &["nested", "nested"], &[]);
    assert_eq!((calls(&found, "Guest.inner()I"), calls(&found, "Helper.help()V")), (2, 2), "{found:#?}");
}

fn a_class_loader_that_another_thread_has_locked_deadlocks_nobody(jdk: &Jdk) {
    let found = check(jdk, &["locked", "base"], &[]);
    assert_eq!(calls(&found, "Base.run()I"), 1, "{found:#?}");
}

fn threads_that_cross_in_a_class_loaders_lock_and_in_a_first_call_both_come_through(jdk: &Jdk) {
    let found = check(jdk, &["crossed", "crossed", "crossed"], &[]);
    assert_eq!((calls(&found, "Guest.inner()I"), calls(&found, "Sealed.other()I")), (3, 3), "{found:#?}");
    assert_eq!(calls(&found, "Base.run()I"), 3, "{found:#?}");
}

/// When a class of a named module is retransformed for the first time, HotSpot runs Java code that opens the module, and
/// what that loads comes to the agent's hook by the name of the wrong class.
fn what_a_retransformation_loads_on_the_way_is_loaded_as_it_is(jdk: &Jdk) {
    const SOURCE: &str = "
        import java.util.logging.*;
        class Main {
            static Object level;
            public static void main(String[] args) throws Exception {
                LogRecord record = new LogRecord(Level.FINE, \"\");
                System.out.println(\"READY\");
                while (System.in.read() != 'q') {
                    root(record);
                    // Needs java.lang.Module$ReflectionData.
                    boolean exported = Object.class.getModule().isExported(\"sun.security.util\", Logger.class.getModule());
                    System.out.println(\"EXPORTED \" + exported);
                }
            }
            static void root(LogRecord record) { level = record.getLevel(); }
        }";
    let classes = compile_text(jdk, SOURCE);
    let mut target = java(jdk, &classes, &[], &["Main"]);
    target.await_line("READY");
    let out = Scratch::new("report");
    let file = out.file("profile.json");
    let file_name = file.to_string_lossy().into_owned();
    let options = ["--root", "Main::root", "--include", "java.util.logging.**", "--jdk", "all", "-o", &file_name];
    let tool = profile(&target, &options);
    ["x", "q"].iter().for_each(|line| target.say(line));
    let target = target.finish();
    assert!(target.status.success(), "JDK {}: {:#?}", jdk.version, target.stderr);
    assert_eq!(target.stdout, ["EXPORTED false", "EXPORTED false"], "JDK {}", jdk.version);
    tool.finish();
    let found = calls_by_method(&read_report(&file));
    assert_eq!(calls(&found, "java.util.logging.LogRecord.getLevel()Ljava/util/logging/Level;"), 2, "{found:#?}");
}

fn a_program_that_starts_has_its_loaded_classes_linked_for_a_batch_that_is_due(jdk: &Jdk) {
    const LOADED_BY_GRAPH: usize = 40;
    const LINKED_BY_PROGRAM: usize = 6;
    let calls_of = |kind: char, count| (0..count).map(|index| format!("{kind}{index}.go();")).collect::<String>();
    let classes_of = |kind: char, count| {
        (0..count).map(|index| format!("class {kind}{index} {{ static void go() {{ }} }}")).collect::<String>()
    };
    let text = format!(
        "
        class Main {{
            public static void main(String[] args) throws Exception {{
                for (int i = 0; i < {LINKED_BY_PROGRAM}; i++) Class.forName(\"U\" + i, false, Main.class.getClassLoader());
                for (String name : new String[] {{\"Last\", \"Broken\"}}) {{
                    Class.forName(name, false, Main.class.getClassLoader());
                }}
                System.out.println(\"READY\");
                System.in.read();
                root();
                System.out.println(\"DONE\");
                System.in.read();
            }}
            static void root() {{ {} {} last(); }}
            static void last() {{
                System.out.println(\"LAST\");
                new Last().go();
                try {{ new Broken().go(); }} catch (LinkageError e) {{ System.out.println(\"BROKEN \" + e); }}
            }}
        }}
        class Last {{ void go() {{ }} }}
        class Kept {{ }}
        class Broken {{ void go() {{ }} static Kept kept(Missing missing) {{ return missing; }} }}
        class Missing extends Kept {{ }}
        {}{}",
        calls_of('G', LOADED_BY_GRAPH),
        calls_of('U', LINKED_BY_PROGRAM),
        classes_of('G', LOADED_BY_GRAPH),
        classes_of('U', LINKED_BY_PROGRAM),
    );
    let classes = compile_text(jdk, &text);
    // The verifier looks for it.
    std::fs::remove_file(classes.file("Missing.class")).unwrap();
    let mut target = java(jdk, &classes, &["-Xlog:class+init=info"], &["Main"]);
    target.await_line("READY");
    let out = Scratch::new("report");
    let file = out.file("profile.json");
    let tool = profile(&target, &["--root", "Main::root", "--calls", "1", "-o", &file.to_string_lossy()]);
    target.say("");
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    target.say("");
    let target = target.finish();
    assert!(target.status.success(), "JDK {}: {:#?}", jdk.version, target.stderr);
    let place = |text: &str| target.stdout.iter().position(|line| line.contains(text));
    let linked = place("Start class verification for: Last");
    assert!(linked.is_some() && linked < place("LAST"), "JDK {}: {:#?}", jdk.version, target.stdout);
    assert!(place("BROKEN java.lang.NoClassDefFoundError: Missing").is_some(), "{:#?}", target.stdout);
    let found = calls_by_method(&read_report(&file));
    for method in ["Last.<init>()V", "Last.go()V"] {
        assert_eq!(calls(&found, method), 1, "JDK {}: {method}", jdk.version);
    }
    for (kind, count) in [('G', LOADED_BY_GRAPH), ('U', LINKED_BY_PROGRAM)] {
        assert!((0..count).all(|index| calls(&found, &format!("{kind}{index}.go()V")) == 1), "{found:#?}");
    }
    assert_eq!(calls(&found, "Broken.<init>()V"), 0);
}

/// A call of a static method that is inherited initialises the class that declares it, and never links the one that is named: all of Kotlin's library is called so.
fn what_a_class_inherits_is_seen_though_the_class_is_never_linked(jdk: &Jdk) {
    const SOURCE: &str = "
        class Main {
            public static void main(String[] args) throws Exception {
                root();
                System.out.println(\"READY\");
                while (System.in.read() >= 0) System.out.println(\"RESULT \" + root());
            }
            static int root() { return Facade.first(); }
        }
        class Part { static int first() { return Other.second(); } }
        class Facade extends Part { }
        class Other { static int second() { return 2; } }";
    let target = Launched::of_text(jdk, SOURCE, &[], &["Main"]);
    let report = profile_while_told(target, &["--root", "Main::root"], &["", "", ""]);
    let calls = calls_by_method(&report);
    let counts = ["Main.root()I", "Part.first()I", "Other.second()I"].map(|method| calls.get(method).copied());
    assert_eq!(counts, [Some(3); 3], "JDK {}: {calls:#?}", jdk.version);
}
