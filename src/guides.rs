//! One page a topic: when to use it, how to size it, its defaults, its events, and what not to do.

#[doc = include_str!("../docs/guides/retry.md")]
pub mod retry {}

#[doc = include_str!("../docs/guides/budgets.md")]
pub mod budgets {}

#[doc = include_str!("../docs/guides/breakers.md")]
pub mod breakers {}

#[doc = include_str!("../docs/guides/limits.md")]
pub mod limits {}

#[doc = include_str!("../docs/guides/fallback.md")]
pub mod fallback {}

#[doc = include_str!("../docs/guides/errors.md")]
pub mod errors {}

#[cfg(feature = "testing")]
#[doc = include_str!("../docs/guides/output.md")]
pub mod output {}

#[cfg(feature = "testing")]
#[doc = include_str!("../docs/guides/streaming.md")]
pub mod streaming {}

#[cfg(feature = "testing")]
#[doc = include_str!("../docs/guides/testing.md")]
pub mod testing {}

#[cfg(feature = "testing")]
#[doc = include_str!("../docs/guides/tools.md")]
pub mod tools {}
