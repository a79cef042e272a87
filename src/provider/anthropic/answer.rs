//! What an answer consists of, whole or streamed, as it becomes a draft.

use super::{OUTPUT_TOOL, PROTOCOL, WRAPPED, WRAPPED_OUTPUT_TOOL};
use crate::chat::{FinishReason, Opaque, ToolCallDelta};
use crate::provider::Draft;
use crate::provider::lenient::{Brief, Words};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Writes the parts of an answer into a draft.
///
/// Blocks of reasoning have to go back in their places: those before the first word or call lead the turn; a later one
/// stands before the call that came next, and travels with it.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The model, as reported.
    pub(super) model: Option<String>,
    /// Whether there was a word or a call.
    said: bool,
    /// Blocks of reasoning that wait for the next call.
    held: Vec<Value>,
    /// Whether the answer came as the arguments of a tool that stands for its form.
    by_tool: bool,
}

/// A call that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) enum Called {
    /// The tool that stands for the form of the answer: its arguments are the text.
    Output,
    /// A tool of the caller's, and its place among the calls.
    Tool(usize),
    /// The tool that stands for the form of an answer that may be no object: one of its arguments is the text.
    Wrapped,
}

/// Whether a tool stands for the form of the answer.
pub(super) fn is_output(name: &str) -> bool {
    matches!(name, OUTPUT_TOOL | WRAPPED_OUTPUT_TOOL)
}

/// Why the model was stopped from answering.
#[derive(Default, Deserialize)]
pub(super) struct StopDetails {
    #[serde(default)]
    category: Words,
    #[serde(default)]
    explanation: Words,
}

impl Answer {
    pub(super) fn say(&mut self, words: String, draft: &mut Draft) {
        if !words.is_empty() {
            self.said = true;
            draft.text(words);
        }
    }

    /// A block of reasoning that is complete.
    pub(super) fn think(&mut self, block: Value, draft: &mut Draft) {
        if !draft.keeps_reply() {
        } else if self.said {
            self.held.push(block);
        } else {
            draft.opaque(self.opaque(block));
        }
    }

    pub(super) fn call(&mut self, id: String, name: String, draft: &mut Draft) -> Called {
        self.said = true;
        if is_output(&name) {
            self.by_tool = true;
            return if name == OUTPUT_TOOL { Called::Output } else { Called::Wrapped };
        }
        let index = draft.tool_calls();
        draft.tool_call(ToolCallDelta::new(index).id(id).name(name));
        if !self.held.is_empty() {
            let before = std::mem::take(&mut self.held);
            draft.tool_call_opaque(index, self.opaque(before.into()));
        }
        Called::Tool(index)
    }

    /// More of a call's arguments, where they can be seen before the last of them came.
    pub(super) fn more(called: Called, json: &str, draft: &mut Draft) {
        match called {
            Called::Output => draft.text(json.to_owned()),
            Called::Tool(index) => draft.tool_call(ToolCallDelta::new(index).arguments(json)),
            Called::Wrapped => {}
        }
    }

    /// The end of a call, with the arguments that were not yet seen. No arguments are an empty object.
    pub(super) fn last(called: Called, json: String, draft: &mut Draft) {
        match called {
            Called::Output => draft.text(json),
            Called::Tool(index) => {
                let part = ToolCallDelta::new(index).complete();
                draft.tool_call(if json == "{}" { part } else { part.arguments(json) });
            }
            Called::Wrapped => {
                let value = match serde_json::from_str::<Map<String, Value>>(&json) {
                    Ok(mut fields) => fields.remove(WRAPPED).map(|value| value.to_string()),
                    Err(_) => None,
                };
                draft.text(value.unwrap_or(json));
            }
        }
    }

    /// Why the model stopped.
    ///
    /// Anthropic stops with `refusal` when its classifiers intervene, and the text so far may be of any length: it is a
    /// filter that cut, more than a model that declined. What it says of the why is in [`Reply::refusal`].
    ///
    /// [`Reply::refusal`]: crate::chat::Reply::refusal
    pub(super) fn stop(&self, reason: &str, details: StopDetails, draft: &mut Draft) {
        draft.finish(match reason {
            "end_turn" | "stop_sequence" => FinishReason::Stop,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "tool_use" if self.by_tool => FinishReason::Stop,
            "tool_use" => FinishReason::ToolCalls,
            "refusal" => FinishReason::ContentFilter,
            _ => FinishReason::Other,
        });
        if reason == "refusal" {
            draft.refusal(&details.explanation.0.unwrap_or_default());
            draft.filtered(details.category.0);
        }
    }

    /// Blocks of reasoning after which no call came.
    pub(super) fn end(&mut self, draft: &mut Draft) {
        for block in std::mem::take(&mut self.held) {
            draft.opaque(self.opaque(block));
        }
    }

    fn opaque(&self, data: Value) -> Opaque {
        Opaque::new(PROTOCOL, data).of_model(self.model.clone())
    }
}

/// A block of reasoning, as it goes back. Servers that speak the same protocol may sign nothing.
pub(super) fn thought(thinking: &str, signature: &str) -> Value {
    let mut block = json!({"type": "thinking", "thinking": thinking});
    if !signature.is_empty() {
        block["signature"] = signature.into();
    }
    block
}

/// A block of reasoning that nobody may read.
pub(super) fn redacted(data: &str) -> Value {
    json!({"type": "redacted_thinking", "data": data})
}

/// The fields of all the blocks that are of use, whole, begun, or a piece of one; other blocks have none of them under these
/// types.
#[derive(Default, Deserialize)]
pub(super) struct BlockFields<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Brief<'a>,
    #[serde(borrow, default)]
    pub(super) text: Brief<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Brief<'a>,
    #[serde(borrow, default)]
    pub(super) signature: Brief<'a>,
    #[serde(borrow, default)]
    pub(super) data: Brief<'a>,
    #[serde(borrow, default)]
    pub(super) id: Brief<'a>,
    #[serde(borrow, default)]
    pub(super) name: Brief<'a>,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) partial_json: Brief<'a>,
}
