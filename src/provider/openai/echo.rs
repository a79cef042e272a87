//! Reasoning that goes back to the server with later turns, where it wants that.

use super::ReasoningEcho;
use crate::chat::Opaque;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// The field in which reasoning comes in blocks, which go back as they are.
const DETAILS: &str = "reasoning_details";
/// Members of a block of which each piece of a stream brings more.
const GROWING: [&str; 3] = ["text", "summary", "data"];

/// The reasoning of one answer, as far as it goes back.
#[derive(Debug, Default)]
pub(super) struct Kept {
    echo: Option<ReasoningEcho>,
    words: String,
    blocks: Vec<Value>,
}

impl Kept {
    /// For a server that wants this.
    pub(super) fn new(echo: Option<ReasoningEcho>) -> Self {
        Self { echo, ..Self::default() }
    }

    /// Whether blocks go back, so that the words alone do not say all.
    pub(super) fn wants_blocks(&self) -> bool {
        self.echo.is_some_and(|echo| echo.field == DETAILS)
    }

    /// More words of it.
    pub(super) fn words(&mut self, words: &str) {
        if self.echo.is_some_and(|echo| echo.field != DETAILS) {
            self.words.push_str(words);
        }
    }

    /// More blocks of it, or more of the last one.
    pub(super) fn blocks(&mut self, raw: &RawValue) {
        if !self.wants_blocks() {
            return;
        }
        let blocks: Vec<Map<String, Value>> = serde_json::from_str(raw.get()).unwrap_or_default();
        for block in blocks {
            match self.blocks.last_mut().and_then(Value::as_object_mut) {
                Some(last) if ["type", "index"].iter().all(|name| last.get(*name) == block.get(*name)) => {
                    grow(last, block);
                }
                _ => self.blocks.push(block.into()),
            }
        }
    }

    /// What goes back: a field of the message, for this server alone.
    pub(super) fn take(&mut self, protocol: &str) -> Option<Opaque> {
        let field = self.echo?.field;
        let value = match (std::mem::take(&mut self.words), std::mem::take(&mut self.blocks)) {
            (words, blocks) if words.is_empty() && blocks.is_empty() => return None,
            (words, blocks) if blocks.is_empty() => words.into(),
            (_, blocks) => blocks.into(),
        };
        Some(Opaque::new(protocol, Map::from_iter([(field.to_owned(), value)])))
    }
}

/// Adds a piece of a block to what there is of it.
fn grow(block: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, more) in piece {
        match (block.get_mut(&name), more) {
            (Some(Value::String(text)), Value::String(more)) if GROWING.contains(&&*name) => text.push_str(&more),
            (Some(_), Value::Null) => {}
            (_, more) => {
                block.insert(name, more);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn blocks_of_a_stream_grow_together() {
        let mut kept = Kept::new(Some(ReasoningEcho::new(DETAILS)));
        for piece in [
            r#"[{"type":"reasoning.text","index":0,"text":"Need ","signature":null}]"#,
            r#"[{"type":"reasoning.text","index":0,"text":"rain.","signature":"c2ln"}]"#,
            r#"[{"type":"reasoning.encrypted","index":1,"data":"YQ=="},{"type":"reasoning.encrypted","index":2,"data":"Yg=="}]"#,
            r#"{"no":"list"}"#,
        ] {
            kept.blocks(serde_json::from_str::<&RawValue>(piece).unwrap());
        }
        kept.words("Need rain.");
        let blocks = json!([
            {"type": "reasoning.text", "index": 0, "text": "Need rain.", "signature": "c2ln"},
            {"type": "reasoning.encrypted", "index": 1, "data": "YQ=="},
            {"type": "reasoning.encrypted", "index": 2, "data": "Yg=="},
        ]);
        assert_eq!(kept.take("p"), Some(Opaque::new("p", json!({"reasoning_details": blocks}))));
        assert_eq!(kept.take("p"), None);
    }

    #[test]
    fn a_server_that_wants_nothing_back_gets_nothing() {
        let mut kept = Kept::new(None);
        kept.words("Hm.");
        assert_eq!(kept.take("p"), None);
        let mut kept = Kept::new(Some(ReasoningEcho::new("reasoning_content")));
        assert_eq!(kept.take("p"), None);
        kept.words("Hm");
        kept.words(".");
        assert_eq!(kept.take("p"), Some(Opaque::new("p", json!({"reasoning_content": "Hm."}))));
    }
}
