//! The JSON of an answer: strictly, or found among words.

use super::Breach;
use crate::chat::{FinishReason, Reply};
use crate::client::call::Expected;
use crate::record::{ErrorCode, Issues};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How much of a text that is no JSON is kept, in characters.
const HEAD: usize = 200;
/// How many places a value may begin at are tried.
const MOST_BEGINNINGS: usize = 64;

/// Reads the text of the reply as JSON.
pub(super) fn read(expected: &Expected, reply: &Reply) -> Result<Value, Breach> {
    let text = reply.text();
    if let Some(parse) = &expected.parse_json {
        let parsed = catch_unwind(AssertUnwindSafe(|| parse(text)));
        let parsed = parsed.unwrap_or_else(|_| Err("the parser panicked".to_owned()));
        return parsed.map_err(|why| no_json(reply, &why, (0, 0)));
    }
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    if expected.lenient_json
        && let Some(value) = found_among_words(text)
    {
        return Ok(value);
    }
    let why = if text.trim().is_empty() { "there is no text".to_owned() } else { error.to_string() };
    Err(no_json(reply, &why, (error.line(), error.column())))
}

fn no_json(reply: &Reply, why: &str, (line, column): (usize, usize)) -> Breach {
    let cut_by_length = reply.finish_reason() == FinishReason::Length;
    let cut = match reply.finish_reason() {
        FinishReason::Length => "; it was cut by the token limit: raise `max_tokens`",
        FinishReason::ContentFilter => "; it was cut by a filter",
        _ => "",
    };
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    Breach {
        code: ErrorCode::JsonParseFailed,
        what: format!("json parse failed: the answer is not JSON: {why}{cut}"),
        issues: Issues::Json {
            text_head: reply.text().chars().take(HEAD).collect(),
            line: number(line),
            column: number(column),
            cut_by_length,
        },
    }
}

/// The one value in a fenced block, or the one object or array with words around it.
fn found_among_words(text: &str) -> Option<Value> {
    match in_fences(text) {
        Some(Some(block)) => serde_json::from_str(block).ok(),
        // More than one: which of them is meant?
        Some(None) => None,
        None => among_words(text),
    }
}

/// What stands in the only fenced block; `Some(None)` where there are more.
fn in_fences(text: &str) -> Option<Option<&str>> {
    let mut parts = text.split("```");
    let (_, block, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return Some(None);
    }
    // The first line may name the language.
    let named = block.split_once('\n').filter(|(language, _)| language.trim().chars().all(char::is_alphanumeric));
    Some(Some(named.map_or(block, |(_, block)| block)))
}

fn among_words(text: &str) -> Option<Value> {
    let (value, end) = first_value(text)?;
    // More than one: which of them is meant?
    first_value(&text[end..]).is_none().then_some(value)
}

/// The first object or array in a text, and where it ends.
fn first_value(text: &str) -> Option<(Value, usize)> {
    text.match_indices(['{', '[']).take(MOST_BEGINNINGS).find_map(|(start, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let value = values.next()?.ok()?;
        Some((value, start + values.byte_offset()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_value_is_found_in_fences_or_among_words() {
        let value = json!({"a": [1, {"b": "} ] ```"}]});
        for text in [
            "```json\n{\"a\": 1}\n```",
            "Here you are:\n```\n{\"a\": 1}\n```\nAnything else?",
            "```{\"a\": 1}```",
            "Sure! {\"a\": 1} That is all.",
            "The answer [I think] is {\"a\": 1}",
        ] {
            assert_eq!(found_among_words(text), Some(json!({"a": 1})), "{text}");
        }
        assert_eq!(among_words(&format!("So: {value}.")), Some(value));
        for text in [
            "{\"a\": 1} or {\"a\": 2}",
            "```json\n{}\n```\n```json\n{}\n```",
            "```json\nnot\n```",
            "no value at all",
            "{\"a\": ",
            "4",
        ] {
            assert_eq!(found_among_words(text), None, "{text}");
        }
        assert_eq!(found_among_words(&"[".repeat(100_000)), None);
    }
}
