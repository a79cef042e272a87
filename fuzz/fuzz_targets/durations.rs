//! The wait that a provider advises: a value of `retry-after`, one of `retry-after-ms`, one of the headers that say when an
//! empty bucket is full again, each on a line, and then a body.

#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use std::time::{Duration, UNIX_EPOCH};
use steadfast::provider::RulePack;

/// Buckets of several providers: how much is left, and when it is full again.
const BUCKETS: &[(&str, &str)] = &[
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-requests-day", "x-ratelimit-reset-requests-day"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
];

fuzz_target!(|input: &[u8]| {
    let mut parts = input.splitn(4, |byte| *byte == b'\n');
    let mut part = || parts.next().unwrap_or_default();
    let mut headers = HeaderMap::new();
    let mut add = |name: &'static str, value: &[u8]| {
        if let Ok(value) = HeaderValue::from_bytes(value)
            && !value.is_empty()
        {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    add("retry-after", part());
    add("retry-after-ms", part());
    let refilled = part();
    for (remaining, reset) in BUCKETS {
        add(remaining, b"0");
        add(reset, refilled);
    }
    let body = part();
    let now = UNIX_EPOCH.checked_add(Duration::from_secs(1_796_039_980));
    for pack in RulePack::names().filter_map(RulePack::by_name) {
        for (status, now) in [(Some(429), now), (Some(503), now), (Some(429), None), (None, now)] {
            let wait = pack.retry_after(&headers, body, status, now);
            assert_ne!(wait, Some(Duration::ZERO), "zero is no advice");
            assert!(wait.is_none_or(|wait| wait <= Duration::from_secs(u32::MAX.into())), "every clock can add it");
            let _ = pack.limits(&headers, now);
        }
    }
});
