//! Durations in JSON, as milliseconds: a whole number where the duration is whole, else with a fraction that reads back
//! as the same duration. For `#[serde(with = "super::millis")]`.

use serde::{Deserialize, Deserializer, Serializer};
use std::time::Duration;

const NANOS_PER_MILLI: u32 = 1_000_000;

pub(crate) fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    if duration.subsec_nanos().is_multiple_of(NANOS_PER_MILLI) {
        to.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    } else {
        to.serialize_f64(duration.as_secs_f64() * 1e3)
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Millis {
        Whole(u64),
        Fraction(f64),
    }
    Ok(match Millis::deserialize(from)? {
        Millis::Whole(ms) => Duration::from_millis(ms),
        Millis::Fraction(ms) => {
            // To the nanosecond: the fraction was written from whole nanoseconds.
            let nanos = (ms * f64::from(NANOS_PER_MILLI)).round();
            Duration::try_from_secs_f64(nanos / 1e9).map_or(Duration::ZERO, |d| {
                // `as u64` saturates, and a duration of more nanoseconds than that was written whole.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                let nanos = nanos as u64;
                if nanos == u64::MAX { d } else { Duration::from_nanos(nanos) }
            })
        }
    })
}

/// The same for an absent duration.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Duration, Serializer};

    #[allow(clippy::ref_option)] // the signature that serde calls
    pub(crate) fn serialize<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, to),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        #[derive(Deserialize)]
        struct Millis(#[serde(with = "super")] Duration);
        Ok(Option::<Millis>::deserialize(from)?.map(|d| d.0))
    }
}
