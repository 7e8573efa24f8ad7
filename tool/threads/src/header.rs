//! A thread's first line in HotSpot's dump.
//!
//! `"NAME" #12 [4711] daemon prio=5 os_prio=0 cpu=1.50ms elapsed=4.36s allocated=372K defined_classes=49 tid=0x.. nid=0x.. DOING  [0x..]`.
//! JDK 21 put the operating system's number in brackets, where `nid` may be missing; up to JDK 21 `nid` is hexadecimal. A name may have
//! anything in it, quotation marks, line feeds, and lines that look like another thread's.

use super::{Kind, Thread};

/// The thread that a line, or several joined ones, is about, and the address of the JVM's own structure for it.
pub(super) fn parse(header: &str) -> Option<(Thread, u64)> {
    let rest = header.strip_prefix('"')?;
    // What the program has no say in begins behind the last quotation mark.
    let (name, attributes) = rest.rsplit_once("\" ")?;
    let mut thread = Thread::named(name, Kind::Vm);
    let mut address = None;
    let mut words = attributes.split_inclusive(' ');
    let mut doing = String::new();
    for word in words.by_ref() {
        let bare = word.trim_end();
        if let Some((key, value)) = bare.split_once('=') {
            match key {
                "prio" => thread.priority = value.parse().ok(),
                "cpu" => thread.cpu_ns = time_ns(value),
                "elapsed" => thread.elapsed_ns = time_ns(value),
                "allocated" => thread.allocated_bytes = bytes(value),
                "tid" => address = number(value),
                "nid" => thread.os_id = os_number(value),
                _ => {}
            }
        } else if let Some(number) = bare.strip_prefix('#') {
            thread.java_id = number.parse().ok();
            thread.kind = Kind::Java;
        } else if bare == "daemon" {
            thread.daemon = true;
        } else if let Some(inner) = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            // Behind the attributes it is the stack's address.
            if address.is_none() {
                thread.os_id = inner.parse().ok();
            }
        } else if address.is_some() {
            doing.push_str(word);
        }
    }
    thread.doing = doing.trim().to_owned();
    Some((thread, address?))
}

/// `0x1f`.
pub(super) fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn os_number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `1.50ms`, `4.36s`.
fn time_ns(text: &str) -> Option<u64> {
    let (value, ns) = match text.strip_suffix("ms") {
        Some(value) => (value, 1e6),
        None => (text.strip_suffix('s')?, 1e9),
    };
    // Some locale's.
    let value: f64 = value.replace(',', ".").parse().ok()?;
    (value >= 0.0).then_some((value * ns).round() as u64)
}

/// `372K`, `32B`, `1228M`.
fn bytes(text: &str) -> Option<u64> {
    let unit = text.chars().last()?;
    let shift = match unit {
        'B' => 0,
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => return None,
    };
    text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_all_versions_are_understood() {
        let (thread, address) = parse(
            "\"main\" #1 prio=5 os_prio=0 cpu=59.29ms elapsed=4.36s allocated=372K defined_classes=49 \
             tid=0x00007f67b8017eb0 nid=0x732f waiting on condition  [0x00007f67bd31e000]",
        )
        .expect("JDK 17's");
        assert_eq!((thread.name.as_str(), thread.kind, thread.java_id), ("main", Kind::Java, Some(1)));
        assert_eq!(
            (thread.os_id, thread.cpu_ns, thread.elapsed_ns),
            (Some(0x732f), Some(59_290_000), Some(4_360_000_000))
        );
        assert_eq!((thread.allocated_bytes, thread.doing.as_str()), (Some(372 << 10), "waiting on condition"));
        assert_eq!((address, thread.daemon, thread.priority), (0x7f67_b801_7eb0, false, Some(5)));

        let carrier = "\"ForkJoinPool-1-worker-1\" #19 [12050] daemon prio=5 os_prio=0 cpu=4.18ms elapsed=2.45s \
                       allocated=174K defined_classes=8 tid=0x00007f983422f160  [0x00007f9818863000]";
        let (thread, _) = parse(carrier).expect("JDK 21's, without nid");
        assert_eq!((thread.os_id, thread.daemon, thread.doing.as_str()), (Some(12_050), true, ""));

        let (thread, _) =
            parse("\"GC Thread#0\" os_prio=0 cpu=0.19ms elapsed=4.39s tid=0x00007f676c057710 nid=29626 runnable  ")
                .expect("the JVM's own");
        assert_eq!((thread.name.as_str(), thread.kind, thread.os_id), ("GC Thread#0", Kind::Vm, Some(29_626)));
        assert_eq!(thread.doing, "runnable");
    }

    #[test]
    fn a_name_may_look_like_a_header() {
        let (thread, address) =
            parse("\"a\" #7 daemon tid=0x1 nid=0x1 b\" #26 prio=5 tid=0x2 nid=0x3 runnable").expect("one");
        assert_eq!((thread.name.as_str(), thread.java_id, address), ("a\" #7 daemon tid=0x1 nid=0x1 b", Some(26), 2));
        for none in ["", "\"a", "\"a\" ", "\"a\" #1 prio=5", "a #1 tid=0x1"] {
            assert!(parse(none).is_none(), "{none}");
        }
    }
}
