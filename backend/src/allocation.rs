//! What threads allocate, counted by probes that read [where HotSpot keeps it](crate::hotspot::allocation).

use crate::carriers::{self, Mounts};
use crate::hotspot::HotSpot;
use crate::hotspot::allocation::Unknown;
use crate::jni_env::Jni;
use crate::jvmti::Jvmti;
use crate::runtime::Runtime;

/// From now on it is counted.
pub fn begin((jvmti, jni): (Jvmti, Jni), hotspot: &HotSpot, runtime: &Runtime, mounts: Mounts) -> Result<(), String> {
    let described = hotspot.allocation.as_ref().ok_or(Unknown::Undescribed);
    let places = described.and_then(|described| described.tried(jvmti, jni)).map_err(|unknown| unknown.to_string())?;
    carriers::begin(jvmti, mounts).map_err(|error| Unknown::Mounts(error).to_string())?;
    runtime.count_allocation(jni, places).map_err(|thrown| thrown.to_string())
}
