//! What the JDK's classes can call at all: the names and descriptors in their constant pools, without a redefinition. These are read here, because
//! the agent does not carry the rewriter, which reads class files.

use std::collections::HashSet;

use headwater_protocol::LoaderId;
use headwater_protocol::message::mention;
use jni::sys::jclass;

use crate::classes::Classes;
use crate::jni_env::Jni;
use crate::jvmti::{Error, Jvmti};

/// What all loaded classes of the JDK mention, linked or not.
pub fn list(jvmti: Jvmti, jni: Jni, classes: &Classes) -> Result<Vec<u64>, Error> {
    let mut mentions = HashSet::new();
    for class in jvmti.loaded_classes()? {
        // A class that fails here is an array, or being unloaded.
        if is_of_jdk(jvmti, jni, classes, class)
            && let Ok(pool) = jvmti.constant_pool(class)
        {
            add(&pool, &mut mentions);
        }
        jni.delete_local(class);
    }
    Ok(mentions.into_iter().collect())
}

fn is_of_jdk(jvmti: Jvmti, jni: Jni, classes: &Classes, class: jclass) -> bool {
    let Ok(loader) = jvmti.class_loader(class) else { return true };
    let id = classes.loader_id(jni, loader);
    jni.delete_local(loader);
    id.map_or(true, LoaderId::is_jdk)
}

/// Adds what a constant pool mentions (JVMS 4.4), as far as it can be read.
fn add(pool: &[u8], mentions: &mut HashSet<u64>) {
    let (mut texts, mut pairs) = (vec![&[][..]], Vec::new());
    let mut rest = pool;
    while let Some(behind) = entry(rest, &mut texts, &mut pairs) {
        rest = behind;
    }
    let text = |index: &u16| texts.get(usize::from(*index)).copied();
    mentions.extend(pairs.iter().filter_map(|(name, descriptor)| Some(mention(text(name)?, text(descriptor)?))));
}

/// Reads an entry: what stands behind it. Strings are kept by their index, of names with descriptors the indexes of both.
fn entry<'p>(pool: &'p [u8], texts: &mut Vec<&'p [u8]>, pairs: &mut Vec<(u16, u16)>) -> Option<&'p [u8]> {
    const UTF8: u8 = 1;
    const LONG: u8 = 5;
    const DOUBLE: u8 = 6;
    const NAME_AND_TYPE: u8 = 12;
    let (tag, content) = pool.split_first()?;
    let short = |at: usize| Some(u16::from_be_bytes([*content.get(at)?, *content.get(at + 1)?]));
    let mut text: &[u8] = &[];
    let length = match *tag {
        UTF8 => {
            let length = 2 + usize::from(short(0)?);
            text = content.get(2..length)?;
            length
        }
        // Classes, strings, method types, modules, packages; method handles.
        7 | 8 | 16 | 19 | 20 => 2,
        15 => 3,
        LONG | DOUBLE => {
            // They take two indexes.
            texts.push(&[]);
            8
        }
        NAME_AND_TYPE => {
            pairs.push((short(0)?, short(2)?));
            4
        }
        _ => 4,
    };
    texts.push(text);
    content.get(length..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_names_and_descriptors_are_read() {
        // A long, the name, a class, the descriptor, the pair, and one that nothing stands behind.
        let mut pool = vec![5, 0, 0, 0, 0, 0, 0, 0, 9, 1, 0, 3];
        pool.extend(b"get");
        pool.extend([7, 0, 3, 1, 0, 3]);
        pool.extend(b"()I");
        pool.extend([12, 0, 3, 0, 5, 12, 0, 3, 0, 99]);
        let mut mentions = HashSet::new();
        add(&pool, &mut mentions);
        assert_eq!(mentions, HashSet::from([mention(b"get", b"()I")]));
        for length in 0..pool.len() {
            // What is cut off is not there, and no more.
            let mut fewer = HashSet::new();
            add(&pool[..length], &mut fewer);
            assert!(fewer.is_subset(&mentions));
        }
    }
}
