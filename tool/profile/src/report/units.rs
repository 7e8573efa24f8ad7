//! Numbers and names for people.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::profile::Unit;

/// A duration with its unit and four significant digits: `12.34 ms`.
pub fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    let digits = match value {
        ..10.0 => 3,
        10.0..100.0 => 2,
        100.0..1_000.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// A size with its unit and four significant digits: `12.34 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1 << 10 {
        return format!("{n} B");
    }
    let power = ((n.ilog2() / 10) as usize).min(UNITS.len());
    let value = n as f64 / (1_u64 << (10 * power)) as f64;
    let digits = match value {
        ..10.0 => 3,
        10.0..100.0 => 2,
        _ => 1,
    };
    format!("{value:.digits$} {}", UNITS[power - 1])
}

/// A metric's value with its unit.
pub fn value(unit: Unit, value: u64) -> String {
    match unit {
        Unit::Nanoseconds => time(value),
        Unit::Bytes => bytes(value),
        Unit::Count | Unit::Bytecodes => count(value),
        Unit::Share => percent(value as f64 / unit.one()),
    }
}

/// A part of a whole, 0 to 1, or more than all of it: `12.3%`.
pub fn percent(part: f64) -> String {
    format!("{:.1}%", 100.0 * part)
}

/// What a unit that people write stands for, and how much of it; things have none.
pub fn unit(text: &str) -> Option<(f64, Unit)> {
    Some(match text {
        "" => (1.0, Unit::Count),
        "ns" => (1.0, Unit::Nanoseconds),
        "us" | "µs" | "μs" => (1e3, Unit::Nanoseconds),
        "ms" => (1e6, Unit::Nanoseconds),
        "s" => (1e9, Unit::Nanoseconds),
        "B" => (1.0, Unit::Bytes),
        "KiB" => (1024.0, Unit::Bytes),
        "MiB" => (1024.0 * 1024.0, Unit::Bytes),
        "GiB" => (1024.0 * 1024.0 * 1024.0, Unit::Bytes),
        _ => return None,
    })
}

/// A number with its thousands separated: `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// So many of something: `1 class`, `1,234 classes`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// How often: `once`, `1,234 times`.
pub fn times(n: u64) -> String {
    if n == 1 { "once".to_owned() } else { format!("{} times", count(n)) }
}

/// A method's name in at most `width` columns of a terminal: packages become their first letters, from the left, as far as it takes
/// (`c.a.shop.Cart.total()`). A name that is still too long loses its parameters, then its packages, then its class: its own name is cut last.
pub fn fitting_name(name: &str, width: usize) -> String {
    let mut excess = name.width().saturating_sub(width);
    let head = &name[..name.find('(').unwrap_or(name.len())];
    // What stands before a name, such as `[started] `, belongs to it.
    let indentation = head.rfind(' ').map_or(0, |at| at + 1);
    let qualified = &head[indentation..];
    // The last two parts are class and method.
    let packages = qualified.split('.').count().saturating_sub(2);
    let mut fitting = name[..indentation].to_owned();
    let mut rest = &name[indentation..];
    for _ in 0..packages {
        let Some((package, behind)) = rest.split_once('.').filter(|_| excess > 0) else { break };
        let initial: String = package.chars().take(1).collect();
        excess = excess.saturating_sub(package.width() - initial.width());
        fitting.push_str(&initial);
        fitting.push('.');
        rest = behind;
    }
    fitting.push_str(rest);
    if excess == 0 {
        return fitting;
    }
    // What is cut of the parameters is the least loss.
    let keeps_method = |name: &str| name.find('(').is_none_or(|at| name[..at].width() + "(…".width() <= width);
    while !keeps_method(&fitting) {
        let head = &fitting[indentation..fitting.find('(').unwrap_or(fitting.len())];
        let dots: Vec<usize> = head.match_indices('.').map(|(at, _)| at).collect();
        let Some(begin) = dots.len().checked_sub(2).map(|last| dots[last]).or(dots.last().copied()) else { break };
        fitting.replace_range(indentation..=indentation + begin, "");
    }
    cut(&fitting, width)
}

/// As much of a text as fits in `width` columns of a terminal; that it was cut shows.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |character: &char| {
        let left = room.checked_sub(character.width().unwrap_or(0));
        room = left.unwrap_or(0);
        left.is_some()
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// What is longer by so much, as a part of what it was.
pub fn longer(part: f64) -> String {
    // More percent than that say nothing to anybody.
    const TIMES: f64 = 10.0;
    if part < TIMES { format!("{:.1}% longer", 100.0 * part) } else { format!("{:.0} times as long", 1.0 + part) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_everything_else_is_not() {
        assert_eq!([0, 1, 2_000].map(|n| plural(n, "batch", "batches")), ["0 batches", "1 batch", "2,000 batches"]);
        assert_eq!([0, 1, 2_000].map(times), ["0 times", "once", "2,000 times"]);
    }

    #[test]
    fn times_have_four_digits() {
        for (ns, text) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.000 us"),
            (12_345, "12.35 us"),
            (123_456_789, "123.5 ms"),
            (9_876_543_210, "9.877 s"),
            (4_000_000_000_000, "4000 s"),
        ] {
            assert_eq!(time(ns), text);
        }
    }

    #[test]
    fn sizes_have_four_digits_or_five() {
        for (n, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.000 KiB"),
            (12_345_678, "11.77 MiB"),
            (999 << 20, "999.0 MiB"),
            (u64::MAX, "16777216.0 TiB"),
        ] {
            assert_eq!(bytes(n), text);
        }
    }

    #[test]
    fn names_are_shortened_as_far_as_it_takes() {
        const NAME: &str = "com.acme.shop.Cart.total(Item)";
        for (width, fitting) in [
            (30, NAME),
            (29, "c.acme.shop.Cart.total(Item)"),
            (27, "c.a.shop.Cart.total(Item)"),
            (22, "c.a.s.Cart.total(Item)"),
            (18, "c.a.s.Cart.total(…"),
            (17, "Cart.total(Item)"),
            (13, "Cart.total(I…"),
            (12, "Cart.total(…"),
            (11, "total(Item)"),
            (7, "total(…"),
            (4, "tot…"),
        ] {
            assert_eq!(fitting_name(NAME, width), fitting);
        }
        assert_eq!(fitting_name("  Main.run(java.lang.String)", 12), "  Main.run(…");
        assert_eq!(fitting_name("... 12 more callees", 8), "... 12 …");
        assert_eq!(fitting_name("", 1), "");
        // Each of these takes two columns.
        assert_eq!(fitting_name("com.acme.商店.結帳()", 15), "c.a.商店.結帳()");
        assert_eq!(fitting_name("com.acme.商店.結帳()", 13), "商店.結帳()");
        assert_eq!(fitting_name("com.acme.商店.結帳()", 9), "結帳()");
    }

    #[test]
    fn thousands_are_separated() {
        for (n, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(n), text);
        }
    }

    #[test]
    fn what_is_very_long_is_so_many_times_as_long() {
        assert_eq!(longer(0.625), "62.5% longer");
        assert_eq!(longer(9.99), "999.0% longer");
        assert_eq!(longer(281.546), "283 times as long");
    }
}
