//! Readers that take bytes as they are.

use headwater::foreign;
use headwater_tests::random::Random;
use headwater_tests::recording::{Happened, recording, recording_of};

use super::Reader;
use crate::mutation::{change, changed};

/// One that takes bytes as they are.
pub(crate) struct Bytes {
    samples: Vec<Vec<u8>>,
    /// Of so many inputs one is made of the samples, which are large; the others of the first, which is small.
    one_in: usize,
    read: fn(&[u8]) -> bool,
    /// In all, and for each byte.
    most_bytes: (usize, usize),
}

impl Bytes {
    pub(crate) fn of_scripts() -> Bytes {
        const SCRIPTS: [&str; 6] = [
            "attach shop\nprofile com.acme.Cart::total --jdk edge\nwait 10s\ntree --min 1% > tree.txt\nsnapshot a.hw\ndetach\n",
            "profile a.B::c(int, String[]) a.B.d --scheme total\nwait until calls >= 1000 for 1m\npause\nresume\nclear\n",
            "expect calls of a.B::c >= 10\nexpect total of 'a.B::<init>' < 5ms\nexpect deadlocks == 0\nstop\n",
            "region a.B::c -d 10s --calls 5\nflat --sort self --format json >> \"out ${NAME:-x}.json\"\ncallers a.B::c\n",
            "methods a.b.*\nthread-dump --depth 3\nroots\nthreads\nstatus\necho done\nquit\n",
            "filter --include com.acme.* --exclude *.proxy.*\n# a comment\nhelp tree\n",
        ];
        Bytes {
            samples: SCRIPTS.map(|script| script.as_bytes().to_vec()).to_vec(),
            one_in: 1,
            read: |input| foreign::script(&String::from_utf8_lossy(input)),
            // The grammar of all commands, and a hundred errors, each drawn with the whole usage.
            most_bytes: (24 << 20, 1_000),
        }
    }

    pub(crate) fn of_recordings(mut samples: Vec<Vec<u8>>) -> Bytes {
        let stack = [["a/b/C", "deep", "(ILjava/lang/String;)V"], ["a/b/C", "run", "()V"]];
        samples.insert(0, recording(4711, &[(5_000, &stack), (7_000, &stack[1..]), (9_000, &stack)]));
        let wait = |kind, field| Happened {
            kind,
            at_ns: 5_000,
            duration_ns: 3_000,
            amount: ("none", 0),
            stack: &stack,
            lock: Some((field, "a/b/Guard", 16)),
        };
        let waits = [wait("jdk.JavaMonitorEnter", "monitorClass"), wait("jdk.ThreadPark", "parkedClass")];
        samples.insert(1, recording_of(4711, &waits));
        Bytes { samples, one_in: 200, read: foreign::recording, most_bytes: (1 << 20, 200) }
    }

    pub(crate) fn of_imports() -> Bytes {
        let stack = [["a/b/C", "deep", "()V"], ["a/b/C", "run", "()V"]];
        let happened = |kind, amount, stack| Happened {
            kind,
            at_ns: 5_000,
            duration_ns: 3_000,
            amount: (amount, 7),
            stack,
            lock: None,
        };
        let happened = [
            happened("jdk.ObjectAllocationSample", "weight", &stack[..]),
            happened("jdk.CPUTimeSample", "samplingPeriod", &stack[1..]),
            happened("jdk.SocketRead", "bytesRead", &stack),
            happened("jdk.GarbageCollection", "sumOfPauses", &[]),
            happened("jdk.ActiveSetting", "id", &[]),
        ];
        const IMPORTS: [&[u8]; 5] = [
            b"[main tid=7];java/lang/Thread.run_[j];com/acme/Shop.sell_[i];memcpy 3\na;b;c 12\na;b 1.5\n",
            br#"{"$schema":"speedscope","exporter":"headwater 1","shared":{"frames":[{"name":"a"},{"name":"b"}]},"profiles":[{"type":"evented","name":"[x]: y","unit":"bytes","startValue":0,"endValue":9,"events":[{"type":"O","frame":0,"at":0},{"type":"O","frame":1,"at":2},{"type":"C","frame":1,"at":5},{"type":"C","frame":0,"at":9}]}]}"#,
            br#"{"$schema":"speedscope","shared":{"frames":[{"name":"a"}]},"profiles":[{"type":"sampled","name":"x","unit":"seconds","startValue":0,"endValue":3,"samples":[[0],[0,0]],"weights":[1.5,2]}]}"#,
            br#"{"event":"connected","schema":"headwater-watch/1","time_ms":1,"host":"h","pid":7,"main":"a.jar","arguments":"","java":null,"vm":"v","system":"Linux","uid":0}
{"event":"trace","schema":"headwater-watch/1","time_ms":2,"host":"h","pid":7,"number":1,"took_ms":1.5,"whole":true,"threads":[{"order":1,"name":"main","kind":"java","java_id":1,"os_id":2,"daemon":false,"state":"RUNNABLE","doing":"runs a.b","idle":false,"cpu_ns":3,"allocated_bytes":4,"stack":0},{"order":2,"name":"GC Thread#0","kind":"vm","java_id":null,"os_id":3,"daemon":false,"state":"UNKNOWN","doing":"","idle":true,"cpu_ns":9,"allocated_bytes":null,"stack":null}],"stacks":[["a.b(A.java:1)","a.c(A.java:2)"]]}
{"event":"disconnected","schema":"headwater-watch/1","time_ms":3,"host":"h","pid":7,"reason":"ended"}
"#,
            // Two kinds of samples, a sample, two locations, a function, texts.
            b"\x0a\x04\x08\x01\x10\x02\x0a\x04\x08\x03\x10\x02\x12\x08\x0a\x02\x02\x01\x12\x02\x07\x09\x22\x06\x08\x01\x22\x02\x08\x01\x22\x06\x08\x02\x22\x02\x08\x01\x2a\x04\x08\x01\x10\x03\x32\x00\x32\x03cpu\x32\x05bytes\x32\x05alloc",
        ];
        Bytes {
            samples: IMPORTS.iter().map(|sample| sample.to_vec()).chain([recording_of(4711, &happened)]).collect(),
            one_in: 1,
            read: foreign::import,
            // The page, and the template of the flame graph.
            most_bytes: (16 << 20, 20_000),
        }
    }

    pub(crate) fn of_answers() -> Bytes {
        const ANSWERS: [&str; 3] = [
            " garbage-first heap   total 387072K, used 3456K [0x00000006, 0x00000008)\n  region size 2048K, 2 young (4096K), 0 survivors (0K)\n \
             Metaspace       used 128K, committed 320K, reserved 1114112K\n  class space    used 5K, committed 128K, reserved 1048576K\n",
            " ZHeap           used 8M, capacity 64M, max capacity 1228M\n Shenandoah Heap\n 64M max, 64M soft max, 64M committed, 3M used\n",
            "java.lang.Object/null\n|--a.Base/0x00007f09f02d3380\n|  implements a.First/0x1 (declared intf)\n|  |--a.b.C/0x2\n",
        ];
        Bytes {
            samples: ANSWERS.map(|answer| answer.as_bytes().to_vec()).to_vec(),
            one_in: 1,
            read: |input| foreign::answers(&String::from_utf8_lossy(input)),
            most_bytes: (1 << 16, 100),
        }
    }

    pub(crate) fn of_perf_data(samples: Vec<Vec<u8>>) -> Bytes {
        Bytes { samples, one_in: 1, read: foreign::perf_data, most_bytes: (1 << 16, 100) }
    }
}

impl Reader for Bytes {
    fn input(&mut self, random: &mut Random) -> Vec<u8> {
        let samples = if random.once_in(self.one_in) { &self.samples[..] } else { &self.samples[..1] };
        changed(samples, random)
    }

    fn read(&mut self, input: &[u8]) -> bool {
        (self.read)(input)
    }

    fn most_bytes(&self, input_bytes: usize) -> usize {
        self.most_bytes.0 + self.most_bytes.1 * input_bytes
    }
}

/// Dumps of all threads: HotSpot's text, a zero, and what the JVM tells of virtual threads.
pub(crate) struct Threads {
    texts: Vec<Vec<u8>>,
    jsons: Vec<Vec<u8>>,
}

impl Threads {
    pub(crate) fn new() -> Threads {
        let texts: [&[u8]; 5] = [
            include_bytes!("../../../tool/threads/src/tests/jdk11.txt"),
            include_bytes!("../../../tool/threads/src/tests/jdk17.txt"),
            include_bytes!("../../../tool/threads/src/tests/jdk21.txt"),
            include_bytes!("../../../tool/threads/src/tests/jdk25.txt"),
            include_bytes!("../../../tool/threads/src/tests/hostile.txt"),
        ];
        let jsons: [&[u8]; 2] = [
            include_bytes!("../../../tool/threads/src/tests/jdk21.json"),
            include_bytes!("../../../tool/threads/src/tests/jdk25.json"),
        ];
        Threads { texts: texts.map(<[u8]>::to_vec).to_vec(), jsons: jsons.map(<[u8]>::to_vec).to_vec() }
    }
}

impl Reader for Threads {
    fn input(&mut self, random: &mut Random) -> Vec<u8> {
        let mut text = changed(&self.texts, random);
        for _ in 0..random.below(10) {
            change(&mut text, &self.texts[random.below(self.texts.len())], random);
        }
        text.retain(|byte| *byte != 0);
        let json = if random.once_in(4) { changed(&self.jsons, random) } else { b"{\"threadDump\":{}}".to_vec() };
        [text, vec![0], json].concat()
    }

    fn read(&mut self, input: &[u8]) -> bool {
        let at = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
        foreign::threads(&String::from_utf8_lossy(&input[..at]), input.get(at + 1..).unwrap_or_default())
    }

    fn most_bytes(&self, input_bytes: usize) -> usize {
        (1 << 20) + 1_000 * input_bytes
    }
}
