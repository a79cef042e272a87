//! Durations in files: `"30s"`, `"500ms"`, `"1h 5m"`. For `#[serde(with = "crate::record::humane")]`.

use serde::{Deserialize, Deserializer, de::Error};
use std::time::Duration;

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    humantime::parse_duration(&text)
        .map_err(|e| D::Error::custom(format_args!("`{text}` is not a duration such as \"30s\" or \"500ms\": {e}")))
}

/// The same for a setting that may be absent or `"none"`.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Duration};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        #[derive(Deserialize)]
        struct Humane(#[serde(with = "super")] Duration);
        Ok(Option::<Humane>::deserialize(from)?.map(|d| d.0))
    }
}
