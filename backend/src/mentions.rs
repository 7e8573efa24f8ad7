//! What the JDK's classes can call at all: the names and descriptors in their constant pools, and the texts, without a redefinition.

use std::collections::HashSet;

use headwater_protocol::LoaderId;
use headwater_protocol::message::{mention, mention_by_text};
use jni::sys::jclass;

use crate::classes::Classes;
use crate::connection::Connection;
use crate::constants::{self, Constant, NAME_AND_TYPE, STRING, UTF8, short};
use crate::jni_env::Jni;
use crate::jvmti::{Error, Jvmti};

/// What all loaded classes of the JDK mention, linked or not.
pub fn list(jvmti: Jvmti, jni: Jni, classes: &Classes, connection: &Connection) -> Result<Vec<u64>, Error> {
    let mut mentions = HashSet::new();
    for class in connection.attending(jvmti.loaded_classes()?) {
        // A class that fails here is an array, or being unloaded.
        if is_of_jdk(jvmti, jni, classes, class)
            && let Ok((_, pool)) = jvmti.constant_pool(class)
        {
            mentions.extend(of(&pool));
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

/// What a constant pool mentions (JVMS 4.4), as far as it can be read.
pub fn of(pool: &[u8]) -> HashSet<u64> {
    let mut read = Entries { texts: vec![&[]], ..Entries::default() };
    let mut rest = pool;
    while let Some(behind) = read.entry(rest) {
        rest = behind;
    }
    let text = |index: &u16| read.texts.get(usize::from(*index)).copied();
    let pairs = read.pairs.iter().filter_map(|(name, descriptor)| Some(mention(text(name)?, text(descriptor)?)));
    pairs.chain(read.strings.iter().filter_map(|string| mention_by_text(text(string)?))).collect()
}

/// What has been read of a constant pool.
#[derive(Default)]
struct Entries<'p> {
    /// By the index.
    texts: Vec<&'p [u8]>,
    /// Of names with descriptors the indexes of both.
    pairs: Vec<(u16, u16)>,
    /// Of string constants the indexes of their texts.
    strings: Vec<u16>,
}

impl<'p> Entries<'p> {
    /// Reads an entry: what stands behind it.
    fn entry(&mut self, pool: &'p [u8]) -> Option<&'p [u8]> {
        let (Constant { tag, content, indexes }, behind) = constants::split_first(pool)?;
        let mut text: &[u8] = &[];
        match tag {
            UTF8 => text = &content[2..],
            STRING => self.strings.push(short(content, 0)?),
            NAME_AND_TYPE => self.pairs.push((short(content, 0)?, short(content, 2)?)),
            _ => {}
        }
        self.texts.extend(std::iter::repeat_n(text, indexes));
        Some(behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_names_and_descriptors_are_read_and_texts() {
        // A long, the name, a class, the descriptor, the pair, one that nothing stands behind, and strings: of the name, and of what is none.
        let mut pool = vec![5, 0, 0, 0, 0, 0, 0, 0, 9, 1, 0, 3];
        pool.extend(b"get");
        pool.extend([7, 0, 3, 1, 0, 3]);
        pool.extend(b"()I");
        pool.extend([12, 0, 3, 0, 5, 12, 0, 3, 0, 99, 8, 0, 3, 8, 0, 5]);
        let mentions = of(&pool);
        assert_eq!(mentions, HashSet::from([mention(b"get", b"()I"), mention(b"get", b"")]));
        for length in 0..pool.len() {
            // What is cut off is not there, and no more.
            assert!(of(&pool[..length]).is_subset(&mentions));
        }
    }
}
