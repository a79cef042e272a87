//! Points in time in JSON, as RFC 3339 in UTC, to the nanosecond. For `#[serde(with = "super::timestamp")]`.

use serde::{Deserialize, Deserializer, Serializer, de::Error};
use std::borrow::Cow;
use std::time::SystemTime;

pub(crate) fn serialize<S: Serializer>(at: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&humantime::format_rfc3339_nanos(*at))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
    let text = Cow::<'de, str>::deserialize(from)?;
    humantime::parse_rfc3339(&text).map_err(D::Error::custom)
}

/// The same for an absent point in time.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Serializer, SystemTime};

    #[allow(clippy::ref_option)] // the signature that serde calls
    pub(crate) fn serialize<S: Serializer>(at: &Option<SystemTime>, to: S) -> Result<S::Ok, S::Error> {
        match at {
            Some(at) => super::serialize(at, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SystemTime>, D::Error> {
        #[derive(Deserialize)]
        struct At(#[serde(with = "super")] SystemTime);
        Ok(Option::<At>::deserialize(from)?.map(|at| at.0))
    }
}
