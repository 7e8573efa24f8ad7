//! The JDK's own methods, those included that the profiler's runtime and the JVM lean on, under full verification.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use headwater_tests::{Jdk, Launched, Profile, calls_by_method};

headwater_tests::trials! {
    each_jdk {
        a_method_of_the_jdk_may_be_the_root,
        the_classes_that_the_jvm_leans_on_may_be_instrumented,
        so_may_all_calls_of_its_native_methods,
        an_action_of_swings_may_be_the_root,
    }
}

const SOURCE: &str = "
    import java.util.*;
    import java.util.concurrent.*;
    class Main {
        public static void main(String[] args) throws Exception {
            System.out.println(\"READY\");
            Scanner input = new Scanner(System.in);
            while (input.hasNextLine() && !input.nextLine().equals(\"quit\")) System.out.println(\"RESULT \" + work());
            System.out.println(\"BYE\");
        }
        static String work() throws Exception {
            Map<String, Integer> map = new HashMap<>();
            for (int i = 0; i < 100; i++) map.put(\"key\" + i, Math.max(i, 50));
            Thread thread = new Thread(() -> map.put(\"thread\", Math.abs(-1)), \"worker\");
            thread.start();
            thread.join();
            ExecutorService pool = Executors.newFixedThreadPool(2);
            int sum = pool.submit(() -> map.values().stream().mapToInt(Integer::intValue).sum()).get();
            pool.shutdown();
            pool.awaitTermination(10, TimeUnit.SECONDS);
            java.util.concurrent.locks.LockSupport.parkNanos(1);
            Object made = Class.forName(\"java.util.ArrayList\").getDeclaredConstructor().newInstance();
            String text = System.getProperty(\"java.vm.name\").length() + made.toString() + new Object().equals(made);
            return map.size() + \" \" + sum + \" \" + text + String.format(\" %05.2f\", Math.floor(2.5));
        }
    }";

/// An action of a button, and what a program does in one: no screen is needed for it. It ends by `System.exit`: `AWTAutoShutdown` does not
/// end the event thread if an event is posted between its own and that thread's waking, which takes longer when it waits for a hotswap.
const SWING: &str = "
    import java.util.Scanner;
    import javax.swing.*;
    import javax.swing.text.PlainDocument;
    class Main {
        static int clicks;
        public static void main(String[] args) throws Exception {
            JButton button = new JButton(\"go\");
            DefaultListModel<String> model = new DefaultListModel<>();
            JTable table = new JTable(3, 3);
            PlainDocument document = new PlainDocument();
            button.addActionListener(event -> {
                clicks++;
                model.addElement(event.getActionCommand());
                table.setValueAt(model.getSize(), 1, 1);
                try {
                    document.insertString(0, \"x\", null);
                } catch (javax.swing.text.BadLocationException e) {
                    throw new IllegalStateException(e);
                }
            });
            System.out.println(\"READY\");
            Scanner input = new Scanner(System.in);
            while (input.hasNextLine() && !input.nextLine().equals(\"quit\")) {
                SwingUtilities.invokeAndWait(() -> button.doClick(0));
                System.out.println(\"RESULT \" + clicks + table.getValueAt(1, 1) + document.getLength());
            }
            System.out.println(\"BYE\");
            System.exit(0);
        }
    }";

/// With all of the JDK instrumented and verified a batch takes long, and no thread waits for one without a deadline: one such program at a time.
static MACHINE: Mutex<()> = Mutex::new(());

/// Calls by method with all of the JDK instrumented; the program's output must be what it is without.
fn check(jdk: &Jdk, source: &str, root: &str, tool_options: &[&str]) -> BTreeMap<String, u64> {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = ["go", "go", "quit"];
    let launch = || Launched::of_text(jdk, source, &["-Djava.awt.headless=true"], &["Main"]);
    let run = |mut target: Launched| {
        lines.iter().for_each(|line| target.say(line));
        target.ended().stdout
    };
    let expected = run(launch());

    let target = launch();
    let profile = Profile::start(&target, &[&["--root", root, "--jdk", "all"], tool_options].concat());
    assert_eq!(run(target), expected, "{root}");
    let report = profile.of_the_end();
    let warnings = report["warnings"].to_string();
    assert!(!warnings.contains("without waiting"), "JDK {}, {root}: {warnings}", jdk.version);
    calls_by_method(&report)
}

fn a_method_of_the_jdk_may_be_the_root(jdk: &Jdk) {
    let found = check(jdk, SOURCE, "java.util.HashMap::put", &[]);
    assert!(found["java.util.HashMap.put(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;"] >= 202);
    assert!(found.contains_key("java.util.HashMap.hash(Ljava/lang/Object;)I"), "{found:#?}");
    assert!(found.contains_key("java.lang.String.hashCode()I"), "{found:#?}");
}

fn the_classes_that_the_jvm_leans_on_may_be_instrumented(jdk: &Jdk) {
    let found = check(jdk, SOURCE, "Main::work", &[]);
    for class in ["Thread", "System", "Class", "Math", "String", "Integer"] {
        let of_class = format!("java.lang.{class}.");
        assert!(found.keys().any(|method| method.starts_with(&of_class)), "JDK {}: {class}", jdk.version);
    }
}

fn so_may_all_calls_of_its_native_methods(jdk: &Jdk) {
    let found = check(jdk, SOURCE, "Main::work", &["--natives"]);
    for native in ["jdk.internal.misc.Unsafe.park(ZJ)V", "java.lang.Thread.currentThread()Ljava/lang/Thread;"] {
        assert!(found.contains_key(native), "JDK {}: {native}: {:#?}", jdk.version, found.keys());
    }
}

fn an_action_of_swings_may_be_the_root(jdk: &Jdk) {
    let found = check(jdk, SWING, "javax.swing.AbstractButton::fireActionPerformed", &[]);
    let root = "javax.swing.AbstractButton.fireActionPerformed(Ljava/awt/event/ActionEvent;)V";
    assert_eq!(found.get(root), Some(&2), "JDK {}: {found:#?}", jdk.version);
    for method in [
        "javax.swing.DefaultListModel.addElement(Ljava/lang/Object;)V",
        "javax.swing.JTable.setValueAt(Ljava/lang/Object;II)V",
        "javax.swing.text.PlainDocument.insertString(ILjava/lang/String;Ljavax/swing/text/AttributeSet;)V",
    ] {
        assert_eq!(found.get(method), Some(&2), "JDK {}: {method}", jdk.version);
    }
}
