//! All that is read of HotSpot beyond its documented interfaces.
//!
//! It makes profiles gentler and quicker, and none of it is needed for correct counts of calls; without [`allocation`] bytes are not counted. Each is used in JDKs that are known to be as it expects, and
//! only where a test in the JVM at hand has shown that it holds; the tool is told of each. In a JDK that is not known everything
//! rests on JVMTI and JNI alone.
//!
//! Why so, and at what cost: docs/decisions/agent.md.

use headwater_protocol::message::{Internal, Standing};

use crate::jni_env::Jni;
use crate::jvmti::Jvmti;

pub mod allocation;
pub mod behind_code;
pub mod causes;
pub mod collectors;
pub mod heap;
pub mod invocations;
pub mod parameters;
mod perf_data;
pub mod stopped;
pub mod type_profiles;
mod vm_structs;

use allocation::Allocation;
use behind_code::BehindCode;
use invocations::Invocations;
use parameters::Parameters;
use type_profiles::TypeProfiles;
use vm_structs::{Description, Memory};

/// The first JDK whose hotswaps keep the names of parameters (JDK-8240908), so that they need not be read.
const FIRST_TO_KEEP_NAMES: u32 = 19;

/// The first JDK that keeps the class file of the latest redefinition (JDK-7124710), so that it need not be compared with what runs.
pub const FIRST_TO_FOLLOW: u32 = 20;

/// What holds in this JVM.
#[derive(Debug)]
pub struct HotSpot {
    /// How often methods have been called.
    pub invocations: Option<Invocations>,
    /// What virtual calls have been made on.
    pub type_profiles: Option<TypeProfiles>,
    /// Names and flags of parameters, where hotswaps would lose them.
    pub parameters: Option<Parameters>,
    /// How exceptions are handled and call sites linked, where a class may run something else than the class file that the JVM has kept.
    pub behind_code: Option<BehindCode>,
    /// How much threads have allocated, as far as it is described: to be [tried](Allocation::tried) first.
    pub allocation: Option<Allocation>,
    standings: Vec<(Internal, Standing)>,
}

impl HotSpot {
    /// Tries each; changes nothing.
    pub fn find(jvmti: Jvmti, jni: Jni) -> HotSpot {
        let version = feature_version(jvmti);
        let keeps_names = version.is_none_or(|version| version >= FIRST_TO_KEEP_NAMES);
        let follows = version.is_none_or(|version| version >= FIRST_TO_FOLLOW);
        let memory = Memory::open().filter(|_| version.is_some_and(|version| Internal::KNOWN_JDKS.contains(&version)));
        let described = memory.as_ref().map(Description::read);
        let Some((memory, described)) = memory.as_ref().zip(described.as_ref()) else {
            return HotSpot::unknown(keeps_names, follows);
        };
        let invocations = Invocations::find(memory, described, (jvmti, jni));
        let type_profiles = TypeProfiles::find(memory, described, (jvmti, jni));
        let behind_code = if follows { None } else { behind_code(memory, described, (jvmti, jni)) };
        let parameters = behind_code.clone().filter(|_| !keeps_names).map(Parameters);
        let allocation = Allocation::find(memory, described);
        // Some collectors have no counters: then nobody says who collects.
        collectors::find(memory, described);
        let standing = |holds| if holds { Standing::Holds } else { Standing::Failed };
        let standings = vec![
            (Internal::InvocationCounters, standing(invocations.is_some())),
            (Internal::TypeProfiles, standing(type_profiles.is_some())),
            (Internal::SafepointTime, standing(stopped::find(memory, described))),
            (Internal::ParameterNames, if keeps_names { Standing::NotNeeded } else { standing(parameters.is_some()) }),
            (Internal::RunningCode, if follows { Standing::NotNeeded } else { standing(behind_code.is_some()) }),
            (Internal::AllocatedBytes, if allocation.is_some() { Standing::Untested } else { Standing::Failed }),
            (Internal::CollectionCauses, standing(causes::find(memory, described))),
            (Internal::HeapPools, standing(heap::find(memory, described))),
        ];
        HotSpot { invocations, type_profiles, parameters, behind_code, allocation, standings }
    }

    fn unknown(keeps_names: bool, follows: bool) -> HotSpot {
        let standing = |internal| match internal {
            Internal::ParameterNames if keeps_names => (internal, Standing::NotNeeded),
            Internal::RunningCode if follows => (internal, Standing::NotNeeded),
            _ => (internal, Standing::UnknownJdk),
        };
        let standings = Internal::ALL.map(standing).to_vec();
        HotSpot {
            invocations: None,
            type_profiles: None,
            parameters: None,
            behind_code: None,
            allocation: None,
            standings,
        }
    }

    /// How each stands.
    pub fn standings(&self) -> Vec<(Internal, Standing)> {
        self.standings.clone()
    }
}

/// Finds out what stands behind methods' code, by a class that has some of each kind.
fn behind_code(memory: &Memory, described: &Description, (jvmti, jni): (Jvmti, Jni)) -> Option<BehindCode> {
    let class = jni.find_class("java/lang/Class").ok()?;
    let found = BehindCode::find(memory, described, (jvmti, class));
    jni.delete_local(class);
    found
}

/// Finds what the JVM says of its collections, and nothing else: their [causes] and [collectors], and how much of the [heap] is in use. Whether it does.
pub fn find_collections(jvmti: Jvmti) -> bool {
    let is_known = feature_version(jvmti).is_some_and(|version| Internal::KNOWN_JDKS.contains(&version));
    Memory::open().filter(|_| is_known).is_some_and(|memory| {
        let described = Description::read(&memory);
        causes::find(&memory, &described);
        collectors::find(&memory, &described);
        heap::find(&memory, &described)
    })
}

/// The JVM's: 17, 25.
fn feature_version(jvmti: Jvmti) -> Option<u32> {
    jvmti.system_property("java.vm.specification.version")?.parse().ok()
}
