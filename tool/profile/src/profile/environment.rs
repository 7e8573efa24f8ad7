//! Where a profile comes from.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Where, when and how a profile was recorded. Empty or zero is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The version of Headwater.
    pub headwater: String,
    /// The host's name.
    pub host: String,
    /// How many processors this process could use.
    pub processors: u32,
    /// The command line of this process.
    pub command: Vec<String>,
    /// When recording began, in seconds since 1970 (UTC).
    pub started_s: u64,
}

impl Environment {
    /// This process, at the end of a recording of this length.
    pub fn here(recorded: Duration) -> Environment {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        Environment {
            headwater: env!("CARGO_PKG_VERSION").to_owned(),
            // A host that does not tell its name stays unnamed.
            host: std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned(),
            processors: u32::try_from(processors).unwrap_or(u32::MAX),
            command: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            started_s: now.saturating_sub(recorded).as_secs(),
        }
    }

    /// When recording began, as `2026-01-31T12:00:00Z`; `None` if that is unknown.
    pub fn started(&self) -> Option<String> {
        if self.started_s == 0 {
            return None;
        }
        let time = UNIX_EPOCH.checked_add(Duration::from_secs(self.started_s))?;
        // A time past the year 9999 has no such form.
        let mut text = String::new();
        std::fmt::Write::write_fmt(&mut text, format_args!("{}", humantime::format_rfc3339_seconds(time))).ok()?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_written_as_in_rfc_3339() {
        let started = |started_s| Environment { started_s, ..Environment::default() }.started();
        assert_eq!(started(0), None);
        assert_eq!(started(1_800_000_000).as_deref(), Some("2027-01-15T08:00:00Z"));
        assert_eq!(started(u64::MAX), None);
        assert_eq!(started(300_000_000_000), None);
    }

    #[test]
    fn recording_began_before_it_ended() {
        let now = Environment::here(Duration::ZERO).started_s;
        let before = Environment::here(Duration::from_secs(3_600)).started_s;
        assert!(before <= now - 3_599 && before >= now - 3_601);
    }
}
