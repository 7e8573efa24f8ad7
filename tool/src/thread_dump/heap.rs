//! How much of a heap is used, by `GC.heap_info`, which each collector writes in its own way.

/// The bytes in use; `None` if nothing is said that is understood.
pub(crate) fn used_bytes(info: &str) -> Option<u64> {
    let mut used = None;
    for line in info.lines().filter(|line| !line.contains("Metaspace") && !line.contains("class space")) {
        let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        for (at, _) in words.iter().enumerate().filter(|(_, word)| **word == "used") {
            // `used 3456K`, and Shenandoah's `3M used`; `eden 12% used` is a part of a line that has been counted.
            let behind = words.get(at + 1).and_then(|word| size(word));
            let before = || at.checked_sub(1).and_then(|at| size(words[at]));
            if let Some(bytes) = behind.or_else(before) {
                used = Some(used.unwrap_or(0) + bytes);
            }
        }
    }
    used
}

fn size(word: &str) -> Option<u64> {
    let shift = match word.chars().last()? {
        'B' => 0,
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => return None,
    };
    word[..word.len() - 1].parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::used_bytes;

    #[test]
    fn all_collectors_are_understood() {
        let cases = [
            (
                " garbage-first heap   total 387072K, used 3456K [0x00000006, 0x00000008)\n  region size 2048K, 2 young (4096K), 0 survivors (0K)\n \
                 Metaspace       used 128K, committed 320K, reserved 1114112K\n  class space    used 5K, committed 128K, reserved 1048576K\n",
                Some(3456 << 10),
            ),
            (
                " PSYoungGen      total 112640K, used 3932K [0x0)\n  eden space 97280K, 4% used [0x0)\n ParOldGen       total 257536K, used 10K [0x0)\n  \
                 object space 257536K, 0% used [0x0)\n",
                Some(3942 << 10),
            ),
            (" ZHeap           used 18M, capacity 368M, max capacity 5888M\n Metaspace used 1M\n", Some(18 << 20)),
            ("Shenandoah Heap\n 5888M max, 5888M soft max, 368M committed, 7M used\n", Some(7 << 20)),
            ("something else", None),
        ];
        for (info, used) in cases {
            assert_eq!(used_bytes(info), used, "{info}");
        }
    }
}
