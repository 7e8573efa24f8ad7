//! Class files, as the rewriter gets them from a JVM: taken apart, put together, instrumented.

use headwater_rewriter::{ClassFile, Probes, Request, call_sites, constant_sites, instrument, reassemble};
use headwater_tests::mutation::Sample;
use headwater_tests::random::Random;

use super::Reader;
use crate::mutation::changed;

const PROBES: Probes<'static> = Probes::of_methods("java/lang/HwProbe");

/// The rewriter.
pub(crate) struct Classes {
    files: Vec<Vec<u8>>,
    samples: Vec<Sample>,
}

impl Classes {
    pub(crate) fn new(files: Vec<Vec<u8>>) -> Classes {
        Classes { samples: files.iter().cloned().map(Sample::new).collect(), files }
    }
}

impl Reader for Classes {
    fn input(&mut self, random: &mut Random) -> Vec<u8> {
        if random.once_in(4) {
            return changed(&self.files, random);
        }
        let sample = &self.samples[random.below(self.samples.len())];
        sample.changed(&self.samples[random.below(self.samples.len())], random)
    }

    fn read(&mut self, input: &[u8]) -> bool {
        let Ok(class) = ClassFile::parse(input) else { return false };
        let _ = (class.name(), class.super_name(), class.interfaces());
        if let Ok(again) = reassemble(input) {
            assert!(again == input, "taken apart and put together it is not the same");
        }
        let sites = class.methods().iter().map(|method| call_sites(&class, method.index));
        for error in sites.chain([constant_sites(&class)]).filter_map(Result::err) {
            assert!(error.offset <= input.len(), "{error}");
        }
        let requests = class.methods().iter().map(|method| Request::method(method.index, method.index as u32 * 700));
        let requests: Vec<Request> = requests.collect();
        let Ok(rewritten) = instrument(input, &PROBES, &requests) else { return true };
        ClassFile::parse(&rewritten.bytes).expect("what we write can be read");
        true
    }

    fn most_bytes(&self, input_bytes: usize) -> usize {
        (1 << 20) + 4_000 * input_bytes
    }
}
