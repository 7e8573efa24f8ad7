//! Random control flow: basic blocks in any order, connected by any branches, covered by any handlers, some of them far
//! apart. All blocks begin with the same types of locals, so that all of it verifies.

use std::fmt::Write;

use headwater_rewriter::{ClassFile, Error};
use headwater_tests::jdks;
use headwater_tests::random::Random;
use krakatau2::{AssemblerOptions, assemble};

#[path = "support/assembly.rs"]
mod assembly;
#[path = "support/comparison.rs"]
mod comparison;

use assembly::assembled;
use comparison::{Program, check};

/// Locals 1 to 8 of every block: a value, how many blocks may still run, and one of each other kind. Local 0 is `this`, or
/// the parameter; those above are the subroutines'.
const LOCALS: &str = "Integer Integer Long Double Object java/lang/Object Object java/lang/String";

/// What a block finds on the stack: its types, how they get there, and how they are taken.
const STACKS: [(&str, &str, &str); 5] = [
    ("", "", ""),
    ("", "", ""),
    ("Integer", "iload_1", "istore_1"),
    ("Long Object java/lang/Object", "lload_3\naload 7", "astore 7\nlstore_3"),
    ("Double Integer Object java/lang/String", "dload 5\niload_2\naload 8", "astore 7\nistore_2\ndstore 5"),
];

const CONDITIONS: [&str; 10] = [
    "iload_1\nifeq",
    "iload_1\nifne",
    "iload_1\niflt",
    "iload_1\nifge",
    "iload_1\niload_2\nif_icmpgt",
    "iload_1\nbipush 9\nif_icmple",
    "aload 7\naload 8\nif_acmpne",
    "aload 7\naload 8\nif_acmpeq",
    "aload 7\nifnull",
    "aload 7\nifnonnull",
];

/// Instructions that leave the stack as it was.
const STATEMENTS: [&str; 16] = [
    "iload_1\nbipush 7\niadd\nistore_1",
    "iload_1\niconst_3\nimul\niconst_5\nixor\nistore_1",
    "iload_1\nbipush 21\nirem\nistore_1",
    "iinc 1 -4",
    "wide iinc 1 200",
    "lload_3\niload_1\ni2l\nladd\nlstore_3",
    "lload_3\nlload_3\nladd\nl2i\ni2b\nistore_1",
    "dload 5\niload_1\ni2d\ndadd\ndstore 5",
    "iload_1\ninvokestatic Method Say check (I)I\npop",
    "iload_1\niconst_5\nirem\ninvokestatic Method Say check (I)I\nistore_1",
    "bipush 100\niload_1\nbipush 13\nirem\nidiv\nistore_1",
    "iload_1\ninvokestatic Method Say print (I)V",
    "aload 7\ninvokestatic Method Say print (Ljava/lang/Object;)V",
    "aconst_null\nastore 7",
    "aload 8\nastore 7",
    "iload_1\nbipush 20\nirem\ninvokestatic Method Random next (I)I\nistore_1",
];

struct Generator {
    random: Random,
    text: String,
    labels: usize,
    /// Before version 50 there are subroutines, and no frames.
    old: bool,
    /// Bytes to be put into one of the blocks.
    padding: usize,
}

impl Generator {
    fn ops(&mut self, lines: &str) {
        for line in lines.lines() {
            writeln!(self.text, "        {line}").expect("memory");
        }
    }

    fn label(&mut self, label: &str) {
        writeln!(self.text, "{label}:").expect("memory");
    }

    fn frame(&mut self, zero: &str, stack: &str) {
        if !self.old {
            self.ops(&format!(".stack full\nlocals {zero} {LOCALS}\nstack {stack}\n.end stack"));
        }
    }

    fn fresh(&mut self) -> String {
        self.labels += 1;
        format!("LX{}", self.labels)
    }

    fn statements(&mut self, zero: &str) {
        for _ in 0..self.random.below(5) {
            if self.random.once_in(8) {
                self.construction(zero);
            } else {
                let statement = self.random.choose(&STATEMENTS);
                self.ops(statement);
            }
        }
    }

    /// An object under construction while there is a branch.
    fn construction(&mut self, zero: &str) {
        let (new, join) = (self.fresh(), self.fresh());
        self.label(&new);
        self.ops("new java/lang/StringBuilder\ndup");
        let condition = self.random.choose(&CONDITIONS);
        self.ops(&format!("{condition} {join}"));
        self.ops("iload_1\ninvokestatic Method Say check (I)I\npop");
        self.label(&join);
        self.frame(zero, &format!("Uninitialized {new} Uninitialized {new}"));
        self.ops("invokespecial Method java/lang/StringBuilder <init> ()V\nastore 7");
    }

    /// Blocks that begin at `{prefix}0`, and end by `finish`, by a return, or by an exception. `zero` is local 0's type.
    fn blocks(&mut self, prefix: &str, zero: &str, finish: &str) {
        let count = 3 + self.random.below(10);
        let handlers = self.random.below(4);
        let subroutines = if self.old { self.random.below(3) } else { 0 };
        let stacks: Vec<_> = (0..count).map(|_| self.random.below(STACKS.len())).collect();
        let padded = self.random.below(count);
        // Blocks, then handlers, shuffled.
        let mut order: Vec<_> = (0..count + handlers).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.random.below(i + 1));
        }
        let position = order.iter().position(|block| *block == 0).expect("it is one of them");
        if stacks[0] != 0 || self.random.once_in(2) || position != 0 {
            self.ops(STACKS[stacks[0]].1);
            self.ops(&format!("goto {prefix}0"));
        } else {
            self.ops(STACKS[stacks[0]].1);
        }
        for handler in 0..handlers {
            let from = self.random.below(order.len());
            let to = from + 1 + self.random.below(order.len() - from);
            let to = order.get(to).map_or(format!("{prefix}END"), |block| format!("{prefix}{block}"));
            let start = if self.random.once_in(3) && order[from] < count { "M" } else { "" };
            let class = self.random.choose(&[
                "java/lang/Throwable",
                "java/lang/IllegalArgumentException",
                "java/lang/ArithmeticException",
                "[0]",
            ]);
            let (from, handler) = (format!("{prefix}{}{start}", order[from]), count + handler);
            self.ops(&format!(".catch {class} from {from} to {to} using {prefix}{handler}"));
        }
        for (at, block) in order.iter().enumerate() {
            self.label(&format!("{prefix}{block}"));
            if *block >= count {
                self.frame(zero, "Object java/lang/Throwable");
                let target = self.random.below(count);
                self.ops("astore 7");
                self.ops(STACKS[stacks[target]].1);
                self.ops(&format!("goto {prefix}{target}"));
                continue;
            }
            self.frame(zero, STACKS[stacks[*block]].0);
            self.ops(STACKS[stacks[*block]].2);
            self.ops(&format!("iinc 2 -1\niload_2\niflt {prefix}END"));
            self.label(&format!("{prefix}{block}M"));
            self.ops("nop");
            self.statements(zero);
            if *block == padded {
                for _ in 0..self.padding / 6 {
                    self.text.push_str("        wide iinc 1 0\n");
                }
            }
            // A block can fall only into a block.
            let next = order.get(at + 1).copied().filter(|next| *next < count);
            self.terminator(prefix, finish, &stacks, subroutines, next);
        }
        self.label(&format!("{prefix}END"));
        self.frame(zero, "");
        self.ops(finish);
        for subroutine in 0..subroutines {
            self.label(&format!("{prefix}SUB{subroutine}"));
            self.ops(&format!("astore {}", 9 + subroutine));
            self.statements(zero);
            self.ops(&format!("ret {}", 9 + subroutine));
        }
    }

    fn terminator(&mut self, prefix: &str, finish: &str, stacks: &[usize], subroutines: usize, next: Option<usize>) {
        if subroutines > 0 && self.random.once_in(3) {
            let subroutine = self.random.below(subroutines);
            self.ops(&format!("jsr {prefix}SUB{subroutine}"));
        }
        let target = self.random.below(stacks.len());
        match self.random.below(10) {
            0 if stacks[target] < 2 => {
                self.ops("iload_1");
                let table = self.random.once_in(2);
                self.ops(if table { "tableswitch -1" } else { "lookupswitch" });
                let plain: Vec<_> = (0..stacks.len()).filter(|block| stacks[*block] < 2).collect();
                for key in 0..1 + self.random.below(5) {
                    let target = plain[self.random.below(plain.len())];
                    self.ops(&if table {
                        format!("{prefix}{target}")
                    } else {
                        format!("{} : {prefix}{target}", key * 5)
                    });
                }
                self.ops(&format!("default : {prefix}{target}"));
            }
            1 => self.ops(finish),
            2 => self.ops("iload_1\ninvokestatic Method Say exception (I)Ljava/lang/RuntimeException;\nathrow"),
            choice => {
                let (_, push, _) = STACKS[stacks[target]];
                if choice < 7 {
                    let condition = self.random.choose(&CONDITIONS);
                    self.ops(push);
                    self.ops(&format!("{condition} {prefix}{target}"));
                    for kind in STACKS[stacks[target]].0.split(' ').rev() {
                        self.ops(match kind {
                            "Long" | "Double" => "pop2",
                            "Integer" | "java/lang/Object" | "java/lang/String" => "pop",
                            _ => "",
                        });
                    }
                }
                match next {
                    Some(next) => self.ops(STACKS[stacks[next]].1),
                    None => {
                        self.ops(push);
                        self.ops(&format!("goto {prefix}{target}"));
                    }
                }
            }
        }
    }

    fn prologue(&mut self) {
        self.ops("bipush 30\nistore_2\niload_1\ni2l\nlstore_3\ndconst_1\ndstore 5\naconst_null\nastore 7\nldc 'start'\nastore 8");
    }

    fn static_method(&mut self, name: &str) {
        self.text.push_str(&format!(".method public static {name} : (I)I\n    .code stack 12 locals 12\n"));
        self.ops("iload_0\nistore_1");
        self.prologue();
        self.blocks("L", "Integer", "lload_3\nl2i\ndload 5\nd2i\nixor\niload_1\niadd\nireturn");
        self.text.push_str("    .end code\n.end method\n");
    }

    /// Blocks, one of several calls of `super(...)`, and more blocks, which may lie before them.
    fn constructor(&mut self) {
        self.text.push_str(".method public <init> : (I)V\n    .code stack 12 locals 12\n");
        self.prologue();
        let returns = "aload_0\niload_1\nputfield Field Base value I\nreturn";
        let (first, second) = ("UninitializedThis", "Object Random");
        let supers = 1 + self.random.below(3);
        let backwards = self.random.once_in(2);
        if backwards {
            self.ops("goto LFIRST");
            self.label("LSECOND");
            self.frame(second, "");
            self.ops("nop");
            self.blocks("LB", second, returns);
            self.label("LFIRST");
            self.frame(first, "");
            self.ops("nop");
        }
        self.blocks("LA", first, "goto LSUPER0");
        for call in 0..supers {
            self.label(&format!("LSUPER{call}"));
            self.frame(first, "");
            self.ops("aload_0");
            if call + 1 < supers {
                let condition = self.random.choose(&CONDITIONS);
                self.ops(&format!("{condition} LPOP{call}"));
            }
            let arguments = self.random.choose(&["|()V", "lload_3|(J)V", "aload 7|(Ljava/lang/Object;)V"]);
            let (push, descriptor) = arguments.split_once('|').expect("there is one");
            self.ops(push);
            self.ops(&format!("invokespecial Method Base <init> {descriptor}"));
            self.ops("bipush 25\nistore_2\ngoto LSECOND");
            if call + 1 < supers {
                self.label(&format!("LPOP{call}"));
                self.frame(first, "UninitializedThis");
                self.ops(&format!("pop\ngoto LSUPER{}", call + 1));
            }
        }
        if !backwards {
            self.label("LSECOND");
            self.frame(second, "");
            self.ops("nop");
            self.blocks("LB", second, returns);
        }
        self.text.push_str("    .end code\n.end method\n");
    }
}

/// The called methods end soon.
const NEXT: &str = ".method static next : (I)I
    .code stack 2 locals 1
        iload_0
        bipush -15
        iadd
        invokestatic Method Say check (I)I
        ireturn
    .end code
.end method
";

fn text(seed: u64, old: bool, padding: usize) -> String {
    let mut generator = Generator { random: Random(seed), text: String::new(), labels: 0, old, padding };
    let version = if old { 49 } else { 52 };
    let head = format!(".version {version} 0\n.class public super Random\n.super Base\n{NEXT}");
    generator.text.push_str(&head);
    if padding == 0 {
        generator.constructor();
        for name in ["one", "two", "three"] {
            generator.static_method(name);
        }
    } else if seed % 4 < 2 {
        generator.constructor();
    } else {
        generator.static_method("one");
    }
    generator.text.push_str(".end class\n");
    generator.text
}

fn seed(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn name(number: u64, old: bool) -> String {
    format!("seed-{number}-{}", if old { 49 } else { 52 })
}

#[test]
fn blocks_in_any_order() {
    let mut programs = Vec::new();
    for number in 1..=100 {
        for old in [false, true] {
            let name = name(number, old);
            programs.push(Program::new(&name, assembled(&name, &text(seed(number), old, 0))));
        }
    }
    check(&jdks(), &programs);
}

/// Bytes of code.
fn longest_method(class: &[u8]) -> Result<u32, Error> {
    let class = ClassFile::parse(class)?;
    let mut longest = 0;
    for method in class.methods() {
        let last = class.code(method)?.and_then(|code| code.instructions().last());
        longest = longest.max(last.map_or(0, |last| last.offset + last.length));
    }
    Ok(longest)
}

/// With as much padding as the branches bear.
#[test]
fn blocks_as_far_apart_as_can_be() {
    let mut programs = Vec::new();
    for number in 1000..1016 {
        let old = number % 2 == 0;
        // The assembler sees to the branches, but not to the whole's length; and the probes need room.
        let fits = |padding| {
            let classes = assemble(&text(seed(number), old, padding), AssemblerOptions::default());
            classes.is_ok_and(|classes| {
                classes.iter().all(|class| longest_method(&class.data).is_ok_and(|it| it < 62_000))
            })
        };
        let (mut low, mut high) = (6, 33_000);
        while high - low > 6 {
            let middle = usize::midpoint(low, high);
            *(if fits(middle) { &mut low } else { &mut high }) = middle;
        }
        let name = name(number, old);
        programs.push(Program::new(&name, assembled(&name, &text(seed(number), old, low))));
    }
    check(&jdks(), &programs);
}
