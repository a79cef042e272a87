//! An answer, or a piece of one, as Gemini writes it: the same shape whole and streamed.
//!
//! Google leaves out what is zero or empty, so every field may be missing; gateways send null, or the list that the
//! streaming method answers with. What is not kept is borrowed, and lists of one element take no memory of their own: that is
//! what nearly every piece of a stream has.

use crate::chat::{FinishReason, Usage};
use crate::provider::lenient::{Brief, Count, Fields, List, Present, Words, lenient, skip_object};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;

/// A body, or the data of an event: one answer, or a list of them.
pub(super) struct Body<'a>(pub(super) Few<Answer<'a>>);

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Answer<'a> {
    pub(super) error: Present,
    #[serde(borrow)]
    pub(super) candidates: Option<Few<Candidate<'a>>>,
    #[serde(borrow)]
    pub(super) prompt_feedback: Fields<Feedback<'a>>,
    pub(super) usage_metadata: Fields<Counts>,
    #[serde(borrow)]
    pub(super) model_version: Brief<'a>,
    #[serde(borrow)]
    pub(super) response_id: Brief<'a>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Candidate<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) content: Fields<Content<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Brief<'a>,
    pub(super) safety_ratings: Blocked,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Content<'a> {
    #[serde(borrow)]
    pub(super) parts: Option<Few<Part<'a>>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Part<'a> {
    pub(super) text: Words,
    pub(super) thought: Present,
    #[serde(borrow)]
    pub(super) thought_signature: Brief<'a>,
    #[serde(borrow)]
    pub(super) function_call: Option<Fields<Called<'a>>>,
}

/// A call of a tool.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Called<'a> {
    #[serde(borrow)]
    pub(super) id: Brief<'a>,
    #[serde(borrow)]
    pub(super) name: Brief<'a>,
    #[serde(borrow)]
    pub(super) args: Option<&'a RawValue>,
    /// Pieces of its arguments, where the call asked for them.
    pub(super) partial_args: Option<Vec<Fields<Piece>>>,
    /// Whether more of this call follows.
    pub(super) will_continue: Present,
}

/// A piece of one argument: Vertex AI's `PartialArg`.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Piece {
    pub(super) json_path: String,
    pub(super) string_value: Option<String>,
    pub(super) number_value: Option<serde_json::Number>,
    pub(super) bool_value: Option<bool>,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Feedback<'a> {
    #[serde(borrow)]
    pub(super) block_reason: Brief<'a>,
    pub(super) safety_ratings: Blocked,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_field_names)] // the provider's names
pub(super) struct Counts {
    prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    tool_use_prompt_token_count: Count,
    total_token_count: Count,
    // Nearly every piece has them. Named, they are passed over without memory; lists that no field has are not.
    #[serde(rename = "promptTokensDetails")]
    _prompt: List<Nothing>,
    #[serde(rename = "candidatesTokensDetails")]
    _candidates: List<Nothing>,
    #[serde(rename = "cacheTokensDetails")]
    _cache: List<Nothing>,
}

/// An object of which nothing is kept.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Nothing {}

impl Counts {
    /// The counts with the parts within the totals; nothing when nothing was counted.
    ///
    /// Google documents the total as the sum of prompt, tool prompts, candidates and thoughts, with the cached tokens
    /// within the prompt's.
    pub(super) fn usage(self) -> Option<Usage> {
        let counted = [self.prompt_token_count, self.candidates_token_count, self.thoughts_token_count];
        if counted.iter().all(|count| count.0.is_none()) {
            return None;
        }
        let number = |count: Count| count.0.unwrap_or(0);
        let input = number(self.prompt_token_count).saturating_add(number(self.tool_use_prompt_token_count));
        let (candidates, thoughts) = (number(self.candidates_token_count), number(self.thoughts_token_count));
        // Some versions and gateways count the thoughts among the candidates; then the total says so
        // (BerriAI/litellm#10141).
        let is_within = thoughts <= candidates && self.total_token_count.0 == Some(input.saturating_add(candidates));
        let output = if is_within { candidates } else { candidates.saturating_add(thoughts) };
        let mut usage = Usage::new(input, output);
        usage.total = self.total_token_count.0.unwrap_or(usage.total);
        usage.cached_input = self.cached_content_token_count.0;
        usage.reasoning = self.thoughts_token_count.0;
        Some(usage)
    }
}

/// What the reasons mean, as Google's reference of `FinishReason` has them; none where it says nothing. At `CONTINUATION`
/// the API cut the answer at a limit of its own. The rest, and what is new, is [`FinishReason::Other`].
pub(super) fn finish_reason(word: &str) -> Option<FinishReason> {
    Some(match word {
        "" | "FINISH_REASON_UNSPECIFIED" => return None,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" | "CONTINUATION" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR"
        | "ESCALATION"
        | "PUP_LIMITED_DISABLED" => FinishReason::ContentFilter,
        _ => FinishReason::Other,
    })
}

lenient!(Body<'a>, 'de: 'a, {
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Body<'a>, A::Error> {
        let answer = Answer::deserialize(serde::de::value::MapAccessDeserializer::new(object))?;
        Ok(Body(Few { first: Some(answer), more: Vec::new() }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Body<'a>, A::Error> {
        Few::of(list).map(Body)
    }
});

/// The categories that caught something, of a list of ratings; none where something else came.
#[derive(Default)]
pub(super) struct Blocked(pub(super) Vec<String>);

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Rating<'a> {
    #[serde(borrow)]
    category: Brief<'a>,
    blocked: Present,
}

lenient!(Blocked, 'de, {
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Blocked, A::Error> {
        let mut blocked = Vec::new();
        while let Some(Fields(rating)) = list.next_element::<Fields<Rating<'de>>>()? {
            let category = rating.category.get().filter(|_| rating.blocked.0);
            blocked.extend(category.map(str::to_owned));
        }
        Ok(Blocked(blocked))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Blocked, A::Error> {
        skip_object(object).map(|_| Blocked::default())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Blocked, E> {
        Ok(Blocked::default())
    }

    fn visit_unit<E: Error>(self) -> Result<Blocked, E> {
        Ok(Blocked::default())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Blocked, E> {
        Ok(Blocked::default())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Blocked, E> {
        Ok(Blocked::default())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Blocked, E> {
        Ok(Blocked::default())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Blocked, E> {
        Ok(Blocked::default())
    }
});

/// A list that mostly has one element: that one is kept without a heap.
pub(super) struct Few<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Few<T> {
    fn of<'de, A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error>
    where
        T: Deserialize<'de> + Default,
    {
        let first = list.next_element()?.map(|Fields(element)| element);
        let mut more = Vec::new();
        while let Some(Fields(element)) = list.next_element()? {
            more.push(element);
        }
        Ok(Self { first, more })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.more)
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

/// Each element with its fields, or their defaults where it is something else.
impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for Reader<T> {
            type Value = Few<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Few<T>, A::Error> {
                Few::of(list)
            }
        }
        from.deserialize_seq(Reader(PhantomData))
    }
}
