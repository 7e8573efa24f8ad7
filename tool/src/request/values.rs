//! Values of options: times and periods.

use std::time::Duration;

use crate::profiling::BareTiming;

pub(crate) fn tick_period(text: &str) -> Result<Duration, String> {
    let range = Duration::from_micros(10)..=Duration::from_secs(1);
    let period = duration(text)?;
    if range.contains(&period) { Ok(period) } else { Err("give a time from 10us to 1s".to_owned()) }
}

pub(crate) fn sample_period(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(1)..=Duration::from_secs(1);
    let period = duration(text)?;
    if range.contains(&period) { Ok(period) } else { Err("give a time from 1ms to 1s".to_owned()) }
}

pub(crate) fn bare_timing(text: &str) -> Result<BareTiming, String> {
    match text {
        "auto" => Ok(BareTiming::Auto),
        "off" => Ok(BareTiming::Off),
        time => match duration(time) {
            Ok(time) => Ok(BareTiming::For(time)),
            Err(_) => Err("give auto, off, or a time such as 5s".to_owned()),
        },
    }
}

pub(crate) fn live_period(text: &str) -> Result<Duration, String> {
    let period = duration(text)?;
    if period >= Duration::from_millis(100) { Ok(period) } else { Err("give a time of 100ms or more".to_owned()) }
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    humantime::parse_duration(text).map_err(|_| format!("`{text}` is no time; give one such as 500ms, 30s or 2m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_none_is_refused_with_one_that_is() {
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("soon").unwrap_err(), "`soon` is no time; give one such as 500ms, 30s or 2m");
    }
}
