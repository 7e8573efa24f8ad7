//! Other readers of class files, whose opinion is asked of what we have written: cafebabe, classfile-parser and javap.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;

use cafebabe::attributes::{AttributeData, AttributeInfo, CodeData};
use classfile_parser::attribute_info::{AttributeInfo as RawAttribute, code_attribute_parser};
use classfile_parser::code_attribute::code_parser;
use classfile_parser::constant_info::ConstantInfo;
use headwater_rewriter::{ClassFile, Code};
use headwater_tests::Jdk;

/// What a reader sees in a method's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub instructions: Vec<u32>,
    /// Start, end, handler.
    pub exceptions: Vec<[u32; 3]>,
    /// Start, line.
    pub lines: Vec<[u32; 2]>,
    /// Start, length, index.
    pub variables: Vec<[u32; 3]>,
}

/// Methods that both have looked at, and those that the other could not read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub agreed: usize,
    pub skipped: usize,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.agreed += other.agreed;
        self.skipped += other.skipped;
    }
}

/// What we see, method by method; only those with code.
pub fn ours(bytes: &[u8]) -> Vec<Seen> {
    let class = ClassFile::parse(bytes).expect("we wrote it");
    let codes = class.methods().iter().filter_map(|method| class.code(method).expect("we wrote it"));
    codes.map(|code| of_code(&class, &code)).collect()
}

fn of_code(class: &ClassFile<'_>, code: &Code<'_>) -> Seen {
    let variables = code.variables(class).expect("we wrote it");
    Seen {
        instructions: code.instructions().map(|instruction| instruction.offset).collect(),
        exceptions: code.exceptions().map(|range| [range.start, range.end, range.handler]).collect(),
        lines: code.lines(class).expect("we wrote it").iter().map(|line| [line.start, line.line.into()]).collect(),
        variables: variables.iter().map(|one| [one.start, one.length, one.index.into()]).collect(),
    }
}

/// Compares with cafebabe, which rejects some sound classes (dynamic constants, lone surrogates) and panics at others.
pub fn cafebabe(name: &str, bytes: &[u8], ours: &[Seen]) -> Tally {
    let Ok(Ok(class)) = catch_unwind(AssertUnwindSafe(|| cafebabe::parse_class(bytes))) else {
        return Tally { agreed: 0, skipped: ours.len() };
    };
    let codes =
        class.methods.iter().flat_map(|method| &method.attributes).filter_map(|attribute| match &attribute.data {
            AttributeData::Code(code) => Some(cafebabe_code(code)),
            _ => None,
        });
    let theirs: Vec<Seen> = codes.collect();
    assert!(theirs == ours, "{name}: cafebabe sees something else");
    Tally { agreed: ours.len(), skipped: 0 }
}

fn cafebabe_code(code: &CodeData<'_>) -> Seen {
    let mut seen = Seen::default();
    let opcodes = code.bytecode.iter().flat_map(|bytecode| &bytecode.opcodes);
    seen.instructions.extend(opcodes.map(|(offset, _)| *offset as u32));
    let exceptions = code.exception_table.iter();
    seen.exceptions.extend(exceptions.map(|row| [row.start_pc.into(), row.end_pc.into(), row.handler_pc.into()]));
    for AttributeInfo { data, .. } in &code.attributes {
        match data {
            AttributeData::LineNumberTable(rows) => {
                seen.lines.extend(rows.iter().map(|row| [row.start_pc.into(), row.line_number.into()]));
            }
            AttributeData::LocalVariableTable(rows) => {
                seen.variables
                    .extend(rows.iter().map(|row| [row.start_pc.into(), row.length.into(), row.index.into()]));
            }
            _ => {}
        }
    }
    seen
}

/// Compares instructions and exception tables with classfile-parser, which knows neither modules nor dynamic constants,
/// and stops reading code where it knows no opcode.
pub fn classfile_parser(name: &str, bytes: &[u8], ours: &[Seen]) -> Tally {
    let parsed = catch_unwind(AssertUnwindSafe(|| classfile_parser::parser::class_parser(bytes).ok()));
    let Ok(Some((_, class))) = parsed else { return Tally { agreed: 0, skipped: ours.len() } };
    let is_code = |attribute: &&RawAttribute| {
        let name = class.const_pool.get(usize::from(attribute.attribute_name_index).wrapping_sub(1));
        matches!(name, Some(ConstantInfo::Utf8(text)) if text.utf8_string == "Code")
    };
    let codes: Vec<&RawAttribute> =
        class.methods.iter().flat_map(|method| &method.attributes).filter(is_code).collect();
    assert_eq!(codes.len(), ours.len(), "{name}: classfile-parser sees other methods");
    let mut tally = Tally::default();
    for (raw, ours) in codes.iter().zip(ours) {
        let code = code_attribute_parser(&raw.info).ok().map(|(_, code)| code);
        let read = code.and_then(|code| {
            let instructions = code_parser(&code.code).ok()?.1;
            Some((code.exception_table, instructions, code.code.len()))
        });
        let Some((exceptions, instructions, _)) = read.filter(|read| read.1.len() == ours.instructions.len()) else {
            tally.skipped += 1;
            continue;
        };
        let theirs: Vec<[u32; 3]> =
            exceptions.iter().map(|row| [row.start_pc.into(), row.end_pc.into(), row.handler_pc.into()]).collect();
        let offsets: Vec<u32> = instructions.iter().map(|(offset, _)| *offset as u32).collect();
        assert!(
            theirs == ours.exceptions && offsets == ours.instructions,
            "{name}: classfile-parser sees something else"
        );
        tally.agreed += 1;
    }
    tally
}

/// Compares with what `javap -v` prints of class files.
pub fn javap(jdk: &Jdk, files: &[PathBuf]) -> Tally {
    let output = Command::new(jdk.program("javap")).args(["-v", "-p"]).args(files).output().expect("javap starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let theirs: Vec<Seen> = text.split("\n    Code:\n").skip(1).map(javap_code).collect();
    let ours: Vec<Seen> = files.iter().flat_map(|file| ours(&std::fs::read(file).expect("a class file"))).collect();
    assert_eq!(theirs.len(), ours.len(), "javap sees other methods");
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!(theirs, ours, "javap sees something else");
    }
    Tally { agreed: ours.len(), skipped: 0 }
}

/// A method's code as `javap` prints it, up to the next method.
fn javap_code(text: &str) -> Seen {
    let mut seen = Seen::default();
    let mut section = "";
    for line in text.lines() {
        // What belongs to the Code attribute is indented by six.
        if !line.starts_with("      ") {
            break;
        }
        let line = line.trim();
        let numbers: Vec<u32> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        match line.split_once(':') {
            Some((name @ ("Exception table" | "LineNumberTable" | "LocalVariableTable"), "")) => section = name,
            Some((name, _)) if name.ends_with("Table") || name.ends_with("Annotations") => section = "other",
            Some((offset, rest)) if section.is_empty() => {
                let names = rest.trim_start().starts_with(|first: char| first.is_ascii_lowercase());
                seen.instructions.extend(offset.parse::<u32>().ok().filter(|_| names));
            }
            Some((line, offset)) if section == "LineNumberTable" => {
                let line = line.strip_prefix("line ").and_then(|line| line.parse().ok()).expect("a line's number");
                seen.lines.push([offset.trim().parse().expect("an offset"), line]);
            }
            _ if section == "Exception table" && numbers.len() >= 3 => {
                seen.exceptions.push([numbers[0], numbers[1], numbers[2]]);
            }
            _ if section == "LocalVariableTable" && numbers.len() >= 3 => {
                seen.variables.push([numbers[0], numbers[1], numbers[2]]);
            }
            _ => {}
        }
    }
    seen
}
