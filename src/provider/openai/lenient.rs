//! Readers for what only this protocol says.

use crate::chat::FinishReason;
use crate::provider::lenient::{Brief, Fields, Present, lenient, skip_list, skip_object};
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The text of an answer: a string, null, a part, or a list of parts. Thinking is kept apart from text.
#[derive(Default)]
pub(in crate::provider) struct Text {
    pub(in crate::provider) text: String,
    pub(in crate::provider) reasoning: Option<String>,
}

impl Text {
    fn add(&mut self, more: Self) {
        if self.text.is_empty() {
            self.text = more.text;
        } else {
            self.text.push_str(&more.text);
        }
        if let Some(more) = more.reasoning {
            self.reasoning.get_or_insert_default().push_str(&more);
        }
    }
}

lenient!(Text, 'de, {
    fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Text, E> {
        Ok(Text { text, reasoning: None })
    }

    fn visit_unit<E: Error>(self) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text, A::Error> {
        let mut all = Text::default();
        while let Some(part) = parts.next_element::<Text>()? {
            all.add(part);
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut part: A) -> Result<Text, A::Error> {
        let mut out = Text::default();
        while let Some(key) = part.next_key::<Brief<'_>>()? {
            match key.text() {
                "text" => out.text = part.next_value::<Text>()?.text,
                "thinking" => out.reasoning = Some(part.next_value::<Text>()?.text),
                _ => {
                    part.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(out)
    }
});

/// The text of a piece of an answer, in every shape that [`Text`] has; borrowed where it is a mere text without escapes.
pub(in crate::provider) enum Saying<'a> {
    Plain(&'a str),
    Other(Text),
}

impl Default for Saying<'_> {
    fn default() -> Self {
        Self::Plain("")
    }
}

impl Saying<'_> {
    pub(in crate::provider) fn is_empty(&self) -> bool {
        match self {
            Self::Plain(text) => text.is_empty(),
            Self::Other(text) => text.text.is_empty() && text.reasoning.is_none(),
        }
    }

    pub(in crate::provider) fn into_text(self) -> Text {
        match self {
            Self::Plain(text) => Text { text: text.to_owned(), reasoning: None },
            Self::Other(text) => text,
        }
    }
}

lenient!(Saying<'a>, 'de: 'a, {
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Saying<'a>, E> {
        Ok(Saying::Plain(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Saying<'a>, E> {
        Ok(Saying::Other(Text { text: text.to_owned(), reasoning: None }))
    }

    fn visit_unit<E: Error>(self) -> Result<Saying<'a>, E> {
        Ok(Saying::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, parts: A) -> Result<Saying<'a>, A::Error> {
        Text::deserialize(SeqAccessDeserializer::new(parts)).map(Saying::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, part: A) -> Result<Saying<'a>, A::Error> {
        Text::deserialize(MapAccessDeserializer::new(part)).map(Saying::Other)
    }
});

/// The categories of Azure's filter that caught something.
#[derive(Default)]
pub(in crate::provider) struct Filtered(pub(in crate::provider) Vec<String>);

#[derive(Default, Deserialize)]
struct Category {
    #[serde(default)]
    filtered: Present,
}

impl Filtered {
    pub(in crate::provider) fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

lenient!(Filtered, 'de, {
    fn visit_map<A: MapAccess<'de>>(self, mut results: A) -> Result<Filtered, A::Error> {
        let mut caught = Vec::new();
        while let Some((name, Fields(category))) = results.next_entry::<Brief<'_>, Fields<Category>>()? {
            if category.filtered.0 {
                caught.push(name.0.into_owned());
            }
        }
        Ok(Filtered(caught))
    }

    fn visit_unit<E: Error>(self) -> Result<Filtered, E> {
        Ok(Filtered::default())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Filtered, E> {
        Ok(Filtered::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Filtered, E> {
        Ok(Filtered::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Filtered, A::Error> {
        skip_list(list).map(|()| Filtered::default())
    }
});

/// The kind of object that an answer says it is; some servers send `{"object": "error", "message": …}` with a 200.
#[derive(Default)]
pub(in crate::provider) struct Object {
    pub(in crate::provider) is_error: bool,
}

lenient!(Object, 'de, {
    fn visit_str<E: Error>(self, kind: &str) -> Result<Object, E> {
        Ok(Object { is_error: kind == "error" })
    }

    fn visit_unit<E: Error>(self) -> Result<Object, E> {
        Ok(Object::default())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Object, E> {
        Ok(Object::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Object, A::Error> {
        skip_object(object).map(|_| Object::default())
    }
});

/// A finish reason by any of its names.
#[derive(Clone, Copy, Default)]
pub(in crate::provider) enum Finish {
    Reason(FinishReason),
    /// The server says that the generation failed.
    Failure,
    #[default]
    Unsaid,
}

/// Every name that has been seen. An unknown one is [`FinishReason::Other`]: it never fails an answer.
const FINISH: [(&str, Finish); 10] = [
    ("stop", Finish::Reason(FinishReason::Stop)),
    ("eos", Finish::Reason(FinishReason::Stop)),
    ("length", Finish::Reason(FinishReason::Length)),
    ("max_tokens", Finish::Reason(FinishReason::Length)),
    ("model_length", Finish::Reason(FinishReason::Length)),
    ("tool_calls", Finish::Reason(FinishReason::ToolCalls)),
    ("function_call", Finish::Reason(FinishReason::ToolCalls)),
    ("content_filter", Finish::Reason(FinishReason::ContentFilter)),
    ("error", Finish::Failure),
    ("insufficient_system_resource", Finish::Failure),
];

impl Finish {
    pub(in crate::provider) fn is_failure(self) -> bool {
        matches!(self, Self::Failure)
    }

    pub(in crate::provider) fn is_unsaid(self) -> bool {
        matches!(self, Self::Unsaid)
    }

    pub(in crate::provider) fn reason(self) -> FinishReason {
        match self {
            Self::Reason(reason) => reason,
            Self::Failure | Self::Unsaid => FinishReason::Other,
        }
    }
}

lenient!(Finish, 'de, {
    fn visit_str<E: Error>(self, name: &str) -> Result<Finish, E> {
        if name.is_empty() {
            return Ok(Finish::Unsaid);
        }
        let known = FINISH.iter().find(|(known, _)| *known == name);
        Ok(known.map_or(Finish::Reason(FinishReason::Other), |(_, finish)| *finish))
    }

    fn visit_unit<E: Error>(self) -> Result<Finish, E> {
        Ok(Finish::Unsaid)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Finish, E> {
        Ok(Finish::Unsaid)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Finish, E> {
        Ok(Finish::Unsaid)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Finish, A::Error> {
        skip_object(object).map(|_| Finish::Unsaid)
    }
});
