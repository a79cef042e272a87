//! A streamed answer of the Responses API, event by event.

use super::decode::Answer;
use super::items::{Items, parsed};
use crate::provider::lenient::{Brief, Count, Fields, Present};
use crate::provider::openai::Saying;
use crate::provider::stream::Stencil;
use crate::provider::{AnswerFault, Draft, Frame, StreamDecoder, json};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Reads one stream.
#[derive(Debug, Default)]
pub(super) struct ResponseStream {
    /// Words of the answer are the usual event.
    usual: Stencil<()>,
    items: Items,
    /// The item that was last spoken of.
    place: u64,
    /// The ids of those that began without a number, in order.
    unnumbered: Vec<String>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(default, borrow)]
    r#type: Brief<'a>,
    #[serde(default)]
    output_index: Count,
    #[serde(default, borrow)]
    item_id: Brief<'a>,
    #[serde(default)]
    summary_index: Count,
    #[serde(default)]
    content_index: Count,
    #[serde(default, borrow)]
    delta: Saying<'a>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(default, borrow)]
    item: Option<&'a RawValue>,
    #[serde(default, borrow)]
    response: Fields<Answer<'a>>,
    #[serde(default)]
    error: Present,
}

impl StreamDecoder for ResponseStream {
    fn read(&mut self, frame: &Frame<'_>, draft: &mut Draft) -> Result<(), AnswerFault> {
        if let Some(((), words)) = self.usual.read(frame.data) {
            self.items.text(words, draft);
            return Ok(());
        }
        let data = frame.data.trim_ascii();
        // The last event is another one; some servers add this all the same.
        if data.is_empty() || data == b"[DONE]" || data.starts_with(b":") {
            return Ok(());
        }
        let event: Event<'_> = json::read_frame(data)?;
        let kind = if event.r#type.text().is_empty() { frame.event } else { event.r#type.text() };
        if event.error.0 || kind == "error" {
            return Err(AnswerFault::Error);
        }
        self.place = event.output_index.0.unwrap_or_else(|| self.place_by_id(&event, kind));
        let place = self.place;
        match kind {
            "response.output_text.delta" => {
                if let Saying::Plain(words) = &event.delta {
                    self.usual.keep(frame.data, words, ());
                }
                self.items.text(event.delta.into_text().text, draft);
            }
            "response.refusal.delta" => self.items.refusal(&event.delta.into_text().text, draft),
            "response.reasoning_summary_text.delta" => {
                let place = (place, event.summary_index.0.unwrap_or(0));
                self.items.reasoning(place, true, event.delta.into_text().text, draft);
            }
            "response.reasoning_text.delta" => {
                let place = (place, event.content_index.0.unwrap_or(0));
                self.items.reasoning(place, false, event.delta.into_text().text, draft);
            }
            "response.output_item.added" => {
                if let Some(item) = event.item {
                    self.items.open(place, &parsed(item), draft);
                }
            }
            "response.function_call_arguments.delta" => {
                self.items.arguments(place, &event.delta.into_text().text, draft);
            }
            "response.function_call_arguments.done" => {
                let arguments = event.arguments.map(super::json_of).unwrap_or_default();
                self.items.all_arguments(place, &arguments, draft);
            }
            "response.output_item.done" => {
                if let Some(item) = event.item {
                    self.items.close(place, item, draft)?;
                }
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let response = event.response.0;
                // The name of the event is its status, where the response does not say.
                let status = match response.status.text() {
                    "" | "in_progress" => kind.trim_start_matches("response."),
                    status => status,
                };
                response.conclude(&mut self.items, status, draft)?;
            }
            // `response.created` and the like: the model is known from the start.
            _ => draft.model(event.response.0.model.text()),
        }
        Ok(())
    }

    /// A stream without its last event was cut.
    fn end(&mut self, _: &mut Draft) -> bool {
        false
    }
}

impl ResponseStream {
    /// The place of the item that an event without a number is about: that of its id, else the last one's.
    fn place_by_id(&mut self, event: &Event<'_>, kind: &str) -> u64 {
        let item = event.item.map(parsed).unwrap_or_default();
        let id = if event.item.is_some() { item.id() } else { event.item_id.text() };
        let begins = kind == "response.output_item.added" && !id.is_empty();
        if begins && !self.unnumbered.iter().any(|known| known == id) {
            self.unnumbered.push(id.to_owned());
        }
        let known = (0..).zip(&self.unnumbered).find(|(_, known)| *known == id);
        known.map_or(self.place, |(place, _)| place)
    }
}

#[cfg(test)]
mod tests;
