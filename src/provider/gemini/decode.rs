//! An answer in Gemini's words.
//!
//! Google leaves out what is zero or empty, so every field may be missing; gateways send null, or the list that the
//! streaming method answers with.

use crate::chat::{FinishReason, Reply, Usage};
use crate::provider::lenient::{Count, Fields, Present, Words, lenient};
use crate::provider::{AnswerFault, Failure, Head, json, request_id};
use bytes::Bytes;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// A body: one answer, or a list of them.
struct Body {
    answer: Answer,
    /// How many there are in all.
    answers: usize,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    error: Present,
    candidates: Option<Vec<Fields<Candidate>>>,
    prompt_feedback: Fields<Feedback>,
    usage_metadata: Fields<Counts>,
    model_version: Words,
    response_id: Words,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Candidate {
    content: Fields<Content>,
    finish_reason: Words,
    safety_ratings: Value,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Content {
    parts: Option<Vec<Fields<Part>>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Part {
    text: Words,
    thought: Present,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Feedback {
    block_reason: Words,
    safety_ratings: Value,
}

#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_field_names)] // the provider's names
struct Counts {
    prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    tool_use_prompt_token_count: Count,
    total_token_count: Count,
}

lenient!(Body, 'de, {
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Body, A::Error> {
        let answer = Answer::deserialize(MapAccessDeserializer::new(object))?;
        Ok(Body { answer, answers: 1 })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Body, A::Error> {
        let mut body = Body { answer: Answer::default(), answers: 0 };
        while let Some(Fields(answer)) = list.next_element::<Fields<Answer>>()? {
            if body.answers == 0 {
                body.answer = answer;
            } else {
                body.answer.error.0 |= answer.error.0;
            }
            body.answers += 1;
        }
        Ok(body)
    }
});

pub(super) fn decode<'a>(head: &'a Head, body: &'a Bytes) -> Result<Reply, Failure<'a>> {
    let failed = |fault| Failure::of(head, body).fault(fault);
    let Body { answer, answers } = json::read(head, body)?;
    if answer.error.0 {
        return Err(failed(AnswerFault::Error));
    }
    if answers > 1 {
        // Its first piece alone would be an answer that is cut.
        return Err(failed(AnswerFault::Invalid(format!("{answers} answers in a list, as a stream has them"))));
    }
    let Fields(candidate) = answer.candidates.into_iter().flatten().next().unwrap_or_default();
    let Candidate { content: Fields(content), finish_reason: Words(finish_word), safety_ratings } = candidate;
    let finish = finish_word.as_deref().map_or(FinishReason::Other, finish_reason);
    let (text, reasoning) = content.words();
    if text.is_empty() && finish != FinishReason::Length {
        let Fields(feedback) = answer.prompt_feedback;
        return Err(failed(match (finish, finish_word, feedback.block_reason.0) {
            (FinishReason::ContentFilter, Some(reason), _) => withheld(&safety_ratings, reason),
            (_, _, Some(reason)) if !reason.is_empty() => withheld(&feedback.safety_ratings, reason),
            _ => AnswerFault::Empty,
        }));
    }
    // There is no official header with a request id.
    let id = request_id(&head.headers).map(str::to_owned).or(answer.response_id.0);
    Ok(Reply::new(text)
        .with_reasoning(reasoning)
        .with_finish_reason(finish)
        .with_usage(answer.usage_metadata.0.usage())
        .with_model(answer.model_version.0)
        .with_provider_request_id(id))
}

/// What the reasons mean, as Google's reference of `FinishReason` has them. At `CONTINUATION` the API cut the answer at a
/// limit of its own. The rest, and what is new, is [`FinishReason::Other`].
fn finish_reason(word: &str) -> FinishReason {
    match word {
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
    }
}

/// A filter withheld it: the categories that caught something, or where none is rated the reason itself.
fn withheld(ratings: &Value, reason: String) -> AnswerFault {
    let ratings = ratings.as_array().into_iter().flatten();
    let blocked = ratings.filter(|rating| rating.get("blocked") == Some(&Value::Bool(true)));
    let categories: Vec<_> = blocked.filter_map(|rating| rating.get("category")?.as_str().map(str::to_owned)).collect();
    AnswerFault::Filtered(if categories.is_empty() { vec![reason] } else { categories })
}

impl Content {
    /// The text, and what the model thought aloud.
    fn words(self) -> (String, Option<String>) {
        let (mut text, mut reasoning) = (String::new(), String::new());
        for Fields(part) in self.parts.into_iter().flatten() {
            let to = if part.thought.0 { &mut reasoning } else { &mut text };
            match part.text.0 {
                Some(words) if to.is_empty() => *to = words,
                Some(words) => to.push_str(&words),
                None => {}
            }
        }
        (text, (!reasoning.is_empty()).then_some(reasoning))
    }
}

impl Counts {
    /// The counts with the parts within the totals; nothing when nothing was counted.
    ///
    /// Google documents the total as the sum of prompt, tool prompts, candidates and thoughts, with the cached tokens
    /// within the prompt's.
    fn usage(self) -> Option<Usage> {
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
