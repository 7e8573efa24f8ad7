use super::*;
use crate::profile::testing::{Random, profile_of, random_tree, with_links};
use crate::profile::{Column, NodeIndex, SampledRoot};

fn bytes_of(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(profile, &mut bytes).expect("memory takes it");
    bytes
}

fn random_profile(seed: u64) -> Profile {
    let methods = 1 + seed as usize % 9;
    let threads = (0..seed % 4).map(|thread| random_tree(seed * 31 + thread, 300, methods)).collect();
    profile_of(random_tree(seed, 300, methods), threads, methods)
}

/// What reading says, without what the file would be called.
fn complaint(bytes: &[u8]) -> String {
    read(&mut &bytes[..]).expect_err("is no snapshot").to_string()
}

#[test]
fn a_profile_comes_back_as_it_was() {
    for seed in 0..100 {
        let mut profile = random_profile(seed);
        if seed % 2 == 0 {
            profile.merged = with_links(profile.merged, 3);
            for thread in &mut profile.threads {
                thread.tree = with_links(std::mem::take(&mut thread.tree), 2 + seed as usize);
            }
        }
        assert_eq!(read(&mut &bytes_of(&profile)[..]).expect("readable"), profile, "seed {seed}");
    }
}

#[test]
fn a_tree_of_several_blocks_comes_back() {
    let chain = |length: usize| {
        let nodes = (0..length).map(|index| crate::profile::Node {
            parent: index.checked_sub(1 + index % 3).map(crate::profile::NodeIndex),
            calls: u64::MAX - index as u64,
            total_ns: index as u64 * 7,
            self_ns: u64::MAX,
            ..crate::profile::Node::empty(crate::profile::MethodIndex(index % 2))
        });
        Tree::of(nodes.collect())
    };
    for length in [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5] {
        let profile = profile_of(chain(length), vec![chain(length / 2)], 2);
        assert_eq!(read(&mut &bytes_of(&profile)[..]).expect("readable"), profile);
    }
}

#[test]
fn the_only_threads_tree_is_not_stored_twice() {
    let tree = random_tree(3, 2_000, 50);
    let one = bytes_of(&profile_of(tree.clone(), vec![tree.clone()], 50));
    let none = bytes_of(&profile_of(tree, Vec::new(), 50));
    assert!(one.len() < none.len() + 100, "{} and {}", one.len(), none.len());
}

#[test]
fn samples_come_back_if_their_nodes_are_there() {
    let tree = random_tree(3, 200, 50);
    let last = tree.nodes.len() - 1;
    for (node, threads, is_whole) in
        [(last, Vec::new(), true), (last, vec![tree.clone()], true), (last + 1, Vec::new(), false)]
    {
        let root = SampledRoot {
            node: NodeIndex(0),
            samples: 8,
            chance_ns: u64::MAX,
            unsettled_ns: u64::MAX,
            unplaced_ns: u64::MAX,
        };
        let sampled = Sampled::of(vec![root], [(NodeIndex(7), 0), (NodeIndex(9), u32::MAX), (NodeIndex(node), 5)]);
        let mut profile = profile_of(tree.clone(), threads, 50);
        profile.merged.sampled = sampled;
        let found = read(&mut &bytes_of(&profile)[..]);
        assert_eq!(found.as_ref().ok() == Some(&profile), is_whole, "{node}");
        crate::report::flat::flat(&profile, &profile.merged);
    }
}

#[test]
fn every_truncation_is_noticed() {
    let bytes = bytes_of(&random_profile(6));
    for length in 0..bytes.len() {
        let found = read(&mut &bytes[..length]);
        match length {
            0 => assert!(matches!(found, Err(Damage::Foreign { .. })), "{found:?}"),
            _ => assert!(matches!(found, Err(Damage::Truncated { at }) if at == length as u64), "{length}: {found:?}"),
        }
    }
}

#[test]
fn a_changed_bit_is_noticed_wherever_it_is() {
    let bytes = bytes_of(&random_profile(2));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(read(&mut &changed[..]).is_err(), "byte {at}");
    }
}

#[test]
fn random_damage_is_noticed() {
    let bytes = bytes_of(&random_profile(7));
    let mut random = Random::new(1);
    for _ in 0..3_000 {
        let mut changed = bytes.clone();
        match random.below(4) {
            0 => {
                let (a, b) = (random.below(bytes.len() as u64) as usize, random.below(bytes.len() as u64) as usize);
                changed.drain(a.min(b)..a.max(b));
            }
            1 => {
                let at = random.below(bytes.len() as u64) as usize;
                changed.splice(at..at, (0..random.below(40)).map(|_| 7_u8).collect::<Vec<u8>>());
            }
            2 => changed.extend((0..1 + random.below(9)).map(|_| 0)),
            _ => {
                for _ in 0..1 + random.below(20) {
                    let at = random.below(bytes.len() as u64) as usize;
                    changed[at] = random.draw() as u8;
                }
            }
        }
        assert!(changed == bytes || read(&mut &changed[..]).is_err());
    }
}

#[test]
fn hostile_frames_are_refused_even_with_the_right_checksum() {
    // What a frame says of itself can be anything: only its content is damaged here, and its checksum is right.
    let mut random = Random::new(5);
    for seed in 0..300 {
        let profile = random_profile(1 + seed % 20);
        let facts = rmp_serde::to_vec_named(&FactsRef {
            profile: &profile,
            layout: Layout {
                columns: usual_columns(),
                merged_nodes: Some(random.draw() >> random.below(64)),
                thread_nodes: vec![3; profile.threads.len()],
                handed: vec![vec![random.draw() >> random.below(64)]; random.below(3) as usize],
                sampled: Sampled::default(),
            },
        })
        .expect("facts");
        let mut bytes = Vec::new();
        let mut frames = FrameWriter::start(&mut bytes).expect("memory");
        frames.write(Tag::Facts, &facts).expect("memory");
        for _ in 0..random.below(4) {
            let content: Vec<u8> = (0..random.below(200)).map(|_| (random.draw() >> random.below(64)) as u8).collect();
            frames.write(Tag::Nodes, &content).expect("memory");
        }
        assert!(read(&mut &bytes[..]).is_err(), "there is no end");
    }
}

#[test]
fn every_error_says_what_to_do() {
    assert_eq!(
        complaint(b""),
        "is no snapshot: it is empty. Snapshots are written by `headwater profile ... -o run.hw`"
    );
    assert!(complaint(b"{\"schema\":\"headwater/1\"}").contains("it looks like JSON"));
    assert!(complaint(b"FLR\0........").contains("Flight Recorder"));
    assert!(complaint(&[0x7F; 100]).starts_with("is no snapshot. Snapshots are"));
    let bytes = bytes_of(&random_profile(1));
    assert_eq!(
        complaint(&bytes[..100]),
        "is incomplete: it ends at byte 100, in the middle of the profile. Was it cut off by a full disk, or while it was \
         copied? Copy it again from where it was written"
    );
    let mut changed = bytes.clone();
    *changed.last_mut().expect("a byte") ^= 1;
    assert_eq!(
        complaint(&changed),
        format!(
            "is damaged: before byte {}, its checksum is wrong. Copy it again from where it was written, as a binary file",
            bytes.len()
        )
    );
    let as_text = String::from_utf8_lossy(&bytes).into_owned();
    assert!(complaint(as_text.as_bytes()).contains("transferred as text"), "{}", complaint(as_text.as_bytes()));
    let unix: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'\r').collect();
    assert!(complaint(&unix).contains("line feeds have been changed"), "{}", complaint(&unix));
    let mut twice = bytes.clone();
    twice.extend(&bytes);
    assert!(complaint(&twice).contains("something follows its end"));
}

#[test]
fn a_later_layout_is_named_with_its_writer() {
    let mut later = MAGIC.to_vec();
    later.extend([9, 0, 6]);
    later.extend(b"12.3.4 and what nobody knows yet");
    assert_eq!(
        complaint(&later),
        format!(
            "was written by Headwater 12.3.4, in snapshot layout 9; this is Headwater {}, which reads layouts up to 2. Use \
             Headwater 12.3.4 or later",
            env!("CARGO_PKG_VERSION")
        )
    );
}

#[test]
fn what_is_intact_and_makes_no_sense_is_not_called_damaged() {
    let file_with = |facts: &[u8]| {
        let mut bytes = Vec::new();
        let mut frames = FrameWriter::start(&mut bytes).expect("memory");
        frames.write(Tag::Facts, facts).expect("memory");
        frames.write(Tag::End, &[]).expect("memory");
        bytes
    };
    let nothing = rmp_serde::to_vec_named(&serde_json::json!({ "profile": {} })).expect("facts");
    assert_eq!(
        complaint(&file_with(&nothing)),
        format!(
            "is intact, but cannot be understood: its facts are malformed (missing field `target`). Headwater {0} wrote it, this is \
             Headwater {0}; report it with the version that wrote it",
            env!("CARGO_PKG_VERSION")
        )
    );
    let unknown: [fn(&mut Profile) -> &mut usize; 6] = [
        |profile| &mut profile.roots[0].methods[0].0,
        |profile| &mut profile.at_least[0].method.0,
        |profile| &mut profile.unseen[0].method.0,
        |profile| &mut profile.unseen[0].callers[0].0.0,
        |profile| &mut profile.lengthened[0].root.0,
        |profile| {
            &mut profile.reach.as_mut().expect("it has all parts").others[0].cause.by.as_mut().expect("so has this").0
        },
    ];
    for method in unknown {
        let mut profile = random_profile(4);
        *method(&mut profile) = 1_000;
        let layout = Layout {
            columns: usual_columns(),
            merged_nodes: Some(0),
            thread_nodes: vec![0; profile.threads.len()],
            handed: Vec::new(),
            sampled: Sampled::default(),
        };
        let facts = rmp_serde::to_vec_named(&FactsRef { profile: &profile, layout }).expect("facts");
        assert!(complaint(&file_with(&facts)).contains("it speaks of methods that it does not name"));
    }
}

#[test]
fn facts_of_later_versions_are_passed_over_and_missing_ones_have_defaults() {
    let mut profile = random_profile(8);
    let mut facts: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(
        &serde_json::to_vec(&FactsRef {
            profile: &Profile {
                clock: crate::profile::Clock { outer_spread_ns: 1.0, ..profile.clock },
                ..profile.clone()
            },
            layout: Layout {
                columns: usual_columns(),
                merged_nodes: Some(0),
                thread_nodes: vec![0; profile.threads.len()],
                handed: Vec::new(),
                sampled: Sampled::default(),
            },
        })
        .expect("JSON"),
    )
    .expect("an object");
    let known = facts["profile"].as_object_mut().expect("an object");
    known.insert("moon_phase".into(), "waxing".into());
    assert!(known.remove("environment").is_some() && known.remove("statistics").is_some());
    let mut bytes = Vec::new();
    let mut frames = FrameWriter::start(&mut bytes).expect("memory");
    frames.write(Tag::Facts, &rmp_serde::to_vec_named(&facts).expect("facts")).expect("memory");
    frames.write(Tag::End, &[]).expect("memory");
    let found = read(&mut &bytes[..]).expect("readable");
    profile.environment = crate::profile::Environment::default();
    assert_eq!((found.environment, found.statistics), (profile.environment, Vec::new()));
    assert_eq!(found.target, profile.target);
}

#[test]
fn a_file_is_written_whole_and_found_again() {
    let scratch = headwater_tests::Scratch::new("snapshot");
    let file = scratch.file("run.hw");
    let profile = random_profile(5);
    save(&profile, &file).expect("written");
    assert_eq!(load(&file).expect("readable"), profile);
    let missing = load(&scratch.file("gone.hw")).expect_err("not there").to_string();
    assert!(
        missing.starts_with("cannot open ") && missing.ends_with("No such file or directory (os error 2)"),
        "{missing}"
    );
    let directory = load(scratch.path()).expect_err("a directory").to_string();
    assert!(directory.contains("is a directory"), "{directory}");
}

#[test]
fn metrics_of_earlier_files_have_the_names_that_they_have_now() {
    let mut profile = whole_profile();
    profile.counted[0].id = "allocated".into();
    let mut bytes = Vec::new();
    write(&profile, &mut bytes).expect("memory takes it");
    let read = read(&mut &bytes[..]).expect("readable");
    assert_eq!((&*read.counted[0].id, &read.merged), (ALLOCATED, &profile.merged));
}

/// A profile in which everything that a layout has occurs.
fn whole_profile() -> Profile {
    use crate::profile::{Extent, Unit};
    let tree = |seed| {
        let mut tree = with_links(random_tree(seed, 40, 5), 5);
        let of = |factor: u64, nodes: &[crate::profile::Node]| {
            Column::of(nodes, nodes.iter().map(|node| (node.calls * factor, node.thrown)))
        };
        tree.counted = vec![of(1_000, &tree.nodes), Column::of(&tree.nodes, (0..).map(|node| (node, 0)))];
        tree
    };
    let mut profile = profile_of(tree(11), vec![tree(12), tree(13)], 5);
    let bytes = Metric::counted("made-up", "made-up bytes", Unit::Bytes, Extent::OwnAndTotal, "What a test says.");
    let things = Metric::counted("odd-things", "odd things", Unit::Count, Extent::Own, "What a test counts.");
    profile.counted = vec![bytes.uncertain(), things];
    // Facts that came after this layout's file was written.
    (profile.unseen, profile.lengthened, profile.tracks, profile.reach) = (Vec::new(), Vec::new(), Vec::new(), None);
    profile.clock.object_ns = 0.0;
    profile
}

fn golden(version: u16) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/layout-{version}.hw"))
}

/// What is in a file: the facts' fields, by their paths, the columns' names, and the blocks.
fn parts(bytes: &[u8]) -> (std::collections::BTreeSet<String>, Vec<String>, Vec<Vec<u8>>) {
    fn collect(value: &serde_json::Value, path: &str, paths: &mut std::collections::BTreeSet<String>) {
        paths.insert(path.to_owned());
        match value {
            serde_json::Value::Object(fields) => {
                fields.iter().for_each(|(name, value)| collect(value, &format!("{path}.{name}"), paths));
            }
            serde_json::Value::Array(values) => {
                values.iter().for_each(|value| collect(value, &format!("{path}[]"), paths));
            }
            _ => {}
        }
    }
    let mut input = bytes;
    let mut frames = FrameReader::start(&mut input).expect("a snapshot");
    let facts: serde_json::Value = rmp_serde::from_slice(frames.read(Tag::Facts).expect("facts")).expect("fields");
    let mut paths = std::collections::BTreeSet::new();
    collect(&facts, "", &mut paths);
    let columns = facts["layout"]["columns"].as_array().map(Vec::as_slice).unwrap_or_default();
    let columns = columns.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    let layout = &facts["layout"];
    let trees = layout["merged_nodes"].as_u64().into_iter();
    let trees = trees.chain(layout["thread_nodes"].as_array().expect("threads").iter().filter_map(|it| it.as_u64()));
    let blocks: u64 = trees.map(|nodes| nodes.div_ceil(BLOCK as u64)).sum();
    let blocks = (0..blocks).map(|_| frames.read(Tag::Nodes).expect("a block").to_vec()).collect();
    (paths, columns, blocks)
}

/// Whoever changes what is written raises [`VERSION`], and keeps the files of the versions before.
#[test]
fn the_layout_changes_only_with_its_version() {
    let file = golden(VERSION);
    if !file.exists() && std::env::var_os("HEADWATER_GOLDEN").is_some_and(|value| value == "write") {
        save(&whole_profile(), &file).expect("the golden file");
    }
    for version in 1..=VERSION {
        load(&golden(version)).unwrap_or_else(|error| panic!("layout {version}: {error}"));
    }
    let golden = std::fs::read(&file).expect("the golden file of this version");
    assert_eq!(
        read(&mut &golden[..]).expect("readable"),
        read(&mut &bytes_of(&whole_profile())[..]).expect("readable")
    );
    let ((fields, columns, blocks), (new_fields, new_columns, new_blocks)) =
        (parts(&golden), parts(&bytes_of(&whole_profile())));
    assert_eq!((columns, blocks), (new_columns, new_blocks), "the layout has changed: VERSION must be raised");
    let gone: Vec<&String> = fields.difference(&new_fields).collect();
    assert!(gone.is_empty(), "fields are gone, and older files have them: {gone:?}");
}

#[test]
fn a_later_versions_column_is_passed_over() {
    let profile = whole_profile();
    let known = read(&mut &bytes_of(&profile)[..]).expect("readable");
    // As a version that knows less reads it: of one metric less.
    let less = Profile { counted: vec![profile.counted[1].clone()], ..profile.clone() };
    let layout = Layout {
        columns: columns::names(&profile.counted),
        merged_nodes: Some(profile.merged.nodes.len() as u64),
        thread_nodes: profile.threads.iter().map(|thread| thread.tree.nodes.len() as u64).collect(),
        handed: stored(&profile).map(links::differences).collect(),
        sampled: profile.merged.sampled.clone(),
    };
    let mut bytes = Vec::new();
    let mut frames = FrameWriter::start(&mut bytes).expect("memory");
    let facts = rmp_serde::to_vec_named(&FactsRef { profile: &less, layout }).expect("facts");
    frames.write(Tag::Facts, &facts).expect("memory");
    for block in parts(&bytes_of(&profile)).2 {
        frames.write(Tag::Nodes, &block).expect("memory");
    }
    frames.write(Tag::End, &[]).expect("memory");
    let read = read(&mut &bytes[..]).expect("readable");
    assert_eq!(read.merged.nodes, known.merged.nodes);
    assert_eq!(read.merged.counted, known.merged.counted[1..]);
}

#[test]
fn tracks_are_what_a_profile_can_have() {
    let mut profile = profile_of(random_tree(1, 50, 3), Vec::new(), 3);
    profile.tracks[0].title = "x\u{1b}]0;y".into();
    let read = |profile: &Profile| {
        let mut bytes = Vec::new();
        write(profile, &mut bytes).expect("memory takes it");
        read(&mut &bytes[..])
    };
    assert_eq!(read(&profile).expect("readable").tracks[0].title, "x\\u001b]0;y");
    let refused = |change: fn(&mut Vec<Track>)| {
        let mut changed = profile.clone();
        change(&mut changed.tracks);
        assert!(read(&changed).is_err());
    };
    refused(|tracks| tracks[0].id = "no id".into());
    refused(|tracks| tracks[1].id = tracks[0].id.clone());
    refused(|tracks| tracks[0].slices[0].amounts.push(Some(1)));
}
