//! What sort of failure it was.

/// Declares an enum whose variants are stable `snake_case` strings; an unknown string reads as `Other`.
macro_rules! stable_names {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident => $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)+
            /// A name that this version of the crate does not know, from a snapshot that a newer one wrote.
            Other,
        }

        impl $name {
            /// Every variant that this version knows, `Other` left out.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable name. Names are added, never renamed and never reused.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other => "other",
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = std::convert::Infallible;

            fn from_str(name: &str) -> Result<Self, Self::Err> {
                Ok(match name {
                    $($text => Self::$variant,)+
                    _ => Self::Other,
                })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let name = std::borrow::Cow::<'de, str>::deserialize(from)?;
                Ok(name.parse().unwrap_or_else(|never: std::convert::Infallible| match never {}))
            }
        }
    };
}
pub(crate) use stable_names;

stable_names! {
    /// What sort of failure an [`LlmError`](crate::LlmError) is. Always set; the [`ErrorCode`](crate::ErrorCode) narrows it.
    ErrorKind {
        /// An attempt exceeded its timeout, a stream went silent, or the call's deadline passed.
        /// The request may have reached the provider.
        Timeout => "timeout",
        /// The provider answered with an error: an HTTP status, or an error object inside a 200.
        Api => "api",
        /// No usable response: DNS, connect, TLS, reset, premature end of the body.
        Network => "network",
        /// A body, a stream frame or a tool-argument string was not what its format says.
        Parse => "parse",
        /// The reply broke a contract: schema mismatch, tool contract.
        Validation => "validation",
        /// The caller's own input is malformed or unsupported. Nothing was sent.
        InvalidParams => "invalid_params",
        /// Refused locally, by the limiter's queue or by the retry budget. A provider's 429 is [`ErrorKind::Api`].
        RateLimited => "rate_limited",
        /// The application's own `reserve` hook refused. Nothing was sent.
        QuotaExceeded => "quota_exceeded",
        /// The target's circuit breaker refused. Nothing was sent.
        CircuitOpen => "circuit_open",
        /// More than one target was tried, and all failed.
        FallbackExhausted => "fallback_exhausted",
        /// The caller cancelled. The request may have reached the provider.
        Aborted => "aborted",
        /// Anything else.
        Unknown => "unknown",
    }
}
