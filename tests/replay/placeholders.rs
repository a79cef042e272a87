//! `{{…}}` in headers and bodies, filled in as they are served.

use std::time::{Duration, SystemTime};

/// Fills in all placeholders of a text. What is not one stays as it is.
pub(crate) fn fill(text: &str, other_origin: &str, now: SystemTime) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        filled.push_str(before);
        let end = after.find("}}");
        let value = end.and_then(|end| value(&after[..end], other_origin, now).map(|value| (value, &after[end + 2..])));
        if let Some((value, after)) = value {
            filled.push_str(&value);
            rest = after;
        } else {
            filled.push_str("{{");
            rest = after;
        }
    }
    filled.push_str(rest);
    filled
}

fn value(name: &str, other_origin: &str, now: SystemTime) -> Option<String> {
    let (name, time) = match name.split_once(':') {
        Some((name, offset)) => (name, shifted(now, offset)?),
        None => (name, now),
    };
    let civil = Civil::of(time);
    let Civil { year, month, day, hour, minute, second, weekday } = civil;
    let clock = format!("{hour:02}:{minute:02}:{second:02}");
    let (weekday, month_name) = (WEEKDAYS[weekday], MONTHS[month - 1]);
    let short = &weekday[..3];
    Some(match name {
        "http_date" => format!("{short}, {day:02} {month_name} {year} {clock} GMT"),
        "rfc850_date" => format!("{weekday}, {day:02}-{month_name}-{:02} {clock} GMT", year % 100),
        "asctime_date" => format!("{short} {month_name} {day:2} {clock} {year}"),
        "rfc3339" => format!("{year}-{month:02}-{day:02}T{clock}Z"),
        "unix_ms" => since_epoch(time).as_millis().to_string(),
        "other_origin" => other_origin.to_owned(),
        _ => return None,
    })
}

/// `+20s`, `-6h`, `500ms`.
fn shifted(now: SystemTime, offset: &str) -> Option<SystemTime> {
    let (back, offset) = match offset.strip_prefix('-') {
        Some(offset) => (true, offset),
        None => (false, offset.strip_prefix('+').unwrap_or(offset)),
    };
    let unit = offset.find(|c: char| !c.is_ascii_digit())?;
    let millis = match &offset[unit..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    let by = Duration::from_millis(offset[..unit].parse::<u64>().ok()?.checked_mul(millis)?);
    if back { now.checked_sub(by) } else { now.checked_add(by) }
}

fn since_epoch(time: SystemTime) -> Duration {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

struct Civil {
    year: u64,
    /// From 1.
    month: usize,
    day: u64,
    hour: u64,
    minute: u64,
    second: u64,
    /// From Sunday.
    weekday: usize,
}

impl Civil {
    /// The date in UTC, for times from 1970 on. The year is counted from March, as in Hinnant's `civil_from_days`.
    fn of(time: SystemTime) -> Self {
        let seconds = since_epoch(time).as_secs();
        let (days, second) = (seconds / 86_400, seconds % 86_400);
        let from_march = days + 719_468;
        let (era, day_of_era) = (from_march / 146_097, from_march % 146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let (month, next_year) = if shifted_month < 10 { (shifted_month + 3, 0) } else { (shifted_month - 9, 1) };
        Self {
            year: year_of_era + era * 400 + next_year,
            month: usize::try_from(month).unwrap_or(1),
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            hour: second / 3_600,
            minute: second / 60 % 60,
            second: second % 60,
            weekday: usize::try_from((days + 4) % 7).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_filled_in() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(784_111_777_042);
        for (text, expected) in [
            ("{{http_date}}", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("{{http_date:+20s}}", "Sun, 06 Nov 1994 08:49:57 GMT"),
            ("{{rfc850_date:+1d}}", "Monday, 07-Nov-94 08:49:37 GMT"),
            ("{{asctime_date}}", "Sun Nov  6 08:49:37 1994"),
            ("{{rfc3339:+6h}}", "1994-11-06T14:49:37Z"),
            ("a {{unix_ms:-42ms}} b", "a 784111777000 b"),
            ("{{other_origin}}/v1", "http://o/v1"),
            ("{{unknown}} {{http_date:soon}} {{", "{{unknown}} {{http_date:soon}} {{"),
            (r#"{"a":{"b":{}}}"#, r#"{"a":{"b":{}}}"#),
        ] {
            assert_eq!(fill(text, "http://o", now), expected);
        }
    }

    #[test]
    fn dates_agree_with_another_implementation() {
        for day in (0..40_000_u64).step_by(17) {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(day * 86_400 + day);
            assert_eq!(fill("{{http_date}}", "", time), httpdate::fmt_http_date(time));
        }
    }
}
