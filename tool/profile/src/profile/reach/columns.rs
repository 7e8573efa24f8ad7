//! Lists as columns: what differs little from line to line is next to nothing once it is compressed.

use headwater_terms::reach::{Obstacle, Trigger, Way};
use serde::{Deserialize, Serialize};

use super::{Cause, Moment};
use crate::profile::MethodIndex;

/// Causes; a zero is none, and all else is one more.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Causes {
    by: Vec<u32>,
    way: Vec<Way>,
    through: Vec<u32>,
}

fn one_more(index: Option<usize>) -> u32 {
    index.and_then(|index| u32::try_from(index).ok()?.checked_add(1)).unwrap_or(0)
}

fn one_less(number: u32) -> Option<usize> {
    number.checked_sub(1).map(|index| index as usize)
}

impl Causes {
    fn of<'a>(causes: impl Iterator<Item = &'a Cause>) -> Causes {
        let mut columns = Causes::default();
        for cause in causes {
            columns.by.push(one_more(cause.by.map(|by| by.0)));
            columns.way.push(cause.way);
            columns.through.push(one_more(cause.through));
        }
        columns
    }

    /// A column that is too short has nothing more to say.
    fn get(&self, at: usize) -> Cause {
        Cause {
            by: self.by.get(at).copied().and_then(one_less).map(MethodIndex),
            way: self.way.get(at).copied().unwrap_or_default(),
            through: self.through.get(at).copied().and_then(one_less),
        }
    }
}

/// Moments, each as what it differs from the one before by.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Moments {
    ms: Vec<i64>,
    batches: Vec<i64>,
}

impl Moments {
    fn of(moments: impl Iterator<Item = Moment>) -> Moments {
        let (mut columns, mut before) = (Moments::default(), Moment::default());
        for moment in moments {
            columns.ms.push(i64::from(moment.recorded_ms) - i64::from(before.recorded_ms));
            columns.batches.push(i64::from(moment.batches) - i64::from(before.batches));
            before = moment;
        }
        columns
    }

    fn read(&self) -> Vec<Moment> {
        let (mut ms, mut batches) = (0_i64, 0_i64);
        let number = |value: i64| value.clamp(0, u32::MAX.into()) as u32;
        let all = self.ms.iter().zip(&self.batches);
        all.map(|(ms_more, batches_more)| {
            (ms, batches) = (ms.wrapping_add(*ms_more), batches.wrapping_add(*batches_more));
            Moment { recorded_ms: number(ms), batches: number(batches) }
        })
        .collect()
    }
}

pub(super) mod reached {
    use serde::{Deserializer, Serializer};

    use super::super::Reached;
    use super::{Causes, Deserialize, Moments, Obstacle, Serialize, Trigger};

    #[derive(Default, Serialize, Deserialize)]
    #[serde(default)]
    struct Columns {
        causes: Causes,
        was_unnamed: Vec<bool>,
        trigger: Vec<Trigger>,
        found: Moments,
        /// Whether it has had probes; of those that have, when they came.
        is_probed: Vec<bool>,
        probed: Moments,
        lacks: Vec<Option<Obstacle>>,
    }

    pub(in super::super) fn serialize<S: Serializer>(rows: &[Reached], to: S) -> Result<S::Ok, S::Error> {
        Columns {
            causes: Causes::of(rows.iter().map(|row| &row.cause)),
            was_unnamed: rows.iter().map(|row| row.was_unnamed).collect(),
            trigger: rows.iter().map(|row| row.trigger).collect(),
            found: Moments::of(rows.iter().map(|row| row.found)),
            is_probed: rows.iter().map(|row| row.probed.is_some()).collect(),
            probed: Moments::of(rows.iter().filter_map(|row| row.probed)),
            lacks: rows.iter().map(|row| row.lacks).collect(),
        }
        .serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Reached>, D::Error> {
        let columns = Columns::deserialize(from)?;
        let (found, mut probed) = (columns.found.read(), columns.probed.read().into_iter());
        let row = |at: usize| Reached {
            cause: columns.causes.get(at),
            was_unnamed: columns.was_unnamed.get(at).copied().unwrap_or_default(),
            trigger: columns.trigger.get(at).copied().unwrap_or_default(),
            found: found.get(at).copied().unwrap_or_default(),
            probed: columns.is_probed[at].then(|| probed.next().unwrap_or_default()),
            lacks: columns.lacks.get(at).copied().flatten(),
        };
        Ok((0..columns.is_probed.len()).map(row).collect())
    }

    #[cfg(test)]
    mod tests {
        use super::super::super::{Cause, Moment, Reach};
        use super::*;
        use crate::profile::MethodIndex;
        use headwater_terms::reach::Way;

        fn rows() -> Vec<Reached> {
            let at = |recorded_ms, batches| Moment { recorded_ms, batches };
            let root = Cause { way: Way::Root, ..Cause::default() };
            let callee = Cause { by: Some(MethodIndex(0)), way: Way::Virtual, through: Some(0) };
            vec![
                Reached { cause: root, probed: Some(at(0, 1)), ..Reached::default() },
                Reached {
                    cause: callee,
                    trigger: Trigger::Entered,
                    found: at(70, 1),
                    lacks: Some(Obstacle::Limits),
                    ..Reached::default()
                },
                Reached {
                    cause: callee,
                    was_unnamed: true,
                    found: at(30, 1),
                    probed: Some(at(90, 2)),
                    ..Reached::default()
                },
            ]
        }

        #[test]
        fn what_is_written_is_read() {
            let classes = ["a.b.C", "a.b.C$D", "a.b.Ć", "z"].map(str::to_owned).to_vec();
            let reach = Reach { types: vec!["T".into()], methods: rows(), classes, ..Reach::default() };
            assert!(reach.holds(3) && !reach.holds(2));
            let mut circle = reach.clone();
            circle.methods[0].cause.by = Some(MethodIndex(2));
            assert!(!circle.holds(3));
            let bytes = rmp_serde::to_vec_named(&reach).expect("facts");
            assert_eq!(rmp_serde::from_slice::<Reach>(&bytes).expect("as written"), reach);
        }

        #[test]
        fn what_a_later_version_knows_is_unknown_and_no_error() {
            let later = serde_json::json!({ "methods": {
                "causes": { "by": [0], "way": ["Telepathy"], "through": [7] },
                "trigger": ["Eclipse"], "is_probed": [false, true], "lacks": ["Moonlight"],
            } });
            let reach: Reach =
                rmp_serde::from_slice(&rmp_serde::to_vec_named(&later).expect("facts")).expect("readable");
            let [first, second] = reach.methods[..] else { panic!("{:?}", reach.methods) };
            assert_eq!((first.cause.way, first.trigger), (Way::Unknown, Trigger::Later));
            assert_eq!((first.lacks, second.probed), (Some(Obstacle::Unknown), Some(Moment::default())));
            assert!(!reach.holds(2), "a type is not there");
        }
    }
}

pub(super) mod unprobed {
    use serde::{Deserializer, Serializer};

    use super::super::Unprobed;
    use super::{Causes, Deserialize, Obstacle, Serialize};

    #[derive(Default, Serialize, Deserialize)]
    #[serde(default)]
    struct Columns {
        #[serde(with = "super::names")]
        machine: Vec<String>,
        why: Vec<Obstacle>,
        causes: Causes,
    }

    pub(in super::super) fn serialize<S: Serializer>(rows: &[Unprobed], to: S) -> Result<S::Ok, S::Error> {
        Columns {
            machine: rows.iter().map(|row| row.machine.clone()).collect(),
            why: rows.iter().map(|row| row.why).collect(),
            causes: Causes::of(rows.iter().map(|row| &row.cause)),
        }
        .serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Unprobed>, D::Error> {
        let Columns { machine, why, causes } = Columns::deserialize(from)?;
        let row = |(at, machine): (usize, String)| Unprobed {
            machine,
            why: why.get(at).copied().unwrap_or_default(),
            cause: causes.get(at),
        };
        Ok(machine.into_iter().enumerate().map(row).collect())
    }
}

/// Names in their order: of each, how many characters it shares with the one before, and the rest.
pub(super) mod names {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// No profile has more of them: what a file says must not make us ask for all memory.
    const MOST_BYTES: usize = 1 << 28;

    #[derive(Default, Serialize, Deserialize)]
    #[serde(default)]
    struct Columns {
        shared: Vec<u32>,
        rest: Vec<String>,
    }

    pub(in super::super) fn serialize<S: Serializer>(names: &[String], to: S) -> Result<S::Ok, S::Error> {
        let (mut columns, mut before) = (Columns::default(), "");
        for name in names {
            let same = name.chars().zip(before.chars()).take_while(|(one, other)| one == other);
            let (mut shared, mut bytes) = (0, 0);
            same.for_each(|(character, _)| (shared, bytes) = (shared + 1, bytes + character.len_utf8()));
            columns.shared.push(shared);
            columns.rest.push(name[bytes..].to_owned());
            before = name;
        }
        columns.serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
        let Columns { shared, rest } = Columns::deserialize(from)?;
        let mut names: Vec<String> = Vec::new();
        let mut bytes = 0_usize;
        for (shared, rest) in shared.into_iter().zip(rest) {
            let before = names.last().map(String::as_str).unwrap_or_default();
            let name: String = before.chars().take(shared as usize).chain(rest.chars()).collect();
            bytes = bytes.saturating_add(name.len());
            if bytes > MOST_BYTES {
                return Err(Error::custom("it has too many names"));
            }
            names.push(name);
        }
        Ok(names)
    }
}
