//! Tool calls as this protocol writes them: whole, and from older servers without an id.

use crate::provider::lenient::{Brief, Fields};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

#[derive(Default, Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow, default)]
    id: Brief<'a>,
    #[serde(borrow, default)]
    function: Fields<Function<'a>>,
}

#[derive(Default, Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Brief<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl<'a> Call<'a> {
    pub(super) fn name(&self) -> &str {
        &self.function.0.name.0
    }

    /// The JSON of the arguments: an object, or from servers that are near enough a text that holds one.
    pub(super) fn arguments(&self) -> Cow<'a, str> {
        match self.function.0.arguments.map(RawValue::get) {
            None | Some("null") => Cow::Borrowed(""),
            Some(text) if text.starts_with('"') => {
                serde_json::from_str::<Brief<'_>>(text).map_or(Cow::Borrowed(text), |Brief(text)| text)
            }
            Some(object) => Cow::Borrowed(object),
        }
    }

    /// The id, or one made up from the call, its place in the answer and the moment of the answer, which servers give to the
    /// nanosecond: the same body has the same ids, two answers of a conversation have different ones.
    pub(super) fn id(&self, index: usize, created_at: &str) -> String {
        if !self.id.0.is_empty() {
            return self.id.0.as_ref().to_owned();
        }
        let mut hasher = DefaultHasher::new();
        (created_at, index, self.name(), self.arguments()).hash(&mut hasher);
        format!("call_{:016x}", hasher.finish())
    }
}
