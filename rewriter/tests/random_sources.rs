//! Random Java programs, as every installed javac compiles them.

use std::path::Path;

use headwater_tests::random::Random;
use headwater_tests::{Scratch, compile_text, jdks};

#[path = "support/comparison.rs"]
mod comparison;

use comparison::{Program, check};

/// How many classes there are.
const CLASSES: usize = 200;
/// Locals of every method: parameters, and others.
const INTS: [&str; 4] = ["n", "a", "b", "c"];

struct Generator {
    random: Random,
    text: String,
    depth: usize,
    loops: usize,
    names: usize,
    /// Methods that may be called: those with smaller numbers.
    callable: usize,
    /// What a return is written like.
    result: &'static str,
}

impl Generator {
    fn line(&mut self, line: &str) {
        self.text.push_str(&"    ".repeat(self.depth + 2));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn int(&mut self) -> String {
        let variable = self.random.choose(&INTS).to_owned();
        match self.random.below(12) {
            0 => format!("{}", self.random.below(200) as i32 - 100),
            1 => format!("({variable} + {})", self.int()),
            2 => format!("({variable} * {})", self.random.below(5)),
            3 => format!("({variable} ^ {})", self.int()),
            4 => format!("({variable} % {})", self.random.below(7)),
            5 => format!("(int) (l >> {})", self.random.below(20)),
            6 => "(int) d".to_owned(),
            // Not nested: javac tries the types of each again for every level.
            7 => format!("({} ? {variable} : {})", self.condition(), self.random.choose(&INTS)),
            8 if self.callable > 0 => {
                let callee = self.random.below(self.callable);
                format!("m{callee}({variable} % 9)")
            }
            9 => "s.length()".to_owned(),
            10 => format!("Say.check({variable} % 11)"),
            _ => variable,
        }
    }

    fn condition(&mut self) -> String {
        let comparison = self.random.choose(&["<", "<=", "==", "!=", ">", ">="]).to_owned();
        let variable = self.random.choose(&INTS).to_owned();
        match self.random.below(7) {
            0 => format!("l {comparison} {}", self.int()),
            1 => format!("d {comparison} {}", self.int()),
            2 => "o == s".to_owned(),
            3 => format!("{variable} > 3 && {variable} {comparison} 50 || s == null"),
            4 => "o instanceof String".to_owned(),
            _ => format!("{variable} {comparison} {}", self.int()),
        }
    }

    fn block(&mut self, budget: usize) {
        self.depth += 1;
        for _ in 0..1 + self.random.below(2) {
            self.statement(budget);
        }
        self.depth -= 1;
    }

    fn statement(&mut self, budget: usize) {
        if budget == 0 {
            return self.simple();
        }
        self.names += 1;
        let name = self.names;
        match self.random.below(14) {
            0 | 1 => {
                let condition = self.condition();
                self.line(&format!("if ({condition}) {{"));
                self.block(budget - 1);
                if self.random.once_in(2) {
                    self.line("} else {");
                    self.block(budget - 1);
                }
                self.line("}");
            }
            2 => {
                let times = self.random.below(4);
                self.line(&format!("for (int i{name} = 0; i{name} < {times}; i{name}++) {{"));
                self.in_loop(budget);
                self.line("}");
            }
            3 => {
                let condition = self.condition();
                self.line(&format!("int w{name} = 0;"));
                self.line(&format!("while (w{name}++ < 3 && ({condition})) {{"));
                self.in_loop(budget);
                self.line("}");
            }
            4 => {
                self.line(&format!("int w{name} = 0;"));
                self.line("do {");
                self.in_loop(budget);
                let condition = self.condition();
                self.line(&format!("}} while (w{name}++ < 2 && ({condition}));"));
            }
            5 => self.switch(budget),
            6 | 7 => self.attempt(budget, name),
            8 => {
                self.line("synchronized (lock) {");
                self.block(budget - 1);
                self.line("}");
            }
            9 => {
                // Only a condition keeps what follows reachable.
                let condition = self.condition();
                let result = self.result;
                let leave = match self.random.below(4) {
                    0 if self.loops > 0 => "break;",
                    1 if self.loops > 0 => "continue;",
                    2 => "throw Say.exception(a);",
                    _ => result,
                };
                self.line(&format!("if ({condition}) {{ {leave} }}"));
            }
            // Few: the JVM makes a class of each.
            10 if self.random.once_in(5) => {
                let captured = self.int();
                self.line(&format!("final int f{name} = {captured};"));
                self.line(&format!("java.util.function.IntUnaryOperator g{name} = x -> x + f{name};"));
                self.line(&format!("a = g{name}.applyAsInt(b);"));
            }
            _ => self.simple(),
        }
    }

    fn in_loop(&mut self, budget: usize) {
        self.loops += 1;
        self.block(budget - 1);
        self.loops -= 1;
    }

    fn switch(&mut self, budget: usize) {
        if self.random.once_in(3) {
            self.line("switch (s) {");
            for case in ["\"text\"", "\"other\"", "\"\""] {
                self.line(&format!("case {case}:"));
                self.block(budget - 1);
            }
        } else {
            let value = self.int();
            let step = if self.random.once_in(2) { 1 } else { 1000 };
            self.line(&format!("switch ({value}) {{"));
            for case in 0..1 + self.random.below(5) {
                self.line(&format!("case {}:", case * step));
                self.block(budget - 1);
                // A break of the switch, which may be the last statement: only behind a condition.
                self.line("    if (a != b) { break; }");
            }
        }
        self.line("default:");
        self.block(budget - 1);
        self.line("}");
    }

    fn attempt(&mut self, budget: usize, name: usize) {
        if self.random.once_in(4) {
            self.line(&format!("try (Resource r{name} = new Resource({}); Resource q{name} = null) {{", name % 3));
        } else {
            self.line("try {");
        }
        self.block(budget - 1);
        let catches = self.random.below(3);
        for exception in ["IllegalArgumentException", "RuntimeException"].iter().take(catches) {
            self.line(&format!("}} catch ({exception} e{name}{catches}) {{"));
            self.line(&format!("    o = e{name}{catches};"));
            self.block(budget - 1);
        }
        self.line("} finally {");
        let result = self.result;
        if self.random.once_in(6) {
            let condition = self.condition();
            self.line(&format!("    if ({condition}) {{ {result} }}"));
        }
        self.block(budget - 1);
        self.line("}");
    }

    fn simple(&mut self) {
        let value = self.int();
        let variable = self.random.choose(&INTS[1..]).to_owned();
        let line = match self.random.below(12) {
            0 => format!("l += {value};"),
            1 => format!("d = d * 0.5 + {value};"),
            2 => format!("s = o instanceof Integer ? \"text\" : Integer.toString({value});"),
            3 => "o = s;".to_owned(),
            4 => format!("o = Integer.valueOf({value});"),
            5 => format!("Say.print({variable});"),
            6 => format!("{variable} += new int[] {{a, b, c}}[Math.abs({variable} % 4)];"),
            7 => format!("field += {value};"),
            8 => format!("o = new Object[][] {{{{{value}}}, null}};"),
            9 => format!("{variable} /= {value};"),
            _ => format!("{variable} = {value};"),
        };
        self.line(&line);
    }

    fn body(&mut self) {
        self.line("int a = n, b = 3, c = -1; long l = n; double d = 1.5; String s = \"text\"; Object o = null;");
        for _ in 0..3 {
            self.statement(2);
        }
    }
}

/// A class with some methods and a constructor.
fn class(number: usize) -> String {
    let mut generator = Generator {
        random: Random((number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
        text: String::new(),
        depth: 0,
        loops: 0,
        names: 0,
        callable: 0,
        result: "return a;",
    };
    generator.text.push_str(&format!(
        "class Random{number} {{\n    static int field;\n    static final Object lock = new Object();\n"
    ));
    for method in 0..3 {
        generator.callable = method;
        let modifier = generator.random.choose(&["", "synchronized "]).to_owned();
        generator.text.push_str(&format!("    public static {modifier}int m{method}(int n) {{\n"));
        generator.body();
        generator.text.push_str("        return a ^ b ^ c ^ (int) l ^ (int) d ^ s.length();\n    }\n");
    }
    generator.result = "return;";
    generator.text.push_str(&format!(
        "    public Random{number}(int n) {{\n        this(n > 2 ? m0(n) : Say.check(n + 1), n);\n"
    ));
    generator.body();
    generator.text.push_str(&format!(
        "    }}\n    Random{number}(int n, int m) {{\n        field = n;\n    }}\n    public String toString() {{ return \"field \" + field; }}\n}}\n"
    ));
    generator.text
}

/// What the programs call; the comparison has these of its own.
const SUPPORT: &str = "
class Resource implements AutoCloseable {
    final int n;
    Resource(int n) { this.n = Say.check(n - 1); }
    public void close() { Say.check(n - 1); }
}
";

#[test]
fn random_java_programs() {
    let say = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runner/Say.java");
    let say = std::fs::read_to_string(say).expect("text").replace("public class", "class");
    let classes: String = (0..CLASSES).map(class).collect();
    let text = format!("{SUPPORT}{say}{classes}");
    for jdk in jdks() {
        let compiled: Scratch = compile_text(&jdk, &text);
        let mut programs = Vec::new();
        for number in 0..CLASSES {
            let name = format!("Random{number}");
            let bytes = std::fs::read(compiled.file(&format!("{name}.class"))).expect("it was compiled");
            let resource = std::fs::read(compiled.file("Resource.class")).expect("it was compiled");
            let classes = vec![(name, bytes), ("Resource".to_owned(), resource)];
            programs.push(Program::new(&format!("random-{number}"), classes));
        }
        check(&[jdk], &programs);
    }
}
