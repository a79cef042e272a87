//! What most replies do not have: kept apart, so that a reply is cheap to hand on.

use super::{Opaque, ToolCall};
use serde::de::{Deserialize, Deserializer};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize as De, Serialize as Ser};
use serde_json::Value;

/// What most replies do not have. Serialized, its fields stand among the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rare(Option<Box<Fields>>);

#[derive(Clone, Debug, De, Default, PartialEq, Ser)]
#[serde(default)]
pub(super) struct Fields {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) opaque: Vec<Opaque>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refusal: Option<String>,
    /// What the text was read as, where JSON was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) json: Option<Value>,
    #[serde(skip)]
    pub(super) raw: Option<bytes::Bytes>,
}

impl Rare {
    pub(super) fn get(&self) -> Option<&Fields> {
        self.0.as_deref()
    }

    pub(super) fn get_mut(&mut self) -> Option<&mut Fields> {
        self.0.as_deref_mut()
    }

    /// The fields, to set one of them.
    pub(super) fn set(&mut self) -> &mut Fields {
        self.0.get_or_insert_default()
    }
}

impl Ser for Rare {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(fields) => fields.serialize(to),
            None => to.serialize_map(Some(0))?.end(),
        }
    }
}

impl<'de> Deserialize<'de> for Rare {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let fields = Fields::deserialize(from)?;
        Ok(Self((fields != Fields::default()).then(|| Box::new(fields))))
    }
}
