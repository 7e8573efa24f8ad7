use headwater_tests::recording::{Happened, recording, recording_of};

use super::*;

const RUN: [&str; 3] = ["a/b/C", "run", "()V"];
const DEEP: [&str; 3] = ["a/b/C", "deep", "(ILjava/lang/String;)V"];

#[test]
fn samples_have_their_time_thread_and_stack() {
    let samples = samples(&recording(4711, &[(5_000, &[DEEP, RUN]), (7_000, &[RUN])])).expect("a recording");
    assert_eq!(samples.methods, ["a.b.C.run()V", "a.b.C.deep(ILjava/lang/String;)V"]);
    let told = |sample: &Sample| {
        (sample.at_ns, sample.thread, sample.frames.iter().map(|frame| frame.0).collect::<Vec<_>>(), sample.is_cut)
    };
    let expected = [(5_000, 4711, vec![0, 1], false), (7_000, 4711, vec![0], false)];
    assert_eq!(samples.stacks.iter().map(told).collect::<Vec<_>>(), expected);
}

#[test]
fn chunks_follow_one_another_with_constants_of_their_own() {
    let chunks = [recording(1, &[(1_000, &[RUN])]), recording(2, &[(2_000, &[DEEP])])].concat();
    let samples = samples(&chunks).expect("a recording");
    assert_eq!(samples.methods.len(), 2);
    assert_eq!(samples.stacks.iter().map(|sample| sample.thread).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn what_is_no_recording_is_refused() {
    let chunk = recording(1, &[(1_000, &[RUN])]);
    assert_eq!(samples(&[]), Ok(Samples::default()));
    assert_eq!(samples(b"FLUR"), Err(ReadError::NoChunk { at: 0 }));
    assert_eq!(samples(&[&chunk[..], b"FLUR"].concat()), Err(ReadError::NoChunk { at: chunk.len() }));
    for size in [0, -1, 67] {
        assert_eq!(samples(&of_size(&chunk, size)), Err(ReadError::NoChunk { at: 0 }), "{size}");
    }
}

fn of_size(chunk: &[u8], size: i64) -> Vec<u8> {
    [&chunk[..8], &size.to_be_bytes(), &chunk[16..]].concat()
}

#[test]
fn where_a_recording_is_cut_off_is_its_end() {
    let chunk = recording(1, &[(1_000, &[RUN])]);
    let length = chunk.len();
    for kept in [1, 4, 67] {
        let cut = ReadError::Cut { at: length + kept, begin: length, size: None };
        assert_eq!(samples(&[&chunk[..], &chunk[..kept]].concat()), Err(cut), "{kept}");
    }
    for size in [length as i64 + 1, i64::MAX] {
        let cut = ReadError::Cut { at: length, begin: 0, size: Some(size) };
        assert_eq!(samples(&of_size(&chunk, size)), Err(cut), "{size}");
    }
    let said = samples(&chunk[..length - 9]).expect_err("it is cut off").to_string();
    let expected =
        format!("it is cut off at byte {}, in a chunk that begins at byte 0 and has {length} bytes", length - 9);
    assert_eq!(said, expected);
}

#[test]
fn every_truncation_and_every_changed_byte_is_survived() {
    let chunk = recording(1, &[(1_000, &[DEEP, RUN])]);
    for at in 68..chunk.len() {
        let mut cut = chunk[..at].to_vec();
        cut[8..16].copy_from_slice(&(at as i64).to_be_bytes());
        // Events may be missing at the end: that is for others to notice.
        let _ = samples(&cut);
        for value in [0, 1, 0x7F, 0x80, 0xFF, chunk[at] ^ 1] {
            let mut changed = chunk.clone();
            changed[at] = value;
            let _ = samples(&changed);
        }
    }
}

#[test]
fn values_without_content_are_not_read_for_ever() {
    // Each class has four fields of the next one, and the last has none: 4^12 values, and not a byte.
    let element = |name: u8, attributes: &[u8], children: u8| {
        [&[name, attributes.len() as u8 / 2][..], attributes, &[children]].concat()
    };
    let strings: [&[u8]; 7] = [b"root", b"class", b"field", b"id", b"name", b"class", b"jdk.ExecutionSample"];
    let mut words: Vec<Vec<u8>> = strings.map(<[u8]>::to_vec).to_vec();
    words.extend((0..14).map(|class: u8| class.to_string().into_bytes()));
    let number = |class: u8| 7 + class;
    let mut tree = element(0, &[], 13);
    for class in 0..13 {
        let name = if class == 0 { 6 } else { number(class) };
        let fields = if class == 12 { 0 } else { 4 };
        tree.extend(element(1, &[3, number(class), 4, name], fields));
        for _ in 0..fields {
            tree.extend(element(2, &[5, number(class + 1)], 0));
        }
    }
    let mut metadata = vec![0, 0, 0, 0, words.len() as u8];
    words.iter().for_each(|word| metadata.extend([&[3, word.len() as u8], &word[..]].concat()));
    metadata.extend(tree);
    let size = metadata.len() + 4;
    let padded = [size as u8 | 0x80, (size >> 7) as u8 | 0x80, 0x80, 0];
    let mut chunk = b"FLR\0\0\x02\0\x01".to_vec();
    for field in [(68 + size + 2) as i64, 0, 68, 0, 0, 0, 1] {
        chunk.extend(field.to_be_bytes());
    }
    chunk.extend([0, 0, 0, 1]);
    chunk.extend([&padded[..], &metadata, &[2, 0]].concat());
    // An event of type 0 is passed over; a sample is of class 0 too.
    assert_eq!(samples(&chunk), Err(ReadError::Format("it has more values than bytes")));
}

#[test]
fn names_are_no_longer_than_a_recording_has_room_for() {
    let long = "x".repeat(10_000);
    let names: Vec<String> = (0..100).map(|number| format!("m{number}")).collect();
    let stack: Vec<[&str; 3]> = names.iter().map(|name| [long.as_str(), name, "()V"]).collect();
    let samples = samples(&recording(1, &[(1_000, &stack)]));
    assert_eq!(samples, Err(ReadError::Format("its names are too long")));
}

#[test]
fn equal_stacks_and_threads_are_one() {
    let happened =
        |kind, at_ns, stack| Happened { kind, at_ns, duration_ns: 2_000, amount: ("weight", 7), stack, lock: None };
    let events = [
        happened("jdk.ObjectAllocationSample", 1_000, &[DEEP, RUN]),
        happened("jdk.ThreadPark", 3_000, &[DEEP, RUN]),
        happened("jdk.Unheard", 4_000, &[DEEP, RUN]),
        happened("jdk.ThreadPark", 5_000, &[]),
    ];
    let chunk = recording_of(4711, &events);
    let told = recorded(&[&chunk[..], &chunk[..]].concat()).expect("a recording");
    assert_eq!(told.threads, [Thread { number: 4711, name: "main".to_owned(), is_virtual: false }]);
    let depths: Vec<usize> = told.stacks.iter().map(|stack| stack.frames.len()).collect();
    assert_eq!((depths, told.methods.len()), (vec![2, 0], 2));
    let of = |event: &RecordedEvent| (event.kind, event.at_ns, event.duration_ns, event.amount, event.stack.0);
    let expected = [
        (EventKind::AllocationSample, 1_000, 2_000, 7, 0),
        (EventKind::Park, 3_000, 2_000, 0, 0),
        (EventKind::Park, 5_000, 2_000, 0, 1),
    ];
    assert_eq!(told.events[..3].iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!(told.events.len(), 6);
    assert_eq!(samples(&chunk), Ok(Samples::default()));
}

#[test]
fn frames_are_told_apart_by_lines_where_that_is_asked_for() {
    let chunk = recording(1, &[(1_000, &[DEEP, RUN]), (2_000, &[RUN])]);
    let known = threads_at_work(&chunk, Lines::Known).expect("a recording");
    assert_eq!((known.methods.len(), &known.lines[..]), (2, &[7, 7][..]));
    let unknown = threads_at_work(&chunk, Lines::Unknown).expect("a recording");
    assert_eq!((unknown.methods, unknown.lines), (known.methods, Vec::new()));
}

#[test]
fn what_threads_have_allocated_is_no_event_with_a_place() {
    let allocated = Happened {
        kind: "jdk.ThreadAllocationStatistics",
        at_ns: 5_000,
        duration_ns: 0,
        amount: ("allocated", 1 << 20),
        stack: &[],
        lock: None,
    };
    let chunk = recording_of(4711, &[allocated]);
    let at_work = threads_at_work(&chunk, Lines::Unknown).expect("a recording");
    assert_eq!(at_work.allocated, [Allocated { at_ns: 5_000, thread: ThreadIndex(0), bytes: 1 << 20 }]);
    assert_eq!((at_work.events.len(), at_work.threads[0].number), (0, 4711));
    assert_eq!(
        recorded(&chunk).expect("a recording"),
        Recorded { begins_ns: at_work.begins_ns, ..Recorded::default() }
    );
}

#[test]
fn collections_are_told_once_however_often_they_are_read() {
    let collection = |at_ns, pauses| Happened {
        kind: "jdk.GarbageCollection",
        at_ns,
        duration_ns: 9_000,
        amount: ("sumOfPauses", pauses),
        stack: &[],
        lock: None,
    };
    let sample = |at_ns| Happened {
        kind: "jdk.ExecutionSample",
        at_ns,
        duration_ns: 0,
        amount: ("none", 0),
        stack: &[RUN],
        lock: None,
    };
    let read = |happened: &[Happened<'_>]| threads_at_work(&recording_of(1, happened), Lines::Unknown).expect("one");
    let of = |told: &Recorded| told.collections.iter().map(|it| (it.at_ns, it.pauses_ns)).collect::<Vec<_>>();
    let mut told = read(&[sample(1_000), collection(2_000, 3)]);
    assert_eq!((of(&told), told.collections[0].duration_ns), (vec![(2_000, 3_000)], 9_000));
    // It comes again, though it was later than the last sample; and one that began before that, and has ended just now.
    told.add(read(&[collection(2_000, 3), sample(5_000)]), 1_000);
    told.add(read(&[collection(4_000, 1)]), 5_000);
    assert_eq!(of(&told), [(2_000, 3_000), (4_000, 1_000)]);
    // Two JVMs' recordings in one file number them alike.
    let two = [recording_of(1, &[collection(2_000, 3)]), recording_of(2, &[collection(7_000, 4)])].concat();
    let two = recorded(&two).expect("two");
    assert_eq!(of(&two), [(2_000, 3_000), (7_000, 4_000)]);
}

#[test]
fn of_a_file_that_is_still_written_what_its_header_has_counts() {
    let chunk = recording(1, &[(1_000, &[RUN])]);
    let file = [&chunk[..], b"more"].concat();
    assert_eq!(chunk_since(&file, 0), Some(&chunk[..]));
    assert_eq!((chunk_since(&file, 2), chunk_since(&chunk[..40], 0)), (None, None), "it began at 1 ns");
    // One that the JVM has not brought up to date has a header, of that size, and events that nobody can read.
    let mut begun = file.clone();
    begun[SIZE_AT..SIZE_AT + 8].copy_from_slice(&(HEADER_BYTES as u64).to_be_bytes());
    begun[METADATA_AT..METADATA_AT + 8].fill(0);
    assert_eq!(chunk_since(&begun, 0), None);
    let both = [&chunk[..], &begun[..HEADER_BYTES]].concat();
    assert_eq!(recorded(&both).map(|it| it.events.len()), recorded(&chunk).map(|it| it.events.len()));
}

#[test]
fn samples_in_native_code_stand_for_the_threads_that_are_there() {
    const EXISTS: [&str; 3] = ["java/io/UnixFileSystem", "getBooleanAttributes0", "(Ljava/io/File;)I"];
    const POLL: [&str; 3] = ["sun/nio/ch/Net", "poll", "(Ljava/io/FileDescriptor;IJ)I"];
    let seen = |kind, at_ns, stack| Happened { kind, at_ns, duration_ns: 0, amount: ("none", 0), stack, lock: None };
    let native = |at_ns, stack| seen("jdk.NativeMethodSample", at_ns, stack);
    let works = [
        seen("jdk.ExecutionSample", 1_000, &[RUN]),
        native(2_000, &[EXISTS, RUN]),
        native(3_000, &[POLL, RUN]),
        native(4_000, &[EXISTS, RUN]),
        native(5_000, &[]),
    ];
    let waits = [native(2_500, &[POLL, RUN]), native(3_500, &[POLL, RUN]), native(4_500, &[POLL, RUN])];
    let of = |recording: &[u8]| {
        let samples = samples(recording).expect("a recording");
        let of = |sample: &Sample| (sample.at_ns, sample.is_native, sample.frames.len());
        samples.stacks.iter().map(of).collect::<Vec<_>>()
    };
    let one = recording_of(1, &works);
    assert_eq!(of(&one), [(1_000, false, 1), (2_000, true, 2), (4_000, true, 2)], "what waits says nothing");
    // Of two threads, each is seen in every other period.
    let two = [&one[..], &recording_of(2, &waits)].concat();
    let twice = [2_000, 2_000, 4_000, 4_000].map(|at_ns| (at_ns, true, 2));
    assert_eq!(of(&two), [&[(1_000, false, 1)], &twice[..]].concat());
    let at_work = threads_at_work(&two, Lines::Unknown).expect("a recording");
    assert_eq!(at_work.events.len(), 5);
}
