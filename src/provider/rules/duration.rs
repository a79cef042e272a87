//! The ways in which providers write a length of time or a moment.
//!
//! Nothing here panics on any text: what is negative, not a number or not a time is `None`, and what is absurdly long is
//! [`LONGEST`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What absurd lengths saturate at: 136 years, which every clock can still add to its own time.
pub(super) const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);

/// Units as providers write them, with their length in seconds.
const UNITS: &[(&[&str], f64)] = &[
    (&["ns"], 1e-9),
    (&["us", "µs", "μs"], 1e-6),
    (&["ms", "msec", "msecs", "millisecond", "milliseconds"], 1e-3),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600.0),
    (&["d", "day", "days"], 86_400.0),
];

/// That many seconds; `None` for a negative number and for NaN.
pub(super) fn of_seconds(seconds: f64) -> Option<Duration> {
    if seconds.is_nan() || seconds < 0.0 {
        return None;
    }
    Some(Duration::try_from_secs_f64(seconds).map_or(LONGEST, |d| d.min(LONGEST)))
}

/// An unsigned decimal number and nothing else. (`f64` itself would also read `inf`, `NaN`, `-5` and `1e9`.)
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    text.bytes().all(|b| b.is_ascii_digit() || b == b'.').then(|| text.parse().ok()).flatten()
}

/// A number of seconds, whole or decimal.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    of_seconds(number(text)?)
}

/// A number of milliseconds, whole or decimal.
pub(super) fn millis(text: &str) -> Option<Duration> {
    of_seconds(number(text)? / 1e3)
}

/// A whole text of numbers with units, as Go writes them: `1h2m3.5s`, `430ms`, `34.07s`.
pub(super) fn units(text: &str) -> Option<Duration> {
    let (length, rest) = leading(text)?;
    rest.trim().is_empty().then_some(length)
}

/// The numbers with units at the beginning of a text, `2m3.5s` or `33 seconds`, and what follows them.
pub(super) fn leading(text: &str) -> Option<(Duration, &str)> {
    let mut rest = text;
    let mut sum = None;
    while let Some((length, after)) = part(rest) {
        sum = Some(sum.unwrap_or(Duration::ZERO).saturating_add(length).min(LONGEST));
        rest = after;
    }
    Some((sum?, rest))
}

/// One number with its unit.
fn part(text: &str) -> Option<(Duration, &str)> {
    let text = text.trim_start();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (amount, rest) = text.split_at(end);
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let (_, length) = UNITS.iter().find(|(names, _)| names.iter().any(|name| name.eq_ignore_ascii_case(unit)))?;
    Some((of_seconds(number(amount)? * length)?, rest))
}

/// An HTTP date in any of its three forms, measured from `now`. A date that is past is absent, since clocks differ.
pub(super) fn until_http_date(text: &str, now: Option<SystemTime>) -> Option<Duration> {
    until(httpdate::parse_http_date(text.trim()).ok()?, now)
}

/// A moment measured from `now`; absent where it is past, or where there is no `now`.
pub(super) fn until(at: SystemTime, now: Option<SystemTime>) -> Option<Duration> {
    at.duration_since(now?).ok().map(|wait| wait.min(LONGEST))
}

/// An RFC 3339 moment, in UTC or with an offset.
pub(super) fn rfc3339(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    if let Ok(at) = humantime::parse_rfc3339(text) {
        return Some(at);
    }
    let (local, offset) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let offset_by = Duration::from_secs(hours.parse::<u64>().ok()? * 3_600 + minutes.parse::<u64>().ok()? * 60);
    let at = humantime::parse_rfc3339(&format!("{local}Z")).ok()?;
    match offset.as_bytes().first()? {
        b'+' => at.checked_sub(offset_by),
        b'-' => at.checked_add(offset_by),
        _ => None,
    }
}

/// The moment that an epoch number means: seconds below 10¹¹, milliseconds from there.
pub(super) fn epoch(number: f64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(of_seconds(if number < 1e11 { number } else { number / 1e3 })?)
}

/// A moment as a number since the epoch or as RFC 3339.
pub(super) fn moment(text: &str) -> Option<SystemTime> {
    number(text).filter(|n| *n >= 1e9).and_then(epoch).or_else(|| rfc3339(text))
}

/// The value of a rate-limit reset header, whichever of its forms a provider chose: seconds, seconds or milliseconds
/// since the epoch, a Go duration, or RFC 3339.
pub(super) fn reset(text: &str, now: Option<SystemTime>) -> Option<Duration> {
    match number(text) {
        Some(n) if n < 1e9 => of_seconds(n),
        Some(n) => until(epoch(n)?, now),
        None if text.contains('T') => until(rfc3339(text)?, now),
        None => units(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(secs: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(secs)
    }

    #[test]
    fn units_are_summed() {
        for (text, expected) in [
            ("12ms", Some(ms(12))),
            ("1s", Some(ms(1_000))),
            ("6m0s", Some(ms(360_000))),
            ("1h2m3.5s", Some(ms(3_723_500))),
            ("2m59.56s", Some(ms(179_560))),
            ("34.07s", Some(ms(34_070))),
            ("250us", Some(Duration::from_micros(250))),
            ("250µs", Some(Duration::from_micros(250))),
            ("7ns", Some(Duration::from_nanos(7))),
            ("1d", Some(ms(86_400_000))),
            ("33 seconds", Some(ms(33_000))),
            ("1 minute 30 seconds", Some(ms(90_000))),
            ("7.66s.", None),
            ("-5s", None),
            ("s", None),
            ("5", None),
            ("5 parsecs", None),
            ("", None),
        ] {
            assert_eq!(units(text), expected, "{text}");
        }
    }

    #[test]
    fn seconds_are_plain_numbers_and_saturate() {
        for (text, expected) in [
            ("2", Some(ms(2_000))),
            (" 0.503 ", Some(ms(503))),
            ("0", Some(Duration::ZERO)),
            ("99999999999999999999999", Some(LONGEST)),
            ("-5", None),
            ("+5", None),
            ("NaN", None),
            ("inf", None),
            ("1e9", None),
            ("120, 60", None),
            ("soon", None),
            (".", None),
            ("1.2.3", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
        assert_eq!(seconds(&"9".repeat(400)), Some(LONGEST));
        assert_eq!(millis("250.7"), Some(Duration::from_micros(250_700)));
    }

    #[test]
    fn resets_are_read_in_every_form() {
        let now = Some(at(1_796_040_000));
        for (text, expected) in [
            ("30", Some(ms(30_000))),
            ("33011.38", Some(ms(33_011_380))),
            ("33011.38s", Some(ms(33_011_380))),
            ("1796040005", Some(ms(5_000))),
            ("1796040005250", Some(ms(5_250))),
            ("1796039999", None),
            ("1m30.5s", Some(ms(90_500))),
            ("2026-11-30T12:00:05Z", Some(ms(5_000))),
            ("2026-11-30T13:00:05+01:00", Some(ms(5_000))),
            ("2026-11-30T09:30:05-02:30", Some(ms(5_000))),
            ("2015-10-21T07:28:00Z", None),
            ("-1", None),
            ("T", None),
            ("never", None),
        ] {
            assert_eq!(reset(text, now), expected, "{text}");
        }
        assert_eq!(reset("1796040005", None), None, "a moment needs a clock");
    }

    #[test]
    fn all_three_http_dates_are_read() {
        let now = Some(at(1_796_040_000 - 20));
        for text in ["Mon, 30 Nov 2026 12:00:00 GMT", "Monday, 30-Nov-26 12:00:00 GMT", "Mon Nov 30 12:00:00 2026"] {
            assert_eq!(until_http_date(text, now), Some(ms(20_000)), "{text}");
        }
        assert_eq!(until_http_date("Wed, 21 Oct 2015 07:28:00 GMT", now), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*", secs in any::<u32>()) {
            let now = Some(at(u64::from(secs)));
            for length in [units(&text), seconds(&text), millis(&text), reset(&text, now), until_http_date(&text, now)] {
                prop_assert!(length.is_none_or(|d| d <= LONGEST));
            }
            let _ = (leading(&text), rfc3339(&text), moment(&text));
        }

        #[test]
        fn nearly_right_text_makes_it_no_panic(text in "[0-9T:.+hms -]{0,40}") {
            let _ = (leading(&text), reset(&text, Some(UNIX_EPOCH)), rfc3339(&text), moment(&text));
        }

        #[test]
        fn a_go_duration_is_read_back(h in 0..100u64, m in 0..60u64, ms in 0..60_000u64) {
            let text = format!("{h}h{m}m{}s", f64::from(u32::try_from(ms).unwrap_or(0)) / 1e3);
            prop_assert_eq!(units(&text), Some(Duration::from_millis(h * 3_600_000 + m * 60_000 + ms)));
        }
    }
}
