//! Methods as large as methods can be, and branches as long as branches can be: they fit before instrumentation and not
//! after it.

use std::fmt::Write;

use headwater_tests::jdks;

#[path = "support/assembly.rs"]
mod assembly;
#[path = "support/comparison.rs"]
mod comparison;

use assembly::assembled;
use comparison::{Program, check};

/// The longest branch forwards.
const FORWARDS: u32 = 32_767;
/// The longest branch backwards.
const BACKWARDS: u32 = 32_768;
/// What is inserted before a return of a class's first method, and what instrumentation adds to one with one return: the
/// probes take or leave their token in a low local variable, push id 0 and call; the handler throws on.
const PROBE: u32 = 5;
const ALL_PROBES: u32 = 3 * PROBE + 1;

/// A method's code in the making, in Krakatau's language.
#[derive(Default)]
struct Code {
    text: String,
    size: u32,
    /// Whether there are frames: there are none before version 50.
    frames: bool,
    /// A local that always holds an int.
    int_local: u32,
}

impl Code {
    fn new(version: u32) -> Code {
        Code { frames: version > 50, ..Code::default() }
    }

    /// Instructions, separated by bars.
    fn ops(&mut self, instructions: &str) -> &mut Code {
        for instruction in instructions.split('|').map(str::trim) {
            writeln!(self.text, "        {instruction}").expect("memory");
            self.size += size(instruction);
        }
        self
    }

    fn label(&mut self, label: &str) -> &mut Code {
        writeln!(self.text, "{label}:").expect("memory");
        self
    }

    fn frame(&mut self, locals: &str, stack: &str) -> &mut Code {
        if self.frames {
            let text = &mut self.text;
            writeln!(text, ".stack full\n    locals {locals}\n    stack {stack}\n.end stack").expect("memory");
        }
        self
    }

    fn catch(&mut self, line: &str) -> &mut Code {
        writeln!(self.text, "        .catch {line}").expect("memory");
        self
    }

    /// Fills up to that offset.
    fn pad_to(&mut self, offset: u32) -> &mut Code {
        let missing = offset.checked_sub(self.size).unwrap_or_else(|| panic!("{} is past {offset}", self.size));
        // The longest instruction that does nothing, for short texts.
        const LONG: u32 = 6;
        for _ in 0..missing / LONG {
            writeln!(self.text, "        wide iinc {} 0", self.int_local).expect("memory");
        }
        for _ in 0..missing % LONG {
            self.text.push_str("        nop\n");
        }
        self.size = offset;
        self
    }

    fn method(&self, head: &str, stack: u32, locals: u32) -> String {
        format!(
            ".method public {head}\n    .code stack {stack} locals {locals}\n{}    .end code\n.end method\n",
            self.text
        )
    }
}

fn size(instruction: &str) -> u32 {
    let name = instruction.split(' ').next().expect("a word");
    match name {
        "wide" => {
            if instruction.starts_with("wide iinc") {
                6
            } else {
                4
            }
        }
        "bipush" | "ldc" | "istore" | "astore" | "aload" | "iload" | "lload" | "dload" | "ret" => 2,
        "sipush" | "goto" | "jsr" | "new" | "invokestatic" | "invokespecial" | "invokevirtual" | "iinc"
        | "anewarray" | "checkcast" | "ldc2_w" | "putfield" | "getfield" | "getstatic" | "instanceof" => 3,
        "goto_w" | "jsr_w" => 5,
        _ if name.starts_with("if") => 3,
        _ => 1,
    }
}

fn class(version: u32, name: &str, superclass: &str, methods: &str) -> String {
    format!(".version {version} 0\n.class public super {name}\n.super {superclass}\n{methods}.end class\n")
}

fn one_method(name: &str, version: u32, code: &Code, stack: u32, locals: u32) -> Program {
    let text = class(version, "Large", "java/lang/Object", &code.method("static large : (I)I", stack, locals));
    Program::new(&format!("{name}-{version}"), assembled(name, &text))
}

/// Conditions, and their operands, after [`setup`].
const CONDITIONS: [(&str, &str); 16] = [
    ("ifeq", "iload_0"),
    ("ifne", "iload_0"),
    ("iflt", "iload_0"),
    ("ifge", "iload_0"),
    ("ifgt", "iload_0"),
    ("ifle", "iload_0"),
    ("if_icmpeq", "iload_0 | iconst_2"),
    ("if_icmpne", "iload_0 | iconst_2"),
    ("if_icmplt", "iload_0 | iconst_2"),
    ("if_icmpge", "iload_0 | iconst_2"),
    ("if_icmpgt", "iload_0 | iconst_2"),
    ("if_icmple", "iload_0 | iconst_2"),
    ("if_acmpeq", "aload 6 | aload 7"),
    ("if_acmpne", "aload 6 | aload 7"),
    ("ifnull", "aload 6"),
    ("ifnonnull", "aload 6"),
];

/// Locals of many types behind the parameter: long, double, null, what a method gave, a string, an array of arrays.
fn setup(code: &mut Code) {
    code.ops("iload_0 | i2l | lstore_1 | iload_0 | i2d | dstore_3 | aconst_null | astore 5");
    code.ops("iload_0 | invokestatic Method Say text (I)Ljava/lang/String; | astore 6 | ldc 'text' | astore 7");
    code.ops("iconst_1 | anewarray [Ljava/lang/String; | astore 8");
}

/// What a frame may say of them that says less.
const LESS: &str =
    "Integer Long Double Top Object java/lang/Object Object java/lang/CharSequence Object [Ljava/lang/Object;";

/// Needs all that is known of those locals, and leaves an int.
fn use_locals(code: &mut Code) {
    code.ops("aload 5 | invokestatic Method Say count ([Ljava/lang/String;)I | aload 7");
    code.ops("invokevirtual Method java/lang/String length ()I | iadd | aload 8 | iconst_0 | aaload");
    code.ops(
        "invokestatic Method Say count ([Ljava/lang/String;)I | iadd | dload_3 | d2i | iadd | lload_1 | l2i | iadd",
    );
    code.ops("aload 6 | invokestatic Method Say length (Ljava/lang/String;)I | iadd");
}

/// A conditional branch forwards, with a return before its target, which is the only place with a frame. On the stack: an
/// object under construction, twice, and a long that a method gave.
fn forwards(condition: &(&str, &str), distance: u32, version: u32) -> Program {
    let mut code = Code::new(version);
    code.catch("java/lang/IllegalArgumentException from LTRY to LEND using LCATCH");
    setup(&mut code);
    code.label("LTRY").label("LNEW");
    code.ops("new java/lang/StringBuilder | dup | lload_1 | invokestatic Method java/lang/Math abs (J)J");
    code.ops(condition.1);
    let target = code.size + distance;
    code.ops(&format!("{} LFAR | pop2", condition.0));
    code.ops("invokespecial Method java/lang/StringBuilder <init> ()V | aload 7");
    code.ops("invokevirtual Method java/lang/StringBuilder append (Ljava/lang/String;)Ljava/lang/StringBuilder;");
    code.ops("invokevirtual Method java/lang/StringBuilder length ()I");
    use_locals(&mut code);
    code.ops("iadd | invokestatic Method Say check (I)I");
    code.pad_to(target - 1).ops("ireturn");
    code.label("LFAR").frame(LESS, "Uninitialized LNEW Uninitialized LNEW Long");
    code.ops("pop2 | invokespecial Method java/lang/StringBuilder <init> ()V | pop | iload_0 | bipush 100 | iadd");
    code.ops("bipush 101 | isub | invokestatic Method Say check (I)I").label("LEND").ops("ireturn");
    code.label("LCATCH").frame("Integer", "Object java/lang/IllegalArgumentException");
    code.ops("pop | bipush 55 | ireturn");
    one_method(&format!("forwards-{}-{distance}", condition.0), version, &code, 6, 9)
}

/// A conditional branch back to the head of a loop, with a return within the loop and a long on the stack.
fn backwards(condition: &(&str, &str), distance: u32, version: u32) -> Program {
    let mut code = Code::new(version);
    setup(&mut code);
    code.ops("lload_1");
    let head = code.size;
    // What the code behind the loop needs must be known in the loop.
    let locals = "Integer Long Double Null Object java/lang/String Object java/lang/String Object [[Ljava/lang/String;";
    code.label("LHEAD").frame(locals, "Long").ops("iinc 0 -1 | iload_0 | bipush -6 | if_icmpgt LON");
    code.ops("l2i | ireturn").label("LON").frame(locals, "Long");
    code.pad_to(head + distance - size_of(condition.1)).ops(condition.1);
    code.ops(&format!("{} LHEAD | l2i", condition.0));
    use_locals(&mut code);
    code.ops("iadd | invokestatic Method Say check (I)I | ireturn");
    one_method(&format!("backwards-{}-{distance}", condition.0), version, &code, 6, 9)
}

fn size_of(instructions: &str) -> u32 {
    instructions.split('|').map(|instruction| size(instruction.trim())).sum()
}

#[test]
fn conditional_branches_that_become_too_long() {
    let mut programs = Vec::new();
    for version in [52, 49] {
        for condition in &CONDITIONS {
            programs.push(forwards(condition, FORWARDS, version));
            programs.push(backwards(condition, BACKWARDS, version));
        }
        for less in 1..8 {
            programs.push(forwards(&CONDITIONS[0], FORWARDS - less, version));
            programs.push(backwards(&CONDITIONS[4], BACKWARDS - less, version));
        }
    }
    check(&jdks(), &programs);
}

/// The branch's other way is a return, and a probe is to be inserted there.
fn falls_into_return(version: u32) -> Program {
    let mut code = Code::new(version);
    code.ops("iload_0 | iload_0 | iconst_2 | if_icmpgt LFAR");
    let branch = code.size - 3;
    code.ops("ireturn").frame("Integer", "Integer").pad_to(branch + FORWARDS - 1).ops("ireturn");
    code.label("LFAR").frame("Integer", "Integer").ops("bipush 100 | iadd | ireturn");
    one_method("falls-into-return", version, &code, 3, 1)
}

/// A loop around all of the code.
fn back_to_the_beginning(branch: &str, version: u32) -> Program {
    let mut code = Code::new(version);
    code.label("LHEAD").frame("Integer", "").ops("iinc 0 -1 | iload_0 | iconst_m1 | if_icmpgt LON | iload_0 | ireturn");
    code.label("LON").frame("Integer", "").pad_to(BACKWARDS - if branch == "goto" { 0 } else { 1 });
    code.ops(if branch == "goto" { "goto LHEAD" } else { "iload_0 | ifge LHEAD | iload_0 | ireturn" });
    one_method(&format!("back-to-the-beginning-{branch}"), version, &code, 3, 1)
}

/// A branch of one instruction to the next, over an insertion, and a branch back to it: both ways at their limit.
fn both_ways(version: u32) -> Program {
    let mut code = Code::new(version);
    code.label("LHEAD")
        .frame("Integer", "")
        .ops("iload_0 | bipush 20 | if_icmpgt LFAR")
        .ops("iload_0 | ifeq LOUT | goto LON");
    code.label("LOUT").frame("Integer", "").ops("iconst_m1 | ireturn").label("LON").frame("Integer", "");
    code.ops("iinc 0 5").pad_to(FORWARDS).ops("goto LHEAD").pad_to(FORWARDS + 3);
    code.label("LFAR").frame("Integer", "").ops("iload_0 | ireturn");
    one_method("both-ways", version, &code, 3, 1)
}

fn subroutines(forwards: bool) -> Program {
    let mut code = Code::new(49);
    if forwards {
        code.ops("jsr LSUB | iload_0 | invokestatic Method Say check (I)I").pad_to(FORWARDS - 1).ops("ireturn");
        code.label("LSUB").ops("astore_1 | iinc 0 3 | ret 1");
    } else {
        code.ops("goto LMAIN").label("LSUB");
        code.ops("astore_1 | iinc 0 3 | iload_0 | iconst_5 | if_icmpne LBACK | bipush 55 | ireturn");
        code.label("LBACK").ops("ret 1").label("LMAIN").pad_to(BACKWARDS + 3).ops("jsr LSUB | iload_0 | ireturn");
    }
    one_method(if forwards { "jsr-forwards" } else { "jsr-backwards" }, 49, &code, 3, 2)
}

/// Its targets are more than 32 KiB away on both sides.
fn far_switch(version: u32) -> Program {
    let mut code = Code::new(version);
    code.ops("goto_w LSWITCH").label("LONE").frame("Integer", "").ops("bipush 11 | ireturn");
    code.frame("Integer", "").pad_to(33_001).label("LSWITCH").frame("Integer", "").ops("iload_0");
    code.text.push_str("        tableswitch 1\n            LONE\n            LTWO\n            default : LTHREE\n");
    code.size += 1 + (4 - code.size % 4) - 1 + 20;
    code.label("LTHREE").frame("Integer", "").ops("iload_0 | bipush 7 | if_icmpeq LAGAIN | iload_0 | ireturn");
    code.label("LAGAIN").frame("Integer", "").ops("iinc 0 -5 | goto LSWITCH").frame("Integer", "").pad_to(65_000);
    code.label("LTWO").frame("Integer", "").ops("bipush 22 | ireturn");
    one_method("far-switch", version, &code, 2, 1)
}

/// Branches that fit as long as those within their span stay as they are: each becomes too long by the one behind it.
fn chain(version: u32) -> Program {
    const LINKS: u32 = 60;
    // What a branch that was too long grows by, at least.
    const GROWTH: u32 = 5;
    let mut code = Code::new(version);
    for link in 0..LINKS {
        code.ops(&format!("iload_0 | ifgt LTARGET{link}"));
    }
    let distance = |link| {
        if link == LINKS - 1 { FORWARDS } else { FORWARDS - PROBE - GROWTH * (LINKS - 1 - link) + 1 }
    };
    code.ops("iload_0");
    let target = |link| 4 * link + 1 + distance(link);
    code.pad_to(target(0) - 1).ops("ireturn");
    for link in 0..LINKS {
        code.pad_to(target(link)).label(&format!("LTARGET{link}")).frame("Integer", "").ops("iinc 0 1");
    }
    code.ops("iload_0 | ireturn");
    one_method("chain", version, &code, 2, 1)
}

/// A switch between a branch and its target, and nothing else that could grow: its padding does, when what is before the
/// branch moves by other than a multiple of four. Its tables are long.
fn over_a_switch(alignment: u32, kind: &str, version: u32) -> Program {
    const CASES: u32 = 3000;
    let mut code = Code::new(version);
    code.ops("iload_0 | ifgt LFAR");
    let branch = code.size - 3;
    code.pad_to(100 + alignment - 1).ops("iload_0");
    code.size += 4 - code.size % 4;
    if kind == "tableswitch" {
        code.text.push_str("        tableswitch -1\n");
        code.size += 12 + 4 * CASES;
    } else {
        code.text.push_str("        lookupswitch\n");
        code.size += 8 + 8 * CASES;
    }
    for case in 0..CASES {
        let key = if kind == "tableswitch" { String::new() } else { format!("{} : ", i64::from(case) * 7 - 7) };
        writeln!(code.text, "            {key}{}", ["LONE", "LTWO", "LFAR"][case as usize % 3]).expect("memory");
    }
    code.text.push_str("            default : LTWO\n");
    code.label("LTWO").frame("Integer", "").ops("iinc 0 5").label("LONE").frame("Integer", "").ops("iinc 0 7");
    code.pad_to(branch + FORWARDS).label("LFAR").frame("Integer", "").ops("iload_0 | ireturn");
    let first = Code::new(version).ops("return").method("static first : ()V", 0, 0);
    let methods = first + &code.method("static large : (I)I", 2, 1);
    let name = format!("over-a-{kind}-{alignment}-{version}");
    Program::new(&name, assembled(&name, &class(version, "Large", "java/lang/Object", &methods)))
}

#[test]
fn switches_whose_padding_changes() {
    let mut programs = Vec::new();
    for version in [52, 49] {
        for alignment in 0..4 {
            programs.push(over_a_switch(alignment, "tableswitch", version));
            programs.push(over_a_switch(alignment, "lookupswitch", version));
        }
    }
    check(&jdks(), &programs);
}

#[test]
fn long_branches_of_every_kind() {
    let mut programs = vec![subroutines(true), subroutines(false)];
    for version in [52, 49] {
        programs.push(falls_into_return(version));
        programs.push(back_to_the_beginning("goto", version));
        programs.push(back_to_the_beginning("ifge", version));
        programs.push(both_ways(version));
        programs.push(far_switch(version));
        programs.push(chain(version));
        programs.push(constructor(version));
        programs.push(long_goto(version));
    }
    check(&jdks(), &programs);
}

/// gotos in both directions at their limit, with an object under construction on the stack.
fn long_goto(version: u32) -> Program {
    let mut code = Code::new(version);
    code.label("LNEW").ops("new java/lang/StringBuilder | iload_0 | iflt LNEGATIVE | goto LFAR");
    let branch = code.size - 3;
    code.label("LNEGATIVE").frame("Integer", "Uninitialized LNEW").ops("iload_0");
    code.pad_to(branch + FORWARDS - 1).ops("ireturn");
    code.label("LFAR").frame("Integer", "Uninitialized LNEW");
    code.ops("dup | invokespecial Method java/lang/StringBuilder <init> ()V");
    code.ops("invokevirtual Method java/lang/StringBuilder length ()I | iload_0 | iadd | ireturn");
    one_method("long-goto", version, &code, 3, 1)
}

/// A branch over the call of `super(...)` to another one.
fn constructor(version: u32) -> Program {
    let mut code = Code::new(version);
    code.int_local = 1;
    code.ops("aload_0 | iload_1 | ifgt LFAR");
    let branch = code.size - 3;
    code.ops("lconst_1 | invokespecial Method Base <init> (J)V | iload_1 | invokestatic Method Say check (I)I | pop");
    code.pad_to(branch + FORWARDS - 1).ops("return");
    code.label("LFAR").frame("UninitializedThis Integer", "UninitializedThis");
    code.ops(
        "iload_1 | invokespecial Method Base <init> (I)V | aload_0 | iload_1 | putfield Field Base value I | return",
    );
    let text = class(version, "Large", "Base", &code.method("<init> : (I)V", 3, 2));
    let name = format!("constructor-{version}");
    Program::new(&name, assembled(&name, &text))
}

/// As large as that.
fn of_size(size: u32, version: u32) -> Program {
    let mut code = Code::new(version);
    code.ops("iload_0 | invokestatic Method Say check (I)I | pop").pad_to(size - 2).ops("iload_0 | ireturn");
    let mut program = one_method(&format!("of-size-{size}"), version, &code, 1, 1);
    if size + ALL_PROBES > 65_535 {
        program.refused.push(("Large.large(I)I".to_owned(), "code-too-large".to_owned()));
    }
    program
}

/// A branch that grows too long where halves of a long and a double have been overwritten: what is behind it gets a frame.
fn over_halves(version: u32) -> Program {
    let mut code = Code::new(version);
    code.ops("lconst_1 | lstore_1 | dconst_1 | dstore_3 | iload_0 | istore_1 | lconst_1 | lstore_2 | iload_0");
    let target = code.size + FORWARDS;
    code.ops("ifgt LFAR | iload_1 | lload_2 | l2i | iadd | invokestatic Method Say check (I)I");
    code.pad_to(target - 1).ops("ireturn").label("LFAR").frame("Integer", "").ops("iload_0 | ireturn");
    one_method("over-halves", version, &code, 4, 5)
}

#[test]
fn halves_of_longs_that_are_overwritten_are_in_no_frame() {
    check(&jdks(), &[over_halves(52), over_halves(49)]);
}

/// Large enough that there is room for the probes, but not for a longer branch.
fn no_room_for_longer_branches(version: u32) -> Program {
    let mut code = Code::new(version);
    code.ops("iload_0 | ifgt LFAR | iload_0").pad_to(FORWARDS).ops("ireturn").label("LFAR").frame("Integer", "");
    code.pad_to(65_535 - ALL_PROBES - PROBE - 2).ops("iload_0 | ireturn");
    let mut program = one_method("no-room-for-longer-branches", version, &code, 1, 1);
    program.refused.push(("Large.large(I)I".to_owned(), "code-too-large".to_owned()));
    program
}

#[test]
fn methods_of_the_largest_size() {
    let mut programs = vec![no_room_for_longer_branches(52), no_room_for_longer_branches(49)];
    for version in [52, 49] {
        for less in [0, 6, 15, 16, 17, 20, 64] {
            programs.push(of_size(65_535 - less, version));
        }
    }
    check(&jdks(), &programs);
}
