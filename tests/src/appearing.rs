//! A target that comes to new code all the time, and looks after itself meanwhile.

use crate::{Jdk, Patience, Process, Scratch, compile_text, java};

/// So many classes it comes to, before it comes to the first one again.
const CLASSES: usize = 1500;
/// What it is profiled below.
pub const ROOT: &str = "Main::root";

/// Two threads, each of which loads a class a hundred times a second, calls its methods, and checks what they return.
const MAIN: &str = r#"
import java.io.*;
import java.util.concurrent.atomic.*;

class Main {
    static final AtomicInteger next = new AtomicInteger();
    static final AtomicLong rounds = new AtomicLong();
    static final LongAccumulator longest = new LongAccumulator(Math::max, 0);
    static volatile Throwable wrong;

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 2; i++) {
            Thread thread = new Thread(Main::work);
            thread.setDaemon(true);
            thread.start();
        }
        while (rounds.get() < 20) Thread.sleep(1);
        System.out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null && !line.equals("quit");) {
            System.out.println("ROUNDS " + rounds.get() + " " + longest.getThenReset() / 1000000);
        }
        System.out.println(wrong == null ? "BYE" : "WRONG " + wrong);
    }

    static void work() {
        try {
            for (int i = 0;; i++) {
                int n = next.getAndIncrement() % CLASSES;
                long start = System.nanoTime();
                Work work = (Work) Class.forName("C" + n).getDeclaredConstructor().newInstance();
                int result = root(work, i);
                longest.accumulate(System.nanoTime() - start);
                if (result != (i + n) * 2 + 1) throw new IllegalStateException(n + ": " + result);
                rounds.incrementAndGet();
                Thread.sleep(10);
            }
        } catch (Throwable any) {
            wrong = any;
        }
    }

    static int root(Work work, int x) {
        return work.first(x);
    }
}

interface Work {
    int first(int x);
}
"#;

/// Its classes.
pub fn classes(jdk: &Jdk) -> Scratch {
    let class = |n: usize| {
        format!(
            "class C{n} implements Work {{
                 public int first(int x) {{ return second(x) + 1; }}
                 int second(int x) {{ return third(x) * 2; }}
                 static int third(int x) {{ return x + {n}; }}
             }}\n"
        )
    };
    let classes: String = (0..CLASSES).map(class).collect();
    compile_text(jdk, &(MAIN.replace("CLASSES", &CLASSES.to_string()) + &classes))
}

/// The target.
#[derive(Debug)]
pub struct Appearing {
    /// Its JVM.
    pub process: Process,
}

impl Appearing {
    /// Starts it; it runs when this returns.
    pub fn start(jdk: &Jdk, classes: &Scratch) -> Appearing {
        let mut process = java(jdk, classes, &[], &["Main"]);
        process.await_line("READY");
        Appearing { process }
    }

    /// How often it has loaded a class and called the root, and the longest time that this took since it was last asked, in ms.
    pub fn rounds(&mut self) -> (u64, u64) {
        self.process.say("rounds");
        let line = self.process.await_line("ROUNDS ");
        let mut numbers = line.split(' ').skip(1).map(|number| number.parse().expect("a number"));
        (numbers.next().expect("rounds"), numbers.next().expect("milliseconds"))
    }

    /// Waits until it has gone on for so many rounds.
    pub fn await_rounds(&mut self, more: u64) {
        let goal = self.rounds().0 + more;
        let mut patience = Patience::default();
        while self.rounds().0 < goal {
            assert!(patience.lasts(), "it stands still");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Ends it; nothing may have gone wrong in it.
    pub fn quit(mut self) {
        self.process.say("quit");
        let finished = self.process.finish();
        assert!(finished.status.success(), "{:#?}", finished.stderr);
        assert_eq!(finished.stdout.last().map(String::as_str), Some("BYE"));
    }
}
