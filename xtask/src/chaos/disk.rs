//! A disk that is full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::machine::call;

/// A file system in memory without room for one more byte. It is unmounted with this.
#[derive(Debug)]
pub(super) struct FullDisk(PathBuf);

impl FullDisk {
    /// Only root can mount it: nothing, where we are not.
    pub(super) fn mount(at: &Path) -> Result<Option<FullDisk>, String> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        fs::create_dir_all(at).map_err(|error| format!("{}: {error}", at.display()))?;
        call(Command::new("mount").args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"]).arg(at))?;
        let disk = FullDisk(at.to_owned());
        // It takes what there is room for, and fails with the rest.
        let _ = fs::write(at.join("full"), [0; 64 * 1024]);
        Ok(Some(disk))
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _ = call(Command::new("umount").arg(&self.0));
    }
}
