//! What a provider says about its own limits.

use std::time::Duration;

/// A provider's word on its limits, read from the headers of one answer. Every part may be missing.
///
/// A rule pack fills it ([`RulePack::limits`](crate::provider::RulePack::limits)); a limiter that follows the provider
/// ([`RateLimit::follow_provider`]) paces by it.
///
/// [`RateLimit::follow_provider`]: crate::resilience::RateLimit::follow_provider
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LimitHint {
    /// Requests that a full window admits.
    pub requests_limit: Option<u64>,
    /// Requests left in the window.
    pub requests_remaining: Option<u64>,
    /// Time until the request window is full again.
    pub requests_reset: Option<Duration>,
    /// Length of the request window: a minute unless the provider says otherwise (Groq's is a day).
    pub requests_window: Option<Duration>,
    /// Tokens that a full window admits.
    pub tokens_limit: Option<u64>,
    /// Tokens left in the window.
    pub tokens_remaining: Option<u64>,
    /// Time until the token window is full again.
    pub tokens_reset: Option<Duration>,
    /// Length of the token window.
    pub tokens_window: Option<Duration>,
}

impl LimitHint {
    /// Whether the provider said anything at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_without_a_word_is_empty() {
        assert!(LimitHint::default().is_empty());
        assert!(!LimitHint { tokens_remaining: Some(0), ..LimitHint::default() }.is_empty());
    }
}
