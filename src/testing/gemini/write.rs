//! Gives a success the shape that Google gives it: whole, as events, or as a list.

use super::signature;
use crate::testing::answer::Reply;
use crate::testing::delivery::Piece;
use crate::testing::openai::spent;
use crate::testing::protocol::{Asked, Body, Rendered, count_tokens};
use serde_json::{Value, json};

pub(super) fn write(reply: &Reply, asked: &Asked, id: &str) -> Rendered {
    let shape = Shape::new(reply, asked, id);
    let text = asked.text(reply);
    let thought = reply.reasoning.iter().map(|words| json!({"text": words, "thought": true}));
    if !asked.stream {
        let text = Some(text).filter(|text| !text.is_empty()).map(|text| json!({"text": text}));
        let mut parts: Vec<_> = thought.chain(text).chain(shape.calls()).collect();
        if let Some(last) = parts.last_mut() {
            shape.sign_words(last);
        }
        return Rendered::json(200, &shape.piece(&parts, shape.spoken, true));
    }
    let words = reply.chunks(text).into_iter().map(|words| json!({"text": words}));
    let (mut pieces, mut spoken) = (Vec::new(), 0);
    for part in thought.chain(words).chain(shape.calls()) {
        // Each count is of the whole answer so far.
        spoken +=
            if part.get("thought").is_some() { 0 } else { count_tokens(part["text"].as_str().unwrap_or_default()) };
        pieces.push(shape.piece(&[part], spoken.min(shape.spoken), false));
    }
    // The reason comes last, and the signature of words with it.
    let mut last = json!({"text": ""});
    shape.sign_words(&mut last);
    pieces.push(shape.piece(&[last], shape.spoken, true));
    let (media_type, pieces) = if asked.stream_list {
        let places = 1..=pieces.len();
        let end = pieces.len();
        let framed = pieces.iter().zip(places).map(|(piece, place)| {
            let (open, close) = (if place == 1 { "[" } else { ",\r\n" }, if place == end { "]" } else { "" });
            format!("{open}{piece}{close}")
        });
        ("application/json; charset=UTF-8", framed.map(Piece::from).collect())
    } else {
        ("text/event-stream", pieces.iter().map(|piece| Piece::from(format!("data: {piece}\r\n\r\n"))).collect())
    };
    Rendered { status: 200, headers: vec![("content-type", media_type.to_owned())], body: Body::Stream(pieces) }
}

/// What every piece of an answer says alike.
struct Shape<'a> {
    reply: &'a Reply,
    asked: &'a Asked,
    id: &'a str,
    input: u64,
    /// Tokens of thoughts. Google counts them beside those of the answer.
    thoughts: u64,
    /// Tokens of the answer.
    spoken: u64,
}

impl<'a> Shape<'a> {
    fn new(reply: &'a Reply, asked: &'a Asked, id: &'a str) -> Self {
        let (input, output, thoughts) = spent(reply, asked);
        Self { reply, asked, id, input, thoughts, spoken: output - thoughts }
    }

    /// The calls. The first of a turn is signed; models before Gemini 3 give no ids.
    fn calls(&self) -> impl Iterator<Item = Value> {
        let signs = signature::is_signing(&self.asked.model);
        self.reply.tool_calls.iter().enumerate().map(move |(place, called)| {
            // What is no JSON comes as a text, as gateways send it.
            let args =
                serde_json::from_str(&called.arguments).unwrap_or_else(|_| Value::from(called.arguments.as_str()));
            let mut call = json!({"name": called.name, "args": args});
            match &called.id {
                Some(id) => call["id"] = id.as_str().into(),
                None if signs => call["id"] = format!("fc-{}-{place}", self.id).into(),
                None => {}
            }
            let mut part = json!({"functionCall": call});
            if signs && place == 0 {
                part["thoughtSignature"] = signature::sign(&self.asked.model, &part).into();
            }
            part
        })
    }

    /// Signs the last words of an answer that calls no tools.
    fn sign_words(&self, part: &mut Value) {
        let is_words = part.get("text").is_some() && part.get("thought").is_none();
        if is_words && self.reply.tool_calls.is_empty() && signature::is_signing(&self.asked.model) {
            part["thoughtSignature"] = signature::sign(&self.asked.model, part).into();
        }
    }

    /// An answer, or a piece of one. What is empty or zero is left out.
    fn piece(&self, parts: &[Value], spoken: u64, last: bool) -> Value {
        let content =
            if parts.is_empty() { json!({"role": "model"}) } else { json!({"parts": parts, "role": "model"}) };
        let mut candidate = json!({"content": content, "index": 0});
        if last {
            candidate["finishReason"] = self.reply.finish_reason.as_deref().unwrap_or("STOP").into();
        }
        let mut usage = json!({
            "promptTokenCount": self.input,
            "candidatesTokenCount": spoken,
            "thoughtsTokenCount": self.thoughts,
            "totalTokenCount": self.input.saturating_add(self.thoughts).saturating_add(spoken),
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": self.input}],
        });
        if let Some(counts) = usage.as_object_mut() {
            counts.retain(|_, count| *count != 0);
        }
        json!({
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": self.asked.model(self.reply),
            "responseId": self.id,
        })
    }
}
