//! Names in a class file's constant pool (JVMS 4.4). For the class files of this crate: of others, wrong ones too, little is expected.

const UTF8: u8 = 1;
const LONG: u8 = 5;
const DOUBLE: u8 = 6;
/// Where the number of constants stands, behind the magic number and the version.
const COUNT: usize = 8;

/// The class file with other names: nothing in it says where anything is, so that constants may become shorter or longer.
pub(crate) fn renamed(class_file: &[u8], names: &[(&str, &str)]) -> Vec<u8> {
    let count = u16_at(class_file, COUNT);
    let mut at = COUNT + 2;
    let mut renamed = class_file[..at].to_vec();
    let mut index = 1;
    while index < count {
        let tag = class_file[at];
        let end = at + length(tag, class_file, at);
        let constant = &class_file[at..end];
        match names.iter().find(|(from, _)| tag == UTF8 && constant[3..] == *from.as_bytes()) {
            Some((_, to)) => {
                renamed.push(UTF8);
                renamed.extend((to.len() as u16).to_be_bytes());
                renamed.extend(to.as_bytes());
            }
            None => renamed.extend(constant),
        }
        at = end;
        // These two take two numbers.
        index += if matches!(tag, LONG | DOUBLE) { 2 } else { 1 };
    }
    renamed.extend(&class_file[at..]);
    renamed
}

/// Of a constant, with its tag, in bytes.
fn length(tag: u8, class_file: &[u8], at: usize) -> usize {
    match tag {
        UTF8 => 3 + usize::from(u16_at(class_file, at + 1)),
        LONG | DOUBLE => 9,
        // Class, String, MethodType, Module, Package.
        7 | 8 | 16 | 19 | 20 => 3,
        // MethodHandle.
        15 => 4,
        // Integer, Float, references, NameAndType, dynamic ones.
        _ => 5,
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::renamed;
    use crate::{CLASSES, FORMER_NAMES};

    #[test]
    fn names_are_other_ones_and_nothing_else_is() {
        let back = FORMER_NAMES.map(|(now, former)| (former, now));
        let mut changed = 0;
        for class in CLASSES {
            let former = class.with_former_names();
            assert!(renamed(&former, &back) == class.bytes, "{}", class.name);
            assert!(renamed(class.bytes, &[]) == class.bytes, "{}", class.name);
            changed += usize::from(former != class.bytes);
            for (now, _) in FORMER_NAMES {
                let name = [&[0, now.len() as u8], now.as_bytes()].concat();
                assert!(!former.windows(name.len()).any(|bytes| bytes == name), "{}: {now}", class.name);
            }
        }
        assert!(changed > 2, "{changed} classes use them");
    }
}
