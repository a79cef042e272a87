//! What was generated: a list of items of many types, whether it comes whole or item by item.
//!
//! Those that are read are found by their type; what is in others, of which there are more with every release, never costs
//! the answer. An item is read once, at its end; of one that was streamed, only what its events have not told yet.

use super::{PROTOCOL, opaque};
use crate::chat::{FinishReason, Opaque, ToolCallDelta};
use crate::provider::lenient::{Brief, Fields, List};
use crate::provider::openai::json_of;
use crate::provider::stream::malformed;
use crate::provider::{AnswerFault, Draft};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Reads the items of one response into a draft.
#[derive(Debug, Default)]
pub(super) struct Items {
    seen: Vec<Seen>,
    calls: usize,
    refused: bool,
    /// Whether words of the answer came in pieces, and are not to be told again at the end.
    words_streamed: bool,
    thoughts_streamed: bool,
    /// The last piece of reasoning that was told, and whether it was of a summary.
    thought: Option<(Place, bool)>,
}

/// A piece of an item: the item's place, and that of the piece in it.
pub(super) type Place = (u64, u64);

/// One item, as far as it is known.
#[derive(Debug, Default)]
struct Seen {
    place: u64,
    done: bool,
    /// The call that it is.
    call: Option<Call>,
    /// What goes back in its place.
    echo: Option<Value>,
}

#[derive(Debug)]
struct Call {
    index: usize,
    id: String,
    /// Whether arguments came in pieces.
    streamed: bool,
}

#[derive(Default, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(default, borrow)]
    r#type: Brief<'a>,
    #[serde(default, borrow)]
    id: Brief<'a>,
    #[serde(default, borrow)]
    call_id: Brief<'a>,
    #[serde(default, borrow)]
    name: Brief<'a>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
    /// What a tool without a schema is given.
    #[serde(default, borrow)]
    input: Brief<'a>,
    #[serde(default, borrow)]
    status: Brief<'a>,
    #[serde(default, borrow)]
    phase: Brief<'a>,
    #[serde(default, borrow)]
    content: List<Part<'a>>,
    #[serde(default, borrow)]
    summary: List<Part<'a>>,
}

#[derive(Default, Deserialize)]
struct Part<'a> {
    #[serde(default, borrow)]
    text: Brief<'a>,
    #[serde(default, borrow)]
    refusal: Brief<'a>,
}

impl Item<'_> {
    pub(super) fn is_message(&self) -> bool {
        self.r#type.text() == "message"
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self.r#type.text(), "function_call" | "custom_tool_call")
    }

    pub(super) fn id(&self) -> &str {
        self.id.text()
    }

    /// What a neutral turn has no place for, and what it is found by; empty where it has none.
    pub(super) fn labels(&self) -> [(&'static str, &str); 4] {
        let Self { r#type, id, call_id, phase, .. } = self;
        [("type", r#type.text()), ("id", id.text()), ("call_id", call_id.text()), ("phase", phase.text())]
    }

    /// The length of its text, in bytes.
    pub(super) fn text_len(&self) -> usize {
        self.content.0.iter().map(|part| part.text.text().len()).sum()
    }
}

/// The item that is written here.
pub(super) fn parsed(raw: &RawValue) -> Item<'_> {
    serde_json::from_str::<Fields<Item<'_>>>(raw.get()).unwrap_or_default().0
}

/// What is told in pieces.
impl Items {
    /// More words of the answer.
    pub(super) fn text(&mut self, words: String, draft: &mut Draft) {
        self.words_streamed = true;
        draft.text(words);
    }

    /// More words with which the model declines.
    pub(super) fn refusal(&mut self, words: &str, draft: &mut Draft) {
        self.words_streamed = true;
        self.decline(words, draft);
    }

    /// More of the reasoning: of its summary, or of the thoughts themselves, which open models show.
    pub(super) fn reasoning(&mut self, place: Place, is_summary: bool, words: String, draft: &mut Draft) {
        self.thoughts_streamed = true;
        self.think(place, is_summary, words, draft);
    }

    /// An item begins.
    pub(super) fn open(&mut self, place: u64, item: &Item<'_>, draft: &mut Draft) {
        if item.is_call() && self.call(place, item.call_id.text()).is_none() {
            let id = item.call_id.text().to_owned();
            draft.tool_call(ToolCallDelta::new(self.calls).id(&*id).name(item.name.text()));
            self.at(place).call = Some(Call { index: self.calls, id, streamed: false });
            self.calls += 1;
        }
    }

    /// More of the arguments of the call at `place`.
    pub(super) fn arguments(&mut self, place: u64, fragment: &str, draft: &mut Draft) {
        if let Some(call) = self.call(place, "").filter(|_| !fragment.is_empty()) {
            call.streamed = true;
            draft.tool_call(ToolCallDelta::new(call.index).arguments(fragment));
        }
    }

    /// All of the arguments of the call at `place`: news where none came in pieces.
    pub(super) fn all_arguments(&mut self, place: u64, arguments: &str, draft: &mut Draft) {
        if self.call(place, "").is_some_and(|call| !call.streamed) {
            self.arguments(place, arguments, draft);
        }
    }
}

/// What is told at the end.
impl Items {
    /// An item is complete.
    ///
    /// # Errors
    ///
    /// When it is a call that was cut: its arguments might pass for complete ones.
    pub(super) fn close(&mut self, place: u64, raw: &RawValue, draft: &mut Draft) -> Result<(), AnswerFault> {
        if std::mem::replace(&mut self.at(place).done, true) {
            return Ok(());
        }
        let item = parsed(raw);
        match item.r#type.text() {
            "message" if !self.words_streamed => {
                for part in &item.content.0 {
                    draft.text(part.text.text().to_owned());
                    self.decline(part.refusal.text(), draft);
                }
            }
            // The summary is for reading; open models give the thoughts themselves, and no summary.
            "reasoning" if !self.thoughts_streamed => {
                let is_summary = !item.summary.0.is_empty();
                let parts = if is_summary { &item.summary.0 } else { &item.content.0 };
                for (at, part) in (0..).zip(parts) {
                    self.think((place, at), is_summary, part.text.text().to_owned(), draft);
                }
            }
            "function_call" | "custom_tool_call" => self.close_call(place, &item, draft)?,
            _ => {}
        }
        self.at(place).echo = opaque::echo(&item, raw);
        Ok(())
    }

    fn close_call(&mut self, place: u64, item: &Item<'_>, draft: &mut Draft) -> Result<(), AnswerFault> {
        self.open(place, item, draft);
        let Some(call) = self.call(place, item.call_id.text()) else { return Ok(()) };
        let arguments = match item.r#type.text() {
            "custom_tool_call" => json!(item.input.text()).to_string().into(),
            _ => item.arguments.map(json_of).unwrap_or_default(),
        };
        if item.status.text() == "incomplete" {
            let problem = malformed(item.name.text().to_owned(), item.call_id.text().to_owned(), &arguments);
            return Err(AnswerFault::ToolArguments(vec![problem]));
        }
        let mut part = ToolCallDelta::new(call.index).complete();
        if !call.streamed {
            part.arguments = arguments.into_owned();
        }
        draft.tool_call(part);
        Ok(())
    }

    /// The response is complete, with this status and this reason for being incomplete.
    pub(super) fn end(&mut self, model: &str, status: &str, reason: &str, draft: &mut Draft) {
        draft.finish(match (status, reason) {
            _ if self.calls > 0 => FinishReason::ToolCalls,
            _ if self.refused => FinishReason::Refusal,
            ("incomplete", "max_output_tokens" | "max_messages") => FinishReason::Length,
            ("incomplete", "content_filter") => FinishReason::ContentFilter,
            ("completed", _) => FinishReason::Stop,
            _ => FinishReason::Other,
        });
        self.seen.sort_by_key(|seen| seen.place);
        let echoes = self.seen.iter_mut().filter_map(|seen| seen.echo.take());
        if let Some(data) = opaque::turn(echoes.collect()).filter(|_| draft.keeps_reply()) {
            let model = Some(model.to_owned()).filter(|model| !model.is_empty());
            draft.opaque(Opaque::new(PROTOCOL, data).of_model(model));
        }
    }

    fn decline(&mut self, words: &str, draft: &mut Draft) {
        self.refused |= !words.is_empty();
        draft.refusal(words);
    }

    /// Each piece is a paragraph. Where summary and thoughts both come, the first kind is told.
    fn think(&mut self, place: Place, is_summary: bool, words: String, draft: &mut Draft) {
        if words.is_empty() || self.thought.is_some_and(|(_, of_summary)| of_summary != is_summary) {
            return;
        }
        if self.thought.is_some_and(|(last, _)| last != place) {
            draft.reasoning("\n\n".to_owned());
        }
        self.thought = Some((place, is_summary));
        draft.reasoning(words);
    }

    fn at(&mut self, place: u64) -> &mut Seen {
        let at = self.seen.iter().rposition(|seen| seen.place == place).unwrap_or_else(|| {
            self.seen.push(Seen { place, ..Seen::default() });
            self.seen.len() - 1
        });
        &mut self.seen[at]
    }

    /// The call of this id, else the one at this place.
    fn call(&mut self, place: u64, id: &str) -> Option<&mut Call> {
        let mut found = None;
        for seen in &mut self.seen {
            let at_place = seen.place == place;
            if let Some(call) = &mut seen.call {
                if call.id == id && !id.is_empty() {
                    return Some(call);
                }
                if at_place {
                    found = Some(call);
                }
            }
        }
        found
    }
}
