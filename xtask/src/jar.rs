//! Jars: their classes, and copies of them with other classes.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use zip::result::ZipResult;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::rewriting::ClassBytes;

/// How changed classes are packed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packing {
    /// As they were.
    Same,
    /// Not at all, which is quick.
    Stored,
}

#[derive(Debug)]
pub(crate) struct Jar {
    path: PathBuf,
    archive: ZipArchive<BufReader<File>>,
}

impl Jar {
    pub(crate) fn open(path: &Path) -> Result<Jar, String> {
        let file = File::open(path).map_err(|error| format!("{}: {error}; give an existing jar", path.display()))?;
        let archive = ZipArchive::new(BufReader::new(file))
            .map_err(|error| format!("{}: not a jar ({error}); `unzip -t` says more", path.display()))?;
        Ok(Jar { path: path.to_owned(), archive })
    }

    /// All class files, those of multi-release jars' versions too, in the order of the names.
    pub(crate) fn classes(&mut self) -> Result<Vec<ClassBytes>, String> {
        let mut classes = Vec::new();
        for index in 0..self.archive.len() {
            let class = self.class(index).map_err(|error| format!("{}: {error}", self.path.display()))?;
            classes.extend(class);
        }
        classes.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(classes)
    }

    /// An entry, if it is a class file.
    fn class(&mut self, index: usize) -> ZipResult<Option<ClassBytes>> {
        let mut entry = self.archive.by_index(index)?;
        let name = entry.name()?.into_owned();
        if !name.ends_with(".class") {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        Ok(Some(ClassBytes { name, bytes }))
    }

    /// Writes a jar with these classes instead of its own, and every other entry as it is, except signatures, which would
    /// be wrong: their names are returned.
    pub(crate) fn write(mut self, to: &Path, changed: &[ClassBytes], packing: Packing) -> Result<Vec<String>, String> {
        let file = File::create(to).map_err(|error| format!("{}: {error}", to.display()))?;
        let mut writer = ZipWriter::new(BufWriter::new(file));
        let signatures = self
            .copy(&mut writer, changed, packing)
            .and_then(|signatures| writer.finish()?.flush().map(|()| signatures).map_err(Into::into))
            .map_err(|error| format!("{}: {error}", to.display()))?;
        Ok(signatures)
    }

    fn copy<W: Write + std::io::Seek>(
        &mut self,
        writer: &mut ZipWriter<W>,
        changed: &[ClassBytes],
        packing: Packing,
    ) -> ZipResult<Vec<String>> {
        let mut signatures = Vec::new();
        for index in 0..self.archive.len() {
            let entry = self.archive.by_index_raw(index)?;
            let name = entry.name()?.into_owned();
            if let Ok(place) = changed.binary_search_by(|class| class.name.as_str().cmp(&name)) {
                let method = match packing {
                    Packing::Same => entry.compression(),
                    Packing::Stored => CompressionMethod::Stored,
                };
                let mut options = SimpleFileOptions::default().compression_method(method);
                options = options.last_modified_time(entry.last_modified().unwrap_or_default());
                writer.start_file(name, options)?;
                writer.write_all(&changed[place].bytes)?;
            } else if !changed.is_empty() && is_signature(&name) {
                signatures.push(name);
            } else {
                writer.raw_copy_file(entry)?;
            }
        }
        Ok(signatures)
    }
}

/// As the jar specification names them, directly in META-INF.
fn is_signature(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let Some(file) = upper.strip_prefix("META-INF/").filter(|file| !file.contains('/')) else { return false };
    file.starts_with("SIG-") || [".SF", ".RSA", ".DSA", ".EC"].iter().any(|extension| file.ends_with(extension))
}
