//! Tool calls as this protocol writes them: whole, and from older servers without an id.

use crate::provider::arguments::arguments;
use crate::provider::lenient::{Brief, Fields};
use crate::provider::made_up;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

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
        self.function.0.name.text()
    }

    /// The JSON of the arguments.
    pub(super) fn arguments(&self) -> Cow<'a, str> {
        arguments(self.function.0.arguments)
    }

    /// The id, or one made up, since older servers give none.
    pub(super) fn id(&self, created_at: &str) -> String {
        match self.id.text() {
            "" => made_up::call_id((created_at, self.name(), self.arguments())),
            id => id.to_owned(),
        }
    }
}
