//! The wait that a provider advises, in every form in which it does.

use super::rule::{Dialect, Evidence};
use super::{duration, limits};
use http::HeaderMap;
use std::time::{Duration, SystemTime};

/// What comes before a wait in the text of a message: `OpenAI` and Groq ("Please try again in 7.66s"), Azure ("Please
/// retry after 33 seconds"), GitHub ("Please wait 20 seconds before retrying").
const HINTS: &[&str] = &["try again in ", "retry in ", "retry after ", "try again after ", "please wait "];

/// The advised wait; the first form that has one wins. Zero is no advice, in any form.
pub(super) fn advised(dialect: &'static Dialect, evidence: &Evidence<'_>) -> Option<Duration> {
    let now = evidence.failure.at;
    let in_headers = evidence.failure.headers.and_then(|headers| from_headers(headers, now));
    in_headers.or_else(|| some(evidence.spoken.retry_info())).or_else(|| {
        if evidence.status != Some(429) {
            return None; // only there does a message's "try again in" or an empty bucket speak of this request
        }
        let hint = || dialect.reads_hints().then(|| from_text(&evidence.said)).flatten();
        let refill = || limits::refill(dialect.buckets(), |name| evidence.failure.header(name), now);
        some(hint()).or_else(|| some(refill()))
    })
}

/// `retry-after-ms`, which may have a fraction, then `retry-after` in seconds (a decimal is outside the RFC, and common) or
/// as an HTTP date. A list, a word, a negative number and a past date are no advice. `LiteLLM` passes on what the provider
/// behind it has advised under names of its own alone (its issue 21553); what it advises itself comes first.
pub(super) fn from_headers(headers: &HeaderMap, now: Option<SystemTime>) -> Option<Duration> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let advice = |millis: &str, seconds: &str| {
        some(header(millis).and_then(duration::millis)).or_else(|| {
            let text = header(seconds)?;
            some(duration::seconds(text)).or_else(|| some(duration::until_http_date(text, now)))
        })
    };
    advice("retry-after-ms", "retry-after")
        .or_else(|| advice("llm_provider-retry-after-ms", "llm_provider-retry-after"))
}

/// A wait in the text of a message, which is in lower case.
fn from_text(said: &str) -> Option<Duration> {
    HINTS.iter().find_map(|hint| {
        let (_, after) = said.split_once(hint)?;
        duration::leading(after).map(|(wait, _)| wait)
    })
}

fn some(wait: Option<Duration>) -> Option<Duration> {
    wait.filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::RulePack;
    use std::time::UNIX_EPOCH;

    fn wait(lines: &[(&'static str, &'static str)], body: &str, status: u16) -> Option<u128> {
        let headers = lines
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)))
            .collect();
        let now = UNIX_EPOCH + Duration::from_secs(1_796_039_980);
        RulePack::openai().retry_after(&headers, body.as_bytes(), Some(status), Some(now)).map(|d| d.as_millis())
    }

    #[test]
    fn headers_are_read_in_order() {
        for (lines, expected) in [
            (&[("retry-after-ms", "1500"), ("retry-after", "30")][..], Some(1_500)),
            (&[("retry-after-ms", "250.7")], Some(250)),
            (&[("retry-after-ms", "0"), ("retry-after", "30")], Some(30_000)),
            (&[("retry-after", "2")], Some(2_000)),
            (&[("retry-after", "0.503")], Some(503)),
            (&[("retry-after", "86400")], Some(86_400_000)),
            (&[("retry-after", "Mon, 30 Nov 2026 12:00:00 GMT")], Some(20_000)),
            (&[("retry-after", "Monday, 30-Nov-26 12:00:00 GMT")], Some(20_000)),
            (&[("retry-after", "Mon Nov 30 12:00:00 2026")], Some(20_000)),
            (&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], None),
            (&[("retry-after", "0")], None),
            (&[("retry-after", "-5")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "inf")], None),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "120, 60")], None),
            (&[("retry-after", "999999999999999999999999999999")], Some(duration::LONGEST.as_millis())),
            (&[("llm_provider-retry-after", "7")], Some(7_000)),
            (&[("llm_provider-retry-after-ms", "1500"), ("llm_provider-retry-after", "7")], Some(1_500)),
            (&[("retry-after", "2"), ("llm_provider-retry-after-ms", "1500")], Some(2_000)),
            (&[("retry-after", "soon"), ("llm_provider-retry-after", "7")], Some(7_000)),
            (&[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0s")], Some(360_000)),
            (&[("x-ratelimit-remaining-tokens", "1"), ("x-ratelimit-reset-tokens", "6m0s")], None),
        ] {
            assert_eq!(wait(lines, "", 429), expected, "{lines:?}");
        }
    }

    #[test]
    fn resets_are_advice_only_on_a_429() {
        let lines = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0s")];
        assert_eq!(wait(&lines, "", 500), None);
        assert_eq!(wait(&lines, "", 429), Some(360_000));
    }

    #[test]
    fn messages_are_read_only_on_a_429() {
        for (said, expected) in [
            ("Rate limit reached. Please try again in 7.66s. Visit", Some(7_660)),
            ("Please try again in 2m3.5s.", Some(123_500)),
            ("Please try again in 430ms.", Some(430)),
            ("Please retry after 33 seconds.", Some(33_000)),
            ("Please try again in 1 minute.", Some(60_000)),
            ("Please wait 20 seconds before retrying", Some(20_000)),
            ("Please try again in a while", None),
            ("Please try again in 0s", None),
            ("Please retry after 33", None),
        ] {
            let body = format!("{{\"error\":{{\"message\":\"{said}\"}}}}");
            assert_eq!(wait(&[], &body, 429), expected, "{said}");
            assert_eq!(wait(&[], &body, 500), None, "{said}");
        }
    }

    #[test]
    fn only_packs_over_openai_read_messages() {
        let body = br#"{"error":{"message":"Please try again in 20s"}}"#;
        let wait = |pack: RulePack| pack.retry_after(&HeaderMap::new(), body, Some(429), None);
        assert_eq!(wait(RulePack::groq()), Some(Duration::from_secs(20)));
        assert_eq!(wait(RulePack::generic()), None);
        assert_eq!(wait(RulePack::anthropic()), None);
    }
}
