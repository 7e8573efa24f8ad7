//! What classes can call at all: the names and descriptors in their constant pools, without a redefinition.

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
fn add(pool: &[u8], mentions: &mut HashSet<u64>) -> Option<()> {
    const UTF8: u8 = 1;
    const NAME_AND_TYPE: u8 = 12;
    let mut texts: Vec<&[u8]> = vec![&[]];
    let mut pairs = Vec::new();
    let mut rest = pool;
    while let Some((tag, behind)) = rest.split_first() {
        let short = |at: usize| Some(usize::from(u16::from_be_bytes([*behind.get(at)?, *behind.get(at + 1)?])));
        let mut text: &[u8] = &[];
        let length = match *tag {
            UTF8 => {
                let length = 2 + short(0)?;
                text = behind.get(2..length)?;
                length
            }
            7 | 8 | 16 | 19 | 20 => 2,
            15 => 3,
            NAME_AND_TYPE => {
                pairs.push((short(0)?, short(2)?));
                4
            }
            // A long and a double are two entries.
            5 | 6 => {
                texts.push(&[]);
                8
            }
            _ => 4,
        };
        texts.push(text);
        rest = behind.get(length..)?;
    }
    mentions.extend(
        pairs.iter().filter_map(|(name, descriptor)| Some(mention(texts.get(*name)?, texts.get(*descriptor)?))),
    );
    Some(())
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
        assert_eq!(add(&pool, &mut mentions), Some(()));
        assert_eq!(mentions, HashSet::from([mention(b"get", b"()I")]));
        for length in 0..pool.len() {
            add(&pool[..length], &mut HashSet::new());
        }
    }
}
