//! The agent that this binary carries, and the name under which it goes into a target.

pub use headwater_protocol::files::{DIRECTORY_PREFIX, LIBRARY as FILE, SOCKET};

/// The agent's shared library.
pub static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/agent.so"));

/// The directory's name for a target: the same for every session of this build, because the dynamic linker knows the
/// agent by its path, and must not load it twice.
pub fn directory(pid: u32) -> String {
    format!("{DIRECTORY_PREFIX}{pid}-{:08x}", digest(LIBRARY))
}

/// FNV-1a, folded to 32 bits: tells builds apart.
fn digest(bytes: &[u8]) -> u32 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    (hash ^ hash >> 32) as u32
}

/// The directory under whose name an agent, of this build or another, is mapped into a process; `None` when there is none.
///
/// The file itself is long deleted: the name is what the dynamic linker knows it by.
pub fn loaded_directory(pid: u32) -> Option<String> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    maps.lines().find_map(|line| {
        let path = line.split_whitespace().nth(5)?;
        let directory = path.strip_suffix(FILE)?.strip_suffix('/')?.rsplit('/').next()?;
        directory.starts_with(DIRECTORY_PREFIX).then(|| directory.to_owned())
    })
}
