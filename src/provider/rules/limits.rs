//! Rate-limit headers: their names as data, their values as a [`LimitHint`].

use super::duration;
use crate::resilience::LimitHint;
use std::time::{Duration, SystemTime};

pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const HOUR: Duration = Duration::from_secs(3_600);
pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// What a bucket counts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Counts {
    Requests,
    Tokens,
}

/// The three headers of one bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) counts: Counts,
    pub(super) limit: &'static str,
    pub(super) remaining: &'static str,
    pub(super) reset: &'static str,
    /// The length of its window, where the provider documents it.
    pub(super) window: Option<Duration>,
}

/// Names a bucket whose headers read `prefix{limit,remaining,reset}suffix`.
macro_rules! bucket {
    ($counts:ident, $prefix:literal, $suffix:literal, $window:expr) => {
        $crate::provider::rules::limits::Bucket {
            counts: $crate::provider::rules::limits::Counts::$counts,
            limit: concat!($prefix, "limit", $suffix),
            remaining: concat!($prefix, "remaining", $suffix),
            reset: concat!($prefix, "reset", $suffix),
            window: $window,
        }
    };
}
pub(super) use bucket;

/// What one bucket's headers say.
#[derive(Clone, Copy, Debug)]
struct Reading {
    limit: Option<u64>,
    remaining: Option<u64>,
    reset: Option<Duration>,
    window: Option<Duration>,
}

impl Bucket {
    fn read<'a>(&self, header: &impl Fn(&str) -> Option<&'a str>, now: Option<SystemTime>) -> Option<Reading> {
        let limit = header(self.limit).and_then(count);
        let remaining = header(self.remaining).and_then(count);
        let reset = header(self.reset).and_then(|text| duration::reset(text, now));
        (limit.is_some() || remaining.is_some() || reset.is_some()).then_some(Reading {
            limit,
            remaining,
            reset,
            window: self.window,
        })
    }
}

/// Reads what the headers say. Where a provider counts the same thing in several buckets, the empty one is told of, else
/// the first in the table's order.
pub(super) fn read<'a>(
    buckets: &[Bucket],
    header: impl Fn(&str) -> Option<&'a str>,
    now: Option<SystemTime>,
) -> LimitHint {
    let tightest = |counts: Counts| {
        let mut readings = buckets.iter().filter(|b| b.counts == counts).filter_map(|b| b.read(&header, now));
        let first = readings.next()?;
        let empty = |r: &Reading| r.remaining == Some(0);
        Some(if empty(&first) { first } else { readings.find(empty).unwrap_or(first) })
    };
    let mut hint = LimitHint::default();
    if let Some(requests) = tightest(Counts::Requests) {
        hint.requests_limit = requests.limit;
        hint.requests_remaining = requests.remaining;
        hint.requests_reset = requests.reset;
        hint.requests_window = requests.window;
    }
    if let Some(tokens) = tightest(Counts::Tokens) {
        hint.tokens_limit = tokens.limit;
        hint.tokens_remaining = tokens.remaining;
        hint.tokens_reset = tokens.reset;
        hint.tokens_window = tokens.window;
    }
    hint
}

/// The longest reset among the buckets that are empty: sooner, the next request would be refused again.
pub(super) fn refill<'a>(
    buckets: &[Bucket],
    header: impl Fn(&str) -> Option<&'a str>,
    now: Option<SystemTime>,
) -> Option<Duration> {
    buckets.iter().filter_map(|b| b.read(&header, now)).filter(|r| r.remaining == Some(0)).filter_map(|r| r.reset).max()
}

/// A count as providers write it: `500`, `29000.0`, and `100, 100;w=60` in the old IETF draft. Azure's -1 is unknown.
fn count(text: &str) -> Option<u64> {
    text.split([',', ';', '.']).next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Bucket] = &[
        bucket!(Requests, "x-", "-requests", Some(DAY)),
        bucket!(Tokens, "x-", "-tokens-minute", Some(MINUTE)),
        bucket!(Tokens, "x-", "-tokens-day", Some(DAY)),
    ];

    fn header<'a>(lines: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<&'a str> {
        |name| lines.iter().find(|(n, _)| *n == name).map(|(_, v)| *v)
    }

    #[test]
    fn each_part_comes_from_one_bucket() {
        let lines = [
            ("x-limit-requests", "500"),
            ("x-remaining-requests", "7"),
            ("x-reset-requests", "1m30.5s"),
            ("x-limit-tokens-minute", "6000.0"),
            ("x-remaining-tokens-minute", "-1"),
            ("x-limit-tokens-day", "90000"),
        ];
        let hint = read(TABLE, header(&lines), None);
        assert_eq!((hint.requests_limit, hint.requests_remaining), (Some(500), Some(7)));
        assert_eq!(hint.requests_reset, Some(Duration::from_millis(90_500)));
        assert_eq!(hint.requests_window, Some(DAY));
        assert_eq!((hint.tokens_limit, hint.tokens_remaining, hint.tokens_reset), (Some(6_000), None, None));
        assert_eq!(hint.tokens_window, Some(MINUTE));
        assert_eq!(refill(TABLE, header(&lines), None), None, "no bucket is empty");
    }

    #[test]
    fn the_empty_bucket_is_told_of() {
        let lines = [
            ("x-remaining-tokens-minute", "10"),
            ("x-reset-tokens-minute", "60"),
            ("x-remaining-tokens-day", "0"),
            ("x-reset-tokens-day", "7200"),
        ];
        let hint = read(TABLE, header(&lines), None);
        assert_eq!((hint.tokens_remaining, hint.tokens_window), (Some(0), Some(DAY)));
        assert_eq!(refill(TABLE, header(&lines), None), Some(Duration::from_secs(7_200)));
    }

    #[test]
    fn nothing_said_is_an_empty_hint() {
        assert!(read(TABLE, header(&[("x-limit-requests", "many")]), None).is_empty());
    }
}
